"""The k nearest rows of each group on a device, exactly as the CPU engine finds them.

    chunk ──scan──► hits ──float64 d², round9──► merge by (d², key) ──► thresholds for the next chunk

Thresholds tighten from chunk to chunk, so chunks begin small and grow. Without a GPU the same functions run as plain
torch.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from belief.kernels.gpu.exact import distances, round9
from belief.kernels.gpu.lists import Best, merge
from belief.kernels.gpu.loading import compiled
from belief.kernels.gpu.points import STEP, WORDS, Space
from belief.kernels.gpu.scan import Chunk, Hits, Queries, scan, seed, thresholds

CAPACITY = 128  # hits a list has room for at first
QUERIES = 2**17  # that meet a chunk at a time


def meet(queries: Queries, chunk: Chunk, best: Best, space: Space) -> Best:
    """The best rows of the chunk and of those before, of all queries."""
    cut = [slice(a, min(a + QUERIES, len(queries))) for a in range(0, len(queries), QUERIES)]
    found = [_meet(queries.at(x), chunk, best.at(x), space, CAPACITY) for x in cut]
    return found[0] if len(found) == 1 else Best.concat(found) if found else best


def _meet(queries: Queries, chunk: Chunk, best: Best, space: Space, capacity: int) -> Best:
    """A query with more hits than its lists have room for goes again.

    It has the threshold of what was stored then, and meets no surplus copies of rows. The counter counts all hits,
    stored or not, so with as much room as it says once is enough.
    """
    half = seed(queries, chunk, best, space)
    hits = scan(queries, chunk, thresholds(queries, half, space), capacity)
    found = merge(best, *verify(queries, chunk, hits, space))
    again = hits.overflown
    if not len(again):
        return found
    half = torch.minimum(half, found.farthest / 2)[:, again]
    few, chunk = queries.at(again), chunk.without_copies(best.size)
    need = scan(few, chunk, thresholds(few, half, space), 0).count.amax(0)
    order = torch.argsort(need)  # those who need little first, together
    for part in _parts(need[order], len(chunk.size)):
        mine, some = again[order[part]], few.at(order[part])
        room = STEP * (int(need[order[part]].max()) // STEP + 1)
        hits = scan(some, chunk, thresholds(some, half[:, order[part]], space), room)
        found.put(mine, merge(best.at(mine), *verify(some, chunk, hits, space)))
    return found


def _parts(need: Tensor, groups: int) -> Iterator[slice]:
    """Cut queries, the most demanding last, so that the lists of a part are within WORDS."""
    wanted, a = need.tolist(), 0
    while a < len(wanted):
        b = a + 1
        while b < len(wanted) and groups * (b + 1 - a) * wanted[b] <= WORDS:
            b += 1
        yield slice(a, b)
        a = b


def verify(queries: Queries, chunk: Chunk, hits: Hits, space: Space) -> tuple[Tensor, Tensor, Tensor]:
    """(d², key, row) of the stored hits, each (groups, queries, room); d² is infinite where there is none."""
    room = min(int(hits.count.max()), hits.place.shape[2]) if hits.count.numel() else 0
    place = hits.place[:, :, :room]
    if not room:
        return torch.zeros(place.shape, dtype=torch.float64, device=place.device), place.long(), place.long()
    kernels = compiled(place.device)
    if kernels is not None and not space.missing:
        d2 = kernels.pair_distances(queries.values, chunk.values, chunk.source, hits.count, hits.place, room, space)
    else:
        d2 = _verify(queries, chunk, hits.count, place, space)
    there = torch.arange(room, device=place.device) < hits.count[:, :, None]
    place = torch.where(there, place, 0).long()
    row, key = chunk.row[place], chunk.key[place]
    d2 = torch.where(row == queries.row[:, None], torch.inf, round9(d2))
    return d2, key, row


def _verify(queries: Queries, chunk: Chunk, count: Tensor, place: Tensor, space: Space) -> Tensor:
    d2 = torch.full(place.shape, torch.inf, dtype=torch.float64, device=place.device)
    there = torch.arange(place.shape[2], device=place.device) < count[:, :, None]
    g, q, i = torch.nonzero(there, as_tuple=True)
    for part in torch.arange(len(g), device=g.device).split(max(1, WORDS // space.n_features)):
        rows = chunk.values[chunk.source[place[g[part], q[part], i[part]].long()]]
        d2[g[part], q[part], i[part]] = distances(queries.values[q[part]], rows, space)
    return d2
