"""Pairs of rows whose rows are brought together: all pairs of a query meet in one block.

    queries, dealt out to portions ─► the rows of each portion's queries and neighbours ─► Blocks, by the cluster
    pairs by row id ─► (portion, place in its block)

A question is about any pairs. Those whose query has all its rows in a portion are asked of that; for others, new
portions are gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from belief.engines.distributed.cluster import Blocks, StagedBlocks
from belief.engines.distributed.sums import InBlocks, narrowed
from belief.method.arrays import Array
from belief.method.partials import Pairs

PORTION_BYTES = 2**26  # of the rows of a portion
PORTION_PAIRS = 1000  # fewer are not worth a task of their own
GATHER_PAIRS = 2**22  # of all portions that are gathered at once: they travel with every job


class GatheredRows:
    """All that has been gathered."""

    def __init__(self, staged: StagedBlocks, m: int, row_bytes: int) -> None:
        self._staged, self._m, self._row_bytes = staged, m, row_bytes
        self._gathered: list[_Gathering] = []

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Gather the rows of these pairs, but for those of queries whose rows have been."""
        self._homes(batches)

    def reach(self, batches: Sequence[Pairs]) -> Iterator[tuple[Blocks, InBlocks]]:
        """The blocks that hold the rows of some pairs, and the pairs by where they hold them."""
        homes = self._homes(batches)
        for i, gathering in enumerate(self._gathered):
            mine = [pairs.take(home == i) for pairs, home in zip(batches, homes, strict=True)]
            if any(map(len, mine)):
                yield gathering.blocks, gathering.located(mine)

    def release(self) -> None:
        for gathering in self._gathered:
            gathering.blocks.release()
        self._gathered.clear()

    def _homes(self, batches: Sequence[Pairs]) -> list[Array]:
        """The gathering that each pair is asked of; what none has is gathered first."""
        homes = [self._home(pairs) for pairs in batches]
        left = [pairs.take(home < 0) for pairs, home in zip(batches, homes, strict=True)]
        if not any(map(len, left)):
            return homes
        query = np.concatenate([pairs.query for pairs in left])
        neighbour = np.concatenate([pairs.neighbour for pairs in left])
        self._gathered += [self._gather(*part) for part in _by_queries(query, neighbour, GATHER_PAIRS)]
        return [self._home(pairs) for pairs in batches]

    def _home(self, pairs: Pairs) -> Array:
        """The gathering that has all rows of a pair's query, -1 where there is none."""
        home = np.full(len(pairs), -1)
        for i, gathering in enumerate(self._gathered):
            home[(home < 0) & gathering.covers(pairs)] = i
        return home

    def _gather(self, query: Array, neighbour: Array) -> _Gathering:
        queries, which = np.unique(query, return_inverse=True)
        n = self._n_portions(len(queries), len(query))
        portion = _dealt(query, queries, n)
        keys = np.unique(np.concatenate([portion * self._m + queries, portion[which] * self._m + neighbour]))
        starts = np.searchsorted(keys, np.arange(n + 1) * self._m)
        rows = np.split(keys % self._m, starts[1:-1])
        return _Gathering(self._staged.gather(rows), self._m, queries, portion, keys, starts)

    def _n_portions(self, n_queries: int, n_pairs: int) -> int:
        """Portions within a size, and one or more for each task, if they are worth it."""
        tasks = self._staged.tasks
        rows = n_queries + n_pairs if self._m * self._row_bytes > PORTION_BYTES else 0  # else all rows fit into one
        n = max(-(-rows * self._row_bytes // PORTION_BYTES), min(tasks, -(-n_pairs // PORTION_PAIRS)))
        return min(n_queries, n if n <= tasks else -(-n // tasks) * tasks)


@dataclass(frozen=True)
class _Gathering:
    """Blocks of rows that were gathered at once."""

    blocks: Blocks
    m: int
    queries: Array  # by rising id
    portion: Array  # of each of them
    keys: Array  # portion·m + id of every row that is held, rising
    starts: Array  # of each portion, among the keys

    def covers(self, pairs: Pairs) -> Array:
        """Of which pairs all rows of the query are here, those of its other pairs too."""
        at = np.minimum(np.searchsorted(self.queries, pairs.query), len(self.queries) - 1)
        key = self.portion[at] * self.m + pairs.neighbour
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        here = (self.queries[at] == pairs.query) & (self.keys[place] == key)
        return here if here.all() else here & ~np.isin(pairs.query, pairs.query[~here])

    def located(self, batches: Sequence[Pairs]) -> InBlocks:
        """Pairs by portion, and by where their rows are in its block."""
        out: dict[int, list[tuple[int, Pairs]]] = {}
        for t, pairs in enumerate(batches):
            portion = self.portion[np.searchsorted(self.queries, pairs.query)]
            query, neighbour = (self._place(portion, ids) for ids in (pairs.query, pairs.neighbour))
            by_place = narrowed(replace(pairs, query=query, neighbour=neighbour))
            for p in np.unique(portion):
                out.setdefault(int(p), []).append((t, by_place.take(portion == p)))
        return out

    def _place(self, portion: Array, ids: Array) -> Array:
        return np.searchsorted(self.keys, portion * self.m + ids) - self.starts[portion]


def _dealt(query: Array, queries: Array, n: int) -> Array:
    """The portion of each query: they are dealt out as they come, so that every portion has some of each batch."""
    _, first = np.unique(query, return_index=True)
    portion = np.empty(len(queries), np.int64)
    portion[np.argsort(first, kind="stable")] = np.arange(len(queries)) % n
    return portion


def _by_queries(query: Array, neighbour: Array, most: int) -> Iterator[tuple[Array, Array]]:
    """Pairs in parts of about so many, all those of a query in the same."""
    if len(query) <= most:
        yield query, neighbour
        return
    queries, which = np.unique(query, return_inverse=True)
    part = _dealt(query, queries, -(-len(query) // most))[which]
    for i in range(int(part.max()) + 1):
        yield query[part == i], neighbour[part == i]
