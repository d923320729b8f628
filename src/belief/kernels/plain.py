"""The kernels for dense rows in plain numpy: for tables so small that to compile those of numba would take far longer.

Names and arguments are those of `belief.kernels.dense`, and so are the numbers, up to the order in which they are added
up. Only the neighbours are found in another way: every distance is computed, and the smallest are kept.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from belief.kernels.shapes import TIE_MARGIN, Reach, Sums
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.sampling import splitmix64


def _power_of_ten(n: int) -> float:
    """By squaring, as compiled code raises to a whole power: beyond 10^22 the last bit is the same too."""
    out, base = 1.0, 10.0
    while n:
        out, base, n = (out * base if n & 1 else out), base * base, n >> 1
    return out


CELLS, SUMMED = 2**15, 2**17  # differences held at a time, so that they stay in the cache: of rows, and of pairs
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
    out += np.where(x != 0.0, splitmix64(bits ^ keys), np.uint64(0)).sum(axis=1)


# --- 3. neighbours ---


def distances(Q: Array, R: Array, difference: Difference) -> Array:
    """The exact d² of each row of Q and each row of R."""
    if difference.missing:
        return _distances_missing(Q, R, difference)
    live = ~difference.constant
    numbers, names = np.flatnonzero(live & ~difference.discrete), np.flatnonzero(live & difference.discrete)
    per_unit, d2 = difference.per_unit[numbers], np.zeros((len(Q), len(R)))
    for x, y, add in ((Q[:, numbers], R[:, numbers], _squares), (Q[:, names], R[:, names], _unlike)):
        step = max(1, CELLS // max(y.size, 1))
        for a in range(0, len(Q) if x.shape[1] else 0, step):
            d2[a : a + step] += add(x[a : a + step, None], y, per_unit)
    return d2


def _squares(x: Array, y: Array, per_unit: Array) -> Array:
    """The squares of differences between numbers, added up."""
    gap = x - y
    gap *= per_unit
    return np.einsum("qrf,qrf->qr", gap, gap)


def _unlike(x: Array, y: Array, _: Array) -> Array:
    """The features in which names differ."""
    return np.count_nonzero(x != y, axis=2)


def _distances_missing(Q: Array, R: Array, difference: Difference) -> Array:
    """The same feature by feature, where values are missing."""
    d2, cost = np.zeros((2, len(Q), len(R)))
    first = np.searchsorted(difference.levels.feature, np.arange(Q.shape[1] + 1))
    per_unit = difference.per_unit
    for j in np.flatnonzero(~difference.constant).tolist():
        x, y = Q[:, j, None], R[:, j]
        (np.not_equal if difference.discrete[j] else np.subtract)(x, y, out=cost, casting="unsafe")
        cost *= per_unit[j]
        cost *= cost
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
    d = _taken(Xq, queries, aq, n)
    d -= _taken(Xr, rows, ar, n)
    np.abs(d, out=d)
    there = d == d
    if r.discrete.all():
        np.greater(d, 0.0, out=d, casting="unsafe")
    elif r.discrete.any():
        d = np.where(r.discrete, d > 0.0, d)
    if not there.all():
        d[~there] = 0.0
    return d, there


def _taken(X: Array, rows: Array, a: int, n: int) -> Array:
    """A copy of n columns of some rows, from column `a` on."""
    return np.take(X[:, a : a + n], rows, axis=0).astype(np.float64, copy=False)


def _rates(d: Array, there: Array, slope: Array, reach: Array) -> Array:
    """The collision rates; 0 where a value is missing, since that is never near."""
    rates = d * -slope
    rates += 1.0
    rates *= there & (d <= reach)
    return rates


def tally(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, kind: Array, weight: Array, r: Reach,
    sums: Sums,
) -> None:  # fmt: skip
    """Add up |a - b| over the pairs, and how it varies from query to query."""
    for part in _between_queries(queries, len(r.reach)):
        d, there = _pairs(Xq, queries[part], aq, Xr, rows[part], ar, r)
        share = weight[part] if len(weight) else np.ones(len(d))
        if len(sums.rates):
            sums.rates[:] += _rates(d, there, r.slope, r.reach).sum(axis=0)
        if len(sums.absent):
            _file(sums.absent, kind[part], ~there, share)
        if not len(sums.spread):
            _file(sums.total, kind[part], d, share)
        else:
            _couples(queries[part], kind[part], d, there, share, sums)


def _between_queries(queries: Array, n_features: int) -> list[slice]:
    """Cut the pairs between queries, so that the differences of a part stay in the cache."""
    starts = np.flatnonzero(_changes(queries))
    firsts = starts[np.r_[True, np.diff(starts * n_features // SUMMED) > 0]] if len(starts) else starts
    return [slice(int(a), int(b)) for a, b in pairwise([*firsts, len(queries)])]


def _file(out: Array, kind: Array, values: Array, share: Array | float = 1.0) -> None:
    """Add the values, or a share of them, to the lines of their kind, and the rest to the line after it."""
    lines = np.arange(len(out))[:, None]
    out += (share * (kind == lines) + (1.0 - share) * (kind + 1 == lines)) @ values


def _couples(queries: Array, kind: Array, d: Array, there: Array, share: Array, s: Sums) -> None:
    """The sums of each query first, and what it has to say, before they join the others."""
    starts = np.flatnonzero(_changes(queries))
    sides = _Sides(np.where(kind & 1, 0.0, share), starts)  # what is not far is near
    a, b = sides.sums(d)
    t, u = sides.sums(there) if len(s.absent) else sides.counts(len(d))
    own = (kind[starts] // 2 == np.arange(s.spread.shape[1])[:, None]).astype(float)
    s.total[0::2] += own @ a
    s.total[1::2] += own @ b
    if len(s.spread) > 2:  # pairs with weights
        said, counts = (a * a, a * b, b * b, a * t, a * u, b * t, b * u), (t * t, t * u, u * u)
    else:
        both = (t > 0.0) & (u > 0.0)
        delta = np.where(both, a / np.where(both, t, 1.0) - b / np.where(both, u, 1.0), 0.0)
        said, counts = (delta, delta * delta), (both.astype(float),)
    for out, values in zip([*s.spread, *s.queries], [*said, *counts][: len(s.spread) + len(s.queries)], strict=True):
        out += own @ values


def _changes(x: Array) -> Array:
    """Which values are the first of a run of equal ones."""
    new = np.ones(len(x), bool)
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return new


class _Sides:
    """The pairs of each query, by what is far and what is near; those that are alike lie together."""

    def __init__(self, far: Array, starts: Array) -> None:
        new = _changes(far)
        new[starts] = True
        self.runs = np.flatnonzero(new)
        self.far, self.first = far[self.runs, None], np.searchsorted(self.runs, starts)

    def sums(self, values: Array) -> tuple[Array, Array]:
        """The sums of each query over what is far, and over what is near."""
        return self._split(np.add.reduceat(values, self.runs, dtype=float))

    def counts(self, n: int) -> tuple[Array, Array]:
        """How much is far and near of each query, of n pairs in all."""
        return self._split(np.diff(self.runs, append=n)[:, None])

    def _split(self, total: Array) -> tuple[Array, Array]:
        far = total * self.far
        return np.add.reduceat(far, self.first), np.add.reduceat(total - far, self.first)


def collisions(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, R: Array, P: Array
) -> None:
    """Write cr into R, and presence into P where that is not empty (pairs x features)."""
    d, there = _pairs(Xq, queries, aq, Xr, rows, ar, r)
    R[: len(d)] = _rates(d, there, r.slope, r.reach)
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
