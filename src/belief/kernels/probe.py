"""The searches of the probe (section 6c of the method): one small table of scores that is searched many times.

Scores are small integers, so distances and sums are exact in whatever order they are computed.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.tally import add_products
from belief.method.arrays import Array

BINS = 256  # in the histogram of distances for the first search of a query
MAX_SURPLUS = 16  # candidates that are removed one by one; more are sorted
GROUP = 32  # rows that are compared with the limit at once


@kernel()
def rank_scores(values: Array, knots: Array, scores: Array, out: Array) -> None:
    """Replace each value by the score of its rank among the knots of its column.

    Parameters
    ----------
    values : array of shape (m, F)
    knots : array of shape (n, F), sorted along the first axis
    scores : array of int8 of shape (2·n + 1,)
        The score for each a + b, with a knots below the value and b knots not above it.
    out : array of int8 of shape (m, F)
    """
    n = len(knots)
    for j in range(values.shape[1]):
        column = knots[:, j].copy()
        for i in range(len(values)):
            x = values[i, j]
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                if column[middle] < x:
                    low = middle + 1
                else:
                    high = middle
            below = low
            high = n
            if low < n and column[low] == x:
                while low < high:
                    middle = (low + high) // 2
                    if column[middle] <= x:
                        low = middle + 1
                    else:
                        high = middle
            out[i, j] = scores[below + low]


@kernel()
def _insert(d: float, row: int, n: int, found: Array, rows: Array) -> int:
    """Insert a row into a sorted list of n rows, after equally near ones. Return the new n."""
    size = len(rows)
    if n == size and not d < found[size - 1]:
        return n
    i = min(n, size - 1)
    while i > 0 and d < found[i - 1]:
        found[i], rows[i] = found[i - 1], rows[i - 1]
        i -= 1
    found[i], rows[i] = d, row
    return min(n + 1, size)


@kernel()
def _limit(d2: Array, size: int) -> float:
    """Return an upper limit for the distances of the `size` nearest rows, and of few others."""
    least, most = d2[0], d2[0]
    for r in range(1, len(d2)):
        least, most = min(least, d2[r]), max(most, d2[r])
    if not most > least:
        return most
    count = np.zeros(BINS + 1, np.int32)
    per_bin = np.float32(BINS) / (most - least)
    for r in range(len(d2)):
        count[int((d2[r] - least) * per_bin)] += 1
    n, b = 0, -1
    while n < size and b < BINS:
        b += 1
        n += count[b]
    # rounding may have put a distance just below the edge of its bin above it
    return least + (np.float32(b) + np.float32(1.001)) / per_bin


@kernel()
def _append_near(d2: Array, limit: float, first: int, last: int, near: Array, n: int) -> int:
    """Append the rows within the limit to the first n of `near`. Return the new n."""
    for r in range(first, last):
        near[n] = r  # overwritten by the next unless it is near, which is faster than a branch
        n += d2[r] <= limit
    return n


@kernel()
def _nearest(d2: Array, first: int, last: int, skip: int, rows: Array, found: Array, near: Array) -> None:
    """Replace `rows` by the rows from `first` to `last` with the smallest d², without `skip`.

    Ties are broken in cyclic order from a start that depends on `skip`. If `rows` already has the nearest rows by other
    distances, the largest new distance of these is an upper limit for the search.
    """
    if rows[0] < 0:
        limit = _limit(d2[first:last], len(rows) + 1)  # one more, because `skip` may be among them
    else:
        limit = d2[rows[0]]
        for t in range(1, len(rows)):
            limit = max(limit, d2[rows[t]])
    start, n_near = first + skip % (last - first), 0
    for part in range(2):
        a, b = (start, last) if part == 0 else (first, start)
        while a + GROUP <= b:  # most groups have no row that is near
            hits = 0
            for t in range(GROUP):
                hits += d2[a + t] <= limit
            if hits:
                n_near = _append_near(d2, limit, a, a + GROUP, near, n_near)
            a += GROUP
        n_near = _append_near(d2, limit, a, b, near, n_near)
    n, size = 0, len(rows)
    for t in range(n_near):
        near[n] = near[t]
        n += near[t] != skip
    if n - size > MAX_SURPLUS:
        n_found = 0
        for t in range(n):
            n_found = _insert(d2[near[t]], near[t], n_found, found, rows)
        return
    while n > size:  # remove the last of the farthest
        worst = 0
        for t in range(1, n):
            if d2[near[t]] >= d2[near[worst]]:
                worst = t
        n -= 1
        for t in range(worst, n):
            near[t] = near[t + 1]
    for t in range(size):
        rows[t] = near[t]


@kernel(fastmath=True)  # the sums are exact in any order
def _take_out(d2: Array, dropped: Array, i: int) -> None:
    """Subtract the squared differences of row i and all rows in the dropped columns from d²."""
    m, n = len(d2), len(dropped)
    for j in range(0, n - n % 4, 4):
        a, b, c, d = dropped[j], dropped[j + 1], dropped[j + 2], dropped[j + 3]
        xa, xb, xc, xd = np.float32(a[i]), np.float32(b[i]), np.float32(c[i]), np.float32(d[i])
        for r in range(m):
            ea, eb = xa - np.float32(a[r]), xb - np.float32(b[r])
            ec, ed = xc - np.float32(c[r]), xd - np.float32(d[r])
            d2[r] -= (ea * ea + eb * eb) + (ec * ec + ed * ed)
    for j in range(n - n % 4, n):
        a = dropped[j]
        xa = np.float32(a[i])
        for r in range(m):
            ea = xa - np.float32(a[r])
            d2[r] -= ea * ea


@kernel()
def tally_classes(
    D: Array,
    dropped: Array,
    queries: Array,
    rows: Array,
    X: Array,
    feature: Array,
    ends: Array,
    total: Array,
    spread: Array,
) -> None:
    """Find the nearest rows of each class and sum their differences from the queries.

    Parameters
    ----------
    D : array of float32 of shape (queries, m)
        d² of each query and each row; the rows are sorted by class. Updated.
    dropped : array of int8 of shape (columns, m)
        Columns to take out of d² first.
    queries : array of int
        The row of each query.
    rows : array of int32 of shape (queries, |C|, k)
        The nearest rows by earlier distances, or -1. Replaced by those now.
    X : array of int8 of shape (m, columns)
    feature : array of int
        The feature of each column. The difference of two rows in a feature is summed over its columns.
    ends : array of int
        The end of the rows of each class.
    total : array of shape (2·|C|, F)
        Σ Δ of misses and hits of the queries of each class.
    spread : array of shape (2, |C|, F)
        Σ δ and Σ δ² over the queries of each class; δ is the mean Δ of misses minus the mean Δ of hits.
    """
    n_classes, n_columns, n_features = len(ends), X.shape[1], total.shape[1]
    size = rows.shape[2]
    found, candidates = np.empty(size, np.float32), np.empty(D.shape[1] + 1, np.int32)
    near, sides = np.empty((n_classes, n_columns), np.int32), np.empty((2, n_features), np.int32)
    single = n_columns == n_features
    for q in range(len(queries)):
        i, own, first = queries[q], 0, 0
        x = X[i]
        near[:] = 0
        _take_out(D[q], dropped, i)
        for c in range(n_classes):
            if first <= i < ends[c]:
                own = c
            _nearest(D[q], first, ends[c], i, rows[q, c], found, candidates)
            first, mine = ends[c], near[c]
            for t in range(size):
                y = X[rows[q, c, t]]
                for j in range(n_columns):
                    mine[j] += abs(np.int32(x[j]) - np.int32(y[j]))
        sides[:] = 0
        for c in range(n_classes):
            side, mine = sides[1 if c == own else 0], near[c]
            if single:
                for j in range(n_columns):
                    side[j] += mine[j]
            else:
                for j in range(n_columns):
                    side[feature[j]] += mine[j]
        per_miss, per_hit = 1.0 / (size * (n_classes - 1)), 1.0 / size
        misses, hits = n_classes - 1, 1
        for j in range(n_features):
            a, b = sides[0, j], sides[1, j]
            total[2 * own, j] += a
            total[2 * own + 1, j] += b
            if a * hits != b * misses:  # equal means add exactly 0, without rounding errors
                delta = a * per_miss - b * per_hit
                spread[0, own, j] += delta
                spread[1, own, j] += delta * delta


@kernel()
def tally_numbers(
    D: Array,
    dropped: Array,
    queries: Array,
    rows: Array,
    X: Array,
    feature: Array,
    t: Array,
    total: Array,
    spread: Array,
    sums: Array,
) -> None:
    """Find the nearest rows and sum their differences from the queries; they are misses to the degree |t_q - t_r|.

    Parameters
    ----------
    rows : array of int32 of shape (queries, 1, 2·k)
    t : array of shape (m,)
        The rank of each row, from 0 to 1.
    total : array of shape (2, F)
        Σ Δ of misses and hits.
    spread : array of shape (7, 1, F)
        The products of the sums of each query.
    sums : array of shape (5,)
        Σ τ and Σ (1 - τ); then the three products of these two sums per query, summed over queries.
    D, dropped, queries, X, feature
        As in `tally_classes`.
    """
    n_columns, n_features, m = X.shape[1], total.shape[1], X.shape[0]
    size = rows.shape[2]
    found, candidates = np.empty(size, np.float32), np.empty(m + 1, np.int32)
    miss, both = np.empty(n_columns, np.float32), np.empty(n_columns, np.int32)
    sides = np.empty((2, n_features))
    for q in range(len(queries)):
        i = queries[q]
        x = X[i]
        _take_out(D[q], dropped, i)
        _nearest(D[q], 0, m, i, rows[q, 0], found, candidates)
        miss[:] = 0.0
        both[:] = 0
        misses = 0.0
        for s in range(size):
            y = X[rows[q, 0, s]]
            tau = np.float32(abs(t[i] - t[rows[q, 0, s]]))
            misses += tau
            for j in range(n_columns):
                d = abs(np.int32(x[j]) - np.int32(y[j]))
                miss[j] += tau * np.float32(d)
                both[j] += d
        hits = size - misses
        sides[:] = 0.0
        for j in range(n_columns):
            sides[0, feature[j]] += miss[j]
            sides[1, feature[j]] += both[j] - miss[j]
        sums[0] += misses
        sums[1] += hits
        sums[2] += misses * misses
        sums[3] += misses * hits
        sums[4] += hits * hits
        for j in range(n_features):
            a, b = sides[0, j], sides[1, j]
            total[0, j] += a
            total[1, j] += b
            add_products(spread, 0, j, a, b, misses, hits)


@kernel()
def tally_weighted(
    D: Array,
    dropped: Array,
    queries: Array,
    rows: Array,
    X: Array,
    feature: Array,
    ends: Array,
    targets: Array,
    row_weight: Array,
    query_weight: Array,
    total: Array,
    spread: Array,
    sums: Array,
) -> None:
    """Find the nearest rows and sum their differences from the queries; rows have weights.

    Parameters
    ----------
    rows : array of int32 of shape (queries, groups, size)
    ends : array of int
        The end of the rows of each class; all rows are one group for a numeric target.
    targets : array of float of shape (m,)
        The class of each row, or its rank from 0 to 1.
    row_weight, query_weight : array of float of shape (m,)
        The weight of each row as a neighbour and as a query: multiples of a number, so that the sums over the
        neighbours of a query are exact in any order.
    total : array of shape (2·groups, F)
        Σ Δ of misses and hits of the queries of each group.
    spread : array of shape (7, groups, F)
        The products of the sums of each query.
    sums : array of shape (5, groups)
        The weights of misses and hits; then the three products of these two sums per query, summed over queries.
    D, dropped, queries, X, feature
        As in `tally_classes`.
    """
    n_columns, n_features, size = X.shape[1], total.shape[1], rows.shape[2]
    found, candidates = np.empty(size, np.float32), np.empty(X.shape[0] + 1, np.int32)
    sides = np.empty((2, n_features))
    for q in range(len(queries)):
        i, first, misses, hits = queries[q], 0, 0.0, 0.0
        x, v, own = X[i], query_weight[i], int(targets[i]) if len(ends) > 1 else 0
        sides[:] = 0.0
        _take_out(D[q], dropped, i)
        for c in range(len(ends)):
            _nearest(D[q], first, ends[c], i, rows[q, c], found, candidates)
            first = ends[c]
            for s in range(size):
                r = rows[q, c, s]
                y, miss = X[r], row_weight[r] * min(1.0, abs(targets[i] - targets[r]))
                hit = row_weight[r] - miss
                misses += miss
                hits += hit
                for j in range(n_columns):
                    d = abs(np.int32(x[j]) - np.int32(y[j]))
                    sides[0, feature[j]] += miss * d
                    sides[1, feature[j]] += hit * d
        misses *= v
        hits *= v
        sums[0, own] += misses
        sums[1, own] += hits
        sums[2, own] += misses * misses
        sums[3, own] += misses * hits
        sums[4, own] += hits * hits
        for j in range(n_features):
            a, b = v * sides[0, j], v * sides[1, j]
            total[2 * own, j] += a
            total[2 * own + 1, j] += b
            add_products(spread, own, j, a, b, misses, hits)
