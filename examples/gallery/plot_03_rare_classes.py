"""
Rare classes
============

3 % of the rows are of the class that matters. The paper weighs each class by its share of the rows (its Equation 5); by
default all classes count the same, and as many rows of each are sampled. What does
that do to the weights?
"""

# %%
# 60 columns of noise; in ten of them the rare class is shifted a little.
import matplotlib.pyplot as plt
import numpy as np

import belief

rng = np.random.default_rng(1)
rare = rng.random(8_000) < 0.03
X = rng.normal(size=(8_000, 60))
X[:, :10] += np.linspace(0.8, 0.4, 10) * rare[:, None]

# %%
# The weights, in standard errors: where is noise, and where are the columns that matter?
ways = {
    "Equation 5: by share": {"class_weight": "prior", "sampling": "random"},
    "balanced (the default)": {},
}
results = {name: belief.select(X, rare, 10, random_state=0, **way) for name, way in ways.items()}

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    matters = np.arange(60) < 10
    bins = np.linspace(result.z.min(), result.z.max(), 25)
    ax.hist(result.z[~matters], bins, color="#7f8a96", label="noise")
    ax.hist(result.z[matters], bins, color="#cc6a1f", alpha=0.85, label="matters")
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(title=name, xlabel="weight in standard errors")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)

# %%
# By share, *every* column has a weight far above 0: the neighbours of the rare class are far away, so every column
# differs more from them than from neighbours of the frequent class. Balanced, noise lies around 0.
for name, result in results.items():
    found = (result.selected < 10).sum()
    print(f"{name:24} {found} of 10 found, mean weight of noise: {result.z[10:].mean():5.1f} standard errors")
