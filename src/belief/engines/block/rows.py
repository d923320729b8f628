"""The base class of engines over rows with known targets. It draws samples and computes joint sums.

Joint sums are matrix products of collision rates. The rates of a pair are computed from the dense values of a few
columns. They are cached if there is room, because redundancy measures request the same ones repeatedly.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np

from belief.data.source import Located, as_slice
from belief.engines.block.rates import Rates, cut_pairs
from belief.engines.block.threads import ThreadedEngine, Threads, checksum, draw_sample, spans
from belief.engines.resources import Resources
from belief.kernels.shapes import reaches
from belief.method.arrays import Array, unique_ids
from belief.method.copies import select_representatives
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs
from belief.method.redundancy.collisions import CollisionRates, Collisions, Watch, joint_sums, sum_powers
from belief.method.sampling import Sample
from belief.method.summary import can_count_groups
from belief.method.targets import Target
from belief.progress import COMPARING

RATES_SHARE = 8  # cached collision rates use at most 1 / RATES_SHARE of the working memory


class RowEngine(ThreadedEngine):
    """An engine over rows with known targets, in memory or in memory-mapped files.

    Parameters
    ----------
    source : the rows
    targets : the target of each row as a number, such as the index of its class
    counted : mask of the rows that may be sampled or found as neighbours; None: all rows
    """

    def __init__(
        self, source: Any, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(resources, pool)
        self.source, self.n_features, self.m = source, source.n_features, len(targets)
        self.targets, self.discrete, self.counted = targets, discrete, counted
        self._cached_rates: list[Rates] = []

    def fingerprint(self) -> bytes:
        return checksum([self.targets, self.discrete, *self._all_values()])

    def _all_values(self) -> Iterator[Array]:
        """Yield all values in a fixed order, as arrays."""
        raise NotImplementedError

    def identities(self) -> Array:
        """Return a hash of each row; identical rows have the same hash."""
        raise NotImplementedError

    def merge_copies(self, seed: int) -> Target:
        self.counted = select_representatives(self.identities(), self.targets, seed)
        return self.target.counted(self.targets[self.counted])

    def retarget(self, targets: Array, counted: Array | None) -> None:
        self.targets, self.counted = targets, counted

    def _count_groups(self) -> int:
        """Return the number of classes for which the summary has separate sums.

        It is 0 if the targets are unknown (-1) or the sums would take too much memory.
        """
        n = int(self.targets.max(initial=-1)) + 1 if self.targets.dtype.kind in "iu" else 0
        return n if can_count_groups(n, self.n_features) else 0

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Do nothing: all rows can be read at any time."""

    def sample(self, quota: Array, seed: int) -> Sample:
        return draw_sample(self.targets, self.counted, quota, seed)

    @property
    def kernels(self) -> ModuleType:
        """The module of kernels for dense rows."""
        raise NotImplementedError

    def _read_columns(self, ids: Array, columns: Array) -> Located:
        """Read some columns of some rows as dense values; return them as `Located`.

        The rows have the order of `ids`, and the columns the order of `columns`.
        """
        raise NotImplementedError

    def _read_all_columns(self, ids: Array, columns: Array) -> Located:
        """Return the same as `_read_columns`, but read in several threads if the engine can do so.

        Tasks that run in threads must call `_read_columns` instead.
        """
        return self._read_columns(ids, columns)

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        return [self._joint(pairs, difference, rates, watched, columns) for pairs, watched in self._reported(watches)]

    def _reported(self, watches: Sequence[Watch]) -> Iterator[Watch]:
        """Yield the watches unchanged, (pairs of rows, watched features), and report how many pairs are done."""
        done, total = 0, sum(len(pairs) for pairs, _ in watches)
        for pairs, watched in watches:
            yield pairs, watched
            done += len(pairs)
            self.report(done, total, COMPARING)

    def _joint(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Joint:
        self._cached_rates = [x for x in self._cached_rates if x.pairs() is not None]
        matching = [x for x in self._cached_rates if x.matches(pairs, difference, rates)]
        if not matching:
            matching = [Rates(pairs, difference, rates)]
            self._cached_rates += matching
        cached, every = matching[0], np.union1d(watched, columns)
        if self._cache_rates(cached, cached.missing(every)):
            read_lines, read_columns = cached.reader(watched), cached.reader(columns)

            def task(part: tuple[int, slice]) -> Joint:
                return joint_sums(rates, read_lines(*part), read_columns(*part))

        else:
            at, reach = np.searchsorted(every, watched), reaches(difference, rates.kappa, every)
            to = np.searchsorted(every, columns)
            read = self._make_reader(cached, every)

            def task(part: tuple[int, slice]) -> Joint:
                return reduce(Joint.merge, (compute(cut) for cut in _cut_for_cache(part[1], len(every))))

        def compute(cut: slice) -> Joint:
            X, query, neighbour = read(cut)
            R = np.empty((len(every), len(query)))
            P = np.empty_like(R[: len(R) if difference.missing else 0])
            self.kernels.collisions(X, query, neighbour, reach, rates.by == "rate", 0, R, P, np.zeros((2, 0)))
            lines, others = (CollisionRates.from_rates(R[x].T, P[x].T if len(P) else P) for x in (at, to))
            return joint_sums(rates, lines, others)

        return reduce(Joint.merge, self.map(task, list(enumerate(cut_pairs(len(pairs))))))

    def _make_reader(self, cached: Rates, columns: Array) -> Callable[[slice], tuple[Array, Array, Array]]:
        """Return a function that reads some columns of both rows of each pair, for a slice of the pairs.

        The function returns the rows in the layout that the kernel `collisions` reads, the position of each pair's
        query among these rows, and the position of its neighbour. If the columns of all pairs fit into memory, they are
        read only once, here.
        """
        if 8 * len(cached.rows) * len(columns) <= self.working_memory // RATES_SHARE:
            X = self._arrange(self._read_all_columns(cached.rows, columns), len(columns))
            return lambda cut: (X, cached.query[cut], cached.neighbour[cut])

        def read(cut: slice) -> tuple[Array, Array, Array]:
            rows, at = unique_ids(np.concatenate([cached.query[cut], cached.neighbour[cut]]))
            X = self._arrange(self._read_columns(cached.rows[rows], columns), len(columns))
            return X, *at.reshape(2, -1)

        return read

    def _arrange(self, found: Located, n: int) -> Array:
        """Return n columns of some rows in the layout that the kernel `collisions` reads."""
        X, rows, a = found
        return self.kernels.arrange(X[as_slice(rows), a : a + n])

    def _cache_rates(self, cached: Rates, features: Array) -> bool:
        """Add the collision rates of these features to the cache; return False if there is no room for them."""
        used = sum(values.nbytes for x in self._cached_rates for values, _ in x.blocks)
        if used + 8 * math.prod(cached.shape_of(features)) > self.working_memory // RATES_SHARE:
            return False
        if not len(features):
            return True
        X = self._arrange(self._read_all_columns(cached.rows, features), len(features))
        (out, sums), reach = cached.allocate(features), reaches(cached.difference, cached.collisions.kappa, features)
        by_rate, (R, P) = cached.collisions.by == "rate", (out[0], out[1] if len(out) > 1 else np.empty((0, 0)))

        def task(part: tuple[int, slice]) -> None:
            for cut in _cut_for_cache(part[1], len(features)):
                query, neighbour = cached.query[cut], cached.neighbour[cut]
                if len(features) > 1:
                    self.kernels.collisions(X, query, neighbour, reach, by_rate, cut.start, R, P, sums[part[0]])
                else:  # NumPy adds up a single feature with smaller rounding errors
                    self.kernels.collisions(X, query, neighbour, reach, by_rate, cut.start, R, P, np.zeros((2, 0)))
                    sums[part[0]] += sum_powers(R[:, cut].T)

        deque(self.map(task, list(enumerate(cut_pairs(len(cached.query))))), maxlen=0)
        return True


def _cut_for_cache(part: slice, n_features: int) -> list[slice]:
    """Cut a part of the pairs into slices whose collision rates fit into the CPU cache.

    A part without pairs gives one empty slice.
    """
    height = int(np.clip(2**16 // max(n_features, 1), 64, 1024))
    return [slice(part.start + a, part.start + b) for a, b in spans(part.stop - part.start, height) or [(0, 0)]]
