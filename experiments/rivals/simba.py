"""Simba: weights that climb the margins of the rows.

row ─► its nearest hit and miss under the weights so far ─► the gradient of its margin ─► new weights ─► next row

The weights change with every row, so nothing can be searched at once: a kernel goes through them one by one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from belief._utils.validation import is_count
from belief.baselines.base import Baseline, make_data_check, read_values, require_dense
from belief.data.labels import read_labels
from belief.data.table import open_table
from belief.engines.block.dense import DenseEngine
from belief.engines.resources import Resources
from belief.kernels.compiling import kernel
from belief.method.arrays import Array
from belief.method.relevance import sort_by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import make_class_target


class Simba(Baseline):
    """Select features by Simba (Gilad-Bachrach, Navot and Tishby 2004): gradient ascent on the hypothesis margin.

    The margin of a row x under weights w is (‖x - miss‖ - ‖x - hit‖)/2, with ‖z‖² = Σ w²z², and the miss and the hit
    the nearest row of another and of the same class under these weights. All weights begin at 1; row by row,

        w ← w + w/2 · ((x - miss)²/‖x - miss‖ - (x - hit)²/‖x - hit‖)

    and in the end w²/max w² are the weights of the features. As neighbours are searched under the weights found so far,
    a feature that adds nothing to others loses weight; Relief is one such step, with all weights 1.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        How many features to select, or which share of them.
    n_steps : int, default=1000
        How many rows are gone through, in random order; when all were, they are shuffled and come again.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, of which only "equal or not" counts. "auto": string, category and boolean columns.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the order of the rows.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        w²/max w² of each feature, from 0 to 1; 0 of constant ones.
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
    classes_ : ndarray
        The classes, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had column names, all of them strings.

    Notes
    -----
    Differences are shares of a feature's range, as in :class:`ReliefF`. A missing number counts as the mean, a missing
    name as a name of its own. Of equally near rows the first counts, and a neighbour at distance 0 adds nothing. The
    utility is linear, and there is one start, with all weights 1; the paper also has a sigmoid one, and several starts.
    A step costs one look at every cell. Sparse matrices are refused.

    References
    ----------
    R. Gilad-Bachrach, A. Navot, N. Tishby, *Margin based feature selection - theory and algorithms*, ICML 2004.

    Examples
    --------
    >>> from rivals import Simba
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> list(Simba(2, random_state=0).fit(X, y).get_feature_names_out())
    ['petal length (cm)', 'petal width (cm)']
    """

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        n_steps: int = 1000,
        discrete_features: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_steps = n_steps
        self.discrete_features = discrete_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the features.

        Parameters
        ----------
        X : array, memory map or DataFrame of shape (n_rows, n_features), or a list of those as blocks
        y : array of shape (n_rows,)
            The class of each row.

        Returns
        -------
        self
        """
        if not is_count(self.n_steps):
            raise ValueError(f"n_steps must be an integer of at least 1; got {self.n_steps!r}.")
        settings = Settings(
            n_features_to_select=self.n_features_to_select, random_state=self.random_state, redundancy=None
        )
        table = open_table(X, self.discrete_features)
        source = require_dense(table, "Simba")
        self.classes_, labels = read_labels(y, source.n_rows, "classification").encode_classes()
        with DenseEngine(source, labels, table.discrete, Resources()) as engine:
            summary = engine.describe()
            make_data_check(settings, table.names)(summary, make_class_target(self.classes_, labels))
        constant = ~(summary.maximum > summary.minimum)  # NaN where a column has no value
        w = np.where(constant, 0.0, 1.0)
        Z = shares(read_values(source), summary, table.discrete)
        climb(Z, table.discrete, labels, self._order(settings, len(labels)), w)
        w = w**2 / (np.max(w**2) or 1.0)
        n = settings.resolve_n_features(len(w))
        best = sort_by_weight(w, np.flatnonzero(~constant))[:n]
        self._rank(X, y, w, Selection(best, w[best]), constant, n)
        return self

    def _order(self, settings: Settings, m: int) -> Array:
        """The rows, shuffled as often as it takes."""
        rng = np.random.default_rng(settings.draw_seed())
        return np.concatenate([rng.permutation(m) for _ in range(-(-self.n_steps // m))])[: self.n_steps]


def shares(X: Array, summary: Summary, discrete: Array) -> Array:
    """Numbers as shares of their range, and nothing missing."""
    width = summary.maximum - summary.minimum
    X = np.where(np.isnan(X), np.where(discrete, -1.0, summary.mean), X)
    return np.where(discrete | ~(width > 0), X, X / np.where(width > 0, width, 1.0))


@kernel()
def climb(X: Array, discrete: Array, labels: Array, order: Array, w: Array) -> None:
    """Go through the rows in order, each adding the gradient of its margin to w."""
    m, F = X.shape
    nearest, at = np.empty(2), np.empty(2, np.int64)  # of the hits, and of the misses
    for q in order:
        nearest[:], at[:] = np.inf, -1
        for r in range(m):
            side = 0 if labels[r] == labels[q] else 1
            d2 = 0.0
            for j in range(F):
                diff = X[q, j] - X[r, j]
                if discrete[j] and diff != 0.0:
                    diff = 1.0
                d2 += (w[j] * diff) ** 2
                if d2 >= nearest[side]:
                    break
            if d2 < nearest[side] and r != q:
                nearest[side], at[side] = d2, r
        for j in range(F):
            gain = 0.0
            for side in range(2):
                if at[side] >= 0 and nearest[side] > 0.0:
                    diff = X[q, j] - X[at[side], j]
                    if discrete[j] and diff != 0.0:
                        diff = 1.0
                    gain += (2 * side - 1) * diff * diff / np.sqrt(nearest[side])
            w[j] += 0.5 * gain * w[j]
