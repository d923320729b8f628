"""The sums over pairs (query, neighbour) on a device: differences, what queries say of them, collisions.

Everything is torch in float64, so that sums agree with any other order of summation to 1e-12 or so; a part of the pairs
is worked on at a time. The pairs of a query lie together and are added up one after the other, then the queries of each
kind by a product with a matrix of ones, so that no sum depends on which thread comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from belief.kernels.gpu.points import WORDS
from belief.kernels.shapes import reaches
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs
from belief.method.redundancy.collisions import Collisions


@dataclass(frozen=True)
class Located:
    """Pairs by the places of their rows in `values`, on the device."""

    values: Tensor
    query: Tensor
    neighbour: Tensor
    pairs: Pairs

    @classmethod
    def of(cls, values: Tensor, pairs: Pairs, query: Array, neighbour: Array) -> Self:
        at, to = (torch.tensor(x, device=values.device) for x in (query, neighbour))
        return cls(values, at, to, pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def at(self, part: slice) -> Located:
        return Located(self.values, self.query[part], self.neighbour[part], self.pairs.take(part))

    def parts(self, width: int) -> Iterator[Located]:
        """Cut between queries, so that `width` numbers for each pair are few enough."""
        ends = np.r_[self.pairs.starts, len(self)]
        step = max(1, WORDS // width)
        cuts = ends[np.searchsorted(ends, np.arange(0, len(self) + step, step)).clip(max=len(ends) - 1)]
        return (self.at(slice(a, b)) for a, b in pairwise(np.unique(cuts).tolist()))


class Reach(NamedTuple):
    """When two values collide (|a - b| <= reach), how fast the rate falls, and which features are discrete."""

    reach: Tensor
    slope: Tensor
    discrete: Tensor
    mixed: bool

    @classmethod
    def of(cls, difference: Difference, kappa: float, columns: Array | slice, device: torch.device) -> Self:
        host = reaches(difference, kappa, columns)
        farthest, slope, discrete = (torch.tensor(x, device=device) for x in host)
        return cls(farthest, slope, discrete, bool(host.discrete.any()))


def differences(located: Located, reach: Reach, columns: Tensor | None = None) -> Tensor:
    """|a - b| of each pair (lines) and feature (columns), 0 or 1 for a discrete one, NaN where a value is missing."""
    x, y = (
        located.values[at] if columns is None else located.values[at[:, None], columns]
        for at in (located.query, located.neighbour)
    )
    d = x.double().sub_(y).abs_()
    return torch.where(reach.discrete & (d > 0), 1.0, d) if reach.mixed else d


def collision_rates(d: Tensor, reach: Reach) -> Tensor:
    """The collision rates of differences; 0 where a value is missing, since that is never near."""
    return torch.where(d <= reach.reach, 1.0 - reach.slope * d, 0.0)


# --- the tally ---


def tally(located: Located, difference: Difference, rates: Collisions | None) -> dict[str, Array]:
    """Total, absent, rates, spread and queries of a tally, in each feature's own unit."""
    reach = Reach.of(difference, rates.kappa if rates else 1.0, slice(None), located.values.device)
    sums = _nothing(located.pairs, difference, rates, located.values.device)
    for part in located.parts(difference.n_features):
        d = differences(part, reach)
        if rates is not None:
            sums["rates"] += collision_rates(d, reach).sum(0)
        lost = d.isnan() if difference.missing else None
        _add(sums, part.pairs, d if lost is None else d.masked_fill_(lost, 0.0), lost)
    return {name: x.cpu().numpy() for name, x in sums.items()}


def _nothing(pairs: Pairs, difference: Difference, rates: Collisions | None, device: torch.device) -> dict[str, Tensor]:
    F, kinds, missing = difference.n_features, pairs.n_kinds, difference.missing
    lines, query_lines, couples = pairs.spread_shape
    shapes = {
        "total": (kinds, F), "absent": (kinds if missing else 0, F), "rates": (F if rates else 0,),
        "spread": (lines, couples, F), "queries": (query_lines if missing else 0, couples, F),
    }  # fmt: skip
    return {name: torch.zeros(shape, dtype=torch.float64, device=device) for name, shape in shapes.items()}


def _add(sums: dict[str, Tensor], pairs: Pairs, d: Tensor, lost: Tensor | None) -> None:
    """Add the differences of some pairs to the sums."""
    kind = torch.tensor(pairs.kind, device=d.device)
    if pairs.coupled:
        _add_couples(sums, pairs, kind, d, lost)
        return
    weight = 1.0 if pairs.weight is None else torch.tensor(pairs.weight, device=d.device)
    shares = [(kind, weight)] if pairs.weight is None else [(kind, weight), (kind + 1, 1.0 - weight)]
    for line, share in shares:
        sums["total"] += by_kind(d, line, pairs.n_kinds, share)
        if lost is not None:
            sums["absent"] += by_kind(lost.double(), line, pairs.n_kinds, share)


