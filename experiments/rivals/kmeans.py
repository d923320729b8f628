"""ReliefF and K-means: the best features are clustered by correlation, and one feature of each cluster is selected.

weights ─► the best features ─► clusters by |correlation| ─► the feature with the largest weight of each cluster

K-means is implemented in this module, because scikit-learn's version has no distance that is 0 between a feature and
its negative.
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

ROUNDS = 100  # maximum number of iterations of K-means


class KMeansRelief(DenseReliefF):
    """Select features by ReliefF, one from each cluster of correlated features (after Bins and Draper 2001).

    The features with the largest weights are clustered by K-means, and the feature with the largest weight in each
    cluster is selected. The distance is 1 - abs(r), where r is Pearson's correlation of a feature with the centre of a
    cluster. The centre is the mean of the standardised features of the cluster, after the signs of negatively
    correlated features are flipped.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        The number or share of features to select, which is also the number of clusters.
    candidates : float or "auto", default="auto"
        The number of features to cluster, as a multiple of the number to select. If all features were clustered, there
        would be clusters of noise. "auto": the features with a weight above a threshold, as in Bins and Draper, but at
        least as many as are selected. The threshold is the smallest weight with its sign changed, because the weights
        of noise scatter around 0.
    n_neighbors, sample_size, discrete_features, n_jobs, random_state, working_memory
        As in :class:`ReliefF`. The attributes are those of ReliefF, too.

    Notes
    -----
    K-means is deterministic. The first initial centre is the most relevant feature, and each further one is the feature
    that is least correlated with the centres chosen before. If clusters become empty, for example because features are
    copies, the remaining features with the largest weights are selected instead. For the correlations, a missing value
    is replaced by the mean of its column, and nominal features are treated as numeric; the codes of strings are the
    indices of the sorted levels.

    References
    ----------
    J. Bins, B. A. Draper, *Feature selection from huge feature sets*, ICCV 2001.

    Examples
    --------
    >>> from rivals import KMeansRelief
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = KMeansRelief(2, random_state=0).fit(X, y)  # petal length is redundant with petal width
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
        best = few[np.unique(groups, return_index=True)[1]]  # the first feature of each group has the largest weight
        chosen = sort_by_weight(W, np.sort(best))
        chosen = np.concatenate([chosen, order[~np.isin(order, best)]])[:n]
        return Selection(chosen, W[chosen])

    def _count(self, n: int, W: Array) -> int:
        """Return the number of features to cluster."""
        if self.candidates == "auto":
            return max(n, int(np.sum(-np.min(W) < W)))
        return math.ceil(float(self.candidates) * n)


def clusters(points: Array, k: int) -> Array:
    """Return the cluster of each column, by K-means with the distance 1 - |r|. Ties go to the first cluster.

    Parameters
    ----------
    points : columns of mean 0 and length 1; the first column is the first initial centre
    k : the number of clusters
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
    """Return k columns: the first one, and then each time the column with the least similarity to those chosen before.

    `r` is the matrix of the absolute correlations of the columns.
    """
    chosen = [0]
    for _ in range(k - 1):
        most = np.round(r[:, chosen].max(axis=1), 10)
        most[chosen] = np.inf
        chosen.append(int(np.argmin(most)))
    return chosen
