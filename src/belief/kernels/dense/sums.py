"""Sums and collisions of pairs of dense rows (4. and 5.)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from belief.kernels.dense.distance import FAST
from belief.method.arrays import Array


class Reach(NamedTuple):
    """When two values collide (|a - b| <= reach) and how fast the rate falls (cr = 1 - slope·|a - b|)."""

    reach: Array
    slope: Array
    discrete: Array


def tally(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach,
    total: Array, absent: Array, rates: Array,
) -> None:  # fmt: skip
    """Sum |a - b| over the pairs of each kind, and the collision rates.

    Parameters
    ----------
    kind : for each pair the line of `total` it is added to
    weight : empty, or for each pair the share that goes there; the rest goes to the line after it
    total : (kinds, features): Σ|a - b| in the feature's own unit
    absent : (kinds, features): the pairs with a missing value; empty where there are no missing values
    rates : (features): Σ cr; empty where nobody asks
    """
    if len(absent) or len(weight) or r.discrete.any():
        _tally_mixed(Xq, queries, aq, Xr, rows, ar, kind, weight, r, total, absent, rates)
    else:
        _tally_plain(Xq, queries, aq, Xr, rows, ar, kind, r.reach, r.slope, total, rates)


@njit(cache=True, nogil=True, fastmath=FAST)
def _tally_plain(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, reach: Array, slope: Array,
    total: Array, rates: Array,
) -> None:  # fmt: skip
    n = len(reach)
    p = 0
    while p < len(kind):
        x = Xq[queries[p], aq : aq + n]
        sums = total[kind[p]]
        if p + 3 < len(kind) and _alike(queries, kind, p):
            # four neighbours of one query: the sums are read and written once for all of them
            y0, y1 = Xr[rows[p], ar : ar + n], Xr[rows[p + 1], ar : ar + n]
            y2, y3 = Xr[rows[p + 2], ar : ar + n], Xr[rows[p + 3], ar : ar + n]
            if not len(rates):
                for j in range(n):
                    v = np.float64(x[j])
                    near = abs(v - np.float64(y0[j])) + abs(v - np.float64(y1[j]))
                    sums[j] += near + (abs(v - np.float64(y2[j])) + abs(v - np.float64(y3[j])))
            else:
                for j in range(n):
                    v, s, most = np.float64(x[j]), slope[j], reach[j]
                    d0, d1 = abs(v - np.float64(y0[j])), abs(v - np.float64(y1[j]))
                    d2, d3 = abs(v - np.float64(y2[j])), abs(v - np.float64(y3[j]))
                    sums[j] += (d0 + d1) + (d2 + d3)
                    few = _rate(d0, s, most) + _rate(d1, s, most)
                    rates[j] += few + (_rate(d2, s, most) + _rate(d3, s, most))
            p += 4
            continue
        y = Xr[rows[p], ar : ar + n]
        for j in range(n):
            d = abs(np.float64(x[j]) - np.float64(y[j]))
            sums[j] += d
            if len(rates):
                rates[j] += _rate(d, slope[j], reach[j])
        p += 1


@njit(cache=True, nogil=True)
def _tally_mixed(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach,
    total: Array, absent: Array, rates: Array,
) -> None:  # fmt: skip
    n = len(r.reach)
    for p in range(len(kind)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        share = weight[p] if len(weight) else 1.0
        for j in range(n):
            d = abs(np.float64(x[j]) - np.float64(y[j]))
            if d != d:
                absent[kind[p], j] += share
                if len(weight):
                    absent[kind[p] + 1, j] += 1.0 - share
                continue
            d = (1.0 if d > 0.0 else 0.0) if r.discrete[j] else d
            total[kind[p], j] += share * d
            if len(weight):
                total[kind[p] + 1, j] += (1.0 - share) * d
            if len(rates):
                rates[j] += _rate(d, r.slope[j], r.reach[j])


@njit(cache=True, nogil=True)
def _alike(queries: Array, kind: Array, p: int) -> bool:
    """Whether four pairs have one query and one kind."""
    alike = True
    for i in range(p + 1, p + 4):
        alike = alike and queries[i] == queries[p] and kind[i] == kind[p]
    return alike


@njit(cache=True, nogil=True, fastmath=FAST)
def _rate(d: float, slope: float, reach: float) -> float:
    """The collision rate of a difference d; 0 where d is NaN, since a missing value is never near."""
    return 1.0 - slope * d if d <= reach else 0.0


@njit(cache=True, nogil=True)
def collisions(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, R: Array, B: Array, P: Array
) -> None:
    """Write cr and b, and presence where P is not empty, into R, B and P (pairs x features)."""
    n = len(r.reach)
    for p in range(len(queries)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        rate = R[p]
        for j in range(n):
            d = abs(np.float64(x[j]) - np.float64(y[j]))
            d = (1.0 if d > 0.0 else d) if r.discrete[j] else d
            rate[j] = _rate(d, r.slope[j], r.reach[j])
        hit = B[p]
        for j in range(n):
            hit[j] = 1.0 if rate[j] > 0.0 else 0.0
        if len(P):
            for j in range(n):
                P[p, j] = 1.0 if x[j] == x[j] and y[j] == y[j] else 0.0


@njit(cache=True, nogil=True)
def half_hits(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, H: Array, gap: Array
) -> None:
    """Write h = (cr + b)/2 of each pair into H (pairs x features), float32; add Σ(b - h)² to `gap` (features)."""
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
                half[j] = _rate(d, 0.5 * r.slope[j], r.reach[j])
        else:
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                half[j] = _rate(d, 0.5 * r.slope[j], r.reach[j])
        for j in range(n):
            g = 1.0 - np.float64(half[j]) if half[j] > 0.0 else 0.0
            gap[j] += g * g
