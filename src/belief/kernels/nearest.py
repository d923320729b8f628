"""The selection of the nearest rows by bounds of their distances and by exact distances, for any storage format.

    float32 products --scan--> candidates --narrow--> those within all bounds --exact distances--> round9 --push--> best

`scan` uses lower and upper bounds of d², so that rounding errors of the float32 product can add candidates but never
lose one. `narrow` keeps the upper bounds of candidates, which exclude most candidates in other parts of the data.
`push` orders by exact distances in float64, rounded, with ties decided by key.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.shapes import POWERS_OF_TEN, TIE_MARGIN, UNIT_ROUNDOFF
from belief.method.arrays import Array

_LANES = 64


@kernel()
def _within(low: Array, p: Array, t: float) -> int:
    """Return the number of rows whose lower bound of d² is at most t.

    The compiler vectorises this loop, but not a loop for the minimum.
    """
    n = 0
    for j in range(len(low)):
        n += low[j] - np.float32(2.0) * p[j] <= t
    return n


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
    """Find the candidates for neighbours: rows that may be among the `size` nearest of their group, for each query.

    Parameters
    ----------
    product : (queries, rows) float32, the inner products
    query, row : (low, gap) each: d² lies between low_q + low_r - 2·product and that plus gap_q + gap_r
    groups : the rows of group g are groups[g] to groups[g + 1]
    own : the column of each query itself, or -1
    limit : (queries, groups), the largest distance of a candidate
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
    count = 0
    for q in range(start, n):
        if count + width > len(found_row):
            return count, q
        p = product[q]
        for g in range(n_groups):
            t = _round_up(limit[q, g] - low_q[q])
            held = 0
            kept = 0
            a, b = groups[g], groups[g]
            while b < groups[g + 1]:
                a, b = b, min(b + _LANES, groups[g + 1])
                if _within(low_r[a:b], p[a:b], t) == 0:
                    continue
                for j in range(a, b):
                    v = low_r[j] - np.float32(2.0) * p[j]
                    if v > t or j == own[q]:
                        continue
                    column[kept] = j
                    value[kept] = v
                    kept += 1
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
    """Insert upper bounds of d² into `bound`, the sorted lists of the smallest for each query and group, in place.

    `bound` has the shape (queries, groups, size); upper[p] belongs to the list of query where[p] and group[p].
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
    """Write the transpose of x to `out`, in square parts that fit into the CPU cache."""
    n, width = x.shape
    for a in range(0, n, 32):
        for b in range(0, width, 32):
            for j in range(b, min(b + 32, width)):
                for i in range(a, min(a + 32, n)):
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
    digits = min(8 - int(np.floor(np.log10(x))), 300)  # 10^300 is finite, larger powers may not be
    if digits >= 0:
        # division is rounded correctly, so values just below and above a power of ten round to the same
        power = 10.0**digits
        return np.rint(x * power) / power
    power = 10.0**-digits
    return np.rint(x / power) * power


@kernel()
def insert(ds: Array, keys: Array, rows: Array, d: float, key: int, row: int) -> None:
    """Insert a row into one list, which is sorted by distance and key, unless it comes after all entries."""
    i = len(ds)
    while i > 0 and (d < ds[i - 1] or (d == ds[i - 1] and key < keys[i - 1])):
        i -= 1
    if i == len(ds):
        return
    for t in range(len(ds) - 1, i, -1):
        ds[t], keys[t], rows[t] = ds[t - 1], keys[t - 1], rows[t - 1]
    ds[i], keys[i], rows[i] = d, key, row


@kernel()
def push(best: tuple[Array, Array, Array], where: Array, group: Array, d2: Array, key: Array, row: Array) -> None:
    """Insert rows into `best`, the sorted lists of the nearest rows for each query and group, in place.

    `best` has the arrays d2, key and row, each of shape (queries, groups, size); entry p belongs to the list of query
    where[p] and group[p].
    """
    ds, keys, rows = best
    for p in range(len(d2)):
        q, g = where[p], group[p]
        if d2[p] > ds[q, g, -1] * (1.0 + TIE_MARGIN):
            continue  # rounding takes longer than all else here
        insert(ds[q, g], keys[q, g], rows[q, g], round9(d2[p]), key[p], row[p])
