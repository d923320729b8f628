"""The sample of rows, and its division into batches (section 2 of method.md).

Rows are ordered by a 64-bit random key that depends only on the seed, the stream and the row id. So the sample does not
depend on partitions, engines or threads, and ties between neighbours do not depend on the order of the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from belief.method.arrays import Array

SAMPLE, TIES = 0, 1  # the streams of keys


def splitmix64(z: Array) -> Array:
    """Return a hash of each 64-bit number (the splitmix64 generator). Kernels compile this function for scalars."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_keys(seed: int, stream: int, rows: Array) -> Array:
    """Return the random key of each row id. The keys of different streams (such as sample and ties) are independent."""
    start = splitmix64(splitmix64(np.array([seed % 2**64], np.uint64)) ^ np.uint64(stream))
    return splitmix64(start ^ np.asarray(rows).astype(np.uint64))


def proportional_quota(s: int, class_counts: Array) -> Array:
    """Return how many of s rows to draw from each class, in proportion to its size, and at least one.

    Fractions are rounded by largest remainder.
    """
    m = int(class_counts.sum())
    shares = [divmod(s * int(n), m) for n in class_counts]
    quota = np.array([whole for whole, _ in shares])
    by_remainder = sorted(range(len(shares)), key=lambda c: (-shares[c][1], c))
    quota[by_remainder[: s - int(quota.sum())]] += 1
    for c in np.flatnonzero((quota == 0) & (class_counts > 0)):
        largest = int(np.argmax(quota))
        if quota[largest] > 1:
            quota[largest] -= 1
            quota[c] = 1
    return quota


def sample_quota(sampling: str, s: int, class_counts: Array) -> Array:
    """Return how many rows of each class to draw for a sample of s rows; a single number if classes do not matter."""
    if sampling == "random":
        return np.array([s])
    if sampling == "proportional":
        return proportional_quota(s, class_counts)
    rounds, drawn = 0, 0  # "balanced" draws one row of each class per round, until classes are used up
    for n in np.unique(class_counts):
        available = int((class_counts >= n).sum())
        if drawn + available * (int(n) - rounds) >= s:
            rounds += -(-(s - drawn) // available)
            break
        drawn, rounds = drawn + available * (int(n) - rounds), int(n)
    return np.minimum(class_counts, rounds)


@dataclass(frozen=True)
class Sample:
    """Sampled rows in the order of their random keys, with the target of each.

    Each group of rows (each class, or one group of all rows) has a quota; its rows with the smallest keys are sampled.
    """

    key: Array
    row: Array
    target: Array

    @classmethod
    def draw(cls, rows: Array, targets: Array, quota: Array, seed: int) -> Self:
        return cls(row_keys(seed, SAMPLE, rows), rows, targets).first(quota)

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int32))

    def merge(self, other: Self, quota: Array) -> Self:
        both = (np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self))
        return type(self)(*both).first(quota)

    def in_order(self, sampling: str, s: int) -> Self:
        """Return the first s rows in sampling order.

        This is the order of the keys or, for a balanced sample, one row of each class in turn.
        """
        rank = np.zeros(len(self.row), np.int64)
        if sampling == "balanced":
            for c in np.unique(self.target):
                members = np.flatnonzero(self.target == c)  # in key order
                rank[members] = np.arange(len(members))
        return self.part(np.lexsort((self.key, rank))[:s])

    def part(self, which: Array | slice) -> Self:
        """Return some of the rows."""
        return type(self)(self.key[which], self.row[which], self.target[which])

    def first(self, quota: Array) -> Self:
        """Return the rows with the smallest keys: quota[0] of all rows, or quota[c] of the rows of each class c."""
        group = self.target if len(quota) > 1 else np.zeros(len(self.row), np.int32)
        parts = []
        for g, n in enumerate(quota):
            members = np.flatnonzero(group == g)
            if n < len(members):
                members = members[np.argpartition(self.key[members], n)[:n]] if n else members[:0]
            parts.append(members)
        kept = np.concatenate(parts)
        kept = kept[np.argsort(self.key[kept], kind="stable")]
        return self.part(kept)


def batches(s: int, share: float) -> list[slice]:
    """Divide a sample of s rows into batches of ⌈share·s⌉ rows; the last batch may be smaller."""
    step = max(1, math.ceil(share * s - 1e-9))  # share·s may be slightly too large by rounding
    return [slice(t, min(t + step, s)) for t in range(0, s, step)]
