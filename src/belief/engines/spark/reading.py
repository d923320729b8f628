"""Batches of a DataFrame become rows, on the executors: vectors, or plain columns, strings by codes of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from belief.data.arrow import CategoryEncoder, Columns, target_values
from belief.data.labels import RowError
from belief.engines.distributed.blocks import Matrix
from belief.engines.distributed.placing import refuse_shared
from belief.engines.distributed.staging import ReadRows, Strings
from belief.engines.spark.parquet import FileRows
from belief.method.arrays import Array


@dataclass(frozen=True)
class Reader:
    """How batches of the input become rows: vectors in two columns, or plain columns.

    Of a sparse vector, `size` is its length, and `values` its numbers and after them their places; of a dense one,
    `size` is null.
    """

    columns: Any  # the fields of plain columns, None for vectors
    label: str  # as the user calls it
    features: str
    declared: Array  # which features are declared discrete; those of vectors that are too few are filled up with False
    width: int | None  # of the vectors, where it is known
    files: FileRows | None = None  # where batches say only in which files the rows are

    def __call__(self, batches: Iterator[Any], strings: Strings) -> Iterator[ReadRows]:
        """The rows of some batches; `strings` notes the codes of strings."""
        rows = self._plain(strings) if self.columns is not None else self._vectors()
        n = 0
        for batch in self.files(batches) if self.files else batches:
            if len(batch):
                labels = target_values(batch.column("label"), self.label, n)
                yield *rows(batch, n), *labels
                n += len(batch)

    def _plain(self, strings: Strings) -> Callable[[Any, int], tuple[Matrix, Array]]:
        coders = Columns(self.columns, "The DataFrame", lambda name: Hashed(name, strings))
        coders.declare_discrete(self.declared)

        def rows(batch: Any, n: int) -> tuple[Matrix, Array]:
            X = coders.block(batch.drop_columns(["label"]))  # told apart by their places
            return X, np.full(len(X), X.itemsize * X.shape[1])

        return rows

    def _vectors(self) -> Callable[[Any, int], tuple[Matrix, Array]]:
        width = self.width

        def rows(batch: Any, n: int) -> tuple[Matrix, Array]:
            nonlocal width
            size, values = batch.column("size"), batch.column("values")
            if values.null_count:
                i = n + int(np.flatnonzero(np.asarray(values.is_null()))[0])
                raise RowError(
                    f"Column {self.features!r} has no vector in row", i, ": drop such rows, or fill them in."
                )
            dense = size.is_null().to_numpy(zero_copy_only=False)
            held = np.diff(values.offsets.to_numpy())
            lengths = np.where(dense, held, size.fill_null(-1).to_numpy(zero_copy_only=False))
            width = int(lengths[0]) if width is None else width
            if np.any(lengths != width):
                i = int(np.flatnonzero(lengths != width)[0])
                said = (
                    f"The vectors of column {self.features!r} differ in length: {width}, but {int(lengths[i])} in row"
                )
                raise RowError(said, n + i, ": make them all as long.")
            if width == 0:
                raise RowError(f"Column {self.features!r} has a vector without features in row", n, ".")
            data = values.flatten().to_numpy(zero_copy_only=False)
            X = data.reshape(len(batch), width) if dense.all() else _mixed(dense, held, data, width)
            return X, data.itemsize * held

        return rows


def _mixed(dense: Array, held: Array, data: Array, width: int) -> csr_array:
    """Rows of which some came dense, as CSR without zeros."""
    n = np.where(dense, held, held // 2)  # numbers of each row
    at = np.arange(len(data)) - np.repeat(np.cumsum(held) - held, held)  # within the row
    is_number = at < np.repeat(n, held)
    column = at[is_number].astype(np.int32)
    column[np.repeat(~dense, n)] = data[~is_number]
    X = csr_array((data[is_number], column, np.concatenate([[0], np.cumsum(n)])), shape=(len(dense), width))
    X.eliminate_zeros()
    return X


class Hashed(CategoryEncoder):
    """A column of strings, whose codes are the same wherever they are computed.

    A code is 53 bits of a hash, and 63 others are noted beside it: two strings that share a code are found out.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, name: str, strings: Strings) -> None:
        super().__init__(name)
        self._strings = strings

    def _code(self, value: Any) -> float:
        known = self._codes.get(value)
        if known is None:
            digest = hashlib.blake2b(str(value).encode(), digest_size=16).digest()
            known = self._codes[value] = float(int.from_bytes(digest[:8], "little") >> 11)
            check = int.from_bytes(digest[8:], "little") >> 1
            refuse_shared(self._strings.setdefault((self.name, known), check), check, self.name)
        return known
