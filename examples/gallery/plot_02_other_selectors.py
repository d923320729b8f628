"""
Against other selectors
=======================

Handwritten digits, 8 x 8 pixels, ten classes: which 10 pixels tell them best? Each selector sees one half of the rows;
the macro F1 of five nearest neighbours is taken on the other half. One table proves little: a
:doc:`larger comparison </experiments/contest>` has 47. On a table of your own :func:`belief.compare` does this with
:doc:`folds, three judges and more selectors </guide/comparing>`.
"""

# %%
import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_classif, mutual_info_classif
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import belief

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
varies = X.std(axis=0) > 0  # some pixels at the border are never drawn on, and the F test warns of them
X, X_test = X[:, varies], X_test[:, varies]

# %%
# All in one style: fit, then transform.
N = 10
selectors = {
    "BELIEF": belief.BeliefSelector(N, random_state=0),
    "ReliefF": belief.baselines.ReliefF(N, random_state=0),
    "mRMR": belief.baselines.MRMR(N),
    "F test": SelectKBest(f_classif, k=N),
    "mutual information": SelectKBest(mutual_info_classif, k=N),
    "random forest": SelectFromModel(RandomForestClassifier(random_state=0), max_features=N, threshold=-float("inf")),
}


def judged(selector):
    """The seconds it takes, and the F1 of what it selects."""
    selector.fit(X, y)  # not timed: kernels are compiled, and libraries loaded, at first use
    start = time.perf_counter()
    small = selector.fit_transform(X, y)
    took = time.perf_counter() - start
    model = KNeighborsClassifier().fit(small, y)
    return took, f1_score(y_test, model.predict(selector.transform(X_test)), average="macro")


found = {name: judged(selector) for name, selector in selectors.items()}
for name, (took, f1) in found.items():
    print(f"{name:18}  {took:6.2f} s  F1 {f1:.3f}")

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, (took, f1) in found.items():
    ax.plot(took, f1, "o", markersize=9, color="#17487a" if name == "BELIEF" else "#7f8a96")
    ax.annotate(name, (took, f1), xytext=(7, 5), textcoords="offset points")
ax.set(xscale="log", xlabel="seconds", ylabel=f"macro F1 of 5 neighbours on {N} of {X.shape[1]} pixels")
ax.margins(x=0.25, y=0.15)
