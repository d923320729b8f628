"""Kernels for sparse rows, whose runtime depends on the number of non-zeros.

Kernels receive rows as `Csr`, the three arrays of a CSR matrix with sorted indices and no duplicates. Explicit zeros
count as zeros. If two rows are both zero in a feature, their difference is 0 and their collision rate is 1. So only the
features in which a row of the pair is not zero are summed: their differences, and the complements of collisions, e and
z. For a collision rate cr, e = 1 - cr; z is 0 for a collision (cr > 0), and otherwise 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.summary import splitmix64
from belief.kernels.dense.tally import add_products
from belief.kernels.nearest import insert, round9
from belief.kernels.shapes import TIE_MARGIN, Reach
from belief.method.arrays import Array

_ERROR = 1e-12  # bound of the rounding error of a float64 product, as a share of the squared norms
_SAME = 4e-10  # a distance that is smaller than a rounded one by at most this share is not rounded to a smaller one


class Csr(NamedTuple):
    """The three arrays of a CSR matrix."""

    start: Array
    column: Array
    value: Array


class Postings(NamedTuple):
    """An inverted index: for each feature, the queries with non-zero values, and these values in the feature's unit.

    Features that are frequently non-zero are stored as dense vectors instead of lists.
    """

    slot: Array  # the index of each feature's list, n_lists plus the index of its vector, or -1 if it has none
    first: Array  # list p has the entries first[p] to first[p + 1] - 1 of the next two arrays
    query: Array
    value: Array
    vector: Array  # (vectors, queries)


class Scale(NamedTuple):
    """The scaling of features: the factors of their differences, and which features are discrete."""

    per_unit: Array  # 1 divided by the unit of the feature (method.md, section 1); 0 for constant features
    discrete: Array  # mask


# --- 1. the summary --------------------------------------------------------------------------------------------------


@kernel()
def moments(
    rows: Csr,
    nonzero: Array,
    origin: Array,
    shift: Array,
    m2: Array,
    minimum: Array,
    maximum: Array,
    between: Array,
    group: Array,
    total: Array,
    total_shift: Array,
) -> int:
    """Update the moments of the non-zeros of each feature by Welford's method.

    Return the position of the first entry that is NaN, or -1.

    `origin` is the first non-zero, and `shift` is the mean of the non-zeros minus `origin`. `between` marks features
    with values between the minimum and the maximum. `total` and `total_shift` have the sums of x and of x - origin for
    each group of rows; they may be empty.
    """
    for i in range(len(rows.start) - 1):
        for p in range(rows.start[i], rows.start[i + 1]):
            x = np.float64(rows.value[p])
            if x != x:
                return p
            if x == 0.0:
                continue
            j = rows.column[p]
            if nonzero[j] == 0:
                origin[j] = x
            if len(total):
                total[group[i], j] += x
                total_shift[group[i], j] += x - origin[j]
            nonzero[j] += 1
            step = x - origin[j] - shift[j]
            shift[j] += step / nonzero[j]
            m2[j] += step * (x - origin[j] - shift[j])
            if x < minimum[j] or x > maximum[j]:
                between[j] |= minimum[j] < maximum[j]  # the old minimum or maximum is now inside
            elif x > minimum[j] and x < maximum[j]:
                between[j] = True
            minimum[j] = min(minimum[j], x)
            maximum[j] = max(maximum[j], x)
    return -1


@kernel()
def add_identities(rows: Csr, keys: Array, out: Array) -> None:
    """Add hashes of the values of each row to its identity in `out`.

    A dense row with the same values has the same identity.
    """
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for i in range(len(out)):
        for p in range(rows.start[i], rows.start[i + 1]):
            value[0] = rows.value[p]
            if value[0] != 0.0:
                out[i] += splitmix64(bits[0] ^ keys[rows.column[p]])


@kernel()
def gather(rows: Csr, ids: Array, columns: Array, place: Array, to: Array, out: Array) -> None:
    """Copy some columns of some rows to `out`.

    Row ids[i] becomes row to[i] of `out`, and column columns[t] becomes its column place[t]. `columns` is sorted.
    """
    for i in range(len(ids)):
        p, end, x = rows.start[ids[i]], rows.start[ids[i] + 1], out[to[i]]
        for t in range(len(columns)):
            while p < end and rows.column[p] < columns[t]:
                p += 1
            x[place[t]] = rows.value[p] if p < end and rows.column[p] == columns[t] else 0.0


@kernel()
def take_columns(rows: Csr, first: int, stop: int, place: Array) -> tuple[Array, Array, Array]:
    """Return a CSR copy of the rows from `first` to `stop` in which column j becomes place[j].

    Columns with a place of -1 are left out.
    """
    start = np.zeros(stop - first + 1, rows.start.dtype)
    n = 0
    for i in range(first, stop):
        for p in range(rows.start[i], rows.start[i + 1]):
            n += place[rows.column[p]] >= 0
        start[i - first + 1] = n
    column, value = np.empty(n + 1, rows.column.dtype), np.empty(n + 1, rows.value.dtype)
    n = 0
    for p in range(rows.start[first], rows.start[stop]):
        column[n], value[n] = place[rows.column[p]], rows.value[p]  # the next entry overwrites it unless n grows
        n += place[rows.column[p]] >= 0
    return start, column[:n], value[:n]


# --- 3. neighbours ---------------------------------------------------------------------------------------------------


@kernel()
def _square(x: float, j: int, s: Scale) -> float:
    """Return the Δ² of feature j between the values x and 0."""
    return (s.per_unit[j] if s.discrete[j] else x * s.per_unit[j]) ** 2 if x != 0.0 else 0.0


@kernel()
def norms(rows: Csr, s: Scale, out: Array) -> None:
    """Write the squared distance d² between each row and a row of zeros to `out`."""
    for i in range(len(out)):
        total = 0.0
        for p in range(rows.start[i], rows.start[i + 1]):
            total += _square(np.float64(rows.value[p]), rows.column[p], s)
        out[i] = total


@kernel()
def products(rows: Csr, i: int, s: Scale, by: Postings, product: Array) -> float:
    """Write the inner products of row i with all queries to `product`, and return the squared norm |r|² of the row.

    Squared distances follow from them: d² = |q|² + |r|² - 2·product.
    """
    product[:] = 0.0
    n_lists = len(by.first) - 1
    norm = 0.0
    for p in range(rows.start[i], rows.start[i + 1]):
        v, j = np.float64(rows.value[p]), rows.column[p]
        norm += _square(v, j, s)
        slot = by.slot[j]
        if slot < 0 or v == 0.0 or s.per_unit[j] == 0.0:
            continue
        if s.discrete[j]:  # 2·½·(1 + equal): d² is 1 between different values and 0 between equal ones
            if slot >= n_lists:
                x = by.vector[slot - n_lists]
                for q in range(len(product)):
                    product[q] += (1.0 if x[q] == v else 0.5) if x[q] != 0.0 else 0.0
            else:
                for e in range(by.first[slot], by.first[slot + 1]):
                    product[by.query[e]] += 1.0 if by.value[e] == v else 0.5
            continue
        v *= s.per_unit[j]
        if slot >= n_lists:
            x = by.vector[slot - n_lists]
            for q in range(len(product)):
                product[q] += v * x[q]
        else:
            for e in range(by.first[slot], by.first[slot + 1]):
                product[by.query[e]] += v * by.value[e]
    return norm


@kernel()
def _append(rows: Csr, p: int, end: int, discrete: Array, column: Array, gap: Array, n: int) -> int:
    """Append the entries from `p` to `end` of a sparse row to the list of differences, as differences from zero.

    Zeros are left out. Return the new length of the list; `n` is its length so far.
    """
    for e in range(p, end):
        j, d = rows.column[e], abs(np.float64(rows.value[e]))
        column[n], gap[n] = j, 1.0 if discrete[j] else d
        n += d != 0.0
    return n


@kernel()
def _differences(a: Csr, i: int, b: Csr, k: int, discrete: Array, column: Array, gap: Array) -> int:
    """Write the features in which two rows differ to `column`, and |a - b| to `gap`; return their number.

    The difference of unequal discrete values is 1.
    """
    p, p_end, r, r_end = a.start[i], a.start[i + 1], b.start[k], b.start[k + 1]
    n = 0
    while p < p_end and r < r_end:  # no branches in the loop, because they could not be predicted
        left, right = np.int64(a.column[p]), np.int64(b.column[r])
        x, y = np.float64(a.value[p]), np.float64(b.value[r])
        j, d = min(left, right), abs((x if left <= right else 0.0) - (y if right <= left else 0.0))
        column[n], gap[n] = j, 1.0 if discrete[j] else d
        n += d != 0.0
        p += left <= right
        r += right <= left
    n = _append(a, p, p_end, discrete, column, gap, n)
    return _append(b, r, r_end, discrete, column, gap, n)


@kernel()
def _expand(rows: Csr, i: int, x: Array) -> None:
    """Write the non-zeros of row i to x, a dense vector of zeros."""
    for p in range(rows.start[i], rows.start[i + 1]):
        x[rows.column[p]] = rows.value[p]


@kernel()
def _clear(rows: Csr, i: int, x: Array) -> None:
    """Undo `_expand`: set x to 0 in all columns in which row i has an entry."""
    for p in range(rows.start[i], rows.start[i + 1]):
        x[rows.column[p]] = 0


@kernel()
def _unsorted_differences(a: Csr, i: int, x: Array, b: Csr, k: int, discrete: Array, column: Array, gap: Array) -> int:
    """Do the same as `_differences`, but with the features in any order; x is row i of `a` as a dense vector.

    This is faster than merging the rows, because no branch depends on their columns.
    """
    n = 0
    for r in range(b.start[k], b.start[k + 1]):
        j = b.column[r]
        d = abs(np.float64(x[j]) - np.float64(b.value[r]))
        x[j] = 0  # so that x keeps only the entries of row i that row k does not have
        column[n], gap[n] = j, 1.0 if discrete[j] else d
        n += d != 0.0
    for p in range(a.start[i], a.start[i + 1]):
        j = a.column[p]
        d = abs(np.float64(x[j]))
        x[j] = a.value[p]
        column[n], gap[n] = j, 1.0 if discrete[j] else d
        n += d != 0.0
    return n


@kernel()
def longest(rows: Csr) -> int:
    """Return the largest number of entries of a row."""
    longest = 0
    for i in range(len(rows.start) - 1):
        longest = max(longest, rows.start[i + 1] - rows.start[i])
    return longest


@kernel()
def _within(norm: float, product: Array, limit: Array) -> int:
    """Return the number of queries that may have this row as a neighbour. The compiler vectorises this loop."""
    n = 0
    for q in range(len(product)):
        n += norm - 2.0 * product[q] <= limit[q]
    return n


@kernel()
def nearest(
    rows: Csr,
    span: tuple[int, int],
    first_id: int,
    group: Array,
    key: Array,
    queries: Csr,
    norm: Array,
    ids: Array,
    by: Postings,
    s: Scale,
    best: tuple[Array, Array, Array],
) -> None:
    """Insert the nearest of the rows in `span` into `best`, the sorted lists of each query and group.

    Rows of group -1 are ignored. Inner products determine which rows are candidates; the distances of candidates are
    then computed exactly and rounded, and ties go to the smaller key.
    """
    d2, keys, found = best
    n, n_groups, size = d2.shape
    product = np.empty(n)
    room = longest(queries) + longest(Csr(rows.start[span[0] : span[1] + 1], rows.column, rows.value))
    column, gap = np.empty(room, np.int64), np.empty(room)
    limit = np.empty((n_groups, n))  # the largest |r|² - 2·product of a candidate
    for q in range(n):
        for g in range(n_groups):
            limit[g, q] = d2[q, g, size - 1] * (1.0 + TIE_MARGIN) - norm[q] * (1.0 - _ERROR)
    for i in range(span[0], span[1]):
        g = group[i - span[0]]
        if g < 0:
            continue
        row_norm = products(rows, i, s, by, product)
        low = row_norm * (1.0 - _ERROR)
        if _within(low, product, limit[g]) == 0:
            continue
        for q in range(n):
            if low - 2.0 * product[q] > limit[g, q] or ids[q] == first_id + i:
                continue
            worst = d2[q, g, size - 1]
            about = row_norm + norm[q] - 2.0 * product[q]
            cannot_be_less = about >= worst * (1.0 - _SAME) and _ERROR * (row_norm + norm[q]) <= 1e-10 * worst
            if cannot_be_less and key[i - span[0]] > keys[q, g, size - 1]:
                continue  # the row is at best tied, and the key decides against it
            d = 0.0
            for t in range(_differences(queries, q, rows, i, s.discrete, column, gap)):
                d += (gap[t] * s.per_unit[column[t]]) ** 2
            insert(d2[q, g], keys[q, g], found[q, g], round9(d), key[i - span[0]], first_id + i)
            limit[g, q] = d2[q, g, size - 1] * (1.0 + TIE_MARGIN) - norm[q] * (1.0 - _ERROR)


@kernel()
def _product(rows: Csr, first: int, end: int, x: Array) -> float:
    """Return the inner product of the entries from `first` to `end` with a dense row.

    Four partial sums let the CPU execute additions in parallel.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e = first
    while e + 4 <= end:
        a += rows.value[e] * x[rows.column[e]]
        b += rows.value[e + 1] * x[rows.column[e + 1]]
        c += rows.value[e + 2] * x[rows.column[e + 2]]
        d += rows.value[e + 3] * x[rows.column[e + 3]]
        e += 4
    for last in range(e, end):
        a += rows.value[last] * x[rows.column[last]]
    return (a + b) + (c + d)


