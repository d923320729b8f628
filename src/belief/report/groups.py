"""The selected features that agree with one another, as groups."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from belief.method.arrays import Array

LEVEL = 0.5  # of agreement


def groups_of(redundancy: Array, level: float = LEVEL) -> list[list[int]]:
    """Group features that agree at `level` or more, on average of all pairs of two groups (and, of mCR, of both ways).

    Parameters
    ----------
    redundancy : what feature b repeats of feature a, at [a, b]

    Returns
    -------
    list of lists of int
        The groups side by side, such that neighbours are alike.
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    n = len(redundancy)
    if n < 2:
        return [[i] for i in range(n)]
    apart = 1.0 - (redundancy + redundancy.T) / 2
    np.fill_diagonal(apart, 0.0)
    tree = hierarchy.linkage(squareform(apart, checks=False), "average", optimal_ordering=n <= 500)
    label = hierarchy.fcluster(tree, 1.0 - level, "distance")
    return [list(group) for _, group in groupby(hierarchy.leaves_list(tree).tolist(), key=lambda i: label[i])]
