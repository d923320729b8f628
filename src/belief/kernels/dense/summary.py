"""Kernels that summarise dense rows, hash them, and copy selected values."""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.method import sampling
from belief.method.arrays import Array

BETWEEN_CHECK_ROWS = 32  # check after this many rows whether all columns have values between minimum and maximum
_MISSING = np.uint64(0x7FF8000000000000)  # stands for every missing value

splitmix64 = kernel()(sampling.splitmix64)


@kernel()
def gather(X: Array, rows: Array, columns: Array, out: Array) -> None:
    """Copy some columns of some rows of X to `out`."""
    for i in range(len(rows)):
        x = X[rows[i]]
        for j in range(len(columns)):
            out[i, j] = x[columns[j]]


@kernel()
def moments(
    X: Array, lo: int, hi: int, a: int, b: int, origin: Array, out: Array, group: Array, total: Array, absent: Array
) -> None:
    """Write the moments of columns a to b over rows lo to hi to `out`, (7, b - a).

    The moments are count, mean - origin, M2, minimum, maximum, number of non-zeros, and whether any value lies
    strictly between the minimum and the maximum.

    Parameters
    ----------
    origin : a value of each column; NaN is replaced by the first value of the column
    group : the group of each row
    total, absent : (groups, b - a)
        Σ(x - origin) of each group is added to `total`, its number of missing values to `absent`.
    """
    n = b - a
    # separate arrays and short loops are vectorised, and the row stays in the CPU cache
    count, shift, m2, nonzero = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    least, most, between = np.empty(n, X.dtype), np.empty(n, X.dtype), np.zeros(n)
    for j in range(n):
        least[j] = most[j] = X[lo, a + j]
        i = lo
        while origin[j] != origin[j] and i < hi:
            origin[j] = X[i, a + j]
            i += 1
    for i in range(lo, hi):
        x = X[i, a:b]
        for j in range(n):
            present = x[j] == x[j]
            count[j] += present
            shift[j] += np.float64(x[j]) - origin[j] if present else 0.0
        for j in range(n):
            least[j] = least[j] if least[j] <= x[j] or x[j] != x[j] else x[j]
            most[j] = most[j] if most[j] >= x[j] or x[j] != x[j] else x[j]
        for j in range(n):
            nonzero[j] += x[j] != 0.0
    missing, undecided = 0.0, True
    for j in range(n):
        shift[j] = shift[j] / count[j] if count[j] > 0.0 else 0.0
        missing += hi - lo - count[j]
    for i in range(lo, hi):
        x, group_sum, group_missing = X[i, a:b], total[group[i - lo]], absent[group[i - lo]]
        for j in range(n):
            y = np.float64(x[j]) - origin[j]
            d = y - shift[j]
            m2[j] += d * d if d == d else 0.0
            group_sum[j] += y if y == y else 0.0
        if missing > 0.0:
            for j in range(n):
                group_missing[j] += x[j] != x[j]
        if undecided:
            for j in range(n):
                between[j] += x[j] > least[j] and x[j] < most[j]
            if (i - lo) % BETWEEN_CHECK_ROWS == 0:
                undecided = False
                for j in range(n):
                    undecided |= between[j] == 0.0
    for j in range(n):  # assigning whole rows would take seconds to compile
        out[0, j], out[1, j], out[2, j], out[5, j] = count[j], shift[j], m2[j], nonzero[j]
        out[6, j] = between[j]
        out[3, j], out[4, j] = least[j], most[j]  # NaN if all values are missing


@kernel()
def levels(X: Array, columns: Array, group: Array, value: Array, count: Array, found: Array) -> None:
    """Count how often each distinct value of some columns occurs in each group of rows.

    Parameters
    ----------
    value, count : the outputs, (columns, levels) and (columns, levels, groups)
    found : the number of levels of each column; -1 if they do not fit into `value`
    """
    most = value.shape[1]
    found[:] = 0
    for i in range(len(X)):
        g = group[i]
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
                for other in range(count.shape[2]):
                    count[t, v, other] = 0
                found[t] += 1
            count[t, v, g] += 1


@kernel()
def add_identities(X: Array, rows: Array, a: int, keys: Array, out: Array) -> None:
    """Add hashes of the values of some features to `out`, the identities of the rows.

    `keys` has a random key for each of these features, which begin at column `a`.

    An identity is a 64-bit number that is equal for rows with the same values. It does not depend on the order of the
    rows, on blocks or on the storage format. It is a sum over the non-zero values, so a sparse row has the same
    identity as a dense row with the same values.
    """
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for i in range(len(rows)):
        x = X[rows[i]]
        for j in range(len(keys)):
            value[0] = x[a + j]
            if value[0] != 0.0:
                out[i] += splitmix64((bits[0] if value[0] == value[0] else _MISSING) ^ keys[j])
