"""mRMR: relevance minus redundancy, both measured as mutual information of discretised columns.

    columns ─► codes ─► relevance I(X_j; class) ─► select the most relevant feature X_s
    repeat: redundancy I(X_s; X_j) ─► scores ─► select the feature with the largest score as X_s

`mrmr` does not read the data: it calls a function that returns the redundancy of one feature with all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from belief._utils.validation import is_count, one_of
from belief.baselines.base import Baseline, make_data_check, require_dense
from belief.data.labels import read_labels
from belief.data.table import open_table
from belief.engines.block.dense import DenseEngine
from belief.engines.block.threads import spans
from belief.engines.checks import check_resources
from belief.engines.resources import Resources
from belief.kernels.compiling import kernel
from belief.method.arrays import Array
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION, make_class_target

CHUNK = 64  # columns that are read or measured at once
MAX_TABLE_CELLS = 2**16  # for larger contingency tables, the rows are sorted and counted


def mrmr(relevance: Array, redundancy_of: Callable[[int], Array], n: int, form: str = "difference") -> Selection:
    """Select n features by minimal redundancy and maximal relevance (Peng, Long and Ding 2005).

    The first feature is the most relevant one. Then, the feature with the largest score is selected, again and again.
    The score is the relevance minus ("difference", MID) or divided by ("quotient", MIQ) the mean redundancy with the
    features selected so far. Scores are compared to ten decimals. A tie goes to the more relevant feature, then to the
    smaller index.

    Parameters
    ----------
    relevance : array of shape (n_features,)
        The mutual information I(X_j; class). Features with -inf are never selected.
    redundancy_of : callable
        Called with the index of each selected feature except the last. Returns the mutual information of this feature
        with every feature.
    n : int
        The number of features to select.
    form : {"difference", "quotient"}, default="difference"
        How to combine relevance and redundancy. Relevance divided by a redundancy of 0 is infinite, or 0 if the
        relevance is 0, too.

    Returns
    -------
    Selection
        The features in order of selection, and the score of each when it was selected.

    Examples
    --------
    >>> import belief, numpy as np
    >>> relevance = np.array([0.9, 0.8, 0.3])
    >>> repeated = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> found = belief.baselines.mrmr(relevance, lambda j: repeated[j], 2)
    >>> found.selected, found.scores
    (array([0, 2]), array([0.9, 0.3]))
    """
    left = np.isfinite(relevance)
    total = np.zeros(len(relevance))
    selected: list[int] = []
    scores: list[float] = []
    for _ in range(min(n, int(left.sum()))):
        if selected:
            total += redundancy_of(selected[-1])
        score, features = relevance, np.flatnonzero(left)
        if selected and form == "difference":
            score = relevance - total / len(selected)
        elif selected:
            unknown, redundancy = np.where(relevance > 0, np.inf, 0.0), total / len(selected)
            score = np.divide(relevance, redundancy, out=unknown, where=redundancy > 0)
        rounded = np.round(score[features], 10)
        ties = features[rounded == rounded.max()]
        best = int(ties[np.argmax(np.round(relevance[ties], 10))])
        selected.append(best)
        scores.append(float(score[best]))
        left[best] = False
    return Selection(np.array(selected, np.int64), np.array(scores))


class MRMR(Baseline):
    """Select features by mRMR (Peng, Long and Ding 2005), exactly.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        The number or share of features to select.
    form : {"difference", "quotient"}, default="difference"
        Relevance minus redundancy (MID), or divided by it (MIQ).
    bins : int or None, default=10
        The number of bins of a continuous feature. Features with fewer distinct values are not binned: each value is a
        level. None: no feature is binned, for columns that are codes already.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal frequency, or of equal width.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, which are not binned. "auto": string, category and boolean columns.
    n_jobs : int, default=None
        The number of threads; -1: all cores, -2: all but one. None uses the available cores, and respects joblib
        contexts and OMP_NUM_THREADS. The result does not depend on it.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The relevance of each feature: its mutual information with the class, in nats.
    selected_ : ndarray of int
        The indices of the selected features, in order of selection.
    selection_scores_ : ndarray
        The score of each selected feature: its relevance minus, or divided by, its mean redundancy with the features
        selected before it. The score of the first feature is its relevance.
    n_features_ : int
        The number of selected features.
    support_ : ndarray of bool of shape (n_features,)
        The mask of the selected features.
    ranking_ : ndarray of int of shape (n_features,)
        1 for every selected feature, then 2, 3, ... by falling relevance, as in `RFE`.
    classes_ : ndarray
        The sorted classes.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of str
        The column names of X. The attribute exists only if X has column names and all of them are strings.

    Notes
    -----
    Missing values form a separate level. Constant features are selected last. The codes of all columns are kept in
    memory: one byte per cell, or four if a feature has more than 256 levels. Sparse matrices are not supported.

    References
    ----------
    H. Peng, F. Long, C. Ding, *Feature selection based on mutual information: criteria of max-dependency,
    max-relevance, and min-redundancy*, IEEE TPAMI 27 (2005).

    Examples
    --------
    >>> from belief.baselines import MRMR
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = MRMR(2, bins=5).fit(X, y)
    >>> X.columns[selector.selected_].tolist()
    ['petal width (cm)', 'petal length (cm)']
    """

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        form: str = "difference",
        bins: int | None = 10,
        strategy: str = "quantile",
        discrete_features: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.form = form
        self.bins = bins
        self.strategy = strategy
        self.discrete_features = discrete_features
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features.

        Parameters
        ----------
        X : array, memory map or DataFrame of shape (n_rows, n_features), or a list of such blocks
        y : array of shape (n_rows,)
            The class of each row.

        Returns
        -------
        self
        """
        settings = validate_settings(self)
        table = open_table(X, self.discrete_features)
        source = require_dense(table, "MRMR")
        self.classes_, labels = read_labels(y, source.n_rows, CLASSIFICATION).encode_classes()
        resources = Resources(self.n_jobs)
        with DenseEngine(source, labels, table.discrete, resources) as engine:
            make_data_check(settings, table.names)(engine.describe(), make_class_target(self.classes_, labels))
            columns = _Codes(engine, self.bins, self.strategy)
            relevance = columns.information_with(labels, len(self.classes_))
            constant = columns.levels < 2
            n = settings.resolve_n_features(len(relevance))
            eligible = np.where(constant, -np.inf, relevance)
            found = mrmr(eligible, columns.redundancy_of, n, self.form)
        self._rank(X, y, relevance, found, constant, n)
        return self


