"""The engine for small tables: plain numpy in the calling thread, without compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Self, TypeVar

import numpy as np

from belief.data.source import SMALL_CELLS, Source
from belief.engines.block.dense import DenseEngine
from belief.engines.block.threads import spans
from belief.engines.resources import Resources
from belief.kernels import plain
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit
from belief.method.sampling import TIES, Sample, row_keys

T = TypeVar("T")
MAX_DIFFERENCES = 2**24  # differences between the values of all pairs of rows
DISTANCES_AT_ONCE = 2**20
KEPT_BYTES = 6 * 2**20


def is_small(source: Source, resources: Resources) -> bool:
    """Return True if a table is so small that numpy is faster than loading the compiled kernels."""
    m, n = source.n_rows, source.n_features
    few = m <= resources.small_rows and m * n <= SMALL_CELLS and m * m * n <= MAX_DIFFERENCES
    return few and not resources.always_compile


@cache
def keep_freed_memory() -> None:
    """Make the C library glibc keep some freed memory for the next arrays; other allocators ignore it.

    glibc keeps twice the size of the largest block freed so far. It returns more to the system, which has to clear the
    pages of the next arrays; this takes up to a quarter of the time of a small fit.
    """
    np.empty(KEPT_BYTES // 2, np.uint8)  # never touched, so it takes no memory itself


class SmallEngine(DenseEngine):
    """The engine over few dense rows, which may be a block or a whole table."""

    n_jobs = 1

    def __enter__(self) -> Self:
        keep_freed_memory()
        return super().__enter__()

    @property
    def kernels(self) -> ModuleType:
        return plain

    def map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        return map(task, arguments)

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        queries, place, first = self.source, sample.row, 0
        if visit is not None:
            queries, place, first = visit.queries, np.arange(len(sample.row)), visit.first
        rows = np.arange(self.m) if self.counted is None else np.flatnonzero(self.counted)
        keys = row_keys(search.seed, TIES, rows + first)
        order = np.argsort(keys)  # ties go to the smaller key
        rows, keys, target = rows[order], keys[order], self.targets[rows[order]]
        Q, R = _read_rows(queries, place), _read_rows(self.source, rows)
        found = Neighbours.zero(len(Q), search.n_groups, search.size)
        found = Neighbours(found.d2, found.key, found.row, found.target.astype(self.targets.dtype))
        for a, b in spans(len(Q), max(1, DISTANCES_AT_ONCE // max(1, len(R)))):
            for g in range(search.n_groups):
                mine = np.flatnonzero(target == g) if search.n_groups > 1 else np.arange(len(rows))
                is_own = sample.row[a:b, None] == rows[mine] + first  # no row is its own neighbour
                query, rank, column, d = plain.nearest(Q[a:b], R[mine], is_own, search.size, difference)
                line, at = mine[column], (query + a, g, rank)
                found.d2[at], found.key[at] = d, keys[line]
                found.row[at], found.target[at] = rows[line] + first, target[line]
            self.report(self.m * b // len(Q), self.m)
        return found if visit is None else visit.found.merge(found)


def _read_rows(source: Source, ids: Array) -> Array:
    X, rows, a = source.rows(ids, 0, source.n_features)
    return X[rows, a : a + source.n_features].astype(np.float64)
