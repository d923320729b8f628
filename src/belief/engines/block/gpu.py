"""The engine for dense rows on a GPU. The GPU searches and sums; all else is inherited from the engine for the CPU.

    rows ──once, or span by span──► device ──► chunks ──compare with queries──► neighbours ──► sums over pairs

The results are the same as on the CPU: candidates are selected by proven bounds (kernels/gpu/points.py) and ordered
by exact distances. If the device runs out of memory, the search continues with smaller chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import reduce
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from belief.data.source import ArraySource, Source
from belief.engines.block.dense import DenseEngine
from belief.engines.block.stored import Stored
from belief.engines.block.threads import spans
from belief.engines.resources import Resources, ignore_progress
from belief.kernels.gpu import sums
from belief.kernels.gpu.points import MAX_TEMPORARY, Space
from belief.kernels.gpu.ranking import Best, tie_keys
from belief.kernels.gpu.scan import Chunk, Queries
from belief.kernels.gpu.search import compare
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import Search, Visit
from belief.method.redundancy.collisions import Collisions
from belief.method.relevance import scale_spread
from belief.method.sampling import SAMPLE, TIES, Sample, splitmix64
from belief.method.summary import Summary

MAX_GROUPS = 64  # for more groups, the CPU computes the summary
MAX_MEMORY_SHARE = 0.6  # share of the free device memory that rows may use


class GpuEngine(DenseEngine):
    """The engine over a source of dense rows on one torch device.

    Parameters
    ----------
    device : name of the torch device; "cpu" runs the same code without a GPU
    span : the rows to search as (start, stop); None: all rows
    """

    columns_at_once = 1024  # up to this many features, joint sums are computed for all pairs of features, and cached
    first_chunk, max_chunk, min_chunk = 2**14, 2**20, 64  # rows of a chunk
    compare = staticmethod(compare)  # searches a chunk

    def __init__(self, *about: Any, device: str, span: tuple[int, int] | None = None) -> None:
        super().__init__(*about)
        self.device = torch.device(device)
        self._span = span or (0, self.m)
        self._stored: Stored | None = None
        self._joint_cache: list[tuple[Pairs, Difference, Collisions, Joint]] = []  # joint sums of all features

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        super().__exit__(error, *about)
        self.release()

    def release(self) -> None:
        """Free the memory that this engine uses on the device."""
        self._stored, self._joint_cache = None, []

    @property
    def stored(self) -> Stored:
        if self._stored is None:
            assert self.pool is not None, "use the engine as a context manager"
            memory = self.working_memory
            if self.device.type == "cuda":
                memory = int(MAX_MEMORY_SHARE * torch.cuda.mem_get_info(self.device)[0])
            self._stored = Stored(self.source, self.device, self.pool, self._span, memory)
        return self._stored

    def _on_device(self) -> Any:
        """Return a context in which this device is the current device of torch, so that kernels run on it."""
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()

    # --- 1. the summary, on the device if all rows are there ---

    def describe(self) -> Summary:
        n, whole = self._count_groups(), self.stored.whole() if self._span == (0, self.m) else None
        if whole is None or n > MAX_GROUPS:
            return super().describe()
        group = torch.tensor(self.targets if n else np.zeros(self.m, np.int64), device=self.device).long()
        columns = np.flatnonzero(self.discrete)
        cuts = (slice(a, b) for a, b in spans(self.m, max(1, 4 * MAX_TEMPORARY // self.n_features)))
        with self._on_device():
            parts = [sums.summarise(whole[cut], group[cut], n, columns) for cut in cuts]
        return reduce(Summary.merge, parts, Summary.zero(self.n_features))

    # --- 2. the sample ---

    def sample(self, quota: Array, seed: int) -> Sample:
        keys = tie_keys(stream_key(seed, SAMPLE), torch.arange(self.m, device=self.device))
        groups = zip(self._groups(0, self.m, len(quota)), quota.tolist(), strict=True)
        ids = [rows[torch.topk(keys[rows], min(n, len(rows)), largest=False)[1]] for rows, n in groups]
        chosen = np.sort(torch.cat(ids).cpu().numpy())
        return Sample.draw(chosen, self.targets[chosen], quota, seed)

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        with self._on_device():
            first = visit.first if visit else 0
            before = visit.found if visit else Neighbours.zero(len(sample.row), search.n_groups, search.size)
            space = Space.from_difference(difference, self.device)
            queries = self._queries(sample, space, visit)
            found = self._search(queries, space, Best.from_neighbours(before, self.device), search, first).neighbours()
        return found.with_targets(first, self.targets, visit.found if visit else None)

    def _queries(self, sample: Sample, space: Space, visit: Visit | None) -> Queries:
        row = torch.tensor(sample.row, device=self.device)
        if visit is None:
            return Queries.from_rows(self.stored.at(sample.row), row, space)
        name = f"queries on {self.device}"  # embedded for the first block, and reused for later blocks
        if name not in visit.ready:
            rows = visit.queries.rows(np.arange(len(sample.row)), 0, self.n_features)
            visit.ready[name] = Queries.from_rows(self.stored.copy_rows(*rows), row, space)
        return visit.ready[name]

    def _search(self, queries: Queries, space: Space, best: Best, search: Search, first: int) -> Best:
        seed_key = stream_key(search.seed, TIES)
        done, most = self.stored.first, self.max_chunk
        known = bool(best.farthest.isfinite().all())
        while done < self.stored.stop:
            try:
                for values, at, source, end in self._chunks(done, most, search.n_groups, known):
                    chunk = Chunk.from_rows(values, source, first + at, space, seed_key)
                    best = self.compare(queries, chunk, best, space)
                    done = end
                    self.report(done - self.stored.first, len(self.stored))
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                if most <= self.min_chunk:
                    raise ValueError(
                        f"device={str(self.device)!r} ran out of memory with {most} rows of {self.n_features} features."
                        " Reduce sample_size, or use device='cpu'."
                    ) from None
                most = min(most, len(self.stored)) // 2
        return best

    def _chunks(
        self, done: int, most: int, n_groups: int, known: bool
    ) -> Iterator[tuple[Tensor, int, list[Tensor], int]]:
        """Yield each chunk of rows as (values, first, positions, end).

        `values` are rows on the device, beginning with row `first` of the engine's data. `positions` has one entry for
        each group: the positions in `values` of the rows that belong to both the group and the chunk. `end` is the
        number of rows up to the end of this chunk.

        If all rows are on the device, each chunk has the same share of every group. So the first chunk already contains
        near rows of every group, and their distances exclude most rows of later chunks. Otherwise, a chunk is a span of
        rows.
        """
        whole = self.stored.whole()
        a, n = self.stored.first, len(self.stored)
        if whole is not None:
            groups = self._groups(a, a + n, n_groups)
            for lo, hi in _growing_chunks(done - a, n, self.first_chunk, most, known):
                cut = [slice(round(lo / n * len(x)), round(hi / n * len(x))) for x in groups]
                yield whole, a, [x[c] for x, c in zip(groups, cut, strict=True)], a + hi
            return
        most = min(most, max(self.min_chunk, self.stored.memory // (4 * self.stored.row_bytes)))
        for span in self.stored.spans(done, most):
            yield span.values, span.first, self._groups(span.first, span.stop, n_groups), span.stop

    def _groups(self, a: int, b: int, n_groups: int) -> list[Tensor]:
        """Return the positions of the rows of each group among the rows a to b."""
        group = torch.tensor(self.targets[a:b] if n_groups > 1 else np.zeros(b - a, np.int8), device=self.device)
        if self.counted is not None:
            group[torch.tensor(~self.counted[a:b], device=self.device)] = -1
        return [torch.nonzero(group == g)[:, 0] for g in range(n_groups)]

    # --- 4. and 5. the sums ---

    def _tally(self, pairs: Pairs, difference: Difference, rates: Collisions | None) -> Tally:
        with self._on_device():
            found = sums.tally(self._located(pairs), difference, rates)
        total = found["total"] * difference.per_unit
        spread = scale_spread(found["spread"], pairs, difference.per_unit)
        absent = found["absent"] if difference.missing else None
        return Tally.from_sums(pairs, total, found["rates"], spread, absent, found["queries"])

    def _located(self, pairs: Pairs) -> sums.Located:
        """Return the pairs and their rows on the device. Rows that are not there yet are copied first."""
        values, places = self.stored.whole() if self._span == (0, self.m) else None, [pairs.query, pairs.neighbour]
        if values is None:
            ids, at = np.unique(np.concatenate(places), return_inverse=True)
            values, places = self.stored.copy_rows(*self.source.rows(ids, 0, self.n_features)), [*at.reshape(2, -1)]
        query, neighbour = (torch.tensor(x, device=self.device) for x in places)
        return sums.Located(values, query, neighbour, pairs)

    def _joint(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Joint:
        if self.n_features > self.columns_at_once:
            with self._on_device():
                return sums.joint(self._located(pairs), difference, rates, watched, columns)
        # the sums of all pairs of features are cached, because computing them costs little more than computing some
        for known, scaling, settings, joint in self._joint_cache:
            if known is pairs and scaling is difference and settings == rates:
                return _select(joint, watched, columns)
        every = np.arange(self.n_features)
        with self._on_device():
            joint = sums.joint(self._located(pairs), difference, rates, every, every)
        self._joint_cache.append((pairs, difference, rates, joint))
        return _select(joint, watched, columns)

    def _floor(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Array:
        return self._joint(pairs, difference, rates, watched, columns).joint


def stream_key(seed: int, stream: int) -> int:
    """Return the part of the random keys that depends on the seed and the stream alone."""
    return int(splitmix64(splitmix64(np.array([seed % 2**64], np.uint64)) ^ np.uint64(stream))[0])


def _growing_chunks(done: int, n: int, least: int, most: int, known: bool) -> Iterator[tuple[int, int]]:
    """Cut the rows from `done` to n into chunks, and yield each chunk as (start, stop).

    Each chunk has as many rows as there are before it, but at least `least` and at most `most`. So only about k rows
    of a chunk can change a query's list of k neighbours. If these lists are full from the start, `known` is True,
    and each chunk has `most` rows.
    """
    while done < n:
        step = most if known else min(most, max(least, done))
        yield done, min(n, done + step)
        done = min(n, done + step)


def _select(joint: Joint, lines: Array, columns: Array) -> Joint:
    """Select the joint sums of some features (lines) with others (columns) from the joint sums of all features."""
    i, j = lines[:, None], columns[None, :]
    if not joint.lines.size:
        return replace(joint, joint=joint.joint[i, j], pairs=joint.pairs[i, j])
    wide = joint.lines.shape[2] > 1  # values are missing
    line_sums = joint.lines[:, i, j] if wide else joint.lines[:, lines]
    column_sums = joint.columns[:, i, j] if wide else joint.columns[:, :, columns]
    return Joint(joint.joint[i, j], joint.pairs[i, j], line_sums, column_sums)


class MultiGpuEngine(GpuEngine):
    """The engine for several GPUs.

    Each GPU searches a share of the rows, driven by a separate thread; the first GPU computes the sums.
    """

    def __init__(
        self, source: Source, targets: Array, discrete: Array, resources: Resources, *about: Any, devices: Sequence[str]
    ) -> None:
        super().__init__(source, targets, discrete, resources, *about, device=devices[0], span=(0, 0))  # stores no rows
        quiet = replace(resources, report=ignore_progress)
        shares = zip(devices, spans(self.m, -(-self.m // len(devices))), strict=False)
        self._shares = [
            GpuEngine(source, targets, discrete, quiet, *about, device=name, span=span) for name, span in shares
        ]

    def __enter__(self) -> Self:
        super().__enter__()
        for engine in self._shares:
            engine.pool = self.pool
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        super().__exit__(error, *about)
        for engine in self._shares:
            engine.release()

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        nothing = Neighbours.zero(len(sample.row), search.n_groups, search.size)
        if visit is None:
            X, rows, a = self.source.rows(sample.row, 0, self.n_features)
            queries = ArraySource(np.ascontiguousarray(X[rows, a : a + self.n_features]))
            shared = Visit(queries, 0, nothing)
        else:
            shared = replace(visit, found=nothing)
        for engine in self._shares:
            engine.retarget(self.targets, self.counted)
        with ThreadPoolExecutor(len(self._shares)) as drivers:
            found = drivers.map(lambda engine: engine.nearest(sample, difference, search, shared), self._shares)
            return reduce(Neighbours.merge, found, visit.found if visit else nothing)
