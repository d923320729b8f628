"""Searches and sums of the probe, a small table of scores that is searched many times (section 6c of method.md).

Scores are small integers, so sums are exact in any order. Distances are exact up to 2^24, which only tables of about
8,000 features or more can exceed; larger distances are rounded to single precision.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.tally import add_products
from belief.kernels.instructions import WORD, Instructions, block_products, lowest_bit
from belief.method.arrays import Array
from belief.method.probe import T_GRID

BISECTIONS, ENOUGH = 12, 2  # steps to find a limit of the distances; how many more rows than wanted may be within it
GROUPS_PER_ROW = 4  # number of groups of rows for each row that is wanted
MAX_SURPLUS = 16  # surplus candidates are removed one by one up to this number; if there are more, all are sorted
LANES = 64  # number of rows that are compared at a time, one for each bit of a number
COLUMNS = 16  # number of columns that are ranked together
TALLIED_COLUMNS = 4096  # number of columns whose differences are added up together, so that they stay in the cache


@kernel()
def rank_scores(values: Array, knots: Array, scores: Array, out: Array) -> None:
    """Write the score of each value to `out`; it depends on the value's rank among the knots of its column.

    Parameters
    ----------
    values : array of shape (m, F)
    knots : array of shape (n, F), sorted along the first axis
    scores : array of int8 of shape (2·n + 1,)
        The score for each a + b, with a knots below the value and b knots not above it.
    out : array of int8 of shape (m, F)
    """
    n, m, width = len(knots), len(values), 1
    while width <= n:
        width *= 2
    column, above = np.full(width, np.inf, values.dtype), np.zeros(width, np.int32)
    block, below = np.empty((COLUMNS, m), values.dtype), np.empty(m, np.uint32)
    ranked = np.empty((COLUMNS, m), np.int8)
    for first in range(0, values.shape[1], COLUMNS):
        number = min(COLUMNS, values.shape[1] - first)
        for i in range(m):  # several columns, because reading one alone loads a line of the cache for each value
            for t in range(number):
                block[t, i] = values[i, first + t]
        for c in range(number):
            column[:n] = knots[:, first + c]
            above[n - 1] = n
            for t in range(n - 2, -1, -1):  # the number of knots that are not above a value equal to this knot
                above[t] = above[t + 1] if column[t] == column[t + 1] else t + 1
            x = block[c]
            below[:] = 0
            step = width // 2
            while step > 0:  # one step of the binary search for all values is faster than all steps for one
                _step(column, x, below, np.uint32(step))
                step //= 2
            for i in range(m):
                at = below[i]
                ranked[c, i] = scores[at + (above[at] if column[at] == x[i] else at)]
        for i in range(m):
            for t in range(number):
                out[i, first + t] = ranked[t, i]


@kernel()
def _step(knots: Array, x: Array, below: Array, step: int) -> None:
    """Do one step of a bisection: count the sorted knots below each value of x, for all values at once.

    `below` holds the counts found so far. A count grows by `step` if at least `step` further knots are below the value.
    """
    for i in range(len(x)):
        at = below[i]
        below[i] = at + step if knots[at + step - np.uint32(1)] < x[i] else at


@kernel()
def _insert(d: float, row: int, n: int, found: Array, rows: Array) -> int:
    """Insert a row into a list of n rows sorted by distance, after rows at the same distance; return the new n."""
    size = len(rows)
    if n == size and not d < found[size - 1]:
        return n
    i = min(n, size - 1)
    while i > 0 and d < found[i - 1]:
        found[i], rows[i] = found[i - 1], rows[i - 1]
        i -= 1
    found[i], rows[i] = d, row
    return min(n + 1, size)


@kernel(fastmath=True)  # distances are never NaN
def _limit(d2: Array, size: int, least: Array) -> float:
    """Return a limit of d² that is exceeded by most rows, but not by the `size` nearest ones.

    The rows are divided into groups, and least[g] becomes the smallest d² of group g. If n of these smallest d² are
    within a limit, then at least n rows are within it.
    """
    n, size = len(d2), min(size, len(d2))
    width = min(n, len(least))
    least[:width] = d2[:width]
    a = width
    while a + width <= n:
        part = d2[a : a + width]
        for t in range(width):
            least[t] = min(least[t], part[t])
        a += width
    for t in range(n - a):
        least[t] = min(least[t], d2[a + t])
    low, high = least[0], least[0]
    for t in range(1, width):
        low, high = min(low, least[t]), max(high, least[t])
    for _ in range(BISECTIONS):
        middle, count = np.float32(0.5) * (low + high), np.float32(0.0)
        for t in range(width):
            count += np.float32(1.0) if least[t] <= middle else np.float32(0.0)
        if count < size:
            low = middle
        else:
            high = middle
            if count <= size + ENOUGH:
                break
    return high


@kernel(fastmath=True)
def _largest(x: Array) -> float:
    largest = x[0]
    for t in range(1, len(x)):
        largest = max(largest, x[t])
    return largest


@kernel()
def _append_near(d2: Array, first: int, last: int, limit: float, skip: int, near: Array, n: int) -> int:
    """Append the rows from `first` to `last` - 1 within the limit to a list, except `skip`; return its new length n."""
    for a in range(first, last, LANES):
        part, bits = d2[a : min(a + LANES, last)], np.uint64(0)
        for t in range(len(part)):
            bits |= np.uint64(part[t] <= limit) << np.uint64(t)
        left = np.int64(bits)
        while left != 0:
            near[n] = a + lowest_bit(left)
            left &= left - 1
            n += near[n] != skip
    return n


@kernel()
def _nearest(d2: Array, first: int, last: int, skip: int, rows: Array, found: Array, near: Array, least: Array) -> None:
    """Write the rows from `first` to `last` - 1 with the smallest d² to `rows`, without the row `skip`.

    If distances are equal, rows come in cyclic order from a start that depends on `skip`.
    """
    limit = _limit(d2[first:last], len(rows) + 1, least)  # one more, because `skip` may be among them
    start, size = first + skip % (last - first), len(rows)
    n = _append_near(d2, start, last, limit, skip, near, 0)
    n = _append_near(d2, first, start, limit, skip, near, n)
    if n - size > MAX_SURPLUS:
        n_found = 0
        for t in range(n):
            n_found = _insert(d2[near[t]], near[t], n_found, found, rows)
        return
    for t in range(n):
        found[t] = d2[near[t]]
    while n > size:  # remove the farthest row, or the last one if several are equally far
        farthest, worst = _largest(found[:n]), n - 1
        while found[worst] < farthest:
            worst -= 1
        n -= 1
        for t in range(worst, n):
            near[t], found[t] = near[t + 1], found[t + 1]
    for t in range(size):
        rows[t] = near[t]


@kernel()
def add_shuffled(fixed: Array, of_block: Array, line: Array, order: Array, out: Array) -> None:
    """Write fixed + of_block[line][:, order] to `out`, the sum of two matrices of which the second is rearranged."""
    for q in range(len(out)):
        a, b, to = fixed[q], of_block[line[q]], out[q]
        for r in range(len(order)):
            to[r] = a[r] + b[order[r]]


@kernel()
def pack(X: Array, offset: int, packed: Array, sums: Array) -> None:
    """Pack rows of X into panels, the form that `block_products` reads.

    Parameters
    ----------
    X : array of int8 of shape (m, columns)
    offset : int
        A number that is added to each value.
    packed : array of int8 of shape (panels, steps, 4 * lanes)
        The output, which must be 0 at first.
    sums : array of int32 of shape (2, m)
        The sum of the values of each row, and of their squares.
    """
    lanes = packed.shape[2] // WORD
    for i in range(len(X)):
        x, panel, at = X[i], packed[i // lanes], WORD * (i % lanes)
        total, squares = 0, 0
        for j in range(len(x)):
            v = np.int64(x[j])
            panel[j // WORD, at + j % WORD] = np.int8(v + offset)
            total += v
            squares += v * v
        sums[0, i], sums[1, i] = total, squares


@kernel()
def find_nearest(
    kind: Instructions | None,
    D: Array,
    packed: Array,
    ints: Array,
    sums: Array,
    sign: float,
    is_kept: bool,
    queries: Array,
    ends: Array,
    rows: Array,
) -> None:
    """Find the nearest rows of each query in each class, after d² in some columns is added or subtracted.

    Parameters
    ----------
    kind : Instructions or None
        None if D already has all distances.
    D : array of float32 of shape (queries, m)
        d² between each query and each row; the rows are sorted by class.
    packed, sums
        The columns whose d² is added or subtracted, as in `pack`.
    ints : array of int8 of shape (queries, 4 * steps)
        The same columns of the queries. The array is padded with lines of zeros to a multiple of `kind.queries` lines.
    sign : float
        1 if d² in these columns is added to D, -1 if it is subtracted.
    is_kept : bool
        Whether D is updated.
    queries : array of int
        The row of each query.
    ends : array of int
        The end of the rows of each class.
    rows : array of int32 of shape (queries, classes, size)
        The output: the nearest rows, in no particular order.
    """
    m, candidates = D.shape[1], np.empty(D.shape[1] + 1, np.int32)
    found = np.empty(rows.shape[2] + MAX_SURPLUS, np.float32)
    least = np.empty(max(128, GROUPS_PER_ROW * rows.shape[2]), np.float32)
    if kind is None:
        for q in range(len(queries)):
            _find(D[q], queries[q], ends, rows[q], found, candidates, least)
    else:
        products, d2 = np.empty((kind.queries, len(packed) * kind.lanes), np.int32), np.empty(m, np.float32)
        for first in range(0, len(queries), kind.queries):
            _multiply(kind, packed, ints[first:], products)
            for q in range(first, min(first + kind.queries, len(queries))):
                i, of_query = queries[q], products[q - first]
                line = D[q] if is_kept else d2
                more = sums[1, i] + 2 * kind.offset * sums[0, i]
                for r in range(m):  # written as int32, so that the compiler computes with these
                    of_query[r] = sums[1, r] + more - 2 * of_query[r]
                for r in range(m):
                    line[r] = D[q, r] + np.float32(sign) * np.float32(of_query[r])
                _find(line, i, ends, rows[q], found, candidates, least)


@kernel()
def add_distances(kind: Instructions, packed: Array, ints: Array, sums: Array, queries: Array, out: Array) -> None:
    """Add d² between each query and each row to `out`; the other arguments are as in `find_nearest`."""
    products = np.empty((kind.queries, len(packed) * kind.lanes), np.int32)
    for first in range(0, len(queries), kind.queries):
        _multiply(kind, packed, ints[first:], products)
        for q in range(first, min(first + kind.queries, len(queries))):
            of_query, i = products[q - first], queries[q]
            more = sums[1, i] + 2 * kind.offset * sums[0, i]
            for r in range(out.shape[1]):
                out[q, r] += sums[1, r] + more - 2 * of_query[r]


@kernel()
def _multiply(kind: Instructions, packed: Array, ints: Array, products: Array) -> None:
    """Write the inner products of the first `kind.queries` lines of `ints` with all rows in `packed` to `products`."""
    n_panels, steps, lanes = packed.shape[0], packed.shape[1], packed.shape[2] // WORD
    for p in range(0, n_panels, kind.panels):
        block_products(  # type: ignore[call-arg]
            kind, packed[p].ctypes.data, packed.shape[1] * packed.shape[2], ints.ctypes.data, ints.shape[1], steps,
            products[0, p * lanes :].ctypes.data, products.shape[1] * 4,
        )  # fmt: skip


@kernel()
def _find(d2: Array, i: int, ends: Array, rows: Array, found: Array, candidates: Array, least: Array) -> None:
    first = 0
    for c in range(len(ends)):
        _nearest(d2, first, ends[c], i, rows[c], found, candidates, least)
        first = ends[c]


@kernel()
def tally_classes(
    queries: Array, rows: Array, X: Array, line: Array, feature: Array, ends: Array, total: Array, spread: Array
) -> None:
    """Add up the differences of the queries from their nearest rows of each class.

    Parameters
    ----------
    queries : array of int
        The row of each query.
    rows : array of int32 of shape (queries, |C|, k)
        The nearest rows of each class.
    X : array of int8 of shape (m, columns)
    line : array of int of shape (m,)
        The line of X for each row.
    feature : array of int
        The feature of each column. The difference of two rows in a feature is summed over its columns.
    ends : array of int
        The end of the rows of each class.
    total : array of shape (2·|C|, F)
        Σ Δ of misses and hits of the queries of each class.
    spread : array of shape (2, |C|, F)
        Σ δ and Σ δ² over the queries of each class; δ is the mean Δ of misses minus the mean Δ of hits.
    """
    n_classes, n_features, size = len(ends), total.shape[1], rows.shape[2]
    single = X.shape[1] == n_features
    width = min(TALLIED_COLUMNS, n_features) if single else X.shape[1]
    near, sides = np.empty((n_classes, width), np.int32), np.empty((2, n_features), np.int32)
    misses, hits = n_classes - 1, 1
    per_miss, per_hit = 1.0 / (size * misses), 1.0 / size
    for start in range(0, X.shape[1], width):
        n_columns = min(width, X.shape[1] - start)
        n = n_columns if single else n_features
        for q in range(len(queries)):
            i, own = queries[q], 0
            x = X[line[i], start : start + n_columns]
            near[:] = 0
            for c in range(n_classes):
                if i >= ends[c]:
                    own = c + 1
                mine = near[c]
                for t in range(size):
                    y = X[line[rows[q, c, t]], start : start + n_columns]
                    for j in range(n_columns):
                        mine[j] += abs(np.int32(x[j]) - np.int32(y[j]))
            sides[:, :n] = 0
            for c in range(n_classes):
                side, mine = sides[1 if c == own else 0], near[c]
                if single:
                    for j in range(n_columns):
                        side[j] += mine[j]
                else:
                    for j in range(n_columns):
                        side[feature[j]] += mine[j]
            of_misses, of_hits = total[2 * own, start:], total[2 * own + 1, start:]
            deltas, squares = spread[0, own, start:], spread[1, own, start:]
            for j in range(n):
                a, b = sides[0, j], sides[1, j]
                of_misses[j] += a
                of_hits[j] += b
                if a * hits != b * misses:  # equal means add exactly 0, without rounding errors
                    delta = a * per_miss - b * per_hit
                    deltas[j] += delta
                    squares[j] += delta * delta


@kernel()
def tally_numbers(
    queries: Array,
    rows: Array,
    X: Array,
    line: Array,
    feature: Array,
    t: Array,
    total: Array,
    spread: Array,
    sums: Array,
) -> None:
    """Add up the differences of the queries from their nearest rows, for a numeric target.

    A neighbour is a miss to the degree τ = |t_q - t_r|, the difference of the two ranks, and a hit to the degree 1 - τ.

    Parameters
    ----------
    rows : array of int32 of shape (queries, 1, 2·k)
    t : array of shape (m,)
        The rank of each row, from 0 to 1, in steps of 1/T_GRID.
    total : array of shape (2, F)
        Σ τ·Δ and Σ (1 - τ)·Δ over all pairs.
    spread : array of shape (7, 1, F)
        Products of sums over the neighbours of a query, added up over the queries, as in `add_products`.
    sums : array of shape (5,)
        Σ τ and Σ (1 - τ) over all pairs. Then Σ a², Σ a·b and Σ b² over the queries, where a and b are Σ τ and
        Σ (1 - τ) over the neighbours of one query.
    queries, X, line, feature
        As in `tally_classes`.
    """
    n_columns, n_features = X.shape[1], total.shape[1]
    size = rows.shape[2]
    miss, both = np.empty(n_columns, np.int32), np.empty(n_columns, np.int32)
    sides = np.empty((2, n_features))
    for q in range(len(queries)):
        i = queries[q]
        x = X[line[i]]
        miss[:] = 0
        both[:] = 0
        misses = 0.0
        for s in range(size):
            y = X[line[rows[q, 0, s]]]
            tau = abs(t[i] - t[rows[q, 0, s]])
            misses += tau
            steps = np.int32(np.rint(tau * T_GRID))
            for j in range(n_columns):
                d = abs(np.int32(x[j]) - np.int32(y[j]))
                miss[j] += steps * d
                both[j] += d
        hits = size - misses
        sides[:] = 0.0
        for j in range(n_columns):
            a = miss[j] / T_GRID
            sides[0, feature[j]] += a
            sides[1, feature[j]] += both[j] - a
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
    queries: Array,
    rows: Array,
    X: Array,
    line: Array,
    feature: Array,
    ends: Array,
    targets: Array,
    row_weight: Array,
    query_weight: Array,
    total: Array,
    spread: Array,
    sums: Array,
) -> None:
    """Add up the differences of the queries from their nearest rows if rows have weights.

    Parameters
    ----------
    rows : array of int32 of shape (queries, groups, size)
    ends : array of int
        The end of the rows of each class; all rows are one group for a numeric target.
    targets : array of float of shape (m,)
        The class of each row, or its rank from 0 to 1.
    row_weight, query_weight : array of float of shape (m,)
        The weight of each row as a neighbour and as a query. All weights are multiples of the same number, so that the
        sums over the neighbours of a query are exact in any order.
    total : array of shape (2·groups, F)
        The weighted sums of Δ over the misses and over the hits of the queries of each group.
    spread : array of shape (7, groups, F)
        Products of sums over the neighbours of a query, added up over the queries of each group, as in `add_products`.
    sums : array of shape (5, groups)
        The sums of the weights of the misses and of the hits. Then, with t and u these sums for one query, Σ t², Σ t·u
        and Σ u² over the queries of each group.
    queries, X, line, feature
        As in `tally_classes`.
    """
    n_columns, n_features, size = X.shape[1], total.shape[1], rows.shape[2]
    sides = np.empty((2, n_features))
    for q in range(len(queries)):
        i, misses, hits = queries[q], 0.0, 0.0
        x, v, own = X[line[i]], query_weight[i], int(targets[i]) if len(ends) > 1 else 0
        sides[:] = 0.0
        for c in range(len(ends)):
            for s in range(size):
                r = rows[q, c, s]
                y, miss = X[line[r]], row_weight[r] * min(1.0, abs(targets[i] - targets[r]))
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
