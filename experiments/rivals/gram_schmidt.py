"""ReliefF with Gram-Schmidt orthogonalisation of the remaining features after each selection.

weights ─► select the largest ─► subtract the projections on it from all other features ─► weights again ─► ...

An exact copy of a selected feature becomes zero, and so has no weight.
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

NOTHING = 1e-9  # remainders below this share of the original length of a column are rounding error


class GramSchmidtRelief(DenseReliefF):
    """Select features by ReliefF with Gram-Schmidt orthogonalisation (after Yang and Li 2006).

    The feature with the largest weight is selected first. The projection on it is subtracted from every other feature,
    and ReliefF weights the remainders, with the original ranges of the features as units. The more similar two features
    are, the smaller is the remainder of the second. Then the feature with the largest of the new weights is selected,
    and so on. To select n features, the neighbours are searched n times.

    The parameters and attributes are those of :class:`ReliefF`. `scores_` are the weights of the original features, and
    `selection_scores_` are the weights of the remainders when they were selected.

    Notes
    -----
    A feature without a remainder, such as a copy, is selected after all others, with a score of 0. The distances
    between rows are computed from the current values of all features: the remainders of the selected features when they
    were selected, and the current remainders of the others. From the second search on, a missing value is replaced by
    the mean of its column, and nominal features are treated as numeric; the codes of strings are the indices of the
    sorted levels.

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
        """Return the ReliefF weights of numeric columns, with the differences of each column divided by its width."""
        resources = Resources(self.n_jobs, self.working_memory * 2**20)
        numbers = np.zeros(X.shape[1], bool)
        with local_engine(ArraySource(X), self.classes_, labels, numbers, resources) as engine:
            return compute_relieff(engine, settings, width=width)[0]


def orthogonalise(X: Array, j: int, others: Array) -> None:
    """Subtract from the columns `others` their projections on column j, in place.

    It is done twice, because rounding errors remain after the first time.
    """
    along = X[:, j] / np.linalg.norm(X[:, j])
    for _ in range(2):
        X[:, others] -= np.outer(along, along @ X[:, others])
