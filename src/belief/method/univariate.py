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


def univariate_p_values(summary: Summary, counted: Array | None = None) -> Array:
    """The p-value of each feature by itself, from the rows that have it.

    NaN for a constant feature, one that has no more values than there are classes, and where the classes were not known
    or too many when the data was described.

    Parameters
    ----------
    counted : array of shape (|C|,), optional
        Of each class, the share of the rows that count where copies are merged. The means and shares are those of all
        rows, but the evidence is only that of so many.
    """
    shares = np.ones(len(summary.group_count))
    if counted is not None and len(counted) == len(shares):  # there are no groups of too many classes, or of numbers
        shares = counted
    p = _f_test(summary, shares)
    feature, of_levels = _chi2_test(summary.levels, shares)
    p[feature] = of_levels
    p[~(summary.maximum > summary.minimum)] = np.nan
    return p


def _f_test(summary: Summary, counted: Array) -> Array:
    """The squares between the classes against those within."""
    n, total = summary.group_count, summary.group_sum
    N, classes = n.sum(axis=0), (n > 0).sum(axis=0)
    within = summary.m2 - _between(n, total)
    within[within <= ROUNDING * summary.m2] = 0.0
    some, between = (n * counted[:, None]).sum(axis=0), _between(n * counted[:, None], total * counted[:, None])
    p = np.full(len(N), np.nan)
    ok = (summary.count == N) & (classes > 1) & (classes < some) & (summary.m2 > 0)
    fewer = (some[ok] - classes[ok]) / (N[ok] - classes[ok])
    p[ok] = f_tail(within[ok] * fewer, between[ok], classes[ok] - 1.0, some[ok] - classes[ok])
    return p


def _between(n: Array, total: Array) -> Array:
    """The squares of the means of the classes about that of all, from their counts and sums."""
    N = n.sum(axis=0)
    grand = np.divide(total.sum(axis=0), N, out=np.zeros_like(N), where=N > 0)
    apart = np.divide(total, n, out=np.broadcast_to(grand, n.shape).copy(), where=n > 0) - grand
    squares: Array = (n * apart**2).sum(axis=0)
    return squares


def _chi2_test(levels: Levels, counted: Array) -> tuple[Array, Array]:
    """The features that have levels, and the p-value of each: the counts against those of independence."""
    feature, which = np.unique(levels.feature, return_inverse=True)
    of_none = np.bincount(which, levels.count - levels.groups.sum(axis=1), len(feature))  # rows of unknown class
    groups = levels.groups * counted[: levels.groups.shape[1]]  # of too many classes there are none
    of_class = np.zeros((len(feature), groups.shape[1]))
    np.add.at(of_class, which, groups)
    share = of_class / np.maximum(of_class.sum(axis=1), 1.0)[:, None]
    expected = groups.sum(axis=1, keepdims=True) * share[which]
    squares = np.divide((groups - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)
    df = (np.bincount(which, minlength=len(feature)) - 1.0) * ((of_class > 0).sum(axis=1) - 1.0)
    p = np.full(len(feature), np.nan)
    ok = (of_none == 0) & (df > 0)
    p[ok] = chi2_tail(np.bincount(which, squares.sum(axis=1), len(feature))[ok], df[ok])
    return feature, p
