"""Kernels for dense rows in plain numpy, for small tables: compiling kernels would take much longer than the work.

The functions have the same names and arguments as in `belief.kernels.dense`, and their results agree up to the order of
summation. Only the search differs: it computes all distances and keeps the smallest.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from belief.kernels.shapes import POWERS_OF_TEN, TIE_MARGIN, Reach, Sums, query_statistics, round9
from belief.method.arrays import Array, is_first_of_run, run_lengths
from belief.method.difference import Difference
from belief.method.redundancy.collisions import sum_powers
from belief.method.sampling import splitmix64

# numbers of differences computed at a time, which fit into the CPU cache
DISTANCE_CELLS, TALLY_CELLS = 2**15, 2**17
# The largest error of d² from a matrix product, per feature and as a share of the squared norms. It covers the rounding
# of values, products, sums and the exact d², and is twice as large as necessary.
PRODUCT_ERROR = 8 * 2.0**-53

# --- 1. the summary ---


def moments(
    X: Array, lo: int, hi: int, a: int, b: int, origin: Array, out: Array, group: Array, total: Array, absent: Array
) -> None:
    """Write the moments of columns a to b over rows lo to hi to `out`.

    Add the sums of each group of rows to `total`.
    """
    x = X[lo:hi, a:b].astype(np.float64)
    present = x == x
    count = present.sum(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities raise an error later that names the feature
        origin[:] = np.where(np.isnan(origin), x[present.argmax(axis=0), np.arange(b - a)], origin)
        y = x - origin
        y = np.where(y == y, y, 0.0)
        shift = y.sum(axis=0) / np.maximum(count, 1)
        d = np.where(present, y - shift, 0.0)
        m2 = (d * d).sum(axis=0)
        np.add.at(total, group, y)
    if not present.all():
        _add_by_kind(absent, group, ~present)
    minimum, maximum = np.fmin.reduce(x), np.fmax.reduce(x)
    out[:] = count, shift, m2, minimum, maximum, (x != 0.0).sum(axis=0), ((x > minimum) & (x < maximum)).sum(axis=0)


def levels(X: Array, columns: Array, group: Array, value: Array, count: Array, found: Array) -> None:
    """Set `found` to -1, which makes the caller count the levels by sorting.

    For small tables this is fast enough. The compiled kernel counts them itself.
    """
    found[:] = -1


def add_identities(X: Array, rows: Array, a: int, keys: Array, out: Array) -> None:
    """Add hashes of the values of some features to `out`, the identities of the rows.

    `keys` has a random key for each of these features, which begin at column `a`.
    """
    x = X[rows, a : a + len(keys)].astype(np.float64)
    bits = np.where(x == x, x, np.nan).view(np.uint64)  # all missing values are equal
    out += np.where(x != 0.0, splitmix64(bits ^ keys), np.uint64(0)).sum(axis=1)


# --- 3. neighbours ---


def nearest(Q: Array, R: Array, own: Array, size: int, difference: Difference) -> tuple[Array, Array]:
    """Return the nearest rows in R of each row of Q, as their indices in R, nearest first, and their rounded d².

    Both arrays have the shape (rows of Q, size); their lines end with -1 and inf if R has too few rows. own[i] is the
    index in R of row i of Q, which is not its own neighbour; -1 if R does not contain it. Ties in distance go to the
    first row of R.
    """
    column, d, unknown = np.full((len(Q), size), -1), np.full((len(Q), size), np.inf), np.arange(len(Q))
    if not (difference.missing or (difference.discrete & ~difference.constant).any()) and len(R) > size + 2:
        column, d, is_certain = _nearest_by_products(Q, R, own, size, difference)
        unknown = np.flatnonzero(~is_certain)
    if len(unknown):
        d2 = distances(Q[unknown], R, difference)
        _replace_own(d2, own[unknown], np.nan)
        line, rank, *found = smallest(d2, size)
        column[unknown[line], rank], d[unknown[line], rank] = found
    return column, d


def _replace_own(x: Array, own: Array, value: float) -> None:
    """Set x[i, own[i]] to `value` in each line i with own[i] >= 0."""
    line = np.flatnonzero(own >= 0)
    x[line, own[line]] = value


def _nearest_by_products(
    Q: Array, R: Array, own: Array, size: int, difference: Difference
) -> tuple[Array, Array, Array]:
    """Return the nearest rows as `nearest` does, and a mask of the lines of Q for which the result is certain.

    Exact distances are computed for the size + 1 rows that are nearest according to the matrix product of the scaled
    rows. The result is certain if no other row can be as near, even if its product has the largest possible error.
    """
    live = np.flatnonzero(~difference.constant)
    Q, R, per_unit = Q[:, live], R[:, live], difference.per_unit[live]
    q, r = ((x - difference.mean[live]) * per_unit for x in (Q, R))
    nq, nr = (np.einsum("rf,rf->r", x, x) for x in (q, r))
    q *= -2.0
    low = np.column_stack([q, np.ones(len(q))]) @ np.column_stack([r, nr]).T  # d² without the norms of the queries
    _replace_own(low, own, np.inf)
    last = np.partition(low, size, axis=1)[:, size]
    n, m = low.shape
    found = np.flatnonzero(low <= last[:, None])
    if len(found) != n * (size + 1):  # ties
        return np.full((n, size), -1), np.full((n, size), np.inf), np.zeros(n, bool)
    column = found.reshape(n, size + 1) - np.arange(0, n * m, m)[:, None]
    gap = R.take(column, axis=0)
    np.subtract(Q[:, None], gap, out=gap)
    gap *= per_unit
    with np.errstate(over="ignore"):  # round9 also computes values that it does not use
        d = round9(np.einsum("qrf,qrf->qr", gap, gap), POWERS_OF_TEN, np)
    order = np.argsort(d, axis=1, kind="stable")[:, :size]
    order += np.arange(0, d.size, size + 1)[:, None]
    column, d = column.take(order), d.take(order)
    error = PRODUCT_ERROR * (len(live) + 8) * (nq + nr.max())
    is_certain = d[:, -1] * (1.0 + TIE_MARGIN) < last + nq - error
    return column, d, is_certain


def distances(Q: Array, R: Array, difference: Difference) -> Array:
    """Return the exact squared distances d² between the rows of Q and of R, (rows of Q, rows of R)."""
    if difference.missing:
        return _distances_missing(Q, R, difference)
    live = ~difference.constant
    numeric, nominal = np.flatnonzero(live & ~difference.discrete), np.flatnonzero(live & difference.discrete)
    per_unit, d2 = difference.per_unit[numeric], np.zeros((len(Q), len(R)))
    for features in (numeric, nominal):
        x, y = Q[:, features], R[:, features]
        step = max(1, DISTANCE_CELLS // max(y.size, 1))
        for a in range(0, len(Q) if x.shape[1] else 0, step):
            if features is nominal:
                d2[a : a + step] += np.count_nonzero(x[a : a + step, None] != y, axis=2)
            else:
                gap = x[a : a + step, None] - y
                gap *= per_unit
                d2[a : a + step] += np.einsum("qrf,qrf->qr", gap, gap)
    return d2


def _distances_missing(Q: Array, R: Array, difference: Difference) -> Array:
    """Return the squared distances d² of rows with missing values, summed feature by feature."""
    d2, cost = np.zeros((2, len(Q), len(R)))
    first = np.searchsorted(difference.levels.feature, np.arange(Q.shape[1] + 1))
    per_unit = difference.per_unit
    for j in np.flatnonzero(~difference.constant).tolist():
        x, y = Q[:, j, None], R[:, j]
        (np.not_equal if difference.discrete[j] else np.subtract)(x, y, out=cost, casting="unsafe")
        cost *= per_unit[j]
        cost *= cost
        levels = tuple(z[first[j] : first[j + 1]] for z in (difference.levels.value, difference.levels.count))
        cost[:, np.flatnonzero(np.isnan(y))] = _expect(x, j, difference, *levels)
        cost[np.flatnonzero(np.isnan(x))] = _expect(y, j, difference, *levels)
        d2 += cost
    return d2


def _expect(x: Array, j: int, difference: Difference, level: Array, count: Array) -> Array:
    """Return the expected Δ² between each value of feature j and a missing value."""
    spread = difference.spread[j]
    if difference.discrete[j]:
        share = count / count.sum()
        cost = 1.0 - share[np.minimum(np.searchsorted(level, x), len(level) - 1)]
    else:
        cost = ((x - difference.mean[j]) * difference.per_unit[j]) ** 2 + spread
    return np.where(x == x, cost, 2.0 * spread)


def smallest(d2: Array, size: int) -> tuple[Array, Array, Array, Array]:
    """Round d2, and return the `size` smallest entries of each row: arrays of row, rank, column and rounded value.

    Ties go to the smaller column.
    """
    n, width = d2.shape
    last = np.partition(d2, size - 1, axis=1)[:, size - 1] if size < width else np.full(n, np.inf)
    line, column = np.nonzero(d2 <= (last * (1 + TIE_MARGIN))[:, None])  # may be among the smallest after rounding
    with np.errstate(over="ignore"):  # round9 also computes values that it does not use
        d = round9(d2[line, column], POWERS_OF_TEN, np)
    order = np.lexsort((column, d, line))
    rank = np.arange(len(line)) - np.searchsorted(line, line)
    kept = rank < size
    return line[kept], rank[kept], column[order][kept], d[order][kept]


# --- 4. and 5. sums over pairs ---


def _differences(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, missing: bool
) -> tuple[Array, Array]:
    """Return |a - b| of each pair (line) and feature (column), and a mask of the entries with both values present.

    The difference is 0 if a value is missing. If `missing` is False, no value is missing, and the mask has one entry.
    """
    n = len(r.reach)
    d = _take(Xq, queries, aq, n)
    d -= _take(Xr, rows, ar, n)
    np.abs(d, out=d)
    present = d == d if missing else np.ones((1, 1), bool)
    if r.discrete.all():
        np.greater(d, 0.0, out=d, casting="unsafe")
    elif r.discrete.any():
        d = np.where(r.discrete, d > 0.0, d)
    if not present.all():
        d[~present] = 0.0
    return d, present


def _take(X: Array, rows: Array, a: int, n: int) -> Array:
    """Return a float64 copy of n columns of some rows, from column `a` on."""
    return np.take(X[:, a : a + n], rows, axis=0).astype(np.float64, copy=False)


def _rates(d: Array, present: Array, slope: Array, reach: Array) -> Array:
    """Return the collision rates cr of differences d; 0 where a value is missing."""
    rates = d * -slope
    rates += 1.0
    rates *= present & (d <= reach)
    return rates


def tally(
    Xq: Array,
    queries: Array,
    aq: int,
    Xr: Array,
    rows: Array,
    ar: int,
    kind: Array,
    weight: Array,
    r: Reach,
    sums: Sums,
) -> None:
    """Add |a - b| of pairs of rows to `sums`: totals by kind of pair, and the spread over queries."""
    # parts whose differences fit into the CPU cache, and that do not divide the pairs of a query
    starts = np.flatnonzero(is_first_of_run(queries))
    firsts = starts[np.r_[True, np.diff(starts * len(r.reach) // TALLY_CELLS) > 0]] if len(starts) else starts
    for a, b in pairwise([*firsts.tolist(), len(queries)]):
        part = slice(a, b)
        d, present = _differences(Xq, queries[part], aq, Xr, rows[part], ar, r, len(sums.absent) > 0)
        share = weight[part] if len(weight) else np.ones(len(d))
        if len(sums.rates):
            sums.rates[:] += _rates(d, present, r.slope, r.reach).sum(axis=0)
        if len(sums.absent):
            _add_by_kind(sums.absent, kind[part], ~present, share)
        if not len(sums.spread):
            _add_by_kind(sums.total, kind[part], d, share)
        else:
            _add_by_query(queries[part], kind[part], d, present, share, sums)


def _add_by_kind(out: Array, kind: Array, values: Array, share: Array | float = 1.0) -> None:
    """Add the values of each pair to `out`: a share of them to line `kind`, and the rest to line `kind` + 1."""
    lines = np.arange(len(out))[:, None]
    out += (share * (kind == lines) + (1.0 - share) * (kind + 1 == lines)) @ values


def _add_by_query(queries: Array, kind: Array, d: Array, present: Array, share: Array, s: Sums) -> None:
    """Sum over the misses and hits of each query, and add these sums and their products to the totals."""
    starts, miss = np.flatnonzero(is_first_of_run(queries)), np.where(kind & 1, 0.0, share)
    # consecutive pairs of a query with the same share form a run, which is summed at once
    is_new = is_first_of_run(miss)
    is_new[starts] = True
    runs = np.flatnonzero(is_new)
    miss, first = miss[runs, None], np.searchsorted(runs, starts)
    is_usual = len(runs) == 2 * len(first) and (np.diff(first) == 2).all()

    def add_sides(total: Array) -> tuple[Array, Array]:
        """Return the sums over the misses and over the hits of each query. `total` has the sum of each run of pairs."""
        of_misses = total * miss
        sides = of_misses, total - of_misses
        return tuple(x[0::2] + x[1::2] if is_usual else np.add.reduceat(x, first) for x in sides)

    a, b = add_sides(np.add.reduceat(d, runs, dtype=float))
    lengths = np.add.reduceat(present, runs, dtype=float) if len(s.absent) else run_lengths(runs, len(d))[:, None]
    t, u = add_sides(lengths)
    own = (kind[starts] // 2 == np.arange(s.spread.shape[1])[:, None]).astype(float)
    s.total[0::2] += own @ a
    s.total[1::2] += own @ b
    products, counts = query_statistics(a, b, t, u, len(s.spread) > 2, np)
    for out, values in zip([*s.spread, *s.queries], [*products, *counts[: len(s.queries)]], strict=True):
        out += own @ values


def arrange(X: Array) -> Array:
    """Return rows in the layout that `collisions` reads: (rows, features)."""
    return X.astype(np.float64, copy=False)


def collisions(
    X: Array, queries: Array, rows: Array, r: Reach, by_rate: bool, first: int, R: Array, P: Array, sums: Array
) -> None:
    """Write the collision rates cr of some pairs, or 1 - cr, to R, as `belief.kernels.dense.collisions` does.

    All arrays except X, (rows, features), have the same shapes as there.
    """
    d, present = _differences(X, queries, 0, X, rows, 0, r, len(P) > 0)
    if by_rate:  # e is computed without cr, because the subtraction would lose digits; 0 if a value is missing
        beyond = np.greater(d, r.reach, out=np.empty_like(d), casting="unsafe")
        values = d * r.slope
        np.maximum(values, beyond, out=values)  # 1 or more beyond the reach, and less within it
        np.minimum(values, 1.0, out=values)
    else:
        values = _rates(d, present, r.slope, r.reach)
    part = slice(first, first + len(d))
    R[:, part] = values.T
    if len(P):
        P[:, part] = present.T
    if sums.size:
        sums += sum_powers(values)


def half_hits(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, H: Array, gap: Array
) -> None:
    """Write h = (cr + b)/2 of each pair to H, (pairs, features); b is 1 for a collision and 0 otherwise.

    Add Σ(b - h)² to `gap`.
    """
    d, present = _differences(Xq, queries, aq, Xr, rows, ar, r, missing=True)
    half = H[: len(d)]
    half[:] = _rates(d, present, 0.5 * r.slope, r.reach)
    gap += (np.where(half > 0.0, 1.0 - half.astype(np.float64), 0.0) ** 2).sum(axis=0)
