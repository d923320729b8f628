"""The neighbour search of the dense engine: tiles of queries meet tiles of rows.

    two tiles ──embed──► float32 product ──scan──► candidates, which wait ──exact distances──► push into the best so far

Candidates wait until many tiles have been seen, and most of them turn out to be too far away to be worth an exact
distance. Where every row is a query, the tiles above the diagonal serve both ways. What is beside the data at any time
is a few tiles per thread and a bounded number of candidates, whatever the number of rows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from belief.data.source import Located
from belief.engines.block import threads
from belief.engines.block.threads import TILE, spans
from belief.engines.block.tiles import Tile, Tiles
from belief.kernels import dense
from belief.kernels.embedding import Embedding, Slice
from belief.kernels.nearest import narrow, push, scan, transpose
from belief.kernels.shapes import TIE_MARGIN
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit
from belief.method.sampling import Sample

if TYPE_CHECKING:
    from belief.engines.block.dense import DenseEngine

WAITING = 1024  # bytes of working memory for each candidate, or row of a tile, that waits for its exact distance


@dataclass(frozen=True)
class Candidates:
    """Rows r of a tile that may be among the nearest of the queries q, of a part whose lists have this lock."""

    lock: threading.Lock
    queries: Array
    tile: Tile
    q: Array
    r: Array
    low: Array  # d² is no less

    def __len__(self) -> int:
        return len(self.q) + len(self.tile.rows)


class NeighbourSearch:
    """One search: tiles of queries meet tiles of rows.

    A query is known by its place in the sample, a row by its place in the engine's data.
    """

    def __init__(
        self, engine: DenseEngine, sample: Sample, difference: Difference, search: Search, visit: Visit | None
    ) -> None:
        self.engine, self.source, self.search = engine, engine.source, search
        self.sample, self.visit = sample, visit
        self.embedding = Embedding(difference)
        self.n_groups = search.n_groups
        if visit is None:
            self.queries, self.place, self.first = engine.source, sample.row, 0
            self.found = Neighbours.zero(len(sample.row), self.n_groups, search.size)
        else:
            self.queries, self.place, self.first = visit.queries, np.arange(len(sample.row)), visit.first
            self.found = visit.found.copy()
        self.bound = self.found.d2 / self.embedding.scale**2 * (1 + TIE_MARGIN)  # of the nearest of each query, sorted
        self.tiles = Tiles(engine, self.embedding.slices, search, self.first)
        self.waiting: list[Candidates] = []
        self.most_waiting = engine.working_memory // WAITING
        # where every row is a query, they are not taken in the order of the sample
        in_order = visit is not None or len(sample.row) < engine.m
        width = sum(x.width for x in self.embedding.slices)
        fits = 4 * len(sample.row) * width <= engine.working_memory // 16
        held = visit.ready if visit else {}
        self.ready: dict[Any, Any] | None = held if in_order and fits else None  # the queries embedded
        self.own = threading.local()  # buffers of a thread
        self.lock = threading.Lock()
        self.height = self._height()

    def run(self) -> Neighbours:
        """Search. Where all products fit, they are made first, and each query sees all rows at once.

        Not where queries visit one block after another: they bring limits that leave few rows to look at.
        """
        m, s = self.engine.m, len(self.sample.row)
        if self.visit is None and 4 * s * m <= self.engine.working_memory // 4:
            self._all_at_once(self.tiles.of((0, m)))
        elif self._symmetric(m):
            self._every_row()
        else:
            self._tile_by_tile()
        deque(self.engine.map(self._settle, self.waiting), maxlen=0)
        return self.found.with_targets(self.first, self.engine.targets, self.visit.found if self.visit else None)

    def _symmetric(self, n_rows: int) -> bool:
        """Whether every row is a query too, and none was left out."""
        return self.visit is None and len(self.sample.row) == self.engine.m == n_rows > threads.SMALL

    def _queries_at(self, rows: Array) -> Array:
        """Which queries these rows are, where every row is one."""
        return np.argsort(self.sample.row)[rows]

    def _all_at_once(self, tile: Tile) -> None:
        symmetric = self._symmetric(len(tile.rows))
        queries = self._queries_at(tile.rows) if symmetric else np.arange(len(self.sample.row))
        whole = np.empty((len(queries), len(tile.rows)), np.float32)
        nq, nr = np.zeros(len(queries)), np.zeros(len(tile.rows))
        across, down = spans(len(tile.rows), self.height), spans(len(queries), self.height)

        def multiply(meeting: tuple[tuple[int, int], tuple[int, int]]) -> None:
            i, j = (slice(*x) for x in meeting)
            product, nq[i], nr[j] = self._product(queries[i], tile.rows[j], whole[i, j], same=symmetric and i == j)
            if symmetric and i != j:
                transpose(product, whole[j, i])

        def choose(span: tuple[int, int]) -> None:
            i = slice(*span)
            self._choose(self.lock, queries[i], tile, whole[i], nq[i], nr)

        self._work(multiply, [(i, j) for j in across for i in down if not symmetric or i <= j])
        for _ in self.engine.map(choose, spans(len(queries), -(-len(queries) // (4 * self.engine.n_jobs)))):
            pass

    def _tile_by_tile(self) -> None:
        """Fewer queries than rows: each tile of rows meets all queries, and is forgotten."""
        parts = [np.arange(a, b) for a, b in spans(len(self.sample.row), self.height)]
        locks = [threading.Lock() for _ in parts]

        def meet(span: tuple[int, int]) -> None:
            tile = self.tiles.of(span)
            for queries, lock in zip(parts, locks, strict=True) if len(tile.rows) else ():
                product, nq, nr = self._product(
                    queries, tile.rows, self._buffer("product", len(queries), len(tile.rows))
                )
                self._choose(lock, queries, tile, product, nq, nr)

        self._work(meet, spans(self.engine.m, self.height))

    def _every_row(self) -> None:
        """Every row is a query: two tiles meet once, and serve both ways, unless copies of rows were left out."""
        tiles = list(self.engine.map(self.tiles.of, spans(self.engine.m, self.height)))
        if not self._symmetric(sum(len(t.rows) for t in tiles)):
            self._tile_by_tile()
            return
        queries = [self._queries_at(tile.rows) for tile in tiles]
        locks = [threading.Lock() for _ in tiles]

        def meet(meeting: tuple[int, int]) -> None:
            i, j = meeting
            n, others = len(queries[i]), tiles[j].rows
            product, nq, nr = self._product(queries[i], others, self._buffer("product", n, len(others)), same=i == j)
            self._choose(locks[i], queries[i], tiles[j], product, nq, nr)
            if i != j:
                mirrored = self._buffer("more", len(others), n)
                transpose(product, mirrored)
                self._choose(locks[j], queries[j], tiles[i], mirrored, nr, nq)

        self._work(meet, [(i, j) for j in range(len(tiles)) for i in range(j + 1)])

    def _work(self, task: Callable[[Any], None], meetings: list[Any]) -> None:
        """Do all meetings of tiles, and say how far it has come, in rows."""
        m = self.engine.m
        for done, _ in enumerate(self.engine.map(task, meetings), 1):
            self.engine.report(m * done // len(meetings), m)

    def _height(self) -> int:
        """Rows of a tile: within the working memory, and small enough that every thread gets several."""
        widest = max(x.width for x in self.embedding.slices)
        # a thread holds a product, its copy, and two embedded tiles, of float32
        room = self.engine.working_memory / (2 * self.engine.n_jobs * 4)
        most = int((np.sqrt(widest**2 + 2 * room) - widest) / 2)  # 2·most² + 2·most·widest = room
        wanted = max(512, -(-self.engine.m // (4 * self.engine.n_jobs))) if self.engine.n_jobs > 1 else TILE
        return max(min(TILE, most, wanted), 1)

    def _product(self, queries: Array, rows: Array, product: Array, same: bool = False) -> tuple[Array, Array, Array]:
        """The inner products of the embedded rows of two tiles, and their squared norms.

        Where both are the same rows, BLAS computes half of the product.
        """
        nq, nr = np.zeros(len(queries)), np.zeros(len(rows))
        for t, part in enumerate(self.embedding.slices):
            Q = self.queries.rows(self.place[queries], part.a, part.b)
            R = self.source.rows(rows, part.a, part.b)
            q = self._points(t, part, queries, Q, nq)
            r = q if same else self._embed("rows", R, part, nr)
            if t == 0:
                np.matmul(q, r.T, out=product)
            else:
                product += np.matmul(q, r.T, out=self._buffer("more", len(queries), len(rows)))
            if part.direct:
                dense.match(*Q, *R, part.geometry, self.embedding.scale**-2, product)
        return product, nq, nq if same else nr

    def _points(self, t: int, part: Slice, queries: Array, Q: Located, norm: Array) -> Array:
        """The queries embedded, once for all rows that they meet if there is room."""
        if self.ready is None:
            return self._embed("queries", Q, part, norm)
        with self.lock:
            if t not in self.ready:
                every = len(self.sample.row)
                points, norms = np.empty((every, part.width), np.float32), np.zeros(every)
                whole = self.queries.rows(self.place, part.a, part.b)
                dense.embed(*whole, part.geometry, 1.0 / self.embedding.scale, points, norms)
                self.ready[t] = points, norms
        points, norms = self.ready[t]
        mine = slice(int(queries[0]), int(queries[-1]) + 1)
        norm += norms[mine]
        return points[mine]

    def _embed(self, name: str, rows: Located, part: Slice, norm: Array) -> Array:
        out = self._buffer(name, len(rows[1]), part.width)
        dense.embed(*rows, part.geometry, 1.0 / self.embedding.scale, out, norm)
        return out

    def _buffer(self, name: str, n: int, width: int) -> Array:
        """A float32 array of this thread's own, used again from tile to tile."""
        held = getattr(self.own, name, None)
        if held is None or held.size < n * width:
            held = np.empty(n * width, np.float32)
            setattr(self.own, name, held)
        return held[: n * width].reshape(n, width)

    def _choose(self, lock: threading.Lock, queries: Array, tile: Tile, product: Array, nq: Array, nr: Array) -> None:
        """Let those rows of the tile wait that may be among the neighbours of these queries."""
        error = self.embedding.error
        low = (((1 - error) * nq), ((1 - error) * nr).astype(np.float32))
        gap = (2 * error * nq, 2 * error * nr)
        column = _column_of(self.sample.row[queries], tile.ids)
        room = max(min(8 * self.search.size * self.n_groups * len(queries), self.most_waiting), len(tile.rows))
        buffers = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        start = 0
        while start < len(queries):
            with lock:
                limit = self.bound[queries, :, -1]
            n, start = scan(
                product, (low[0], gap[0]), (low[1], gap[1]), tile.groups, column, limit, self.search.size, start,
                *buffers,
            )  # fmt: skip
            q, r, least = (x[:n].copy() for x in buffers)
            with lock:
                narrow(self.bound, queries[q], tile.group[r], (least + gap[0][q] + gap[1][r]) * (1 + TIE_MARGIN))
            self._wait(Candidates(lock, queries, tile, q, r, least))

    def _wait(self, candidates: Candidates) -> None:
        """Let them wait; who makes them too many settles all."""
        with self.lock:
            self.waiting.append(candidates)
            full = sum(map(len, self.waiting)) > self.most_waiting
            ready, self.waiting = (self.waiting, []) if full else ([], self.waiting)
        for x in ready:
            self._settle(x)

    def _settle(self, x: Candidates) -> None:
        """Put those that are still wanted among the neighbours, by their exact distances."""
        with x.lock:
            near = x.low <= self.bound[x.queries[x.q], x.tile.group[x.r], -1]
        q, r = x.q[near], x.r[near]
        d2 = self._distances(x.queries, q, x.tile.rows, r)
        with x.lock:
            best = (self.found.d2, self.found.key, self.found.row)
            push(best, x.queries[q], x.tile.group[r], d2, x.tile.keys[r], x.tile.ids[r])

    def _distances(self, queries: Array, q: Array, rows: Array, r: Array) -> Array:
        """The exact d² of the pairs (queries[q], rows[r])."""
        d2 = np.zeros(len(q))
        for part in self.embedding.slices if len(q) else ():
            X, at, a = self.queries.rows(self.place[queries], part.a, part.b)
            Y, to, b = self.source.rows(rows, part.a, part.b)
            dense.distances(X, at[q], a, Y, to[r], b, part.geometry, d2)
        return d2


def _column_of(queries: Array, rows: Array) -> Array:
    """Where each query stands among the rows, -1 where it does not."""
    low = rows.min()
    place = np.full(rows.max() - low + 2, -1)  # by number; the last one is of no row
    place[rows - low] = np.arange(len(rows))
    at = queries - low
    return place[np.where((at >= 0) & (at < len(place)), at, -1)]
