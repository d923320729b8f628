"""ReliefF, and K-means over its best features: of those that are correlated, one is selected.

weights ─► the best of them ─► clusters by |correlation| ─► the largest weight of each cluster

Scikit-learn's K-means has no distance for which a feature and its opposite are the same, so there is one here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from belief._utils.validation import is_real
from belief.data.table import Table
from belief.method.arrays import Array
from belief.method.relevance import sort_by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from rivals.base import DenseReliefF, centred

ROUNDS = 100  # of K-means, at the most


class KMeansRelief(DenseReliefF):
    """Select features by ReliefF, and by K-means one of each cluster of correlated ones (after Bins and Draper 2001).

    The features of the largest weights are clustered, as many clusters as features are to be selected, and of each
    cluster the feature with the largest weight is taken. The distance is 1 - abs(r), with r Pearson's correlation of a
    feature with the centre of a cluster: the mean of its features, each standardised and turned to point the same way.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        How many features to select, or which share of them: the number of clusters.
    candidates : float or "auto", default="auto"
        How many features are clustered, as a multiple of those to select; to cluster all would find clusters of noise.
        "auto": those whose weight is above a threshold, as Bins and Draper have it, but at least as many as are to be
        selected. The threshold is the size of the smallest weight, for the weights of noise lie about 0.
    n_neighbors, sample_size, discrete_features, n_jobs, random_state, working_memory
        As in :class:`ReliefF`, whose attributes it has too.

    Notes
    -----
    K-means begins with the most relevant feature, and then each time with that which is least correlated with those
    chosen before it; so there is no chance in it. Clusters that have become empty, as of copies, are made up for by the
    largest weights left. For correlations, a missing value counts as the mean, and a nominal feature by its codes, the
    numbers of its sorted levels.

    References
    ----------
    J. Bins, B. A. Draper, *Feature selection from huge feature sets*, ICCV 2001.

    Examples
    --------
    >>> from rivals import KMeansRelief
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = KMeansRelief(2, random_state=0).fit(X, y)  # the petals' length repeats their width
    >>> X.columns[selector.selected_].tolist()
    ['petal width (cm)', 'sepal width (cm)']
    """

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        candidates: float | str = "auto",
        n_neighbors: int = 10,
        sample_size: int | float | str = 1.0,
        discrete_features: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: int = 1024,
    ) -> None:
        super().__init__(
            n_features_to_select, n_neighbors=n_neighbors, sample_size=sample_size, n_jobs=n_jobs,
            discrete_features=discrete_features, random_state=random_state, working_memory=working_memory,
        )  # fmt: skip
        self.candidates = candidates

    def _weights(self, table: Table, labels: Array, settings: Settings) -> tuple[Array, Array]:
        if self.candidates != "auto" and not (is_real(self.candidates) and float(self.candidates) >= 1):
            raise ValueError(f"candidates must be 'auto' or a number of at least 1; got {self.candidates!r}.")
        return super()._weights(table, labels, settings)

    def _choose(self, table: Table, labels: Array, settings: Settings, W: Array, constant: Array) -> Selection:
        n, order = settings.resolve_n_features(len(W)), sort_by_weight(W, np.flatnonzero(~constant))
        few = order[: self._count(n, W)]
        points = centred(self._rows_of(table))[:, few]
        groups = clusters(points / np.linalg.norm(points, axis=0), min(n, len(few)))
        best = few[np.unique(groups, return_index=True)[1]]  # the first of each group has its largest weight
        chosen = sort_by_weight(W, np.sort(best))
        chosen = np.concatenate([chosen, order[~np.isin(order, best)]])[:n]
        return Selection(chosen, W[chosen])

    def _count(self, n: int, W: Array) -> int:
        """How many features are clustered."""
        if self.candidates == "auto":
            return max(n, int(np.sum(-np.min(W) < W)))
        return math.ceil(float(self.candidates) * n)


def clusters(points: Array, k: int) -> Array:
    """The cluster of each column, by K-means with 1 - |r| for the distance; ties go to the first.

    Parameters
    ----------
    points : columns of mean 0 and length 1; the first is the first centre
    """
    centres = points[:, farthest(np.abs(points.T @ points), k)]
    group = np.full(points.shape[1], -1)
    for _ in range(ROUNDS):
        r = points.T @ centres
        before, group = group, np.argmax(np.round(np.abs(r), 10), axis=1)
        if np.array_equal(before, group):
            break
        turned = points * np.where(r[np.arange(len(group)), group] < 0, -1.0, 1.0)
        for g in np.unique(group):
            total = turned[:, group == g].sum(axis=1)
            centres[:, g] = total / (np.linalg.norm(total) or 1.0)
    return group


def farthest(r: Array, k: int) -> list[int]:
    """The first, and then each time the one that is least like those before it."""
    chosen = [0]
    for _ in range(k - 1):
        most = np.round(r[:, chosen].max(axis=1), 10)
        most[chosen] = np.inf
        chosen.append(int(np.argmin(most)))
    return chosen
