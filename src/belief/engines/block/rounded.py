"""The neighbour search over rows rounded to 8-bit integers, which takes a fraction of the time of a float32 product.

    rows ──embed, round──► int8 panels ──products with the queries──► candidates ──exact distances──► push

A row is a candidate for a query if a lower bound of its d² is at most the d² of the farthest of the query's nearest
rows so far. The first rows are compared in float32, so that few rows are candidates from the start. If a query has many
candidates in a tile of rows, it is compared with this tile in float32. If float32 is faster for these data, it is used
for all rows.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from belief.data.source import Located
from belief.engines.block.threads import Buffers, spans
from belief.engines.block.tiles import Tile
from belief.kernels import dense
from belief.kernels.instructions import WORD, Instructions, available_instructions
from belief.kernels.nearest import push
from belief.kernels.rounded import (
    ERROR,
    RoundedQueries,
    RoundedRows,
    collect,
    compare,
    round_queries,
    round_rows,
)
from belief.kernels.shapes import TIE_MARGIN, UNIT_ROUNDOFF
from belief.method.arrays import Array

if TYPE_CHECKING:
    from belief.engines.block.search import NeighbourSearch

MIN_MULTIPLICATIONS = 2e8  # smaller searches take less than about 5 ms in float32
MAX_WIDTH = 2**14  # columns; panels of wider rows would not stay in the CPU cache
FIRST_SHARE = 1 / 24  # share of the rows that is compared in float32 at the start
MIN_FIRST, MAX_FIRST = 256, 2000  # limits of the number of these rows
JUDGED_ROUND = 2  # the round after which the times of int8 and float32 are compared
MIN_PART, MAX_PART = 64, 1024  # queries of a part
IN_FLOAT32 = "float32"  # the key in `Visit.ready` that is set if float32 was faster in an earlier block
HEIGHT = 4096  # maximum number of rows of a tile
POINTS_AT_ONCE = 2**17  # coordinates that are embedded and then rounded, while they are in the CPU cache
CACHE_BYTES = 2**18  # size of the panels that are compared with all queries before the next panels are read
CROWDED = 1 / 32  # if a larger share of a tile are candidates of a query, float32 is faster for this query and tile
MAX_SHARE = 0.1  # if a larger share of all rows is expected to be candidates, float32 is faster for the whole search


@dataclass(frozen=True)
class _Part:
    """A part of the queries, which one thread at a time compares with rows.

    The lock protects the lists of neighbours of these queries.
    """

    lock: threading.Lock
    queries: Array  # consecutive
    rounded: RoundedQueries
    rows: Located | None  # the unrounded queries; None if they take too much memory to keep


@dataclass(frozen=True)
class _RoundedTile:
    tile: Tile
    rounded: RoundedRows
    rows: Located


def choose_instructions(search: NeighbourSearch) -> Instructions | None:
    """Return the instruction set for products of integers in this search.

    Return None if float32 is faster, or if the rows cannot be represented by integers.
    """
    name, whole = search.engine.resources.instructions, search.embedding.whole
    found = [] if name in ("float32", "int16") else available_instructions()
    usable = not whole.direct and 0 < whole.width <= MAX_WIDTH
    if not usable or not found:
        return None
    if name != "auto":
        return next(x for x in found if name in ("int8", type(x).__name__))
    if search.visit is not None and search.visit.ready.get(IN_FLOAT32):
        return None
    if search.words is not None and search.is_symmetric(search.engine.m) and search.fits_at_once():
        return None  # int16 is faster, because it multiplies each pair of rows only once
    work = float(len(search.sample.row)) * search.engine.m * whole.width
    return found[0] if work >= MIN_MULTIPLICATIONS else None


def cut_queries(n_queries: int, n_jobs: int) -> list[tuple[int, int]]:
    """Cut the queries into parts, several for each thread."""
    return spans(n_queries, int(np.clip(-(-n_queries // (4 * n_jobs)), MIN_PART, MAX_PART)))


def empty_queries(n: int, kind: Instructions, steps: int) -> RoundedQueries:
    """Return arrays for n queries, to which the caller writes."""
    n = -(-n // kind.queries) * kind.queries
    return RoundedQueries(
        np.zeros((n, WORD * steps), np.int8), np.zeros((n, 3), np.float32), np.zeros(n, np.int32), np.zeros(n)
    )


def make_slots(n: Array, kind: Instructions) -> tuple[Array, Array, Array]:
    """Assign rows, sorted by group, to slots in panels.

    A panel has `kind.lanes` slots, for rows of one group. If these rows do not fill its last panel, slots stay empty.
    Empty panels are added until the number of panels is a multiple of `kind.panels`.

    Parameters
    ----------
    n : the number of rows of each group

    Returns
    -------
    slots : the slot of each row
    row : the row in each slot, -1 for empty slots
    groups : the byte offset of each panel's group in an array of one float32 number per group
    """
    panels = -(-n // kind.lanes)
    ends = np.cumsum(panels)
    total = -(-int(ends[-1]) // kind.panels) * kind.panels
    slots = np.arange(n.sum()) + np.repeat(kind.lanes * (ends - panels) - (np.cumsum(n) - n), n)
    row, groups = np.full(total * kind.lanes, -1), np.zeros(total, np.int64)
    row[slots], groups[: ends[-1]] = np.arange(len(slots)), 4 * np.repeat(np.arange(len(n)), panels)
    return slots, row, groups


def find_candidates(kind: Instructions, rows: RoundedRows, queries: RoundedQueries, bound: Array) -> Array:
    """Return bit masks, (queries, panels), in which bit i is 1 if row i of the panel may be a neighbour of the query.

    A row is excluded if its lower bound of d² is larger than `bound`, the largest d² of a neighbour of the query in the
    group of the row.
    """
    limits = bound - queries.norm[: len(bound), None] * (1 - ERROR)
    padded = np.full((len(queries.ints), limits.shape[1]), -np.inf, np.float32)
    padded[: len(bound)] = limits + np.abs(limits) * (2 * UNIT_ROUNDOFF)  # rounded up to float32
    candidates = np.empty((len(queries.ints), len(rows.packed)), np.uint16)
    compare(kind, rows, queries, padded, CACHE_BYTES // rows.packed[0].nbytes, candidates)
    return candidates[: len(bound)]


def max_int8_share(width: int) -> float:
    """Return the share of candidates above which a search in int16 is faster than in int8, for rows of this width.

    Candidates are rows that lower bounds do not exclude, so their exact distances are computed. The times were measured
    for 200 to 3,000 columns.
    """
    # nanoseconds that a product takes longer in int16 than in int8, divided by the nanoseconds that a candidate takes
    return (3 + 0.0044 * width) / (60 + 0.3 * width)


def expect_share(n_best: int, candidates: Array, n_rows: int, m: int) -> float:
    """Return the expected share of candidates among m rows, from the candidates among the first `n_rows` rows.

    Candidates are rows that lower bounds do not exclude from the `n_best` nearest rows of a query. The estimate assumes
    that distances are normally distributed, and that each lower bound is the same number of standard deviations below
    its distance. This number follows from `candidates`. The more rows were compared before, the fewer of the next
    ones are candidates.
    """
    share = np.bitwise_count(candidates).sum() / len(candidates) / n_rows
    first, shifted = ndtri(np.clip([n_best / n_rows, share], 1e-9, 1 - 1e-9))
    n = np.linspace(n_rows, m, 32)
    return float(ndtr(ndtri(np.minimum(n_best / n, 1 - 1e-9)) + max(shifted - first, 0.0)).mean())


class RoundedSearch:
    """A search with rows rounded to integers.

    It updates the lists of neighbours and the bounds of a NeighbourSearch.
    """

    def __init__(self, search: NeighbourSearch, instructions: Instructions) -> None:
        self.search, self.engine, self.kind = search, search.engine, instructions
        self.whole = search.embedding.whole
        self.steps = -(-self.whole.width // WORD)
        self.is_forced = self.engine.resources.instructions != "auto"
        self.buffers = Buffers()

    def run(self) -> int:
        """Compare the queries with the rows from the first on; stop early if a search in float32 is faster.

        Return the number of rows compared; the caller must compare the remaining ones in float32 or int16.
        """
        m, s = self.engine.m, len(self.search.sample.row)
        most = max(self.engine.working_memory // 4 // self.whole.width, MIN_FIRST)
        for a, b in spans(s, most):
            done = self._compare_all(a, b)
            if done < m:
                return done if b == s == b - a else 0
        return m

    def _compare_all(self, first: int, last: int) -> int:
        """Do the same as `run`, but only for the queries from `first` to `last`."""
        m, n_jobs, engine = self.engine.m, self.engine.n_jobs, self.engine
        cut = [(first + a, first + b) for a, b in cut_queries(last - first, n_jobs)]
        parts, height = [self._round_part(cut[0])], self._height()
        done, seconds = 0, np.inf
        if not np.isfinite(self.search.bound[first:last, :, -1]).all() and not self.is_forced:
            done = min(m, int(np.clip(m * FIRST_SHARE, MIN_FIRST, MAX_FIRST)))
            words = self.search.words is not None
            half = 2 if self.search.is_symmetric(m) and not words else 1  # float32 would compute half of the products
            tile = self.search.tiles.make((0, done))
            seconds = self._compare_first(tile, parts) / n_jobs
            if self._expect_share(tile, parts[0]) > (max_int8_share(self.whole.width) if words else MAX_SHARE / half):
                self._note_float32()
                return 0
            parts += engine.map(self._round_part, cut[1:])
            seconds = (seconds + self._compare_first(tile, parts[1:])) / done / half
        else:
            parts += engine.map(self._round_part, cut[1:])
        size, rounds = max(done, MIN_FIRST), 0
        while done < m:
            start, stop = time.perf_counter(), min(done + size, m)
            cuts = [(done + a, done + b) for a, b in spans(stop - done, min(height, -(-(stop - done) // n_jobs)))]
            tiles = engine.map(lambda span: self._round_tile(self.search.tiles.make(span)), cuts)
            deque(engine.map(partial(self._compare, [x for x in tiles if x is not None]), parts), maxlen=0)
            took, rounds = (time.perf_counter() - start) / (stop - done), rounds + 1
            done, size = stop, min(2 * size, n_jobs * height)
            s = len(self.search.sample.row)
            engine.report((first * m + done * (last - first)) // s, m)
            if rounds == JUDGED_ROUND and took > seconds:
                self._note_float32()
                break
        return done

    def _note_float32(self) -> None:
        """Store that float32 was faster, so that the searches of later blocks use it from the start."""
        if self.search.visit is not None:
            self.search.visit.ready[IN_FLOAT32] = True

    def _expect_share(self, tile: Tile, part: _Part) -> float:
        """Return the expected share of candidates among all rows, estimated from some queries and the first tile."""
        rounded = self._round_tile(tile)
        if rounded is None:
            return 0.0
        n_best = self.search.search.size * self.search.n_groups
        return expect_share(n_best, self._find_candidates(rounded, part), len(tile.rows), self.engine.m)

    def _height(self) -> int:
        """Return the number of rows per tile. The tiles of all threads may use a quarter of the working memory."""
        copied = len(self.search.source.rows(np.arange(1), 0, 1)[0]) == 1
        row_bytes = self.whole.width + (8 * self.engine.n_features if copied else 0) + 2**8
        return int(np.clip(self.engine.working_memory // 4 // (self.engine.n_jobs * row_bytes), 16, HEIGHT))

    def _compare_first(self, tile: Tile, parts: list[_Part]) -> float:
        """Compare the first rows with the queries in float32; return how many seconds that took."""
        start = time.perf_counter()
        compare = self.search.compare_in_float32
        tasks = parts if len(tile.rows) else []
        deque(self.engine.map(lambda part: compare(part.lock, part.queries, tile), tasks), maxlen=0)
        self.search.verify_queue()
        return time.perf_counter() - start

    def _round_part(self, span: tuple[int, int]) -> _Part:
        """Return a part of the queries, rounded to integers."""
        queries = np.arange(*span)
        rounded = empty_queries(len(queries), self.kind, self.steps)
        found = self.search.queries.rows(self.search.place[queries], 0, self.engine.n_features)
        for a, b in self._cut(len(queries)):
            points = self._embed(found, a, b, rounded.norm)
            round_queries(points, self.kind.offset, rounded.ints[a:b], rounded.terms[a:b], rounded.shift[a:b])
        row_bytes = found[0].itemsize * self.engine.n_features
        fits = len(self.search.sample.row) * row_bytes <= self.engine.working_memory // 8
        is_copy = len(found[0]) == len(queries)
        return _Part(threading.Lock(), queries, rounded, found if fits or not is_copy else None)

    def _round_tile(self, tile: Tile) -> _RoundedTile | None:
        """Return the rows of a tile, rounded to integers and assigned to panels; None if the tile has no rows."""
        if not len(tile.rows):
            return None
        slots, row, groups = make_slots(np.diff(tile.groups), self.kind)
        packed = np.zeros((len(groups), self.steps, self.kind.lanes), np.uint32)
        rounded = RoundedRows(packed, np.zeros((4, len(row)), np.float32), groups, row)
        found = self.search.source.rows(tile.rows, 0, self.engine.n_features)
        norm = np.zeros(len(slots))
        for a, b in self._cut(len(slots)):
            points = self._embed(found, a, b, norm)
            round_rows(points, norm[a:b], slots[a:b], self.kind.levels, self.kind.offset, packed, rounded.terms)
        return _RoundedTile(tile, rounded, found)

    def _cut(self, n: int) -> list[tuple[int, int]]:
        return spans(n, max(1, POINTS_AT_ONCE // self.whole.width))

    def _embed(self, rows: Located, a: int, b: int, norm: Array) -> Array:
        """Return the rows a to b as float32 points, and write their squared norms to `norm`."""
        X, at, first = rows
        points = self.buffers.get("points", b - a, self.whole.width)
        dense.embed(X, at[a:b], first, self.whole.geometry, 1.0 / self.search.embedding.scale, points, norm[a:b])
        return points

    def _compare(self, tiles: list[_RoundedTile], part: _Part) -> None:
        """Search these tiles for neighbours of the queries of a part."""
        search, own = self.search, self.search.sample.row[part.queries]
        for x in tiles:
            candidates, tile = self._find_candidates(x, part), x.tile
            most = max(int(CROWDED * len(tile.rows)), 4 * search.search.size)
            room = max(2**14, 2 * most + 1)
            q, r = (self.buffers.get(name, room, dtype=np.int64) for name in ("query", "row"))
            crowded, start = np.zeros(len(part.queries), bool), 0
            while start < len(part.queries):
                count, start = collect(
                    candidates, self.kind.lanes, x.rounded.row, tile.ids, own, most, start, q, r, crowded
                )
                self._push(x, part, q[:count], r[:count])
            if crowded.any():
                search.compare_in_float32(part.lock, part.queries[crowded], tile)

    def _find_candidates(self, x: _RoundedTile, part: _Part) -> Array:
        with part.lock:
            bound = self.search.bound[part.queries[0] : part.queries[-1] + 1, :, -1].copy()
        return find_candidates(self.kind, x.rounded, part.rounded, bound)

    def _push(self, x: _RoundedTile, part: _Part, q: Array, r: Array) -> None:
        """Compute the exact distances of candidates, and update the lists of neighbours."""
        search, tile = self.search, x.tile
        d2 = np.zeros(len(q))
        X, at, a = part.rows or search.queries.rows(search.place[part.queries], 0, self.engine.n_features)
        Y, to, b = x.rows
        query_at, row_at = at[q], to[r]
        for piece in search.embedding.slices:
            dense.distances(X, query_at, a + piece.a, Y, row_at, b + piece.a, piece.geometry, d2)
        first, last = part.queries[0], part.queries[-1] + 1
        with part.lock:
            best = tuple(z[first:last] for z in (search.found.d2, search.found.key, search.found.row))
            push(best, q, r, d2, tile.group, tile.keys, tile.ids)
            bound = search.bound[first:last, :, -1]
            np.minimum(bound, best[0][:, :, -1] / search.embedding.scale**2 * (1 + TIE_MARGIN), out=bound)
