"""Ranks of a numeric target (section 10 of method.md), from a mergeable summary of all rows.

`ValueCounts` counts the rows with each distinct value, if there are at most MAX_VALUES. Otherwise, it counts the rows
in each cell of values. Each value has a bit pattern, and patterns sort like values; the patterns of a cell agree in
their first `bits` bits. `bits` is the largest number for which the values fill at most MAX_VALUES cells. It depends on
the values alone, so blocks may come in any number and order. All values of a cell get the mid-rank of the cell, so the
error of a rank is below half of the cell's share of the rows. Cells with a share above 2·MAX_ERROR are counted again at
a higher resolution; only targets with both a wide range and very many nearly equal values need this.

    blocks ─► ValueCounts ─► merge ─► heavy cells? ─► count these again ─► Ranks ─► t of each row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from belief.method.arrays import Array, is_first_of_run

MAX_VALUES = 2**21  # larger than 1/MAX_ERROR, so that counting heavy cells again refines them
MAX_ERROR = 1e-4  # the largest error of t if there are more than MAX_VALUES values
ALL_BITS = 64
SIGN = np.uint64(1 << 63)


def to_pattern(y: Array) -> Array:
    """Map numbers to 64-bit unsigned integers that sort in the same order; 0.0 and -0.0 give the same integer."""
    raw = (np.asarray(y, np.float64) + 0.0).view(np.uint64)
    return np.where(raw & SIGN, ~raw, raw | SIGN)


def from_pattern(p: Array) -> Array:
    """Convert the integers of `to_pattern` back to numbers."""
    return np.where(p & SIGN, p ^ SIGN, ~p).view(np.float64)


@dataclass(frozen=True)
class ValueCounts:
    """The number of rows with each value, or in each cell (interval) of values.

    `start` is the bit pattern of the value, or the smallest pattern of the cell, in sorted order. The patterns of a
    cell agree in their first `bits` bits.
    """

    start: Array
    count: Array
    bits: int

    @classmethod
    def from_values(cls, y: Array) -> Self:
        return cls._count(np.sort(to_pattern(y)), None, ALL_BITS)._coarsen()

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), ALL_BITS)

    def merge(self, other: Self) -> Self:
        bits = min(self.bits, other.bits)
        a, b = self._at(bits), other._at(bits)
        start, count = np.concatenate([a.start, b.start]), np.concatenate([a.count, b.count])
        order = np.argsort(start, kind="stable")
        return self._count(start[order], count[order], bits)._coarsen()

    def heavy(self, max_rows: float) -> Self:
        """Return the cells (intervals of values) with more than `max_rows` rows, except cells of a single value."""
        is_heavy = (self.count > max_rows) & (self.bits < ALL_BITS)
        return type(self)(self.start[is_heavy], self.count[is_heavy], self.bits)

    def within(self, y: Array) -> Array:
        """Return the values among y that lie in one of the cells (intervals of values) whose rows are counted."""
        cell = self._cells(to_pattern(y), self.bits)
        at = np.minimum(np.searchsorted(self.start, cell), max(len(self.start) - 1, 0))
        return y[self.start[at] == cell] if len(self.start) else y[:0]

    def _at(self, bits: int) -> Self:
        return self if bits == self.bits else self._count(self._cells(self.start, bits), self.count, bits)

    @classmethod
    def _count(cls, cell: Array, count: Array | None, bits: int) -> Self:
        """Merge equal entries of the sorted array `cell`, and add up their numbers of rows, `count`.

        Without `count`, each entry stands for one row.
        """
        first = np.flatnonzero(is_first_of_run(cell))
        rows = np.diff(np.r_[first, len(cell)]) if count is None or not len(cell) else np.add.reduceat(count, first)
        return cls(cell[first], rows.astype(np.int64), bits)

    def _coarsen(self) -> Self:
        """Merge cells by reducing `bits` until there are at most MAX_VALUES cells."""
        low, high = 0, self.bits
        while low < high and len(self.start) > MAX_VALUES:  # the number of cells grows with the bits
            middle = (low + high + 1) // 2
            fits = np.count_nonzero(is_first_of_run(self._cells(self.start, middle))) <= MAX_VALUES
            low, high = (middle, high) if fits else (low, middle - 1)
        return self if len(self.start) <= MAX_VALUES else self._at(low)

    @staticmethod
    def _cells(patterns: Array, bits: int) -> Array:
        drop = np.uint64(ALL_BITS - bits)
        return patterns if bits == ALL_BITS else (patterns >> drop) << drop if bits else np.zeros_like(patterns)


@dataclass(frozen=True)
class Ranks:
    """The distribution of a numeric target, from which the rank of any value follows.

    `start` is the bit pattern of each distinct value, in sorted order, and `count` is the number of rows with this
    value. If there are too many distinct values, rows are counted in intervals of values instead; `start` then has the
    smallest pattern of each interval.
    """

    start: Array
    count: Array

    @classmethod
    def from_blocks(cls, blocks: Callable[[], Iterable[Array]]) -> Self:
        """Compute the ranks of all rows. `blocks` returns the blocks of the target; it may be called several times."""
        counts = reduce(ValueCounts.merge, map(ValueCounts.from_values, blocks()), ValueCounts.zero())
        max_rows = 2 * MAX_ERROR * int(counts.count.sum())
        parts, heavy = [counts], counts.heavy(max_rows)
        while len(heavy.start):
            refined = (ValueCounts.from_values(heavy.within(y)) for y in blocks())
            parts.append(reduce(ValueCounts.merge, refined, ValueCounts.zero()))
            heavy = parts[-1].heavy(max_rows)
        # each part replaces the heavy cells of the one before
        keep = [(x.count <= max_rows) | (x.bits == ALL_BITS) for x in parts]
        start = np.concatenate([x.start[mask] for x, mask in zip(parts, keep, strict=True)])
        count = np.concatenate([x.count[mask] for x, mask in zip(parts, keep, strict=True)])
        order = np.argsort(start)
        return cls(start[order], count[order])

    @property
    def m(self) -> int:
        return int(self.count.sum())

    def t(self, y: Array) -> Array:
        """Return t, the mid-rank of each value of y divided by m - 1, which lies in [0, 1]."""
        middle = np.cumsum(self.count) - (self.count + 1) / 2.0
        return middle[np.searchsorted(self.start, to_pattern(y), side="right") - 1] / max(self.m - 1, 1)

    def quantiles(self, shares: Array) -> Array:
        """Return, for each share, the smallest value that this share of the rows does not exceed."""
        at = np.searchsorted(np.cumsum(self.count), np.asarray(shares) * self.m)
        return from_pattern(self.start[np.minimum(at, len(self.start) - 1)])
