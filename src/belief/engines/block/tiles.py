"""Tiles: rows of dense data that are searched together, sorted by group.

If a row has more identical copies in a tile than can become neighbours, the surplus copies are dropped. In data with
many copies, this saves most of the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from belief.kernels import dense
from belief.kernels.embedding import Slice
from belief.method.arrays import Array
from belief.method.protocols import Search
from belief.method.sampling import TIES, row_keys

if TYPE_CHECKING:
    from belief.engines.block.dense import DenseEngine

FEW_COLUMNS = 32  # columns that are hashed first, since they distinguish most rows


@dataclass(frozen=True)
class Tile:
    """Rows of the data that are searched together, sorted by group.

    The rows of group g are at groups[g] to groups[g + 1]. `rows` are positions in the engine's data, and `ids`
    positions in the whole table.
    """

    rows: Array
    groups: Array
    ids: Array
    keys: Array
    group: Array

    def part(self, a: int, b: int) -> Self:
        """Return a tile with the rows a to b of this tile."""
        if b - a == len(self.rows):
            return self
        groups = np.clip(self.groups, a, b) - a
        return type(self)(self.rows[a:b], groups, self.ids[a:b], self.keys[a:b], self.group[a:b])


class Tiles:
    """Makes the tiles of a search. `first` is the id of the engine's first row in the whole table."""

    def __init__(self, engine: DenseEngine, slices: Sequence[Slice], search: Search, first: int) -> None:
        self.engine, self.slices, self.search, self.first = engine, slices, search, first

    def make(self, span: tuple[int, int]) -> Tile:
        """Return a tile with the rows of a span, without those that cannot be neighbours.

        These are rows outside the engine's mask `counted`, and copies: if many rows of a group are identical, only the
        first few in the order of the tie keys can be neighbours.
        """
        ids = np.arange(*span)
        if self.engine.counted is not None:
            ids = ids[self.engine.counted[slice(*span)]]
        ids = self._drop_copies(ids[np.argsort(self._group(ids), kind="stable")])
        group, whole = self._group(ids), ids + self.first
        start = np.searchsorted(group, np.arange(self.search.n_groups + 1))
        return Tile(ids, start, whole, row_keys(self.search.seed, TIES, whole), group)

    def _group(self, ids: Array) -> Array:
        return self.engine.targets[ids] if self.search.n_groups > 1 else np.zeros(len(ids), np.int32)

    def _drop_copies(self, ids: Array) -> Array:
        """Keep at most `size` + 1 of several identical rows of a group, the ones with the smallest keys.

        One more than the number of neighbours is kept, because the query may be among the identical rows.
        """
        if len(ids) <= self.engine.resources.small_rows:
            return ids
        many, h = self._find_likely_copies(ids)
        if not len(many):
            return ids
        group = self._group(many)
        keys = row_keys(self.search.seed, TIES, many + self.first)
        order = np.lexsort((keys, h, group))
        new = np.r_[True, (h[order][1:] != h[order][:-1]) | (group[order][1:] != group[order][:-1])]
        start = np.maximum.accumulate(np.where(new, np.arange(len(many)), 0))
        surplus = np.flatnonzero(np.arange(len(many)) - start > self.search.size)
        copies, originals = many[order[surplus]], many[order[start[surplus]]]
        same = np.ones(len(copies), bool)  # hashes may collide
        for part in self.slices:
            X, rows, a = self.engine.source.rows(copies, part.a, part.b)
            Y, at, b = self.engine.source.rows(originals, part.a, part.b)
            n = part.b - part.a
            same &= np.all(_bits(X)[rows, a : a + n] == _bits(Y)[at, b : b + n], axis=1)
        return ids[~np.isin(ids, copies[same])]

    def _find_likely_copies(self, ids: Array) -> tuple[Array, Array]:
        """Return rows and their hashes: rows whose hash occurs more often than a list of neighbours is long."""
        h = np.zeros(len(ids), np.int64)
        more = self.search.size + 1
        cuts = np.unique([0, FEW_COLUMNS, *(x.b for x in self.slices)])
        for a, b in pairwise(cuts[cuts <= self.slices[-1].b].tolist()):
            X, rows, at = self.engine.source.rows(ids, a, b)
            dense.hash_bits(_bits(X), rows, at, row_keys(0, 2, np.arange(a, b)).view(np.int64) | 1, h)
            ordered = np.sort(h)
            alike = np.isin(h, ordered[more:][ordered[more:] == ordered[:-more]])
            ids, h = ids[alike], h[alike]
            if not len(ids):
                break
        return ids, h


def _bits(X: Array) -> Array:
    return X.view(np.int64 if X.dtype == np.float64 else np.int32)
