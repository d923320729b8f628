"""What each feature says of the classes by itself: the tests everybody knows, from what the first pass has counted.

A continuous feature has a one-way F test, a discrete one a χ² test of its levels by the classes. A feature of a large
p-value and a large w matters together with others: that is what neighbours see, and no test of one feature can.
"""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.summary import Levels, Summary
from belief.method.tails import chi2_tail, f_tail

ROUNDING = 1e-13  # what is left within the classes of Σ(x - mean)², if it is less than this share, is none


def alone_p(summary: Summary) -> Array:
    """The p-value of each feature by itself, from the rows that have it.

    NaN for a constant feature, one that has no more values than there are classes, and where the classes were not known
    or too many when the data was described.
    """
    p = _f_test(summary)
    feature, of_levels = _chi2_test(summary.levels)
    p[feature] = of_levels
    p[~(summary.maximum > summary.minimum)] = np.nan
    return p


def _f_test(summary: Summary) -> Array:
    """The squares between the classes against those within."""
    n, total = summary.group_count, summary.group_sum
    N, classes = n.sum(axis=0), (n > 0).sum(axis=0)
    grand = np.divide(total.sum(axis=0), N, out=np.zeros_like(N), where=N > 0)
    apart = np.divide(total, n, out=np.broadcast_to(grand, n.shape).copy(), where=n > 0) - grand
    between = (n * apart**2).sum(axis=0)
    within = summary.m2 - between
    within[within <= ROUNDING * summary.m2] = 0.0
    p = np.full(len(N), np.nan)
    ok = (summary.count == N) & (classes > 1) & (classes < N) & (summary.m2 > 0)
    p[ok] = f_tail(within[ok], between[ok], classes[ok] - 1.0, N[ok] - classes[ok])
    return p


def _chi2_test(levels: Levels) -> tuple[Array, Array]:
    """The features that have levels, and the p-value of each: the counts against those of independence."""
    feature, which = np.unique(levels.feature, return_inverse=True)
    of_class = np.zeros((len(feature), levels.groups.shape[1]))
    np.add.at(of_class, which, levels.groups)
    N, count = of_class.sum(axis=1), np.bincount(which, levels.count, len(feature))
    share = of_class / np.maximum(N, 1.0)[:, None]
    expected = levels.count[:, None] * share[which]
    squares = np.divide((levels.groups - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)
    df = (np.bincount(which, minlength=len(feature)) - 1.0) * ((of_class > 0).sum(axis=1) - 1.0)
    p = np.full(len(feature), np.nan)
    ok = (count == N) & (df > 0)
    p[ok] = chi2_tail(np.bincount(which, squares.sum(axis=1), len(feature))[ok], df[ok])
    return feature, p
