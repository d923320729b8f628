"""The Engine protocol over any cluster, whose workers run the block engines of one machine.

stage ─► blocks, held ─► describe ─► fetch the sample ─► search ─► gather ─► tally ─► joint sums
(rows stay there)  sums      rows, once         locators  rows of   sums     small matrices
pairs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import reduce
from typing import Self, TypeVar

import numpy as np
from scipy.sparse import issparse

from belief.engines.block.threads import spans
from belief.engines.distributed.cluster import Cluster, Slices, StagedBlocks
from belief.engines.distributed.gathering import GatheredRows
from belief.engines.distributed.placing import Given, Layout, summary_of
from belief.engines.distributed.queries import FetchedRows
from belief.engines.distributed.records import flat, n_bytes, restored, side_by_side
from belief.engines.distributed.sums import JointFloors, JointSums, TallyPairs
from belief.engines.distributed.tasks import Choose, Describe, FindNeighbours, Identify, Values
from belief.method.arrays import Array
from belief.method.copies import select_representatives
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import Search
from belief.method.redundancy.collisions import Collisions, Watch, empty_joint
from belief.method.sampling import Sample
from belief.method.summary import Summary
from belief.method.targets import Target

T = TypeVar("T")
M = TypeVar("M", Tally, Joint)
SLICE = 2**20  # features whose sums are merged in one place, at the most
MERGE_BYTES = 2**28  # of answers that are merged in one place
QUERY_BYTES = 2**26  # of queries that travel with one search
FETCHED_AT_ONCE = 4_000  # rows of a sample that are fetched when they are chosen: they will be queries
BATCH_BYTES = 2**26  # up to this size, the sums of all batches are computed in one pass


class DistributedEngine:
    """The Engine protocol over the blocks of a cluster; to be used as a context."""

    n_features: int
    discrete: Array
    target: Target
    rereads_data = False
    columns_at_once = 2048  # a job costs more

    def __init__(self, cluster: Cluster, given: Given) -> None:
        self.cluster, self._given = cluster, given
        self._summary: Summary | None = None
        self._counted = np.zeros(0, np.uint8)  # bits of the rows that are sampled and found; empty: all

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        held = [self.gathered.release, self.staged.release] if self._summary is not None else []
        for release in (*held, self.cluster.release):
            with suppress(Exception) if error else nullcontext():  # what went wrong before is what is told
                release()

    # --- 1. staging, and the summary ---

    def describe(self) -> Summary:
        """Stage the blocks, and describe them: once, however often it is asked."""
        if self._summary is None:
            staged = sorted(self.cluster.stage(), key=lambda x: (x.partition, x.seq))
            self._hold(Layout.of(staged, self._given))
            self._summary = summary_of(staged, self.layout.m, self.target.names) or self.described(self.discrete)
        return self._summary

    def _hold(self, layout: Layout) -> None:
        self.layout, self.target = layout, layout.target
        self.n_features, self.discrete = layout.n_features, layout.discrete
        self.staged: StagedBlocks = self.cluster.blocks(layout)
        self.queries = FetchedRows(self.staged)
        self.gathered = GatheredRows(self.staged, layout.m, layout.row_bytes)

    def described(self, discrete: Array) -> Summary:
        """The summary by a pass over the blocks, as if these features were discrete."""
        F, each = self.n_features, n_bytes(Summary.zero(1))
        width = self._slice(each)
        found = self.staged.run(Describe(discrete, width), each * F, "describing")
        n = len(self.target.names)
        return self._whole(Summary, found, width).regrouped(np.arange(n), n)

    def fingerprint(self) -> bytes:
        """The checksums of all blocks, and which features are discrete."""
        return np.array([x.checksum for x in self.layout.placed], np.int64).tobytes() + self.discrete.tobytes()

    # --- 2. the sample ---

    def sample(self, quota: Array, seed: int) -> Sample:
        """The rows with the smallest keys; of how many in all, the driver can say from the ids alone."""
        if len(quota) > 1 or len(self._counted) or quota[0] > FETCHED_AT_ONCE:
            each = n_bytes(Sample.draw(np.zeros(1, np.int64), np.zeros(1, np.int32), np.array([1]), 0))
            found = self.staged.run(Choose(quota, seed, self._counted), each * int(quota.sum()), "sampling")
            return restored(Sample, found[0])
        sample = Sample.zero()
        for a, b in spans(self.layout.m, 2**20):
            sample = sample.merge(Sample.draw(np.arange(a, b), np.zeros(b - a, np.int32), quota, seed), quota)
        return replace(sample, target=self.queries.targets(sample.row))

    def merge_copies(self, seed: int) -> Target:
        """Find identical rows by a number for each, and count one of them."""
        found = self.staged.run(Identify(), 12 * self.layout.m // self.staged.tasks, "looking for copies")
        whole = {name: np.concatenate([found[i][name] for i in sorted(found)]) for name in ("identity", "targets")}
        counted = select_representatives(whole["identity"], whole["targets"], seed)
        self._counted = np.packbits(counted)
        return self.target.counted(whole["targets"][counted])

    def rows(self, ids: Array, columns: Array) -> Array:
        """Some features of some rows; of queries that were fetched, nobody need be asked."""
        if self.queries.has(ids):
            X = self.queries.rows(ids)[:, columns]
            return (X.toarray() if issparse(X) else X).astype(np.float64)
        order = np.argsort(ids)
        values = self.staged.values(ids[order], columns)
        if values is None:
            job = Values(ids[order], columns)
            found = self.staged.run(job, 8 * len(ids) * len(columns) // self.staged.tasks, "reading values")
            values = np.concatenate([found[i]["values"] for i in sorted(found)])
        return values[np.argsort(order)]

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        """The nearest rows of each sampled row: queries go to all blocks, in portions that can travel."""
        parts = []
        each = n_bytes(Neighbours.zero(1, search.n_groups, search.size))
        for a, b in spans(len(sample.row), max(1, QUERY_BYTES // self.layout.row_bytes)):
            mine = restored(Sample, {name: x[a:b] for name, x in flat(sample).items()})
            job = FindNeighbours(
                mine, self.queries.rows(mine.row), difference, search, self._slice(each), self._counted
            )
            found = self.staged.run(job, each * (b - a), "searching")
            parts += [found[i] for i in sorted(found)]
        return restored(Neighbours, {name: np.concatenate([x[name] for x in parts]) for name in parts[0]})

    # --- 4. and 5. sums over pairs ---

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Bring the rows of these pairs together."""
        self.gathered.prefetch(batches)

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        """The sums of each batch; of all batches in one pass where they are small, since a pass costs more."""
        self.prefetch(batches)
        each = max((n_bytes(Tally.zero(x, 1, rates is not None)) for x in batches), default=0)
        small = each * self.n_features * len(batches) <= BATCH_BYTES
        for together in [batches] if small else [[pairs] for pairs in batches]:
            yield from self._tally(together, difference, rates, each)

    def _tally(
        self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None, each: int
    ) -> Iterator[Tally]:
        reached = list(self.gathered.reach(batches))
        width = self._slice(each, *(blocks.tasks for blocks, _ in reached))
        n, size = len(spans(self.n_features, width)), each * self.n_features * len(batches)
        answers = [
            blocks.run(TallyPairs(pairs, difference, rates, width), size, "weighing") for blocks, pairs in reached
        ]
        for t, batch in enumerate(batches):
            mine = [{i - t * n: x for i, x in found.items() if i // n == t} for found in answers]
            tallies = [self._whole(Tally, found, width) for found in mine if found]
            nothing = Tally.zero(batch, self.n_features, rates is not None)
            yield sum_of(tallies, nothing)

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        """Of each watch: the joint sums of the watched features with the features `columns` over the pairs."""
        found = self._compared(JointSums, difference, rates, watches, columns)
        return [
            sum_of([restored(Joint, x[t]) for x in found if t in x], empty_joint(rates, len(watched), len(columns)))
            for t, (_, watched) in enumerate(watches)
        ]

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        """Numbers not above those joint sums, nor far below."""
        found = self._compared(JointFloors, difference, rates, watches, columns)
        return [
            sum((x[t]["floor"] for x in found if t in x), np.zeros((len(watched), len(columns))))
            for t, (_, watched) in enumerate(watches)
        ]

    def _compared(
        self, job: type[JointSums | JointFloors], difference: Difference, rates: Collisions, watches: Sequence[Watch],
        columns: Array,
    ) -> list[Slices]:  # fmt: skip
        watched = [features for _, features in watches]
        if not len(columns) or not any(map(len, watched)):
            return []
        size = 16 * len(columns) * sum(map(len, watched))
        return [
            blocks.run(job.of(pairs, watched, columns, difference, rates), size, "comparing features")
            for blocks, pairs in self.gathered.reach([pairs for pairs, _ in watches])
        ]

    # --- slices of answers ---

    def _slice(self, size: int, *tasks: int) -> int:
        """How many features (or queries) a slice of answers has, at `size` bytes each from every task."""
        return max(1, min(SLICE, MERGE_BYTES // max(1, size * max((self.staged.tasks, *tasks)))))

    def _whole(self, kind: type[T], found: Slices, width: int) -> T:
        """One record from its slices of features."""
        widths = [b - a for a, b in spans(self.n_features, width)]
        return side_by_side([restored(kind, found[i]) for i in range(len(widths))], widths)


def sum_of(parts: Sequence[M], nothing: M) -> M:
    """All parts merged, in their order."""
    return reduce(lambda a, b: a.merge(b), parts) if parts else nothing
