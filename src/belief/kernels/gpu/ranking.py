"""Exact distances on a GPU, the keys that decide ties, and the lists of the nearest rows found so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from belief.kernels import shapes
from belief.kernels.gpu.loading import load_triton_kernels
from belief.kernels.gpu.points import Space
from belief.method.partials import Neighbours

LAST_KEY = 2**63 - 1  # the key of an empty entry
MAX_KERNEL_MERGE = 4096  # lists of up to this many entries are merged by the compiled kernel, longer ones by sorting
SIGN_BIT = np.uint64(2**63)  # is flipped, so that int64 keys have the order of uint64 keys


def distances(a: Tensor, b: Tensor, space: Space) -> Tensor:
    """Return the squared distance d² between each row of `a` and the same row of `b`, in float64."""
    x, y = a.double(), b.double()
    if not space.missing:
        d = torch.where(space.discrete, (x != y).double(), x - y) if space.mixed else x - y
        return (d * space.per_unit).square_().sum(1)
    lost_x, lost_y = x.isnan(), y.isnan()
    filled_x, filled_y = torch.where(lost_x, space.mean, x), torch.where(lost_y, space.mean, y)
    d = torch.where(lost_x & lost_y, 0.0, (filled_x - filled_y) * space.per_unit)
    cost = d * d + (lost_x.double() + lost_y.double()) * space.spread
    cost = torch.where(space.discrete, (x != y) * space.per_unit, cost)
    for c in space.corners:  # the expected Δ² of a discrete feature if a value is missing
        j = c.feature
        no_x, no_y = lost_x[:, j], lost_y[:, j]
        one = 1.0 - c.share[c.place(torch.where(no_x, y[:, j], x[:, j]))]
        cost[:, j] = torch.where(no_x & no_y, 2.0 * space.spread[j], torch.where(no_x | no_y, one, cost[:, j]))
    return cost.sum(1)


def round9(x: Tensor) -> Tensor:
    """Round to 9 significant digits, so that equal distances summed in another order compare equal."""
    return shapes.round9(x, torch.tensor(shapes.POWERS_OF_TEN, device=x.device), torch)


def tie_keys(seed_key: int, rows: Tensor) -> Tensor:
    """Return the random keys of row ids as int64 numbers that sort like the unsigned keys.

    `seed_key` is the hash of the seed and the stream.
    """
    # belief.method.sampling.splitmix64, for int64, because torch has few operations for uint64. Shifts of int64 copy
    # the sign bit, so the copies are masked out.
    z = (rows ^ _signed(seed_key)) + _signed(0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30 & 2**34 - 1)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> 27 & 2**37 - 1)) * _signed(0x94D049BB133111EB)
    return z ^ (z >> 31 & 2**33 - 1) ^ _signed(2**63)


def _signed(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


@dataclass(frozen=True)
class Best:
    """The nearest rows found so far, as arrays of shape (groups, queries, k), nearest first.

    Missing entries have row -1.
    """

    d2: Tensor
    key: Tensor  # int64 in the order of the unsigned keys
    row: Tensor

    @classmethod
    def from_neighbours(cls, found: Neighbours, device: torch.device) -> Self:
        arrays = (found.d2, (found.key ^ SIGN_BIT).view(np.int64), found.row)
        return cls(*(torch.tensor(x, device=device).permute(1, 0, 2).contiguous() for x in arrays))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        return cls(*(torch.cat([getattr(x, f) for x in parts], 1) for f in ("d2", "key", "row")))

    def neighbours(self) -> Neighbours:
        """Return the lists as Neighbours, without targets."""
        d2, key, row = (np.ascontiguousarray(x.permute(1, 0, 2).cpu().numpy()) for x in (self.d2, self.key, self.row))
        return Neighbours(d2, key.view(np.uint64) ^ SIGN_BIT, row, np.full(row.shape, -1, np.int32))

    @property
    def size(self) -> int:
        return self.d2.shape[2]

    @property
    def farthest(self) -> Tensor:
        """The largest distance in each list, (groups, queries)."""
        return self.d2[:, :, -1]

    def at(self, queries: Tensor | slice) -> Best:
        return Best(self.d2[:, queries], self.key[:, queries], self.row[:, queries])

    def replace(self, queries: Tensor, other: Best) -> None:
        self.d2[:, queries], self.key[:, queries], self.row[:, queries] = other.d2, other.key, other.row


def merge(best: Best, d2: Tensor, key: Tensor, row: Tensor) -> Best:
    """Merge more rows (d2, key, row) into the lists of the k nearest rows; ties in d2 go to the smaller key."""
    if d2.shape[2] == 0:
        return best
    kernels = load_triton_kernels(d2.device)
    if kernels is not None and d2.shape[2] <= MAX_KERNEL_MERGE:
        return Best(*kernels.merge_lists((best.d2, best.key, best.row), (d2, key, row)))
    is_empty = d2.isinf()
    all_d2 = torch.cat([best.d2, d2], 2)
    all_key = torch.cat([best.key, key.masked_fill(is_empty, LAST_KEY)], 2)
    all_row = torch.cat([best.row, row.masked_fill(is_empty, -1)], 2)
    order = torch.argsort(all_key, dim=2, stable=True)
    order = order.gather(2, torch.argsort(all_d2.gather(2, order), dim=2, stable=True))[:, :, : best.size]
    return Best(*(x.gather(2, order) for x in (all_d2, all_key, all_row)))
