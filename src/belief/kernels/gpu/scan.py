"""The scan for candidates on a GPU: rows of a chunk that may be among the nearest of a query.

    fp16 product in registers ──low - q·x <= tau──► candidates

On Hopper, each tile of the product is compared with one threshold per query and group while it is in registers, and the
rare candidates are appended to the lists of the queries; the product is never written to memory. On other devices torch
computes the product in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor

from belief.kernels.gpu.loading import load_hopper_kernels
from belief.kernels.gpu.points import MAX_TEMPORARY, Points, Space, embed
from belief.kernels.gpu.ranking import Best, tie_keys
from belief.kernels.shapes import TIE_MARGIN

TILE = 256  # number of rows in a tile; each group of a chunk begins with a new tile
HEAD = 4096  # number of rows of a group from which the first thresholds are computed


@dataclass(frozen=True)
class Queries:
    """The rows whose neighbours are searched: their values, their points for matrix products, and their ids."""

    points: Points
    values: Tensor
    row: Tensor  # the ids, because a query is not its own neighbour

    @classmethod
    def from_rows(cls, values: Tensor, row: Tensor, space: Space) -> Self:
        return cls(embed(values, torch.arange(len(values), device=values.device), space), values, row)

    def at(self, which: Tensor | slice) -> Queries:
        return Queries(self.points.at(which), self.values[which], self.row[which])

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Chunk:
    """A part of the rows, sorted by group and padded so that each group begins with a new tile.

    Padding is never a candidate.
    """

    point: Tensor  # (places, columns) fp16
    low: Tensor  # fp32, rounded down; NaN for padding
    high: Tensor  # fp32, rounded up
    first: list[int]  # the place where each group begins, and the number of places
    size: list[int]  # number of rows of each group
    group: Tensor  # group of each tile
    values: Tensor  # the rows, without padding
    source: Tensor  # position in `values` of the row at each place
    row: Tensor  # id of the row at each place
    key: Tensor

    @classmethod
    def from_rows(cls, values: Tensor, source: Sequence[Tensor], first_id: int, space: Space, seed_key: int) -> Self:
        """Make a chunk of the rows values[source[g]] of each group g; `first_id` is the id of values[0]."""
        device, size = values.device, [len(x) for x in source]
        tiles = [-(-n // TILE) for n in size]
        first = [0, *(TILE * n for n in accumulate(tiles))]
        chosen = torch.full((first[-1],), -1, dtype=torch.int64, device=device)
        for a, x in zip(first, source, strict=False):
            chosen[a : a + len(x)] = x
        absent, chosen = chosen < 0, chosen.clamp(min=0)
        points = embed(values, chosen, space)
        group = torch.repeat_interleave(torch.arange(len(size), dtype=torch.int32), torch.tensor(tiles))
        low = torch.nextafter(points.low.float(), torch.tensor(-torch.inf, device=device))  # rounded down
        low = low.clamp_(min=-3e38).masked_fill_(absent, torch.nan)
        ids = chosen + first_id
        return cls(
            points.point,
            low,
            round_up(points.high),
            first,
            size,
            group.to(device),
            values,
            chosen,
            ids,
            tie_keys(seed_key, ids),
        )

    def without_copies(self, k: int) -> Self:
        """Return a chunk in which at most k + 1 of several identical rows of a group can be candidates.

        These are the k + 1 rows with the smallest tie keys. The other copies cannot be among the k nearest rows of a
        query: at most one of the k + 1 rows is the query itself, and the rest come before all other copies.
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
        for part in late.split(max(1, MAX_TEMPORARY // self.values.shape[1])):
            mine, theirs = self.values[source[order[part]]], self.values[source[order[start[part]]]]
            out[order[part]] = (_bits(mine) == _bits(theirs)).all(1)  # hashes may collide
        return out


def _bits(x: Tensor) -> Tensor:
    return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def _hashes(values: Tensor, rows: Tensor) -> Tensor:
    factors = tie_keys(0, torch.arange(values.shape[1], device=values.device)) | 1
    parts = rows.split(max(1, MAX_TEMPORARY // values.shape[1]))
    return torch.cat([((_bits(values[x]).long() ^ (_bits(values[x]) >> 15)) * factors).sum(1) for x in parts])


def round_up(x: Tensor) -> Tensor:
    """Return a float32 number that is not below x."""
    return torch.nextafter(x.float(), torch.tensor(torch.inf, device=x.device))


# --- thresholds ---


def estimate_bounds(queries: Queries, chunk: Chunk, best: Best, space: Space) -> Tensor:
    """Return an upper bound of ½d² between each query and its k-th neighbour, (groups, queries).

    If fewer than k rows are known, the bound is computed from the first rows of the chunk: it is the (k + 1)-th
    smallest of their upper bounds, because one of these rows may be the query itself.
    """
    half, k = best.farthest / 2, best.size
    unknown = half.isinf().any(1).tolist()
    for g, (a, n) in enumerate(zip(chunk.first, chunk.size, strict=False)):
        if n <= k or not unknown[g]:
            continue
        head = slice(a, a + min(n, max(HEAD, k + 1)))
        step = max(1, 8 * MAX_TEMPORARY // (head.stop - head.start))
        for lo in range(0, len(queries), step):
            q = slice(lo, min(lo + step, len(queries)))
            v = chunk.high[head] - product(queries.points.point[q], chunk.point[head])
            kth = torch.topk(v, k + 1, dim=1, largest=False, sorted=False)[0].amax(1).double()
            upper = kth + kth.abs() * 2.0**-22 + queries.points.high[q]
            half[g, q] = torch.minimum(half[g, q], upper * space.scale**2 + space.shared / 2)
    return half


def compute_thresholds(queries: Queries, half: Tensor, space: Space) -> Tensor:
    """Return the threshold tau of each query and group in fp32.

    A row is a candidate if low - product <= tau, with `low` from the norm of the row (see `scan`).
    """
    return round_up(half * (1 + TIE_MARGIN) / space.scale**2 - queries.points.low)


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner products of fp16 points in fp32."""
    return torch.mm(a, b.T, out_dtype=torch.float32) if a.is_cuda else a.float() @ b.float().T


# --- candidates ---


@dataclass(frozen=True)
class Candidates:
    """Lists of candidates for neighbours, as positions in the chunk.

    The list of a group and query has min(count, capacity) entries.
    """

    count: Tensor  # (groups, queries) int32: the number of candidates, stored or not
    place: Tensor  # (groups, queries, capacity) int32


def scan(queries: Queries, chunk: Chunk, tau: Tensor, capacity: int) -> Candidates:
    """Return the candidates of each query: the positions in the chunk at which low - q·x <= tau.

    q·x is the product of the points of the query and the row, and `low` is the row's term in the lower bound of ½d²
    (see `Points`). At most `capacity` candidates are stored for each query and group.
    """
    kernel = load_hopper_kernels(tau.device)
    if kernel is None:
        return scan_in_parts(queries, chunk, tau, capacity)
    return Candidates(*kernel.scan_points(queries.points.point, chunk.point, chunk.low, tau, chunk.group, capacity))


def scan_in_parts(queries: Queries, chunk: Chunk, tau: Tensor, capacity: int) -> Candidates:
    """Do the same as `scan`, but write the products to memory, for a part of the rows at a time."""
    groups, s = tau.shape
    count = torch.zeros(groups, s, dtype=torch.int32, device=tau.device)
    place = torch.zeros(groups, s, capacity, dtype=torch.int32, device=tau.device)
    width = max(1, MAX_TEMPORARY // max(s, 1))
    for g, (a, n) in enumerate(zip(chunk.first, chunk.size, strict=False)):
        for lo in range(a, a + n, width):
            part = slice(lo, min(lo + width, a + n))
            is_candidate = chunk.low[part] - product(queries.points.point, chunk.point[part]) <= tau[g][:, None]
            q, p = torch.nonzero(is_candidate, as_tuple=True)
            slot = is_candidate.cumsum(1, dtype=torch.int32)[q, p].long() - 1 + count[g, q]
            kept = slot < capacity
            place[g, q[kept], slot[kept]] = (p[kept] + lo).int()
            count[g] += is_candidate.sum(1, dtype=torch.int32)
    return Candidates(count, place)
