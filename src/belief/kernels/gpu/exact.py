"""What is exact: d² in float64, rounded so that ties are ties, and the keys that decide them."""

from __future__ import annotations

import torch
from torch import Tensor

from belief.kernels.gpu.points import Corners, Space
from belief.kernels.plain import POWERS


def distances(a: Tensor, b: Tensor, space: Space) -> Tensor:
    """d² of pairs of rows in float64: line i of `a` with line i of `b`."""
    x, y = a.double(), b.double()
    if not space.missing:
        d = torch.where(space.discrete, (x != y).double(), x - y) if space.mixed else x - y
        return (d * space.per_unit).square_().sum(1)
    lost_x, lost_y = x.isnan(), y.isnan()
    there_x, there_y = torch.where(lost_x, space.mean, x), torch.where(lost_y, space.mean, y)
    d = torch.where(lost_x & lost_y, 0.0, (there_x - there_y) * space.per_unit)
    cost = d * d + (lost_x.double() + lost_y.double()) * space.spread
    cost = torch.where(space.discrete, (x != y) * space.per_unit, cost)
    for c in space.corners:
        _expect(cost[:, c.feature], x[:, c.feature], y[:, c.feature], c, space.spread[c.feature])
    return cost.sum(1)


def _expect(cost: Tensor, x: Tensor, y: Tensor, c: Corners, spread: Tensor) -> None:
    """Put in the cost of a discrete feature where one value or both are missing."""
    lost_x, lost_y = x.isnan(), y.isnan()
    one = 1.0 - c.share[c.place(torch.where(lost_x, y, x))]
    cost.copy_(torch.where(lost_x & lost_y, 2.0 * spread, torch.where(lost_x | lost_y, one, cost)))


def round9(x: Tensor) -> Tensor:
    """Round to 9 significant digits, so that equal distances summed in another order compare equal."""
    powers = torch.tensor(POWERS, device=x.device)
    fine = (x > 0) & x.isfinite()
    digits = (8 - torch.where(fine, x, 1.0).log10().floor()).long().clamp(max=300)
    power = powers[digits.abs()]
    rounded = torch.where(digits >= 0, (x * power).round() / power, (x / power).round() * power)
    return torch.where(fine, rounded, torch.where(x > 0, x, 0.0))


def keys(seed_key: int, rows: Tensor) -> Tensor:
    """Tie keys of row ids, as int64 that sort as the unsigned keys do; seed_key comes from the seed and the stream."""
    return _mix(rows ^ _signed(seed_key)) ^ _signed(2**63)


def _signed(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


def _mix(z: Tensor) -> Tensor:
    z = z + _signed(0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30 & 2**34 - 1)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> 27 & 2**37 - 1)) * _signed(0x94D049BB133111EB)
    return z ^ (z >> 31 & 2**33 - 1)
