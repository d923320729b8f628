"""Blocks of rows on the executors: made from the input once, and given back to every pass since.

A block knows nothing of the others. Where its rows are in the whole, and which class a label is, the driver works out
when all blocks are there, and tells with every pass.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from belief.data.arrow import Categories, Columns, label_values
from belief.data.labels import RowError
from belief.data.source import ArraySource, frozen
from belief.engines.local import LocalEngine
from belief.engines.spark.wire import checksum, pack, unpack
from belief.method.arrays import Array
from belief.method.summary import Summary

BLOCK_BYTES = 2**25
SUMMARY_FEATURES = 20_000  # up to so many features, a partition of dense rows is described when it is staged
STAGED = "partition int, seq int, rows long, checksum long, about string, summary binary, names binary, data binary"
Rows = Any  # a float array in C order, or a CSR matrix


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
    masked: bool = False  # whether `declared` speaks of every feature

    def __call__(
        self, batches: Iterator[Any], names: dict[tuple[str, float], int]
    ) -> Iterator[tuple[Rows, Array, Array, Array]]:
        """Rows, the bytes of each, the distinct labels, and which each row has; `names` notes the codes of strings."""
        rows = self._plain(names) if self.columns is not None else self._vectors()
        n = 0
        for batch in batches:
            if len(batch):
                labels = label_values(batch.column("label"), self.label, n)
                yield *rows(batch, n), *labels
                n += len(batch)

    def _plain(self, names: dict[tuple[str, float], int]) -> Callable[[Any, int], tuple[Rows, Array]]:
        coders = Columns(self.columns, "The DataFrame", lambda name: Hashed(name, names))
        coders.declare(self.declared)

        def rows(batch: Any, n: int) -> tuple[Rows, Array]:
            X = coders.block(batch.drop_columns(["label"]))  # told apart by their places
            return X, np.full(len(X), X.itemsize * X.shape[1])

        return rows

    def _vectors(self) -> Callable[[Any, int], tuple[Rows, Array]]:
        width = self.width

        def rows(batch: Any, n: int) -> tuple[Rows, Array]:
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


class Hashed(Categories):
    """A column of strings, whose codes are the same wherever they are computed.

    A code is 53 bits of a hash, and 63 others are noted beside it: two strings that share a code are found out.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, name: str, names: dict[tuple[str, float], int]) -> None:
        super().__init__(name)
        self._names = names

    def _code(self, value: Any) -> float:
        known = self._book.get(value)
        if known is None:
            digest = hashlib.blake2b(str(value).encode(), digest_size=16).digest()
            known = self._book[value] = float(int.from_bytes(digest[:8], "little") >> 11)
            check = int.from_bytes(digest[8:], "little") >> 1
            refuse_shared(self._names.setdefault((self.name, known), check), check, self.name)
        return known


def refuse_shared(known: int, check: int, name: str) -> None:
    """Refuse two strings with the same code."""
    if known != check:
        raise ValueError(f"Two values of column {name!r} have the same 53-bit hash: index the column with numbers.")


# --- staging ---


@cache
def settle() -> None:
    """Once in a Python worker: what has been imported by now is no garbage.

    PySpark collects garbage after every task. Looking through all that numba and pandas hold takes 40 ms each time,
    more than a task on a small partition.
    """
    gc.collect()
    gc.freeze()


@dataclass
class _Heap:
    """Rows that wait until they make a block."""

    parts: list[Rows] = field(default_factory=list)
    labels: list[tuple[Array, Array]] = field(default_factory=list)
    size: int = 0


