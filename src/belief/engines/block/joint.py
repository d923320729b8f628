"""The base class of engines that compute joint sums as matrix products of collision rates.

The collision rates of a pair are computed from the dense values of a few columns. They are cached if there is room,
because redundancy measures request the same ones repeatedly.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from types import ModuleType

import numpy as np

from belief.data.source import Located
from belief.engines.block.rates import Rates, cut_pairs
from belief.engines.block.threads import RowEngine, Threads, spans
from belief.engines.resources import Resources
from belief.kernels.shapes import Reach, reaches
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs
from belief.method.redundancy.collisions import CollisionRates, Collisions, Watch, joint_sums, sum_powers

RATES_SHARE = 8  # cached collision rates use at most 1 / RATES_SHARE of the working memory


class JointEngine(RowEngine):
    """An engine that can read some columns of some rows as dense values."""

    def __init__(
        self, n_features: int, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(n_features, targets, discrete, resources, pool, counted)
        self._cached_rates: list[Rates] = []

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
        return [self._joint(pairs, difference, rates, watched, columns) for pairs, watched in watches]

    def _joint(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Joint:
        cached, every = self._find_rates(pairs, difference, rates), np.union1d(watched, columns)
        if self._cache_rates(cached, cached.missing(every)):

            def task(part: tuple[int, slice]) -> Joint:
                return joint_sums(rates, cached.read(watched, *part), cached.read(columns, *part))

        else:
            at, reach = np.searchsorted(every, watched), reaches(difference, rates.kappa, every)
            to = np.searchsorted(every, columns)
            read = self._make_reader(cached, every)

            def task(part: tuple[int, slice]) -> Joint:
                return reduce(Joint.merge, (compute(cut) for cut in _cut_for_cache(part[1], len(every))))

        def compute(cut: slice) -> Joint:
            Q, N = read(cut)
            R, P = self._collisions(Q, N, reach, rates, difference.missing)
            lines = CollisionRates.from_rates(R[:, at], P[:, at])
            return joint_sums(rates, lines, CollisionRates.from_rates(R[:, to], P[:, to]))

        return reduce(Joint.merge, self.map(task, list(enumerate(cut_pairs(len(pairs))))))

    def _make_reader(self, cached: Rates, columns: Array) -> Callable[[slice], tuple[Located, Located]]:
        """Return a function that reads some columns of both rows of each pair, for a slice of the pairs.

        If the columns of all pairs fit into memory, they are read only once, here.
        """
        if 8 * len(cached.rows) * len(columns) > self.working_memory // RATES_SHARE:
            return lambda cut: (
                self._read_columns(cached.rows[cached.query[cut]], columns),
                self._read_columns(cached.rows[cached.neighbour[cut]], columns),
            )
        X, at, a = self._read_all_columns(cached.rows, columns)
        return lambda cut: ((X, at[cached.query[cut]], a), (X, at[cached.neighbour[cut]], a))

    def _find_rates(self, pairs: Pairs, difference: Difference, rates: Collisions) -> Rates:
        """Return the cache for the collision rates of these pairs, which is empty if it is new.

        Remove the caches of pairs that no longer exist.
        """
        self._cached_rates = [x for x in self._cached_rates if not x.is_stale]
        matching = [x for x in self._cached_rates if x.matches(pairs, difference, rates)]
        if not matching:
            matching = [Rates(pairs, difference, rates)]
            self._cached_rates += matching
        return matching[0]

    def _cache_rates(self, cached: Rates, features: Array) -> bool:
        """Add the collision rates of these features to the cache; return False if there is no room for them."""
        used = sum(x.nbytes for x in self._cached_rates)
        if used + 8 * math.prod(cached.shape_of(features)) > self.working_memory // RATES_SHARE:
            return False
        if not len(features):
            return True
        X, at, a = self._read_all_columns(cached.rows, features)
        (out, sums), reach = cached.allocate(features), reaches(cached.difference, cached.collisions.kappa, features)

        def task(part: tuple[int, slice]) -> None:
            for cut in _cut_for_cache(part[1], len(features)):
                Q, N = (X, at[cached.query[cut]], a), (X, at[cached.neighbour[cut]], a)
                found = self._collisions(Q, N, reach, cached.collisions, cached.difference.missing)
                sums[part[0]] += sum_powers(found[0])
                for x, values in zip(out, found, strict=False):
                    x[:, cut] = values.T

        deque(self.map(task, list(enumerate(cut_pairs(len(cached.query))))), maxlen=0)
        return True

    def _collisions(
        self, Q: Located, N: Located, reach: Reach, rates: Collisions, missing: bool
    ) -> tuple[Array, Array]:
        """Return the collision rates of some pairs, (pairs, features), and a mask of the values that are present.

        A rate is present if both rows of the pair have a value. The mask is empty if no value is missing.
        """
        n, width = len(Q[1]), len(reach.reach)
        R, P = np.empty((n, width)), np.empty((n if missing else 0, width))
        self.kernels.collisions(*Q, *N, reach, rates.by == "rate", R, P)
        return R, P


def _cut_for_cache(part: slice, n_features: int) -> list[slice]:
    """Cut a part of the pairs into slices whose collision rates fit into the CPU cache.

    A part without pairs gives one empty slice.
    """
    height = int(np.clip(2**16 // max(n_features, 1), 64, 1024))
    return [slice(part.start + a, part.start + b) for a, b in spans(part.stop - part.start, height) or [(0, 0)]]
