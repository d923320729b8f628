"""The summary of rows that are on the device already (1.)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from belief.method.arrays import Array
from belief.method.summary import Levels


def moments(values: Tensor) -> Array:
    """Count, mean, M2, minimum, maximum, non-zeros, and the values between minimum and maximum: (7, F)."""
    there = None if not bool(values.isnan().any()) else ~values.isnan()
    count, mean, m2 = _whole(values.double()) if there is None else _with_holes(values.double(), there)
    if there is None:
        least, most = values.amin(0), values.amax(0)
    else:
        least, most = (values.masked_fill(~there, end) for end in (torch.inf, -torch.inf))
        least, most = least.amin(0), most.amax(0)
    between = ((values > least) & (values < most)).sum(0)
    least, most = (torch.where(count > 0, end.double(), torch.nan) for end in (least, most))
    nonzero = (values != 0).sum(0)
    return torch.stack([count, mean, m2, least, most, nonzero.double(), between.double()]).cpu().numpy()


def _whole(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Count, mean and M2 where nothing is missing: one pass."""
    variance, mean = torch.var_mean(x, 0, correction=0)
    return torch.full_like(mean, len(x)), mean, variance * len(x)


def _with_holes(x: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    count = there.sum(0).double()
    mean = x.nansum(0) / count.clamp(min=1)
    return count, mean, (x - mean).square_().nansum(0)


def levels(values: Tensor, features: Array) -> Levels:
    """The distinct values of some columns, and how often each occurs."""
    parts = [Levels.zero()]
    for j in features.tolist():
        x = values[:, j]
        value, count = torch.unique(x[~x.isnan()], return_counts=True)
        parts.append(Levels(np.full(len(value), j), value.double().cpu().numpy(), count.cpu().numpy()))
    return Levels.concat(parts)
