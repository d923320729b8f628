"""The neighbour search over sparse rows that are rounded to 8-bit integers and multiplied as dense rows.

If more than a few percent of the values are non-zero, this is faster than a search through the index, which lists the
queries with a non-zero value of each feature (sparse.py). The dense rows contain the features that are non-zero in some
query; other features only add to the norms. As in `rounded`, exact distances are computed for candidates: rows that
lower bounds of d² do not exclude. The first rows are compared through the index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from belief.engines.block.rounded import cut_queries, empty_queries, expect_share, find_candidates, make_slots
from belief.kernels import sparse
from belief.kernels.instructions import WORD, Instructions, available_instructions
from belief.kernels.rounded import RoundedQueries, RoundedRows, collect, round_sparse_queries, round_sparse_rows
from belief.kernels.shapes import TIE_MARGIN
from belief.method.arrays import Array
from belief.method.partials import Neighbours
from belief.method.protocols import Search
from belief.method.sampling import TIES, row_keys

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from belief.engines.block.sparse import SearchRows, SparseEngine

FIRST_ROWS = 256  # rows that are compared through the index at the start
HEIGHT = 4096  # maximum number of rows of a tile
# Measured seconds on one core: for a product in int8, for one through the index, and for each entry of a candidate.
INT8_PRODUCT, INDEX_PRODUCT, CANDIDATE_ENTRY = 2.5e-12, 4e-9, 2e-9
MIN_SECONDS = 0.05  # shorter searches use the index


@dataclass(frozen=True)
class _Tile:
    """Rows of one block of the matrix, rounded to integers."""

    rows: sparse.Csr
    at: Array  # positions in `rows`, sorted by group
    ids: Array
    group: Array
    keys: Array
    norm: Array  # the squared distance of each row from a row of zeros
    rounded: RoundedRows


class SparseRoundedSearch:
    """A search with sparse rows rounded to integers. It updates `found`, the neighbours of the queries.

    Parameters
    ----------
    rows : the rows of the engine, with the columns that the search uses
    X : the queries, with the same columns
    queries : X as three arrays
    own : the id of each query
    unit : the typical difference of a feature
    first : the id of the first row of the engine
    """

    def __init__(
        self, engine: SparseEngine, rows: SearchRows, X: csr_array, queries: sparse.Csr, own: Array, unit: float,
        search: Search, first: int, found: Neighbours,
    ) -> None:  # fmt: skip
        self.engine, self.rows, self.queries, self.own, self.search = engine, rows, queries, own, search
        self.first, self.found, self.unit, self.scale = first, found, unit, rows.scale
        count = np.bincount(queries.column[queries.value != 0], minlength=X.shape[1])
        columns = np.flatnonzero((count > 0) & (self.scale.per_unit > 0))
        self.steps = -(-len(columns) // WORD)
        self.place = np.full(X.shape[1], -1, np.int32)
        self.place[columns] = np.arange(len(columns))
        n = max(X.shape[0], 1)
        self.entries = X.nnz / n
        self.index_seconds = float(((count / n) ** 2).sum()) * INDEX_PRODUCT  # for each pair

    def choose_instructions(self) -> Instructions | None:
        """Return the instruction set for products of integers in this search.

        Return None if a search through the index is faster, or if the rows cannot be represented by integers.
        """
        name = self.engine.resources.instructions
        found = [] if name == "float32" else available_instructions()
        if not found or self.scale.discrete.any() or not self.steps:
            return None
        if name != "auto":
            return next(x for x in found if name in ("int8", type(x).__name__))
        pairs, int8 = float(len(self.own)) * self.engine.m, WORD * self.steps * INT8_PRODUCT
        is_faster = 2 * int8 < self.index_seconds and pairs * self.index_seconds > MIN_SECONDS
        return found[0] if is_faster else None

    def run(self, kind: Instructions, search_index: Callable[[int], None]) -> int:
        """Compare the queries with the rows from the first on; stop early if a search through the index is faster.

        Return the number of rows compared; the caller must compare the remaining ones through the index. To time the
        index, `search_index(n)` may be called once for the first n rows.
        """
        self.kind, engine, is_forced = kind, self.engine, self.engine.resources.instructions != "auto"
        parts = list(engine.map(self._round_part, cut_queries(len(self.own), engine.n_jobs)))
        done, m = 0, engine.m
        if not np.isfinite(self.found.d2[..., -1]).all() and not is_forced:
            done = min(FIRST_ROWS, m)
            search_index(done)
            tiles = self._make_tiles(0, done)
            if tiles and self._expect_share(tiles[0], parts[0]) > self._max_share():
                return done
        height, size = self._height(), FIRST_ROWS
        while done < m:
            stop = min(done + size, m)
            tiles = self._make_tiles(done, stop)
            candidates = sum(engine.map(partial(self._compare, tiles), parts))
            share = candidates / max(len(self.own) * sum(len(x.ids) for x in tiles), 1)
            done, size = stop, min(2 * size, engine.n_jobs * height)
            engine.report(done, m)
            if share > 2 * self._max_share() and not is_forced:
                break
        return done

    def _max_share(self) -> float:
        """Return the share of candidates above which a search through the index is faster.

        Candidates are rows that lower bounds do not exclude, so their exact distances are computed.
        """
        return max(self.index_seconds - WORD * self.steps * INT8_PRODUCT, 0.0) / (self.entries * CANDIDATE_ENTRY)

    def _height(self) -> int:
        memory = self.engine.working_memory // 4
        height = int(np.clip(memory // (self.engine.n_jobs * WORD * self.steps), 16, HEIGHT))
        return self.rows.limit(height, self.entries)

    def _round_part(self, span: tuple[int, int]) -> tuple[tuple[int, int], RoundedQueries]:
        n = span[1] - span[0]
        out = empty_queries(n, self.kind, self.steps)
        factor = self.scale.per_unit / self.unit
        round_sparse_queries(
            self.queries, span[0], self.place, factor, self.kind.offset, out.ints, out.terms, out.shift, out.norm[:n]
        )
        return span, out

    def _make_tiles(self, first: int, stop: int) -> list[_Tile]:
        """Return tiles of the rows from `first` to `stop`, rounded to integers.

        Each tile is part of one block of the matrix.
        """
        most = min(self._height(), -(-(stop - first) // self.engine.n_jobs))
        cut = self.engine.cut_rows(first, stop, most)
        return [x for x in self.engine.map(self._round_tile, cut) if len(x.ids)]

    def _round_tile(self, span: tuple[int, int, int]) -> _Tile:
        block, a, b = span
        ids = np.arange(a, b) + int(self.engine.starts[block])
        if self.engine.counted is not None:
            ids = ids[self.engine.counted[ids]]
        n_groups = self.search.n_groups
        group = self.engine.targets[ids] if n_groups > 1 else np.zeros(len(ids), np.int32)
        order = np.argsort(group, kind="stable")
        ids, group = ids[order], group[order]
        rows, first = self.rows.read(block, a, b)
        at = ids - int(self.engine.starts[block]) - a + first
        slots, row, groups = make_slots(np.bincount(group, minlength=n_groups), self.kind)
        packed = np.full((len(groups), self.steps, self.kind.lanes), 0x01010101 * self.kind.offset, np.uint32)
        terms, norm = np.zeros((4, len(row)), np.float32), np.zeros(len(ids))
        round_sparse_rows(
            rows, at, self.place, self.scale.per_unit / self.unit, slots, self.kind.levels,
            self.kind.offset, packed.view(np.uint8), terms, norm,
        )  # fmt: skip
        ids += self.first
        keys = row_keys(self.search.seed, TIES, ids)
        return _Tile(rows, at, ids, group, keys, norm * self.unit**2, RoundedRows(packed, terms, groups, row))

    def _find_candidates(self, x: _Tile, span: tuple[int, int], queries: RoundedQueries) -> Array:
        bound = self.found.d2[slice(*span), :, -1] / self.unit**2 * (1 + TIE_MARGIN)
        return find_candidates(self.kind, x.rounded, queries, bound)

    def _expect_share(self, x: _Tile, part: tuple[tuple[int, int], RoundedQueries]) -> float:
        n_best = self.search.size * self.search.n_groups
        return expect_share(n_best, self._find_candidates(x, *part), len(x.ids), self.engine.m)

    def _compare(self, tiles: list[_Tile], part: tuple[tuple[int, int], RoundedQueries]) -> int:
        """Compare some queries with some tiles; return how many exact distances were computed."""
        (first, last), queries = part
        n, total = last - first, 0
        start = self.queries.start[first : last + 1]
        mine = sparse.Csr(start, self.queries.column, self.queries.value)
        best = (self.found.d2[first:last], self.found.key[first:last], self.found.row[first:last])
        for x in tiles:
            candidates = self._find_candidates(x, (first, last), queries)
            most, at, crowded = len(x.ids), 0, np.zeros(n, bool)
            q, r = np.empty((2, max(2**16, 2 * most + 1)), np.int64)
            while at < n:
                own = self.own[first:last]
                count, at = collect(candidates, self.kind.lanes, x.rounded.row, x.ids, own, most, at, q, r, crowded)
                sparse.verify(
                    x.rows, x.at, x.ids, x.group, x.keys, x.norm, mine, queries.norm * self.unit**2, self.scale,
                    q[:count], r[:count], best,
                )  # fmt: skip
                total += count
        return total