def validate_settings(selector: MRMR) -> Settings:
    """Validate the parameters of MRMR; return those that are settings of BELIEF, too."""
    if not one_of("difference", "quotient")(selector.form):
        raise ValueError(f"form must be 'difference' or 'quotient'; got {selector.form!r}.")
    if not one_of("quantile", "uniform")(selector.strategy):
        raise ValueError(f"strategy must be 'quantile' or 'uniform'; got {selector.strategy!r}.")
    if not (selector.bins is None or (is_count(selector.bins) and selector.bins > 1)):
        raise ValueError(f"bins must be None or an integer of at least 2; got {selector.bins!r}.")
    check_resources(selector.n_jobs, 16, 0)
    return Settings(n_features_to_select=selector.n_features_to_select, redundancy=None)


class _Codes:
    """The columns of a table as codes. The code of a value is the index of its level or bin."""

    def __init__(self, engine: DenseEngine, bins: int | None, strategy: str) -> None:
        self.engine = engine
        rows = np.arange(engine.m)

        def read(span: tuple[int, int]) -> list[Array]:
            X, at, a = engine.source.rows(rows, *span)
            columns = X[at, a : a + span[1] - span[0]].T
            discrete = engine.discrete[slice(*span)]
            return [encode_levels(x, None if d else bins, strategy) for x, d in zip(columns, discrete, strict=True)]

        parts = [code for part in engine.map(read, spans(engine.n_features, CHUNK)) for code in part]
        self.levels = np.array([int(x.max()) + 1 for x in parts])
        self.codes = np.array(parts, np.uint8 if self.levels.max() <= 256 else np.int32)

    def information_with(self, target: Array, n_target: int) -> Array:
        """Return the mutual information of every column with `target`, a column of codes."""
        out = np.empty(len(self.codes))

        def measure(span: tuple[int, int]) -> None:
            mine = slice(*span)
            information(self.codes[mine], self.levels[mine], target, n_target, out[mine])

        list(self.engine.map(measure, spans(len(out), CHUNK)))
        return out

    def redundancy_of(self, j: int) -> Array:
        """Return the mutual information of every column with column j."""
        return self.information_with(self.codes[j], int(self.levels[j]))


