"""Jobs, the computations that executors run over their blocks, and the interface of a cluster, which runs them.

A job cuts its result into numbered slices, such as ranges of features. Each task yields its answers as (slice number,
arrays). The answers of all tasks for the same slice are merged in the order of the tasks, so that no number depends on
which task finishes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy.sparse import issparse

from belief.data.source import ArraySource
from belief.engines.block import Describer, block_engine
from belief.engines.block.threads import spans
from belief.engines.records import flatten, restore, select_features
from belief.engines.resources import Resources
from belief.engines.spark.blocks import (
    BlockInfo,
    Layout,
    Matrix,
    RowBlock,
    take_features,
    take_rows,
    to_arrays,
    to_matrix,
)
from belief.engines.spark.wire import pack, unpack
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import BlockEngine, Search, Visit
from belief.method.redundancy.collisions import Collisions, Watch
from belief.method.sampling import Sample
from belief.method.summary import Summary

Answer = tuple[int, dict[str, Any]]  # slice number, arrays
# For each block, the pairs of which it has both rows, as (index of their batch, pairs). Positions in the block replace
# the ids of the rows.
LocatedPairs = Mapping[int, Sequence[tuple[int, Pairs]]]
Merge = Callable[[Sequence[dict[str, Any]]], dict[str, Any]]
Answers = dict[int, dict[str, Any]]  # the merged answers of a job, by slice
SEEN = -1  # the slice number of the answer in which each task lists its blocks


class Job:
    """The base class of jobs, each of which is one pass over all blocks."""

    features: Array | None = None  # the features that the job reads; None: all
    partial: ClassVar[Any] = None  # the record type of the answers; None: each slice comes from one block

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        """Yield the answers of one task for its blocks, computed in `n_jobs` threads."""
        raise NotImplementedError

    @classmethod
    def merge(cls, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Merge the answers of several tasks for one slice into one answer."""
        if cls.partial is None:
            return answers[0]
        return flatten(reduce(cls.partial.merge, (restore(cls.partial, x) for x in answers)))


# --- 1. the summary ---


@dataclass(frozen=True)
class Describe(Job):
    """A job that computes moments and levels of the features, in slices of features."""

    discrete: Array
    width: int  # features per slice
    partial: ClassVar = Summary

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        describer, has_rows, F = Describer(Resources(n_jobs)), False, len(self.discrete)
        for block in blocks:
            groups = block.targets if block.targets.dtype.kind == "i" else None
            describer.add(block.X, self.discrete, block.first, groups)
            has_rows = True
        summary = describer.summary() if has_rows else Summary.zero(F)
        for i, (a, b) in enumerate(spans(F, self.width)):
            yield i, flatten(select_features(summary, F, slice(a, b)))


# --- 2. the sample ---


