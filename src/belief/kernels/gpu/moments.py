"""The summary of rows that are on the device already (1.)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from belief.method.arrays import Array
from belief.method.summary import Levels


def moments(values: Tensor) -> Array:
    """Count, mean, M2, minimum, maximum, non-zeros, and the values between minimum and maximum: (7, F)."""
    x = values.double()
    there = ~x.isnan()
    count = there.sum(0).double()
    mean = x.nansum(0) / count.clamp(min=1)
    m2 = (x - mean).square_().nansum(0)
    least, most = (torch.where(there, x, end) for end in (torch.inf, -torch.inf))
    least, most = least.amin(0), most.amax(0)
    between = ((x > least) & (x < most)).sum(0).double()
    least, most = (torch.where(count > 0, end, torch.nan) for end in (least, most))
    return torch.stack([count, mean, m2, least, most, (x != 0).sum(0).double(), between]).cpu().numpy()


def levels(values: Tensor, features: Array) -> Levels:
    """The distinct values of some columns, and how often each occurs."""
    parts = [Levels.zero()]
    for j in features.tolist():
        x = values[:, j]
        value, count = torch.unique(x[~x.isnan()], return_counts=True)
        parts.append(Levels(np.full(len(value), j), value.double().cpu().numpy(), count.cpu().numpy()))
    return Levels.concat(parts)
