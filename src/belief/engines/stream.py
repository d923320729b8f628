"""The engine for files larger than memory. It reads the files block by block, four times in all.

    1 describe: moments, levels, targets     2 fetch the sampled rows
    3 search: compare every block to them    4 fetch the neighbours and tally them in memory

It holds one or two blocks, the targets, the sampled rows and their neighbours in memory. If the whole table fits into a
quarter of the working memory, it is kept there and read only once.
"""

from __future__ import annotations

import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.system import allocate_file
from belief.data.arrow import Batch
from belief.data.labels import Labels
from belief.data.source import ArraySource, Stream, as_read_only, is_sparse
from belief.engines.block import Describer, block_engine
from belief.engines.block.dense import DenseEngine
from belief.engines.block.threads import ThreadedEngine, checksum, draw_sample
from belief.engines.resources import Resources, ignore_progress
from belief.engines.suspicious import RowSample
from belief.method.arrays import Array
from belief.method.copies import select_representatives
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import BlockEngine, Search, Storage, Visit
from belief.method.redundancy.collisions import Collisions, Watch
from belief.method.sampling import Sample
from belief.method.summary import Summary
from belief.method.targets import Target

if TYPE_CHECKING:
    from belief.engines.block.sparse import SparseEngine

FileBlock = Any  # a float array in C order, a batch that can become one, or a CSR matrix
SECONDS_BETWEEN_CHECKPOINTS = 30.0


