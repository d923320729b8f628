"""Sources of rows: a common interface to arrays, memory maps, sequences of blocks, tables and sparse matrices.

Rows that are not in memory come from a `Stream` instead, which reads them block by block in several passes.

A source returns rows as `(X, rows, a)`, where X is a C-ordered float array, `rows` contains the position of each
requested row in X, and `a` is the column of the first requested feature in X. For an array in memory, X is the array
itself, without a copy. Other sources copy the requested rows to a new array.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from belief._utils.lazy import importing
from belief.method.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from belief.data.labels import Labels

T = TypeVar("T")

SMALL_CELLS = 2**18  # rows of tables of up to this many values are copied by NumPy, which needs no compilation
Located = tuple[Array, Array, int]  # (X, rows, a), see above


def is_sparse(X: Any) -> bool:
    """Return True if X is a SciPy sparse matrix, without importing SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def as_float(x: Array) -> Array:
    """Return x as a C-ordered array of float32 if its type fits exactly, otherwise float64; floats keep their type."""
    exact32 = x.dtype.kind == "b" or (x.dtype.kind in "iuf" and x.dtype.itemsize <= 2)
    dtype = x.dtype if x.dtype in (np.float32, np.float64) else np.float32 if exact32 else np.float64
    return np.ascontiguousarray(x, dtype=dtype)


def as_read_only(x: Array) -> Array:
    """Return a read-only view of an array. The compiled kernels accept only read-only data."""
    x = x.view(np.ndarray)
    x.flags.writeable = False
    return x


def max_abs_integer(x: Array) -> int:
    """Return the largest absolute value of an array if it holds 64-bit integers; 0 otherwise."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8 or not x.size:
        return 0
    return max(abs(int(x.min())), abs(int(x.max())))


def check_exact_codes(largest: int, column: str) -> None:
    """Raise a ValueError if integers that represent categories are too large to be exact as floats."""
    if largest > 2**53:
        raise ValueError(
            f"{column} is discrete and has integers as large as {largest}, which floats cannot represent exactly."
            " Convert them to strings."
        )


def _located(x: Array) -> Located:
    """Return an array of rows as a tuple (X, rows, a), the form in which all sources return rows."""
    return as_read_only(as_float(x)), np.arange(len(x)), 0


def as_slice(ids: Array) -> slice | Array:
    """Convert consecutive ids to a slice, which NumPy reads much faster; return other ids unchanged."""
    if len(ids) and ids[-1] - ids[0] == len(ids) - 1 and np.all(ids[1:] > ids[:-1]):
        return slice(int(ids[0]), int(ids[-1]) + 1)
    return ids


class Source:
    """Base class of sources of rows. The id of a row is its number, counted from 0.

    All values are numbers: missing values are NaN, and categories are codes. Subclasses implement `_gather`, which
    copies the requested rows.
    """

    n_rows: int
    n_features: int

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        raise NotImplementedError

    def rows(self, ids: Array, a: int, b: int) -> Located:
        """Return the features from a to b (exclusive) of the rows with these ids."""
        return _located(self._gather(ids, slice(a, b)))

    def columns(self, ids: Array, columns: Array) -> Located:
        """Return the features in `columns`, in this order, of the rows with these ids."""
        run = as_slice(columns)
        if isinstance(run, slice):
            return self.rows(ids, run.start, run.stop)
        return _located(self._gather(ids, columns))

    def max_abs_integer(self, j: int) -> int:
        """Return the largest absolute value in column j if it holds 64-bit integers; 0 otherwise."""
        return 0


class ArraySource(Source):
    """A source of rows of a two-dimensional array of numbers, in memory or memory-mapped."""

    def __init__(self, X: Array) -> None:
        self.n_rows, self.n_features = X.shape
        direct = X.dtype in (np.float32, np.float64) and X.dtype.isnative and X.flags.c_contiguous and X.flags.aligned
        self._direct = as_read_only(X) if direct else None
        self._X = X

    def rows(self, ids: Array, a: int, b: int) -> Located:
        return (self._direct, ids, a) if self._direct is not None else super().rows(ids, a, b)

    def max_abs_integer(self, j: int) -> int:
        return max_abs_integer(self._X[:, j])

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        if isinstance(columns, slice):
            return self._X[as_slice(ids), columns]
        if self._direct is None or self._X.size <= SMALL_CELLS:
            return self._X[np.ix_(ids, columns)]
        with importing():
            from belief.kernels.dense import gather  # imports Numba
        out = np.empty((len(ids), len(columns)), self._direct.dtype)
        gather(self._direct, ids, columns, out)
        return out


class BlockSource(Source):
    """The rows of several sources, concatenated in the order of the sources."""

    def __init__(self, blocks: Sequence[Source]) -> None:
        self._blocks = blocks
        self._starts = np.cumsum([0] + [block.n_rows for block in blocks])
        self.n_rows = int(self._starts[-1])
        self.n_features = blocks[0].n_features

    def max_abs_integer(self, j: int) -> int:
        return max(block.max_abs_integer(j) for block in self._blocks)

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        wanted = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
        home = np.searchsorted(self._starts, ids, side="right") - 1
        parts = [
            (home == i, self._blocks[i].columns(ids[home == i] - self._starts[i], wanted)) for i in np.unique(home)
        ]
        out = np.empty((len(ids), len(wanted)), np.result_type(np.float32, *(X.dtype for _, (X, _, _) in parts)))
        for here, (X, rows, a) in parts:
            out[here] = X[rows, a : a + len(wanted)]
        return out


class ColumnSource(Source):
    """A source of rows whose columns are stored separately, as in tables of mixed types."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self._columns = columns
        self.n_rows, self.n_features = len(columns[0]), len(columns)

    def max_abs_integer(self, j: int) -> int:
        return max_abs_integer(self._columns[j])

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        wanted = range(columns.start, columns.stop) if isinstance(columns, slice) else columns
        out = np.empty((len(ids), len(wanted)), np.float64)
        index = as_slice(ids)
        for t, j in enumerate(wanted):
            out[:, t] = self._columns[j][index]
        return out


class SparseSource:
    """A source of rows of a sparse matrix, which is a list of blocks of rows in CSR format."""

    def __init__(self, blocks: Sequence[csr_array]) -> None:
        self.blocks = blocks
        self.n_rows = sum(X.shape[0] for X in blocks)
        self.n_features = blocks[0].shape[1]


class Stream:
    """Base class of streams, which read blocks of rows in several passes and never hold all rows in memory.

    A block is a CSR matrix, or an object with a method `whole()` that returns its rows as a C-ordered float array.

    Attributes
    ----------
    names : the names of the features; None if they have no names
    labels : the original column labels of the features; None if all of them are strings
    left_out : the names of the columns that contain neither numbers nor categories
    target_name : the name of the target in error messages
    discrete : the mask of the discrete features, which is complete after the first block has been read
    declared : the mask of the features that the user declared discrete
    """

    names: list[str] | None = None
    labels: list[Any] | None = None
    left_out: Sequence[str] = ()
    target_name = "y"
    discrete: Array
    declared: Array

    def first_pass(self, labels: Labels) -> Iterator[Any]:
        """Yield the blocks, and add the targets of their rows to `labels`."""
        raise NotImplementedError

    def later_pass(self) -> Iterator[Any]:
        """Yield the blocks again; `first_pass` must be complete."""
        raise NotImplementedError

    def levels(self, j: int) -> dict[float, str]:
        """Return a mapping from the codes of feature j to the names of its categories; it is empty for numbers."""
        return {}


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """Yield the items. While the caller uses an item, a thread computes the next one."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
