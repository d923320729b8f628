"""Triton kernels of the neighbour search, for all CUDA devices: embedding, exact distances, merging of lists."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from belief.kernels.gpu.points import LARGEST_FP16, RHO, Space

MAX_COLUMNS = 4096  # columns of points that one program computes


# --- points -------------------------------------------------------------------------------------------------------


@triton.jit
def _embed(
    values,
    where,
    mean,
    per_unit,
    spread,
    point,
    low,
    high,
    n,
    gamma,
    F: tl.constexpr,
    W: tl.constexpr,
    WIDE: tl.constexpr,
    HIGH: tl.constexpr,
    MOST: tl.constexpr,
    RHO: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * HIGH + tl.arange(0, HIGH)
    column = tl.arange(0, WIDE)
    here, known = row < n, column < F
    source = tl.load(where + row, mask=here, other=0)
    inside = here[:, None] & known[None, :]
    x = tl.load(values + source[:, None] * F + column[None, :], mask=inside, other=0.0).to(tl.float64)
    u = tl.load(per_unit + column, mask=known, other=0.0)
    cost = tl.load(spread + column, mask=known, other=0.0)
    z = (x - tl.load(mean + column, mask=known, other=0.0)[None, :]) * u[None, :]
    lost = z != z
    z = tl.where(lost, 0.0, z)
    rounded = tl.clamp(z.to(tl.float32), -MOST, MOST).to(tl.float16)  # rounded twice; the error is measured anyway
    back = rounded.to(tl.float64)
    tl.store(point + row[:, None] * W + column[None, :], rounded, mask=here[:, None] & (column < W)[None, :])
    near, far, error = tl.sum(z * z, 1), tl.sum(back * back, 1), tl.sum((z - back) * (z - back), 1)
    half = (near + tl.sum(tl.where(lost & inside, cost[None, :], 0.0), 1)) * 0.5
    err = (error / RHO + RHO * tl.maximum(near, far) + gamma * far) * 0.5 + half * 9.094947017729282e-13
    tl.store(low + row, half - err, mask=here)
    tl.store(high + row, half + err, mask=here)


def embed_plain(values: Tensor, where: Tensor, space: Space, gamma: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows values[where] as fp16 points, and the terms `low` and `high` of the bounds of their distances.

    All features must be continuous.
    """
    n, columns = len(where), space.columns
    wide = triton.next_power_of_2(columns)
    point = torch.empty(n, columns, dtype=torch.float16, device=values.device)
    low, high = torch.empty(2, n, dtype=torch.float64, device=values.device)
    high_rows = max(1, 4096 // wide)
    if n:
        _embed[(triton.cdiv(n, high_rows),)](
            values.contiguous(),
            where,
            space.mean,
            space.per_unit / space.scale,
            space.spread / space.scale**2,
            point,
            low,
            high,
            n,
            gamma,
            space.n_features,
            columns,
            wide,
            high_rows,
            LARGEST_FP16,
            RHO,
            num_warps=4,
        )
    return point, low, high


# --- exact distances ----------------------------------------------------------------------------------------------


@triton.jit
def _distances(
    queries,
    values,
    source,
    count,
    place,
    per_unit,
    discrete,
    out,
    n_queries,
    capacity,
    room,
    F: tl.constexpr,
    MIXED: tl.constexpr,
    HIGH: tl.constexpr,
    WIDE: tl.constexpr,
):
    line = tl.program_id(0).to(tl.int64)
    query = line % n_queries
    n = tl.minimum(tl.load(count + line), capacity)
    for first in range(0, n, HIGH):
        i = first + tl.arange(0, HIGH)
        here = i < n
        row = tl.load(source + tl.load(place + line * capacity + i, mask=here, other=0), mask=here, other=0)
        total = tl.zeros((HIGH, WIDE), tl.float64)
        for a in range(0, F, WIDE):
            j = a + tl.arange(0, WIDE)
            known = j < F
            x = tl.load(queries + query * F + j, mask=known, other=0.0).to(tl.float64)
            y = tl.load(values + row[:, None] * F + j[None, :], mask=here[:, None] & known[None, :], other=0.0)
            d = x[None, :] - y.to(tl.float64)
            if MIXED:
                unequal = tl.load(discrete + j, mask=known, other=0)[None, :] != 0
                d = tl.where(unequal, tl.where(d != 0.0, 1.0, 0.0), d)
            d *= tl.load(per_unit + j, mask=known, other=0.0)[None, :]
            total += d * d
        tl.store(out + line * room + i, tl.sum(total, 1), mask=here)


def pair_distances(
    queries: Tensor, values: Tensor, source: Tensor, count: Tensor, place: Tensor, room: int, space: Space
) -> Tensor:
    """Return the squared distance d² of each candidate in float64, (groups, queries, room).

    It is infinite for empty entries.
    """
    out = torch.full((*count.shape, room), torch.inf, dtype=torch.float64, device=values.device)
    if room:
        _distances[(count.numel(),)](
            queries.contiguous(),
            values,
            source,
            count,
            place,
            space.per_unit,
            space.discrete.to(torch.int8),
            out,
            count.shape[1],
            place.shape[2],
            room,
            space.n_features,
            space.mixed,
            8,
            128,
            num_warps=4,
        )
    return out


# --- merging lists ---------------------------------------------------------------------------------------------


@triton.jit
def _merge(d_old, k_old, r_old, d_new, k_new, r_new, d_out, k_out, r_out, K: tl.constexpr, room, LEN: tl.constexpr):
    LAST: tl.constexpr = 9223372036854775807
    line = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, LEN)
    old, new = i < K, (i >= K) & (i < K + room)
    a, b = line * K + i, line * room + i - K
    infinite = float("inf")
    d = tl.where(old, tl.load(d_old + a, mask=old, other=infinite), tl.load(d_new + b, mask=new, other=infinite))
    key = tl.where(old, tl.load(k_old + a, mask=old, other=LAST), tl.load(k_new + b, mask=new, other=LAST))
    row = tl.where(old, tl.load(r_old + a, mask=old, other=-1), tl.load(r_new + b, mask=new, other=-1))
    for t in range(K):
        least = tl.min(d, 0)
        first = tl.min(tl.where(d == least, key, LAST), 0)
        at = tl.min(tl.where((d == least) & (key == first), i, LEN), 0)
        found = least < infinite
        tl.store(d_out + line * K + t, least)
        tl.store(k_out + line * K + t, tl.where(found, first, LAST))
        tl.store(r_out + line * K + t, tl.where(found, tl.sum(tl.where(i == at, row, 0), 0), -1))
        d = tl.where(i == at, infinite, d)


def merge_lists(old: tuple[Tensor, ...], new: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Merge two lists of (d2, key, row) for each query into the nearest rows, as many as the first list has.

    Ties in distance go to the smaller key.
    """
    k, room = old[0].shape[2], new[0].shape[2]
    out = tuple(torch.empty_like(x) for x in old)
    length = triton.next_power_of_2(k + room)
    arguments: list[Any] = [*(x.contiguous() for x in (*old, *new)), *out, k, room, length]
    _merge[(old[0].shape[0] * old[0].shape[1],)](*arguments, num_warps=1 if length <= 256 else 4)
    return out
