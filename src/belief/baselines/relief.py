"""The selectors Relief, ReliefF and RReliefF, computed by the engines of BELIEF.

    describe ─► sample ─► k nearest rows of each class ─► tally by the classes of both rows ─► W

All use the difference diff(A, a, b) = |a - b|/(max - min) for continuous features, a difference of 0 or 1 for discrete
features, and the Euclidean distance √Σdiff², as Kira and Rendell do. Kononenko and scikit-rebate use the Manhattan
distance; both distances give the same order of neighbours if every difference is 0 or 1. Relief sums diff², ReliefF
sums diff.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags, Tags

from belief.baselines.base import Baseline, make_data_check
from belief.data.labels import read_labels
from belief.data.table import Table, open_table
from belief.engines.block import local_engine, table_engine
from belief.engines.block.threads import spans
from belief.engines.checks import check_resources
from belief.engines.resources import Resources
from belief.method.algorithm import make_pairs, make_search
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.protocols import Engine, Search
from belief.method.relevance import mean, relevance, sort_by_weight, subtract_hits
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import CLASSIFICATION, REGRESSION, Classes, Numeric, Target

MAX_PAIR_BYTES = 2**27  # memory for the differences of pairs, which are squared before they are summed


@dataclass(frozen=True)
class BothClasses(Classes):
    """A target of classes. Pairs are summed separately for each class of the query and each class of the neighbour."""

    coupled = False

    @property
    def n_kinds(self) -> int:
        return len(self.counts) ** 2

    def assign_kinds(self, query: Array, neighbour: Array) -> tuple[Array, None]:
        return (len(self.counts) * query + neighbour).astype(np.int64), None


def range_difference(summary: Summary, discrete: Array, width: Array | None = None) -> Difference:
    """Define the difference of two values of a feature: |a - b| divided by the feature's range, or by `width`.

    Values of a discrete feature have the difference 0 if they are equal, and 1 otherwise.
    """
    plain = Difference.from_summary(summary, discrete, "none")
    width = summary.maximum - summary.minimum if width is None else width
    unit = np.where(discrete | plain.constant, 1.0, width)
    spread = np.where(discrete, plain.spread, plain.spread / unit**2)
    return replace(plain, scale="range", unit=unit, spread=spread)


def compute_relieff(
    engine: Engine,
    settings: Settings,
    check: Callable[[Summary, Target], None] = lambda summary, target: None,
    squared: bool = False,
    width: Array | None = None,
) -> tuple[Array, Array]:
    """Return the weights of ReliefF, and the mask of the constant features.

    The weight of a feature is
    Σ_q (Σ_{c ≠ class(q)} P(c)/(1 - P(class(q))) · mean diff to its misses of c - mean diff to its hits) / s,
    summed over the s sampled rows q, where P(c) is the share of class c, and diff is the difference of two rows in the
    feature. With one neighbour, two classes, and diff² instead of diff, these are the weights of Relief.

    Parameters
    ----------
    check : called with the summary of the data and the target, to validate them
    squared : use diff² instead of diff
    width : what the differences of each feature are divided by; None: the range of the feature
    """
    summary = engine.describe()
    check(summary, engine.target)
    difference = range_difference(summary, engine.discrete, width)
    target = BothClasses(engine.target.names, engine.target.counts)
    seed = settings.draw_seed()
    sample = engine.sample(np.array([settings.resolve_sample_size(summary.m)]), seed)
    found = engine.nearest(sample, difference, make_search(settings, target, summary.m, seed))
    pairs = make_pairs(sample, found, slice(None), target)
    engine.prefetch([pairs])
    total, count = (squares if squared else sums)(engine, pairs, difference)
    n, P = len(target.counts), target.P
    queries = np.bincount(sample.target, minlength=n) / len(sample.row)
    share = queries[:, None] * P / (1.0 - P[:, None])  # the weight of the mean diff between each two classes
    diff = mean(total, count).reshape(n, n, -1)
    hit = np.eye(n, dtype=bool)
    return subtract_hits(share[~hit] @ diff[~hit], queries @ diff[hit]), difference.constant


def sums(engine: Engine, pairs: Pairs, difference: Difference) -> tuple[Array, Array]:
    """Return Σ diff over the pairs of each kind (class of the query, class of the neighbour), and their number."""
    tally = next(engine.tally([pairs], difference, None))
    return tally.total, tally.count


def squares(engine: Engine, pairs: Pairs, difference: Difference) -> tuple[Array, Array]:
    """Return Σ diff² over the pairs of each kind (class of the query, class of the neighbour), and their number.

    The engine returns sums of diff, so each pair is passed to it as a separate kind, and the sums are squared.
    """
    total = np.zeros((pairs.n_kinds, engine.n_features))
    count = np.zeros((pairs.n_kinds, engine.n_features))
    for a, b in spans(len(pairs), max(1, MAX_PAIR_BYTES // (8 * engine.n_features))):
        few = pairs.take(slice(a, b))
        each = next(engine.tally([replace(few, kind=np.arange(b - a), n_kinds=b - a)], difference, None))
        np.add.at(total, few.kind, each.total**2)
        np.add.at(count, few.kind, each.count)
    return total, count


class _Neighbourhood(Baseline):
    """Base class of Relief, ReliefF and RReliefF."""

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        n_neighbors: int = 10,
        sample_size: int | float | str = 1.0,
        discrete_features: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: int = 1024,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.sample_size = sample_size
        self.discrete_features = discrete_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.working_memory = working_memory

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features.

        Parameters
        ----------
        X : array, memory map, DataFrame or sparse matrix of shape (n_rows, n_features), or a list of such blocks
        y : array of shape (n_rows,)
            The target.

        Returns
        -------
        self
        """
        check_resources(self.n_jobs, self.working_memory, 0)
        settings = Settings(
            n_features_to_select=self.n_features_to_select,
            n_neighbors=self.n_neighbors,
            sample_size=self.sample_size,
            random_state=self.random_state,
            redundancy=None,
        )
        table = open_table(X, self.discrete_features)
        targets = self._read_targets(y, table.source.n_rows)
        W, constant = self._weights(table, targets, settings)
        found = self._choose(table, targets, settings, W, constant)
        self._rank(X, y, W, found, constant, settings.resolve_n_features(len(W)))
        return self

    def _read_targets(self, y: Any, n_rows: int) -> Array:
        """Return the target of each row as a number. For classes, also set `classes_`."""
        raise NotImplementedError

    def _weights(self, table: Table, targets: Array, settings: Settings) -> tuple[Array, Array]:
        """Return the weights of all features, and the mask of the constant features."""
        raise NotImplementedError

    def _choose(self, table: Table, targets: Array, settings: Settings, W: Array, constant: Array) -> Selection:
        best = sort_by_weight(W, np.flatnonzero(~constant))[: settings.resolve_n_features(len(W))]
        return Selection(best, W[best])

    @property
    def _resources(self) -> Resources:
        return Resources(self.n_jobs, self.working_memory * 2**20)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ReliefF(_Neighbourhood):
    """Select features by ReliefF (Kononenko 1994).

    For each sampled row, a feature's weight decreases by the mean difference between the row and its k nearest hits,
    and increases by the mean difference between the row and its k nearest misses of each other class c, weighted by
    P(c)/(1 - P(class of the row)). Neighbours are searched by Euclidean distance; Kononenko uses the Manhattan
    distance, which gives the same neighbours if all features are discrete.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        The number or share of features to select.
    n_neighbors : int, default=10
        The number k of neighbours of each class.
    sample_size : int, float or "auto", default=1.0
        The number or share of sampled rows, or "auto" as in :class:`belief.BeliefSelector`. The neighbours of the
        sampled rows are searched among all rows. With a small fixed number, such as 100, the method is the same as
        DiReliefF (Palma-Mendoza, Rodriguez and de-Marcos 2018).
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, whose values are only compared for equality. "auto": string, category and boolean columns.
    n_jobs : int, default=None
        The number of threads; -1: all cores, -2: all but one. None uses the available cores, and respects joblib
        contexts and OMP_NUM_THREADS. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sample and of tie breaking.
    working_memory : int, default=1024
        The memory in MiB that may be used in addition to the data.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The weight W of each feature, from -1 to 1.
    selected_ : ndarray of int
        The indices of the selected features, by falling weight.
    selection_scores_ : ndarray
        The weights of the selected features, in the same order.
    n_features_ : int
        The number of selected features.
    support_ : ndarray of bool of shape (n_features,)
        The mask of the selected features.
    ranking_ : ndarray of int of shape (n_features,)
        1 for every selected feature, then 2, 3, ... by falling weight, as in `RFE`.
    classes_ : ndarray
        The sorted classes.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of str
        The column names of X. The attribute exists only if X has column names and all of them are strings.

    Notes
    -----
    As in BELIEF, a missing value contributes its expected difference to distances, and pairs with a missing value of a
    feature are excluded from the means of this feature.

    References
    ----------
    I. Kononenko, *Estimating attributes: analysis and extensions of RELIEF*, ECML 1994.
    R. J. Palma-Mendoza, D. Rodriguez, L. de-Marcos, *Distributed ReliefF-based feature selection in Spark*, Knowledge
    and Information Systems 57 (2018).

    Examples
    --------
    >>> from belief.baselines import ReliefF
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = ReliefF(2, random_state=0).fit(X, y)
    >>> list(selector.get_feature_names_out())
    ['petal length (cm)', 'petal width (cm)']
    """

    _squared = False  # sum diff² instead of diff

    def _read_targets(self, y: Any, n_rows: int) -> Array:
        self.classes_, labels = read_labels(y, n_rows, CLASSIFICATION).encode_classes()
        return labels

    def _weights(self, table: Table, targets: Array, settings: Settings) -> tuple[Array, Array]:
        with local_engine(table.source, self.classes_, targets, table.discrete, self._resources) as engine:
            return compute_relieff(engine, settings, make_data_check(settings, table.names), self._squared)


