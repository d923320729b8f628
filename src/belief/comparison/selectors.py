"""The selectors that are compared. Each is a function of a part of the table and the number of features to select.

scikit-learn's selectors get encoded columns (`Encoding`). The score of a nominal feature is the largest score of its
columns, or their sum for the importances of forests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from belief._utils.lazy import importing
from belief.api import select
from belief.baselines import MRMR, ReliefF, RReliefF
from belief.comparison.comparison import OURS
from belief.comparison.encoding import Encoding, code_missing
from belief.method.arrays import Array
from belief.method.settings import PAPER
from belief.method.targets import CLASSIFICATION, REGRESSION


@dataclass(frozen=True)
class Part:
    """Some rows and columns of a table in memory.

    X contains numbers and codes of levels, with NaN for missing values. y contains class indices or numbers.
    """

    X: Array
    y: Array
    discrete: Array
    task: str
    seed: int
    n_jobs: int | None

    def rows(self, ids: Array) -> Part:
        """Return a part with only these rows."""
        return replace(self, X=self.X[ids], y=self.y[ids])

    def columns(self, n: int) -> Part:
        """Return a part with only the first n features."""
        return replace(self, X=self.X[:, :n], discrete=self.discrete[:n])

    @property
    def nominal(self) -> Array:
        """The indices of the nominal features."""
        return np.flatnonzero(self.discrete)

    @property
    def target(self) -> Array:
        """The target: numbers, or classes as strings, so that no selector treats classes as numbers."""
        return self.y.astype(str) if self.task == CLASSIFICATION else self.y


Chooser = Callable[[Part, Any], Array]  # (part, number of features) -> selected features, the best first


@dataclass(frozen=True)
class Selector:
    """A selector, the tasks that it supports, and how its runtime grows with the numbers of rows and features."""

    choose: Chooser
    by_rows: float = 1.2
    by_features: float = 1.0
    tasks: tuple[str, ...] = (CLASSIFICATION, REGRESSION)

    def work(self, rows: int, features: int) -> float:
        """Return the amount of work for a table of this size, in arbitrary units."""
        return float(rows**self.by_rows * features**self.by_features)


def _belief(part: Part, n: int | str, **settings: Any) -> Array:
    found = select(
        part.X,
        part.target,
        n,
        task=part.task,
        discrete_features=part.nominal,
        random_state=part.seed,
        n_jobs=part.n_jobs,
        **settings,
    )
    return found.selected


def _baseline(kind: Any, part: Part, n: int, **settings: Any) -> Array:
    selector = kind(n, discrete_features=part.nominal, **settings)
    known = selector.get_params()
    given = {name: getattr(part, of) for name, of in (("random_state", "seed"), ("n_jobs", "n_jobs")) if name in known}
    return selector.set_params(**given).fit(part.X, part.target).selected_


def _f_test(part: Part, n: int) -> Array:
    with importing():
        from sklearn.feature_selection import f_classif, f_regression
    encoding = Encoding.of(part.X, part.discrete)
    test = f_classif if part.task == CLASSIFICATION else f_regression
    return top_features(encoding, test(encoding(part.X), part.y)[0], n)


def _information(part: Part, n: int) -> Array:
    with importing():
        from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
    encoding = Encoding.of(part.X, np.zeros_like(part.discrete))
    X = np.where(part.discrete, code_missing(part.X), encoding(part.X))  # nominal features remain codes
    measure = mutual_info_classif if part.task == CLASSIFICATION else mutual_info_regression
    found = measure(X, part.y, discrete_features=part.discrete, random_state=part.seed)
    return top_features(encoding, found, n)


def _forest(part: Part, n: int) -> Array:
    with importing():
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    encoding = Encoding.of(part.X, part.discrete)
    kind = RandomForestClassifier if part.task == CLASSIFICATION else RandomForestRegressor
    model = kind(100, max_features="sqrt", random_state=part.seed, n_jobs=part.n_jobs).fit(encoding(part.X), part.y)
    return top_features(encoding, model.feature_importances_, n, np.add)


def _sparse_model(part: Part, n: int) -> Array:
    """Return the n features with the largest coefficients of an L1 model.

    The penalty is the strongest of several with which at least n features have coefficients other than 0.
    """
    with importing():
        from sklearn.linear_model import Lasso
        from sklearn.svm import LinearSVC
    encoding = Encoding.of(part.X, part.discrete)
    X, score = encoding(part.X), np.zeros(0)
    for C in (0.01, 0.1, 1.0, 10.0):
        model = LinearSVC(C=C, penalty="l1", dual=False, random_state=part.seed, max_iter=300)
        if part.task == REGRESSION:
            model = Lasso(alpha=0.01 * float(np.std(part.y)) / C)
        score = np.abs(model.fit(X, part.y).coef_).reshape(-1, X.shape[1]).max(axis=0)
        if np.count_nonzero(merge_scores(encoding, score, np.maximum)) >= n:
            break
    return top_features(encoding, score, n)


def merge_scores(encoding: Encoding, scores: Array, merge: np.ufunc) -> Array:
    """Return the score of each feature: the scores of the columns that encode it, combined by `merge`.

    NaN, the score of constant columns, counts as -inf.
    """
    starts = np.flatnonzero(np.diff(encoding.feature, prepend=-1))
    return merge.reduceat(np.nan_to_num(scores, nan=-np.inf, posinf=np.inf), starts)


def top_features(encoding: Encoding, scores: Array, n: int, merge: np.ufunc = np.maximum) -> Array:
    """Return the n features with the largest scores; ties go to the smaller index.

    `scores` has one score per encoded column. `merge` combines the scores of the columns that encode one feature.
    """
    return np.argsort(-merge_scores(encoding, scores, merge), kind="stable")[:n]


SELECTORS = {
    OURS: Selector(_belief, 1.6),
    "BELIEF (paper)": Selector(partial(_belief, **PAPER), 1.6),
    "ReliefF": Selector(lambda part, n: _baseline(ReliefF if part.task == CLASSIFICATION else RReliefF, part, n), 2.0),
    "mRMR": Selector(partial(_baseline, MRMR), tasks=(CLASSIFICATION,)),
    "F test": Selector(_f_test),
    "mutual information": Selector(_information),
    "random forest": Selector(_forest, 1.2, 0.6),
    "L1 model": Selector(_sparse_model, 1.3, 1.2),
}
