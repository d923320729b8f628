"""Sums over rows and over pairs of rows on a GPU: moments, differences, their spread, collisions.

All sums are computed by torch in float64, so they agree with sums in any other order to about 1e-12. Pairs are
processed in parts. The pairs of a query are summed in order, and the sums of queries are added up for each class by a
product with a matrix of zeros and ones, so no sum depends on the order in which threads run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from belief.kernels.gpu.points import MAX_TEMPORARY
from belief.kernels.shapes import cut_between_queries, query_statistics, reaches
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs
from belief.method.redundancy.collisions import Collisions
from belief.method.summary import Levels, Summary

# --- the summary ---


def summarise(values: Tensor, group: Tensor, n_groups: int, discrete: Array) -> Summary:
    """Return the summary of some rows, with sums by group. `discrete` are the indices of the discrete features."""
    present = ~values.isnan() if bool(values.isnan().any()) else None
    if present is None:
        minimum, maximum = torch.aminmax(values, dim=0)
        y = values.double() - minimum.double()  # x - origin; 0 if a value is missing
        count, shift = torch.full_like(minimum.double(), len(values)), y.mean(0)
        deviation = y - shift
        by_group = torch.bincount(group, minlength=n_groups)[:n_groups, None].double().expand(n_groups, y.shape[1])
    else:
        minimum = values.masked_fill(~present, torch.inf).amin(0)
        maximum = values.masked_fill(~present, -torch.inf).amax(0)
        y = (values.double() - minimum.double()).masked_fill_(~present, 0.0)
        count = present.sum(0).double()
        shift = y.sum(0) / count.clamp(min=1)
        deviation = (y - shift).masked_fill_(~present, 0.0)
        by_group = sum_by_kind(present.double(), group, n_groups)
    between = ((values > minimum) & (values < maximum)).any(0)
    limits = (torch.where(count > 0, x.double(), torch.nan) for x in (minimum, maximum))
    lines = [count, shift, deviation.square().sum(0), *limits, (values != 0).sum(0).double()]
    count, shift, m2, minimum, maximum, nonzero = torch.stack(lines).cpu().numpy()
    levels, n_lines = [Levels.zero()], max(n_groups, 1)
    for j in discrete.tolist():
        is_known = slice(None) if present is None else present[:, j]
        value, which = torch.unique(values[is_known, j], return_inverse=True)
        cells = torch.bincount(which * n_lines + group[is_known], minlength=len(value) * n_lines)
        table, value = (x.cpu().numpy() for x in (cells.reshape(-1, n_lines), value.double()))
        levels.append(Levels(np.full(len(value), j), value, table.sum(axis=1), table[:, :n_groups]))
    return replace(
        Summary.zero(values.shape[1]),
        m=len(values),
        count=count,
        shift=shift,
        m2=m2,
        minimum=minimum,
        maximum=maximum,
        nonzero=nonzero,
        between=between.cpu().numpy(),
        levels=Levels.concat(levels),
        group_count=by_group.cpu().numpy(),
        group_sum=sum_by_kind(y, group, n_groups).cpu().numpy(),
        origin=minimum,
    )


# --- pairs ---


@dataclass(frozen=True)
class Located:
    """Pairs of rows, with the positions of both rows in `values` on the device."""

    values: Tensor
    query: Tensor
    neighbour: Tensor
    pairs: Pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def at(self, part: slice) -> Located:
        return Located(self.values, self.query[part], self.neighbour[part], self.pairs.take(part))

    def parts(self, width: int) -> Iterator[Located]:
        """Yield parts of the pairs for which `width` numbers per pair fit into a temporary array.

        The pairs of a query stay together.
        """
        return (self.at(part) for part in cut_between_queries(self.pairs, max(1, MAX_TEMPORARY // width)))


class Reach(NamedTuple):
    """The parameters of collision rates (`belief.kernels.shapes.Reach`) on the device."""

    reach: Tensor
    slope: Tensor
    discrete: Tensor
    mixed: bool

    @classmethod
    def from_difference(
        cls, difference: Difference, kappa: float, columns: Array | slice, device: torch.device
    ) -> Self:
        host = reaches(difference, kappa, columns)
        farthest, slope, discrete = (torch.tensor(x, device=device) for x in host)
        return cls(farthest, slope, discrete, bool(host.discrete.any()))


def compute_differences(located: Located, reach: Reach, columns: Tensor | None = None) -> Tensor:
    """Return |a - b|, (pairs, features): 0 or 1 for discrete features, NaN if a value is missing."""
    x, y = (
        located.values[at] if columns is None else located.values[at[:, None], columns]
        for at in (located.query, located.neighbour)
    )
    d = x.double().sub_(y).abs_()
    return torch.where(reach.discrete & (d > 0), 1.0, d) if reach.mixed else d


def compute_rates(d: Tensor, reach: Reach) -> Tensor:
    """Return the collision rates cr of differences; 0 if a value is missing."""
    return torch.where(d <= reach.reach, 1.0 - reach.slope * d, 0.0)


def compute_complements(d: Tensor, reach: Reach) -> Tensor:
    """Return e = 1 - cr of differences, without a subtraction, which would lose digits; 0 if a value is missing."""
    return torch.where(d <= reach.reach, reach.slope * d, (d > reach.reach).double())


# --- the tally ---


def tally(located: Located, difference: Difference, rates: Collisions | None) -> dict[str, Array]:
    """Return the sums of differences over the pairs, as a dictionary of the fields of `belief.kernels.shapes.Sums`."""
    device, F, missing = located.values.device, difference.n_features, difference.missing
    reach = Reach.from_difference(difference, rates.kappa if rates else 1.0, slice(None), device)
    kinds, (lines, query_lines, n_groups) = located.pairs.n_kinds, located.pairs.spread_shape
    shapes = {
        "total": (kinds, F),
        "absent": (kinds if missing else 0, F),
        "rates": (F if rates else 0,),
        "spread": (lines, n_groups, F),
        "queries": (query_lines if missing else 0, n_groups, F),
    }
    sums = {name: torch.zeros(shape, dtype=torch.float64, device=device) for name, shape in shapes.items()}
    for part in located.parts(F):
        d = compute_differences(part, reach)
        if rates is not None:
            sums["rates"] += compute_rates(d, reach).sum(0)
        lost = d.isnan() if missing else None
        _add(sums, part.pairs, d if lost is None else d.masked_fill_(lost, 0.0), lost)
    return {name: x.cpu().numpy() for name, x in sums.items()}


def _add(sums: dict[str, Tensor], pairs: Pairs, d: Tensor, lost: Tensor | None) -> None:
    kind = torch.tensor(pairs.kind, device=d.device)
    if pairs.coupled:
        _add_by_query(sums, pairs, kind, d, lost)
        return
    weight = 1.0 if pairs.weight is None else torch.tensor(pairs.weight, device=d.device)
    shares = [(kind, weight)] if pairs.weight is None else [(kind, weight), (kind + 1, 1.0 - weight)]
    for line, share in shares:
        sums["total"] += sum_by_kind(d, line, pairs.n_kinds, share)
        if lost is not None:
            sums["absent"] += sum_by_kind(lost.double(), line, pairs.n_kinds, share)


def _add_by_query(sums: dict[str, Tensor], pairs: Pairs, kind: Tensor, d: Tensor, lost: Tensor | None) -> None:
    """Sum over the misses and hits of each query, and add these sums and their products to the totals."""
    lengths = torch.tensor(np.diff(np.r_[pairs.starts, len(pairs)]), device=d.device)
    g = torch.tensor(pairs.kind[pairs.starts] // 2, device=d.device)
    weighted, n_groups = pairs.weight is not None, pairs.n_kinds // 2
    miss = torch.tensor(pairs.weight, device=d.device) if weighted else 1.0 - (kind & 1).double()
    present = torch.ones_like(d[:, :1]) if lost is None else (~lost).double()
    sides = miss, 1.0 - miss
    (a, t), (b, u) = (tuple(_sum_runs(x * side[:, None], lengths) for x in (d, present)) for side in sides)
    for line, x in enumerate((a, b)):
        sums["total"][line::2] += sum_by_kind(x, g, n_groups)
    products, counts = query_statistics(a, b, t, u, weighted, torch)
    for line, x in zip(sums["spread"], products, strict=True):
        line += sum_by_kind(x, g, n_groups)
    if lost is not None:
        for line, side in enumerate(sides):
            sums["absent"][line::2] += sum_by_kind(_sum_runs(lost * side[:, None], lengths), g, n_groups)
        for line, x in zip(sums["queries"], counts, strict=True):
            line += sum_by_kind(x, g, n_groups)


def _sum_runs(x: Tensor, lengths: Tensor) -> Tensor:
    """Divide the lines of x into consecutive runs of these lengths; return the sum of the lines of each run."""
    return torch.segment_reduce(x, "sum", lengths=lengths, axis=0, unsafe=True)


def sum_by_kind(x: Tensor, kind: Tensor, n: int, share: Tensor | float = 1.0) -> Tensor:
    """Return the sums of the lines of x that have the same `kind`, (n, columns).

    A matrix product is fast for few kinds.
    """
    ones = (kind == torch.arange(n, device=kind.device)[:, None]).double()
    return (ones * share) @ x


# --- joint sums ---


def joint(located: Located, difference: Difference, rates: Collisions, lines: Array, columns: Array) -> Joint:
    """Return the joint sums of some features (lines) with others (columns) over the pairs."""
    every = np.union1d(lines, columns)
    i, j = np.searchsorted(every, lines), np.searchsorted(every, columns)
    device = located.values.device
    reach = Reach.from_difference(difference, rates.kappa, every, device)
    at = None if len(every) == difference.n_features else torch.tensor(every, device=device)
    where = [torch.tensor(x, device=device) for x in (i, j)]
    found: list[Tensor] = []
    for part in located.parts(len(every)):
        part_sums = _joint(compute_differences(part, reach, at), reach, rates, difference.missing, *where)
        found = part_sums if not found else [x.add_(y) for x, y in zip(found, part_sums, strict=True)]
    if not found:
        nothing = torch.zeros(0, len(every), dtype=torch.float64, device=device)
        found = _joint(nothing, reach, rates, difference.missing, *where)
    cross, *rest = (x.cpu().numpy() for x in found)
    pairs = rest.pop(0) if difference.missing else np.full(cross.shape, float(len(located)))
    empty = np.zeros((2, 0, 0))
    return Joint(cross, pairs, *(rest or (empty, empty)))


def _joint(d: Tensor, reach: Reach, rates: Collisions, missing: bool, i: Tensor, j: Tensor) -> list[Tensor]:
    """Return a list of matrices with a line for each feature of i and a column for each feature of j.

    The first holds the joint sums of collision rates. If values are missing, the second holds the numbers of pairs in
    which both features are present. If `rates.by` is "rate", two arrays with Σe and Σe² follow, as in `Joint`.
    """
    R = compute_complements(d, reach) if rates.by == "rate" else compute_rates(d, reach)
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
