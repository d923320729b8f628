"""Who takes part in experiments/contest.py: each is given a table and a number, and names columns, the best first.

All have one thread, a fixed seed, and what their documentation proposes unless it is said here. Nominal columns are
named to those who can be told of them, and are codes to the others; missing values are filled by medians for all but
ours; the linear ones get columns of variance 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import rivals
from choices import Data
from common import paper
from contest_tasks import columns
from made import Array

import belief
from belief import baselines

K = 10  # neighbours, of those who need to be told
TREES = 100
SLOWEST = 50  # of RFE: beyond so many columns a tenth goes at a time

Select = Callable[[Data, int], Array]


class Selector(NamedTuple):
    """How to call it, what kind it is, the module it needs, and whether fewer features are the first of more."""

    select: Select
    kind: str
    module: str = "belief"
    once: bool = True


def best(weights: Array, n: int) -> Array:
    """The largest, in order."""
    return np.argsort(-np.nan_to_num(weights, nan=-np.inf), kind="stable")[:n]


def standard(data: Data) -> Array:
    """Columns of mean 0 and variance 1."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(columns(data))


# --- ours ------------------------------------------------------------------------------------------------------------


def by_belief(data: Data, n: int, **settings: Any) -> Array:
    """BELIEF, with the defaults if nothing else is said."""
    options = {"discrete_features": data.discrete, "random_state": 0, "n_jobs": 1, **settings}
    return belief.select(data.X, data.y, n, **options).selected


def by_paper(data: Data, n: int) -> Array:
    """BELIEF with the settings of the paper."""
    return by_belief(data, n, **paper(data.X, data.discrete))


def by_baseline(name: str, data: Data, n: int) -> Array:
    """A selector of belief.baselines, or one of the schemes in rivals/."""
    make = getattr(rivals, name, None) or getattr(baselines, name)
    options = {"n_jobs": 1, "random_state": 0, "discrete_features": data.discrete}
    known = inspect.signature(make).parameters
    return make(n, **{key: value for key, value in options.items() if key in known}).fit(data.X, data.y).selected_


# --- relatives -------------------------------------------------------------------------------------------------------


def fast_select(name: str, data: Data, n: int, **options: Any) -> Array:
    """One of fast-select's."""
    import fast_select

    model = getattr(fast_select, name)(n_features_to_select=n, backend="cpu", n_jobs=1, **options)
    return best(model.fit(columns(data), data.y).feature_importances_, n)


def turf(data: Data, n: int) -> Array:
    """TuRF around fast-select's ReliefF; what is left at the end, by its last weights."""
    from fast_select import ReliefF, TuRF

    inner = ReliefF(n_features_to_select=n, n_neighbors=K, backend="cpu", n_jobs=1)
    model = TuRF(inner, n_features_to_select=n).fit(columns(data), data.y)
    return np.asarray(model.top_features_)[:n]


def rebate(data: Data, n: int) -> Array:
    """scikit-rebate's ReliefF."""
    from skrebate import ReliefF

    model = ReliefF(n_features_to_select=n, n_neighbors=K, n_jobs=1).fit(columns(data), data.y)
    return np.asarray(model.top_features_)[:n]


def mrmr_selection(data: Data, n: int) -> Array:
    """The mRMR of mrmr-selection, by F and correlation."""
    import pandas as pd
    from mrmr import mrmr_classif

    named = pd.DataFrame(columns(data), columns=[str(j) for j in range(data.X.shape[1])])
    return np.array(mrmr_classif(named, pd.Series(data.y), n, n_jobs=1, show_progress=False), int)


# --- one column at a time --------------------------------------------------------------------------------------------


def f_test(data: Data, n: int) -> Array:
    """The F statistic of each column."""
    from sklearn.feature_selection import f_classif

    return best(f_classif(columns(data), data.y)[0], n)


def information(data: Data, n: int) -> Array:
    """scikit-learn's mutual information of each column with the class."""
    from sklearn.feature_selection import mutual_info_classif

    return best(mutual_info_classif(columns(data), data.y, discrete_features=data.discrete, random_state=0), n)


# --- by a model ------------------------------------------------------------------------------------------------------


def l1(data: Data, n: int) -> Array:
    """Coefficients of a logistic regression with an L1 penalty, each class against the others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = OneVsRestClassifier(LogisticRegression(l1_ratio=1, solver="liblinear", random_state=0))
    fitted = model.fit(standard(data), data.y).estimators_
    return best(np.sum([np.abs(each.coef_[0]) for each in fitted], axis=0), n)


def forest(**options: Any) -> Any:
    """A random forest."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**{"n_estimators": TREES, "n_jobs": 1, "random_state": 0, **options})


