"""Files larger than memory: blocks that are read again for each pass, four times in all.

    1 describe: moments, levels, classes     2 fetch the sampled rows
    3 search: every block meets the sample   4 fetch the neighbours, and weigh them in memory

What is held is a block or two, the classes, the sampled rows and their neighbours. A table that fits into a quarter of
the working memory is kept when it is first read, and never read again.
"""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from belief.checkpoint import NO_CHECKPOINT, Checkpoint
from belief.data.arrow import Batch
from belief.data.labels import Labels
from belief.data.source import ArraySource, frozen
from belief.data.stream import Stream
from belief.engines.base import Search, Visit
from belief.engines.local import LocalEngine
from belief.engines.sparse import NonZeros, SparseEngine, as_rows
from belief.engines.threads import ThreadedEngine
from belief.method.difference import Difference
from belief.method.partials import Array, Joint, Neighbours, Pairs, Summary, Tally
from belief.method.redundancy import Watch
from belief.method.sampling import Sample

Block = Any  # a float array in C order, a batch that can become one, or a CSR matrix
SAVE_EVERY = 30.0  # seconds of search between two notes of what has been found


class StreamEngine(ThreadedEngine):
    """The Engine protocol over a Stream, whose classes it reads too."""

    def __init__(self, stream: Stream, label: str, checkpoint: Checkpoint = NO_CHECKPOINT, **options: Any) -> None:
        super().__init__(0, np.zeros(0, np.int32), 0, np.zeros(0, bool), **options)
        self.stream, self._label, self.checkpoint = stream, label, checkpoint
        self._kept: LocalEngine | SparseEngine | None = None  # over all rows, or those with the ids:
        self._ids: Array | None = None
        self._crc = 0

    def _values(self) -> Iterator[Array]:
        yield np.array(self._crc)

    # --- 1. the summary ---

    def describe(self) -> Summary:
        labels = Labels(self._label)
        held: list[Block] | None = []
        found = _Moments()
        for block in self.stream.first(labels):
            X = self._whole(block)
            found.add(X, self)
            if self.checkpoint.folder is not None:
                for x in (X.indptr, X.indices, X.data) if issparse(X) else (X,):
                    self._crc = zlib.crc32(x, self._crc)
            self.report(labels.n_rows, 0)
            if held is not None:
                held.append(X)
                held = held if sum(map(_bytes, held)) <= self.working_memory // 4 else None
        if not labels.n_rows:
            raise ValueError("The files have no rows.")
        self.n_features, self.discrete = found.n_features, self.stream.discrete
        self.classes, self.labels = labels.finish()
        self.m, self.n_classes = len(self.labels), len(self.classes)
        if held is not None:
            self._kept = self._engine(_stack(held), self.labels)
        return found.summary(self)

    def _engine(self, X: Block, labels: Array) -> LocalEngine | SparseEngine:
        """The engine for rows in memory, with our threads."""
        options = {"n_jobs": self.n_jobs, "working_memory": self.working_memory}
        engine = (
            SparseEngine([X], labels, self.n_classes, self.discrete, **options)
            if issparse(X)
            else LocalEngine(ArraySource(X), labels, self.n_classes, self.discrete, **options)
        )
        engine._pool = self._pool
        return engine

    def _whole(self, X: Block) -> Block:
        """A block as the kernels take it."""
        return X.whole(self._pool.map) if isinstance(X, Batch) else X

    def _blocks(self, detail: str) -> Iterator[tuple[int, Block]]:
        """The blocks once more, each with the id of its first row."""
        first = 0
        for X in self.stream.again():
            yield first, X
            first += X.shape[0]
            self.report(first, self.m, detail)
        if first != self.m:
            raise ValueError(f"The files have changed while they were read: {self.m} rows, and then {first}.")

    def _fetch(self, ids: Array, detail: str) -> Block:
        """Some rows, by rising ids; dense rows that would take much of the working memory go to a temporary file."""
        parts: list[Block] = []
        out = None
        for first, X in self._blocks(detail):
            a, b = np.searchsorted(ids, (first, first + X.shape[0]))
            rows = X[ids[a:b] - first]
            if issparse(X):
                parts.append(rows)
                continue
            if out is None:
                out = _room((len(ids), X.shape[1]), rows.dtype, self.working_memory // 4)
            out[a:b] = rows
        return csr_array(vstack(parts, format="csr")) if out is None else out

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        if self._kept is not None:
            self._kept.report = self.report
            return self._kept.nearest(sample, difference, search)
        order = np.argsort(sample.row)
        X = self._fetch(sample.row[order], "fetching the sample")[np.argsort(order)]
        queries = X if issparse(X) else ArraySource(X)
        groups = self.n_classes if search.per_class else 1
        start, found = 0, Neighbours.zero(len(sample.row), groups, search.size)
        if (noted := self.checkpoint.recall("search")) is not None:
            start, found = int(noted.pop("start")), Neighbours(**noted)
        began, ready = time.monotonic(), {}  # type: float, dict[int, tuple[Array, Array]]
        for first, X in self._blocks("comparing"):
            if first + X.shape[0] <= start:
                continue
            if first < start:
                raise ValueError(
                    f"checkpoint {self.checkpoint.folder}: its blocks are others; remove it to start anew."
                )
            mine = self.labels[first : first + X.shape[0]]
            found = self._engine(self._whole(X), mine).nearest(
                sample, difference, search, Visit(queries, first, found, ready)
            )
            if time.monotonic() - began > SAVE_EVERY:
                self.checkpoint.note("search", start=first + X.shape[0], **vars(found))
                began = time.monotonic()
        return found

    def expect(self, batches: Sequence[Pairs]) -> None:
        """Fetch the rows that the tally will be about."""
        if self._kept is None:
            self._ids = np.unique(np.concatenate([ids for x in batches for ids in (x.query, x.neighbour)]))
            rows = self._fetch(self._ids, "fetching the neighbours")
            self._kept = self._engine(rows, self.labels[self._ids])

    # --- 4. and 5. the tally, of what has been fetched ---

    def _here(self, pairs: Pairs) -> Pairs:
        """The pairs, by where their rows are kept."""
        if self._ids is None:
            return pairs
        query, neighbour = np.searchsorted(self._ids, pairs.query), np.searchsorted(self._ids, pairs.neighbour)
        return replace(pairs, query=query, neighbour=neighbour)

    def tally(self, pairs: Pairs, difference: Difference, kappa: float) -> Tally:
        assert self._kept is not None
        return self._kept.tally(self._here(pairs), difference, kappa)

    def collide(self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        assert self._kept is not None
        return self._kept.collide(difference, kappa, [(self._here(p), w) for p, w in watches], columns)

    def collide_floor(
        self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        assert self._kept is not None
        return self._kept.collide_floor(difference, kappa, [(self._here(p), w) for p, w in watches], columns)


class _Moments:
    """The summary of blocks that come one after the other, before their classes are known."""

    def __init__(self) -> None:
        self.n_features = 0
        self._dense: Summary | None = None
        self._sparse: NonZeros | None = None

    def add(self, X: Block, engine: StreamEngine) -> None:
        self.n_features = X.shape[1]
        if issparse(X):
            self._sparse = self._sparse or NonZeros(self.n_features)
            self._sparse.add(as_rows(X))
            return
        engine.n_classes, engine.discrete = 1, engine.stream.discrete
        part = engine._engine(X, np.zeros(len(X), np.int32)).describe()
        self._dense = part if self._dense is None else self._dense.merge(part)

    def summary(self, engine: StreamEngine) -> Summary:
        counts = np.bincount(engine.labels, minlength=engine.n_classes)
        if self._sparse is not None:
            return self._sparse.summary(counts)
        assert self._dense is not None
        return replace(self._dense, class_counts=counts)


def _bytes(X: Block) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if issparse(X) else X.nbytes)


def _stack(parts: list[Block]) -> Block:
    return csr_array(vstack(parts, format="csr")) if issparse(parts[0]) else frozen(np.concatenate(parts))


def _room(shape: tuple[int, int], dtype: Any, most: int) -> Array:
    """An array, in memory or, of more than `most` bytes, in a file that is gone when the array is."""
    if shape[0] * shape[1] * dtype.itemsize <= most:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="belief-") as file:
        os.posix_fallocate(file.fileno(), 0, shape[0] * shape[1] * dtype.itemsize)  # a full disk is said now
        return np.memmap(file, dtype, "r+", shape=shape)
