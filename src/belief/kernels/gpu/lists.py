"""The best rows so far, for each query and group, on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from belief.kernels.gpu.loading import compiled
from belief.method.partials import Neighbours

LAST = 2**63 - 1  # the key of no row
MOST_MERGED = 4096  # rows of a list that a kernel merges; more are sorted
TOP = np.uint64(2**63)  # int64 in the order of uint64: with this bit flipped


@dataclass(frozen=True)
class Best:
    """The best rows so far, nearest first: (groups, queries, k) each; row -1 where there are fewer."""

    d2: Tensor
    key: Tensor  # int64 in the order of the unsigned keys
    row: Tensor

    @classmethod
    def of(cls, found: Neighbours, device: torch.device) -> Self:
        arrays = (found.d2, (found.key ^ TOP).view(np.int64), found.row)
        return cls(*(torch.tensor(x, device=device).permute(1, 0, 2).contiguous() for x in arrays))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        return cls(*(torch.cat([getattr(x, f) for x in parts], 1) for f in ("d2", "key", "row")))

    def neighbours(self) -> Neighbours:
        """As the method knows them, but for the targets."""
        d2, key, row = (np.ascontiguousarray(x.permute(1, 0, 2).cpu().numpy()) for x in (self.d2, self.key, self.row))
        return Neighbours(d2, key.view(np.uint64) ^ TOP, row, np.full(row.shape, -1, np.int32))

    @property
    def size(self) -> int:
        return self.d2.shape[2]

    @property
    def farthest(self) -> Tensor:
        """The distance that is to be beaten, (groups, queries)."""
        return self.d2[:, :, -1]

    def at(self, queries: Tensor | slice) -> Best:
        """Those of some queries."""
        return Best(self.d2[:, queries], self.key[:, queries], self.row[:, queries])

    def put(self, queries: Tensor, other: Best) -> None:
        """Replace those of some queries, in place."""
        self.d2[:, queries], self.key[:, queries], self.row[:, queries] = other.d2, other.key, other.row


def merge(best: Best, d2: Tensor, key: Tensor, row: Tensor) -> Best:
    """Keep the k best of both, by distance, ties by key."""
    if d2.shape[2] == 0:
        return best
    kernels = compiled(d2.device)
    if kernels is not None and d2.shape[2] <= MOST_MERGED:
        return Best(*kernels.merge_lists((best.d2, best.key, best.row), (d2, key, row)))
    none = d2.isinf()
    all_d2 = torch.cat([best.d2, d2], 2)
    all_key = torch.cat([best.key, key.masked_fill(none, LAST)], 2)
    all_row = torch.cat([best.row, row.masked_fill(none, -1)], 2)
    order = torch.argsort(all_key, dim=2, stable=True)
    order = order.gather(2, torch.argsort(all_d2.gather(2, order), dim=2, stable=True))[:, :, : best.size]
    return Best(*(x.gather(2, order) for x in (all_d2, all_key, all_row)))
