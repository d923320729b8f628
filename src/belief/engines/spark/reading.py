"""Conversion of the Arrow batches of a DataFrame to rows, on the executors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from belief.data.arrow import CategoryEncoder, TableEncoder, target_values
from belief.data.labels import RowError
from belief.engines.spark.blocks import Matrix, check_collision
from belief.engines.spark.parquet import FileRows
from belief.engines.spark.staging import Rows, StringCodes
from belief.method.arrays import Array

TIME_ORIGIN = 0.0  # times count from 1970, since no executor knows the first time in the table


@dataclass(frozen=True)
class Reader:
    """Converts Arrow batches to rows. The features are vectors or plain columns.

    Vectors are given by the columns `size` and `values`. For a sparse vector, `size` is its length, and `values` has
    its values followed by their indices. For a dense vector, `size` is null.
    """

    columns: Any  # the Arrow fields of plain columns; None for vectors
    label: str
    features: str
    declared: Array  # mask of the features that the user declared discrete
    width: int | None  # the number of features, if known
    files: FileRows | None = None  # reads the rows if batches only contain their positions in files

    def __call__(self, batches: Iterator[Any], strings: StringCodes) -> Iterator[Rows]:
        """Yield the rows of each batch, and record the codes of new strings in `strings`."""
        convert = self._column_converter(strings) if self.columns is not None else self._vector_converter()
        n = 0
        for batch in self.files(batches) if self.files else batches:
            if len(batch):
                labels = target_values(batch.column("label"), self.label, n)
                yield *convert(batch, n), *labels
                n += len(batch)

    def _column_converter(self, strings: StringCodes) -> Callable[[Any, int], tuple[Matrix, Array]]:
        columns = TableEncoder(self.columns, "The DataFrame", lambda name: HashedStrings(name, strings), TIME_ORIGIN)
        columns.declare_discrete(self.declared)

        def convert(batch: Any, n: int) -> tuple[Matrix, Array]:
            X = columns.block(batch.drop_columns(["label"]))
            return X, np.full(len(X), X.itemsize * X.shape[1])

        return convert

    def _vector_converter(self) -> Callable[[Any, int], tuple[Matrix, Array]]:
        width = self.width

        def convert(batch: Any, n: int) -> tuple[Matrix, Array]:
            nonlocal width
            size, values = batch.column("size"), batch.column("values")
            if values.null_count:
                i = n + int(np.flatnonzero(np.asarray(values.is_null()))[0])
                raise RowError(f"Column {self.features!r} has no vector in row", i, ". Drop or impute such rows.")
            dense = size.is_null().to_numpy(zero_copy_only=False)
            stored = np.diff(values.offsets.to_numpy())
            lengths = np.where(dense, stored, size.fill_null(-1).to_numpy(zero_copy_only=False))
            width = int(lengths[0]) if width is None else width
            if np.any(lengths != width):
                i = int(np.flatnonzero(lengths != width)[0])
                before = f"The vectors of column {self.features!r} differ in length: {width}, but {lengths[i]} in row"
                raise RowError(before, n + i, ". Make them all the same length.")
            if width == 0:
                raise RowError(f"Column {self.features!r} has a vector without features in row", n, ".")
            data = values.flatten().to_numpy(zero_copy_only=False)
            X = data.reshape(len(batch), width) if dense.all() else _mixed_to_csr(dense, stored, data, width)
            return X, data.itemsize * stored

        return convert


def _mixed_to_csr(dense: Array, stored: Array, data: Array, width: int) -> csr_array:
    """Combine dense and sparse vectors to a CSR matrix without explicit zeros."""
    n_values = np.where(dense, stored, stored // 2)
    position = np.arange(len(data)) - np.repeat(np.cumsum(stored) - stored, stored)  # within the row
    is_value = position < np.repeat(n_values, stored)
    column = position[is_value].astype(np.int32)
    column[np.repeat(~dense, n_values)] = data[~is_value]
    indptr = np.concatenate([[0], np.cumsum(n_values)])
    X = csr_array((data[is_value], column, indptr), shape=(len(dense), width))
    X.eliminate_zeros()
    return X


class HashedStrings(CategoryEncoder):
    """The encoder of a column of strings, whose codes are the same on every executor.

    The code is 53 bits of a hash. Another 63 bits are kept to detect strings that share a code.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, name: str, strings: StringCodes) -> None:
        super().__init__(name)
        self._strings = strings

    def _code(self, value: Any) -> float:
        known = self.codes.get(value)
        if known is None:
            digest = hashlib.blake2b(str(value).encode(), digest_size=16).digest()
            known = self.codes[value] = float(int.from_bytes(digest[:8], "little") >> 11)
            check = int.from_bytes(digest[8:], "little") >> 1
            check_collision(self._strings.setdefault((self.name, known), check), check, self.name)
        return known
