"""RReliefF, for numeric targets, on the engines that BELIEF runs on."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import RegressorTags, Tags

from belief.baselines.base import Baseline, checks
from belief.baselines.relief import by_range
from belief.data.labels import read_numbers
from belief.data.table import Table, open_table
from belief.engines.block import table_engine
from belief.engines.checks import check_resources
from belief.engines.resources import Resources
from belief.method.algorithm import make_pairs
from belief.method.arrays import Array
from belief.method.protocols import Search
from belief.method.relevance import relevance, sort_by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.targets import Numeric


class RReliefF(Baseline):
    """Select features by RReliefF (Robnik-Šikonja and Kononenko 1997), for a numeric target.

    Of a row and one of its k nearest, τ = |Δy|/(max y - min y) says how far they are apart in the target. A feature's
    weight is its mean difference over such pairs weighted by τ, less that weighted by 1 - τ: P(differs | other target)
    less P(differs | same target). The neighbours of a row all count the same, those of the book less the farther they
    are; and they are taken by Euclidean distance, where the book adds differences up.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        How many features to select, or which share of them.
    n_neighbors : int, default=10
        k, the neighbours of a row.
    sample_size : int, float or "auto", default=1.0
        The rows that look for their neighbours, among all rows: a number, a share, or "auto" as in
        :class:`belief.BeliefSelector`.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, of which only "equal or not" counts. "auto": string, category and boolean columns.
    n_jobs : int, default=None
        Threads; -1: all cores, -2: all but one. None: the cores the process may use, or what a joblib context,
        OMP_NUM_THREADS or the share of a joblib worker allows. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sample and of ties.
    working_memory : int, default=1024
        MiB that may be used beside the data.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        W of each feature, from -1 to 1.
    selected_ : ndarray of int
        The selected features, the largest weight first.
    selection_scores_ : ndarray
        Their weights.
    n_features_ : int
        The number of selected features.
    support_ : ndarray of bool of shape (n_features,)
        Which features were selected.
    ranking_ : ndarray of int of shape (n_features,)
        1 for every selected feature, then 2, 3, ... by falling score, as in `RFE`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had column names, all of them strings.

    Notes
    -----
    scikit-rebate's ReliefF of a continuous target is another method: a neighbour within one standard deviation of the
    target is a hit, any other a miss, and as many are taken of either. The two agree where the target has two values
    and the nearest rows of each are as many of either. Missing values are treated as in BELIEF.

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
        """Find the features.

        Parameters
        ----------
        X : array, memory map, DataFrame or sparse matrix of shape (n_rows, n_features), or a list of those as blocks
        y : array of shape (n_rows,)
            The number to predict of each row.

        Returns
        -------
        self
        """
        check_resources(self.n_jobs, self.working_memory, 0)
        settings = Settings(
            n_features_to_select=self.n_features_to_select, n_neighbors=self.n_neighbors,
            sample_size=self.sample_size, random_state=self.random_state, redundancy=None,
        )  # fmt: skip
        table = open_table(X, self.discrete_features)
        W, constant = self._weights(table, read_numbers(y, table.source.n_rows), settings)
        n = settings.resolve_n_features(len(W))
        best = sort_by_weight(W, np.flatnonzero(~constant))[:n]
        self._rank(X, y, W, Selection(best, W[best]), constant, n)
        return self

    def _weights(self, table: Table, y: Array, settings: Settings) -> tuple[Array, Array]:
        """W, and which features are constant: pairs are far to the degree |Δy| as a share of the range."""
        target = Numeric(len(y), np.zeros(0))
        resources = Resources(self.n_jobs, self.working_memory * 2**20)
        with table_engine(table.source, target, (y - y.min()) / np.ptp(y), table.discrete, resources) as engine:
            summary = engine.describe()
            checks(settings, table.names)(summary, target)
            difference, seed = by_range(summary, engine.discrete), settings.draw_seed()
            sample = engine.sample(np.array([settings.resolve_sample_size(summary.m)]), seed)
            k = min(settings.resolve_n_neighbors(summary.m), max(summary.m - 1, 1))
            found = engine.nearest(sample, difference, Search(k, 1, seed))
            pairs = make_pairs(sample, found, slice(None), target)
            tally = next(engine.tally([pairs], difference, None))
        return relevance(tally, np.ones(1)), difference.constant

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags = RegressorTags()
        return tags
