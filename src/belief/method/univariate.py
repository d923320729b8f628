"""Univariate tests of each feature, from the sums of the first pass over the data.

Continuous features have a one-way F test, discrete ones a χ² test of levels by classes. A feature with a large p-value
here and a large w interacts with other features: neighbours show that, a test of a single feature cannot.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincc, chdtrc

from belief.method.arrays import Array
from belief.method.summary import Levels, Summary

ROUNDING = 1e-13  # a sum of squares within the classes below this share of the total is rounding


def univariate_p_values(summary: Summary, counted_share: Array | None = None) -> Array:
    """Return the p-value of each feature by itself, from the rows in which it is present.

    The p-value is NaN for constant features, for features with no more values than there are classes, and where the
    classes were unknown or too many when the data was described.

    Parameters
    ----------
    summary : Summary
        The sums of all rows.
    counted_share : array of shape (|C|,), optional
        The share of each class's rows that count when copies are merged. Means and shares use all rows, but the
        degrees of freedom use only the rows that count.
    """
    shares = np.ones(len(summary.group_count))
    if counted_share is not None and len(counted_share) == len(shares):  # a numeric target has no groups
        shares = counted_share
    p = _f_test(summary, shares)
    feature, p_of_levels = _chi2_test(summary.levels, shares)
    p[feature] = p_of_levels
    p[~(summary.maximum > summary.minimum)] = np.nan
    return p


def _f_test(summary: Summary, counted_share: Array) -> Array:
    n, total = summary.group_count, summary.group_sum
    N, classes = n.sum(axis=0), (n > 0).sum(axis=0)
    within = summary.m2 - _squares_between(n, total)
    within[within <= ROUNDING * summary.m2] = 0.0
    counted, counted_total = n * counted_share[:, None], total * counted_share[:, None]
    n_counted, between = counted.sum(axis=0), _squares_between(counted, counted_total)
    p = np.full(len(N), np.nan)
    ok = (summary.count == N) & (classes > 1) & (classes < n_counted) & (summary.m2 > 0)
    df_between, df_within = classes[ok] - 1.0, n_counted[ok] - classes[ok]
    p[ok] = f_tail(within[ok] * (df_within / (N[ok] - classes[ok])), between[ok], df_between, df_within)
    return p


def f_tail(within: Array, between: Array, df_between: Array, df_within: Array) -> Array:
    """Return P(F >= f) for f = (between/df_between)/(within/df_within), the ratio of two sums of squares."""
    a, b, total = df_within / 2.0, df_between / 2.0, within + between
    # with many rows, 1 - within/total would lose the digits of a small between/total
    return np.where(within < between, betainc(a, b, within / total), betaincc(b, a, between / total))


def _squares_between(n: Array, total: Array) -> Array:
    """Return the sum of squares between classes, from the counts and sums of the classes."""
    N = n.sum(axis=0)
    grand_mean = np.divide(total.sum(axis=0), N, out=np.zeros_like(N), where=N > 0)
    means = np.divide(total, n, out=np.broadcast_to(grand_mean, n.shape).copy(), where=n > 0)
    squares: Array = (n * (means - grand_mean) ** 2).sum(axis=0)
    return squares


def _chi2_test(levels: Levels, counted_share: Array) -> tuple[Array, Array]:
    """Return the features that have levels, and their p-values."""
    feature, line = np.unique(levels.feature, return_inverse=True)
    n_unknown = np.bincount(line, levels.count - levels.groups.sum(axis=1), len(feature))  # rows of unknown class
    groups = levels.groups * counted_share[: levels.groups.shape[1]]  # without columns if there are too many classes
    class_totals = np.zeros((len(feature), groups.shape[1]))
    np.add.at(class_totals, line, groups)
    share = class_totals / np.maximum(class_totals.sum(axis=1), 1.0)[:, None]
    expected = groups.sum(axis=1, keepdims=True) * share[line]
    squares = np.divide((groups - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)
    df = (np.bincount(line, minlength=len(feature)) - 1.0) * ((class_totals > 0).sum(axis=1) - 1.0)
    p = np.full(len(feature), np.nan)
    ok = (n_unknown == 0) & (df > 0)
    p[ok] = chdtrc(df[ok], np.bincount(line, squares.sum(axis=1), len(feature))[ok])
    return feature, p