def impurity(data: Data, n: int) -> Array:
    """The importance of the columns to a random forest."""
    return best(forest().fit(columns(data), data.y).feature_importances_, n)


def permutation(data: Data, n: int) -> Array:
    """What a small random forest loses on a quarter of the rows, which it has not seen, when a column is shuffled."""
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import train_test_split

    X, Z, y, z = train_test_split(columns(data), data.y, test_size=0.25, random_state=0)
    model = forest(n_estimators=TREES // 2).fit(X, y)
    lost = permutation_importance(model, Z, z, n_repeats=3, random_state=0, scoring="f1_macro")
    return best(lost.importances_mean, n)


def boruta(data: Data, n: int) -> Array:
    """Boruta: confirmed, then tentative, then by its ranks; within each by the mean importance."""
    from boruta import BorutaPy

    model = BorutaPy(forest(max_depth=5), n_estimators=TREES, max_iter=50, random_state=0)
    model.fit(columns(data), data.y)
    importance = np.nanmean(model.importance_history_[1:], axis=0)
    return np.lexsort((-np.nan_to_num(importance), model.ranking_))[:n]


def svm_rfe(data: Data, n: int) -> Array:
    """RFE with a linear SVM: a tenth of the columns at a time down to fifty, then one at a time."""
    from sklearn.feature_selection import RFE
    from sklearn.svm import LinearSVC

    X, left, svm = standard(data), np.arange(data.X.shape[1]), LinearSVC(random_state=0)
    if len(left) > SLOWEST:
        left = np.flatnonzero(RFE(svm, n_features_to_select=SLOWEST, step=0.1).fit(X, data.y).support_)
    order = RFE(svm, n_features_to_select=1, step=1).fit(X[:, left], data.y).ranking_
    return left[np.argsort(order, kind="stable")][:n]


# --- all -------------------------------------------------------------------------------------------------------------

BELIEF = "BELIEF"
RELIEF, COLUMN, MODEL = "Relief and mRMR", "one column at a time", "by a model"
SELECTORS: dict[str, Selector] = {  # the quick ones first
    BELIEF: Selector(by_belief, RELIEF, once=False),
    "BELIEF, as in the paper": Selector(by_paper, RELIEF, once=False),
    "BELIEF, no redundancy": Selector(partial(by_belief, redundancy=None), RELIEF, once=False),
    "F test": Selector(f_test, COLUMN, "sklearn"),
    "mutual information": Selector(information, COLUMN, "sklearn"),
    "ReliefF (fast-select)": Selector(partial(fast_select, "ReliefF", n_neighbors=K), RELIEF, "fast_select"),
    "MultiSURF (fast-select)": Selector(partial(fast_select, "MultiSURF"), RELIEF, "fast_select"),
    "mRMR (ours)": Selector(partial(by_baseline, "MRMR"), RELIEF),
    "mRMR (mrmr-selection)": Selector(mrmr_selection, RELIEF, "mrmr"),
    "L1 logistic regression": Selector(l1, MODEL, "sklearn"),
    "random forest": Selector(impurity, MODEL, "sklearn"),
    "SVM-RFE": Selector(svm_rfe, MODEL, "sklearn"),
    "RELIEF, K-means": Selector(partial(by_baseline, "KMeansRelief"), RELIEF, once=False),
    "RELIEF, Gram-Schmidt": Selector(partial(by_baseline, "GramSchmidtRelief"), RELIEF),
    "RELIEF, cleaned": Selector(partial(by_baseline, "CleanedRelief"), RELIEF),
    "SIMBA": Selector(partial(by_baseline, "Simba"), RELIEF),
    "TuRF (fast-select)": Selector(turf, RELIEF, "fast_select", once=False),
    "Boruta": Selector(boruta, MODEL, "boruta"),
    "permutation importance": Selector(permutation, MODEL, "sklearn"),
    "ReliefF (scikit-rebate)": Selector(rebate, RELIEF, "skrebate"),
}
SLOW = ("Boruta", "mRMR (mrmr-selection)", "TuRF (fast-select)", "permutation importance", "ReliefF (scikit-rebate)")


def installed() -> list[str]:
    """Those whose package is there."""
    return [name for name, it in SELECTORS.items() if find_spec(it.module)]
