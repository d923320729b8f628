"""What executors do with the blocks of a task: a fold over them with the kernels, and sums or locators as the answer.

Every job is a small dataclass whose `run` takes blocks and yields `(slice, arrays)`. What answers the same slice is
merged by the job's `merge`, in the order of the tasks, so that no number depends on who was ready first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse, vstack

from belief.data.source import ArraySource, BlockSource
from belief.engines.base import Search, Visit, spans
from belief.engines.local import LocalEngine
from belief.engines.spark.blocks import Block, Rows, flat
from belief.engines.sparse import NonZeros, SparseEngine, as_rows
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.redundancy import Watch
from belief.method.sampling import Sample
from belief.method.summary import Levels, Summary

Answer = tuple[int, dict[str, Any]]


class Job(Protocol):
    """One pass over the blocks."""

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        """The answers of one task."""

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        """The answers of several tasks for the same slice, as one."""


def engine_of(X: Rows | Sequence[Rows], labels: Array, n_classes: int, discrete: Array, n_jobs: int) -> Any:
    """The engine of one machine over rows, or over rows that lie in several places."""
    parts: list[Rows] = X if isinstance(X, list) else [X]
    if issparse(parts[0]):
        return SparseEngine(parts, labels, n_classes, discrete, n_jobs=n_jobs)
    sources = [ArraySource(part) for part in parts]
    return LocalEngine(
        sources[0] if len(sources) == 1 else BlockSource(sources), labels, n_classes, discrete, n_jobs=n_jobs
    )


# --- 1. the summary ---


@dataclass(frozen=True)
class Describe:
    """Moments and levels, by slices of features; the classes are known already."""

    n_features: int
    discrete: Array
    width: int  # of a slice

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        dense, nonzeros = Summary.zero(1, self.n_features), NonZeros(self.n_features)
        for block in blocks:
            if issparse(block.X):
                nonzeros.add(as_rows(block.X), block.first)
                continue
            with engine_of(block.X, np.zeros(len(block.X), np.int32), 1, self.discrete, n_jobs) as engine:
                dense = dense.merge(engine.describe())
        found = nonzeros.summary(np.array([nonzeros.m])) if nonzeros.m else dense
        for i, (a, b) in enumerate(spans(self.n_features, self.width)):
            yield i, flat(_part(found, a, b))

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return flat(reduce(Summary.merge, map(summary_of, answers)))


def _part(summary: Summary, a: int, b: int) -> Summary:
    """The features a to b."""
    mine = (summary.levels.feature >= a) & (summary.levels.feature < b)
    levels = Levels(*(x[mine] for x in vars(summary.levels).values()))
    cut = {name: x[a:b] for name, x in vars(summary).items() if name not in ("class_counts", "levels")}
    return Summary(class_counts=summary.class_counts, levels=levels, **cut)


def summary_of(arrays: dict[str, Array]) -> Summary:
    """The inverse of `flat`."""
    levels = {name[7:]: x for name, x in arrays.items() if name.startswith("levels_")}
    rest = {name: x for name, x in arrays.items() if not name.startswith("levels_")}
    return Summary(**rest, levels=Levels(**levels))


# --- 2. the sample ---


@dataclass(frozen=True)
class Choose:
    """The rows with the smallest keys of each class."""

    quota: Array
    seed: int

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        sample = Sample.zero()
        for block in blocks:
            ids = block.first + np.arange(len(block.labels))
            sample = sample.merge(Sample.of(ids, block.labels, self.quota, self.seed), self.quota)
        yield 0, vars(sample) | {"quota": self.quota}

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        quota = answers[0]["quota"]
        parts = [Sample(x["key"], x["row"], x["label"]) for x in answers]
        return vars(reduce(lambda a, b: a.merge(b, quota), parts)) | {"quota": quota}


def picked(block: Block, ids: Array) -> tuple[Rows, Array]:
    """The rows of a block that are among some ids (sorted), and which of the ids they are."""
    if block.ids is None:
        a, b = np.searchsorted(ids, (block.first, block.first + block.X.shape[0]))
        return block.X[ids[a:b] - block.first], np.arange(a, b)
    at = np.flatnonzero(np.isin(ids, block.ids))
    return block.X[np.searchsorted(block.ids, ids[at])], at


@dataclass(frozen=True)
class Fetch:
    """Some rows themselves: the queries, which go to every executor."""

    ids: Array  # sorted

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X, at = picked(block, self.ids)
            if len(at):
                labels = block.labels[self.ids[at] - block.first]
                rows = {"indptr": X.indptr, "indices": X.indices, "data": X.data} if issparse(X) else {"X": X}
                yield int(at[0]), {"at": at, "label": labels, **rows}

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return answers[0]  # every slice is one block's


# --- 3. neighbours ---


@dataclass(frozen=True)
class Nearest:
    """The nearest rows of every query, by spans of queries."""

    sample: Sample
    queries: Rows
    difference: Difference
    search: Search
    n_classes: int
    span: int

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        groups = self.n_classes if self.search.per_class else 1
        found = Neighbours.zero(len(self.sample.row), groups, self.search.size)
        queries = self.queries if issparse(self.queries) else ArraySource(self.queries)
        ready: dict[int, tuple[Array, Array]] = {}
        for block in blocks:
            with engine_of(block.X, block.labels, self.n_classes, self.difference.discrete, n_jobs) as engine:
                visit = Visit(queries, block.first, found, ready)
                found = engine.nearest(self.sample, self.difference, self.search, visit)
        for a, b in spans(len(self.sample.row), self.span):
            yield a, {name: x[a:b] for name, x in vars(found).items()}

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return vars(reduce(Neighbours.merge, (Neighbours(**x) for x in answers)))


# --- 4. and 5. the tally ---


@dataclass(frozen=True)
class Here:
    """Pairs of queries, which are everywhere, with neighbours, which are in one block each."""

    rows: Array  # the ids of the queries, sorted
    queries: Rows  # in that order
    difference: Difference
    kappa: float
    n_classes: int

    def engines(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[tuple[Any, Block]]:
        """An engine over the queries and a block; its rows are numbered from the queries on."""
        for block in blocks:
            X, X_q = block.X, self.queries
            if not issparse(X):
                X_q = X_q.astype(X.dtype, copy=False)
            labels = np.zeros(len(self.rows) + X.shape[0], np.int32)
            with engine_of([X_q, X], labels, self.n_classes, self.difference.discrete, n_jobs) as engine:
                yield engine, block

    def mine(self, pairs: Pairs, block: Block) -> Pairs:
        """The pairs whose neighbour is in the block, by where both are in the engine."""
        if block.ids is None:
            here = (pairs.neighbour >= block.first) & (pairs.neighbour < block.first + block.X.shape[0])
            at = pairs.neighbour[here] - block.first
        else:
            here = np.isin(pairs.neighbour, block.ids)
            at = np.searchsorted(block.ids, pairs.neighbour[here])
        query = np.searchsorted(self.rows, pairs.query[here])
        return Pairs(query, len(self.rows) + at, pairs.c[here], pairs.hit[here])


@dataclass(frozen=True)
class Weigh:
    """The tally of each batch, by slices of features."""

    here: Here
    batches: Sequence[Pairs]
    width: int  # of a slice

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        here, F = self.here, self.here.difference.n_features
        sums = [Tally.zero(here.n_classes, F) for _ in self.batches]
        for engine, block in here.engines(blocks, n_jobs):
            for t, batch in enumerate(self.batches):
                mine = here.mine(batch, block)
                if len(mine):
                    sums[t] = sums[t].merge(engine.tally(mine, here.difference, here.kappa))
        cut = spans(F, self.width)
        for t, tally in enumerate(sums):
            for i, (a, b) in enumerate(cut):
                yield t * len(cut) + i, vars(part_of(tally, a, b))

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return vars(reduce(Tally.merge, map(tally_of, answers)))


def part_of(tally: Tally, a: int, b: int) -> Tally:
    """The features a to b; counts that are the same for all features stay so."""
    wide = {name: x[..., a:b] if np.shape(x)[-1:] == (len(tally.marginal),) else x for name, x in vars(tally).items()}
    return replace(tally, **wide)


def tally_of(arrays: dict[str, Array]) -> Tally:
    """A tally that has travelled."""
    values: dict[str, Any] = {**arrays, "n_pairs": int(arrays["n_pairs"])}
    return Tally(**values)


@dataclass(frozen=True)
class Collide:
    """The joint collisions of each watch, or numbers not above them."""

    here: Here
    watches: Sequence[Watch]
    columns: Array
    floor: bool

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        here, columns = self.here, self.columns
        joints = [Joint.zero(len(watched), len(columns)) for _, watched in self.watches]
        for engine, block in here.engines(blocks, n_jobs):
            for t, (batch, watched) in enumerate(self.watches):
                mine = here.mine(batch, block)
                if len(mine):
                    joints[t] = joints[t].merge(self._ask(engine, mine, watched))
        for t, joint in enumerate(joints):
            yield t, vars(joint)

    def _ask(self, engine: Any, mine: Pairs, watched: Array) -> Joint:
        asked = (self.here.difference, self.here.kappa, [(mine, watched)], self.columns)
        if not self.floor:
            return engine.collide(*asked)[0]
        return Joint(engine.collide_floor(*asked)[0], np.zeros((1, 1)))

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return vars(reduce(Joint.merge, (Joint(**x) for x in answers)))


def stacked(parts: Sequence[Rows]) -> Rows:
    """Rows from several places, one after the other."""
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)
