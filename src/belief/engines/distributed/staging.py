"""Rows become blocks, once: on a worker, from what it reads of its part of the input.

rows as they are read ─► blocks of some 32 MB ─► bytes, to be held
└─► what the driver must know: labels, sizes, a checksum, moments
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
SUMMARY_FEATURES = 20_000  # up to so many features, a partition of dense rows is described when it is staged
ReadRows = tuple[Matrix, Array, Array, Array]  # rows, the bytes of each, the distinct labels, and which each row has
Strings = dict[tuple[str, float], int]  # (column, code of a string) -> more of its hash


def stage(
    partition: int, rows: Iterable[ReadRows], discrete: Array, strings: Strings
) -> Iterator[tuple[Staged, bytearray | None]]:
    """Cut a partition into blocks: what the driver is told of each, and its bytes.

    Parameters
    ----------
    discrete : which features are, as far as is known before anything is read
    strings : what the reader notes of the strings it meets
    """
    seq, found = 0, _PartitionSummary(discrete)
    try:
        for parts, values, codes in cut(rows):
            data, X = _packed(parts, codes)
            found.add(X, values, codes)
            yield Staged(partition, seq, X.shape[0], checksum(data), *_told(X, data, values, codes, strings)), data
            strings.clear()
            seq += 1
        summary = found.packed()
        if summary is not None:
            yield Staged(partition, seq, about={"labels": found.labels}, summary=summary), None
    except ValueError as error:
        parts = error.parts if isinstance(error, RowError) else [str(error)]
        yield Staged(partition, seq, about={"problem": parts}), None


def _packed(parts: Matrix | list[Array], codes: Array) -> tuple[bytearray, Matrix]:
    """The bytes of a block, and its rows; those of dense parts are put together in the bytes, and not before."""
    if isinstance(parts, list):
        data = pack({"codes": codes}, parts)
        return data, unpack(data)["X"]
    return pack({**arrays_of(parts), "codes": codes}), parts


def _told(
    X: Matrix, data: bytearray, values: Array, codes: Array, strings: Strings
) -> tuple[dict[str, Any], None, bytes]:
    about = {
        "labels": values.tolist(),
        "counts": np.bincount(codes, minlength=len(values)).tolist(),
        "width": X.shape[1],
        "sparse": bool(issparse(X)),
        "nonzero": int(X.nnz if issparse(X) else X.size),
        "bytes": len(data),
        "columns": [name for name, _ in strings],
    }
    noted = {"check": np.array(list(strings.values()), np.int64), "code": np.array([c for _, c in strings], float)}
    return about, None, bytes(pack(noted))


class _PartitionSummary:
    """The summary of a partition of dense rows that are not too wide; of others nothing.

    Its groups are the labels in order of appearance.
    """

    def __init__(self, discrete: Array) -> None:
        self._discrete = discrete
        self._describer: Describer | None = None
        self._any = True
        self._numbers: dict[Any, int] = {}

    @property
    def labels(self) -> list[Any]:
        return list(self._numbers)

    def add(self, X: Matrix, values: Array, codes: Array) -> None:
        self._any = self._any and not issparse(X) and X.shape[1] <= SUMMARY_FEATURES
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

    parts: list[Matrix] = field(default_factory=list)
    labels: list[tuple[Array, Array]] = field(default_factory=list)
    size: int = 0

    def whole(self) -> tuple[Matrix | list[Array], Array, Array]:
        """The rows as CSR, or the parts of dense ones; the distinct labels, and which each row has."""
        values = np.unique(np.concatenate([v for v, _ in self.labels]))
        codes = np.concatenate([np.searchsorted(values, v).astype(np.int32)[c] for v, c in self.labels])
        if any(map(issparse, self.parts)):
            return csr_array(vstack([csr_array(part) for part in self.parts], format="csr")), values, codes
        return self.parts, values, codes


def cut(rows: Iterable[ReadRows]) -> Iterator[tuple[Matrix | list[Array], Array, Array]]:
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
                yield heap.whole()
                heap = _Heap()
            a = b
    if heap.parts:
        yield heap.whole()