@dataclass(frozen=True)
class ChooseSample(Job):
    """A job that returns the rows with the smallest random keys, among all rows or in each class."""

    quota: Array
    seed: int
    counted: Array  # bit mask of the rows that may be sampled; empty: all
    features = np.zeros(0, np.int64)  # the job only needs targets

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        sample = Sample.zero()
        for block in blocks:
            mask = counted_rows(block, self.counted)
            positions = np.arange(len(block.targets)) if mask is None else np.flatnonzero(mask)
            more = Sample.draw(block.first + positions, block.targets[positions], self.quota, self.seed)
            sample = sample.merge(more, self.quota)
        yield 0, flatten(sample) | {"quota": self.quota}

    @classmethod
    def merge(cls, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        quota = answers[0]["quota"]
        samples = [restore(Sample, x) for x in answers]
        return flatten(reduce(lambda a, b: a.merge(b, quota), samples)) | {"quota": quota}


@dataclass(frozen=True)
class Fetch(Job):
    """A job that returns the rows with certain ids, with all features or some."""

    ids: Array  # sorted
    columns: Array | None = None  # sorted

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X, targets, positions = take_rows(block, self.ids)
            if len(positions):
                X = X if self.columns is None else take_features(X, self.columns)
                yield int(positions[0]), {"targets": targets, **to_arrays(X)}

    @staticmethod
    def read(answers: dict[int, dict[str, Any]]) -> list[RowBlock]:
        """Return the fetched rows from the answers, in the order of the ids."""
        return [RowBlock(i, to_matrix(answers[i]), answers[i]["targets"]) for i in sorted(answers)]


@dataclass(frozen=True)
class Identify(Job):
    """A job that returns a hash of each row; identical rows have the same hash."""

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            discrete = np.zeros(block.X.shape[1], bool)
            with block_engine(block.X, block.targets, discrete, Resources(n_jobs)) as engine:
                yield block.number, {"identity": engine.identities(), "targets": block.targets}


@dataclass(frozen=True)
class ReadRoles(Job):
    """A job that returns the targets of all rows, and the columns of groups, strata and weights."""

    features: Array

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X = block.X.toarray() if issparse(block.X) else block.X
            yield block.number, {"targets": block.targets, "roles": np.asarray(X, np.float64)}


def counted_rows(block: RowBlock, bits: Array) -> Array | None:
    """Return the part of a bit mask of all rows that belongs to a block, as booleans; None if the mask is empty."""
    if not len(bits):
        return None
    mask = np.unpackbits(bits[block.first // 8 : (block.first + len(block.targets)) // 8 + 1])
    return mask[block.first % 8 :][: len(block.targets)].astype(bool)


# --- 3. neighbours ---


@dataclass(frozen=True)
class FindNeighbours(Job):
    """A job that finds the nearest rows of every query, in slices of queries."""

    sample: Sample
    queries: Matrix
    difference: Difference
    search: Search
    width: int  # queries per slice
    counted: Array  # bit mask of the rows that may be found as neighbours; empty: all
    cells: Array  # the group of each row of the table in this search; empty: the targets are the groups
    partial: ClassVar = Neighbours

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        found = Neighbours.zero(len(self.sample.row), self.search.n_groups, self.search.size)
        queries = self.queries if issparse(self.queries) else ArraySource(self.queries)
        prepared: dict[int, tuple[Array, Array]] = {}  # prepared forms of the queries, shared by all blocks
        for block in blocks:
            counted, targets = counted_rows(block, self.counted), block.targets
            if len(self.cells):
                targets = self.cells[block.first : block.first + len(targets)].astype(np.int32)
            with block_engine(block.X, targets, self.difference.discrete, Resources(n_jobs), counted=counted) as engine:
                visit = Visit(queries, block.first, found, prepared)
                found = engine.nearest(self.sample, self.difference, self.search, visit)
        for a, b in spans(len(self.sample.row), self.width):
            yield a, {name: x[a:b] for name, x in flatten(found).items()}


# --- 4. and 5. sums over pairs, in blocks that have both rows of each pair ---


def with_dtype(pairs: Pairs, dtype: Any) -> Pairs:
    """Return pairs with integers of another type.

    Executors receive positions as int32, because positions in a block are small; kernels need int64.
    """
    integers: dict[str, Any] = {x: getattr(pairs, x).astype(dtype) for x in ("query", "neighbour", "kind")}
    return replace(pairs, **integers)


@dataclass(frozen=True)
class TallyPairs(Job):
    """A job that computes the sums over each batch of pairs, in slices of features.

    The number of slice i of batch t is t · (slices per batch) + i.
    """

    pairs: LocatedPairs
    difference: Difference
    rates: Collisions | None
    width: int  # features per slice
    partial: ClassVar = Tally

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        tallies: dict[int, Tally] = {}
        for block in blocks:
            with block_engine(block.X, block.targets, self.difference.discrete, Resources(n_jobs)) as engine:
                for t, pairs in self.pairs.get(block.number, ()):
                    (tally,) = engine.tally([with_dtype(pairs, np.int64)], self.difference, self.rates)
                    tallies[t] = tallies[t].merge(tally) if t in tallies else tally
        F = self.difference.n_features
        slices = spans(F, self.width)
        for t, tally in tallies.items():
            for i, (a, b) in enumerate(slices):
                yield t * len(slices) + i, flatten(select_features(tally, F, slice(a, b)))


@dataclass(frozen=True)
class _CompareFeatures(Job):
    """The base class of jobs that compare watched features with the features in `columns`, over pairs of rows.

    A watch is a set of pairs with a list of watched features. For each watch, the collision rates of each watched
    feature are multiplied by the rates of each feature in `columns`, and the products are added up over the pairs.
    """

    pairs: LocatedPairs
    watched: Sequence[Array]  # for each watch, positions in `features`
    columns: Array  # positions in `features`
    difference: Difference  # for these features alone
    rates: Collisions
    features: Array  # sorted

    @classmethod
    def of(
        cls, pairs: LocatedPairs, watched: Sequence[Array], columns: Array, difference: Difference, rates: Collisions
    ) -> Self:
        features = np.unique(np.concatenate([columns, *watched]))
        some = select_features(difference, difference.n_features, features)
        positions = [np.searchsorted(features, x) for x in watched]
        return cls(pairs, positions, np.searchsorted(features, columns), some, rates, features)

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        sums: dict[int, dict[str, Any]] = {}
        for block in blocks:
            with block_engine(block.X, block.targets, self.difference.discrete, Resources(n_jobs)) as engine:
                for t, pairs in self.pairs.get(block.number, ()):
                    found = self.compare(engine, (with_dtype(pairs, np.int64), self.watched[t]))
                    sums[t] = self.merge([sums[t], found]) if t in sums else found
        yield from sums.items()

    def compare(self, engine: BlockEngine, watch: Watch) -> dict[str, Any]:
        """Return the sums for the pairs of rows and the watched features of `watch`; all rows are in the block."""
        raise NotImplementedError


class JointSums(_CompareFeatures):
    """A job that computes the joint sums for each watch, a set of pairs with a list of watched features."""

    partial: ClassVar = Joint

    def compare(self, engine: BlockEngine, watch: Watch) -> dict[str, Any]:
        return flatten(engine.joint(self.difference, self.rates, [watch], self.columns)[0])


class JointFloors(_CompareFeatures):
    """A job that computes lower bounds of the joint sums.

    The bounds of several blocks add up to a lower bound of the total.
    """

    def compare(self, engine: BlockEngine, watch: Watch) -> dict[str, Any]:
        return {"floor": engine.joint_floor(self.difference, self.rates, [watch], self.columns)[0]}

    @classmethod
    def merge(cls, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"floor": sum(x["floor"] for x in answers)}


# --- running jobs and merging answers ---


def run_job(job: Job, blocks: Iterable[RowBlock], n_jobs: int) -> Iterator[tuple[int, bytearray]]:
    """Run a job over the blocks of a task.

    Yield each answer as (slice number, bytes). The last answer has the slice number SEEN, and lists the numbers of the
    blocks, from which the driver sees whether all blocks were read.
    """
    seen: list[int] = []

    def note_seen() -> Iterator[RowBlock]:
        for block in blocks:
            seen.append(block.number)
            yield block if job.features is None else replace(block, X=take_features(block.X, job.features))

    for where, arrays in job.run(note_seen(), n_jobs):
        yield where, pack(arrays)
    yield SEEN, pack({"seen": np.array(seen, np.int64)})


def merge_answers(job: Job, answers: Iterable[tuple[int, int, Any]], n_blocks: int) -> Answers:
    """Merge the answers of all tasks, given as (task, slice number, bytes); return one answer for each slice."""
    by_slice: dict[int, list[Any]] = defaultdict(list)
    for _, where, data in sorted(answers, key=lambda x: x[:2]):
        by_slice[where].append(data)
    merged = {where: merge_slice(job.merge, where, parts) for where, parts in by_slice.items()}
    check_seen(merged.pop(SEEN, None), n_blocks)
    return merged


def merge_slice(merge: Merge, where: int, parts: Sequence[Any]) -> dict[str, Any]:
    """Merge the answers of all tasks for one slice, in task order."""
    answers = [unpack(data) for data in parts]
    if where == SEEN:
        return {"seen": np.concatenate([x["seen"] for x in answers])}
    return merge(answers)


def check_seen(answer: dict[str, Any] | None, n_blocks: int) -> None:
    """Raise a ValueError if a job missed a block, or ran over a block twice."""
    seen = np.zeros(0) if answer is None else answer["seen"]
    different = len(np.unique(seen))
    if len(seen) != n_blocks or different != n_blocks:
        raise ValueError(
            f"The job read only {different} of {n_blocks} different blocks, because Spark computed the DataFrame again"
            " and got other rows. Stage to a folder (staging='/path'), or write the DataFrame to storage first."
        )


# --- the interface of a cluster: executors.py implements it for Spark, tests/pool_cluster.py for a process pool ---


class Blocks(Protocol):
    """The interface of blocks of rows that a cluster holds."""

    @property
    def tasks(self) -> int:
        """The number of tasks of a job."""

    def run(self, job: Job, size: int, what: str) -> Answers:
        """Run a job over all blocks. Return its answers, which are merged in the order of the tasks.

        Parameters
        ----------
        size : approximate number of bytes that each task returns
        what : description of the job for progress reports
        """

    def release(self) -> None:
        """Free the memory or disk that the blocks use."""


class StagedBlocks(Blocks, Protocol):
    """The interface of the blocks that hold the whole table."""

    portion_bytes: int  # the largest block that may be gathered

    def fetch(self, ids: Array, features: Array | None = None) -> Sequence[RowBlock]:
        """Return the rows with these sorted ids, in one or more pieces.

        `features` are the features to return, in ascending order; None means all.
        """

    def gather(self, portions: Sequence[Array]) -> Blocks:
        """Return new blocks; block i has the rows with the sorted ids portions[i]."""


class Cluster(Protocol):
    """The interface of executors that read the table and store it as blocks."""

    def stage(self) -> Sequence[BlockInfo]:
        """Divide the table into blocks, store them on the cluster, and return a description of each."""

    def open(self, layout: Layout) -> StagedBlocks:
        """Return the staged blocks. The layout contains the position of every row."""

    def cancel(self) -> None:
        """Stop the tasks that still run after an error."""

    def release(self) -> None:
        """Free the memory or disk that staging used."""
