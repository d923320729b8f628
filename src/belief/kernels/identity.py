"""A 64-bit number for each row, the same for rows with the same values, whatever their order, block or storage.

It is a sum over the values that are not 0, so that a sparse row has the number of the same row dense.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.sparse import Csr
from belief.method.arrays import Array

_MISSING = np.uint64(0x7FF8000000000000)  # all missing values are alike


@kernel()
def _mix(z: int) -> int:
    """The finaliser of splitmix64, modulo 2^64."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel()
def of_dense(X: Array, rows: Array, a: int, keys: Array, out: Array) -> None:
    """Add the features from column `a` on, of which these are the keys, to the numbers of the rows."""
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for i in range(len(rows)):
        x = X[rows[i]]
        for j in range(len(keys)):
            value[0] = x[a + j]
            if value[0] != 0.0:
                out[i] += _mix((bits[0] if value[0] == value[0] else _MISSING) ^ keys[j])


@kernel()
def of_sparse(rows: Csr, keys: Array, out: Array) -> None:
    """The numbers of sparse rows."""
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for i in range(len(out)):
        for p in range(rows.start[i], rows.start[i + 1]):
            value[0] = rows.value[p]
            if value[0] != 0.0:
                out[i] += _mix(bits[0] ^ keys[rows.column[p]])