class StreamEngine(ThreadedEngine):
    """The engine over a stream of blocks of rows, from which it reads the targets as well."""

    rereads_data = True
    n_features: int  # set by `describe`, like the next three attributes
    discrete: Array
    targets: Array
    m: int

    def __init__(
        self, stream: Stream, label: str, resources: Resources, notes: Storage | None = None, task: str = "auto"
    ) -> None:
        super().__init__(resources)
        self.stream, self._label, self._task, self.notes = stream, label, task, notes or Storage()
        self._needs_checksum = notes is not None
        self._crc = 0
        self._seen = RowSample()
        self.counted: Array | None = None  # mask of the rows that may be sampled or found; None: all rows
        self._whole: DenseEngine | SparseEngine | None = None  # an engine over all rows, if they fit into memory
        self._fetched: _Fetched | None = None  # otherwise, the rows that were read into memory

    def fingerprint(self) -> bytes:
        return checksum([self.targets, self.discrete, np.array(self._crc)])

    # --- 1. the summary ---

    def describe(self) -> Summary:
        labels, describer = Labels(self._label, self._task), Describer(self.resources, self.pool)
        waiting: list[FileBlock] = []  # blocks that are kept, and described later, as long as all fit into memory
        is_small = True
        self._crc = first = described = 0
        for block in self.stream.first_pass(labels):
            X = self._as_rows(block)
            self.n_features, self.discrete = X.shape[1], self.stream.discrete
            if self._needs_checksum:
                for x in (X.indptr, X.indices, X.data) if is_sparse(X) else (X,):
                    self._crc = zlib.crc32(x, self._crc)
            first += X.shape[0]
            self.report(first, 0)
            waiting.append(X)
            is_small &= sum(map(_count_bytes, waiting)) <= self.working_memory // 4
            while waiting and not is_small:
                X = waiting.pop(0)
                groups = labels.provisional_codes(described, described + X.shape[0])
                describer.add(X, self.discrete, groups=groups)
                if not is_sparse(X):
                    self._seen.add(X, described)
                described += X.shape[0]
        if not first:
            raise ValueError("The files have no rows.")
        self.target, self.targets = labels.target()
        self.m = len(self.targets)
        self.resources = self.resources.with_device_for(self.m, self.n_features)
        if is_small:  # describe one block, so that the result is bit for bit the same as for a table in memory
            self._whole = self._make_engine(_concatenate(waiting), self.targets)
            self._whole.target = self.target
            return self._whole.describe()
        return describer.summary().regrouped(labels.order, len(self.target.names))

    def _make_engine(
        self, X: FileBlock, targets: Array, resources: Resources | None = None, counted: Array | None = None
    ) -> DenseEngine | SparseEngine:
        """Return an engine for rows in memory. It shares the threads of this engine."""
        return block_engine(X, targets, self.discrete, resources or self.resources, self.pool, counted)

    def merge_copies(self, seed: int) -> Target:
        if self._whole is not None:
            identities = self._whole.identities()
        else:
            blocks = self._blocks("looking for copies")
            engines = (self._make_engine(self._as_rows(X), self.targets[a : a + X.shape[0]]) for a, X in blocks)
            identities = np.concatenate([engine.identities() for engine in engines])
        counted = select_representatives(identities, self.targets, seed)
        self.retarget(self.targets, counted)
        return self.target.counted(self.targets[counted])

    def retarget(self, targets: Array, counted: Array | None) -> None:
        self.targets, self.counted = targets, counted
        if self._whole is not None:
            self._whole.retarget(targets, counted)

    def _as_rows(self, X: FileBlock) -> FileBlock:
        """Convert a block to a form that kernels accept: an array or a CSR matrix."""
        return X.whole(self.pool.map) if isinstance(X, Batch) else X  # type: ignore[union-attr]

    def _blocks(self, detail: str) -> Iterator[tuple[int, FileBlock]]:
        """Read the blocks again. Yield the id of the first row of each block, and the block."""
        first = 0
        for X in self.stream.later_pass():
            yield first, X
            first += X.shape[0]
            self.report(first, self.m, detail)
        if first != self.m:
            raise ValueError(f"X changed while it was read: it had {self.m} rows, and now has {first}. Run again.")

    def _fetch(self, ids: Array, detail: str) -> FileBlock:
        """Read the rows with these ids from the files. The ids must be in ascending order.

        Many dense rows are stored in a temporary file instead of memory.
        """
        parts: list[FileBlock] = []
        out = None
        for first, X in self._blocks(detail):
            a, b = np.searchsorted(ids, (first, first + X.shape[0]))
            rows = X[ids[a:b] - first]
            if is_sparse(X):
                parts.append(rows)
                continue
            if out is None:
                out = _allocate((len(ids), X.shape[1]), rows.dtype, self.working_memory // 4)
            out[a:b] = rows
        return _concatenate(parts) if out is None else out

    def peek(self) -> tuple[Array, Array] | None:
        """Return rows spread over the table, and their targets; None for sparse files larger than memory."""
        if self._whole is not None:
            return self._whole.peek()
        if not self._seen.n_rows:
            return None
        return np.concatenate(self._seen.parts), self.targets[np.concatenate(self._seen.ids)]

    # --- 2. the sample ---

    def sample(self, quota: Array, seed: int) -> Sample:
        return draw_sample(self.targets, self.counted, quota, seed)

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        if self._whole is not None:
            return self._whole.nearest(sample, difference, search)
        if self._fetched is not None and np.isin(sample.row, self._fetched.ids).all():
            X = self._fetched.take(sample.row)
        else:
            order = np.argsort(sample.row)
            X = self._fetch(sample.row[order], "fetching the sample")[np.argsort(order)]
        queries = X if is_sparse(X) else ArraySource(X)
        quiet = replace(self.resources, report=ignore_progress)  # progress is reported per file block here
        start, found = self._resume(search, sample.row)
        saved, ready = time.monotonic(), {}  # type: float, dict[Any, Any]
        for first, X in self._blocks("comparing"):
            if first + X.shape[0] <= start:
                continue
            if first < start:
                raise ValueError(
                    "The checkpoint was made with blocks of other sizes, so it cannot be used. Pass restart=True."
                )
            mine = slice(first, first + X.shape[0])
            counted = None if self.counted is None else self.counted[mine]
            engine = self._make_engine(self._as_rows(X), self.targets[mine], quiet, counted)
            found = engine.nearest(sample, difference, search, Visit(queries, first, found, ready))
            if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
                self.notes.save("search", start=first + X.shape[0], queries=sample.row, **vars(found))
                saved = time.monotonic()
        return found

    def _resume(self, search: Search, queries: Array) -> tuple[int, Neighbours]:
        """Return the id of the row from which the search continues, and the neighbours found among the rows before.

        A checkpoint of a search for other queries is ignored.
        """
        nothing = 0, Neighbours.zero(len(queries), search.n_groups, search.size)

        def read(noted: dict[str, Any]) -> tuple[int, Neighbours]:
            start, same = int(noted.pop("start")), np.array_equal(noted.pop("queries"), queries)
            found = Neighbours.validated(search.n_groups, search.size, self.m, noted)
            if not 0 <= start <= self.m or (same and len(found.row) != len(queries)):
                raise ValueError("stored neighbours belong to another search")
            return (start, found) if same else nothing

        return self.notes.load("search", read) or nothing

    # --- 4. sums over pairs, after their rows have been fetched ---

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        if self._whole is not None or not batches:
            return
        known = self._fetched.ids if self._fetched else np.zeros(0, np.int64)
        needed = np.unique(np.concatenate([ids for x in batches for ids in (x.query, x.neighbour)]))
        new = np.setdiff1d(needed, known)
        if len(new):
            before = self._fetched.parts if self._fetched else []
            parts = [*before, self._fetch(new, "fetching the neighbours")]
            ids = np.concatenate([known, new])
            self._fetched = _Fetched(ids, parts, self._make_engine(parts, self.targets[ids]))

    def rows(self, ids: Array, columns: Array) -> Array:
        engine, located = self._locate([Pairs(ids, ids, np.zeros(len(ids), np.int64), 1)])
        return engine.rows(located[0].query, columns)

    def _locate(self, batches: Sequence[Pairs]) -> tuple[BlockEngine, list[Pairs]]:
        """Return an engine over rows in memory, and the same pairs with the row numbers of that engine.

        Rows of these pairs that are not in memory yet are read first.
        """
        if self._whole is not None:
            return self._whole, list(batches)
        self.prefetch(batches)
        assert self._fetched is not None
        return self._fetched.engine, [self._fetched.locate(pairs) for pairs in batches]

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        engine, located = self._locate(batches)
        return engine.tally(located, difference, rates)

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        engine, located = self._locate([pairs for pairs, _ in watches])
        watched = [features for _, features in watches]
        return engine.joint(difference, rates, list(zip(located, watched, strict=True)), columns)

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        engine, located = self._locate([pairs for pairs, _ in watches])
        watched = [features for _, features in watches]
        return engine.joint_floor(difference, rates, list(zip(located, watched, strict=True)), columns)


class _Fetched:
    """Rows that were read into memory, with their ids."""

    def __init__(self, ids: Array, parts: list[FileBlock], engine: BlockEngine) -> None:
        self.ids, self.parts, self.engine = ids, parts, engine
        self._order = np.argsort(ids)

    def _place(self, ids: Array) -> Array:
        return self._order[np.searchsorted(self.ids, ids, sorter=self._order)]

    def take(self, ids: Array) -> FileBlock:
        """Return the rows with these ids, in the order of the ids."""
        place, starts = self._place(ids), np.cumsum([0, *(X.shape[0] for X in self.parts)])
        home = np.searchsorted(starts, place, side="right") - 1
        order = np.argsort(home, kind="stable")
        parts = [self.parts[i][place[home == i] - starts[i]] for i in np.unique(home)]
        return _concatenate(parts)[np.argsort(order)]

    def locate(self, pairs: Pairs) -> Pairs:
        """Replace the row ids in the pairs by the positions of these rows in memory."""
        return replace(pairs, query=self._place(pairs.query), neighbour=self._place(pairs.neighbour))


def _count_bytes(X: FileBlock) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if is_sparse(X) else X.nbytes)


def _concatenate(parts: list[FileBlock]) -> FileBlock:
    if not is_sparse(parts[0]):
        return as_read_only(np.concatenate(parts))
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr"))


def _allocate(shape: tuple[int, int], dtype: Any, max_bytes: int) -> Array:
    """Return an uninitialised array in memory or, if it has more than `max_bytes`, in a temporary file.

    The file is deleted when the array is.
    """
    if shape[0] * shape[1] * dtype.itemsize <= max_bytes:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="belief-") as file:
        allocate_file(file, shape[0] * shape[1] * dtype.itemsize, tempfile.gettempdir())
        return np.memmap(file, dtype, "r+", shape=shape)
