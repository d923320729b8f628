"""What workers do with the blocks of a task: a fold over them with the kernels, and sums or locators as the answer.

Every job is a small dataclass whose `run` takes blocks and yields `(slice, arrays)`. What answers the same slice is
merged by the job's `merge`, in the order of the tasks, so that no number depends on who was ready first. The jobs about
pairs of rows are in sums.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.sparse import issparse

from belief.data.source import ArraySource
from belief.engines.block import block_engine
from belief.engines.block.describing import Describer
from belief.engines.block.threads import spans
from belief.engines.distributed.blocks import Matrix, RowBlock, arrays_of, matrix_of, picked
from belief.engines.distributed.records import flat, of_features, restored
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit
from belief.method.sampling import Sample
from belief.method.summary import Summary

Answer = tuple[int, dict[str, Any]]


class Job(Protocol):
    """One pass over the blocks."""

    @property
    def features(self) -> Array | None:
        """The features it looks at, None for all: arrays may come to it without the others."""

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        """The answers of one task, which may use so many threads."""

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The answers of several tasks for the same slice, as one."""


# --- 1. the summary ---


@dataclass(frozen=True)
class Describe:
    """Moments and levels, by slices of features."""

    discrete: Array
    width: int  # of a slice
    features: ClassVar[None] = None

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        found, any_rows, F = Describer(Resources(n_jobs)), False, len(self.discrete)
        for block in blocks:
            found.add(block.X, self.discrete, block.first, block.targets if block.targets.dtype.kind == "i" else None)
            any_rows = True
        summary = found.summary() if any_rows else Summary.zero(F)
        for i, (a, b) in enumerate(spans(F, self.width)):
            yield i, flat(of_features(summary, F, slice(a, b)))

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return flat(reduce(Summary.merge, (restored(Summary, x) for x in answers)))


# --- 2. the sample ---


@dataclass(frozen=True)
class Choose:
    """The rows with the smallest keys of each class."""

    quota: Array
    seed: int
    counted: Array  # bits of the rows that count; empty: all
    features: ClassVar[Array] = np.zeros(0, np.int64)  # labels will do

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        sample = Sample.zero()
        for block in blocks:
            mine = counted_in(block, self.counted)
            at = np.arange(len(block.targets)) if mine is None else np.flatnonzero(mine)
            more = Sample.draw(block.first + at, block.targets[at], self.quota, self.seed)
            sample = sample.merge(more, self.quota)
        yield 0, flat(sample) | {"quota": self.quota}

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        quota = answers[0]["quota"]
        parts = [restored(Sample, x) for x in answers]
        return flat(reduce(lambda a, b: a.merge(b, quota), parts)) | {"quota": quota}


@dataclass(frozen=True)
class Fetch:
    """Some rows themselves: the queries, which go to every worker."""

    ids: Array  # sorted
    features: ClassVar[None] = None

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X, targets, at = picked(block, self.ids)
            if len(at):
                yield int(at[0]), {"targets": targets, **arrays_of(X)}

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return answers[0]  # every slice is one block's

    @staticmethod
    def pieces(answers: dict[int, dict[str, Any]]) -> list[RowBlock]:
        """The answers to it, in the order of the ids."""
        return [RowBlock(i, matrix_of(answers[i]), answers[i]["targets"]) for i in sorted(answers)]


@dataclass(frozen=True)
class Values:
    """Some features of some rows."""

    ids: Array  # sorted
    columns: Array
    features: ClassVar[None] = None

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X, _, at = picked(block, self.ids)
            if len(at):
                X = X[:, self.columns]
                yield int(at[0]), {"values": (X.toarray() if issparse(X) else X).astype(np.float64)}

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return answers[0]  # every slice is one block's


@dataclass(frozen=True)
class Identify:
    """A number for each row, the same for identical rows, and its target."""

    features: ClassVar[None] = None

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            none = np.zeros(block.X.shape[1], bool)
            with block_engine(block.X, block.targets, none, Resources(n_jobs)) as engine:
                yield block.number, {"identity": engine.identities(), "targets": block.targets}

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return answers[0]  # every slice is one block's


def counted_in(block: RowBlock, bits: Array) -> Array | None:
    """Which rows of a block count, from bits for all rows; None: all of them."""
    if not len(bits):
        return None
    whole = np.unpackbits(bits[block.first // 8 : (block.first + len(block.targets)) // 8 + 1])
    return whole[block.first % 8 :][: len(block.targets)].astype(bool)


# --- 3. neighbours ---


@dataclass(frozen=True)
class FindNeighbours:
    """The nearest rows of every query, by spans of queries."""

    sample: Sample
    queries: Matrix
    difference: Difference
    search: Search
    span: int
    counted: Array  # bits of the rows that count; empty: all
    features: ClassVar[None] = None

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        found = Neighbours.zero(len(self.sample.row), self.search.n_groups, self.search.size)
        queries = self.queries if issparse(self.queries) else ArraySource(self.queries)
        ready: dict[int, tuple[Array, Array]] = {}
        for block in blocks:
            about = (block.X, block.targets, self.difference.discrete, Resources(n_jobs))
            with block_engine(*about, counted=counted_in(block, self.counted)) as engine:
                visit = Visit(queries, block.first, found, ready)
                found = engine.nearest(self.sample, self.difference, self.search, visit)
        for a, b in spans(len(self.sample.row), self.span):
            yield a, {name: x[a:b] for name, x in flat(found).items()}

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return flat(reduce(Neighbours.merge, (restored(Neighbours, x) for x in answers)))
