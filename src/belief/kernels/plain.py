"""The kernels for dense rows in plain numpy: for tables so small that to compile those of numba would take far longer.

Names and arguments are those of `belief.kernels.dense`, and so are the numbers, up to the order in which they are added
up. Only the neighbours are found in another way: every distance is computed, and the smallest are kept.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.shapes import TIE_MARGIN, Reach, Sums
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.sampling import mix


def _power_of_ten(n: int) -> float:
    """By squaring, as compiled code raises to a whole power: beyond 10^22 the last bit is the same too."""
    out, base = 1.0, 10.0
    while n:
        out, base, n = (out * base if n & 1 else out), base * base, n >> 1
    return out


POWERS = np.array([_power_of_ten(n) for n in range(309)])

# --- 1. the summary ---


def moments(X: Array, lo: int, hi: int, a: int, b: int, out: Array, group: Array, total: Array, absent: Array) -> None:
    """Moments of columns a to b over rows lo to hi, into out (7, b - a); and of each group, Σ(x - mean) and gaps."""
    x = X[lo:hi, a:b].astype(np.float64)
    there = x == x
    count = there.sum(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities are refused when all is read, by name
        mean = np.where(there, x, 0.0).sum(axis=0) / np.maximum(count, 1)
        d = x - mean
        d = np.where(d == d, d, 0.0)
        m2 = (d * d).sum(axis=0)
        np.add.at(total, group, d)
    _file(absent, group, ~there)
    least, most = np.fmin.reduce(x), np.fmax.reduce(x)
    out[:] = count, mean, m2, least, most, (x != 0.0).sum(axis=0), ((x > least) & (x < most)).sum(axis=0)


def levels(X: Array, columns: Array, group: Array, value: Array, count: Array, found: Array) -> None:
    """Leave all columns to be sorted."""
    found[:] = -1


def of_dense(X: Array, rows: Array, a: int, keys: Array, out: Array) -> None:
    """Add the features from column `a` on, of which these are the keys, to the numbers of the rows."""
    x = X[rows, a : a + len(keys)].astype(np.float64)
    bits = np.where(x == x, x, np.nan).view(np.uint64)  # all missing values are alike
    out += np.where(x != 0.0, mix(bits ^ keys), np.uint64(0)).sum(axis=1)


# --- 3. neighbours ---


def distances(Q: Array, R: Array, difference: Difference) -> Array:
    """The exact d² of each row of Q and each row of R."""
    d2, cost = np.zeros((2, len(Q), len(R)))
    first = np.searchsorted(difference.levels.feature, np.arange(Q.shape[1] + 1))
    per_unit = difference.per_unit
    for j in np.flatnonzero(~difference.constant).tolist():
        x, y = Q[:, j, None], R[:, j]
        (np.not_equal if difference.discrete[j] else np.subtract)(x, y, out=cost, casting="unsafe")
        cost *= per_unit[j]
        cost *= cost
        if difference.missing:
            known = (z[first[j] : first[j + 1]] for z in (difference.levels.value, difference.levels.count))
            _mend(cost, x, y, j, difference, *known)
        d2 += cost
    return d2


def _mend(cost: Array, x: Array, y: Array, j: int, difference: Difference, level: Array, count: Array) -> None:
    """What is to be expected of the pairs in which a value of feature j is missing."""
    no_x, no_y = np.flatnonzero(np.isnan(x)), np.flatnonzero(np.isnan(y))
    cost[:, no_y] = _to_missing(x, j, difference, level, count)
    cost[no_x] = _to_missing(y, j, difference, level, count)


def _to_missing(x: Array, j: int, difference: Difference, level: Array, count: Array) -> Array:
    """What is to be expected of Δ² between each value of feature j and a missing one."""
    spread = difference.spread[j]
    if difference.discrete[j]:
        share = count / count.sum()
        near = 1.0 - share[np.minimum(np.searchsorted(level, x), len(level) - 1)]
    else:
        near = ((x - difference.mean[j]) * difference.per_unit[j]) ** 2 + spread
    return np.where(x == x, near, 2.0 * spread)


def round9(x: Array) -> Array:
    """Round to 9 significant digits, so that equal distances summed in another order compare equal."""
    out = np.zeros_like(x)
    some = x > 0.0
    digits = np.minimum(8 - np.floor(np.log10(x[some])), 300).astype(np.int64)
    power = POWERS[np.abs(digits)]
    up = digits >= 0
    with np.errstate(over="ignore"):  # in what is not chosen
        scaled = np.rint(np.where(up, x[some] * power, x[some] / power))
        out[some] = np.where(up, scaled / power, scaled * power)
    return out


def smallest(d2: Array, size: int) -> tuple[Array, Array, Array, Array]:
    """The smallest of each line, of equals the first: their line, rank and column, and the d² rounded; NaN is none."""
    n, width = d2.shape
    far = np.partition(d2, size - 1, axis=1)[:, size - 1] if size < width else np.full(n, np.inf)
    line, column = np.nonzero(d2 <= (far * (1 + TIE_MARGIN))[:, None])  # what may be among them when rounded
    d = round9(d2[line, column])
    order = np.lexsort((column, d, line))
    rank = np.arange(len(line)) - np.searchsorted(line, line)
    kept = rank < size
    return line[kept], rank[kept], column[order][kept], d[order][kept]


# --- 4. and 5. sums over pairs ---


def _pairs(Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach) -> tuple[Array, Array]:
    """|a - b| of each pair and feature, 0 where one is missing; and whether both are there."""
    n = len(r.reach)
    d = np.abs(Xq[queries, aq : aq + n].astype(np.float64) - Xr[rows, ar : ar + n].astype(np.float64))
    there = d == d
    return np.where(there, np.where(r.discrete, d > 0.0, d), 0.0), there


def _rates(d: Array, there: Array, slope: Array, reach: Array) -> Array:
    """The collision rates; 0 where a value is missing, since that is never near."""
    return np.where(there & (d <= reach), 1.0 - slope * d, 0.0)


def tally(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach,
    sums: Sums,
) -> None:  # fmt: skip
    """Add up |a - b| over the pairs, and how it varies from query to query."""
    d, there = _pairs(Xq, queries, aq, Xr, rows, ar, r)
    share = weight if len(weight) else np.ones(len(kind))
    if len(sums.rates):
        sums.rates[:] += _rates(d, there, r.slope, r.reach).sum(axis=0)
    if len(sums.absent):
        _file(sums.absent, kind, ~there, share)
    if not len(sums.spread):
        _file(sums.total, kind, d, share)
    elif len(kind):
        _couples(queries, kind, d, there, share, sums)


def _file(out: Array, kind: Array, values: Array, share: Array | float = 1.0) -> None:
    """Add the values, or a share of them, to the lines of their kind, and the rest to the line after it."""
    lines = np.arange(len(out))[:, None]
    out += (share * (kind == lines) + (1.0 - share) * (kind + 1 == lines)) @ values


def _couples(queries: Array, kind: Array, d: Array, there: Array, share: Array, s: Sums) -> None:
    """The sums of each query first, and what it has to say, before they join the others."""
    starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    far = np.where(kind & 1, 0.0, share)[:, None]  # what is not far is near
    a, b = (np.add.reduceat(side * d, starts) for side in (far, 1.0 - far))
    t, u = (np.add.reduceat(side * there, starts) for side in (far, 1.0 - far))
    g = kind[starts] // 2
    _file(s.total[0::2], g, a)
    _file(s.total[1::2], g, b)
    if len(s.spread) > 2:  # pairs with weights
        said, counts = (a * a, a * b, b * b, a * t, a * u, b * t, b * u), (t * t, t * u, u * u)
    else:
        both = (t > 0.0) & (u > 0.0)
        delta = np.where(both, a / np.where(both, t, 1.0) - b / np.where(both, u, 1.0), 0.0)
        said, counts = (delta, delta * delta), (both.astype(float),)
    for out, values in zip([*s.spread, *s.queries], [*said, *counts][: len(s.spread) + len(s.queries)], strict=True):
        _file(out, g, values)


def collisions(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, R: Array, B: Array, P: Array
) -> None:
    """Write cr, and where they are not empty b and presence, into R, B and P (pairs x features)."""
    d, there = _pairs(Xq, queries, aq, Xr, rows, ar, r)
    R[: len(d)] = _rates(d, there, r.slope, r.reach)
    if len(B):
        B[: len(d)] = R[: len(d)] > 0.0
    if len(P):
        P[: len(d)] = there


def half_hits(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, H: Array, gap: Array
) -> None:
    """Write h = (cr + b)/2 of each pair into H (pairs x features), float32; add Σ(b - h)² to `gap` (features)."""
    d, there = _pairs(Xq, queries, aq, Xr, rows, ar, r)
    half = H[: len(d)]
    half[:] = _rates(d, there, 0.5 * r.slope, r.reach)
    gap += (np.where(half > 0.0, 1.0 - half.astype(np.float64), 0.0) ** 2).sum(axis=0)
