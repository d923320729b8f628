"""The engine over a cluster.

The driver sends jobs. The executors run them with the engines for one machine (engines/block), on their own blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import numpy as np
from scipy.sparse import issparse

from belief.engines.block.threads import ThreadedEngine, spans
from belief.engines.records import count_bytes, flatten, join_features, restore, select_features
from belief.engines.resources import Resources
from belief.engines.spark.blocks import Matrix, TableSpec, lay_out, merge_summaries, stack_rows
from belief.engines.spark.gathering import GatheredRows
from belief.engines.spark.jobs import (
    Answers,
    Blocks,
    ChooseSample,
    Cluster,
    Describe,
    FindNeighbours,
    Identify,
    Job,
    JointFloors,
    JointSums,
    ReadRoles,
    StagedBlocks,
    TallyPairs,
)
from belief.method.arrays import Array
from belief.method.copies import select_representatives
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import Search
from belief.method.redundancy.collisions import Collisions, Watch, empty_joint
from belief.method.sampling import Sample
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.progress import COMPARING

T = TypeVar("T")


class ClusterEngine(ThreadedEngine):
    """The engine over the blocks of a cluster. Its threads run the significance tests, on the driver."""

    n_features: int
    discrete: Array
    targets: Array
    columns_at_once = 2048  # high, because a job has a large fixed cost
    max_slice_features = 2**20  # maximum number of features whose sums are merged in one place
    merge_bytes = 2**28  # size of the answers that are merged in one place
    query_bytes = 2**26  # size of the queries that are sent with one job
    max_fetched_rows = 4_000  # samples up to this size are fetched as soon as they are drawn: they become queries
    batch_bytes = 2**26  # up to this size, the sums of all batches are computed in one pass

    def __init__(self, cluster: Cluster, spec: TableSpec) -> None:
        super().__init__(Resources())
        self.cluster, self._spec = cluster, spec
        self._summary: Summary | None = None
        self._cells = np.zeros(0, np.int32)  # the group of each row in searches; empty: the targets are the groups
        self._counted = np.zeros(0, np.uint8)  # bit mask of the rows that may be sampled or found; empty: all

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        super().__exit__(error, *about)
        releases = [self.gathered.release, self.staged.release] if self._summary is not None else []
        if error:
            releases.insert(0, self.cluster.cancel)  # running tasks could write to storage that has been released
        for release in (*releases, self.cluster.release):
            with suppress(Exception) if error else nullcontext():  # do not hide the first error
                release()

    # --- 1. staging and the summary ---

    def describe(self) -> Summary:
        """Stage the table on the first call; return its summary."""
        if self._summary is None:
            staged = sorted(self.cluster.stage(), key=lambda x: (x.partition, x.seq))
            self.layout, self.target, self.discrete = lay_out(staged, self._spec)
            n_columns = self.layout.n_features
            self.n_features = n_columns - self._spec.roles
            discrete_roles = self.discrete[self.n_features :]
            self.discrete, self._features = self.discrete[: self.n_features], np.arange(self.n_features)
            self.staged: StagedBlocks = self.cluster.open(self.layout)
            self.queries = FetchedRows(self.staged, self._features if self._spec.roles else None)
            self.gathered = GatheredRows(self.staged, self.layout.n_rows, self.layout.row_bytes)
            summary = merge_summaries(staged, self.layout.n_rows, self.target.names)
            if summary and self._spec.roles:
                summary = select_features(summary, n_columns, slice(0, self.n_features))
            self._summary = summary or self.describe_as(self.discrete)
            if self._spec.roles:  # read the targets of all rows, and the columns of groups, strata and weights
                job = ReadRoles(np.arange(self.n_features, n_columns))
                size = 8 * (1 + self._spec.roles) * self.layout.n_rows // self.staged.tasks
                answers = self.staged.run(job, size, "reading groups, strata and weights")
                self.targets, roles = _join_blocks(answers, "targets", "roles")
                # codes of categories become text, so that they are not treated as numbers
                self.roles = [
                    np.array([None if np.isnan(code) else f"{code:g}" for code in x], object) if is_text else x
                    for x, is_text in zip(roles.T, discrete_roles, strict=True)
                ]
        return self._summary

    def _run(self, blocks: Blocks, job: Job, size: int, what: str) -> Answers:
        """Run a job on the features only, without the columns of groups, strata and weights; return its answers."""
        if self._spec.roles and job.features is None:
            object.__setattr__(job, "features", self._features)
        return blocks.run(job, size, what)

    def retarget(self, targets: Array, counted: Array | None) -> None:
        """Set the groups in which later searches find neighbours, and the rows that may be sampled or found.

        `targets` has the group of each row of the table. `counted` is a mask of the rows that may be sampled or found;
        None means all rows.
        """
        is_target = targets is self.targets
        self._cells = np.zeros(0, np.int32) if is_target else targets.astype(np.min_scalar_type(int(targets.max())))
        self._counted = np.zeros(0, np.uint8) if counted is None else np.packbits(counted)

    @property
    def counted(self) -> Array:
        """The mask of the rows that may be sampled or found as neighbours; empty if all rows may be."""
        return np.unpackbits(self._counted)[: self.layout.n_rows].astype(bool)

    def peek(self) -> None:
        """Return None: warnings about suspicious columns are only given for local tables."""

    def describe_as(self, discrete: Array) -> Summary:
        """Compute the summary in one pass over the blocks, with the features in a mask treated as discrete."""
        bytes_per_feature = count_bytes(Summary.zero(1))
        width = self._slice_width(bytes_per_feature)
        answers = self._run(self.staged, Describe(discrete, width), bytes_per_feature * self.n_features, "describing")
        n = len(self.target.names)
        return self._join_slices(Summary, answers, width).regrouped(np.arange(n), n)

    def fingerprint(self) -> bytes:
        return np.array([x.checksum for x in self.layout.blocks], np.int64).tobytes() + self.discrete.tobytes()

    # --- 2. the sample ---

    def sample(self, quota: Array, seed: int) -> Sample:
        if len(quota) > 1 or len(self._counted) or quota[0] > self.max_fetched_rows:
            row_bytes = count_bytes(Sample.draw(np.zeros(1, np.int64), np.zeros(1, np.int32), np.array([1]), 0))
            job = ChooseSample(quota, seed, self._counted)
            return restore(Sample, self.staged.run(job, row_bytes * int(quota.sum()), "sampling")[0])
        sample = Sample.zero()  # without classes, the sample depends on the row ids only
        for a, b in spans(self.layout.n_rows, 2**20):
            sample = sample.merge(Sample.draw(np.arange(a, b), np.zeros(b - a, np.int32), quota, seed), quota)
        return replace(sample, target=self.queries.targets(sample.row))

    def merge_copies(self, seed: int) -> Target:
        answers = self._run(self.staged, Identify(), 12 * self.layout.n_rows // self.staged.tasks, "merging copies")
        identity, targets = _join_blocks(answers, "identity", "targets")
        targets = self._cells if len(self._cells) else targets
        counted = select_representatives(identity, targets, seed)
        self._counted = np.packbits(counted)
        return self.target.counted(targets[counted])

    def rows(self, ids: Array, columns: Array) -> Array:
        """Return some features of some rows as float64.

        If only a few rows are needed, all their features are fetched, so that later requests need no job.
        """
        if len(ids) * self.layout.row_bytes <= self.query_bytes or self.queries.has(ids):
            X = self.queries.rows(ids)[:, columns]
            return (X.toarray() if issparse(X) else X).astype(np.float64)
        order, features = np.argsort(ids), np.unique(columns)
        X = stack_rows([block.X for block in self.staged.fetch(ids[order], features)])
        X = X.toarray() if issparse(X) else X
        return X[np.ix_(np.argsort(order), np.searchsorted(features, columns))].astype(np.float64)

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        parts = []
        bytes_per_query = count_bytes(Neighbours.zero(1, search.n_groups, search.size))
        width = self._slice_width(bytes_per_query)
        for a, b in spans(len(sample.row), max(1, self.query_bytes // self.layout.row_bytes)):
            part = restore(Sample, {name: x[a:b] for name, x in flatten(sample).items()})
            job = FindNeighbours(
                part, self.queries.rows(part.row), difference, search, width, self._counted, self._cells
            )
            answers = self._run(self.staged, job, bytes_per_query * (b - a), "searching")
            parts += [answers[i] for i in sorted(answers)]
        return restore(Neighbours, {name: np.concatenate([x[name] for x in parts]) for name in parts[0]})

    # --- 4. and 5. sums over pairs ---

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        self.gathered.prefetch(batches)

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        """Yield the sums of each batch. Small batches are summed in one job, because each job has a fixed cost."""
        self.prefetch(batches)
        bytes_per_feature = max((count_bytes(Tally.zero(x, 1, rates is not None)) for x in batches), default=0)
        is_small = bytes_per_feature * self.n_features * len(batches) <= self.batch_bytes
        for group in [batches] if is_small else [[pairs] for pairs in batches]:
            yield from self._tally(group, difference, rates, bytes_per_feature)

    def _tally(
        self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None, bytes_per_feature: int
    ) -> Iterator[Tally]:
        gathered = list(self.gathered.find(batches))
        width = self._slice_width(bytes_per_feature, *(blocks.tasks for blocks, _ in gathered))
        n, size = len(spans(self.n_features, width)), bytes_per_feature * self.n_features * len(batches)
        answers = [
            self._run(blocks, TallyPairs(pairs, difference, rates, width), size, "tallying")
            for blocks, pairs in gathered
        ]
        for t, batch in enumerate(batches):
            of_batch = [{i - t * n: x for i, x in found.items() if i // n == t} for found in answers]
            tallies = [self._join_slices(Tally, found, width) for found in of_batch if found]
            yield reduce(Tally.merge, tallies) if tallies else Tally.zero(batch, self.n_features, rates is not None)

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        answers = self._compare(JointSums, difference, rates, watches, columns)
        out = []
        for t, (_, watched) in enumerate(watches):
            parts = [restore(Joint, x[t]) for x in answers if t in x]
            out.append(reduce(Joint.merge, parts) if parts else empty_joint(rates, len(watched), len(columns)))
        return out

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        answers = self._compare(JointFloors, difference, rates, watches, columns)
        return [
            sum((x[t]["floor"] for x in answers if t in x), np.zeros((len(watched), len(columns))))
            for t, (_, watched) in enumerate(watches)
        ]

    def _compare(
        self,
        job: type[JointSums | JointFloors],
        difference: Difference,
        rates: Collisions,
        watches: Sequence[Watch],
        columns: Array,
    ) -> list[Answers]:
        watched = [features for _, features in watches]
        if not len(columns) or not any(map(len, watched)):
            return []
        size = 16 * len(columns) * sum(map(len, watched))
        return [
            self._run(blocks, job.of(pairs, watched, columns, difference, rates), size, COMPARING)
            for blocks, pairs in self.gathered.find([pairs for pairs, _ in watches])
        ]

    # --- slices of answers ---

    def _slice_width(self, size: int, *task_counts: int) -> int:
        """Return the number of features (or queries) per slice, so that all answers for a slice can be merged at once.

        `size` is the number of bytes of one feature (or query) in the answer of a task. The number of answers is the
        largest of `task_counts` and of the number of tasks for the staged blocks.
        """
        n_tasks = max((self.staged.tasks, *task_counts))
        return max(1, min(self.max_slice_features, self.merge_bytes // max(1, size * n_tasks)))

    def _join_slices(self, kind: type[T], answers: Answers, width: int) -> T:
        """Join the answers for slices of `width` features into one record of all features."""
        widths = [b - a for a, b in spans(self.n_features, width)]
        return join_features([restore(kind, answers[i]) for i in range(len(widths))], widths)


def _join_blocks(answers: Answers, *names: str) -> list[Array]:
    """Return these arrays of the answers, each concatenated over the blocks."""
    return [np.concatenate([answers[i][name] for i in sorted(answers)]) for name in names]


class FetchedRows:
    """Rows that the driver has fetched from the cluster. Other rows are fetched when they are requested."""

    def __init__(self, staged: StagedBlocks, features: Array | None) -> None:
        self._staged, self._features = staged, features
        self._ids = np.zeros(0, np.int64)  # sorted
        self._X: Matrix = None
        self._targets = np.zeros(0, np.int32)

    def has(self, ids: Array) -> bool:
        """Return True if all these rows have been fetched."""
        return bool(np.isin(ids, self._ids).all())

    def rows(self, ids: Array) -> Matrix:
        """Return the rows with these ids, in the order of the ids."""
        positions = self._fetch(ids)  # replaces self._X
        return self._X[positions]

    def targets(self, ids: Array) -> Array:
        """Return the targets of the rows with these ids."""
        positions = self._fetch(ids)  # replaces self._targets
        return self._targets[positions]

    def _fetch(self, ids: Array) -> Array:
        """Fetch the rows that are not on the driver yet; return the positions of all rows with these ids."""
        missing = np.setdiff1d(ids, self._ids)
        if len(missing):
            pieces = self._staged.fetch(missing, self._features)
            known = [] if self._X is None else [self._X]
            ids_known = np.concatenate([self._ids, missing])
            order = np.argsort(ids_known)
            X = stack_rows([*known, *(piece.X for piece in pieces)])
            self._X = X[order] if known else X
            self._ids = ids_known[order]
            self._targets = np.concatenate([self._targets, *(piece.targets for piece in pieces)])[order]
        return np.searchsorted(self._ids, ids)
