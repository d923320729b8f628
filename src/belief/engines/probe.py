"""Searches of the probe, in threads of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from belief._utils.lazy import importing
from belief.engines.block.threads import Threads
from belief.method.arrays import Array
from belief.method.partials import Tally
from belief.method.probe import ProbeTarget, Scores

R = TypeVar("R")
COLUMNS_PER_TASK = 256


class ProbeSearch:
    """The LocalSearch protocol on the compiled kernels."""

    def __init__(self, pool: Threads) -> None:
        self._pool = pool
        with importing():
            from belief.kernels import probe
        self._kernels = probe

    def map(self, task: Callable[[Any], R], arguments: Sequence[Any]) -> Iterator[R]:
        return self._pool.map(task, arguments)

    def rank_scores(self, values: Array, knots: Array, scores: Array) -> Array:
        out = np.empty(values.shape, np.int8)

        def task(a: int) -> None:
            part = slice(a, a + COLUMNS_PER_TASK)
            self._kernels.rank_scores(values[:, part], np.ascontiguousarray(knots[:, part]), scores, out[:, part])

        list(self._pool.map(task, range(0, values.shape[1], COLUMNS_PER_TASK)))
        return out

    def tally(self, D: Array, dropped: Array, queries: Array, rows: Array, block: Scores, target: ProbeTarget) -> Tally:
        n, size = block.n_features, rows.shape[2]
        search = D, dropped, queries, rows, block.X, block.feature
        if target.row_weight is not None:
            return self._tally_weighted(search, n, target)
        if target.is_numeric:
            total, spread, sums = np.zeros((2, n)), np.zeros((7, 1, n)), np.zeros(5)
            self._kernels.tally_numbers(*search, target.values, total, spread, sums)
            return Tally(total, sums[:2, None], np.zeros(0), spread, sums[2:, None, None], len(queries) * size)
        n_classes = len(target.ends)
        total, spread = np.zeros((2 * n_classes, n)), np.zeros((2, n_classes, n))
        self._kernels.tally_classes(*search, target.ends, total, spread)
        of_class = np.bincount(target.values[queries], minlength=n_classes).astype(float)
        count = np.stack([of_class * size * (n_classes - 1), of_class * size], axis=1).reshape(-1, 1)
        return Tally(total, count, np.zeros(0), spread, of_class[None, :, None], len(queries) * size * n_classes)

    def _tally_weighted(self, search: tuple[Array, ...], n: int, target: ProbeTarget) -> Tally:
        D, _, _, rows, *_ = search
        groups = rows.shape[1]
        total, spread, sums = np.zeros((2 * groups, n)), np.zeros((7, groups, n)), np.zeros((5, groups))
        ends = np.array([D.shape[1]]) if target.is_numeric else target.ends
        weights = target.values.astype(float), target.row_weight, target.query_weight
        self._kernels.tally_weighted(*search, ends, *weights, total, spread, sums)
        return Tally(total, sums[:2].T.reshape(-1, 1), np.zeros(0), spread, sums[2:, :, None], rows.size)
