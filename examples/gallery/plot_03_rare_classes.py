"""
Rare classes
============

3 % of the rows belong to the class of interest. In the paper, the weight of a class is its share of the rows (equation
5). In this package, all classes have equal weights and equal numbers of sampled rows by default. How many of the
relevant columns are found in each case?
"""

# %%
# 60 normal columns; in ten of them the rare class has a slightly higher mean.
import matplotlib.pyplot as plt
import numpy as np

import belief

rng = np.random.default_rng(1)
rare = rng.random(8_000) < 0.03
X = rng.normal(size=(8_000, 60))
X[:, :10] += np.linspace(0.8, 0.4, 10) * rare[:, None]

# %%
# With the paper's settings *every* column has a weight far above 0: the neighbours in the rare class are farther
# away, so every column differs more from them. With balanced classes, the weights of noise are around 0, and all ten
# columns are found.
ways = {"the paper's settings": belief.PAPER, "balanced (the default)": {}}
results = {name: belief.select(X, rare, 10, random_state=0, **way) for name, way in ways.items()}

for name, result in results.items():
    found = (result.selected < 10).sum()
    print(f"{name:24} {found} of 10 found, mean weight of noise: {result.z[10:].mean():5.1f} standard errors")

# %%
# The weights in standard errors:
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    relevant = np.arange(60) < 10
    bins = np.linspace(result.z.min(), result.z.max(), 25)
    ax.hist(result.z[~relevant], bins, color="#7f8a96", label="noise")
    ax.hist(result.z[relevant], bins, color="#cc6a1f", alpha=0.85, label="relevant")
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(title=name, xlabel="weight in standard errors")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
