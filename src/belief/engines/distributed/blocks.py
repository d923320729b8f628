"""A block of rows: how it is packed, what the driver knows of it, and what a worker makes of its bytes.

A block knows nothing of the others. Where its rows are in the whole, and which class a label is, the driver works out
when all blocks are there, and tells with every job.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    summary: bytes | None = None  # of all blocks of the partition
    strings: bytes | None = None  # the codes of strings that this block met first


@dataclass(frozen=True)
class Placed:
    """Where a block is in the whole, and which class each of its labels is."""

    partition: int
    seq: int
    rows: int
    checksum: int
    first: int
    classes: Array


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


def decoded(number: int, data: Any, placed: Placed, dense: bool) -> RowBlock:
    """A block as it was staged, in the form all blocks have now."""
    held = unpack(data)
    return RowBlock(number, in_form(matrix_of(held), dense), placed.classes[held["codes"]], placed.first)


def decoded_rows(data: Any, placed: Placed, dense: bool, ids: Array, features: Array | None) -> tuple[Matrix, Array]:
    """Some rows of a block that was staged, and their targets; of dense rows some features, or all."""
    held, at = unpack(data), ids - placed.first
    X, targets = matrix_of(held), placed.classes[held["codes"][at]]
    if features is None or not dense:
        return in_form(X[at], dense), targets
    if issparse(X):
        return of_columns(in_form(X[at], dense), features), targets
    out = np.empty((len(at), len(features)), X.dtype)
    gather(frozen(X), at, features, out)
    return out, targets


def in_form(X: Matrix, dense: bool) -> Matrix:
    """Rows as an array or as CSR, whatever they are."""
    if dense:
        return frozen(X.toarray()) if issparse(X) else X
    return X if issparse(X) else csr_array(X)


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
