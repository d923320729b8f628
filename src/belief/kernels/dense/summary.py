"""The summary of dense rows (1.), and some of their values in one place."""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.method.arrays import Array

ASKED = 32  # rows after which it is asked whether all columns have a value between, and no more need be looked at


@kernel()
def gather(X: Array, rows: Array, columns: Array, out: Array) -> None:
    """Copy some columns of some rows to `out`."""
    for i in range(len(rows)):
        x = X[rows[i]]
        for j in range(len(columns)):
            out[i, j] = x[columns[j]]


@kernel()
def moments(X: Array, lo: int, hi: int, a: int, b: int, out: Array, group: Array, total: Array, absent: Array) -> None:
    """Moments of columns a to b over rows lo to hi, into out (7, b - a).

    Those are count, mean, M2, minimum, maximum, non-zeros, and whether values are between the minimum and the maximum.

    Parameters
    ----------
    group : the group of each of the rows
    total, absent : (groups, b - a) zeros, to which Σ(x - mean) and the missing values of each group are added
    """
    n = b - a
    # separate arrays and short loops: each runs in vector lanes, and the row stays in the cache
    count, mean, m2, nonzero = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    least, most, between = np.empty(n, X.dtype), np.empty(n, X.dtype), np.zeros(n)
    for j in range(n):
        least[j] = most[j] = X[lo, a + j]
    for i in range(lo, hi):
        x = X[i, a:b]
        for j in range(n):
            there = x[j] == x[j]
            count[j] += there
            mean[j] += np.float64(x[j]) if there else 0.0
        for j in range(n):
            least[j] = least[j] if least[j] <= x[j] or x[j] != x[j] else x[j]
            most[j] = most[j] if most[j] >= x[j] or x[j] != x[j] else x[j]
        for j in range(n):
            nonzero[j] += x[j] != 0.0
    missing, undecided = 0.0, True
    for j in range(n):
        mean[j] = mean[j] / count[j] if count[j] > 0.0 else 0.0
        missing += hi - lo - count[j]
    for i in range(lo, hi):
        x, of_group, not_there = X[i, a:b], total[group[i - lo]], absent[group[i - lo]]
        for j in range(n):
            d = np.float64(x[j]) - mean[j]
            m2[j] += d * d if d == d else 0.0
            of_group[j] += d if d == d else 0.0
        if missing > 0.0:
            for j in range(n):
                not_there[j] += x[j] != x[j]
        if undecided:
            for j in range(n):
                between[j] += x[j] > least[j] and x[j] < most[j]
            if (i - lo) % ASKED == 0:
                undecided = False
                for j in range(n):
                    undecided |= between[j] == 0.0
    for j in range(n):  # one by one: assigning whole rows takes seconds to compile
        out[0, j], out[1, j], out[2, j], out[5, j] = count[j], mean[j], m2[j], nonzero[j]
        out[6, j] = between[j]
        out[3, j], out[4, j] = least[j], most[j]  # NaN where nothing is present: the maximum is not above the minimum


@kernel()
def levels(X: Array, columns: Array, group: Array, value: Array, count: Array, found: Array) -> None:
    """The distinct values of some columns and how often each occurs in each group; found = -1: more than fit.

    Parameters
    ----------
    value, count : (columns, levels) and (columns, levels, groups), of which `found` levels are filled
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
