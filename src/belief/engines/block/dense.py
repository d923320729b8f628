"""The engine for dense rows on one machine. It runs the kernels on slices of the data, in threads.

Each pass cuts the data into slices, distributes them to the threads, and merges the results in the order of the
slices, so that no number depends on the number of threads. The neighbour search, which takes longest, is in search.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from belief._utils.lazy import importing
from belief.data.source import ArraySource, Located, Source
from belief.engines.block.rows import RowEngine
from belief.engines.block.threads import TILE, T, spans
from belief.engines.records import select_features
from belief.engines.suspicious import spread_rows
from belief.kernels.shapes import UNIT_ROUNDOFF, Reach, Sums, cut_between_queries, reaches
from belief.method.arrays import Array, is_first_of_run
from belief.method.copies import column_keys
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.protocols import Search, Visit
from belief.method.redundancy.collisions import Collisions, Watch, joint_floor
from belief.method.relevance import scale_spread
from belief.method.sampling import Sample
from belief.method.summary import MAX_GROUPS, Levels, Summary

CHUNK = 128  # features that a kernel processes at a time in a pass over many rows
MAX_WHOLE_ROW = 1024  # rows with at most this many features are processed whole, which takes half the time
# Features that the tally processes at a time. It jumps from row to row, which only pays off for many features.
TALLY_CHUNK, MAX_TALLY_CHUNK = 256, 1024
FLOOR_PAIRS = 2048  # pairs whose products are summed in float32 at a time
MAX_SERIAL = 10**8  # tables whose search has at most this many multiplications use one thread
COPIED_SHARE = 0.5  # if a search uses at most this share of the columns, they are copied
ROWS_PER_GROUP = 64  # sums by group are merged after this many rows for each group, because merging is expensive
MAX_COUNTED_LEVELS = 64  # levels of a feature that are counted in a small table; beyond that, the values are sorted


class _GroupSums:
    """Running sums for n groups of rows, such as classes. With n = 0, there are no groups."""

    def __init__(self, n: int, n_features: int) -> None:
        self.n = n
        self.count, self.total = np.zeros((2, max(n, 1), n_features))  # present values, and Σ(x - origin)
        self.origin = np.full(n_features, np.nan)  # the first value of each feature


class DenseEngine(RowEngine):
    """The engine over a source of dense rows, which may be a block or a whole table."""

    source: Source
    _copy: tuple[Array, Source] | None = None  # the columns that the last search used, and a copy of them

    @cached_property
    def n_jobs(self) -> int:
        """The number of threads. A small table uses one, because starting more takes longer."""
        return super().n_jobs if self.m**2 * self.n_features > MAX_SERIAL else 1

    def map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        return super().map(task, arguments) if self.n_jobs > 1 else map(task, arguments)

    @cached_property
    def kernels(self) -> ModuleType:
        """The compiled kernels for dense rows. They are imported when first used, because that takes half a second."""
        with importing():
            from belief.kernels import dense
        return dense

    def _read_columns(self, ids: Array, columns: Array) -> Located:
        return self.source.columns(ids, columns)

    # --- 1. the summary ---

    def describe(self) -> Summary:
        height = max(TILE, TILE * CHUNK // self.n_features)
        n = self._count_groups()
        slices, per_task = spans(self.m, height), max(1, -(-n * ROWS_PER_GROUP // height))
        tasks = [slices[a:b] for a, b in spans(len(slices), per_task)]
        total = Summary.zero(self.n_features)

        def summarise(task: Sequence[tuple[int, int]]) -> list[Summary]:
            """Return the summary of each slice; the last one has the levels and the sums by group of all slices."""
            sums, levels = _GroupSums(n, self.n_features), [Levels.zero()]
            found = [self._moments(np.arange(a, b), sums, levels) for a, b in task]
            count, total = sums.count[:n], sums.total[:n]
            return [*found[:-1], replace(found[-1], levels=Levels.merged(levels), group_count=count, group_sum=total)]

        for task, parts in zip(tasks, self.map(summarise, tasks), strict=True):
            total = reduce(Summary.merge, parts, total)
            self.report(task[-1][1], self.m)
        return total

    def _moments(self, ids: Array, sums: _GroupSums, levels: list[Levels]) -> Summary:
        """Return the moments of some rows; add their sums by group to `sums`, and append their levels to `levels`."""
        group = self.targets[ids].astype(np.int32) if sums.n else np.zeros(len(ids), np.int32)
        out, in_group = np.empty((7, self.n_features)), np.bincount(group, minlength=len(sums.count))[:, None]
        for a, b in spans(self.n_features, MAX_WHOLE_ROW if self.n_features <= MAX_WHOLE_ROW else CHUNK):
            X, rows, at = self.source.rows(ids, a, b)
            lo, hi = int(rows[0]), int(rows[-1]) + 1
            part, total, absent = np.empty((7, b - a)), *np.zeros((2, len(sums.count), b - a))
            self.kernels.moments(X, lo, hi, at, at + b - a, sums.origin[a:b], part, group, total, absent)
            out[:, a:b] = part
            sums.count[:, a:b] += in_group - absent
            sums.total[:, a:b] += total
            columns = np.flatnonzero(self.discrete[a:b])
            if len(columns):
                levels.append(self._levels(X[lo:hi], columns + at, columns + a, group, sums.n))
        count, shift, m2, minimum, maximum, nonzero, between = out
        return replace(
            Summary.zero(self.n_features), m=len(ids), count=count, shift=shift, m2=m2, minimum=minimum,
            maximum=maximum, nonzero=nonzero, between=between > 0, origin=sums.origin.copy(),
        )  # fmt: skip

    def _levels(self, X: Array, at: Array, features: Array, group: Array, n_groups: int) -> Levels:
        """Return the levels of some features, and their counts by group. The features are the columns `at` of X."""
        n = n_groups if n_groups <= MAX_GROUPS else 0
        group = group if n else np.zeros_like(group)
        shape = len(at), MAX_COUNTED_LEVELS
        value, count = np.empty(shape), np.empty((*shape, max(n, 1)), np.int64)
        found = np.full(len(at), -1)  # the number of levels; -1 if there are too many to count
        if len(X) > self.resources.small_rows:
            self.kernels.levels(X, at, group, value, count, found)
        used = np.arange(MAX_COUNTED_LEVELS) < found[:, None]
        parts = [_make_levels(np.broadcast_to(features[:, None], used.shape)[used], value[used], count[used], n)]
        many = found < 0
        return Levels.concat([*parts, _sort_levels(X[:, at[many]], features[many], group, n)])

    def _all_values(self) -> Iterator[Array]:
        for a, b in spans(self.m, TILE):
            X, rows, at = self.source.rows(np.arange(a, b), 0, self.n_features)
            yield X[rows, at : at + self.n_features]

    def identities(self) -> Array:
        out = np.zeros(self.m, np.uint64)

        def task(span: tuple[int, int]) -> None:
            for a, b in spans(self.n_features, CHUNK):
                X, rows, first = self.source.rows(np.arange(*span), a, b)
                self.kernels.add_identities(X, rows, first, column_keys(np.arange(a, b)), out[slice(*span)])

        deque(self.map(task, spans(self.m, TILE)), maxlen=0)
        return out

    def rows(self, ids: Array, columns: Array) -> Array:
        X, at, first = self.source.columns(ids, columns)
        return X[at, first : first + len(columns)].astype(np.float64)

    def peek(self) -> tuple[Array, Array]:
        ids = spread_rows(self.m, self.n_features)
        return self.rows(ids, np.arange(self.n_features)), self.targets[ids]

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        with importing():
            from belief.engines.block.search import NeighbourSearch

        columns = np.flatnonzero(~difference.constant)
        fits = 8 * self.m * len(columns) <= self.working_memory // 4
        if visit is not None or not fits or not 0 < len(columns) <= COPIED_SHARE * self.n_features:
            return NeighbourSearch(self, sample, difference, search, visit).run()
        if self._copy is None or not np.array_equal(self._copy[0], columns):
            self._copy = None  # frees its memory

            def read(span: tuple[int, int]) -> Array:
                X, rows, first = self.source.columns(np.arange(*span), columns)
                return X[rows, first : first + len(columns)]

            self._copy = columns, ArraySource(np.concatenate(list(self.map(read, spans(self.m, TILE)))))
        discrete, difference = self.discrete[columns], select_features(difference, self.n_features, columns)
        part = DenseEngine(self._copy[1], self.targets, discrete, self.resources, self.pool, self.counted)
        return NeighbourSearch(part, sample, difference, search, None).run()

    # --- 4. and 5. the tally ---

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        return (self._tally(pairs, difference, rates) for pairs in batches)

    def _tally(self, pairs: Pairs, difference: Difference, rates: Collisions | None) -> Tally:
        kinds, missing = pairs.n_kinds, difference.missing
        lines, query_lines, n_groups = pairs.spread_shape
        reach = reaches(difference, rates.kappa if rates else 1.0, slice(None))
        weight = np.zeros(0) if pairs.weight is None else pairs.weight

        def task(span: tuple[int, int]) -> Sums:
            n = span[1] - span[0]
            mine = Reach(*(x[slice(*span)] for x in reach))
            sums = Sums(
                np.zeros((kinds, n)), np.zeros((kinds if missing else 0, n)), np.zeros(n if rates else 0),
                np.zeros((lines, n_groups, n)), np.zeros((query_lines if missing else 0, n_groups, n)),
            )  # fmt: skip
            for part, queries, at in parts_of_pairs:
                X, rows, a = self.source.rows(queries, *span)
                neighbours = self.source.rows(pairs.neighbour[part], *span)
                self.kernels.tally(X, rows[at], a, *neighbours, pairs.kind[part], weight[part], mine, sums)
            return sums

        # large chunks of features need few jumps between rows, but each thread needs several chunks
        chunk = min(max(self.n_features // (4 * self.n_jobs), TALLY_CHUNK), MAX_TALLY_CHUNK)
        pair_bytes = 2 * 3 * 8 * chunk * 2 * self.n_jobs
        parts_of_pairs = []  # slice of the pairs, their queries without repeats, the position of each pair's query
        for part in cut_between_queries(pairs, max(1024, self.working_memory // pair_bytes)):
            is_new = is_first_of_run(pairs.query[part])
            parts_of_pairs.append((part, pairs.query[part][is_new], np.cumsum(is_new) - 1))
        parts = self.map(task, spans(self.n_features, chunk))
        total, absent, rate, spread, queries = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
        per_unit = difference.per_unit
        total *= per_unit
        scale_spread(spread, pairs, per_unit)
        return Tally.from_sums(pairs, total, rate, spread, absent if missing else None, queries)

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        return [self._floor(pairs, difference, rates, watched, columns) for pairs, watched in self._reported(watches)]

    def _floor(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Array:
        total, gap = np.zeros((len(watched), len(columns))), np.zeros(len(columns))
        lines, line_gap = np.empty((len(pairs), len(watched)), np.float32), np.zeros(len(watched))
        every = slice(0, len(pairs))
        self._half_hits(pairs, every, watched, reaches(difference, rates.kappa, watched), lines, line_gap)
        reach = reaches(difference, rates.kappa, slice(None))
        starts = np.searchsorted(columns, np.arange(0, self.n_features + CHUNK, CHUNK))

        def task(cut: tuple[int, int]) -> None:
            mine = columns[slice(*cut)]
            # adjacent features are read so fast that reading some unneeded ones does not matter
            run = np.arange(mine[0], mine[-1] + 1)
            mine_reach = Reach(*(x[run[0] : run[-1] + 1] for x in reach))
            H, run_gap = np.empty((FLOOR_PAIRS, len(run)), np.float32), np.zeros(len(run))
            for a, b in spans(len(pairs), FLOOR_PAIRS):
                self._half_hits(pairs, slice(a, b), run, mine_reach, H, run_gap)
                total[:, slice(*cut)] += (lines[a:b].T @ H[: b - a])[:, mine - mine[0]]
            gap[slice(*cut)] = run_gap[mine - mine[0]]

        if len(watched):
            deque(self.map(task, [(a, b) for a, b in pairwise(starts) if a < b]), maxlen=0)
        return joint_floor(total * (1 - 2 * FLOOR_PAIRS * UNIT_ROUNDOFF), line_gap, gap)

    def _half_hits(self, pairs: Pairs, part: slice, columns: Array, reach: Reach, H: Array, gap: Array) -> None:
        Q, N = self.source.columns(pairs.query[part], columns), self.source.columns(pairs.neighbour[part], columns)
        self.kernels.half_hits(*Q, *N, reach, H, gap)


def _sort_levels(X: Array, features: Array, group: Array, n: int) -> Levels:
    """Find the levels of the columns of X by sorting; return them with their counts by group."""
    order, lines = np.argsort(X.T, axis=1), max(n, 1)
    values = np.take_along_axis(X.T, order, axis=1)
    present = ~np.isnan(values)  # missing values are sorted to the end
    new = present.copy()
    new[:, 1:] &= values[:, 1:] != values[:, :-1]
    level = (np.cumsum(new) - 1).reshape(new.shape)[present]
    count = np.bincount(level * lines + group[order[present]], minlength=int(new.sum()) * lines).reshape(-1, lines)
    return _make_levels(np.repeat(features, new.sum(axis=1)), values[new].astype(float), count, n)


def _make_levels(feature: Array, value: Array, count: Array, n: int) -> Levels:
    return Levels(feature, value, count.sum(axis=1), count[:, :n])
