"""The exact mutual information between columns of codes, from contingency tables."""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.method.arrays import Array

MAX_TABLE_CELLS = 2**16  # for larger contingency tables, the rows are sorted and counted


@kernel()
def information(codes: Array, levels: Array, target: Array, n_target: int, out: Array) -> None:
    """Compute the mutual information of each feature with the target, in nats, and write it to `out`.

    I(X; Y) = H(X) + H(Y) - H(X, Y), with the entropies H = log m - Σ n·log n / m, where n are the counts of the levels
    in m rows.

    Parameters
    ----------
    codes : array of shape (features, rows): the level of each value, from 0
    levels : the number of levels of each feature
    target : the level of the target in each row
    n_target : the number of levels of the target
    """
    m = len(target)
    nlogn = np.zeros(m + 1)
    for n in range(2, m + 1):
        nlogn[n] = n * np.log(n)
    of_target = np.zeros(n_target, np.int64)
    for r in range(m):
        of_target[target[r]] += 1
    total_target = nlogn[of_target].sum()
    for j in range(len(codes)):
        size = levels[j] * n_target
        total, joint = 0.0, 0.0
        if size <= max(MAX_TABLE_CELLS, m):
            table = np.zeros((levels[j], n_target), np.int64)
            for r in range(m):
                table[codes[j, r], target[r]] += 1
            for v in range(levels[j]):
                total += nlogn[table[v].sum()]
                for t in range(n_target):
                    joint += nlogn[table[v, t]]
        else:
            cells = np.empty(m, np.int64)
            for r in range(m):
                cells[r] = np.int64(codes[j, r]) * n_target + target[r]
            cells.sort()
            joint = _runs(cells, nlogn)
            total = _runs(cells // n_target, nlogn)
        out[j] = max(0.0, np.log(m) + (joint - total - total_target) / m)


@kernel()
def _runs(values: Array, nlogn: Array) -> float:
    """Return Σ n·log n over the runs of equal values, where n is the length of a run."""
    total, start = 0.0, 0
    for r in range(1, len(values) + 1):
        if r == len(values) or values[r] != values[start]:
            total += nlogn[r - start]
            start = r
    return total
