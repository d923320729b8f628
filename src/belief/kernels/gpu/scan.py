"""Candidates: the rows of a chunk that may be among the nearest of a query.

    fp16 product in registers ──low - q·x <= tau──► hits

The product is never written to memory: a tile is compared with one threshold per query and group where it was made, and
the rare hits are appended to the query's list. Where there is no such kernel, torch makes the product in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor

from belief.kernels.gpu.exact import keys
from belief.kernels.gpu.lists import Best
from belief.kernels.gpu.loading import hopper
from belief.kernels.gpu.points import WORDS, Points, Space, embed

TIE_MARGIN = 1e-8  # distances that agree to 9 digits are ties, so what lies this close is a candidate too
TILE = 256  # rows of a tile; each group of a chunk begins with a tile of its own
HEAD = 4096  # rows of a group whose distances are all looked at where nothing is known yet


@dataclass(frozen=True)
class Queries:
    """The rows whose neighbours are wanted."""

    points: Points
    values: Tensor
    row: Tensor  # their ids: a query is not its own neighbour

    @classmethod
    def of(cls, values: Tensor, row: Tensor, space: Space) -> Self:
        return cls(embed(values, torch.arange(len(values), device=values.device), space), values, row)

    def at(self, which: Tensor | slice) -> Queries:
        return Queries(self.points.at(which), self.values[which], self.row[which])

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Chunk:
    """Rows by group, each group from the beginning of a tile on; what lies between is never hit."""

    point: Tensor  # (places, columns) fp16
    low: Tensor  # fp32, rounded down; NaN where there is no row
    high: Tensor  # fp32, rounded up
    first: list[int]  # the place where each group begins, and the end
    size: list[int]  # rows of each group
    group: Tensor  # of each tile
    values: Tensor  # the rows themselves
    source: Tensor  # which of them stands at a place
    row: Tensor  # its id
    key: Tensor

    @classmethod
    def of(cls, values: Tensor, source: Sequence[Tensor], first_id: int, space: Space, seed_key: int) -> Self:
        """Of the rows values[source[g]] of each group g; `first_id` is the id of the first row in `values`."""
        device, size = values.device, [len(x) for x in source]
        tiles = [-(-n // TILE) for n in size]
        first = [0, *(TILE * n for n in accumulate(tiles))]
        chosen = torch.full((first[-1],), -1, dtype=torch.int64, device=device)
        for a, x in zip(first, source, strict=False):
            chosen[a : a + len(x)] = x
        absent, chosen = chosen < 0, chosen.clamp(min=0)
        points = embed(values, chosen, space)
        group = torch.repeat_interleave(torch.arange(len(size), dtype=torch.int32), torch.tensor(tiles))
        low = below(points.low).clamp_(min=-3e38).masked_fill_(absent, torch.nan)
        ids = chosen + first_id
        return cls(
            points.point, low, above(points.high), first, size, group.to(device), values, chosen, ids,
            keys(seed_key, ids),
        )  # fmt: skip

    def without_copies(self, k: int) -> Self:
        """Without all but k + 1 of the rows of a group that are identical, those with the smallest keys.

        The others can never be wanted: one of the k + 1 may be the query, k are before them in every list.
        """
        low = self.low.clone()
        for a, n in zip(self.first, self.size, strict=False):
            if n > k + 1:
                low[a : a + n].masked_fill_(self._surplus(slice(a, a + n), k), torch.nan)
        return replace(self, low=low)

    def _surplus(self, here: slice, k: int) -> Tensor:
        source, order = self.source[here], torch.argsort(self.key[here])
        h, same = torch.sort(_hashes(self.values, source[order]), stable=True)
        order = order[same]  # by hash, then by key
        place = torch.arange(len(order), device=h.device)
        start = torch.where(torch.cat([place[:1] == 0, h[1:] != h[:-1]]), place, 0).cummax(0)[0]
        late = torch.nonzero(place - start > k)[:, 0]
        out = torch.zeros(len(order), dtype=torch.bool, device=h.device)
        for part in late.split(max(1, WORDS // self.values.shape[1])):
            mine, theirs = self.values[source[order[part]]], self.values[source[order[start[part]]]]
            out[order[part]] = (_bits(mine) == _bits(theirs)).all(1)  # a hash is not a proof
        return out


def _bits(x: Tensor) -> Tensor:
    return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def _hashes(values: Tensor, rows: Tensor) -> Tensor:
    """A 64-bit hash of the bits of each row."""
    factors = keys(0, torch.arange(values.shape[1], device=values.device)) | 1
    parts = rows.split(max(1, WORDS // values.shape[1]))
    return torch.cat([((_bits(values[x]).long() ^ (_bits(values[x]) >> 15)) * factors).sum(1) for x in parts])


def above(x: Tensor) -> Tensor:
    """A float32 not below x."""
    return torch.nextafter(x.float(), torch.tensor(torch.inf, device=x.device))


def below(x: Tensor) -> Tensor:
    """A float32 not above x."""
    return torch.nextafter(x.float(), torch.tensor(-torch.inf, device=x.device))


# --- thresholds ---


def seed(queries: Queries, chunk: Chunk, best: Best, space: Space) -> Tensor:
    """½d² that a row must not exceed to be wanted, (groups, queries): where k are not known yet, from the first rows.

    One more than k is counted, since one of them may be the query itself.
    """
    half, k = best.farthest / 2, best.size
    unknown = half.isinf().any(1).tolist()
    for g, (a, n) in enumerate(zip(chunk.first, chunk.size, strict=False)):
        if n <= k or not unknown[g]:
            continue
        head = slice(a, a + min(n, max(HEAD, k + 1)))
        step = max(1, 8 * WORDS // (head.stop - head.start))
        for lo in range(0, len(queries), step):
            q = slice(lo, min(lo + step, len(queries)))
            v = chunk.high[head] - product(queries.points.point[q], chunk.point[head])
            kth = torch.topk(v, k + 1, dim=1, largest=False, sorted=False)[0].amax(1).double()
            upper = kth + kth.abs() * 2.0**-22 + queries.points.high[q]
            half[g, q] = torch.minimum(half[g, q], upper * space.scale**2 + space.shared / 2)
    return half


def thresholds(queries: Queries, half: Tensor, space: Space) -> Tensor:
    """A row is a candidate where low - acc is not above this: (groups, queries) fp32."""
    return above(half * (1 + TIE_MARGIN) / space.scale**2 - queries.points.low)


def product(a: Tensor, b: Tensor) -> Tensor:
    """Inner products of fp16 points in fp32."""
    return torch.mm(a, b.T, out_dtype=torch.float32) if a.is_cuda else a.float() @ b.float().T


# --- hits ---


@dataclass(frozen=True)
class Hits:
    """Candidates: of list (group, query) the first min(count, capacity) places of the chunk."""

    count: Tensor  # (groups, queries) int32: how many there were, stored or not
    place: Tensor  # (groups, queries, capacity) int32

    @property
    def overflown(self) -> Tensor:
        """Queries of which a hit was not stored."""
        return torch.nonzero((self.count > self.place.shape[2]).any(0))[:, 0]


def scan(queries: Queries, chunk: Chunk, tau: Tensor, capacity: int) -> Hits:
    """The places of the chunk with low - q·x <= tau."""
    kernel = hopper(tau.device)
    if kernel is None:
        return scan_in_parts(queries, chunk, tau, capacity)
    return Hits(*kernel.scan_points(queries.points.point, chunk.point, chunk.low, tau, chunk.group, capacity))


def scan_in_parts(queries: Queries, chunk: Chunk, tau: Tensor, capacity: int) -> Hits:
    """The same with products that are written to memory, a part of the rows at a time."""
    groups, s = tau.shape
    count = torch.zeros(groups, s, dtype=torch.int32, device=tau.device)
    place = torch.zeros(groups, s, capacity, dtype=torch.int32, device=tau.device)
    width = max(1, WORDS // max(s, 1))
    for g, (a, n) in enumerate(zip(chunk.first, chunk.size, strict=False)):
        for lo in range(a, a + n, width):
            here = slice(lo, min(lo + width, a + n))
            near = chunk.low[here] - product(queries.points.point, chunk.point[here]) <= tau[g][:, None]
            q, p = torch.nonzero(near, as_tuple=True)
            slot = near.cumsum(1, dtype=torch.int32)[q, p].long() - 1 + count[g, q]
            kept = slot < capacity
            place[g, q[kept], slot[kept]] = (p[kept] + lo).int()
            count[g] += near.sum(1, dtype=torch.int32)
    return Hits(count, place)