def encode_levels(x: Array, bins: int | None, strategy: str = "quantile") -> Array:
    """Return the level of each value of a column as an index; missing values have the last level.

    A column with more than `bins` distinct values is binned, unless this is None. Bins have equal frequency, with equal
    values in the same bin, or equal width ("uniform").
    """
    missing = np.isnan(x)
    ordered = np.sort(x)[: len(x) - missing.sum()]  # NaN is sorted last
    values = ordered[np.r_[True, ordered[1:] != ordered[:-1]]] if len(ordered) else ordered
    if bins is None or len(values) <= bins:
        upto = values
    elif strategy == "quantile":
        upto = ordered[-(-np.arange(1, bins) * len(ordered) // bins) - 1]
    else:
        upto = np.linspace(values[0], values[-1], bins + 1)[1:-1]
    codes = np.searchsorted(upto, x)  # a value on an edge belongs to the bin below it
    codes[missing] += 1
    used = np.bincount(codes) > 0
    level = np.cumsum(used) - 1
    return level.astype(np.uint8 if level[-1] < 256 else np.int32)[codes]


@kernel()
def information(codes: Array, levels: Array, target: Array, n_target: int, out: Array) -> None:
    """Compute the mutual information of each feature with the target, in nats, and write it to `out`.

    I(X; Y) = H(X) + H(Y) - H(X, Y), with the entropies H = log m - Σ n·log n / m, where n are the counts of the levels
    in m rows.

    Parameters
    ----------
    codes : array of shape (features, rows): the level of each value, from 0
    levels : the number of levels of each feature
    target : the level of the target in each row
    n_target : the number of levels of the target
    """
    m = len(target)
    nlogn = np.zeros(m + 1)
    for n in range(2, m + 1):
        nlogn[n] = n * np.log(n)
    of_target = np.zeros(n_target, np.int64)
    for r in range(m):
        of_target[target[r]] += 1
    total_target = nlogn[of_target].sum()
    for j in range(len(codes)):
        size = levels[j] * n_target
        total, joint = 0.0, 0.0
        if size <= max(MAX_TABLE_CELLS, m):
            table = np.zeros((levels[j], n_target), np.int64)
            for r in range(m):
                table[codes[j, r], target[r]] += 1
            for v in range(levels[j]):
                total += nlogn[table[v].sum()]
                for t in range(n_target):
                    joint += nlogn[table[v, t]]
        else:
            cells = np.empty(m, np.int64)
            for r in range(m):
                cells[r] = np.int64(codes[j, r]) * n_target + target[r]
            cells.sort()
            joint = _runs(cells, nlogn)
            total = _runs(cells // n_target, nlogn)
        out[j] = max(0.0, np.log(m) + (joint - total - total_target) / m)


@kernel()
def _runs(values: Array, nlogn: Array) -> float:
    """Return Σ n·log n over the runs of equal values, where n is the length of a run."""
    total, start = 0.0, 0
    for r in range(1, len(values) + 1):
        if r == len(values) or values[r] != values[start]:
            total += nlogn[r - start]
            start = r
    return total
