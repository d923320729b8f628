"""The summary of rows that are on the device (1.)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from belief.kernels.gpu.sums import by_kind
from belief.method.arrays import Array
from belief.method.summary import Levels, Summary

FEW_GROUPS = 64  # whose sums are made by a product with a matrix of ones


def summary(values: Tensor, group: Tensor, n_groups: int, discrete: Array) -> Summary:
    """The moments of some rows, the sums of the groups they are of, and the levels of the discrete features."""
    there = ~values.isnan() if bool(values.isnan().any()) else None
    count, mean, apart = _apart(values.double(), there)
    least, most = _ends(values, there)
    between = ((values > least) & (values < most)).any(0)
    ends = (torch.where(count > 0, end.double(), torch.nan) for end in (least, most))
    lines = [count, mean, apart.square().sum(0), *ends, (values != 0).sum(0).double()]
    count, mean, m2, least, most, nonzero = torch.stack(lines).cpu().numpy()
    present, total = _groups(apart, there, group, n_groups)
    return replace(
        Summary.zero(values.shape[1]), m=len(values), count=count, mean=mean, m2=m2, minimum=least, maximum=most,
        nonzero=nonzero, between=between.cpu().numpy(), levels=levels(values, group, n_groups, discrete),
        group_count=present, group_sum=total, origin=np.where(count > 0, mean, np.nan),
    )  # fmt: skip


def _apart(x: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """How many values are present, their mean, and x - mean, 0 where a value is missing."""
    if there is None:
        mean = x.mean(0)
        return torch.full_like(mean, len(x)), mean, x - mean
    count = there.sum(0).double()
    mean = x.nansum(0) / count.clamp(min=1)
    return count, mean, (x - mean).masked_fill_(~there, 0.0)


def _ends(values: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
    """The least and the largest value, where there is any."""
    if there is None:
        least, most = torch.aminmax(values, dim=0)
        return least, most
    return values.masked_fill(~there, torch.inf).amin(0), values.masked_fill(~there, -torch.inf).amax(0)


def _groups(apart: Tensor, there: Tensor | None, group: Tensor, n: int) -> tuple[Array, Array]:
    """Of each group the present values, and Σ(x - mean)."""
    if there is None:
        present = torch.bincount(group, minlength=n)[:n, None].double().expand(n, apart.shape[1])
    else:
        present = by_kind(there.double(), group, n)
    return present.cpu().numpy(), by_kind(apart, group, n).cpu().numpy()


def levels(values: Tensor, group: Tensor, n_groups: int, features: Array) -> Levels:
    """The distinct values of some columns, and how often each occurs, in all and in each group."""
    parts, lines = [Levels.zero()], max(n_groups, 1)
    for j in features.tolist():
        there = ~values[:, j].isnan()
        value, which = torch.unique(values[there, j], return_inverse=True)
        cells = torch.bincount(which * lines + group[there], minlength=len(value) * lines)
        table = cells.reshape(-1, lines).cpu().numpy()
        value = value.double().cpu().numpy()
        parts.append(Levels(np.full(len(value), j), value, table.sum(axis=1), table[:, :n_groups]))
    return Levels.concat(parts)
