"""
Comparison with other selectors
===============================

Which 10 of 64 pixels distinguish handwritten digits best? Each selector uses one half of the rows, and a model of five
nearest neighbours is scored on the other half. BELIEF has the highest score here, but is not the fastest, because it
also tests the significance of every pixel. One table proves little: a :doc:`larger comparison </experiments/contest>`
has 47 tables, and :func:`belief.compare` compares selectors on :doc:`your own table </guide/comparing>`.
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
varies = X.std(axis=0) > 0  # pixels at the border are constant, and the F test would warn
X, X_test = X[:, varies], X_test[:, varies]

# %%
# Every selector is fitted twice. Only the second fit is timed, when kernels are already compiled and libraries loaded.
N = 10
selectors = {
    "BELIEF": belief.BeliefSelector(N, random_state=0),
    "ReliefF": belief.baselines.ReliefF(N, random_state=0),
    "mRMR": belief.baselines.MRMR(N),
    "F test": SelectKBest(f_classif, k=N),
    "mutual information": SelectKBest(mutual_info_classif, k=N),
    "random forest": SelectFromModel(RandomForestClassifier(random_state=0), max_features=N, threshold=-float("inf")),
}


def measure(selector):
    """Return the seconds of the second fit, and the F1 of a model with the selected pixels."""
    selector.fit(X, y)
    start = time.perf_counter()
    small = selector.fit_transform(X, y)
    seconds = time.perf_counter() - start
    model = KNeighborsClassifier().fit(small, y)
    return seconds, f1_score(y_test, model.predict(selector.transform(X_test)), average="macro")


found = {name: measure(selector) for name, selector in selectors.items()}
for name, (seconds, f1) in found.items():
    print(f"{name:18}  {seconds:6.2f} s  F1 {f1:.3f}")

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for i, (name, (seconds, f1)) in enumerate(sorted(found.items(), key=lambda item: item[1][1])):
    ax.plot(seconds, f1, "o", markersize=9, color="#17487a" if name == "BELIEF" else "#7f8a96")
    ax.annotate(name, (seconds, f1), xytext=(0, -16 if i % 2 else 8), textcoords="offset points", ha="center")
ax.set(xscale="log", xlabel="seconds", ylabel=f"macro F1 of 5 neighbours on {N} of {X.shape[1]} pixels")
ax.margins(x=0.25, y=0.15)
