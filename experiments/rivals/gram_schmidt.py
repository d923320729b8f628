"""ReliefF, each time of what the features selected before leave of the others.

weights ─► the largest ─► its projection is taken off all others ─► weights again ─► ...

An exact copy of a selected feature has nothing left, and so no weight.
"""

from __future__ import annotations

import numpy as np

from belief.baselines.relief import compute_relieff
from belief.data.source import ArraySource
from belief.data.table import Table
from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.relevance import sort_by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from rivals.base import DenseReliefF, centred

NOTHING = 1e-9  # of a column's length; what is left of it then is rounding


class GramSchmidtRelief(DenseReliefF):
    """Select features by ReliefF with Gram-Schmidt orthogonalisation (after Yang and Li 2006).

    The feature with the largest weight is selected. From every other one its projection on that feature is taken off,
    and ReliefF weighs what is left, in the unit the feature had: the more two features are alike, the less is left of
    the second to be relevant. Then the largest of these weights is next, and so on; for n features there are n searches
    for neighbours.

    The parameters and attributes are those of :class:`ReliefF`; `selection_scores_` are the weights that the features
    had when they were selected, `scores_` those of the whole features.

    Notes
    -----
    A feature of which nothing is left, such as a copy, is selected after all others, with a score of 0. Neighbours are
    searched among all features as they are then: the selected ones, and what is left of the others. Once a feature has
    been selected, a missing value counts as the mean of its column, and a nominal feature by its codes, the numbers of
    its sorted levels.

    References
    ----------
    J. Yang, Y.-P. Li, *Orthogonal Relief algorithm for feature selection*, ICIC 2006.

    Examples
    --------
    >>> from rivals import GramSchmidtRelief
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> X["twice"] = 2 * X["petal length (cm)"]
    >>> selector = GramSchmidtRelief(5, random_state=0).fit(X, y)
    >>> X.columns[selector.selected_].tolist()[-1], float(selector.selection_scores_[-1])
    ('twice', 0.0)
    """

    def _choose(self, table: Table, labels: Array, settings: Settings, W: Array, constant: Array) -> Selection:
        X, n = centred(self._rows_of(table)), settings.resolve_n_features(len(W))
        length, width = np.linalg.norm(X, axis=0), np.ptp(X, axis=0)
        left, w = ~constant, W
        selected: list[int] = []
        scores: list[float] = []
        while left.any() and len(selected) < n:
            if selected:
                orthogonalise(X, selected[-1], left)
                left &= np.linalg.norm(X, axis=0) > NOTHING * length
                X[:, ~left & ~np.isin(np.arange(len(W)), selected)] = 0.0
                if not left.any():
                    break
                w = self._weigh(X, labels, settings, width)
            best = int(sort_by_weight(w, np.flatnonzero(left))[0])
            selected.append(best)
            scores.append(float(w[best]))
            left[best] = False
        rest = sort_by_weight(W, np.setdiff1d(np.flatnonzero(~constant), selected))[: n - len(selected)]
        return Selection(np.array([*selected, *rest], np.int64), np.array([*scores, *np.zeros(len(rest))]))

    def _weigh(self, X: Array, labels: Array, settings: Settings, width: Array) -> Array:
        """W of columns that are numbers, a difference as a share of a width."""
        resources = Resources(self.n_jobs, self.working_memory * 2**20)
        numbers = np.zeros(X.shape[1], bool)
        with local_engine(ArraySource(X), self.classes_, labels, numbers, resources) as engine:
            return compute_relieff(engine, settings, width=width)[0]


def orthogonalise(X: Array, j: int, others: Array) -> None:
    """Take off the projection on column j, in place, twice, for once leaves rounding."""
    along = X[:, j] / np.linalg.norm(X[:, j])
    for _ in range(2):
        X[:, others] -= np.outer(along, along @ X[:, others])
