"""The engine for small tables, which uses plain numpy in the calling thread and needs no compilation."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any, Self

import numpy as np

from belief.data.source import SMALL_CELLS, ArraySource, Source, as_slice
from belief.engines.block.dense import DenseEngine
from belief.engines.block.threads import spans
from belief.engines.resources import Resources
from belief.kernels import plain
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit
from belief.method.sampling import TIES, Sample, row_keys

MAX_DIFFERENCES = 2**24  # differences between the values of all pairs of rows
DISTANCES_AT_ONCE = 2**20
KEPT_BYTES = 6 * 2**20  # freed memory that glibc keeps


def is_small(source: Source, resources: Resources) -> bool:
    """Return True if a table is so small that numpy is faster than loading the compiled kernels."""
    m, n = source.n_rows, source.n_features
    few = m <= resources.small_rows and m * n <= SMALL_CELLS and m * m * n <= MAX_DIFFERENCES
    return few and not resources.always_compile


@cache
def keep_freed_memory() -> None:
    """Make the C library glibc keep some freed memory for the next arrays. Other allocators are not affected.

    glibc keeps up to twice the size of the largest block freed so far, and returns the rest to the system. The system
    must clear memory before it hands it out again, which takes up to a quarter of the time of a small fit.
    """
    np.empty(KEPT_BYTES // 2, np.uint8)  # never written to, so it takes no memory itself


class SmallEngine(DenseEngine):
    """The engine over few dense rows, which may be a block or a whole table."""

    n_jobs = 1

    def __init__(self, source: Source, *about: Any) -> None:
        # all rows as float64, because the kernels would convert them again for each pair
        X, rows, a = source.rows(np.arange(source.n_rows), 0, source.n_features)
        rows64 = np.ascontiguousarray(X[as_slice(rows), a : a + source.n_features], np.float64)
        super().__init__(ArraySource(rows64), *about)

    def __enter__(self) -> Self:
        keep_freed_memory()
        return super().__enter__()

    @property
    def kernels(self) -> ModuleType:
        return plain

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        queries, place, first = self.source, sample.row, 0
        if visit is not None:
            queries, place, first = visit.queries, np.arange(len(sample.row)), visit.first
        rows = np.arange(self.m) if self.counted is None else np.flatnonzero(self.counted)
        keys = row_keys(search.seed, TIES, rows + first)
        order = np.argsort(keys)  # ties go to the smaller key
        rows, keys, target = rows[order], keys[order], self.targets[rows[order]]
        Q, R = _read_rows(queries, place), _read_rows(self.source, rows)
        shape = len(Q), search.n_groups, search.size
        d2, line = np.empty(shape), np.empty(shape, np.int64)  # -1: no row
        for a, b in spans(len(Q), max(1, DISTANCES_AT_ONCE // max(1, len(R)))):
            for g in range(search.n_groups):
                mine = np.flatnonzero(target == g) if search.n_groups > 1 else np.arange(len(rows))
                at = sample.row[a:b] - first
                is_row, position = (at >= 0) & (at < self.m), np.full(self.m, -1)
                position[rows[mine]] = np.arange(len(mine))
                own = np.where(is_row, position[np.where(is_row, at, 0)], -1)  # the query itself among the rows
                column, d2[a:b, g] = plain.nearest(Q[a:b], R[mine], own, search.size, difference)
                line[a:b, g] = np.append(mine, -1)[column]
            self.report(self.m * b // len(Q), self.m)
        no_row = np.iinfo(np.uint64).max, -1, self.targets.dtype.type(-1)
        key, row, target = (np.append(x, no)[line] for x, no in zip((keys, rows + first, target), no_row, strict=True))
        found = Neighbours(d2, key, row, target)
        return found if visit is None else visit.found.merge(found)


def _read_rows(source: Source, ids: Array) -> Array:
    X, rows, a = source.rows(ids, 0, source.n_features)
    return np.take(X[:, a : a + source.n_features], rows, axis=0).astype(np.float64, copy=False)
