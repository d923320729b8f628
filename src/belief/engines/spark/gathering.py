"""Gather the rows of pairs: make blocks in which every query is together with all of its neighbours.

Queries are distributed over portions. For each portion, the cluster gathers the rows of its queries and of their
neighbours into one block. If later pairs have new queries or new neighbours, their rows are gathered at that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from belief.engines.spark.jobs import Blocks, LocatedPairs, StagedBlocks, with_dtype
from belief.method.arrays import Array
from belief.method.partials import Pairs

PORTION_BYTES = 2**26  # maximum size of a portion's rows


class GatheredRows:
    """All rows that have been gathered so far."""

    portion_bytes = PORTION_BYTES
    portion_pairs = 1000  # fewer pairs are not worth a task
    gather_pairs = 2**22  # pairs that are gathered at once, because every job sends the row ids of all portions

    def __init__(self, staged: StagedBlocks, n_rows: int, row_bytes: int) -> None:
        self._staged, self._n_rows, self._row_bytes = staged, n_rows, row_bytes
        self._gatherings: list[_Gathering] = []

    def find(self, batches: Sequence[Pairs]) -> Iterator[tuple[Blocks, LocatedPairs]]:
        """Yield blocks that have both rows of the pairs, and the positions of the pairs in these blocks."""
        assigned = self.prefetch(batches)
        for i, gathering in enumerate(self._gatherings):
            selected = [pairs.take(home == i) for pairs, home in zip(batches, assigned, strict=True)]
            if any(map(len, selected)):
                yield gathering.blocks, gathering.locate(selected)

    def release(self) -> None:
        for gathering in self._gatherings:
            gathering.blocks.release()
        self._gatherings.clear()

    def prefetch(self, batches: Sequence[Pairs]) -> list[Array]:
        """Return, for each pair, the index of the set of gathered rows that contains both of its rows.

        Rows that are in no such set are gathered first.
        """
        assigned = [self._assign_known(pairs) for pairs in batches]
        missing = [pairs.take(home < 0) for pairs, home in zip(batches, assigned, strict=True)]
        if not any(map(len, missing)):
            return assigned
        query = np.concatenate([pairs.query for pairs in missing])
        neighbour = np.concatenate([pairs.neighbour for pairs in missing])
        queries, which = np.unique(query, return_inverse=True)
        part = _deal(query, queries, -(-len(query) // self.gather_pairs))[which]  # all pairs of a query stay together
        self._gatherings += [self._gather(query[part == i], neighbour[part == i]) for i in range(part.max() + 1)]
        return [self._assign_known(pairs) for pairs in batches]

    def _assign_known(self, pairs: Pairs) -> Array:
        """Return, for each pair, the index of the set of gathered rows that covers it; -1 if none does."""
        assigned = np.full(len(pairs), -1)
        for i, gathering in enumerate(self._gatherings):
            assigned[(assigned < 0) & gathering.covers(pairs)] = i
        return assigned

    def _gather(self, query: Array, neighbour: Array) -> _Gathering:
        queries, which = np.unique(query, return_inverse=True)
        # The size of a portion is limited. If there are more portions than tasks, their number is a multiple of the
        # number of tasks, unless there are too few queries.
        tasks, size = self._staged.tasks, min(self.portion_bytes, self._staged.portion_bytes)
        fits = self._n_rows * self._row_bytes <= size  # the whole table fits into one portion
        n_rows = 0 if fits else len(queries) + len(query)
        n = max(-(-n_rows * self._row_bytes // size), min(tasks, -(-len(query) // self.portion_pairs)))
        n = min(len(queries), n if n <= tasks else -(-n // tasks) * tasks)
        portion, m = _deal(query, queries, n), self._n_rows
        keys = np.unique(np.concatenate([portion * m + queries, portion[which] * m + neighbour]))
        starts = np.searchsorted(keys, np.arange(n + 1) * m)
        rows = np.split(keys % m, starts[1:-1])
        return _Gathering(self._staged.gather(rows), m, queries, portion, keys, starts)


@dataclass(frozen=True)
class _Gathering:
    """Blocks with the rows of some queries and of their neighbours, gathered in one step."""

    blocks: Blocks
    n_rows: int  # rows of the whole table
    queries: Array  # sorted
    portion: Array  # the portion of each query
    keys: Array  # portion · n_rows + id of every gathered row, sorted
    starts: Array  # the first key of each portion

    def covers(self, pairs: Pairs) -> Array:
        """Return a mask of the pairs whose rows are gathered here.

        If some pair of a query is not gathered here, all pairs of this query are False.
        """
        i = np.minimum(np.searchsorted(self.queries, pairs.query), len(self.queries) - 1)
        key = self.portion[i] * self.n_rows + pairs.neighbour
        k = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        covered = (self.queries[i] == pairs.query) & (self.keys[k] == key)
        return covered if covered.all() else covered & ~np.isin(pairs.query, pairs.query[~covered])

    def locate(self, batches: Sequence[Pairs]) -> LocatedPairs:
        """Return the pairs of `batches` by portion; positions in the block of the portion replace row ids."""
        out: dict[int, list[tuple[int, Pairs]]] = {}
        for t, pairs in enumerate(batches):
            portion = self.portion[np.searchsorted(self.queries, pairs.query)]
            query, neighbour = (
                np.searchsorted(self.keys, portion * self.n_rows + ids) - self.starts[portion]
                for ids in (pairs.query, pairs.neighbour)
            )
            located = with_dtype(replace(pairs, query=query, neighbour=neighbour), np.int32)
            for p in np.unique(portion):
                out.setdefault(int(p), []).append((t, located.take(portion == p)))
        return out


def _deal(query: Array, queries: Array, n: int) -> Array:
    """Deal the queries to n portions in turn, in order of appearance; return the portion of each query.

    So each portion gets some queries of every batch.
    """
    _, first = np.unique(query, return_index=True)
    portion = np.empty(len(queries), np.int64)
    portion[np.argsort(first, kind="stable")] = np.arange(len(queries)) % n
    return portion
