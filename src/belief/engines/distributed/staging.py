"""Rows become blocks, once: on a worker, from what it reads of its part of the input.

rows as they are read ─► blocks of some 32 MB ─► bytes, to be held
└─► what the driver must know: labels, sizes, a checksum, moments

A worker may read several runs of partitions that follow each other. Small runs share a block, for each block has a
price of its own; the driver is told how many rows of which run it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from belief.data.labels import RowError
from belief.engines.block.describing import Describer
from belief.engines.distributed.blocks import Matrix, Staged, arrays_of
from belief.engines.distributed.records import flat
from belief.engines.distributed.wire import checksum, pack, unpack
from belief.engines.resources import Resources
from belief.method.arrays import Array

BLOCK_BYTES = 2**25
SUMMARY_FEATURES = 20_000  # up to so many features, dense rows are described when they are staged
ReadRows = tuple[Matrix, Array, Array, Array]  # rows, the bytes of each, the distinct labels, and which each row has
Strings = dict[tuple[str, float], int]  # (column, code of a string) -> more of its hash


def stage(
    runs: Iterable[tuple[int, Iterable[ReadRows]]], discrete: Array, strings: Strings
) -> Iterator[tuple[Staged, bytearray | None]]:
    """Cut what a task reads into blocks: what the driver is told of each, and its bytes.

    Parameters
    ----------
    runs : partitions that follow each other: the number of the first, and their rows
    discrete : which features are, as far as is known before anything is read
    strings : what the reader notes of the strings it meets
    """
    cutter, blocks = Cutter(), _Blocks(discrete, strings)
    for partition, rows in runs:
        try:
            for some in rows:
                yield from map(blocks.of, cutter.add(partition, some))
        except ValueError as error:
            parts = error.parts if isinstance(error, RowError) else [str(error)]
            yield Staged(partition, blocks.seq, about={"problem": parts}), None
    yield from map(blocks.of, cutter.rest())
    yield from blocks.summary()


class _Blocks:
    """The blocks of a task: packed, numbered and described."""

    def __init__(self, discrete: Array, strings: Strings) -> None:
        self.seq, self._first = 0, 0
        self._strings, self._found = strings, _TaskSummary(discrete)

    def of(self, heap: _Heap) -> tuple[Staged, bytearray]:
        """What the driver is told of a block, and its bytes."""
        parts, values, codes = heap.whole()
        data, X = _packed(parts, codes)
        self._found.add(X, values, codes)
        about = _told(X, data, values, codes) | {"runs": heap.runs, "columns": [name for name, _ in self._strings]}
        partition = heap.runs[0][0]
        told = Staged(partition, self.seq, X.shape[0], checksum(data), about, strings=_noted(self._strings))
        self._strings.clear()
        self.seq, self._first = self.seq + 1, partition
        return told, data

    def summary(self) -> Iterator[tuple[Staged, None]]:
        """What is told of all of them, if it is."""
        summary = self._found.packed()
        if summary is not None:
            yield Staged(self._first, self.seq, about={"labels": self._found.labels}, summary=summary), None


def _packed(parts: Matrix | list[Array], codes: Array) -> tuple[bytearray, Matrix]:
    """The bytes of a block, and its rows; those of dense parts are put together in the bytes, and not before."""
    if isinstance(parts, list):
        data = pack({"codes": codes}, narrowed(parts))
        return data, unpack(data)["X"]
    return pack({**arrays_of(parts), "codes": codes}), parts


def narrowed(parts: list[Array]) -> list[Array]:
    """Rows in float32, half the bytes to hold and to read, if every value survives it."""
    out = []
    for X in parts:
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = X[:1].astype(np.float32)
            if not _same(narrow, X[:1]):  # soon told of most
                return parts
            narrow = X.astype(np.float32, copy=False)
        if not _same(narrow, X):
            return parts
        out.append(narrow)
    return out


def _same(narrow: Array, X: Array) -> bool:
    """Whether two arrays hold the same values, some of which may be missing."""
    if narrow.dtype == X.dtype:
        return True
    lost = narrow != X
    return not lost.any() or bool(np.isnan(X[lost]).all())


def _told(X: Matrix, data: bytearray, values: Array, codes: Array) -> dict[str, Any]:
    return {
        "labels": values.tolist(),
        "counts": np.bincount(codes, minlength=len(values)).tolist(),
        "width": X.shape[1],
        "dtype": X.dtype.str,
        "sparse": bool(issparse(X)),
        "nonzero": int(X.nnz if issparse(X) else X.size),
        "bytes": len(data),
    }


def _noted(strings: Strings) -> bytes:
    noted = {"check": np.array(list(strings.values()), np.int64), "code": np.array([c for _, c in strings], float)}
    return bytes(pack(noted))


class _TaskSummary:
    """The summary of all dense rows of a task, if they are not too wide; of others nothing.

    Its groups are the labels in order of appearance.
    """

    def __init__(self, discrete: Array) -> None:
        self._discrete = discrete
        self._describer: Describer | None = None
        self._any = True
        self._widths: set[int] = set()
        self._numbers: dict[Any, int] = {}

    @property
    def labels(self) -> list[Any]:
        return list(self._numbers)

    def add(self, X: Matrix, values: Array, codes: Array) -> None:
        self._widths.add(X.shape[1])  # of which the driver allows one
        self._any = self._any and not issparse(X) and X.shape[1] <= SUMMARY_FEATURES and len(self._widths) == 1
        if self._any:
            self._describer = self._describer or Describer(Resources(n_jobs=1))
            mask = np.zeros(X.shape[1], bool)
            mask[: len(self._discrete)] = self._discrete[: len(mask)]
            number = [self._numbers.setdefault(v, len(self._numbers)) for v in values.tolist()]
            self._describer.add(X, mask, groups=np.array(number, np.int32)[codes])

    def packed(self) -> bytes | None:
        if self._describer is None or not self._any:
            return None
        return bytes(pack(flat(self._describer.summary())))


@dataclass
class _Heap:
    """Rows that wait until they make a block."""

    runs: list[list[int]] = field(default_factory=list)  # the first partition of each, and how many rows of it
    parts: list[Matrix] = field(default_factory=list)
    labels: list[tuple[Array, Array]] = field(default_factory=list)
    size: int = 0

    def add(self, partition: int, X: Matrix, labels: tuple[Array, Array], size: int) -> None:
        if not self.runs or self.runs[-1][0] != partition:
            self.runs.append([partition, 0])
        self.runs[-1][1] += X.shape[0]
        self.parts.append(X)
        self.labels.append(labels)
        self.size += size

    def whole(self) -> tuple[Matrix | list[Array], Array, Array]:
        """The rows as CSR, or the parts of dense ones; the distinct labels, and which each row has."""
        values = np.unique(np.concatenate([v for v, _ in self.labels]))
        codes = np.concatenate([np.searchsorted(values, v).astype(np.int32)[c] for v, c in self.labels])
        if any(map(issparse, self.parts)):
            return csr_array(vstack([csr_array(part) for part in self.parts], format="csr")), values, codes
        return self.parts, values, codes


class Cutter:
    """Cuts rows into blocks, which end with the row that fills them: not with a batch, which may differ next time."""

    def __init__(self) -> None:
        self._heap = _Heap()

    def add(self, partition: int, rows: ReadRows) -> Iterator[_Heap]:
        """The blocks that are full with these rows."""
        X, sizes, values, codes = rows
        if self._heap.parts and self._heap.parts[0].shape[1] != X.shape[1]:  # the driver will refuse them
            yield from self.rest()
        total, a = np.cumsum(sizes), 0
        while a < len(total):
            before = total[a] - sizes[a]
            b = 1 + min(int(np.searchsorted(total, before + BLOCK_BYTES - self._heap.size)), len(total) - 1)
            self._heap.add(partition, X[a:b], (values, codes[a:b]), int(total[b - 1] - before))
            if self._heap.size >= BLOCK_BYTES:
                yield from self.rest()
            a = b

    def rest(self) -> Iterator[_Heap]:
        """What waits, as a block."""
        full, self._heap = self._heap, _Heap()
        if full.parts:
            yield full
