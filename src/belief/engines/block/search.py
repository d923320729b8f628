"""The neighbour search of the dense engine: tiles of queries meet tiles of rows.

    two tiles ──embed──► float32 product ──scan──► candidates ──exact distances──► push into the best so far

Where every row is a query, the tiles above the diagonal serve both ways. What is beside the data at any time is a few
tiles per thread, whatever the number of rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from belief.data.source import Located
from belief.engines.block import threads
from belief.engines.block.threads import TILE, spans
from belief.kernels import dense
from belief.kernels.embedding import Embedding, Slice
from belief.kernels.nearest import push, scan, transpose
from belief.kernels.shapes import TIE_MARGIN
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit
from belief.method.sampling import TIES, Sample, key

if TYPE_CHECKING:
    from belief.engines.block.dense import DenseEngine


@dataclass(frozen=True)
class Tile:
    """Rows of the data in the order of their groups, and where each group begins."""

    rows: Array
    groups: Array


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
        self.own = threading.local()  # buffers of a thread
        self.lock = threading.Lock()
        self.height = self._height()

    def run(self) -> Neighbours:
        """Search. Where all products fit, they are made first, and each query sees all rows at once.

        Not where queries visit one block after another: they bring limits that leave few rows to look at.
        """
        m, s = self.engine.m, len(self.sample.row)
        if self.visit is None and 4 * s * m <= self.engine.working_memory // 4:
            self._all_at_once(self._tile((0, m)))
        elif self._symmetric(m):
            self._every_row()
        else:
            self._tile_by_tile()
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
            tile = self._tile(span)
            for queries, lock in zip(parts, locks, strict=True) if len(tile.rows) else ():
                product, nq, nr = self._product(
                    queries, tile.rows, self._buffer("product", len(queries), len(tile.rows))
                )
                self._choose(lock, queries, tile, product, nq, nr)

        self._work(meet, spans(self.engine.m, self.height))

    def _every_row(self) -> None:
        """Every row is a query: two tiles meet once, and serve both ways, unless copies of rows were left out."""
        tiles = list(self.engine.map(self._tile, spans(self.engine.m, self.height)))
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

    def _tile(self, span: tuple[int, int]) -> Tile:
        """The rows of a span by group, without those of which too many copies have a smaller key to ever be wanted."""
        ids = np.arange(*span)
        if self.engine.counted is not None:
            ids = ids[self.engine.counted[slice(*span)]]
        ids = self._drop_copies(ids[np.argsort(self._group(ids), kind="stable")])
        return Tile(ids, np.searchsorted(self._group(ids), np.arange(self.n_groups + 1)))

    def _group(self, ids: Array) -> Array:
        return self.engine.targets[ids] if self.n_groups > 1 else np.zeros(len(ids), np.int32)

    def _drop_copies(self, ids: Array) -> Array:
        """Of identical rows of a group, the size + 1 with the smallest keys are enough: + 1 for the query itself."""
        if len(ids) <= threads.SMALL:
            return ids
        h = np.zeros(len(ids), np.int64)
        for part in self.embedding.slices:
            X, rows, a = self.source.rows(ids, part.a, part.b)
            multiplier = key(0, 2, np.arange(part.a, part.b)).view(np.int64) | 1
            dense.hashes(_bits(X), rows, a, multiplier, h)
        group = self._group(ids)
        keys = key(self.search.seed, TIES, ids + self.first)
        order = np.lexsort((keys, h, group))
        new = np.r_[True, (h[order][1:] != h[order][:-1]) | (group[order][1:] != group[order][:-1])]
        start = np.maximum.accumulate(np.where(new, np.arange(len(ids)), 0))
        surplus = np.flatnonzero(np.arange(len(ids)) - start > self.search.size)
        if not len(surplus):
            return ids
        same = self._identical(ids[order[surplus]], ids[order[start[surplus]]])  # a hash is not a proof
        return np.delete(ids, order[surplus[same]])

    def _identical(self, ids: Array, others: Array) -> Array:
        same = np.ones(len(ids), bool)
        for part in self.embedding.slices:
            X, rows, a = self.source.rows(ids, part.a, part.b)
            Y, at, b = self.source.rows(others, part.a, part.b)
            n = part.b - part.a
            same &= np.all(_bits(X)[rows, a : a + n] == _bits(Y)[at, b : b + n], axis=1)
        return same

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
        """The queries embedded; those that visit block after block, once for all."""
        every = len(self.sample.row)
        if self.visit is None or 4 * every * part.width > self.engine.working_memory // 16:
            return self._embed("queries", Q, part, norm)
        if t not in self.visit.ready:
            points, norms = np.empty((every, part.width), np.float32), np.zeros(every)
            whole = self.queries.rows(self.place, part.a, part.b)
            dense.embed(*whole, part.geometry, 1.0 / self.embedding.scale, points, norms)
            self.visit.ready[t] = points, norms
        points, norms = self.visit.ready[t]
        mine = slice(int(queries[0]), int(queries[-1]) + 1)  # queries are taken in the order of the sample
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
        """Put those rows of the tile that belong there among the neighbours of these queries."""
        error, square = self.embedding.error, self.embedding.scale**2
        low = (((1 - error) * nq), ((1 - error) * nr).astype(np.float32))
        gap = (2 * error * nq, 2 * error * nr)
        ids = tile.rows + self.first
        column = _column_of(self.sample.row[queries], ids)
        keys = key(self.search.seed, TIES, ids)
        group_of = np.repeat(np.arange(self.n_groups), np.diff(tile.groups))
        room = max(min(8 * self.search.size * self.n_groups * len(queries), 2**20), len(tile.rows))
        found_query, found_row = np.empty(room, np.int64), np.empty(room, np.int64)
        start = 0
        while start < len(queries):
            with lock:
                limit = self.found.d2[queries, :, -1] / square * (1 + TIE_MARGIN)
            n, start = scan(
                product, (low[0], gap[0]), (low[1], gap[1]), tile.groups, column, limit, self.search.size, start,
                found_query, found_row,
            )  # fmt: skip
            q, r = found_query[:n], found_row[:n]
            d2 = self._distances(queries, q, tile.rows, r)
            with lock:
                best = (self.found.d2, self.found.key, self.found.row)
                push(best, queries[q], group_of[r], d2, keys[r], ids[r])

    def _distances(self, queries: Array, q: Array, rows: Array, r: Array) -> Array:
        """The exact d² of the pairs (queries[q], rows[r])."""
        d2 = np.zeros(len(q))
        for part in self.embedding.slices if len(q) else ():
            X, at, a = self.queries.rows(self.place[queries], part.a, part.b)
            Y, to, b = self.source.rows(rows, part.a, part.b)
            dense.distances(X, at[q], a, Y, to[r], b, part.geometry, d2)
        return d2


def _bits(X: Array) -> Array:
    return X.view(np.int64 if X.dtype == np.float64 else np.int32)


def _column_of(queries: Array, rows: Array) -> Array:
    """Where each query stands among the rows, -1 where it does not."""
    order = np.argsort(rows)
    at = order[np.minimum(np.searchsorted(rows, queries, sorter=order), len(rows) - 1)]
    return np.where(rows[at] == queries, at, -1)
