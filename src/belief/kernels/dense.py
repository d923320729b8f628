"""The kernels for dense rows: a block of numbers in, arrays out. No file, no thread, no class knows of another.

Rows come as `(X, rows, a)`: row i of the block is X[rows[i]], its first column X[.., a]. So an array in memory is read
where it lies, and a block gathered from elsewhere looks the same. A missing value is a NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from belief.method.partials import Array

_FAST = {"reassoc", "contract"}  # lets sums run in vector lanes; NaN keeps its meaning


class Geometry(NamedTuple):
    """What a kernel must know of the features of the slice it works on (all arrays are per feature)."""

    mean: Array
    per_unit: Array  # 1/u, and 0 for a constant feature
    spread: Array  # what a missing value is expected to cost
    discrete: Array
    first: Array  # the levels of feature j are level[first[j]:first[j + 1]], with shares p
    level: Array
    share: Array
    embedded: Array  # at which column of the search matrix the feature begins, -1: it is compared directly
    point: Array  # where the coordinates of feature j's levels begin in `points`
    points: Array


class Reach(NamedTuple):
    """When two values collide (|a - b| <= reach) and how fast the rate falls (cr = 1 - slope·|a - b|)."""

    reach: Array
    slope: Array
    discrete: Array


@njit(cache=True, nogil=True)
def gather(X: Array, rows: Array, columns: Array, out: Array) -> None:
    """Copy some columns of some rows to `out`."""
    for i in range(len(rows)):
        x = X[rows[i]]
        for j in range(len(columns)):
            out[i, j] = x[columns[j]]


# --- 1. the summary --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def moments(X: Array, lo: int, hi: int, a: int, b: int, out: Array) -> None:
    """Count, mean, M2, minimum, maximum and non-zeros of columns a to b over rows lo to hi, into out (6, b - a)."""
    n = b - a
    # separate arrays and short loops: each runs in vector lanes, and the row stays in the cache
    count, mean, m2, nonzero = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    least, most = np.empty(n, X.dtype), np.empty(n, X.dtype)
    for j in range(n):
        least[j] = most[j] = X[lo, a + j]
    for i in range(lo, hi):
        x = X[i, a:b]
        for j in range(n):
            there = x[j] == x[j]
            count[j] += there
            mean[j] += np.float64(x[j]) if there else 0.0
        for j in range(n):
            least[j] = least[j] if least[j] <= x[j] or x[j] != x[j] else x[j]
            most[j] = most[j] if most[j] >= x[j] or x[j] != x[j] else x[j]
        for j in range(n):
            nonzero[j] += x[j] != 0.0
    for j in range(n):
        mean[j] = mean[j] / count[j] if count[j] > 0.0 else 0.0
    for i in range(lo, hi):
        x = X[i, a:b]
        for j in range(n):
            d = np.float64(x[j]) - mean[j]
            m2[j] += d * d if d == d else 0.0
    for j in range(n):  # one by one: assigning whole rows takes seconds to compile
        out[0, j], out[1, j], out[2, j], out[5, j] = count[j], mean[j], m2[j], nonzero[j]
        out[3, j], out[4, j] = least[j], most[j]  # NaN where nothing is present: the maximum is not above the minimum


@njit(cache=True, nogil=True)
def levels(X: Array, lo: int, hi: int, columns: Array, value: Array, count: Array, found: Array) -> None:
    """The distinct values of some columns and how often each occurs; found = -1 where there are more than fit."""
    most = value.shape[1]
    found[:] = 0
    for i in range(lo, hi):
        for t in range(len(columns)):
            x = np.float64(X[i, columns[t]])
            if x != x or found[t] < 0:
                continue
            v = 0
            while v < found[t] and value[t, v] != x:
                v += 1
            if v == found[t]:
                if v == most:
                    found[t] = -1
                    continue
                value[t, v] = x
                count[t, v] = 0
                found[t] += 1
            count[t, v] += 1


# --- 3. neighbours ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _find(level: Array, lo: int, hi: int, x: float) -> int:
    """The position of x among the sorted levels lo to hi."""
    guess = lo + int(x - level[lo])  # codes that follow one another need no search
    if lo <= guess < hi and level[guess] == x:
        return guess
    while lo < hi:
        mid = (lo + hi) // 2
        if level[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def embed(X: Array, rows: Array, a: int, g: Geometry, per_scale: float, out: Array, norm: Array) -> None:
    """Write each row as a point whose squared Euclidean distances are d²; add the squared norms to `norm`.

    A continuous feature is (x - mean)/u. A discrete one with L levels is the corner of a regular simplex with edges of
    length 1, centred on the mean of the data, in L - 1 columns. A missing value is the mean, that is zero, and adds its
    spread to the norm. Everything is multiplied by `per_scale`, to stay within float32.
    """
    if g.discrete.any():
        _embed_mixed(X, rows, a, g, per_scale, out, norm)
    else:
        _embed_plain(X, rows, a, g.mean, g.per_unit, g.spread, per_scale, out, norm)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _embed_plain(
    X: Array,
    rows: Array,
    a: int,
    mean: Array,
    per_unit: Array,
    spread: Array,
    per_scale: float,
    out: Array,
    norm: Array,
) -> None:
    n_features, square = len(mean), per_scale * per_scale
    for i in range(len(rows)):
        x = X[rows[i], a : a + n_features]
        total = 0.0
        for j in range(n_features):
            z = (np.float64(x[j]) - mean[j]) * per_unit[j] * per_scale
            there = z == z
            z = z if there else 0.0
            total += z * z + (0.0 if there else spread[j] * square)
            out[i, j] = z
        norm[i] += total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _embed_mixed(X: Array, rows: Array, a: int, g: Geometry, per_scale: float, out: Array, norm: Array) -> None:
    n_features, square = len(g.mean), per_scale * per_scale
    mean, per_unit, spread, discrete = g.mean, g.per_unit, g.spread, g.discrete
    for i in range(len(rows)):
        x = X[rows[i], a : a + n_features]
        total = 0.0
        for j in range(n_features):
            v, at = np.float64(x[j]), g.embedded[j]
            if not discrete[j]:
                z = (v - mean[j]) * per_unit[j] * per_scale
                out[i, at] = z if z == z else 0.0
                total += z * z if z == z else spread[j] * square
                continue
            if at < 0:
                total += 0.5 * square  # as one-hot/√2 would have it; `match` adds the products
                continue
            first = g.first[j]
            width = g.first[j + 1] - first - 1
            if v != v:
                total += spread[j] * square
                for t in range(width):
                    out[i, at + t] = 0.0
                continue
            base = g.point[j] + (_find(g.level, first, first + width + 1, v) - first) * width
            for t in range(width):
                z = g.points[base + t] * per_scale
                out[i, at + t] = z
                total += z * z
        norm[i] += total


@njit(cache=True, nogil=True)
def _cost(x: float, y: float, j: int, g: Geometry) -> float:
    """Δ² of feature j, and what is to be expected of it where x or y is missing."""
    if x == x and y == y:
        d = (1.0 if x != y else 0.0) if g.discrete[j] else x - y
        return (d * g.per_unit[j]) ** 2
    if x != x and y != y:
        return 2.0 * g.spread[j]
    there = x if x == x else y
    if g.per_unit[j] == 0.0:
        return 0.0
    if g.discrete[j]:
        return 1.0 - g.share[_find(g.level, g.first[j], g.first[j + 1], there)]
    return ((there - g.mean[j]) * g.per_unit[j]) ** 2 + g.spread[j]


@njit(cache=True, nogil=True)
def match(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, g: Geometry, square: float, product: Array
) -> None:
    """Add the products of the discrete features with too many levels to embed: ½·(1 - cost) each."""
    y, share = np.empty(len(rows)), np.empty(len(rows))  # the values of the rows, and how frequent each is
    half = np.float32(0.5 * square)
    for j in range(len(g.mean)):
        if g.embedded[j] >= 0 or not g.discrete[j]:
            continue
        lo, hi = g.first[j], g.first[j + 1]
        for r in range(len(rows)):
            y[r] = np.float64(Xr[rows[r], ar + j])
            share[r] = g.share[_find(g.level, lo, hi, y[r])] if y[r] == y[r] else 1.0 - 2.0 * g.spread[j]
        for q in range(len(queries)):
            x = np.float64(Xq[queries[q], aq + j])
            line = product[q]
            if x == x:
                expected = np.float32(half * g.share[_find(g.level, lo, hi, x)])
                for r in range(len(rows)):
                    line[r] += half if y[r] == x else (np.float32(0.0) if y[r] == y[r] else expected)
            else:
                for r in range(len(rows)):
                    line[r] += np.float32(half * share[r])


def distances(Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, g: Geometry, d2: Array) -> None:
    """Add d² over the features of this slice, in float64, for each pair (queries[p], rows[p])."""
    part = np.zeros(len(d2))
    if g.discrete.any():
        _distances_mixed(Xq, queries, aq, Xr, rows, ar, g.per_unit, g.discrete, part)
    else:
        _distances_plain(Xq, queries, aq, Xr, rows, ar, g.per_unit, part)
    lost = np.flatnonzero(np.isnan(part))  # a missing value makes the whole sum NaN: then the long way
    if len(lost):
        part[lost] = 0.0
        _distances_missing(Xq, queries, aq, Xr, rows, ar, g, lost, part)
    d2 += part


@njit(cache=True, nogil=True, fastmath=_FAST)
def _distances_plain(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, per_unit: Array, d2: Array
) -> None:
    n = len(per_unit)
    for p in range(len(d2)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        total = 0.0
        for j in range(n):
            d = (np.float64(x[j]) - np.float64(y[j])) * per_unit[j]
            total += d * d
        d2[p] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _distances_mixed(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, per_unit: Array, discrete: Array, d2: Array
) -> None:
    n = len(per_unit)
    for p in range(len(d2)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        total = 0.0
        lost = 0
        for j in range(n):
            d = np.float64(x[j]) - np.float64(y[j])
            lost += d != d
            d = (1.0 if d != 0.0 else 0.0) if discrete[j] else d
            total += (d * per_unit[j]) ** 2
        d2[p] = np.nan if lost > 0 else total


@njit(cache=True, nogil=True)
def _distances_missing(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, g: Geometry, pairs: Array, d2: Array
) -> None:
    for p in pairs:
        for j in range(len(g.mean)):
            d2[p] += _cost(np.float64(Xq[queries[p], aq + j]), np.float64(Xr[rows[p], ar + j]), j, g)


@njit(cache=True, nogil=True)
def hashes(bits: Array, rows: Array, a: int, multiplier: Array, out: Array) -> None:
    """Add a 64-bit hash of the bits of each row to `out`."""
    n = len(multiplier)
    for i in range(len(rows)):
        x = bits[rows[i], a : a + n]
        h = np.int64(0)
        for j in range(n):
            h += (np.int64(x[j]) ^ (np.int64(x[j]) >> 15)) * multiplier[j]
        out[i] += h


# --- 4. and 5. the tally ---------------------------------------------------------------------------------------------


def tally(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, r: Reach,
    total: Array, absent: Array, marginal: Array,
) -> None:  # fmt: skip
    """Sum |a - b| over the pairs of each kind, and the collision rates.

    Parameters
    ----------
    kind : for each pair the line of `total` it is added to (class of the query, hit or miss)
    total : (kinds, features): Σ|a - b| in the feature's own unit
    absent : (kinds, features): the pairs with a missing value; empty where there are no missing values
    marginal : (features): Σ cr
    """
    if len(absent) or r.discrete.any():
        _tally_mixed(Xq, queries, aq, Xr, rows, ar, kind, r, total, absent, marginal)
    else:
        _tally_plain(Xq, queries, aq, Xr, rows, ar, kind, r.reach, r.slope, total, marginal)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _tally_plain(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, reach: Array, slope: Array,
    total: Array, marginal: Array,
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
            for j in range(n):
                v, s, most = np.float64(x[j]), slope[j], reach[j]
                d0, d1 = abs(v - np.float64(y0[j])), abs(v - np.float64(y1[j]))
                d2, d3 = abs(v - np.float64(y2[j])), abs(v - np.float64(y3[j]))
                sums[j] += (d0 + d1) + (d2 + d3)
                rates = _rate(d0, s, most) + _rate(d1, s, most)
                marginal[j] += rates + (_rate(d2, s, most) + _rate(d3, s, most))
            p += 4
            continue
        y = Xr[rows[p], ar : ar + n]
        for j in range(n):
            d = abs(np.float64(x[j]) - np.float64(y[j]))
            sums[j] += d
            marginal[j] += _rate(d, slope[j], reach[j])
        p += 1


@njit(cache=True, nogil=True)
def _tally_mixed(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, r: Reach,
    total: Array, absent: Array, marginal: Array,
) -> None:  # fmt: skip
    n = len(r.reach)
    for p in range(len(kind)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        sums = total[kind[p]]
        for j in range(n):
            d = abs(np.float64(x[j]) - np.float64(y[j]))
            if d != d:
                absent[kind[p], j] += 1.0
                continue
            d = (1.0 if d > 0.0 else 0.0) if r.discrete[j] else d
            sums[j] += d
            marginal[j] += _rate(d, r.slope[j], r.reach[j])


@njit(cache=True, nogil=True)
def _alike(queries: Array, kind: Array, p: int) -> bool:
    """Whether four pairs have one query and one kind."""
    alike = True
    for i in range(p + 1, p + 4):
        alike = alike and queries[i] == queries[p] and kind[i] == kind[p]
    return alike


@njit(cache=True, nogil=True, fastmath=_FAST)
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
def halfway(
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
