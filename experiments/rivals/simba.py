"""Simba: feature weights that increase the margins of the rows, by stochastic gradient ascent.

row ─► its nearest hit and miss under the current weights ─► the gradient of its margin ─► new weights ─► next row

The weights change after every row, so the neighbours of several rows cannot be searched together. A compiled kernel
processes the rows one by one.
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

    The margin of a row x under the weights w is (‖x - miss‖ - ‖x - hit‖)/2, with ‖z‖² = Σ w²z². The miss is the nearest
    row of another class under these weights, and the hit is the nearest row of the same class. All weights begin at 1,
    and each row updates them:

        w ← w + w/2 · ((x - miss)²/‖x - miss‖ - (x - hit)²/‖x - hit‖)

    The scores of the features are the final w²/max w². Because neighbours are searched under the current weights, a
    redundant feature loses weight. In Relief, by contrast, all weights are 1 in the search.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        The number or share of features to select.
    n_steps : int, default=1000
        The number of steps, each of which processes one row. The rows are in random order, and are shuffled again after
        each pass.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, whose values are only compared for equality. "auto": string, category and boolean columns.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the order of the rows.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        w²/max w² of each feature, from 0 to 1. Constant features have 0.
    selected_ : ndarray of int
        The indices of the selected features, by falling score.
    selection_scores_ : ndarray
        The scores of the selected features, in the same order.
    n_features_ : int
        The number of selected features.
    support_ : ndarray of bool of shape (n_features,)
        The mask of the selected features.
    ranking_ : ndarray of int of shape (n_features,)
        1 for every selected feature, then 2, 3, ... by falling score, as in `RFE`.
    classes_ : ndarray
        The sorted classes.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of str
        The column names of X. The attribute exists only if X has column names and all of them are strings.

    Notes
    -----
    Differences are divided by the range of the feature, as in :class:`ReliefF`. A missing number is replaced by the
    mean, and missing values of a nominal feature form a separate level. Among equally near rows, the first is used, and
    a neighbour at distance 0 does not change the weights. The utility function is linear, and there is one start, with
    all weights 1. The original paper also has a sigmoid utility function, and several starts. Each step compares a row
    with all others. Sparse matrices raise an error.

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
        constant = ~(summary.maximum > summary.minimum)  # also True for columns without values, whose extremes are NaN
        w = np.where(constant, 0.0, 1.0)
        Z = shares(read_values(source), summary, table.discrete)
        climb(Z, table.discrete, labels, self._order(settings, len(labels)), w)
        w = w**2 / (np.max(w**2) or 1.0)
        n = settings.resolve_n_features(len(w))
        best = sort_by_weight(w, np.flatnonzero(~constant))[:n]
        self._rank(X, y, w, Selection(best, w[best]), constant, n)
        return self

    def _order(self, settings: Settings, m: int) -> Array:
        """Return the row of each step: the rows in random order, shuffled again after each pass."""
        rng = np.random.default_rng(settings.draw_seed())
        return np.concatenate([rng.permutation(m) for _ in range(-(-self.n_steps // m))])[: self.n_steps]


def shares(X: Array, summary: Summary, discrete: Array) -> Array:
    """Divide numeric features by their range, and replace missing values: numbers by the mean, nominal codes by -1."""
    width = summary.maximum - summary.minimum
    X = np.where(np.isnan(X), np.where(discrete, -1.0, summary.mean), X)
    return np.where(discrete | ~(width > 0), X, X / np.where(width > 0, width, 1.0))


@kernel()
def climb(X: Array, discrete: Array, labels: Array, order: Array, w: Array) -> None:
    """Process the rows in the given order: add the gradient of the margin of each row to w, in place."""
    m, F = X.shape
    nearest, at = np.empty(2), np.empty(2, np.int64)  # squared distance and row of the nearest hit and miss
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
