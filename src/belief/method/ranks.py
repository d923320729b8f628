"""Ranks of a numeric target (section 10 of the method), from a summary of all rows that merges.

A `ValueCounts` counts the distinct values of some rows. Up to MOST of them it is exact. Beyond, it counts cells: values
whose float64 patterns, made to sort as they do, agree in their first `bits`. `bits` is the largest number at which the
values fill no more than MOST cells, and that depends on the values alone: so blocks may come in any number and order.
All values of a cell get the mid-rank of the cell, so the error of t is below half of the cell's share of the rows. A
cell of more than 2·ERROR of them is counted again, by itself; it takes a target with a huge clump of nearly
equal values beside a wide range to need that.

    blocks ─► ValueCounts ─► merge ─► heavy? ─► blocks again, of the heavy cells only ─► Ranks ─► t of each row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from belief.method.arrays import Array

MOST = 2**21  # distinct values, or cells, that are counted; above 1/ERROR, so that heavy cells do get finer
ERROR = 1e-4  # of t, where there are more values than that
ALL = 64  # bits: values are told apart by all they have
SIGN = np.uint64(1 << 63)


def pattern(y: Array) -> Array:
    """Numbers as uint64 that sort as they do; 0.0 and -0.0 are one number."""
    raw = (np.asarray(y, np.float64) + 0.0).view(np.uint64)
    return np.where(raw & SIGN, ~raw, raw | SIGN)


def number(p: Array) -> Array:
    """The numbers of such patterns."""
    return np.where(p & SIGN, p ^ SIGN, ~p).view(np.float64)


@dataclass(frozen=True)
class ValueCounts:
    """How many rows there are of each value, or of each cell of values: `start` is the least pattern of it, sorted."""

    start: Array
    count: Array
    bits: int

    @classmethod
    def from_values(cls, y: Array) -> Self:
        """Of some rows."""
        return cls._counted(np.sort(pattern(y)), None, ALL)._fitting()

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), ALL)

    def merge(self, other: Self) -> Self:
        bits = min(self.bits, other.bits)
        a, b = self._at(bits), other._at(bits)
        start, count = np.concatenate([a.start, b.start]), np.concatenate([a.count, b.count])
        order = np.argsort(start, kind="stable")
        return self._counted(start[order], count[order], bits)._fitting()

    def heavy(self, most: float) -> Self:
        """The cells of more than one value, as far as is known, and of more than `most` rows."""
        is_heavy = (self.count > most) & (self.bits < ALL)
        return type(self)(self.start[is_heavy], self.count[is_heavy], self.bits)

    def within(self, y: Array) -> Array:
        """Those of the values that lie in one of these cells."""
        cell = self._cells(pattern(y), self.bits)
        at = np.minimum(np.searchsorted(self.start, cell), max(len(self.start) - 1, 0))
        return y[self.start[at] == cell] if len(self.start) else y[:0]

    def _at(self, bits: int) -> Self:
        return self if bits == self.bits else self._counted(self._cells(self.start, bits), self.count, bits)

    @classmethod
    def _counted(cls, cell: Array, count: Array | None, bits: int) -> Self:
        """From sorted cells with their rows, or with one row each."""
        first = np.flatnonzero(_is_new(cell))
        rows = np.diff(np.r_[first, len(cell)]) if count is None or not len(cell) else np.add.reduceat(count, first)
        return cls(cell[first], rows.astype(np.int64), bits)

    def _fitting(self) -> Self:
        """The same in cells as small as MOST allows."""
        low, high = 0, self.bits
        while low < high and len(self.start) > MOST:  # the number of cells grows with the bits
            middle = (low + high + 1) // 2
            fits = np.count_nonzero(_is_new(self._cells(self.start, middle))) <= MOST
            low, high = (middle, high) if fits else (low, middle - 1)
        return self if len(self.start) <= MOST else self._at(low)

    @staticmethod
    def _cells(patterns: Array, bits: int) -> Array:
        drop = np.uint64(ALL - bits)
        return patterns if bits == ALL else (patterns >> drop) << drop if bits else np.zeros_like(patterns)


def _is_new(ordered: Array) -> Array:
    """Where a value is not the one before."""
    return np.r_[np.ones(len(ordered[:1]), bool), ordered[1:] != ordered[:-1]]


@dataclass(frozen=True)
class Ranks:
    """The empirical distribution of a target: `start` of each value or cell, sorted, and its rows."""

    start: Array
    count: Array

    @classmethod
    def from_blocks(cls, blocks: Callable[[], Iterable[Array]]) -> Self:
        """Of all rows, whose targets come in blocks, again where it is needed."""
        whole = reduce(ValueCounts.merge, map(ValueCounts.from_values, blocks()), ValueCounts.zero())
        most = 2 * ERROR * int(whole.count.sum())
        parts, heavy = [whole], whole.heavy(most)
        while len(heavy.start):
            parts.append(
                reduce(
                    ValueCounts.merge, (ValueCounts.from_values(heavy.within(y)) for y in blocks()), ValueCounts.zero()
                )
            )
            heavy = parts[-1].heavy(most)
        return cls._nested(parts, most)

    @classmethod
    def _nested(cls, parts: list[ValueCounts], most: float) -> Self:
        """Each part in the place of the heavy cells of the one before."""
        light = [(x.count <= most) | (x.bits == ALL) for x in parts]
        start = np.concatenate([x.start[keep] for x, keep in zip(parts, light, strict=True)])
        count = np.concatenate([x.count[keep] for x, keep in zip(parts, light, strict=True)])
        order = np.argsort(start)
        return cls(start[order], count[order])

    @property
    def m(self) -> int:
        return int(self.count.sum())

    def t(self, y: Array) -> Array:
        """The mid-rank of each row, divided by m - 1."""
        middle = np.cumsum(self.count) - (self.count + 1) / 2.0
        return middle[np.searchsorted(self.start, pattern(y), side="right") - 1] / max(self.m - 1, 1)

    def quantiles(self, shares: Array) -> Array:
        """The least values that so many of the rows do not exceed."""
        at = np.searchsorted(np.cumsum(self.count), np.asarray(shares) * self.m)
        return number(self.start[np.minimum(at, len(self.start) - 1)])
