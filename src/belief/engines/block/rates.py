"""A cache of the collision rates of pairs of rows, because redundancy measures need the same rates repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

import numpy as np

from belief.data.source import as_slice
from belief.engines.block.threads import spans
from belief.method.arrays import Array, unique_ids
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.redundancy.collisions import CollisionRates, Collisions

# The parts do not depend on the number of threads, so sums do not either.
MIN_PART_PAIRS, MAX_PARTS = 2048, 16


def cut_pairs(n_pairs: int) -> list[slice]:
    """Cut n pairs into parts, one for each task. If n is 0, return one empty part."""
    return [slice(a, b) for a, b in spans(n_pairs, max(MIN_PART_PAIRS, -(-n_pairs // MAX_PARTS))) or [(0, 0)]]


class Rates:
    """The cached collision rates of some pairs of rows. Each call of `allocate` adds a block of features.

    Parameters
    ----------
    pairs : the pairs, which the cache does not keep alive
    difference, collisions : the definition of the rates
    """

    def __init__(self, pairs: Pairs, difference: Difference, collisions: Collisions) -> None:
        self.pairs, self.difference, self.collisions = ref(pairs), difference, collisions
        self.rows, at = unique_ids(np.concatenate([pairs.query, pairs.neighbour]))
        self.query, self.neighbour = at.reshape(2, -1)  # positions in `rows`
        # for each block, an array of rates (and of presence, if values are missing), (1 or 2, features, pairs), and an
        # array of sums, (parts, 2, features)
        self.blocks: list[tuple[Array, Array]] = []
        self._block, self._line = np.full((2, difference.n_features), -1)  # the block of each feature, and its line

    def matches(self, pairs: Pairs, difference: Difference, collisions: Collisions) -> bool:
        """Return True if the cached rates belong to these pairs, this scaling and these collisions."""
        return self.pairs() is pairs and self.difference is difference and self.collisions == collisions

    def missing(self, features: Array) -> Array:
        return features[self._block[features] < 0]

    def shape_of(self, features: Array) -> tuple[int, int, int]:
        return 1 + self.difference.missing, len(features), len(self.query)

    def allocate(self, features: Array) -> tuple[Array, Array]:
        """Return new arrays for the rates of these features and for their sums, which the caller fills."""
        self._block[features], self._line[features] = len(self.blocks), np.arange(len(features))
        self.blocks.append((np.empty(self.shape_of(features)), np.zeros((MAX_PARTS, 2, len(features)))))
        return self.blocks[-1]

    def reader(self, features: Array) -> Callable[[int, slice], CollisionRates]:
        """Return a function that reads the cached rates of these features for a part of the pairs.

        Its arguments are the number of the part, and the slice of the pairs.
        """
        block, line = self._block[features], self._line[features]
        if len(features) and (block == block[0]).all():
            (values, sums), mine = self.blocks[block[0]], as_slice(line)  # a view if lines are consecutive
            return lambda number, part: _make_rated(values[:, mine, part], sums[number][:, mine])

        def read(number: int, part: slice) -> CollisionRates:
            found = np.empty((1 + self.difference.missing, len(features), part.stop - part.start))
            part_sums = np.empty((2, len(features)))
            for b in set(block.tolist()):
                (values, sums), at = self.blocks[b], np.flatnonzero(block == b)
                found[:, at], part_sums[:, at] = values[:, line[at], part], sums[number][:, line[at]]
            return _make_rated(found, part_sums)

        return read


def _make_rated(values: Array, sums: Array) -> CollisionRates:
    return CollisionRates(values[0].T, values[1].T if len(values) > 1 else np.zeros((0, 0)), sums)
