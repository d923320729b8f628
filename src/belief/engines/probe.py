"""Searches of the probe (the small part of the rows on which features are tested), in threads of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from belief._utils.lazy import importing
from belief.engines.block.threads import Threads
from belief.engines.resources import Report, ignore_progress
from belief.method.arrays import Array
from belief.method.partials import Tally
from belief.method.probe import ProbeTarget, Scores, squared_distances

if TYPE_CHECKING:
    from belief.kernels.instructions import Instructions

R = TypeVar("R")
COLUMNS_PER_TASK = 256
MULTIPLIED_COLUMNS = 16_384  # columns per task; even with the largest scores, their sums of products stay below 2^31
WORD = 4  # columns that are multiplied at once


class ProbeSearch:
    """Searches and sums on the probe with compiled kernels; see `LocalSearch` in `belief.method.probe`."""

    def __init__(self, pool: Threads, report: Report = ignore_progress) -> None:
        self._pool, self._report = pool, report
        self._done = self._begun = 0  # steps of all tests so far; the total is unknown, as later tests depend on these
        with importing():
            from belief.kernels import instructions, probe
        self._kernels, self._kind = probe, next(iter(instructions.exact_instructions()), None)

    def map(self, task: Callable[[Any], R], arguments: Sequence[Any]) -> Iterator[R]:
        self._begun += len(arguments)
        for result in self._pool.map(task, arguments):
            self._done += 1
            self._report(self._done, self._begun)
            yield result

    def rank_scores(self, values: Array, knots: Array, scores: Array) -> Array:
        out = np.empty(values.shape, np.int8)

        def task(a: int) -> None:
            part = slice(a, a + COLUMNS_PER_TASK)
            self._kernels.rank_scores(values[:, part], np.ascontiguousarray(knots[:, part]), scores, out[:, part])

        list(self._pool.map(task, range(0, values.shape[1], COLUMNS_PER_TASK)))
        return out

    def add_shuffled(self, fixed: Array, of_block: Array, line: Array, order: Array) -> Array:
        out = np.empty_like(fixed)
        self._kernels.add_shuffled(fixed, of_block, line, order, out)
        return out

    def find(
        self, D: Array, columns: Array, sign: float, is_kept: bool, queries: Array, rows: Array, ends: Array
    ) -> None:
        find, kind = self._kernels.find_nearest, self._kind
        if kind is None or not columns.shape[1]:
            if columns.shape[1]:
                part = np.float32(sign) * squared_distances(columns, queries)
                D = np.add(D, part, out=D if is_kept else part)
            none = np.zeros((0, 1, WORD), np.int8)
            find(None, D, none, none[:, 0], np.zeros((2, 0), np.int32), sign, False, queries, ends, rows)
            return
        find(kind, D, *self._pack(kind, columns, queries), sign, is_kept, queries, ends, rows)

    def _pack(self, kind: Instructions, columns: Array, queries: Array) -> tuple[Array, Array, Array]:
        """Return scores as kernels read them: packed rows, queries, and the sums of each row and of its squares."""
        m, steps = len(columns), -(-columns.shape[1] // WORD)
        panels = -(-m // (kind.lanes * kind.panels)) * kind.panels
        packed, sums = np.zeros((panels, steps, WORD * kind.lanes), np.int8), np.empty((2, m), np.int32)
        self._kernels.pack(columns, kind.offset, packed, sums)
        ints = np.zeros((-(-len(queries) // kind.queries) * kind.queries, WORD * steps), np.int8)
        ints[: len(queries), : columns.shape[1]] = columns[queries]
        return packed, ints, sums

    def squared_distances(self, X: Array, rows: Array) -> Array:
        kind = self._kind
        if kind is None:
            return squared_distances(X, rows)

        def task(first: int) -> Array:
            D, columns = np.zeros((len(rows), len(X))), X[:, first : first + MULTIPLIED_COLUMNS]
            self._kernels.add_distances(kind, *self._pack(kind, columns, rows), rows, D)
            return D

        parts = self._pool.map(task, range(0, X.shape[1], MULTIPLIED_COLUMNS))
        return sum(parts, np.zeros((len(rows), len(X)))).astype(np.float32)  # sums of integers, exact in any order

    def tally(self, queries: Array, rows: Array, block: Scores, target: ProbeTarget) -> Tally:
        n, size = block.n_features, rows.shape[2]
        line = np.arange(len(block.X)) if block.line is None else block.line
        pairs = queries, rows, block.X, line, block.feature
        if target.row_weight is not None:
            groups = rows.shape[1]
            total, spread, by_group = np.zeros((2 * groups, n)), np.zeros((7, groups, n)), np.zeros((5, groups))
            weights = target.values.astype(float), target.row_weight, target.query_weight
            self._kernels.tally_weighted(*pairs, target.ends, *weights, total, spread, by_group)
            return Tally(total, by_group[:2].T.reshape(-1, 1), np.zeros(0), spread, by_group[2:, :, None], rows.size)
        if target.is_numeric:
            total, spread, sums = np.zeros((2, n)), np.zeros((7, 1, n)), np.zeros(5)
            self._kernels.tally_numbers(*pairs, target.values, total, spread, sums)
            return Tally(total, sums[:2, None], np.zeros(0), spread, sums[2:, None, None], len(queries) * size)
        n_classes = len(target.ends)
        total, spread = np.zeros((2 * n_classes, n)), np.zeros((2, n_classes, n))
        self._kernels.tally_classes(*pairs, target.ends, total, spread)
        of_class = np.bincount(target.values[queries], minlength=n_classes).astype(float)
        count = np.stack([of_class * size * (n_classes - 1), of_class * size], axis=1).reshape(-1, 1)
        return Tally(total, count, np.zeros(0), spread, of_class[None, :, None], len(queries) * size * n_classes)
