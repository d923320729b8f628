"""
How many features
=================

"auto" selects the significant features that are not redundant. Is that the right number for a model? A model of five
nearest neighbours is scored with the first 1, 2, ..., 40 features.
"""

# %%
# 10 features are relevant, 10 are copies of them with some noise, and 80 are noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import belief

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 1_500)
signal = rng.normal(size=(1_500, 10)) + np.linspace(1.2, 0.5, 10) * y[:, None]
X = np.hstack([signal, signal + 0.1 * rng.normal(size=signal.shape), rng.normal(size=(1_500, 80))])
auto = belief.select(X, y, "auto", random_state=0)
many = belief.select(X, y, 40, random_state=0)
print(f"auto selects {len(auto.selected)}, of {len({j % 10 for j in auto.selected if j < 20})} different signals")

# %%
# The upper plot shows the score with which each of the first 40 features was selected. The lower plot shows the
# accuracy with the first n features. It increases until about where "auto" stops, and decreases when noise is added.
# (All rows were used for the selection, so these accuracies are slightly too high; compare their shape.)
tried = [1, 2, 3, 5, 8, 10, 12, 15, 20, 30, 40]
accuracy = [cross_val_score(KNeighborsClassifier(), X[:, many.selected[:n]], y, cv=5).mean() for n in tried]

figure, (top, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
rank, noise = np.arange(1, 41), many.q_value[many.selected] > 0.05
top.bar(rank[~noise], many.scores[~noise], color="#17487a", label="significant")
top.bar(rank[noise], many.scores[noise], color="#c9d0d7", label="not significant")
top.set(ylabel="score")
top.legend(frameon=False)
below.plot(tried, accuracy, "o-", color="#cc6a1f")
below.set(xlabel="features", ylabel="accuracy of 5 neighbours")
for ax in (top, below):
    ax.axvline(len(auto.selected) + 0.5, color="#7f8a96", linestyle=(0, (4, 3)))
    ax.spines[["top", "right"]].set_visible(False)
_ = below.text(len(auto.selected) + 1, min(accuracy), '"auto" stops here', va="bottom")
