"""The search for the k nearest rows of each group on a GPU, with the same results as on the CPU.

    chunk ──scan──► candidates ──float64 d², rounded──► merge by (d², key) ──► thresholds for the next chunk

d² is rounded to 9 significant digits, and ties go to the smaller tie key. Thresholds become tighter with each chunk, so
the first chunks are small and later ones larger. The same functions also run on the CPU device of torch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from belief.kernels.gpu.loading import load_triton_kernels
from belief.kernels.gpu.points import MAX_TEMPORARY, STEP, Space
from belief.kernels.gpu.ranking import Best, distances, merge, round9
from belief.kernels.gpu.scan import Candidates, Chunk, Queries, compute_thresholds, estimate_bounds, scan


def compare(
    queries: Queries, chunk: Chunk, best: Best, space: Space, capacity: int = 128, queries_at_once: int = 2**17
) -> Best:
    """Return the nearest rows of each query in this chunk and the chunks before it.

    `capacity` is the initial capacity of a query's list of candidates.
    """
    cut = [slice(a, min(a + queries_at_once, len(queries))) for a in range(0, len(queries), queries_at_once)]
    found = [_compare(queries.at(x), chunk, best.at(x), space, capacity) for x in cut]
    return found[0] if len(found) == 1 else Best.concat(found) if found else best


def _compare(queries: Queries, chunk: Chunk, best: Best, space: Space, capacity: int) -> Best:
    """Return the nearest rows of some queries; queries whose lists of candidates overflow are scanned again.

    The second scan has tighter thresholds and ignores surplus copies of rows. Its candidates are first counted without
    storing them, so that its lists have the necessary length.
    """
    half = estimate_bounds(queries, chunk, best, space)
    candidates = scan(queries, chunk, compute_thresholds(queries, half, space), capacity)
    found = merge(best, *verify(queries, chunk, candidates, space))
    again = torch.nonzero((candidates.count > candidates.place.shape[2]).any(0))[:, 0]
    if not len(again):
        return found
    half = torch.minimum(half, found.farthest / 2)[:, again]
    few, chunk = queries.at(again), chunk.without_copies(best.size)
    need = scan(few, chunk, compute_thresholds(few, half, space), 0).count.amax(0)
    order = torch.argsort(need)  # so that the lists of a part have similar lengths
    needs, b = need[order].tolist(), 0
    while b < len(needs):  # parts whose candidates fit into a temporary array
        a, b = b, b + 1
        while b < len(needs) and len(chunk.size) * (b + 1 - a) * needs[b] <= MAX_TEMPORARY:
            b += 1
        part = slice(a, b)
        mine, some = again[order[part]], few.at(order[part])
        room = STEP * (needs[b - 1] // STEP + 1)
        candidates = scan(some, chunk, compute_thresholds(some, half[:, order[part]], space), room)
        found.replace(mine, merge(best.at(mine), *verify(some, chunk, candidates, space)))
    return found


def verify(queries: Queries, chunk: Chunk, candidates: Candidates, space: Space) -> tuple[Tensor, Tensor, Tensor]:
    """Return d², key and row of the candidates, each (groups, queries, entries); d² is infinite for empty entries."""
    room = min(int(candidates.count.max()), candidates.place.shape[2]) if candidates.count.numel() else 0
    place = candidates.place[:, :, :room]
    if not room:
        return torch.zeros(place.shape, dtype=torch.float64, device=place.device), place.long(), place.long()
    kernels = load_triton_kernels(place.device)
    is_stored = torch.arange(room, device=place.device) < candidates.count[:, :, None]
    if kernels is not None and not space.missing:
        d2 = kernels.pair_distances(
            queries.values, chunk.values, chunk.source, candidates.count, candidates.place, room, space
        )
    else:
        d2 = torch.full(place.shape, torch.inf, dtype=torch.float64, device=place.device)
        g, q, i = torch.nonzero(is_stored, as_tuple=True)
        for part in torch.arange(len(g), device=g.device).split(max(1, MAX_TEMPORARY // space.n_features)):
            rows = chunk.values[chunk.source[place[g[part], q[part], i[part]].long()]]
            d2[g[part], q[part], i[part]] = distances(queries.values[q[part]], rows, space)
    place = torch.where(is_stored, place, 0).long()
    row, key = chunk.row[place], chunk.key[place]
    d2 = torch.where(row == queries.row[:, None], torch.inf, round9(d2))
    return d2, key, row
