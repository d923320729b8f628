"""Which rows are sampled, and who wins a tie: by a 64-bit key of (seed, stream, row id) and nothing else.

So the sample does not depend on partitions, engines or threads, and a tie never goes to file order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from belief.method.arrays import Array

SAMPLE, TIES = 0, 1  # the streams


def splitmix64(z: Array) -> Array:
    """Mix the bits of 64-bit numbers in an array, modulo 2^64. Kernels compile this function for scalars."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_keys(seed: int, stream: int, rows: Array) -> Array:
    """The key of each row id in a stream."""
    start = splitmix64(splitmix64(np.array([seed % 2**64], np.uint64)) ^ np.uint64(stream))
    return splitmix64(start ^ np.asarray(rows).astype(np.uint64))


def proportional_quota(s: int, class_counts: Array) -> Array:
    """Share s rows out over the classes: largest remainder, and at least one row of every class."""
    m = int(class_counts.sum())
    shares = [divmod(s * int(n), m) for n in class_counts]
    got = np.array([whole for whole, _ in shares])
    by_remainder = sorted(range(len(shares)), key=lambda c: (-shares[c][1], c))
    got[by_remainder[: s - int(got.sum())]] += 1
    for c in np.flatnonzero((got == 0) & (class_counts > 0)):
        richest = int(np.argmax(got))
        if got[richest] > 1:
            got[richest] -= 1
            got[c] = 1
    return got


def sample_quota(sampling: str, s: int, class_counts: Array) -> Array:
    """How many rows of each class are needed for a sample of s, or in all where classes play no part."""
    if sampling == "random":
        return np.array([s])
    if sampling == "proportional":
        return proportional_quota(s, class_counts)
    rounds, before = 0, 0  # one row of each class, then the second of each, ...
    for n in np.unique(class_counts):
        at_hand = int((class_counts >= n).sum())
        if before + at_hand * (int(n) - rounds) >= s:
            rounds += -(-(s - before) // at_hand)
            break
        before, rounds = before + at_hand * (int(n) - rounds), int(n)
    return np.minimum(class_counts, rounds)


@dataclass(frozen=True)
class Sample:
    """The rows with the smallest keys, in key order: `quota[g]` of each group (one group in all, or one per class)."""

    key: Array
    row: Array
    target: Array

    @classmethod
    def draw(cls, rows: Array, targets: Array, quota: Array, seed: int) -> Self:
        return cls(row_keys(seed, SAMPLE, rows), rows, targets)._cut(quota)

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int32))

    def merge(self, other: Self, quota: Array) -> Self:
        both = (np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self))
        return type(self)(*both)._cut(quota)

    def in_order(self, sampling: str, s: int) -> Self:
        """The first s rows in the order of sampling: by key, or one of each class, then the second of each."""
        rank = np.zeros(len(self.row), np.int64)
        if sampling == "balanced":
            for c in np.unique(self.target):
                mine = np.flatnonzero(self.target == c)  # by key already
                rank[mine] = np.arange(len(mine))
        return self.part(np.lexsort((self.key, rank))[:s])

    def part(self, which: Array | slice) -> Self:
        """Some of the rows."""
        return type(self)(self.key[which], self.row[which], self.target[which])

    def _cut(self, quota: Array) -> Self:
        group = self.target if len(quota) > 1 else np.zeros(len(self.row), np.int32)
        parts = []
        for g, n in enumerate(quota):
            members = np.flatnonzero(group == g)
            if n < len(members):
                members = members[np.argpartition(self.key[members], n)[:n]] if n else members[:0]
            parts.append(members)
        taken = np.concatenate(parts)
        taken = taken[np.argsort(self.key[taken], kind="stable")]
        return self.part(taken)


def batches(s: int, share: float) -> list[slice]:
    """Cut the sample into batches of ⌈share·s⌉ (less a rounding error), the last one what is left."""
    step = max(1, math.ceil(share * s - 1e-9))
    return [slice(t, min(t + step, s)) for t in range(0, s, step)]
