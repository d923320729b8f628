"""The collision rates of pairs of rows, held feature by feature: a redundancy measure asks for the same ones often."""

from __future__ import annotations

from weakref import ref

import numpy as np

from belief.engines.block.threads import spans
from belief.method.arrays import Array, unique_ids
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.redundancy.collisions import CollisionRates

AT_ONCE, PARTS = 2048, 16  # pairs of a part, at the least, and parts, at the most: whatever the number of threads


def parts_of(n_pairs: int) -> list[slice]:
    """The pairs in parts, of which threads take one at a time; one part of none."""
    return [slice(a, b) for a, b in spans(n_pairs, max(AT_ONCE, -(-n_pairs // PARTS))) or [(0, 0)]]


class Rates:
    """The rates of some pairs, in blocks of features as they came.

    Parameters
    ----------
    pairs : the pairs, of which nothing is kept but where their rows are
    difference, kappa : what the rates are made of
    """

    def __init__(self, pairs: Pairs, difference: Difference, kappa: float) -> None:
        self._pairs, self.difference, self.kappa = ref(pairs), difference, kappa
        self.rows, at = unique_ids(np.concatenate([pairs.query, pairs.neighbour]))
        self.query, self.neighbour = at.reshape(2, -1)  # places in `rows`
        self._blocks: list[tuple[Array, Array]] = []  # (1 or 2, features, pairs): rates, presence; (parts, 2, features)
        self._block, self._line = np.full((2, difference.n_features), -1)  # of each feature

    @property
    def gone(self) -> bool:
        """Whether nobody can ask for these pairs any more."""
        return self._pairs() is None

    @property
    def nbytes(self) -> int:
        """The memory used."""
        return sum(x.nbytes for x, _ in self._blocks)

    def are(self, pairs: Pairs, difference: Difference, kappa: float) -> bool:
        """Whether these rates are those."""
        return self._pairs() is pairs and self.difference is difference and self.kappa == kappa

    def lacking(self, features: Array) -> Array:
        """Those of the features that are not held."""
        return features[self._block[features] < 0]

    def shape_of(self, features: Array) -> tuple[int, int, int]:
        """That of the block of these features."""
        return 1 + self.difference.missing, len(features), len(self.query)

    def add(self, features: Array) -> tuple[Array, Array]:
        """Make room for the rates of features and their sums in each part; both are to be filled."""
        self._block[features], self._line[features] = len(self._blocks), np.arange(len(features))
        self._blocks.append((np.empty(self.shape_of(features)), np.zeros((PARTS, 2, len(features)))))
        return self._blocks[-1]

    def of(self, features: Array, number: int, part: slice) -> CollisionRates:
        """The rates of features that are held, in a part of the pairs."""
        block, line = self._block[features], self._line[features]
        if len(features) and (block == block[0]).all() and (np.diff(line) == 1).all():  # as they lie
            values, sums = self._blocks[block[0]]
            mine = slice(int(line[0]), int(line[-1]) + 1)
            return _rated(values[:, mine, part], sums[number, :, mine])
        found = np.empty((1 + self.difference.missing, len(features), part.stop - part.start))
        of_part = np.empty((2, len(features)))
        for t, (b, i) in enumerate(zip(block.tolist(), line.tolist(), strict=True)):  # each is copied once
            values, sums = self._blocks[b]
            found[:, t], of_part[:, t] = values[:, i, part], sums[number, :, i]
        return _rated(found, of_part)


def _rated(values: Array, sums: Array) -> CollisionRates:
    return CollisionRates(values[0].T, values[1].T if len(values) > 1 else np.zeros((0, 0)), sums)