class Relief(ReliefF):
    """Select features by Relief (Kira and Rendell 1992), for two classes.

    For each of s sampled rows, a feature's weight decreases by diff²/s to the nearest hit and increases by diff²/s to
    the nearest miss. Neighbours are searched by Euclidean distance. Kononenko (1994) defines Relief with diff instead
    of diff²; use :class:`ReliefF` with one neighbour for that. For discrete features, both definitions give the same
    weights.

    The parameters, except `n_neighbors`, and the attributes are the same as in :class:`ReliefF`. `sample_size` is s,
    which Kira and Rendell call m.

    References
    ----------
    K. Kira, L. A. Rendell, *A practical approach to feature selection*, ML 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from belief.baselines import Relief
    >>> X = np.array([[0, 5], [1, 5.5], [6, 5.2], [10, 5.6]])
    >>> Relief(1).fit(X, ["a", "a", "b", "b"]).scores_.round(2)
    array([ 0.36, -0.44])
    """

    _squared = True
    n_neighbors = 1  # not a parameter

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        sample_size: int | float | str = 1.0,
        discrete_features: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: int = 1024,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.sample_size = sample_size
        self.discrete_features = discrete_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.working_memory = working_memory

    def _read_targets(self, y: Any, n_rows: int) -> Array:
        labels = super()._read_targets(y, n_rows)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported: Relief is for two classes, and y has {len(self.classes_)}"
                " classes. Use ReliefF."
            )
        return labels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class RReliefF(_Neighbourhood):
    """Select features by RReliefF (Robnik-Šikonja and Kononenko 1997), for a numeric target.

    Let τ = |Δy|/(max y - min y) be the difference in the target between a row and one of its k nearest neighbours. A
    feature's weight is its mean difference weighted by τ, minus its mean difference weighted by 1 - τ. It estimates
    P(feature differs | target differs) - P(feature differs | target is the same). In contrast to the original method,
    all neighbours have the same influence, instead of less with growing distance, and the distance is Euclidean instead
    of Manhattan.

    The parameters and attributes are the same as in :class:`ReliefF`, but there is no `classes_`, and `n_neighbors` is
    the total number of neighbours of a row.

    Notes
    -----
    scikit-rebate's ReliefF for continuous targets is a different method: neighbours whose target differs by less than
    one standard deviation are hits, the others are misses, and it uses equally many hits and misses. Missing values are
    treated as in :class:`ReliefF`.

    References
    ----------
    M. Robnik-Šikonja, I. Kononenko, *An adaptation of Relief for attribute estimation in regression*, ICML 1997.

    Examples
    --------
    >>> from belief.baselines import RReliefF
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> sorted(RReliefF(2, n_neighbors=50).fit(X, y).get_feature_names_out())
    ['bmi', 's5']
    """

    def _read_targets(self, y: Any, n_rows: int) -> Array:
        return read_labels(y, n_rows, REGRESSION).to_numbers()

    def _weights(self, table: Table, targets: Array, settings: Settings) -> tuple[Array, Array]:
        y = targets - targets.min()
        target = Numeric(len(y), np.zeros(0))
        with table_engine(table.source, target, y / np.ptp(y), table.discrete, self._resources) as engine:
            summary = engine.describe()
            make_data_check(settings, table.names)(summary, target)
            difference, seed = range_difference(summary, engine.discrete), settings.draw_seed()
            sample = engine.sample(np.array([settings.resolve_sample_size(summary.m)]), seed)
            k = min(settings.resolve_n_neighbors(summary.m), max(summary.m - 1, 1))
            found = engine.nearest(sample, difference, Search(k, 1, seed))
            pairs = make_pairs(sample, found, slice(None), target)
            tally = next(engine.tally([pairs], difference, None))
        return relevance(tally, np.ones(1)), difference.constant

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags = RegressorTags()
        return tags
