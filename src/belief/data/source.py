"""Where rows come from: one small interface over arrays, memory maps, sequences of blocks, and tables.

A source gives the rows asked for as `(X, rows, a)`: a C-ordered float array, where each row is in it, and the column at
which the features asked for begin. An array in memory answers with itself, so nothing is copied; others gather.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from belief._utils.lazy import importing
from belief.method.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMALL_CELLS = 2**18  # values of a table for which nothing need be compiled
Located = tuple[Array, Array, int]  # an array, the place of each row in it, and the first column


class Source(Protocol):
    """Rows of numbers, by global id; a missing value is a NaN, a category its code."""

    n_rows: int
    n_features: int

    def rows(self, ids: Array, a: int, b: int) -> Located:
        """The features a to b of some rows."""

    def columns(self, ids: Array, columns: Array) -> Located:
        """Some features of some rows, in that order."""

    def longest_integer(self, j: int) -> int:
        """The largest absolute value of a column of 64-bit integers, 0 for any other."""


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy's; where nobody has imported that, which takes long, there is none."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def as_float(x: Array) -> Array:
    """Floats of the least size that holds the values exactly, C-ordered; float32 and float64 stay what they are."""
    exact32 = x.dtype.kind == "b" or (x.dtype.kind in "iuf" and x.dtype.itemsize <= 2)
    dtype = x.dtype if x.dtype in (np.float32, np.float64) else np.float32 if exact32 else np.float64
    return np.ascontiguousarray(x, dtype=dtype)


def frozen(x: Array) -> Array:
    """A read-only view: the kernels are compiled for one kind of array, and none of them writes to data."""
    x = x.view(np.ndarray)
    x.flags.writeable = False
    return x


def longest_integer(x: Array) -> int:
    """The largest absolute value of 64-bit integers, 0 for anything else."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8 or not x.size:
        return 0
    return max(abs(int(x.min())), abs(int(x.max())))


def packed(x: Array) -> Located:
    """What was gathered, as a source gives it."""
    return frozen(as_float(x)), np.arange(len(x)), 0


def consecutive(ids: Array) -> slice | Array:
    """A slice where the ids are consecutive: reading one is much faster than picking rows."""
    if len(ids) and ids[-1] - ids[0] == len(ids) - 1 and np.all(ids[1:] > ids[:-1]):
        return slice(int(ids[0]), int(ids[-1]) + 1)
    return ids


class GatherSource:
    """A source that copies what it is asked for; subclasses say how, in `_gather`."""

    n_rows: int
    n_features: int

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        raise AssertionError  # every subclass has its own

    def rows(self, ids: Array, a: int, b: int) -> Located:
        return packed(self._gather(ids, slice(a, b)))

    def columns(self, ids: Array, columns: Array) -> Located:
        run = consecutive(columns)
        if isinstance(run, slice):
            return self.rows(ids, run.start, run.stop)
        return packed(self._gather(ids, columns))


class ArraySource(GatherSource):
    """A two-dimensional array of numbers, in memory or memory-mapped."""

    def __init__(self, X: Array) -> None:
        self.n_rows, self.n_features = X.shape
        direct = X.dtype in (np.float32, np.float64) and X.dtype.isnative and X.flags.c_contiguous and X.flags.aligned
        self._direct = frozen(X) if direct else None
        self._X = X

    def rows(self, ids: Array, a: int, b: int) -> Located:
        return (self._direct, ids, a) if self._direct is not None else super().rows(ids, a, b)

    def longest_integer(self, j: int) -> int:
        return longest_integer(self._X[:, j])

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        if isinstance(columns, slice):
            return self._X[consecutive(ids), columns]
        if self._direct is None or self._X.size <= SMALL_CELLS:
            return self._X[np.ix_(ids, columns)]
        with importing():
            from belief.kernels.dense import gather  # numba comes with it
        out = np.empty((len(ids), len(columns)), self._direct.dtype)
        gather(self._direct, ids, columns, out)
        return out


class BlockSource(GatherSource):
    """A sequence of sources, one after the other."""

    def __init__(self, blocks: Sequence[Source]) -> None:
        self._blocks = blocks
        self._starts = np.cumsum([0] + [block.n_rows for block in blocks])
        self.n_rows = int(self._starts[-1])
        self.n_features = blocks[0].n_features

    def longest_integer(self, j: int) -> int:
        return max(block.longest_integer(j) for block in self._blocks)

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        wanted = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
        home = np.searchsorted(self._starts, ids, side="right") - 1
        parts = [
            (home == i, self._blocks[i].columns(ids[home == i] - self._starts[i], wanted)) for i in np.unique(home)
        ]
        out = np.empty((len(ids), len(wanted)), np.result_type(np.float32, *(X.dtype for _, (X, _, _) in parts)))
        for mine, (X, rows, a) in parts:
            out[mine] = X[rows, a : a + len(wanted)]
        return out


class ColumnSource(GatherSource):
    """Columns of numbers, kept as they came: what a table of mixed types becomes."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self._columns = columns
        self.n_rows, self.n_features = len(columns[0]), len(columns)

    def longest_integer(self, j: int) -> int:
        return longest_integer(self._columns[j])

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        wanted = range(columns.start, columns.stop) if isinstance(columns, slice) else columns
        out = np.empty((len(ids), len(wanted)), np.float64)
        index = consecutive(ids)
        for t, j in enumerate(wanted):
            out[:, t] = self._columns[j][index]
        return out


class SparseSource:
    """Blocks of CSR rows, one after the other."""

    def __init__(self, blocks: Sequence[csr_array]) -> None:
        self.blocks = blocks
        self.n_rows = sum(X.shape[0] for X in blocks)
        self.n_features = blocks[0].shape[1]
