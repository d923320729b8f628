"""Distances between dense rows: by a matrix product of rows embedded as points, and pair by pair in float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belief.kernels.compiling import kernel
from belief.method.arrays import Array

FAST = {"reassoc", "contract"}  # allows vectorised sums; NaN still works


class Geometry(NamedTuple):
    """The definition of distances in the features of a slice. Most arrays have one entry per feature."""

    mean: Array
    per_unit: Array  # 1/u, 0 for constant features
    spread: Array  # expected Δ² between a value and the mean, which a missing value adds to a distance
    discrete: Array
    first: Array  # feature j has the levels level[first[j]:first[j + 1]], and share[first[j]:first[j + 1]]
    level: Array
    share: Array
    embedded: Array  # first column of the feature in the points; -1 if its values are compared directly
    point: Array  # start of the coordinates of the feature's levels in `points`
    points: Array


@kernel()
def _find(level: Array, lo: int, hi: int, x: float) -> int:
    """Return the position of x among the sorted values level[lo:hi]."""
    guess = lo + int(x - level[lo])  # consecutive codes need no search
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
    """Write rows to `out` as points whose squared Euclidean distances are d², and add their squared norms to `norm`.

    A continuous feature becomes (x - mean)/u, where u is its unit (method.md, section 1). A discrete feature with L
    levels becomes the corner of a regular simplex with edges of length 1, in L - 1 columns; the mean of the data is at
    zero. A missing value becomes zero, the mean, and adds `g.spread` to the norm. All coordinates are multiplied by
    `per_scale`, so that they stay in the range of float32.
    """
    if g.discrete.any():
        _embed_mixed(X, rows, a, g, per_scale, out, norm)
    else:
        _embed_plain(X, rows, a, g.mean, g.per_unit, g.spread, per_scale, out, norm)


@kernel(fastmath=FAST)
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
            present = z == z
            z = z if present else 0.0
            total += z * z + (0.0 if present else spread[j] * square)
            out[i, j] = z
        norm[i] += total


@kernel(fastmath=FAST)
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
                total += 0.5 * square  # the squared norm of one-hot columns/√2, whose products `add_matches` adds
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


@kernel()
def _cost(x: float, y: float, j: int, g: Geometry) -> float:
    """Return Δ² between two values of feature j; the expected Δ² if a value is missing."""
    if x == x and y == y:
        d = (1.0 if x != y else 0.0) if g.discrete[j] else x - y
        return (d * g.per_unit[j]) ** 2
    if x != x and y != y:
        return 2.0 * g.spread[j]
    present = x if x == x else y
    if g.per_unit[j] == 0.0:
        return 0.0
    if g.discrete[j]:
        return 1.0 - g.share[_find(g.level, g.first[j], g.first[j + 1], present)]
    return ((present - g.mean[j]) * g.per_unit[j]) ** 2 + g.spread[j]


@kernel()
def add_matches(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, g: Geometry, square: float, product: Array
) -> None:
    """Add ½·(1 - Δ²) to the product of each two rows, for each discrete feature with too many levels to be embedded."""
    y, share = np.empty(len(rows)), np.empty(len(rows))  # the values of the rows, and the frequency of each
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
    """Add d² over the features of a slice to `d2`, in float64, for each pair of rows (queries[p], rows[p])."""
    part = np.zeros(len(d2))
    if g.discrete.any():
        _distances_mixed(Xq, queries, aq, Xr, rows, ar, g.per_unit, g.discrete, part)
    else:
        _distances_plain(Xq, queries, aq, Xr, rows, ar, g.per_unit, part)
    lost = np.flatnonzero(np.isnan(part))  # pairs with missing values, which are computed again
    if len(lost):
        part[lost] = 0.0
        _distances_missing(Xq, queries, aq, Xr, rows, ar, g, lost, part)
    d2 += part


@kernel(fastmath=FAST)
def _distances_plain(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, per_unit: Array, d2: Array
) -> None:
    n, p = len(per_unit), 0
    while p < len(d2):
        q = queries[p]
        x = Xq[q, aq : aq + n]
        if p + 3 < len(d2) and queries[p + 1] == q and queries[p + 2] == q and queries[p + 3] == q:
            # four neighbours at a time, so that the query is read once for all
            y0, y1 = Xr[rows[p], ar : ar + n], Xr[rows[p + 1], ar : ar + n]
            y2, y3 = Xr[rows[p + 2], ar : ar + n], Xr[rows[p + 3], ar : ar + n]
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                v, u = np.float64(x[j]), per_unit[j]
                t0 += ((v - np.float64(y0[j])) * u) ** 2
                t1 += ((v - np.float64(y1[j])) * u) ** 2
                t2 += ((v - np.float64(y2[j])) * u) ** 2
                t3 += ((v - np.float64(y3[j])) * u) ** 2
            d2[p], d2[p + 1], d2[p + 2], d2[p + 3] = t0, t1, t2, t3
            p += 4
            continue
        y = Xr[rows[p], ar : ar + n]
        total = 0.0
        for j in range(n):
            total += ((np.float64(x[j]) - np.float64(y[j])) * per_unit[j]) ** 2
        d2[p] = total
        p += 1


@kernel(fastmath=FAST)
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


@kernel()
def _distances_missing(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, g: Geometry, pairs: Array, d2: Array
) -> None:
    for p in pairs:
        for j in range(len(g.mean)):
            d2[p] += _cost(np.float64(Xq[queries[p], aq + j]), np.float64(Xr[rows[p], ar + j]), j, g)


@kernel()
def hash_bits(bits: Array, rows: Array, a: int, multiplier: Array, out: Array) -> None:
    """Add a 64-bit hash of the bits of each row to its entry in `out`."""
    n = len(multiplier)
    for i in range(len(rows)):
        x = bits[rows[i], a : a + n]
        h = np.int64(0)
        for j in range(n):
            h += (np.int64(x[j]) ^ (np.int64(x[j]) >> 15)) * multiplier[j]
        out[i] += h