@kernel()
def verify(
    rows: Csr, at: Array, ids: Array, group: Array, key: Array, row_norm: Array, queries: Csr, norm: Array, s: Scale,
    where: Array, row: Array, best: tuple[Array, Array, Array],
) -> None:  # fmt: skip
    """Compute the exact distances of candidates, and insert them into `best`, the sorted lists of each query and group.

    Candidate p is the pair of the query where[p] and the row with index row[p] in `at`, `ids`, `group`, `key` and
    `row_norm`. Candidates are sorted by query.

    Parameters
    ----------
    at, ids, group, key, row_norm : the position of each row in `rows`, its id, group and key, and its d² from zero
    norm : d² between each query and a row of zeros
    """
    d2, keys, found = best
    size = d2.shape[2]
    room = longest(queries) + longest(rows)
    column, gap, dense = np.empty(room, np.int64), np.empty(room), np.zeros(len(s.per_unit))
    last = -1
    for p in range(len(where)):
        q, r = where[p], row[p]
        if q != last:
            for old in range(queries.start[last] if last >= 0 else 0, queries.start[last + 1] if last >= 0 else 0):
                dense[queries.column[old]] = 0.0
            for new in range(queries.start[q], queries.start[q + 1]):
                dense[queries.column[new]] = queries.value[new] * s.per_unit[queries.column[new]] ** 2
            last = q
        i, g = at[r], group[r]
        product = _product(rows, rows.start[i], rows.start[i + 1], dense)
        worst = d2[q, g, size - 1]
        if (norm[q] + row_norm[r]) * (1.0 - _ERROR) - 2.0 * product > worst * (1.0 + TIE_MARGIN):
            continue
        d = 0.0
        for t in range(_differences(queries, q, rows, i, s.discrete, column, gap)):
            d += (gap[t] * s.per_unit[column[t]]) ** 2
        insert(d2[q, g], keys[q, g], found[q, g], round9(d), key[r], ids[r])