def _add_couples(sums: dict[str, Tensor], pairs: Pairs, kind: Tensor, d: Tensor, lost: Tensor | None) -> None:
    """Add up the far and the near pairs of each query first, and then what the query has to say."""
    lengths = torch.tensor(np.diff(np.r_[pairs.starts, len(pairs)]), device=d.device)
    g = torch.tensor(pairs.kind[pairs.starts] // 2, device=d.device)
    weighted, couples = pairs.weight is not None, pairs.n_kinds // 2
    far = torch.tensor(pairs.weight, device=d.device) if weighted else 1.0 - (kind & 1).double()
    there = torch.ones_like(d[:, :1]) if lost is None else (~lost).double()
    (a, t), (b, u) = (
        tuple(_runs(x * side[:, None], lengths) for x in (d, there)) for side in (far, 1.0 - far)
    )  # what a query sums up to, and over how much, far and near
    for line, x in enumerate((a, b)):
        sums["total"][line::2] += by_kind(x, g, couples)
    if lost is not None:
        for line, side in enumerate((far, 1.0 - far)):
            sums["absent"][line::2] += by_kind(_runs(lost * side[:, None], lengths), g, couples)
    if weighted:
        products, weights = (a * a, a * b, b * b, a * t, a * u, b * t, b * u), (t * t, t * u, u * u)
    else:
        both = (t > 0) & (u > 0)
        delta = torch.where(both, a / t.clamp(min=1) - b / u.clamp(min=1), 0.0)
        products, weights = (delta, delta * delta), (both.double(),)
    for line, x in zip(sums["spread"], products, strict=True):
        line += by_kind(x, g, couples)
    if lost is not None:
        for line, x in zip(sums["queries"], weights, strict=True):
            line += by_kind(x, g, couples)


def _runs(x: Tensor, lengths: Tensor) -> Tensor:
    """Add up the lines of x in runs of these lengths."""
    return torch.segment_reduce(x, "sum", lengths=lengths, axis=0, unsafe=True)


def by_kind(x: Tensor, kind: Tensor, n: int, share: Tensor | float = 1.0) -> Tensor:
    """Add up the lines of x by `kind`, of which there are few."""
    ones = (kind == torch.arange(n, device=kind.device)[:, None]).double()
    return (ones * share) @ x


# --- joint sums ---


def joint(located: Located, difference: Difference, rates: Collisions, lines: Array, columns: Array) -> Joint:
    """The joint sums of some features with others over the pairs, as `joint_sums` has them."""
    every = np.union1d(lines, columns)
    i, j = np.searchsorted(every, lines), np.searchsorted(every, columns)
    device = located.values.device
    reach = Reach.of(difference, rates.kappa, every, device)
    at = None if len(every) == difference.n_features else torch.tensor(every, device=device)
    where = [torch.tensor(x, device=device) for x in (i, j)]
    found: list[Tensor] = []
    for part in located.parts(len(every)):
        more = _joint(differences(part, reach, at), reach, rates, difference.missing, *where)
        found = more if not found else [x.add_(y) for x, y in zip(found, more, strict=True)]
    if not found:
        nothing = torch.zeros(0, len(every), dtype=torch.float64, device=device)
        found = _joint(nothing, reach, rates, difference.missing, *where)
    cross, *rest = (x.cpu().numpy() for x in found)
    pairs = rest.pop(0) if difference.missing else np.full(cross.shape, float(len(located)))
    empty = np.zeros((2, 0, 0))
    return Joint(cross, pairs, *(rest or (empty, empty)))


def _joint(d: Tensor, reach: Reach, rates: Collisions, missing: bool, i: Tensor, j: Tensor) -> list[Tensor]:
    """The joint sums, the pairs that have both where values are missing, and by "rate" Σcr and Σcr² of either."""
    R = collision_rates(d, reach)
    R_i, R_j = R[:, i], R[:, j]
    out = [R_i.T @ R_j if rates.by == "rate" else (R_i.T @ (R_j > 0).double() + (R_i > 0).double().T @ R_j) / 2]
    P = (~d.isnan()).double() if missing else torch.ones_like(d[:, :1])
    P_i, P_j = (P[:, i], P[:, j]) if missing else (P, P)
    if missing:
        out.append(P_i.T @ P_j)
    if rates.by == "rate":
        out.append(torch.stack([R_i.T @ P_j, (R_i * R_i).T @ P_j]))
        out.append(torch.stack([P_i.T @ R_j, P_i.T @ (R_j * R_j)]))
    return out