def stage(
    reader: Reader, discrete: Array, keep: Callable[[int, int, int, bytearray], bytearray | None]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Cut a partition into blocks: the function for mapInArrow.

    Parameters
    ----------
    discrete : which features are, as far as the schema tells
    keep : given (partition, seq, checksum, bytes) of a block, what is to be held in the DataFrame
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        settle()
        schema = _arrow_schema(pa)
        partition = TaskContext.get().partitionId()  # type: ignore[union-attr]
        seq, names = 0, {}  # type: int, dict[tuple[str, float], int]
        moments: list[Any] = []
        try:
            for rows, values, codes in _blocks(reader(batches, names)):
                dense = isinstance(rows, list)
                data = pack({"codes": codes}, rows) if dense else pack({**arrays_of(rows), "codes": codes})
                X: Rows = unpack(data)["X"] if dense else rows
                checked = checksum(data)
                about = {"labels": values.tolist(), "width": X.shape[1], "sparse": bool(issparse(X))}
                about["counts"] = np.bincount(codes, minlength=len(values)).tolist()
                about["nonzero"] = int(X.nnz if issparse(X) else X.size)
                moments.append(None if issparse(X) or X.shape[1] > SUMMARY_FEATURES else _summary(X, discrete))
                moments = [None if None in moments else reduce(Summary.merge, moments)]
                held = keep(partition, seq, checked, data)
                noted = pack({"names": np.array(list(names.values())), "code": np.array([c for _, c in names])})
                about["columns"] = [name for name, _ in names]
                row = [partition, seq, X.shape[0], checked, json.dumps(about), None, noted, held]
                yield pa.record_batch([[x] for x in row], schema=schema)
                names.clear()
                seq += 1
            if moments and moments[0] is not None:  # one for the partition, in a row without rows
                summary = pack(flat(moments[0]))
                about, noted = {"columns": []}, pack({"names": [], "code": []})
                row = [partition, seq, 0, 0, json.dumps(about), summary, noted, None]
                yield pa.record_batch([[x] for x in row], schema=schema)
        except ValueError as error:
            parts = error.parts if isinstance(error, RowError) else [str(error)]
            row = [partition, seq, 0, 0, json.dumps({"problem": parts}), None, None, None]
            yield pa.record_batch([[x] for x in row], schema=schema)

    return run


def _arrow_schema(pa: Any) -> Any:
    kinds = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    return pa.schema([(name, kinds[kind]) for name, kind in (part.split() for part in STAGED.split(", "))])


def _blocks(rows: Iterator[tuple[Rows, Array, Array, Array]]) -> Iterator[tuple[Rows | list[Array], Array, Array]]:
    """Blocks of rows, which end with the row that fills them: not with a batch, whose size may be another next time."""
    heap = _Heap()
    for X, sizes, values, codes in rows:
        total, a = np.cumsum(sizes), 0
        while a < len(total):
            before = total[a] - sizes[a]
            b = 1 + min(int(np.searchsorted(total, before + BLOCK_BYTES - heap.size)), len(total) - 1)
            heap.parts.append(X[a:b])
            heap.labels.append((values, codes[a:b]))
            heap.size += int(total[b - 1] - before)
            if heap.size >= BLOCK_BYTES:
                yield _whole(heap)
                heap = _Heap()
            a = b
    if heap.parts:
        yield _whole(heap)


def _whole(heap: _Heap) -> tuple[Rows | list[Array], Array, Array]:
    """The rows as CSR, or the parts of dense ones, which need not be put together before they are packed."""
    from scipy.sparse import vstack

    values = np.unique(np.concatenate([v for v, _ in heap.labels]))
    codes = np.concatenate([np.searchsorted(values, v).astype(np.int32)[c] for v, c in heap.labels])
    if any(map(issparse, heap.parts)):
        return csr_array(vstack([csr_array(part) for part in heap.parts], format="csr")), values, codes
    return heap.parts, values, codes


def arrays_of(X: Rows) -> dict[str, Any]:
    """The arrays that rows consist of, by name."""
    if not issparse(X):
        return {"X": X}
    return {"indptr": X.indptr, "indices": X.indices, "data": X.data, "width": X.shape[1]}


def _summary(X: Array, discrete: Array) -> Summary:
    mask = np.zeros(X.shape[1], bool)
    mask[: len(discrete)] = discrete[: len(mask)]
    with LocalEngine(ArraySource(frozen(X)), np.zeros(len(X), np.int32), 1, mask, n_jobs=1) as engine:
        return engine.describe()


def flat(summary: Summary) -> dict[str, Any]:
    """A summary as arrays by name."""
    values = dict(vars(summary))
    levels = values.pop("levels")
    return {**values, **{f"levels_{name}": x for name, x in vars(levels).items()}}


# --- given back ---


@dataclass(frozen=True)
class Placed:
    """What the driver knows of a block: where it is in the whole, and which class each of its labels is."""

    partition: int
    seq: int
    rows: int
    checksum: int
    first: int
    classes: Array


@dataclass(frozen=True)
class Block:
    """Rows, their classes, and the global ids: those from `first` on, or the ones listed."""

    X: Rows
    labels: Array
    first: int
    ids: Array | None = None


def decode(data: Any, placed: Placed, dense: bool) -> Block:
    """A block as it was staged, in the form all blocks have now."""
    held = unpack(data)
    codes = held.pop("codes")
    if "X" in held:
        X: Rows = held["X"] if dense else csr_array(held["X"])
    else:
        parts = (held["data"], held["indices"], held["indptr"])
        X = csr_array(parts, shape=(len(codes), int(held["width"])))
        X.has_canonical_format = True
        X = frozen(X.toarray()) if dense else X
    return Block(X, placed.classes[codes], placed.first)
