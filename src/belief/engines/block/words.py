"""Inner products of queries and rows that are rounded to int16, for searches whose products fit into memory.

    some columns of all rows ──embed, round──► int16 ──products of blocks of rows──► added to one float32 array

Each row is rounded only once. If every row is a query, each pair of rows is multiplied only once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from belief.data.source import Source
from belief.engines.block.rounded import MIN_MULTIPLICATIONS
from belief.engines.block.threads import spans
from belief.kernels import dense
from belief.kernels.embedding import Slice
from belief.kernels.instructions import WordInstructions, available_instructions, word_instructions
from belief.kernels.nearest import transpose
from belief.kernels.words import COLUMNS, RUN, error_of_products, multiply_words, pack_words, round_words
from belief.method.arrays import Array

if TYPE_CHECKING:
    from belief.engines.block.search import NeighbourSearch

HEIGHT = 240  # rows of a block: a multiple of the rows of all instruction sets
POINTS_AT_ONCE = 2**17  # coordinates that are embedded and then rounded, while they are in the CPU cache
MEMORY_SHARE = 16  # rounded rows use at most 1 / MEMORY_SHARE of the working memory
BYTES = 4  # bytes of a rounded number, which is stored twice as int16
Span = tuple[int, int]


def max_rows(working_memory: int) -> int:
    """Return the maximum number of queries plus rows for products in int16.

    `RUN` rounded columns of all these queries and rows must fit into memory at the same time.
    """
    return working_memory // (MEMORY_SHARE * BYTES * RUN)


def choose_words(search: NeighbourSearch) -> WordInstructions | None:
    """Return the instruction set for products in int16 in this search, or None.

    It is None if the search is small or has too many queries, if this CPU has no such instructions, or if some features
    cannot be embedded as points.
    """
    name, slices, s = search.engine.resources.instructions, search.embedding.slices, len(search.sample.row)
    if name not in ("auto", "int16") or any(x.direct for x in slices):
        return None
    if 2 * s > max_rows(search.engine.working_memory):
        return None
    work = float(s) * search.engine.m * sum(x.width for x in slices)
    return (
        word_instructions(available_instructions()) if work >= (MIN_MULTIPLICATIONS if name == "auto" else 1) else None
    )


@dataclass(frozen=True)
class _Rounded:
    """Some columns of some rows, rounded to int16. The arrays are reused for the next columns."""

    source: Source
    rows: Array
    ints: Array  # (rows, columns) int16
    packed: Array  # (panels, steps, lanes) int32, the same numbers
    scale: Array  # (runs, rows) float32
    norm: Array  # the squared norm of the columns so far, float64

    @classmethod
    def allocate(cls, source: Source, rows: Array, kind: WordInstructions, width: int) -> _Rounded:
        n, steps = -(-len(rows) // HEIGHT) * HEIGHT, -(-width // COLUMNS)
        ints, packed = (
            np.zeros((n, COLUMNS * steps), np.int16),
            np.zeros((n // kind.lanes, steps, kind.lanes), np.int32),
        )
        return cls(source, rows, ints, packed, np.zeros((-(-width // RUN), n), np.float32), np.zeros(len(rows)))


class WordProducts:
    """The inner products of queries and rows.

    Parameters
    ----------
    is_symmetric : whether the queries are the rows, in the same order
    """

    def __init__(
        self, search: NeighbourSearch, kind: WordInstructions, queries: Array, rows: Array, is_symmetric: bool
    ) -> None:
        self.engine, self.kind, self.is_symmetric = search.engine, kind, is_symmetric
        self.per_scale = 1.0 / search.embedding.scale
        self.error = np.inf  # bound of the error of d², as a share of the sum of both squared norms; set by `write_to`
        n = len(rows) + (0 if is_symmetric else len(queries))
        room = self.engine.working_memory // (MEMORY_SHARE * BYTES * n)
        self.slices = search.embedding.cut(max(room // RUN * RUN, RUN))
        width = max(x.width for x in self.slices)
        self.rows = _Rounded.allocate(search.source, rows, kind, width)
        self.queries = self.rows
        if not is_symmetric:
            self.queries = _Rounded.allocate(search.queries, search.place[queries], kind, width)

    def write_to(self, out: Array) -> Iterator[float]:
        """Write the products to `out`, and yield the share of the work done so far."""
        sides = [self.rows] if self.is_symmetric else [self.rows, self.queries]
        tasks = [(x, span) for x in sides for span in spans(len(x.rows), HEIGHT)]
        across, down = (spans(len(x.rows), HEIGHT) for x in (self.rows, self.queries))
        blocks = [(i, j) for j in across for i in down if not self.is_symmetric or i <= j]
        worst = 0.0
        for done, part in enumerate(self.slices, 1):

            def multiply(block: tuple[Span, Span], part: Slice = part) -> None:
                q, r = self.queries, self.rows
                multiply_words(self.kind, q.ints, r.packed, q.scale, r.scale, part.width, *block, part.a == 0, out)

            worst = max(worst, *self.engine.map(partial(self._round, part), tasks))
            deque(self.engine.map(multiply, blocks), maxlen=0)
            yield done / len(self.slices)
        if self.is_symmetric:

            def mirror(block: tuple[Span, Span]) -> None:
                i, j = (slice(*x) for x in block)
                transpose(out[i, j], out[j, i])

            deque(self.engine.map(mirror, [x for x in blocks if x[0] != x[1]]), maxlen=0)
        self.error = error_of_products(worst, sum(-(-x.width // RUN) for x in self.slices))

    def _round(self, part: Slice, task: tuple[_Rounded, Span]) -> float:
        x, (first, last) = task
        found, at, column = x.source.rows(x.rows[first:last], part.a, part.b)
        worst = 0.0
        for a, b in spans(last - first, max(1, POINTS_AT_ONCE // max(part.width, 1))):
            points, norm = np.empty((b - a, part.width), np.float32), x.norm[first + a : first + b]
            dense.embed(found, at[a:b], column, part.geometry, self.per_scale, points, norm)
            worst = max(worst, round_words(points, first + a, x.ints, x.scale))
        pack_words(x.ints.view(np.int32), first, last, -(-part.width // COLUMNS), x.packed)
        return worst
