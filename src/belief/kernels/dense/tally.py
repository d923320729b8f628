"""Sums of differences over pairs of dense rows, and the collision rates of pairs.

Pairs are sorted by query. The kind of a pair is the index of the total that its differences are added to. If
`Pairs.coupled` is set, the kinds 2·g and 2·g + 1 are the misses and the hits of the queries of group g. Then the
differences are first summed for each query and kind. These sums are added to the totals, and their squares and products
to `spread`, from which standard errors are computed.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.distance import FAST
from belief.kernels.shapes import Reach, Sums
from belief.method.arrays import Array


@kernel(fastmath=FAST)
def rate(d: float, slope: float, reach: float) -> float:
    """Return the collision rate cr of a difference d; 0 if d is NaN, because missing values do not collide."""
    return 1.0 - slope * d if d <= reach else 0.0


@kernel(fastmath=FAST)
def complement(d: float, slope: float, reach: float) -> float:
    """Return e = 1 - cr of a difference d, computed without a subtraction, which would lose digits; 0 if d is NaN."""
    return slope * d if d <= reach else (1.0 if d > reach else 0.0)


def tally(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach,
    sums: Sums,
) -> None:  # fmt: skip
    """Add |a - b| of pairs of rows to `sums`: to the totals by kind of pair, and to the spread over queries.

    Parameters
    ----------
    kind : the line of `sums.total` that each pair is added to
    weight : empty, or the share of each pair that is added to this line; the rest is added to the next line
    """
    mixed, coupled = bool(r.discrete.any()), len(sums.spread) > 0
    is_plain = not len(weight) and (coupled or len(sums.total) % 2 == 0)
    if len(sums.absent) or not (is_plain or (len(weight) and coupled and not mixed)):
        _mixed(Xq, queries, aq, Xr, rows, ar, kind, weight, r, sums)
    elif len(weight):
        _weighted(Xq, queries, aq, Xr, rows, ar, kind, weight, r, sums)
    else:
        _plain(Xq, queries, aq, Xr, rows, ar, kind, r, mixed, sums)


@kernel()
def _end_of_query(queries: Array, p: int) -> int:
    """Return the index after the last pair with the same query as pair p."""
    end = p + 1
    while end < len(queries) and queries[end] == queries[p]:
        end += 1
    return end


@kernel(fastmath=FAST)
def _plain(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, r: Reach, mixed: bool, s: Sums
) -> None:
    n, discrete, reach, slope, rates = len(r.reach), r.discrete, r.reach, r.slope, s.rates
    sides, pairs = np.empty((2, n)), np.empty(2)
    p = 0
    while p < len(kind):
        end, g = p + 1, kind[p] // 2
        while end < len(kind) and queries[end] == queries[p] and kind[end] // 2 == g:
            end += 1
        x = Xq[queries[p], aq : aq + n]
        sides[:] = 0.0
        pairs[:] = 0.0
        while p < end:
            side = sides[kind[p] & 1]
            if p + 3 < end and kind[p + 1] == kind[p] and kind[p + 2] == kind[p] and kind[p + 3] == kind[p]:
                # four neighbours at a time, so that the sums are read and written once for all
                y0, y1 = Xr[rows[p], ar : ar + n], Xr[rows[p + 1], ar : ar + n]
                y2, y3 = Xr[rows[p + 2], ar : ar + n], Xr[rows[p + 3], ar : ar + n]
                for j in range(n):
                    v = np.float64(x[j])
                    d0, d1 = abs(v - np.float64(y0[j])), abs(v - np.float64(y1[j]))
                    d2, d3 = abs(v - np.float64(y2[j])), abs(v - np.float64(y3[j]))
                    if mixed and discrete[j]:
                        d0, d1, d2, d3 = np.float64(d0 > 0), np.float64(d1 > 0), np.float64(d2 > 0), np.float64(d3 > 0)
                    side[j] += (d0 + d1) + (d2 + d3)
                    if len(rates):
                        first_two = rate(d0, slope[j], reach[j]) + rate(d1, slope[j], reach[j])
                        rates[j] += first_two + (rate(d2, slope[j], reach[j]) + rate(d3, slope[j], reach[j]))
                pairs[kind[p] & 1] += 4.0
                p += 4
                continue
            y = Xr[rows[p], ar : ar + n]
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                d = np.float64(d > 0) if mixed and discrete[j] else d
                side[j] += d
                if len(rates):
                    rates[j] += rate(d, slope[j], reach[j])
            pairs[kind[p] & 1] += 1.0
            p += 1
        miss, hit, total_miss, total_hit = sides[0], sides[1], s.total[2 * g], s.total[2 * g + 1]
        for j in range(n):
            total_miss[j] += miss[j]
            total_hit[j] += hit[j]
        if len(s.spread) and pairs[0] > 0.0 and pairs[1] > 0.0:
            first, second = s.spread[0, g], s.spread[1, g]
            per_miss, per_hit = 1.0 / pairs[0], 1.0 / pairs[1]
            for j in range(n):
                delta = miss[j] * per_miss - hit[j] * per_hit
                first[j] += delta
                second[j] += delta * delta


@kernel(fastmath=FAST)
def _weighted(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach, s: Sums
) -> None:
    n, reach, slope, rates = len(r.reach), r.reach, r.slope, s.rates
    miss, both = np.empty(n), np.empty(n)
    p = 0
    while p < len(kind):
        end, g = _end_of_query(queries, p), kind[p] // 2
        x = Xq[queries[p], aq : aq + n]
        miss[:] = 0.0
        both[:] = 0.0
        t, u = 0.0, 0.0
        for i in range(p, end):
            t += weight[i]
            u += 1.0 - weight[i]
        while p + 3 < end:  # four neighbours at a time, so that the sums are read and written once for all
            y0, y1 = Xr[rows[p], ar : ar + n], Xr[rows[p + 1], ar : ar + n]
            y2, y3 = Xr[rows[p + 2], ar : ar + n], Xr[rows[p + 3], ar : ar + n]
            w0, w1, w2, w3 = weight[p], weight[p + 1], weight[p + 2], weight[p + 3]
            for j in range(n):
                v = np.float64(x[j])
                d0, d1 = abs(v - np.float64(y0[j])), abs(v - np.float64(y1[j]))
                d2, d3 = abs(v - np.float64(y2[j])), abs(v - np.float64(y3[j]))
                miss[j] += (w0 * d0 + w1 * d1) + (w2 * d2 + w3 * d3)
                both[j] += (d0 + d1) + (d2 + d3)
                if len(rates):
                    first_two = rate(d0, slope[j], reach[j]) + rate(d1, slope[j], reach[j])
                    rates[j] += first_two + (rate(d2, slope[j], reach[j]) + rate(d3, slope[j], reach[j]))
            p += 4
        for i in range(p, end):
            y = Xr[rows[i], ar : ar + n]
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                miss[j] += weight[i] * d
                both[j] += d
                if len(rates):
                    rates[j] += rate(d, slope[j], reach[j])
        p = end
        for j in range(n):
            a, b = miss[j], both[j] - miss[j]
            s.total[2 * g, j] += a
            s.total[2 * g + 1, j] += b
            add_products(s.spread, g, j, a, b, t, u)


@kernel()
def add_products(spread: Array, g: int, j: int, a: float, b: float, t: float, u: float) -> None:
    """Add seven products of four sums of a query to `spread`, for group g and feature j.

    a and t are the sums of differences and of weights over the misses of the query; b and u are the same sums over its
    hits.
    """
    spread[0, g, j] += a * a
    spread[1, g, j] += a * b
    spread[2, g, j] += b * b
    spread[3, g, j] += a * t
    spread[4, g, j] += a * u
    spread[5, g, j] += b * t
    spread[6, g, j] += b * u


@kernel()
def _mixed(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach, s: Sums
) -> None:
    n = len(r.reach)
    coupled, missing = len(s.spread) > 0, len(s.absent) > 0
    sides, pairs = np.zeros((2, n)), np.zeros((2, n))
    p = 0
    while p < len(kind):
        end, g = _end_of_query(queries, p), kind[p] // 2
        x = Xq[queries[p], aq : aq + n]
        sides[:] = 0.0
        pairs[:] = 0.0
        for i in range(p, end):
            y = Xr[rows[i], ar : ar + n]
            share = weight[i] if len(weight) else 1.0
            side = kind[i] & 1
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                if d != d:
                    s.absent[kind[i], j] += share
                    if len(weight):
                        s.absent[kind[i] + 1, j] += 1.0 - share
                    continue
                d = (1.0 if d > 0.0 else 0.0) if r.discrete[j] else d
                if not coupled:
                    s.total[kind[i], j] += share * d
                    if len(weight):
                        s.total[kind[i] + 1, j] += (1.0 - share) * d
                else:
                    sides[side, j] += share * d
                    pairs[side, j] += share
                    if len(weight):
                        sides[1, j] += (1.0 - share) * d
                        pairs[1, j] += 1.0 - share
                if len(s.rates):
                    s.rates[j] += rate(d, r.slope[j], r.reach[j])
        p = end
        if not coupled:
            continue
        for j in range(n):
            a, b, t, u = sides[0, j], sides[1, j], pairs[0, j], pairs[1, j]
            s.total[2 * g, j] += a
            s.total[2 * g + 1, j] += b
            if len(weight):
                add_products(s.spread, g, j, a, b, t, u)
                if missing:
                    s.queries[0, g, j] += t * t
                    s.queries[1, g, j] += t * u
                    s.queries[2, g, j] += u * u
            elif t > 0.0 and u > 0.0:
                delta = a / t - b / u
                s.spread[0, g, j] += delta
                s.spread[1, g, j] += delta * delta
                if missing:
                    s.queries[0, g, j] += 1.0


def arrange(X: Array) -> Array:
    """Return rows in the layout that `collisions` reads: (features, rows)."""
    return np.ascontiguousarray(X.T, np.float64)


@kernel()
def collisions(
    X: Array, queries: Array, rows: Array, r: Reach, by_rate: bool, first: int, R: Array, P: Array, sums: Array
) -> None:
    """Write the collision rates cr of some pairs to R, (features, pairs), from pair `first` on.

    With `by_rate`, write their complements e = 1 - cr instead (see `Collisions`). If P, (features, pairs), is not
    empty, set it to 1 where both rows of a pair have a value, and otherwise to 0. If `sums`, (2, features), is not
    empty, add the sum and the sum of squares of the numbers written to R.
    """
    n = len(queries)
    for j in range(len(X)):
        _collisions_of_feature(
            X[j], queries, rows, r.reach[j], r.slope[j], r.discrete[j], by_rate, R[j, first : first + n]
        )
    for j in range(len(P)):
        x, out = X[j], P[j, first : first + n]
        for p in range(n):
            out[p] = 1.0 if x[queries[p]] == x[queries[p]] and x[rows[p]] == x[rows[p]] else 0.0
    for j in range(0, sums.shape[1], 4):
        _add_powers(R, j, first, n, sums)


@kernel()
def _collisions_of_feature(
    x: Array, queries: Array, rows: Array, reach: float, slope: float, discrete: bool, by_rate: bool, out: Array
) -> None:
    for p in range(len(queries)):
        out[p] = abs(x[queries[p]] - x[rows[p]])
    if discrete:
        for p in range(len(queries)):
            out[p] = 1.0 if out[p] > 0.0 else out[p]
    if by_rate:
        for p in range(len(queries)):
            out[p] = complement(out[p], slope, reach)
    else:
        for p in range(len(queries)):
            out[p] = rate(out[p], slope, reach)


@kernel()
def _add_powers(R: Array, j: int, first: int, n: int, sums: Array) -> None:
    """Add Σx and Σx² to `sums` for the features j to j + 3, where x are the n values in R from row `first` on.

    The values of a feature are added one after the other. With four features at a time, the CPU can still execute
    additions in parallel.
    """
    last = len(R) - 1
    a, b, c, d = R[j], R[min(j + 1, last)], R[min(j + 2, last)], R[min(j + 3, last)]
    a1, b1, c1, d1, a2, b2, c2, d2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(first, first + n):
        a1, b1, c1, d1 = a1 + a[p], b1 + b[p], c1 + c[p], d1 + d[p]
        a2, b2, c2, d2 = a2 + a[p] * a[p], b2 + b[p] * b[p], c2 + c[p] * c[p], d2 + d[p] * d[p]
    first_powers, second_powers = (a1, b1, c1, d1), (a2, b2, c2, d2)
    for i in range(min(4, len(R) - j)):
        sums[0, j + i] += first_powers[i]
        sums[1, j + i] += second_powers[i]


@kernel()
def half_hits(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, H: Array, gap: Array
) -> None:
    """Write h = (cr + b)/2 of each pair to H, (pairs, features); b is 1 for a collision and 0 otherwise.

    Add Σ(b - h)² to `gap`.
    """
    n = len(r.reach)
    mixed = False
    for j in range(n):
        mixed |= r.discrete[j]
    for p in range(len(queries)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        half = H[p]
        if mixed:
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                d = (1.0 if d > 0.0 else d) if r.discrete[j] else d
                half[j] = rate(d, 0.5 * r.slope[j], r.reach[j])
        else:
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                half[j] = rate(d, 0.5 * r.slope[j], r.reach[j])
        for j in range(n):
            g = 1.0 - np.float64(half[j]) if half[j] > 0.0 else 0.0
            gap[j] += g * g
