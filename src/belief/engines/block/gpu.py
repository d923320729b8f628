"""Dense rows on a GPU: the search and the sums there, everything else as the CPU's engine does it.

    rows ──once, or span by span──► device ──► chunks ──meet the queries──► the best lists ──► sums over pairs

The answers are those of the CPU's engine: candidates are kept within a proven bound (kernels/gpu/points.py), and exact
distances are what is ordered. A device that runs out of memory gets smaller chunks, and goes on.
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
from belief.engines.block.stored import Stored, memory_for_rows
from belief.engines.block.threads import Threads, spans
from belief.engines.resources import Resources, silent
from belief.kernels.gpu import exact, sums
from belief.kernels.gpu.lists import Best
from belief.kernels.gpu.moments import FEW_GROUPS, summary
from belief.kernels.gpu.points import WORDS, Space
from belief.kernels.gpu.scan import Chunk, Queries
from belief.kernels.gpu.search import meet
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import Search, Visit
from belief.method.redundancy.collisions import Collisions
from belief.method.relevance import scale_spread
from belief.method.sampling import SAMPLE, TIES, Sample, splitmix64
from belief.method.summary import Summary

START, MOST, LEAST = 2**14, 2**20, 64  # rows of the first chunk, of the largest, and of the smallest worth trying
TOGETHER = 1024  # features whose joint sums are all made at once, and kept


class GpuEngine(DenseEngine):
    """The BlockEngine protocol over a Source of dense rows, on one torch device.

    Parameters
    ----------
    counted : which rows are found, where not all are
    device : the torch device, by name; "cpu" runs the same code without a GPU
    span : the rows it answers for, in a search; all of them by default
    """

    columns_at_once = TOGETHER

    def __init__(
        self, source: Source, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None, device: str = "cuda", span: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(source, targets, discrete, resources, pool, counted)
        self.device = torch.device(device)
        self._span = span or (0, self.m)
        self._stored: Stored | None = None
        self._known: list[tuple[Pairs, Difference, Collisions, Joint]] = []  # joint sums of all features

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        super().__exit__(error, *about)
        self.release()

    def release(self) -> None:
        """Give the device's memory back."""
        self._stored, self._known = None, []

    @property
    def stored(self) -> Stored:
        if self._stored is None:
            assert self.pool is not None, "an engine is to be used as a context"
            memory = memory_for_rows(self.device, self.working_memory)
            self._stored = Stored(self.source, self.device, self.pool, self._span, memory)
        return self._stored

    def _here(self) -> Any:
        """Kernels start on the current device."""
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()

    # --- 1. the summary: on the device where all rows are, else as the CPU does it ---

    def describe(self) -> Summary:
        n, whole = self._groups_kept(), self.stored.whole() if self._span == (0, self.m) else None
        if whole is None or n > FEW_GROUPS:
            return super().describe()
        group = torch.tensor(self.targets if n else np.zeros(self.m, np.int64), device=self.device).long()
        columns = np.flatnonzero(self.discrete)
        cuts = (slice(a, b) for a, b in spans(self.m, max(1, 4 * WORDS // self.n_features)))
        with self._here():
            parts = [summary(whole[cut], group[cut], n, columns) for cut in cuts]
        return reduce(Summary.merge, parts, Summary.zero(self.n_features))

    # --- 2. the sample ---

    def sample(self, quota: Array, seed: int) -> Sample:
        keys = exact.keys(start_key(seed, SAMPLE), torch.arange(self.m, device=self.device))
        groups = zip(self._groups(0, self.m, len(quota)), quota.tolist(), strict=True)
        ids = [rows[torch.topk(keys[rows], min(n, len(rows)), largest=False)[1]] for rows, n in groups]
        chosen = np.sort(torch.cat(ids).cpu().numpy())
        return Sample.draw(chosen, self.targets[chosen], quota, seed)

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        with self._here():
            first = visit.first if visit else 0
            before = visit.found if visit else Neighbours.zero(len(sample.row), search.n_groups, search.size)
            space = Space.of(difference, self.device)
            queries = self._queries(sample, space, visit)
            found = self._search(queries, space, Best.of(before, self.device), search, first).neighbours()
        return found.with_targets(first, self.targets, visit.found if visit else None)

    def _queries(self, sample: Sample, space: Space, visit: Visit | None) -> Queries:
        row = torch.tensor(sample.row, device=self.device)
        if visit is None:
            return Queries.of(self.stored.at(sample.row), row, space)
        name = f"queries on {self.device}"  # of all blocks that are visited the first makes them ready
        if name not in visit.ready:
            given = visit.queries.rows(np.arange(len(sample.row)), 0, self.n_features)
            visit.ready[name] = Queries.of(self.stored.put(*given), row, space)
        return visit.ready[name]

    def _search(self, queries: Queries, space: Space, best: Best, search: Search, first: int) -> Best:
        seed_key = start_key(search.seed, TIES)
        done, most = self.stored.first, MOST
        known = bool(best.farthest.isfinite().all())
        while done < self.stored.stop:
            try:
                for values, at, source, end in self._chunks(done, most, search.n_groups, known):
                    chunk = Chunk.of(values, source, first + at, space, seed_key)
                    best = meet(queries, chunk, best, space)
                    done = end
                    self.report(done - self.stored.first, len(self.stored))
            except torch.OutOfMemoryError:
                most = self._smaller(most)
        return best

    def _smaller(self, most: int) -> int:
        torch.cuda.empty_cache()
        if most <= LEAST:
            raise ValueError(
                f"device={str(self.device)!r} has not the memory for the queries and {most} rows of {self.n_features}"
                " features: sample fewer rows, or use device='cpu'."
            ) from None
        return min(most, len(self.stored)) // 2

    def _chunks(
        self, done: int, most: int, n_groups: int, known: bool
    ) -> Iterator[tuple[Tensor, int, list[Tensor], int]]:
        """Rows, the id of the first, the places of each group among them, and how far that is.

        Of rows that are all there each chunk takes its share of every group, so that none is without thresholds for
        long; of others, whatever is in a span.
        """
        whole = self.stored.whole()
        a, n = self.stored.first, len(self.stored)
        if whole is not None:
            groups = self._groups(a, a + n, n_groups)
            for lo, hi in _growing(done - a, n, most, known):
                cut = [slice(round(lo / n * len(x)), round(hi / n * len(x))) for x in groups]
                yield whole, a, [x[c] for x, c in zip(groups, cut, strict=True)], a + hi
            return
        most = min(most, max(LEAST, self.stored.memory // (4 * self.stored.row_bytes)))
        for span in self.stored.spans(done, most):
            yield span.values, span.first, self._groups(span.first, span.stop, n_groups), span.stop

    def _groups(self, a: int, b: int, n_groups: int) -> list[Tensor]:
        """The places of the rows of each group, among the rows a to b."""
        group = torch.tensor(self.targets[a:b] if n_groups > 1 else np.zeros(b - a, np.int8), device=self.device)
        if self.counted is not None:
            group[torch.tensor(~self.counted[a:b], device=self.device)] = -1
        return [torch.nonzero(group == g)[:, 0] for g in range(n_groups)]

    # --- 4. and 5. the sums ---

    def _tally(self, pairs: Pairs, difference: Difference, rates: Collisions | None) -> Tally:
        with self._here():
            found = sums.tally(self._located(pairs), difference, rates)
        total = found["total"] * difference.per_unit
        spread = scale_spread(found["spread"], pairs, difference.per_unit)
        absent = found["absent"] if difference.missing else None
        return Tally.from_sums(pairs, total, found["rates"], spread, absent, found["queries"])

    def _located(self, pairs: Pairs) -> sums.Located:
        """The pairs and their rows on the device, fetched where not all rows are there."""
        whole = self.stored.whole() if self._span == (0, self.m) else None
        if whole is not None:
            return sums.Located.of(whole, pairs, pairs.query, pairs.neighbour)
        ids, at = np.unique(np.concatenate([pairs.query, pairs.neighbour]), return_inverse=True)
        rows = self.stored.put(*self.source.rows(ids, 0, self.n_features))
        return sums.Located.of(rows, pairs, *at.reshape(2, -1))

    def _joint(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Joint:
        if self.n_features > TOGETHER:
            with self._here():
                return sums.joint(self._located(pairs), difference, rates, watched, columns)
        return _part(self._all_joint(pairs, difference, rates), watched, columns)

    def _all_joint(self, pairs: Pairs, difference: Difference, rates: Collisions) -> Joint:
        """Of all features: the same pairs will be asked about again, and a product of all costs little more."""
        for of, by, how, joint in self._known:
            if of is pairs and by is difference and how == rates:
                return joint
        every = np.arange(self.n_features)
        with self._here():
            joint = sums.joint(self._located(pairs), difference, rates, every, every)
        self._known.append((pairs, difference, rates, joint))
        return joint

    def _floor(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Array:
        return self._joint(pairs, difference, rates, watched, columns).joint


def start_key(seed: int, stream: int) -> int:
    """What the keys of all rows in a stream begin with."""
    return int(splitmix64(splitmix64(np.array([seed % 2**64], np.uint64)) ^ np.uint64(stream))[0])


def _growing(done: int, n: int, most: int, known: bool) -> Iterator[tuple[int, int]]:
    """Chunks of rows: each as many as came before, at most `most`, since a list meets k new rows as they double."""
    while done < n:
        step = most if known else min(most, max(START, done))
        yield done, min(n, done + step)
        done = min(n, done + step)


def _part(joint: Joint, lines: Array, columns: Array) -> Joint:
    """The joint sums of some features with others, from those of all."""
    i, j = lines[:, None], columns[None, :]
    if not joint.lines.size:
        return replace(joint, joint=joint.joint[i, j], pairs=joint.pairs[i, j])
    wide = joint.lines.shape[2] > 1  # where values are missing
    of_lines = joint.lines[:, i, j] if wide else joint.lines[:, lines]
    of_columns = joint.columns[:, i, j] if wide else joint.columns[:, :, columns]
    return Joint(joint.joint[i, j], joint.pairs[i, j], of_lines, of_columns)


class GpusEngine(GpuEngine):
    """Several devices: each searches its share of the rows, driven by a thread; the first makes the sums."""

    def __init__(
        self, source: Source, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None, devices: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(source, targets, discrete, resources, pool, counted, devices[0], (0, 0))  # keeps no rows
        quiet = replace(resources, report=silent)
        shares = zip(devices, spans(self.m, -(-self.m // len(devices))), strict=False)
        self._shares = [GpuEngine(source, targets, discrete, quiet, pool, counted, name, span) for name, span in shares]

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
        given = replace(visit, found=nothing) if visit else Visit(self._sampled(sample), 0, nothing)
        for engine in self._shares:
            engine.counted = self.counted
        with ThreadPoolExecutor(len(self._shares)) as drivers:
            found = drivers.map(lambda engine: engine.nearest(sample, difference, search, given), self._shares)
            return reduce(Neighbours.merge, found, visit.found if visit else nothing)

    def _sampled(self, sample: Sample) -> Source:
        X, rows, a = self.source.rows(sample.row, 0, self.n_features)
        return ArraySource(np.ascontiguousarray(X[rows, a : a + self.n_features]))
