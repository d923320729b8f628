"""The neighbour search of the engine for dense rows. It compares tiles of queries with tiles of rows.

    two tiles ──embed──► float32 product ──scan──► queued candidates ──exact distances──► push into the best so far

Candidates are queued until many tiles have been scanned, because by then most of them are known to be too far away and
need no exact distance. If every row is a query, only the tiles on and above the diagonal are computed. The memory
overhead is a few tiles per thread and a bounded number of candidates, whatever the number of rows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from belief.data.source import Located, as_slice
from belief.engines.block.rounded import RoundedSearch, choose_instructions
from belief.engines.block.threads import TILE, Buffers, spans
from belief.engines.block.tiles import Tile, Tiles
from belief.engines.block.words import WordProducts, choose_words, max_rows
from belief.kernels import dense
from belief.kernels.embedding import Embedding, Slice
from belief.kernels.instructions import WordInstructions
from belief.kernels.nearest import narrow, push, scan, transpose
from belief.kernels.shapes import TIE_MARGIN
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit
from belief.method.sampling import Sample

if TYPE_CHECKING:
    from belief.engines.block.dense import DenseEngine

# Products in int16 that are computed at a time, so that they stay in the CPU cache. Symmetric searches compute more.
MAX_PRODUCTS = 2**23
PRODUCTS_PER_DISTANCE = 20  # products of two rows in int16 that take as long as one exact distance
BYTES_PER_CANDIDATE = 1024  # working memory for each queued candidate and each row of a queued tile


@dataclass(frozen=True)
class Candidates:
    """Pairs of a query and a row of a tile that may be neighbours.

    q and r are positions in `queries` and in the tile. The lock protects the lists of neighbours of these queries.
    """

    lock: threading.Lock
    queries: Array
    tile: Tile
    q: Array
    r: Array
    low: Array  # lower bounds of d²

    def __len__(self) -> int:
        return len(self.q) + len(self.tile.rows)


class NeighbourSearch:
    """One neighbour search: its queries and rows, and the lists of neighbours that it fills.

    Queries are numbered by their position in the sample, and rows by their position in the engine's data.
    """

    def __init__(
        self, engine: DenseEngine, sample: Sample, difference: Difference, search: Search, visit: Visit | None
    ) -> None:
        self.engine, self.source, self.search = engine, engine.source, search
        self.sample, self.visit = sample, visit
        self.embedding = Embedding(difference)
        self.before_verification = 1.0  # share of the work before the exact distances, for progress reports
        self.error = self.embedding.error  # bound of the error of d², as a share of the sum of both squared norms
        self.n_groups = search.n_groups
        if visit is None:
            self.queries, self.place, self.first = engine.source, sample.row, 0
        else:
            self.queries, self.place, self.first = visit.queries, np.arange(len(sample.row)), visit.first
        self._reset()
        self.tiles = Tiles(engine, self.embedding.slices, search, self.first)
        self.max_queued = engine.working_memory // BYTES_PER_CANDIDATE
        self.max_products = engine.working_memory // 16
        # if every row is a query, the queries are not processed in the order of the sample
        in_order = visit is not None or len(sample.row) < engine.m
        width = sum(x.width for x in self.embedding.slices)
        fits = 4 * len(sample.row) * width <= engine.working_memory // 16
        cache = visit.ready if visit else {}
        self.ready: dict[Any, Any] | None = cache if in_order and fits else None  # embedded queries, kept for all tiles
        self.buffers = Buffers()
        self.lock = threading.Lock()
        self.locks: dict[int, threading.Lock] = {}  # one for each part of the queries that `_choose_all` processes
        # the number of rows per tile: tiles must fit into the working memory, and each thread needs several
        widest = max(x.width for x in self.embedding.slices)
        # each thread needs a product, a copy of it, and two embedded tiles, all float32
        room = engine.working_memory / (2 * engine.n_jobs * 4)
        most = int((np.sqrt(widest**2 + 2 * room) - widest) / 2)  # 2·most² + 2·most·widest = room
        wanted = max(512, -(-engine.m // (4 * engine.n_jobs))) if engine.n_jobs > 1 else TILE
        self.height = max(min(TILE, most, wanted), 1)
        self.words = choose_words(self)

    def _reset(self) -> None:
        """Discard the results of all comparisons so far."""
        if self.visit is None:
            self.found = Neighbours.zero(len(self.sample.row), self.n_groups, self.search.size)
        else:
            self.found = self.visit.found.copy()
        # upper bounds of d² to the nearest rows of each query, sorted
        self.bound = self.found.d2 / self.embedding.scale**2 * (1 + TIE_MARGIN)
        self.queue, self.n_queued = list[Candidates](), 0

    def run(self) -> Neighbours:
        m = self.engine.m
        instructions = choose_instructions(self)
        done = RoundedSearch(self, instructions).run() if instructions is not None else 0
        if done < m:
            if not done or (self.words is None and self.is_symmetric(m)):
                self._reset()  # starting again, and multiplying each pair of rows once, is faster than continuing
                done = 0
            self.verify_queue()  # the queue must be empty, because the next search uses other locks
            if self.words is not None:
                self._search_by_words(self.words, done)
            elif not done and self.fits_at_once():
                self._search_all_at_once(self.tiles.make((0, m)))
            elif not done and self.is_symmetric(m):
                self._search_symmetric()
            else:
                self._search_by_tiles(done)
        self.verify_queue()
        return self.found.with_targets(self.first, self.engine.targets, self.visit.found if self.visit else None)

    def fits_at_once(self) -> bool:
        """Return True if the products of all queries with all rows are computed first, because they fit into memory.

        Queries that were compared with earlier blocks are searched tile by tile, because the bounds from these blocks
        exclude most rows.
        """
        return self.visit is None and len(self.sample.row) * self.engine.m <= self.max_products

    def _search_by_words(self, kind: WordInstructions, first: int) -> None:
        """Compare all queries with the rows from `first` on in int16, as many rows at a time as the memory allows."""
        m, s = self.engine.m, len(self.sample.row)
        is_half = self.is_symmetric(m) and self.fits_at_once()
        work = m / 2 if is_half else m  # products per query; each exact distance takes as long as several products
        self.before_verification = work / (work + PRODUCTS_PER_DISTANCE * self.search.size * self.n_groups)
        most = self.max_products if is_half else MAX_PRODUCTS
        height = max(min(m - first, most // s, max_rows(self.engine.working_memory) - s), 1)
        room = np.empty(s * height, np.float32)
        for a, b in spans(m - first, height):
            tile = self.tiles.make((first + a, first + b))
            if not len(tile.rows):
                continue
            symmetric = self.is_symmetric(len(tile.rows))
            queries = self._queries_at(tile.rows) if symmetric else np.arange(s)
            whole = room[: s * len(tile.rows)].reshape(s, -1)
            products = WordProducts(self, kind, queries, tile.rows, symmetric)
            for share in products.write_to(whole):
                self.engine.report(int((first + a + share * (b - a)) * self.before_verification), m)
            self.error = products.error
            self._choose_all(queries, tile, whole, products.queries.norm, products.rows.norm, height < m)

    def is_symmetric(self, n_rows: int) -> bool:
        """Return True if every row is a query, so that the product of two rows serves both rows.

        This is False if copies of rows were dropped, or if there are few rows.
        """
        return self.visit is None and len(self.sample.row) == self.engine.m == n_rows > self.engine.resources.small_rows

    def _queries_at(self, rows: Array) -> Array:
        """Return the positions of these rows in the sample. Every row must be a query."""
        return np.argsort(self.sample.row)[rows]

    def _search_all_at_once(self, tile: Tile) -> None:
        symmetric = self.is_symmetric(len(tile.rows))
        queries = self._queries_at(tile.rows) if symmetric else np.arange(len(self.sample.row))
        whole = np.empty((len(queries), len(tile.rows)), np.float32)
        nq, nr = np.zeros(len(queries)), np.zeros(len(tile.rows))
        across, down = spans(len(tile.rows), self.height), spans(len(queries), self.height)

        def multiply(pair: tuple[tuple[int, int], tuple[int, int]]) -> None:
            i, j = (slice(*x) for x in pair)
            product, nq[i], nr[j] = self._product(queries[i], tile.rows[j], whole[i, j], same=symmetric and i == j)
            if symmetric and i != j:
                transpose(product, whole[j, i])

        self._run_tasks(multiply, [(i, j) for j in across for i in down if not symmetric or i <= j])
        self._choose_all(queries, tile, whole, nq, nr)

    def _choose_all(
        self, queries: Array, tile: Tile, product: Array, nq: Array, nr: Array, narrows: bool = False
    ) -> None:
        """Queue the rows of the tile that may be neighbours of the queries. Each thread takes a part of the queries."""

        def choose(part: int) -> None:
            i = slice(part * height, (part + 1) * height)
            lock = self.locks.setdefault(part, threading.Lock())
            self._choose(lock, queries[i], tile, product[i], nq[i], nr, narrows)

        height = -(-len(queries) // (4 * self.engine.n_jobs))
        deque(self.engine.map(choose, range(-(-len(queries) // height))), maxlen=0)

    def compare_in_float32(self, lock: threading.Lock, queries: Array, tile: Tile) -> None:
        for a, b in spans(len(tile.rows), self.height):
            for i, j in spans(len(queries), self.height):
                some, piece = queries[i:j], tile.part(a, b)
                product, nq, nr = self._product(some, piece.rows, self.buffers.get("product", j - i, b - a))
                self._choose(lock, some, piece, product, nq, nr)

    def _search_by_tiles(self, first: int = 0) -> None:
        """Compare all queries with the rows from `first` on, tile by tile."""
        parts = [np.arange(a, b) for a, b in spans(len(self.sample.row), self.height)]
        locks = [threading.Lock() for _ in parts]

        def compare(span: tuple[int, int]) -> None:
            tile = self.tiles.make(span)
            for queries, lock in zip(parts, locks, strict=True) if len(tile.rows) else ():
                product, nq, nr = self._product(
                    queries, tile.rows, self.buffers.get("product", len(queries), len(tile.rows))
                )
                self._choose(lock, queries, tile, product, nq, nr)

        self._run_tasks(compare, [(first + a, first + b) for a, b in spans(self.engine.m - first, self.height)])

    def _search_symmetric(self) -> None:
        """Compare each pair of tiles once, for the queries of both tiles.

        If copies of rows are dropped, search tile by tile instead.
        """
        tiles = list(self.engine.map(self.tiles.make, spans(self.engine.m, self.height)))
        if not self.is_symmetric(sum(len(t.rows) for t in tiles)):
            self._search_by_tiles()
            return
        queries = [self._queries_at(tile.rows) for tile in tiles]
        locks = [threading.Lock() for _ in tiles]

        def compare(pair: tuple[int, int]) -> None:
            i, j = pair
            n, others = len(queries[i]), tiles[j].rows
            product = self.buffers.get("product", n, len(others))
            product, nq, nr = self._product(queries[i], others, product, same=i == j)
            self._choose(locks[i], queries[i], tiles[j], product, nq, nr)
            if i != j:
                mirrored = self.buffers.get("more", len(others), n)
                transpose(product, mirrored)
                self._choose(locks[j], queries[j], tiles[i], mirrored, nr, nq)

        self._run_tasks(compare, [(i, j) for j in range(len(tiles)) for i in range(j + 1)])

    def _run_tasks(self, task: Callable[[Any], None], arguments: list[Any]) -> None:
        """Run a task for each argument, in threads, and report the progress in rows."""
        m = self.engine.m
        for done, _ in enumerate(self.engine.map(task, arguments), 1):
            self.engine.report(m * done // len(arguments), m)

    def _product(self, queries: Array, rows: Array, product: Array, same: bool = False) -> tuple[Array, Array, Array]:
        """Embed queries and rows as points; return their inner products, and the squared norms of both.

        With `same`, the queries are the rows, and BLAS computes only half of the products.
        """
        nq, nr = np.zeros(len(queries)), np.zeros(len(rows))
        for t, part in enumerate(self.embedding.slices):
            Q = self.queries.rows(self.place[queries], part.a, part.b)
            R = self.source.rows(rows, part.a, part.b)
            q = self._embed_queries(t, part, queries, Q, nq)
            r = q if same else self._embed("rows", R, part, nr)
            if t == 0:
                np.matmul(q, r.T, out=product)
            else:
                product += np.matmul(q, r.T, out=self.buffers.get("more", len(queries), len(rows)))
            if part.direct:
                dense.add_matches(*Q, *R, part.geometry, self.embedding.scale**-2, product)
        return product, nq, nq if same else nr

    def _embed_queries(self, t: int, part: Slice, queries: Array, Q: Located, norm: Array) -> Array:
        """Return the embedded coordinates of some queries. If all queries fit into memory, all are embedded once."""
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
        mine = as_slice(queries)
        norm += norms[mine]
        return points[mine]

    def _embed(self, name: str, rows: Located, part: Slice, norm: Array) -> Array:
        out = self.buffers.get(name, len(rows[1]), part.width)
        dense.embed(*rows, part.geometry, 1.0 / self.embedding.scale, out, norm)
        return out

    def _choose(
        self,
        lock: threading.Lock,
        queries: Array,
        tile: Tile,
        product: Array,
        nq: Array,
        nr: Array,
        narrows: bool = True,
    ) -> None:
        """Queue the rows of the tile that may be neighbours of these queries, given products and squared norms.

        With `narrows`, also lower the bounds of the queries, which excludes more rows of other tiles.
        """
        error = self.error
        low = (((1 - error) * nq), ((1 - error) * nr).astype(np.float32))
        gap = (2 * error * nq, 2 * error * nr)
        # the position of each query among the rows; -1 if the query is not among them
        lowest = tile.ids.min()
        place = np.full(tile.ids.max() - lowest + 2, -1)  # by row id; the last entry is for queries that are not rows
        place[tile.ids - lowest] = np.arange(len(tile.ids))
        at = self.sample.row[queries] - lowest
        column = place[np.where((at >= 0) & (at < len(place)), at, -1)]
        room = max(min(8 * self.search.size * self.n_groups * len(queries), self.max_queued), len(tile.rows))
        buffers = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        start = 0
        while start < len(queries):
            with lock:
                limit = self.bound[queries, :, -1]
            n, start = scan(
                product, (low[0], gap[0]), (low[1], gap[1]), tile.groups, column, limit, self.search.size, start,
                *buffers,
            )  # fmt: skip
            q, r, lower = (x[:n].copy() for x in buffers)
            if narrows:
                upper = (lower + gap[0][q] + gap[1][r]) * (1 + TIE_MARGIN)
                with lock:
                    narrow(self.bound, queries[q], tile.group[r], upper)
            ready, candidates = list[Candidates](), Candidates(lock, queries, tile, q, r, lower)
            with self.lock:
                self.queue.append(candidates)
                self.n_queued += len(candidates)
                if self.n_queued > self.max_queued:
                    ready, self.queue, self.n_queued = self.queue, [], 0
            for x in ready:
                self._verify(x)

    def verify_queue(self) -> None:
        """Compute the exact distances of all queued candidates, and update the lists of neighbours."""
        ready, self.queue, self.n_queued = self.queue, [], 0
        m, before = self.engine.m, self.before_verification
        for done, _ in enumerate(self.engine.map(self._verify, ready), 1):
            if before < 1:
                self.engine.report(int(m * (before + (1 - before) * done / len(ready))), m)

    def _verify(self, x: Candidates) -> None:
        """Compute the exact distances of the candidates within the bounds, and update the lists of neighbours."""
        with x.lock:
            possible = x.low <= self.bound[x.queries[x.q], x.tile.group[x.r], -1]
        q, r = x.q[possible], x.r[possible]
        d2 = np.zeros(len(q))
        for part in self.embedding.slices if len(q) else ():
            X, at, a = self.queries.rows(self.place[x.queries], part.a, part.b)
            Y, to, b = self.source.rows(x.tile.rows, part.a, part.b)
            dense.distances(X, at[q], a, Y, to[r], b, part.geometry, d2)
        with x.lock:
            best = (self.found.d2, self.found.key, self.found.row)
            push(best, x.queries[q], r, d2, x.tile.group, x.tile.keys, x.tile.ids)
