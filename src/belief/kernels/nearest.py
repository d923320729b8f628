"""The selection of the nearest rows by bounds of their distances and by exact distances, for any storage format.

    float32 products --scan--> candidates --narrow--> those within all bounds --exact distances--> round9 --push--> best

`scan` uses lower and upper bounds of d², so that rounding errors of the float32 product can add candidates but never
lose one. `narrow` collects upper bounds of candidates, which exclude most candidates in other parts of the data. `push`
sorts candidates by their exact float64 distances after rounding; ties go to the row with the smaller tie key, a random
number.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.instructions import lowest_bit
from belief.kernels.shapes import POWERS_OF_TEN, TIE_MARGIN, UNIT_ROUNDOFF
from belief.method.arrays import Array

_LANES = 64  # rows that are compared at a time, one for each bit of a number
_GUESSES, _SURPLUS = 8, 4  # number of bounds to try, and how many more rows than wanted may be within a bound
_SIDE = 8  # number of rows and of columns that are transposed at a time
_FILLED = 64  # largest number of rows that are sorted at a time


@kernel()
def _count_within(low: Array, p: Array, t: float) -> int:
    """Return the number of rows with low - 2·p <= t; t is a float32 number.

    low - 2·p is the lower bound of d² without the term of the query, as in `scan`; p are the inner products. The
    compiler vectorises this count, but would not vectorise a search for the minimum.
    """
    n = np.int32(0)
    for j in range(len(low)):
        n = np.int32(n + np.int32(low[j] - np.float32(2.0) * p[j] <= t))
    return n


@kernel()
def _mark_within(low: Array, p: Array, t: float) -> int:
    """Return a number with one bit per row, at most 64. A bit is 1 if low - 2·p <= t, a float32 number."""
    bits = np.uint64(0)
    for j in range(len(low)):
        bits |= np.uint64(low[j] - np.float32(2.0) * p[j] <= t) << np.uint64(j)
    return np.int64(bits)


@kernel()
def _guess_bound(low: Array, p: Array, wanted: int, low_q: float, guess: float) -> tuple[float, int]:
    """Find, by bisection, a squared distance that is not exceeded by the lower bounds of `wanted` rows or a few more.

    Return this distance, or infinity if none was found, and the number of lower bounds that do not exceed it.
    """
    least, most, found = 0.0, np.inf, len(p)
    for _ in range(_GUESSES):
        t = np.float32(guess - low_q)
        n = _count_within(low, p, t)
        if n >= wanted:
            most, found = low_q + t, n
            if n <= wanted + _SURPLUS:
                break
        else:
            least = guess
        guess = (least + most) / 2.0 if least > 0.0 and most < np.inf else guess * (1.1 if n < wanted else 1 / 1.1)
    return most, found


@kernel()
def _round_up(t: float) -> float:
    """Return a float32 number that is not below t."""
    return np.float32(t + abs(t) * 2.0 * UNIT_ROUNDOFF)


@kernel()
def scan(
    product: Array,
    query: tuple[Array, Array],
    row: tuple[Array, Array],
    groups: Array,
    own: Array,
    limit: Array,
    size: int,
    start: int,
    found_query: Array,
    found_row: Array,
    found_low: Array,
) -> tuple[int, int]:
    """Find the candidates for the neighbours of each query: rows that may be among the `size` nearest of their group.

    Parameters
    ----------
    product : (queries, rows) float32, the inner products
    query, row : (low, gap) each: d² is at least low_q + low_r - 2·product, and larger by at most gap_q + gap_r
    groups : the rows of group g are groups[g] to groups[g + 1] - 1
    own : the column of each query itself, or -1
    limit : (queries, groups), the largest d² of a candidate
    found_query, found_row, found_low : buffers for the candidates and their lower bounds of d², at least as long as a
        row of `product`

    Returns
    -------
    the number of candidates, and the query to continue with, since the buffers may fill up
    """
    low_q, gap_q = query
    low_r, gap_r = row
    n, width = product.shape
    n_groups = len(groups) - 1
    column = np.empty(width, np.int64)
    value = np.empty(width, np.float32)
    upper = np.empty(size, np.float64)
    widest = gap_r.max() if width else 0.0
    guess = np.full(n_groups, low_r.mean() + low_q.mean() if n and width else 0.0)
    count = 0
    for q in range(start, n):
        if count + width > len(found_row):
            return count, q
        p = product[q]
        for g in range(n_groups):
            a, b = groups[g], groups[g + 1]
            t = _round_up(limit[q, g] - low_q[q])
            is_tight = False
            if limit[q, g] == np.inf:
                # one of the size + 1 rows may be the query itself
                d2, found = _guess_bound(low_r[a:b], p[a:b], size + 1, low_q[q], guess[g])
                is_tight = found <= 2 * size
                if d2 < np.inf:
                    guess[g], t = d2, _round_up((d2 + widest + gap_q[q]) * (1.0 + TIE_MARGIN) - low_q[q])
            held = 0
            kept = 0
            b = a
            while b < groups[g + 1]:
                a, b = b, min(b + _LANES, groups[g + 1])
                bits = _mark_within(low_r[a:b], p[a:b], t)
                while bits != 0:
                    j = a + lowest_bit(bits)
                    bits &= bits - 1
                    v = low_r[j] - np.float32(2.0) * p[j]
                    if v > t or j == own[q]:
                        continue
                    column[kept] = j
                    value[kept] = v
                    kept += 1
                    if is_tight:
                        continue
                    # keep the `size` smallest upper bounds: rows whose lower bound is larger cannot be neighbours
                    u = (v + gap_r[j] + gap_q[q]) * (1.0 + TIE_MARGIN) + TIE_MARGIN * low_q[q]
                    if held == size and u >= upper[size - 1]:
                        continue
                    i = held if held < size else size - 1
                    while i > 0 and upper[i - 1] > u:
                        upper[i] = upper[i - 1]
                        i -= 1
                    upper[i] = u
                    if held < size:
                        held += 1
                    if held == size and upper[size - 1] < t:
                        t = _round_up(upper[size - 1])
            for i in range(kept):
                if value[i] <= t:
                    found_query[count] = q
                    found_row[count] = column[i]
                    found_low[count] = low_q[q] + value[i]
                    count += 1
    return count, n


@kernel()
def narrow(bound: Array, where: Array, group: Array, upper: Array) -> None:
    """Insert upper bounds of d² into `bound`, the sorted lists of the smallest bounds, in place.

    `bound` has a list for each query and group, (queries, groups, size). The bound upper[p] goes to the list of the
    query with the index where[p] and of the group with the index group[p].
    """
    for p in range(len(upper)):
        best, u = bound[where[p], group[p]], upper[p]
        i = len(best)
        while i > 0 and u < best[i - 1]:
            i -= 1
        for t in range(len(best) - 1, i, -1):
            best[t] = best[t - 1]
        if i < len(best):
            best[i] = u


@kernel()
def transpose(x: Array, out: Array) -> None:
    """Write the transpose of x to `out`, in squares that fit into registers."""
    n, width = x.shape
    square = np.empty((_SIDE, _SIDE), np.float32)
    for a in range(0, n, _SIDE):
        for b in range(0, width, _SIDE):
            if a + _SIDE <= n and b + _SIDE <= width:
                for i in range(_SIDE):
                    line = x[a + i]
                    for j in range(_SIDE):
                        square[j, i] = line[b + j]
                for j in range(_SIDE):
                    line = out[b + j]
                    for i in range(_SIDE):
                        line[a + i] = square[j, i]
            else:
                for j in range(b, min(b + _SIDE, width)):
                    for i in range(a, min(a + _SIDE, n)):
                        out[j, i] = x[i, j]


@kernel()
def round9(x: float) -> float:
    """Round to 9 significant digits, so that equal distances summed in another order compare equal."""
    if x <= 0.0:
        return 0.0
    if 1.0 <= x < 1e15:  # most distances, without a logarithm
        whole = 0
        while x >= POWERS_OF_TEN[whole + 1]:
            whole += 1
        power = POWERS_OF_TEN[abs(8 - whole)]
        return np.rint(x * power) / power if whole <= 8 else np.rint(x / power) * power
    digits = min(8 - int(np.floor(np.log10(x))), 300)  # 10^300 is finite, but larger powers may overflow
    if digits >= 0:
        # division is rounded correctly, so values just below and above a power of ten give the same result
        power = 10.0**digits
        return np.rint(x * power) / power
    power = 10.0**-digits
    return np.rint(x / power) * power


@kernel()
def insert(ds: Array, keys: Array, rows: Array, d: float, key: int, row: int) -> None:
    """Insert a row into a list sorted by distance and key, unless it belongs after all entries of the list."""
    i = len(ds) - 1
    if d > ds[i] or (d == ds[i] and key >= keys[i]):
        return
    while i > 0 and rows[i - 1] < 0:  # skip empty entries
        i -= 1
    while i > 0 and (d < ds[i - 1] or (d == ds[i - 1] and key < keys[i - 1])):
        ds[i], keys[i], rows[i] = ds[i - 1], keys[i - 1], rows[i - 1]
        i -= 1
    ds[i], keys[i], rows[i] = d, key, row


@kernel()
def _sort(d: Array, key: Array, order: Array) -> None:
    """Write the order of rows by distance and key to `order`.

    The rank of a row is the number of smaller ones. Counting them needs no branches, so it is faster than sorting.
    """
    for i in range(len(d)):
        rank = 0
        for j in range(len(d)):
            rank += (d[j] < d[i]) | ((d[j] == d[i]) & (key[j] < key[i]))
        order[rank] = i


@kernel()
def _merge(ds: Array, keys: Array, rows: Array, d: Array, key: Array, row: Array, order: Array) -> None:
    """Merge rows, sorted by `order`, into a sorted list, which keeps its length: the farthest rows are dropped.

    Empty entries are at the end of the list.
    """
    i, j = len(ds) - 1, len(order) - 1
    for _ in range(len(order)):  # drop the farthest row of both lists
        t = order[j]
        if j < 0 or (i >= 0 and (rows[i] < 0 or d[t] < ds[i] or (d[t] == ds[i] and key[t] < keys[i]))):
            i -= 1
        else:
            j -= 1
    to = len(ds) - 1
    while j >= 0:
        t = order[j]
        if i >= 0 and (d[t] < ds[i] or (d[t] == ds[i] and key[t] < keys[i])):
            ds[to], keys[to], rows[to] = ds[i], keys[i], rows[i]
            i -= 1
        else:
            ds[to], keys[to], rows[to] = d[t], key[t], row[t]
            j -= 1
        to -= 1


@kernel()
def push(
    best: tuple[Array, Array, Array], where: Array, at: Array, d2: Array, group: Array, key: Array, row: Array
) -> None:
    """Insert rows into `best`, the sorted lists of the nearest rows for each query and group, in place.

    `best` has the arrays d2, key and row, each of shape (queries, groups, size). Candidate p is at the distance d2[p]
    from query where[p]; its group, key and row are group[at[p]], key[at[p]] and row[at[p]].
    """
    ds, keys, rows = best
    d, some_keys, some_rows = np.empty(_FILLED, np.float64), np.empty(_FILLED, key.dtype), np.empty(_FILLED, row.dtype)
    order = np.empty(_FILLED, np.int64)
    p = 0
    while p < len(d2):
        q, g, n = where[p], group[at[p]], 0
        limit = ds[q, g, -1] * (1.0 + TIE_MARGIN)
        while p < len(d2) and n < _FILLED and where[p] == q and group[at[p]] == g:
            d[n], some_keys[n], some_rows[n] = d2[p], key[at[p]], row[at[p]]
            n += d2[p] <= limit  # otherwise, the next one overwrites it, which is faster than a branch
            p += 1
        for i in range(n):
            d[i] = round9(d[i])  # takes most of the time
        if n == 1:
            insert(ds[q, g], keys[q, g], rows[q, g], d[0], some_keys[0], some_rows[0])
        elif n:
            _sort(d[:n], some_keys[:n], order[:n])
            _merge(ds[q, g], keys[q, g], rows[q, g], d, some_keys, some_rows, order[:n])
