"""RReliefF, for numeric targets, on the engines of BELIEF."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import RegressorTags, Tags

from belief.baselines.base import Baseline, make_data_check
from belief.baselines.relief import range_difference
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

    τ = |Δy|/(max y - min y) is the difference in the target between a row and one of its k nearest neighbours. A
    feature's weight is its mean difference weighted by τ minus its mean difference weighted by 1 - τ: P(differs | other
    target) - P(differs | same target). All neighbours have the same influence, while in the original it decreases with
    the distance; and the distance is Euclidean, while the original uses Manhattan.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        The number or share of features to select.
    n_neighbors : int, default=10
        The number of neighbours of a row, k.
    sample_size : int, float or "auto", default=1.0
        The number or share of rows whose neighbours are searched among all rows, or "auto" as in
        :class:`belief.BeliefSelector`.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, whose values are compared for equality. "auto": string, category and boolean columns.
    n_jobs : int, default=None
        Threads; -1: all cores, -2: all but one. None: the cores the process may use, or what a joblib context,
        OMP_NUM_THREADS or the share of a joblib worker allows. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        The seed for the sample and for ties.
    working_memory : int, default=1024
        The memory limit in MiB, without the data.

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
    scikit-rebate's ReliefF for continuous targets is a different method: neighbours within one standard deviation of
    the target are hits, the others misses, and equally many of both are used. Missing values are treated as in BELIEF.

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
        """Select the features.

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
        """Return W, and which features are constant."""
        target = Numeric(len(y), np.zeros(0))
        resources = Resources(self.n_jobs, self.working_memory * 2**20)
        with table_engine(table.source, target, (y - y.min()) / np.ptp(y), table.discrete, resources) as engine:
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
        tags.input_tags.sparse = True
        tags.regressor_tags = RegressorTags()
        return tags