# --- 4. and 5. the tally ---------------------------------------------------------------------------------------------


@kernel()
def tally(
    Q: Csr,
    queries: Array,
    R: Csr,
    rows: Array,
    kind: Array,
    weight: Array,
    r: Reach,
    total: Array,
    e: Array,
    spread: Array,
) -> None:
    """Sum |a - b| over pairs of sparse rows, which are sorted by query. Outputs that are not needed are empty.

    Parameters
    ----------
    kind : the line of `total` that each pair is added to; if `spread` is computed, lines 2·g and 2·g + 1 are the
        misses and the hits of group g
    weight : empty, or the share of each pair that is added to this line; the rest is added to the next line
    total : (kinds, features), Σ|a - b|
    e : (features), Σ(1 - cr)
    spread : the sums for the variance over queries, as in `belief.kernels.shapes.Sums`
    """
    room = longest(Q) + longest(R)
    column, gap = np.empty(room, np.int64), np.empty(room)
    x = np.zeros(len(r.discrete), Q.value.dtype)
    coupled = len(spread) > 0
    n_features = total.shape[1] if coupled else 0
    miss, hit = np.zeros(n_features), np.zeros(n_features if len(weight) else 0)  # sums of one query
    touched, is_touched = np.empty(n_features, np.int64), np.zeros(n_features, np.bool_)
    p = 0
    while p < len(kind):
        end, t, u = p, 0.0, 0.0
        while end < len(kind) and queries[end] == queries[p]:
            share = weight[end] if len(weight) else 1.0 - (kind[end] & 1)
            t += share
            u += 1.0 - share
            end += 1
        g, seen = kind[p] // 2, 0
        _expand(Q, queries[p], x)
        for i in range(p, end):
            n = _unsorted_differences(Q, queries[i], x, R, rows[i], r.discrete, column, gap)
            sign = 1.0 / max(t, 1.0) if kind[i] & 1 == 0 else -1.0 / max(u, 1.0)
            for s in range(n):
                j, d = column[s], gap[s]
                if len(e):
                    e[j] += r.slope[j] * d if d <= r.reach[j] else 1.0
                if coupled and not is_touched[j]:
                    is_touched[j] = True
                    touched[seen] = j
                    seen += 1
                if len(weight):
                    total[kind[i], j] += weight[i] * d
                    total[kind[i] + 1, j] += (1.0 - weight[i]) * d
                    if coupled:
                        miss[j] += weight[i] * d
                        hit[j] += (1.0 - weight[i]) * d
                else:
                    total[kind[i], j] += d
                    if coupled:
                        miss[j] += sign * d
        for s in range(seen):
            j = touched[s]
            if len(weight):
                add_products(spread, g, j, miss[j], hit[j], t, u)
                hit[j] = 0.0
            elif t > 0.0 and u > 0.0:
                spread[0, g, j] += miss[j]
                spread[1, g, j] += miss[j] * miss[j]
            miss[j] = 0.0
            is_touched[j] = False
        _clear(Q, queries[p], x)
        p = end


