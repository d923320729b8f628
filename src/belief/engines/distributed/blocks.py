"""A block of rows: how it is packed, what the driver knows of it, and what a worker makes of its bytes.

A block knows nothing of the others. Where its rows are in the whole, and which class a label is, the driver works out
when all blocks are there, and tells with every job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from belief.data.source import frozen
from belief.engines.distributed.wire import unpack
from belief.kernels.dense import gather
from belief.method.arrays import Array

Matrix = Any  # a float array in C order, or a CSR matrix


@dataclass(frozen=True)
class Staged:
    """What the driver hears of a block when it is made; one without rows tells of the partition, or of a problem."""

    partition: int
    seq: int
    rows: int = 0
    checksum: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    summary: bytes | None = None  # of all blocks of the task
    strings: bytes | None = None  # the codes of strings that this block met first


@dataclass(frozen=True)
class Placed:
    """A block that was staged, and which class each of its labels is."""

    partition: int
    seq: int
    rows: int
    checksum: int
    classes: Array


@dataclass(frozen=True)
class Pieces:
    """Rows with consecutive ids that lie together in a block, by rising id."""

    first: Array  # the id of the first row of each
    rows: Array  # how many it has
    block: Array  # the number of the block
    at: Array  # the place of the first row there

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(cls, blocks: Sequence[Staged]) -> Pieces:
        """The pieces of some blocks, in the order of their partitions, and within one as they were read."""
        told = [(*run, i, x.seq) for i, x in enumerate(blocks) for run in x.about["runs"]]
        partition, rows, block, seq = np.array(told, np.int64).T
        at = np.cumsum(rows) - rows
        at -= at[np.searchsorted(block, block)]
        order = np.lexsort((seq, partition))
        return cls(np.cumsum(rows[order]) - rows[order], rows[order], block[order], at[order])

    def find(self, ids: Array) -> tuple[Array, Array]:
        """The blocks of some rows, and their places there."""
        i = np.searchsorted(self.first, ids, side="right") - 1
        return self.block[i], self.at[i] + ids - self.first[i]


@dataclass(frozen=True)
class RowBlock:
    """The rows of a block, in the hands of a worker.

    `number` is its place among the blocks of a job; `first` the id of its first row, where they are consecutive.
    """

    number: int
    X: Matrix
    targets: Array
    first: int = 0


def arrays_of(X: Matrix) -> dict[str, Any]:
    """The arrays that rows consist of, by name."""
    if not issparse(X):
        return {"X": X}
    return {"indptr": X.indptr, "indices": X.indices, "data": X.data, "width": X.shape[1]}


def matrix_of(arrays: dict[str, Any]) -> Matrix:
    """The inverse of `arrays_of`."""
    if "X" in arrays:
        return arrays["X"]
    shape = (len(arrays["indptr"]) - 1, int(arrays["width"]))
    X = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    X.has_canonical_format = True
    return X


@dataclass(frozen=True)
class Form:
    """What the rows of all blocks are in the hands of a worker: arrays of one type, or CSR."""

    dense: bool
    dtype: str = "<f8"  # of arrays; a block whose values survive it may be stored in less

    def of(self, X: Matrix) -> Matrix:
        """Rows in this form, whatever they are."""
        if not self.dense:
            return X if issparse(X) else csr_array(X)
        return frozen(X.toarray()) if issparse(X) else X.astype(self.dtype, copy=False)


def decoded(data: Any, placed: Placed, pieces: Pieces, which: Sequence[int], form: Form) -> Iterator[RowBlock]:
    """Some pieces of a block that was staged, in the form all rows have now, each a block by itself."""
    held = unpack(data)
    X, targets = matrix_of(held), placed.classes[held["codes"]]
    for i in which:
        a, n = int(pieces.at[i]), int(pieces.rows[i])
        rows = X if n == placed.rows else X[a : a + n]
        yield RowBlock(int(i), form.of(rows), targets[a : a + n], int(pieces.first[i]))


def decoded_rows(data: Any, placed: Placed, form: Form, at: Array, features: Array | None) -> tuple[Matrix, Array]:
    """Some rows of a block that was staged, and their targets; of dense rows some features, or all."""
    held = unpack(data)
    X, targets = matrix_of(held), placed.classes[held["codes"][at]]
    if features is None or not form.dense:
        return form.of(X[at]), targets
    if issparse(X):
        return of_columns(form.of(X[at]), features), targets
    out = np.empty((len(at), len(features)), X.dtype)
    gather(frozen(X), at, features, out)
    return form.of(out), targets


def of_columns(X: Matrix, features: Array) -> Matrix:
    """Some features of rows, of which they may be all."""
    if X.shape[1] == len(features):
        return X
    return X[:, features] if issparse(X) else frozen(np.take(X, features, axis=1))


def picked(block: RowBlock, ids: Array) -> tuple[Matrix, Array, Array]:
    """The rows of a block that are among some ids (sorted), their targets, and which of the ids they are."""
    a, b = np.searchsorted(ids, (block.first, block.first + len(block.targets)))
    at = ids[a:b] - block.first
    return block.X[at], block.targets[at], np.arange(a, b)


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Rows from several places, one after the other, that nobody may change."""
    if len(parts) == 1:
        return parts[0]
    return csr_array(vstack(parts, format="csr")) if issparse(parts[0]) else frozen(np.concatenate(parts))
