"""The selectors that experiments/contest.py compares: functions of a table and a number n that return n columns.

All use one thread, a fixed seed and, except where this file sets something else, the settings that their documentation
proposes. The nominal columns are passed to selectors that support them; for the others, their codes are numbers.
Missing values are replaced by medians, except for BELIEF and our baselines. Linear models get standardised columns.
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

K = 10  # neighbours of ReliefF and TuRF
TREES = 100
SLOWEST = 50  # RFE removes a tenth of the columns per step down to this number, and then one column per step

Select = Callable[[Data, int], Array]


class Selector(NamedTuple):
    """The function of a selector, its kind, the module that it needs, and whether a single ranking suffices.

    With `once`, the columns are returned best first, and the first n columns are also the selection of size n.
    """

    select: Select
    kind: str
    module: str = "belief"
    once: bool = True


def best(weights: Array, n: int) -> Array:
    """Return the indices of the n largest weights in descending order; NaN comes last."""
    return np.argsort(-np.nan_to_num(weights, nan=-np.inf), kind="stable")[:n]


def standard(data: Data) -> Array:
    """Return the columns, scaled to mean 0 and variance 1, with missing values imputed."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(columns(data))


# --- BELIEF and our baselines ----------------------------------------------------------------------------------------


def by_belief(data: Data, n: int, **settings: Any) -> Array:
    """Select with BELIEF, using the defaults except for the settings that are passed."""
    options = {"discrete_features": data.discrete, "random_state": 0, "n_jobs": 1, **settings}
    return belief.select(data.X, data.y, n, **options).selected


def by_paper(data: Data, n: int) -> Array:
    """Select with BELIEF, using the settings of the paper."""
    return by_belief(data, n, **paper(data.X, data.discrete))


def by_baseline(name: str, data: Data, n: int) -> Array:
    """Select with the class of this name in `rivals` or `belief.baselines`."""
    make = getattr(rivals, name, None) or getattr(baselines, name)
    options = {"n_jobs": 1, "random_state": 0, "discrete_features": data.discrete}
    known = inspect.signature(make).parameters
    return make(n, **{key: value for key, value in options.items() if key in known}).fit(data.X, data.y).selected_


# --- Relief and mRMR of other packages -------------------------------------------------------------------------------


def fast_select(name: str, data: Data, n: int, **options: Any) -> Array:
    """Select with the class of this name in fast-select."""
    import fast_select

    model = getattr(fast_select, name)(n_features_to_select=n, backend="cpu", n_jobs=1, **options)
    return best(model.fit(columns(data), data.y).feature_importances_, n)


def turf(data: Data, n: int) -> Array:
    """Select with TuRF of fast-select: it computes ReliefF weights and removes the lowest, until n columns remain."""
    from fast_select import ReliefF, TuRF

    inner = ReliefF(n_features_to_select=n, n_neighbors=K, backend="cpu", n_jobs=1)
    model = TuRF(inner, n_features_to_select=n).fit(columns(data), data.y)
    return np.asarray(model.top_features_)[:n]


def rebate(data: Data, n: int) -> Array:
    """Select with ReliefF of scikit-rebate."""
    from skrebate import ReliefF

    model = ReliefF(n_features_to_select=n, n_neighbors=K, n_jobs=1).fit(columns(data), data.y)
    return np.asarray(model.top_features_)[:n]


def mrmr_selection(data: Data, n: int) -> Array:
    """Select with mRMR of mrmr-selection, which uses the F statistic and correlations."""
    import pandas as pd
    from mrmr import mrmr_classif

    named = pd.DataFrame(columns(data), columns=[str(j) for j in range(data.X.shape[1])])
    return np.array(mrmr_classif(named, pd.Series(data.y), n, n_jobs=1, show_progress=False), int)


# --- one column at a time --------------------------------------------------------------------------------------------


def f_test(data: Data, n: int) -> Array:
    """Select the columns with the largest F statistics."""
    from sklearn.feature_selection import f_classif

    return best(f_classif(columns(data), data.y)[0], n)


def information(data: Data, n: int) -> Array:
    """Select the columns with the largest mutual information with the class, as estimated by scikit-learn."""
    from sklearn.feature_selection import mutual_info_classif

    return best(mutual_info_classif(columns(data), data.y, discrete_features=data.discrete, random_state=0), n)


# --- by a model ------------------------------------------------------------------------------------------------------


def l1(data: Data, n: int) -> Array:
    """Select by the coefficients of logistic regressions with an L1 penalty, one for each class against the rest."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = OneVsRestClassifier(LogisticRegression(l1_ratio=1, solver="liblinear", random_state=0))
    fitted = model.fit(standard(data), data.y).estimators_
    return best(np.sum([np.abs(each.coef_[0]) for each in fitted], axis=0), n)


def forest(**options: Any) -> Any:
    """Return an unfitted random forest; `options` replace its default settings."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**{"n_estimators": TREES, "n_jobs": 1, "random_state": 0, **options})


def impurity(data: Data, n: int) -> Array:
    """Select by the impurity-based importances of a random forest."""
    return best(forest().fit(columns(data), data.y).feature_importances_, n)


def permutation(data: Data, n: int) -> Array:
    """Select by permutation importance: the macro F1 that a small random forest loses if a column is shuffled.

    The forest learns from three quarters of the rows, and the loss is measured on the others.
    """
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import train_test_split

    X, Z, y, z = train_test_split(columns(data), data.y, test_size=0.25, random_state=0)
    model = forest(n_estimators=TREES // 2).fit(X, y)
    lost = permutation_importance(model, Z, z, n_repeats=3, random_state=0, scoring="f1_macro")
    return best(lost.importances_mean, n)


def boruta(data: Data, n: int) -> Array:
    """Select with Boruta: confirmed, then tentative columns, then the others by rank; ties by mean importance."""
    from boruta import BorutaPy

    model = BorutaPy(forest(max_depth=5), n_estimators=TREES, max_iter=50, random_state=0)
    model.fit(columns(data), data.y)
    importance = np.nanmean(model.importance_history_[1:], axis=0)
    return np.lexsort((-np.nan_to_num(importance), model.ranking_))[:n]


def svm_rfe(data: Data, n: int) -> Array:
    """Select by recursive feature elimination (RFE) with a linear SVM, in large steps first (see SLOWEST)."""
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
SELECTORS: dict[str, Selector] = {  # fast selectors first
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
    """Return the names of the selectors whose package is installed."""
    return [name for name, it in SELECTORS.items() if find_spec(it.module)]
