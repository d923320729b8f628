"""Univariate tests: whether each feature by itself depends on the target.

With classes, continuous features have a one-way F test and discrete ones a χ² test of levels by classes, from the sums
of the first pass over the data. With a numeric target, both have a test of ranks on sampled rows. The theoretical
p-values of all these tests are wrong for skewed or rare features in small classes, so small p-values are checked by
shuffles of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, betaincc, chdtrc, gammaln

from belief.method.arrays import Array, is_first_of_run
from belief.method.design import Design, Units
from belief.method.relevance import LEAST_P
from belief.method.sampling import row_keys
from belief.method.summary import Levels, Summary

SHUFFLES = (100, 1_000)  # the smallest and the largest number of shuffles; as many as MAX_MULTIPLICATIONS allows
MAX_MULTIPLICATIONS = 20_000_000_000
SHUFFLES_AT_ONCE = 50
TAIL = 0.05  # the share of the shuffles to which a Pareto tail is fitted
MAX_SHAPE = 0.9
MIN_BEYOND = 10  # with fewer shuffles beyond a statistic, its p-value comes from the fitted tail
CHECKS = 2**21  # the first stream of the keys that order the shuffles
MAX_EXACT_ROWS, MAX_EXACT_LEVELS, MAX_EXACT_SUMS = 20_000, 12, 5_000_000  # limits for counting all shuffles
ROUNDING = 1e-13  # a sum of squares within the classes below this share of the total is rounding error


def univariate_p_values(summary: Summary) -> Array:
    """Return the univariate p-value of each feature, from all rows in which it is present.

    The p-value is NaN for constant features, and for features that are present in too few rows (at most as many as
    there are classes). All are NaN if the classes were unknown, or too many, when the data was described.
    """
    p = _f_test(summary)
    feature, p_of_levels = _chi2_test(summary.levels)
    p[feature] = p_of_levels
    p[~(summary.maximum > summary.minimum)] = np.nan
    return p


def p_values_by_class(summary: Summary, n_classes: int) -> Array:
    """Return the univariate p-values of each class against all others, (classes, features).

    Unknown p-values are NaN.
    """
    out = np.full((n_classes, len(summary.count)), np.nan)
    if len(summary.group_count) != n_classes:
        return out
    for c in range(n_classes):
        is_other = (np.arange(n_classes) != c).astype(np.int64)
        out[c] = univariate_p_values(summary.regrouped(is_other, 2))
    return out


def _f_test(summary: Summary) -> Array:
    n, total = summary.group_count, summary.group_sum
    N, classes = n.sum(axis=0), (n > 0).sum(axis=0)
    grand_mean = np.divide(total.sum(axis=0), N, out=np.zeros_like(N), where=N > 0)
    means = np.divide(total, n, out=np.broadcast_to(grand_mean, n.shape).copy(), where=n > 0)
    between = (n * (means - grand_mean) ** 2).sum(axis=0)
    within = summary.m2 - between
    within[within <= ROUNDING * summary.m2] = 0.0
    p = np.full(len(N), np.nan)
    ok = (summary.count == N) & (classes > 1) & (classes < N) & (summary.m2 > 0)
    p[ok] = f_tail(within[ok], between[ok], classes[ok] - 1.0, N[ok] - classes[ok])
    return p


def f_tail(within: Array, between: Array, df_between: Array, df_within: Array) -> Array:
    """Return the p-value of an F test.

    It is P(F >= f) for f = (between/df_between)/(within/df_within), the ratio of two variances.
    """
    a, b, total = df_within / 2.0, df_between / 2.0, within + between
    # with many rows, 1 - within/total would lose the digits of a small between/total
    return np.where(within < between, betainc(a, b, within / total), betaincc(b, a, between / total))


def _chi2_test(levels: Levels) -> tuple[Array, Array]:
    """Return the features that have levels, and the p-value of the χ² test of each."""
    if not len(levels.feature):
        return levels.feature, np.zeros(0)
    feature, line = np.unique(levels.feature, return_inverse=True)
    n_unknown = np.bincount(line, levels.count - levels.groups.sum(axis=1), len(feature))  # rows of unknown class
    groups = levels.groups.astype(float)  # without columns if there are too many classes
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


def missingness_p_values(summary: Summary, class_counts: Array) -> Array:
    """Return, for each feature, the p-value of a χ² test of whether missing values depend on the class.

    The p-value is NaN if no value is missing, or if the classes of some rows are unknown.
    """
    present = summary.group_count
    p = np.full(len(summary.count), np.nan)
    if len(present) != len(class_counts):
        return p
    ok = (summary.missing > 0) & (summary.count > 0) & (present.sum(axis=0) == summary.count)
    share = summary.count[ok] / max(summary.m, 1)
    expected = class_counts[:, None] * share
    squares = ((present[:, ok] - expected) ** 2 / np.maximum(expected * (1.0 - share), LEAST_P)).sum(axis=0)
    p[ok] = chdtrc(len(class_counts) - 1.0, squares)
    return p


@dataclass(frozen=True)
class ShareTest:
    """A test of features by the share of their variance that the target explains."""

    # the columns of the features, (m, columns); the statistic of a feature is the sum of the squares of G'A over these
    A: Array
    feature: Array  # the feature of each column, sorted
    discrete: Array  # which features are discrete
    # the target, (m, groups): one scaled column for each class, or one with the ranks of a numeric target
    G: Array
    is_numeric: bool

    @classmethod
    def of(cls, columns: Array, feature: Array, discrete: Array, target: Array, is_numeric: bool) -> ShareTest:
        """Make the test for rows with these classes, or with these ranks of a numeric target.

        `columns` are the values of features (their normal scores if the target is numeric), or indicators of levels.
        """
        if is_numeric:
            G = target - target.mean()
            G = G[:, None] / (np.sqrt((G * G).sum()) + LEAST_P)
            A = np.where(discrete[feature], columns, columns - columns.mean(axis=0))
            return cls(A / (np.sqrt((A * A).sum(axis=0)) + LEAST_P), feature, discrete, G, True)
        known, line = np.unique(target, return_inverse=True)
        G = (line[:, None] == np.arange(len(known))).astype(float)
        G /= np.sqrt(G.sum(axis=0))
        n_known = (~np.isnan(columns)).sum(axis=0)
        share = np.nansum(columns, axis=0) / np.maximum(n_known, 1)
        A = np.nan_to_num(columns - share)
        A /= np.where(discrete[feature], np.sqrt(np.maximum(share, 0.0)), np.sqrt((A * A).sum(axis=0))) + LEAST_P
        return cls(A, feature, discrete, G, False)

    def take(self, which: Array) -> ShareTest:
        """Return the test of these features alone."""
        line = np.full(len(self.discrete), -1)
        line[which] = np.arange(len(which))
        columns = np.flatnonzero(line[self.feature] >= 0)
        return ShareTest(self.A[:, columns], line[self.feature[columns]], self.discrete[which], self.G, self.is_numeric)

    def statistic(self, G: Array) -> Array:
        """Return the statistic of each feature for one or more targets, (targets, features).

        The columns of `G` are those of the first target (see the attribute G), then those of the second, and so on.
        """
        squares = (G.T @ self.A) ** 2
        squares = squares.reshape(-1, self.G.shape[1], self.A.shape[1]).sum(axis=1)
        return np.add.reduceat(squares, np.flatnonzero(is_first_of_run(self.feature)), axis=1)

    def p_values(self) -> Array:
        """Return the theoretical p-values, of F tests for continuous features and χ² tests for discrete features."""
        m, groups = len(self.A), max(self.G.shape[1] - 1.0, 1.0)
        share = self.statistic(self.G)[0]
        levels = np.bincount(self.feature, minlength=len(self.discrete)) - 1.0
        within = np.clip(1.0 - share, 0.0, 1.0)
        within[within <= ROUNDING] = 0.0
        p = f_tail(within, np.clip(share, 0.0, 1.0), np.full(len(share), groups), np.full(len(share), m - groups - 1.0))
        chi2 = chdtrc(np.maximum(levels, 1.0) * groups, share * (m - 1.0 if self.is_numeric else 1.0))
        return np.where(self.discrete, chi2, p)

    def under(self, design: Design) -> ShareTest:
        """Return the test under a study design: means are taken within strata, and rows count by their weights.

        When the test shuffles the targets, the weights move with them.
        """
        m = len(self.A)
        weight, stratum = np.ones(m) if design.weight is None else design.weight / design.weight.max(), design.strata(m)
        A, G = _centred(self.A, np.ones(m), stratum), _centred(self.G, weight, stratum)
        return replace(self, A=A, G=weight[:, None] * G)

    def mid_p_values(self, run: Callable[..., Iterator[float]]) -> Array:
        """Return mid-p-values from all shuffles of two classes for features of few values; NaN for other features.

        `run` applies a function to each argument, in threads.
        """
        p = np.full(len(self.discrete), np.nan)
        is_chosen = self.G[:, 0] > 0
        if self.is_numeric or self.G.shape[1] != 2 or len(self.G) > MAX_EXACT_ROWS:
            return p
        first = np.flatnonzero(is_first_of_run(self.feature))
        n_columns = np.diff(np.r_[first, len(self.feature)])
        tested = np.flatnonzero(n_columns <= 1 + self.discrete)  # two levels have an indicator each
        # a few rows show which features are continuous
        some = np.sort(self.A[: 4 * MAX_EXACT_LEVELS][:, first[tested]], axis=0)
        tested = tested[(some[1:] > some[:-1]).sum(axis=0) < MAX_EXACT_LEVELS]
        p[tested] = list(run(lambda column: p_of_all_shuffles(self.A[:, column], is_chosen), first[tested]))
        return p

    def shuffled_p_values(
        self, ids: Array, seed: int, run: Callable[..., Iterator[Array]], units: Units | None = None
    ) -> Array:
        """Return p-values from random shuffles of the target. The shuffles depend on the ids of the rows.

        The smallest p-values come from a Pareto tail that is fitted to the statistics of the shuffles. `run` applies a
        function to each argument, in threads. If `units` are passed, they are shuffled instead of single rows.
        """
        A, G = self.A.astype(np.float32), self.G.astype(np.float32)
        test = ShareTest(A, self.feature, self.discrete, G, self.is_numeric)
        n = int(np.clip(MAX_MULTIPLICATIONS // max(A.size * G.shape[1], 1), *SHUFFLES))

        def shuffle(first: int) -> Array:
            streams = range(first, min(first + SHUFFLES_AT_ONCE, n))
            parts = []
            for keys in (row_keys(seed, CHECKS + t, ids) for t in streams):
                order = np.argsort(keys)
                if units is not None:
                    units.shuffle(keys, order)
                parts.append(G[order])
            return test.statistic(np.concatenate(parts, axis=1))

        null = np.sort(np.concatenate(list(run(shuffle, range(0, n, SHUFFLES_AT_ONCE)))), axis=0)
        T = test.statistic(G)[0] * (1.0 - 2e-6)
        beyond = (null >= T).sum(axis=0)
        p = (1.0 + beyond) / (n + 1.0)
        cut = null[int((1.0 - TAIL) * n)]
        excess = np.where(null > cut * (1.0 + 2e-6), null - cut, 0.0)
        n_excess = (excess > 0).sum(axis=0)
        far = (cut < T) & (n_excess > 0) & (beyond < MIN_BEYOND)
        p[far] = n_excess[far] / n * pareto_tails(excess[:, far], n_excess[far], T[far] - cut[far])
        return np.maximum(p, LEAST_P)


def _centred(x: Array, weight: Array, stratum: Array) -> Array:
    """Subtract from each row the weighted mean of its stratum."""
    order = np.argsort(stratum, kind="stable")
    present, first = np.unique(stratum[order], return_index=True)
    total = np.bincount(stratum, weight)[:, None] + LEAST_P
    sums = np.zeros((len(total), x.shape[1]))
    sums[present] = np.add.reduceat((weight[:, None] * x)[order], first, axis=0)
    return x - (sums / total)[stratum]


def p_of_all_shuffles(x: Array, is_chosen: Array) -> float:
    """Return the mid-p-value of the sum of x over the chosen rows, from the exact distribution over all shuffles of x.

    It is the share of the shuffles whose sum is farther from the expected value, plus half of the share whose sum is
    equally far. If x has few values, many shuffles are equally far, and p would be too large if all of them counted.

    Return NaN if there are too many different sums to compute them all. There are few if x has two values. There are
    also few if x has up to twelve values whose distances from the most frequent one are multiples of a step, and few
    rows have a value other than the most frequent one.
    """
    levels, line, count = np.unique(x, return_inverse=True, return_counts=True)
    if not 2 <= len(levels) <= MAX_EXACT_LEVELS:
        return np.nan
    steps = (levels - levels[count.argmax()]) / np.diff(levels).min()
    n, common = int(is_chosen.sum()), int(count.max())
    span, rare = np.abs(steps) @ count, len(x) - common
    if np.abs(steps - np.rint(steps)).max() > 1e-6 or (len(levels) > 2 and rare * rare * span > MAX_EXACT_SUMS):
        return np.nan
    offset = np.rint(steps).astype(np.int64)
    others = np.flatnonzero(offset)
    log_factorial = gammaln(np.arange(len(x) + 1) + 1.0)

    def log_ways(rows: int, k: Array) -> Array:
        return log_factorial[rows] - log_factorial[k] - log_factorial[rows - k]

    k = np.arange(max(0, n - common), min(rare, n) + 1)  # possible numbers of chosen rows with a rare value
    of_common = log_ways(common, n - k) - log_ways(len(x), np.array(n))
    if len(others) == 1:
        sums, ways = offset[others[0]] * k, np.exp(of_common + log_ways(rare, k))
    else:
        lowest = int((offset * count)[offset < 0].sum())
        width = round(span) + 1
        table = np.zeros((rare + 1, width))  # number of ways to choose k rows with rare values that have each sum
        table[0, -lowest] = 1.0
        for t in others.tolist():
            before, table = table, np.zeros_like(table)
            for c, way in enumerate(np.exp(log_ways(int(count[t]), np.arange(count[t] + 1)))):
                shift = c * int(offset[t])
                left, right = max(shift, 0), max(-shift, 0)
                table[c:, left : width - right] += way * before[: rare + 1 - c, right : width - left]
        sums, ways = np.arange(table.shape[1]) + lowest, np.exp(of_common) @ table[k]
    expected = n * (offset @ count) / len(x)
    beyond = np.abs(sums - expected) - abs(float(offset[line[is_chosen]].sum()) - expected)
    return float(ways[beyond > 1e-6].sum() + ways[np.abs(beyond) <= 1e-6].sum() / 2.0)


def pareto_tails(excess: Array, n: Array, x: Array) -> Array:
    """Return the probability of an excess larger than x in each column, from the sorted excesses beyond a threshold.

    A generalised Pareto distribution is fitted to the last n excesses of each column by probability-weighted moments.
    Its shape is at least 0; with a shape of 0, the tail is exponential.
    """
    rank = np.arange(len(excess))[::-1, None]
    first = excess.sum(axis=0) / n
    second = (excess * rank).sum(axis=0) / (n * np.maximum(n - 1.0, 1.0))
    lighter = np.maximum(first - 2.0 * second, 1e-9 * first)
    shape = np.where(n < MIN_BEYOND, 0.0, np.clip(2.0 - first / lighter, 0.0, MAX_SHAPE))
    heavy = np.maximum(shape, 1e-6)
    ratio = x / (first * (1.0 - shape))
    return np.where(shape < 1e-6, np.exp(-ratio), (1.0 + heavy * ratio) ** (-1.0 / heavy))


def correct_by_shuffles(p: Array, theory: Array, shuffled: Array) -> Array:
    """Return larger p-values for features whose p-value from theory is too small on a sample of the rows.

    `p` are the p-values from theory on all rows, `theory` and `shuffled` those from theory and from shuffles on the
    sample. log p is multiplied by log(shuffled)/log(theory), but by at most 1. If the sample holds all rows, the result
    is the larger of `theory` and `shuffled`.
    """
    factor = np.log(np.maximum(shuffled, LEAST_P)) / np.minimum(np.log(np.clip(theory, LEAST_P, 0.5)), -LEAST_P)
    factor = np.where(theory < 0.5, np.clip(factor, 0.0, 1.0), 1.0)
    return np.where(factor < 1.0, np.maximum(p, LEAST_P) ** factor, p)