@kernel()
def collisions(
    Q: Csr,
    queries: Array,
    R: Csr,
    rows: Array,
    r: Reach,
    by_rate: bool,
    line: Array,
    place: Array,
    lines: Array,
    columns: Array,
    cross: Array,
) -> None:
    """Add up joint sums of e and z over pairs, for some features (lines) with others (columns).

    For a pair with the collision rate cr, e = 1 - cr. z is 0 if the pair collides (cr > 0), and otherwise 1.

    Parameters
    ----------
    by_rate : whether to multiply e with e instead of z
    line, place : the line and the column of each feature, or -1
    lines, columns : (2, n), Σe and Σz of each line and each column; Σe and Σe² with `by_rate`
    cross : (lines, columns), Σ(e_i·z_j + z_i·e_j)/2; Σe_i·e_j with `by_rate`
    """
    room = longest(Q) + longest(R)
    column, gap = np.empty(room, np.int64), np.empty(room)
    es, zs = np.empty(room), np.empty(room)
    x = np.zeros(len(r.discrete), Q.value.dtype)
    for p in range(len(queries)):
        _expand(Q, queries[p], x)
        n = _unsorted_differences(Q, queries[p], x, R, rows[p], r.discrete, column, gap)
        _clear(Q, queries[p], x)
        for t in range(n):
            j = column[t]
            zs[t] = 0.0 if gap[t] <= r.reach[j] else 1.0
            es[t] = 1.0 if zs[t] > 0.0 else r.slope[j] * gap[t]
            second = es[t] * es[t] if by_rate else zs[t]
            zs[t] = es[t] if by_rate else zs[t]
            if line[j] >= 0:
                lines[0, line[j]] += es[t]
                lines[1, line[j]] += second
            if place[j] >= 0:
                columns[0, place[j]] += es[t]
                columns[1, place[j]] += second
        for t in range(n):
            i = line[column[t]]
            if i < 0:
                continue
            for u in range(n):
                j = place[column[u]]
                if j >= 0:
                    cross[i, j] += (es[t] * zs[u] + zs[t] * es[u]) / 2.0
