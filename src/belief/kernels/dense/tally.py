"""Sums over pairs of dense rows (4.): of each kind of pair, and how they vary from query to query.

The pairs of a query lie together. Where its kinds come in couples (2·g, 2·g + 1: far and near), the sums of a query are
gathered first, and what it has to say is added to `spread` before they join the others.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.collisions import rate
from belief.kernels.dense.distance import FAST
from belief.kernels.shapes import Reach, Sums
from belief.method.arrays import Array


def tally(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach,
    sums: Sums,
) -> None:  # fmt: skip
    """Add up |a - b| over the pairs.

    Parameters
    ----------
    kind : for each pair the line of `total` it is added to
    weight : empty, or for each pair the share that goes there; the rest goes to the line after it
    """
    mixed = bool(r.discrete.any())
    if len(sums.absent) or (mixed and len(weight)) or not len(sums.spread):
        _mixed(Xq, queries, aq, Xr, rows, ar, kind, weight, r, sums)
    elif len(weight):
        _weighted(Xq, queries, aq, Xr, rows, ar, kind, weight, r, sums)
    else:
        _plain(Xq, queries, aq, Xr, rows, ar, kind, r, mixed, sums)


@kernel()
def _run(queries: Array, p: int) -> int:
    """Where the pairs of the query of pair p end."""
    end = p + 1
    while end < len(queries) and queries[end] == queries[p]:
        end += 1
    return end


@kernel(fastmath=FAST)
def _plain(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, r: Reach, mixed: bool, s: Sums
) -> None:
    n, discrete, reach, slope, rates = len(r.reach), r.discrete, r.reach, r.slope, s.rates
    sides, of = np.empty((2, n)), np.empty(2)
    p = 0
    while p < len(kind):
        end, g = _run(queries, p), kind[p] // 2
        x = Xq[queries[p], aq : aq + n]
        sides[:] = 0.0
        of[:] = 0.0
        while p < end:
            side = sides[kind[p] & 1]
            if p + 3 < end and kind[p + 1] == kind[p] and kind[p + 2] == kind[p] and kind[p + 3] == kind[p]:
                # four neighbours at a time: the sums are read and written once for all of them
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
                        near = rate(d0, slope[j], reach[j]) + rate(d1, slope[j], reach[j])
                        rates[j] += near + (rate(d2, slope[j], reach[j]) + rate(d3, slope[j], reach[j]))
                of[kind[p] & 1] += 4.0
                p += 4
                continue
            y = Xr[rows[p], ar : ar + n]
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                d = np.float64(d > 0) if mixed and discrete[j] else d
                side[j] += d
                if len(rates):
                    rates[j] += rate(d, slope[j], reach[j])
            of[kind[p] & 1] += 1.0
            p += 1
        far, near, total_far, total_near = sides[0], sides[1], s.total[2 * g], s.total[2 * g + 1]
        for j in range(n):
            total_far[j] += far[j]
            total_near[j] += near[j]
        if of[0] > 0.0 and of[1] > 0.0:
            first, second = s.spread[0, g], s.spread[1, g]
            per_far, per_near = 1.0 / of[0], 1.0 / of[1]
            for j in range(n):
                delta = far[j] * per_far - near[j] * per_near
                first[j] += delta
                second[j] += delta * delta


@kernel(fastmath=FAST)
def _weighted(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach, s: Sums
) -> None:
    n, reach, slope, rates = len(r.reach), r.reach, r.slope, s.rates
    far, both = np.empty(n), np.empty(n)
    p = 0
    while p < len(kind):
        end, g = _run(queries, p), kind[p] // 2
        x = Xq[queries[p], aq : aq + n]
        far[:] = 0.0
        both[:] = 0.0
        t, u = 0.0, 0.0
        for i in range(p, end):
            t += weight[i]
            u += 1.0 - weight[i]
        while p + 3 < end:  # four neighbours at a time: the sums are read and written once for all of them
            y0, y1 = Xr[rows[p], ar : ar + n], Xr[rows[p + 1], ar : ar + n]
            y2, y3 = Xr[rows[p + 2], ar : ar + n], Xr[rows[p + 3], ar : ar + n]
            w0, w1, w2, w3 = weight[p], weight[p + 1], weight[p + 2], weight[p + 3]
            for j in range(n):
                v = np.float64(x[j])
                d0, d1 = abs(v - np.float64(y0[j])), abs(v - np.float64(y1[j]))
                d2, d3 = abs(v - np.float64(y2[j])), abs(v - np.float64(y3[j]))
                far[j] += (w0 * d0 + w1 * d1) + (w2 * d2 + w3 * d3)
                both[j] += (d0 + d1) + (d2 + d3)
                if len(rates):
                    near = rate(d0, slope[j], reach[j]) + rate(d1, slope[j], reach[j])
                    rates[j] += near + (rate(d2, slope[j], reach[j]) + rate(d3, slope[j], reach[j]))
            p += 4
        for i in range(p, end):
            y = Xr[rows[i], ar : ar + n]
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                far[j] += weight[i] * d
                both[j] += d
                if len(rates):
                    rates[j] += rate(d, slope[j], reach[j])
        p = end
        for j in range(n):
            a, b = far[j], both[j] - far[j]
            s.total[2 * g, j] += a
            s.total[2 * g + 1, j] += b
            add_products(s.spread, g, j, a, b, t, u)


@kernel()
def add_products(spread: Array, g: int, j: int, a: float, b: float, t: float, u: float) -> None:
    """Add the products of a query's weighted sums, a far and b near, and of its weights t and u."""
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
    sides, of = np.zeros((2, n)), np.zeros((2, n))
    p = 0
    while p < len(kind):
        end, g = _run(queries, p), kind[p] // 2
        x = Xq[queries[p], aq : aq + n]
        sides[:] = 0.0
        of[:] = 0.0
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
                    of[side, j] += share
                    if len(weight):
                        sides[1, j] += (1.0 - share) * d
                        of[1, j] += 1.0 - share
                if len(s.rates):
                    s.rates[j] += rate(d, r.slope[j], r.reach[j])
        p = end
        if not coupled:
            continue
        for j in range(n):
            a, b, t, u = sides[0, j], sides[1, j], of[0, j], of[1, j]
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
