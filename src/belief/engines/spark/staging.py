"""Staging: each task divides the rows that it reads into blocks of up to 32 MB, and describes them for the driver.

A task may read several runs of consecutive partitions. Small runs share a block, because each block has a fixed
overhead. The description of a block says how many rows of each run it contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from belief.data.labels import RowError
from belief.engines.block import Describer
from belief.engines.records import flatten
from belief.engines.resources import Resources
from belief.engines.spark.blocks import BlockInfo, Matrix, to_arrays
from belief.engines.spark.wire import compute_checksum, pack, unpack
from belief.method.arrays import Array

BLOCK_BYTES = 2**25
MAX_SUMMARY_FEATURES = 20_000  # wider tables are summarised by a separate job
Rows = tuple[Matrix, Array, Array, Array]  # rows, bytes of each row, distinct labels, index of each row's label
StringCodes = dict[tuple[str, float], int]  # (column, code of a string) -> more bits of its hash
Staged = tuple[BlockInfo, bytearray | None]


def stage(
    runs: Iterable[tuple[int, Iterable[Rows]]], discrete: Array, strings: StringCodes, block_bytes: int | None = None
) -> Iterator[Staged]:
    """Divide the rows of a task into blocks; yield the description and the bytes of each block.

    Parameters
    ----------
    runs : for each run of consecutive partitions, (number of the first partition, batches of rows)
    discrete : mask of the discrete features; it may end before the last feature
    strings : the reader adds the codes of new strings to this dictionary
    block_bytes : the size of a block; None: BLOCK_BYTES
    """
    stager = _Stager(discrete, strings, block_bytes or BLOCK_BYTES)
    for partition, batches in runs:
        try:
            for rows in batches:
                yield from stager.add(partition, rows)
        except ValueError as error:
            parts = error.parts if isinstance(error, RowError) else [str(error)]
            yield BlockInfo(partition, stager.seq, about={"problem": parts}), None
    yield from stager.flush()
    yield from stager.summarize()


@dataclass
class _Buffer:
    """Rows of a task that are collected until they fill a block."""

    runs: list[list[int]] = field(default_factory=list)  # first partition and number of rows of each run
    parts: list[Matrix] = field(default_factory=list)
    labels: list[tuple[Array, Array]] = field(default_factory=list)  # distinct labels, index of each row's label
    size: int = 0

    def add(self, partition: int, X: Matrix, labels: tuple[Array, Array], size: int) -> None:
        if not self.runs or self.runs[-1][0] != partition:
            self.runs.append([partition, 0])
        self.runs[-1][1] += X.shape[0]
        self.parts.append(X)
        self.labels.append(labels)
        self.size += size


class _Stager:
    """Divides the rows of one task into blocks, packs them, and summarises them.

    A block ends with the row that fills it, not with a batch: if Spark computes the partition again, the batches may
    differ, but the blocks must not.
    """

    def __init__(self, discrete: Array, strings: StringCodes, block_bytes: int) -> None:
        self.seq, self._block_bytes = 0, block_bytes
        self._partition = 0  # the first partition of the last block
        self._discrete, self._strings = discrete, strings
        self._buffer = _Buffer()
        self._describer: Describer | None = None
        self._can_summarize = True
        self._width: int | None = None
        self._groups: dict[Any, int] = {}  # the group of each label in the summary, numbered by appearance

    def add(self, partition: int, rows: Rows) -> Iterator[Staged]:
        """Add rows; yield the blocks that they complete."""
        X, sizes, values, codes = rows
        if self._buffer.parts and self._buffer.parts[0].shape[1] != X.shape[1]:  # the driver will raise an error
            yield from self.flush()
        total, a = np.cumsum(sizes), 0
        while a < len(total):
            before = total[a] - sizes[a]
            b = 1 + min(int(np.searchsorted(total, before + self._block_bytes - self._buffer.size)), len(total) - 1)
            self._buffer.add(partition, X[a:b], (values, codes[a:b]), int(total[b - 1] - before))
            if self._buffer.size >= self._block_bytes:
                yield from self.flush()
            a = b

    def flush(self) -> Iterator[Staged]:
        """Yield the collected rows as a block, if there are any."""
        buffer, self._buffer = self._buffer, _Buffer()
        if not buffer.parts:
            return
        values = np.unique(np.concatenate([v for v, _ in buffer.labels]))
        codes = np.concatenate([np.searchsorted(values, v).astype(np.int32)[c] for v, c in buffer.labels])
        if any(map(issparse, buffer.parts)):
            X = csr_array(vstack([csr_array(part) for part in buffer.parts], format="csr"))
            data = pack({**to_arrays(X), "codes": codes})
        else:
            data = pack({"codes": codes}, narrow(buffer.parts))
            X = unpack(data)["X"]
        self._describe(X, values, codes)
        about = {
            "labels": values.tolist(),
            "counts": np.bincount(codes, minlength=len(values)).tolist(),
            "width": X.shape[1],
            "dtype": X.dtype.str,
            "sparse": bool(issparse(X)),
            "nonzero": int(X.nnz if issparse(X) else X.size),
            "bytes": len(data),
            "runs": buffer.runs,
            "columns": [name for name, _ in self._strings],
        }
        codes_of_strings = {
            "check": np.array(list(self._strings.values()), np.int64),
            "code": np.array([code for _, code in self._strings], float),
        }
        partition, checksum = buffer.runs[0][0], compute_checksum(data)
        info = BlockInfo(partition, self.seq, X.shape[0], checksum, about, strings=bytes(pack(codes_of_strings)))
        self._strings.clear()
        self.seq, self._partition = self.seq + 1, partition
        yield info, data

    def _describe(self, X: Matrix, values: Array, codes: Array) -> None:
        """Add a block to the summary, unless the table is sparse or too wide for a summary."""
        self._can_summarize &= (
            not issparse(X) and X.shape[1] <= MAX_SUMMARY_FEATURES and self._width in (None, X.shape[1])
        )
        self._width = X.shape[1]
        if self._can_summarize:
            self._describer = self._describer or Describer(Resources(n_jobs=1))
            mask = np.zeros(X.shape[1], bool)
            mask[: len(self._discrete)] = self._discrete[: len(mask)]
            groups = [self._groups.setdefault(v, len(self._groups)) for v in values.tolist()]
            self._describer.add(X, mask, groups=np.array(groups, np.int32)[codes])

    def summarize(self) -> Iterator[Staged]:
        """Yield the summary of all blocks of the task, unless the table is sparse or too wide for a summary."""
        if self._describer is not None and self._can_summarize:
            summary = bytes(pack(flatten(self._describer.summary())))
            yield BlockInfo(self._partition, self.seq, about={"labels": list(self._groups)}, summary=summary), None


def narrow(parts: list[Array]) -> list[Array]:
    """Convert arrays to float32, which halves memory and bandwidth; return them unchanged if a value would change."""
    out = []
    for X in parts:
        with np.errstate(over="ignore", invalid="ignore"):
            if not _is_same(X[:1].astype(np.float32), X[:1]):  # the first row decides for most tables
                return parts
            narrowed = X.astype(np.float32, copy=False)
        if not _is_same(narrowed, X):
            return parts
        out.append(narrowed)
    return out


def _is_same(narrowed: Array, X: Array) -> bool:
    """Return True if both arrays have the same values; missing values are equal to each other."""
    if narrowed.dtype == X.dtype:
        return True
    changed = narrowed != X
    return not changed.any() or bool(np.isnan(X[changed]).all())
