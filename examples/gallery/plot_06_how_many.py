"""
How many features
=================

"auto" selects as many as can be told from noise. Is that enough? The answer of the selector, and that of a model that
was never told of it.
"""

# %%
# 10 features matter, 10 repeat them, and 80 are noise.
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
# Above, the score at which each of the first 40 was selected: where it falls to what noise has, features add nothing.
# Below, what five nearest neighbours make of the first n: they gain until about there, and lose with noise. (The
# features were selected on all rows, so the level of these scores is a little too good; their shape is what counts.)
tried = [1, 2, 3, 5, 8, 10, 12, 15, 20, 30, 40]
accuracy = [cross_val_score(KNeighborsClassifier(), X[:, many.selected[:n]], y, cv=5).mean() for n in tried]

figure, (top, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
rank, doubtful = np.arange(1, 41), many.q_value[many.selected] > 0.05
top.bar(rank[~doubtful], many.scores[~doubtful], color="#17487a", label="told from noise")
top.bar(rank[doubtful], many.scores[doubtful], color="#c9d0d7", label="not")
top.set(ylabel="score")
top.legend(frameon=False)
below.plot(tried, accuracy, "o-", color="#cc6a1f")
below.set(xlabel="features", ylabel="accuracy of 5 neighbours")
for ax in (top, below):
    ax.axvline(len(auto.selected) + 0.5, color="#7f8a96", linestyle=(0, (4, 3)))
    ax.spines[["top", "right"]].set_visible(False)
_ = below.text(len(auto.selected) + 1, min(accuracy), '"auto" stops here', va="bottom")
