"""Dense rows in one place: the kernels on slices of the data, in threads.

Each pass cuts the data into pieces, gives them to the threads, and merges the answers in the order of the pieces, so
that no number depends on how many threads there are. The search, the one long pass, is in search.py.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from belief._utils.lazy import importing
from belief.data.source import Located, Source
from belief.engines.block import threads
from belief.engines.block.rates import Rates, parts_of
from belief.engines.block.threads import TILE, ThreadedEngine, Threads, spans
from belief.engines.resources import Resources
from belief.kernels.shapes import UNIT_ROUNDOFF, Reach, Sums, reaches
from belief.method.arrays import Array
from belief.method.copies import column_keys
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import Search, Visit
from belief.method.redundancy.collisions import CollisionRates, Collisions, Watch, joint_floor, joint_sums, sum_powers
from belief.method.relevance import scale_spread
from belief.method.sampling import Sample
from belief.method.summary import MOST_GROUPS, Levels, Summary

CHUNK = 128  # features a kernel works on at a time where it passes over many rows
WHOLE = 1024  # unless rows have no more than these: then they are read from end to end, in half the time
TALLIED = 256  # and where it goes from row to row: long enough that getting there costs little
FLOOR_PAIRS = 2048  # pairs whose float32 products are added up at a time
GROUP_ROWS = 64  # for each group: of so many rows the sums of groups are added up before they are merged, which costs
HELD = 8  # collision rates that may be asked for again take this part of the working memory at the most
FEW_LEVELS = 64  # levels counted in a small table; a feature with more is sorted


class _Groups:
    """What is added up of n groups of rows, piece after piece; one that nobody asks for, where there is none."""

    def __init__(self, n: int, n_features: int) -> None:
        self.n = n
        self.count, self.total = np.zeros((2, max(n, 1), n_features))  # present values, and Σ(x - origin)
        self.origin = np.full(n_features, np.nan)  # the first mean there is

    def add(self, columns: slice, moments: Array, total: Array, present: Array) -> None:
        """Add the present values of some features, and Σ(x - mean) by the mean of this piece."""
        there, mean, origin = moments[0] > 0, moments[1], self.origin[columns]
        origin[there & np.isnan(origin)] = mean[there & np.isnan(origin)]
        self.count[:, columns] += present
        with np.errstate(invalid="ignore", over="ignore"):  # infinities are refused when all is read, by name
            self.total[:, columns] += total + present * np.where(there, mean - origin, 0.0)


class DenseEngine(ThreadedEngine):
    """The BlockEngine protocol over a Source of dense rows; over all rows, the Engine protocol."""

    def __init__(
        self, source: Source, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(source.n_features, targets, discrete, resources, pool, counted)
        self.source = source
        self._held: list[Rates] = []  # of pairs that have been asked for

    @cached_property
    def kernels(self) -> ModuleType:
        """The kernels, of numba: imported when there is work for them, since that takes half a second."""
        with importing():
            from belief.kernels import dense
        return dense

    # --- 1. the summary ---

    def describe(self) -> Summary:
        height = max(TILE, TILE * CHUNK // self.n_features)
        n = self._groups_kept()
        pieces, together = spans(self.m, height), max(1, -(-n * GROUP_ROWS // height))
        runs = [pieces[a:b] for a, b in spans(len(pieces), together)]
        parts = (part for run in self.map(partial(self._describe, n), runs) for part in run)
        return reduce(Summary.merge, parts, Summary.zero(self.n_features))

    def _describe(self, n: int, pieces: Sequence[tuple[int, int]]) -> list[Summary]:
        """Summaries of some pieces, to be merged one by one; the levels and the n groups of all are in the last."""
        by, levels = _Groups(n, self.n_features), [Levels.zero()]
        found = [self._moments(np.arange(a, b), by, levels) for a, b in pieces]
        count, total = by.count[:n], by.total[:n]
        last = replace(found[-1], levels=Levels.merged(levels), group_count=count, group_sum=total, origin=by.origin)
        return [*found[:-1], last]

    def _moments(self, ids: Array, by: _Groups, levels: list[Levels]) -> Summary:
        """The moments of some rows; what is known of groups is added to `by`, and levels to the list."""
        group = self.targets[ids].astype(np.int32) if by.n else np.zeros(len(ids), np.int32)
        out, in_group = np.empty((7, self.n_features)), np.bincount(group, minlength=len(by.count))[:, None]
        for a, b in spans(self.n_features, WHOLE if self.n_features <= WHOLE else CHUNK):
            X, rows, at = self.source.rows(ids, a, b)
            lo, hi = int(rows[0]), int(rows[-1]) + 1
            part, total, absent = np.empty((7, b - a)), *np.zeros((2, len(by.count), b - a))
            self.kernels.moments(X, lo, hi, at, at + b - a, part, group, total, absent)
            out[:, a:b] = part
            by.add(slice(a, b), part, total, in_group - absent)
            columns = np.flatnonzero(self.discrete[a:b])
            if len(columns):
                levels.append(_levels(self.kernels, X[lo:hi], columns + at, columns + a, group, by.n))
        count, mean, m2, minimum, maximum, nonzero, between = out
        return replace(
            Summary.zero(self.n_features), m=len(ids), count=count, mean=mean, m2=m2, minimum=minimum, maximum=maximum,
            nonzero=nonzero, between=between > 0,
        )  # fmt: skip

    def _values(self) -> Iterator[Array]:
        for a, b in spans(self.m, TILE):
            X, rows, at = self.source.rows(np.arange(a, b), 0, self.n_features)
            yield X[rows, at : at + self.n_features]

    def identities(self) -> Array:
        out = np.zeros(self.m, np.uint64)

        def task(span: tuple[int, int]) -> None:
            for a, b in spans(self.n_features, CHUNK):
                X, rows, first = self.source.rows(np.arange(*span), a, b)
                self._add_identities(X, rows, first, column_keys(np.arange(a, b)), out[slice(*span)])

        deque(self.map(task, spans(self.m, TILE)), maxlen=0)
        return out

    def _add_identities(self, *what: Any) -> None:
        with importing():
            from belief.kernels.identity import of_dense

        of_dense(*what)

    def rows(self, ids: Array, columns: Array) -> Array:
        X, at, first = self.source.columns(ids, columns)
        return X[at, first : first + len(columns)].astype(np.float64)

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        with importing():
            from belief.engines.block.search import NeighbourSearch

        return NeighbourSearch(self, sample, difference, search, visit).run()

    # --- 4. and 5. the tally ---

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        return (self._tally(pairs, difference, rates) for pairs in batches)

    def _tally(self, pairs: Pairs, difference: Difference, rates: Collisions | None) -> Tally:
        kinds, missing = pairs.n_kinds, difference.missing
        lines, query_lines, couples = pairs.spread_shape
        reach = reaches(difference, rates.kappa if rates else 1.0, slice(None))
        weight = np.zeros(0) if pairs.weight is None else pairs.weight

        def task(span: tuple[int, int]) -> Sums:
            n = span[1] - span[0]
            mine = Reach(*(x[slice(*span)] for x in reach))
            sums = Sums(
                np.zeros((kinds, n)), np.zeros((kinds if missing else 0, n)), np.zeros(n if rates else 0),
                np.zeros((lines, couples, n)), np.zeros((query_lines if missing else 0, couples, n)),
            )  # fmt: skip
            for part, few, at in cut:
                X, rows, a = self.source.rows(few, *span)
                neighbours = self.source.rows(pairs.neighbour[part], *span)
                self.kernels.tally(X, rows[at], a, *neighbours, pairs.kind[part], weight[part], mine, sums)
            return sums

        cut = [(part, *_runs(pairs.query[part])) for part in self._parts(pairs)]
        parts = self.map(task, spans(self.n_features, TALLIED))
        total, absent, rate, spread, queries = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
        per_unit = difference.per_unit
        total *= per_unit
        scale_spread(spread, pairs, per_unit)
        return Tally.from_sums(pairs, total, rate, spread, absent if missing else None, queries)

    def _parts(self, pairs: Pairs) -> list[slice]:
        """Cut the pairs between queries, so that the rows gathered for a part stay within the working memory."""
        row_bytes = 3 * 8 * TALLIED * 2 * self.n_jobs
        most = max(1024, self.working_memory // (2 * row_bytes))
        ends = np.r_[pairs.starts, len(pairs)]
        cuts = ends[np.searchsorted(ends, np.arange(0, len(pairs) + most, most)).clip(max=len(ends) - 1)]
        return [slice(int(a), int(b)) for a, b in pairwise(np.unique(cuts))]

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        return [self._joint(pairs, difference, rates, watched, columns) for pairs, watched in watches]

    def _joint(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Joint:
        held, every = self._rates(pairs, difference, rates.kappa), np.union1d(watched, columns)
        if self._hold(held, held.lacking(every)):

            def task(part: tuple[int, slice]) -> Joint:
                return joint_sums(rates, held.of(watched, *part), held.of(columns, *part))

        else:
            at, reach = np.searchsorted(every, watched), reaches(difference, rates.kappa, every)
            to = np.searchsorted(every, columns)

            def task(part: tuple[int, slice]) -> Joint:
                return reduce(Joint.merge, (anew(cut) for cut in _pieces(part[1], len(every))))

        def anew(cut: slice) -> Joint:
            Q, N = self.source.columns(pairs.query[cut], every), self.source.columns(pairs.neighbour[cut], every)
            R, P = self._collisions(Q, N, reach, difference.missing)
            return joint_sums(
                rates, CollisionRates.from_rates(R[:, at], P[:, at]), CollisionRates.from_rates(R[:, to], P[:, to])
            )

        return reduce(Joint.merge, self.map(task, list(enumerate(parts_of(len(pairs))))))

    def _rates(self, pairs: Pairs, difference: Difference, kappa: float) -> Rates:
        """The rates of these pairs that are held, none to begin with; those of pairs that are gone are forgotten."""
        self._held = [x for x in self._held if not x.gone]
        known = [x for x in self._held if x.are(pairs, difference, kappa)]
        if not known:
            known = [Rates(pairs, difference, kappa)]
            self._held += known
        return known[0]

    def _hold(self, held: Rates, features: Array) -> bool:
        """Hold the rates of these features too, if there is room for them."""
        used = sum(x.nbytes for x in self._held)
        if used + 8 * math.prod(held.shape_of(features)) > self.working_memory // HELD:
            return False
        if not len(features):
            return True
        X, at, a = self.source.columns(held.rows, features)
        (out, sums), reach = held.add(features), reaches(held.difference, held.kappa, features)

        def task(part: tuple[int, slice]) -> None:
            for cut in _pieces(part[1], len(features)):
                Q, N = (X, at[held.query[cut]], a), (X, at[held.neighbour[cut]], a)
                found = self._collisions(Q, N, reach, held.difference.missing)
                sums[part[0]] += sum_powers(found[0])
                for x, values in zip(out, found, strict=False):
                    x[:, cut] = values.T

        deque(self.map(task, list(enumerate(parts_of(len(held.query))))), maxlen=0)
        return True

    def _collisions(self, Q: Located, N: Located, reach: Reach, missing: bool) -> tuple[Array, Array]:
        """The rates of some pairs, and presence where values are missing."""
        n, width = len(Q[1]), len(reach.reach)
        R, P = np.empty((n, width)), np.empty((n if missing else 0, width))
        self.kernels.collisions(*Q, *N, reach, R, P)
        return R, P

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        return [self._floor(pairs, difference, rates, watched, columns) for pairs, watched in watches]

    def _floor(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Array:
        total, gap = np.zeros((len(watched), len(columns))), np.zeros(len(columns))
        lines, line_gap = np.empty((len(pairs), len(watched)), np.float32), np.zeros(len(watched))
        every = slice(0, len(pairs))
        self._half_hits(pairs, every, watched, reaches(difference, rates.kappa, watched), lines, line_gap)
        reach = reaches(difference, rates.kappa, slice(None))
        starts = np.searchsorted(columns, np.arange(0, self.n_features + CHUNK, CHUNK))

        def task(cut: tuple[int, int]) -> None:
            mine = columns[slice(*cut)]
            run = np.arange(mine[0], mine[-1] + 1)  # reading features that lie side by side is worth a few too many
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


def _pieces(part: slice, n_features: int) -> list[slice]:
    """A part of pairs in pieces whose rates stay in the cache; one piece of none."""
    height = int(np.clip(2**16 // max(n_features, 1), 64, 1024))
    return [slice(part.start + a, part.start + b) for a, b in spans(part.stop - part.start, height) or [(0, 0)]]


def _runs(ids: Array) -> tuple[Array, Array]:
    """The ids without repetitions in a row, and which of them each was."""
    new = np.r_[True, ids[1:] != ids[:-1]]
    return ids[new], np.cumsum(new) - 1


def _levels(kernels: ModuleType, X: Array, at: Array, features: Array, group: Array, n_groups: int) -> Levels:
    """The levels of the columns `at` of a block, filed under their features."""
    n = n_groups if n_groups <= MOST_GROUPS else 0
    group = group if n else np.zeros_like(group)
    value, count = np.empty((len(at), FEW_LEVELS)), np.empty((len(at), FEW_LEVELS, max(n, 1)), np.int64)
    found = np.full(len(at), -1)  # -1: to be sorted
    if len(X) > threads.SMALL:
        kernels.levels(X, at, group, value, count, found)
    used = np.arange(FEW_LEVELS) < found[:, None]
    parts = [_table(np.broadcast_to(features[:, None], used.shape)[used], value[used], count[used], n)]
    many = found < 0
    return Levels.concat([*parts, _sorted_levels(X[:, at[many]], features[many], group, n)])


def _sorted_levels(X: Array, features: Array, group: Array, n: int) -> Levels:
    """The levels of some columns, one column after the other."""
    order, lines = np.argsort(X.T, axis=1), max(n, 1)
    values = np.take_along_axis(X.T, order, axis=1)
    there = ~np.isnan(values)  # missing ones come last
    new = there.copy()
    new[:, 1:] &= values[:, 1:] != values[:, :-1]
    level = (np.cumsum(new) - 1).reshape(new.shape)[there]
    count = np.bincount(level * lines + group[order[there]], minlength=int(new.sum()) * lines).reshape(-1, lines)
    return _table(np.repeat(features, new.sum(axis=1)), values[new].astype(float), count, n)


def _table(feature: Array, value: Array, count: Array, n: int) -> Levels:
    return Levels(feature, value, count.sum(axis=1), count[:, :n])
