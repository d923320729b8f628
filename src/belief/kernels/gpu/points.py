"""Rows as fp16 points whose squared distances approximate d², with proven error bounds.

The error bound
---------------
Let z be the exact coordinates of a row, z~ these coordinates rounded to fp16, and e = |z - z~|. Let N be the squared
norm, including the terms of missing values, so that d² = N_q + N_x - 2·z_q·z_x. If acc is the product computed by the
tensor cores,

    |z~_q·z~_x - z_q·z_x| = |z~_q·(z~_x - z_x) + (z~_q - z_q)·z_x| <= |z~_q|·e_x + e_q·|z_x|
    |acc - z~_q·z~_x| <= γ·|z~_q|·|z~_x|

e is measured for each row when it is rounded, so subnormals, values clipped to the largest fp16 and exact values need
no special case.

γ is derived as follows. Products of two fp16 numbers are exact in fp32. A tensor core adds blocks of at least 4
products to the accumulator: each addend is truncated to 24 bits below the largest addend, and the sum is truncated
again. So a block of b products loses at most (b + 2)·2^-23 of the largest addend, which is at most |z~_q|·|z~_x|
(Cauchy-Schwarz), and K columns lose at most 1.5·K·2^-23 of it. (Rounding to nearest in any order, as on a CPU, loses
less.)

By 2xy <= ρx² + y²/ρ for any ρ > 0,

    ½d² >= low_q + low_x - acc,   low = ½N - err,   err = ½(e²/ρ + ρ·max(|z|, |z~|)² + γ·|z~|²)
    ½d² <= high_q + high_x - acc, high = ½N + err

Let D be the largest d² that a neighbour may have. If low_x - acc > ½D·(1 + 1e-8) - low_q, the d² of the row exceeds D,
even after both are rounded to 9 digits. low_x is rounded down to fp32 and the right side is rounded up. Rounding is
monotone, so the one subtraction in fp32 loses nothing. ρ is 2^-12, which is close to optimal whatever the mantissas of
the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from belief.kernels.embedding import MOST_LEVELS, simplex
from belief.kernels.gpu.loading import load_triton_kernels
from belief.method.arrays import Array
from belief.method.difference import Difference

RHO = 2.0**-12
STEP = 64  # the number of columns of the points is padded to a multiple of this
LARGEST_FP16 = 65504.0
MAX_TEMPORARY = 2**25  # numbers in a temporary array


@dataclass(frozen=True)
class Corners:
    """A discrete feature as points: its levels are the corners of a centred regular simplex with edges of length 1.

    If there are more than MOST_LEVELS levels, some of them share a corner. Then the d² of two points may be too small,
    by 1, but it is never too large.
    """

    feature: int
    level: Tensor  # sorted
    share: Tensor  # relative frequency of each level
    corner: Tensor  # (levels, columns)
    radius: float  # a missing value adds this to the squared norm

    @classmethod
    def from_levels(cls, feature: int, level: Array, count: Array, device: torch.device) -> Self:
        share = count / max(count.sum(), 1)
        bucket = np.arange(len(level)) % MOST_LEVELS
        p = np.bincount(bucket, share, min(len(level), MOST_LEVELS))
        corners = simplex(len(p)) - p @ simplex(len(p))
        level, share, corner = (torch.tensor(x, device=device) for x in (level, share, corners[bucket]))
        return cls(feature, level, share, corner, float(1.0 - (p * p).sum()) / 2)

    def place(self, x: Tensor) -> Tensor:
        """Return the index of the level of each value; any index for missing values."""
        filled = x.nan_to_num(nan=float("inf")).contiguous()
        return torch.searchsorted(self.level, filled).clamp(max=len(self.level) - 1)


@dataclass(frozen=True)
class Space:
    """The parameters of the difference Δ and the layout of the columns of points, on the device.

    The columns of the continuous features come first, and the columns of the discrete features follow.
    """

    mean: Tensor
    per_unit: Tensor
    spread: Tensor  # expected Δ² between a value and the mean, which a missing value adds to a distance
    discrete: Tensor
    plain: Tensor  # indices of the continuous features
    corners: tuple[Corners, ...]  # one for each discrete feature that varies
    missing: bool
    scale: float  # coordinates are divided by this power of two to avoid overflow
    shared: int  # number of features whose levels share corners
    columns: int  # number of columns of the points, including padding

    @classmethod
    def from_difference(cls, d: Difference, device: torch.device) -> Self:
        def to_device(x: Array) -> Tensor:
            return torch.tensor(x, device=device)

        first = np.searchsorted(d.levels.feature, np.arange(d.n_features + 1))
        live = np.flatnonzero(d.discrete & (np.diff(first) > 1)).tolist()
        cut = [(j, slice(first[j], first[j + 1])) for j in live]
        corners = tuple(Corners.from_levels(j, d.levels.value[x], d.levels.count[x], device) for j, x in cut)
        columns = int((~d.discrete).sum()) + sum(x.corner.shape[1] for x in corners)
        # the root mean square of the coordinates, rounded to a power of two, because division by it is then exact
        mean = float(d.spread.mean())
        scale = float(2.0 ** round(math.log2(mean) / 2)) if mean > 0 else 1.0
        return cls(
            to_device(d.mean),
            to_device(d.per_unit),
            to_device(d.spread),
            to_device(d.discrete),
            to_device(np.flatnonzero(~d.discrete)),
            corners,
            d.missing,
            scale,
            sum(len(x.level) > MOST_LEVELS for x in corners),
            max(-(-columns // STEP) * STEP, STEP),
        )

    @property
    def n_features(self) -> int:
        return len(self.mean)

    @property
    def mixed(self) -> bool:
        return len(self.plain) < self.n_features


@dataclass(frozen=True)
class Points:
    """Rows as fp16 points, with two terms of each row for the bounds of its distances.

    If acc is the product of the points of two rows q and x, low_q + low_x - acc <= ½d² <= high_q + high_x - acc.
    """

    point: Tensor  # (rows, columns) fp16
    low: Tensor  # float64
    high: Tensor

    def at(self, which: Tensor | slice) -> Points:
        return Points(self.point[which], self.low[which], self.high[which])


def accumulation_error(columns: int) -> float:
    """Return γ, a bound of the rounding error of a product of points in fp32, relative to the norms of the points."""
    return (1.5 * columns + 16) * 2.0**-23


def embed(values: Tensor, where: Tensor, space: Space) -> Points:
    """Return the rows values[where] as fp16 points with their bounds."""
    kernels = load_triton_kernels(values.device)
    if kernels is not None and not space.mixed and space.columns <= kernels.MAX_COLUMNS:
        return Points(*kernels.embed_plain(values, where, space, accumulation_error(space.columns)))
    parts = [_embed(values[x], space) for x in where.split(max(1, MAX_TEMPORARY // space.columns))]
    return Points(*(torch.cat([getattr(x, f) for x in parts]) for f in ("point", "low", "high")))


def _embed(values: Tensor, space: Space) -> Points:
    z, extra = coordinates(values, space)
    rounded = z.clamp(-LARGEST_FP16, LARGEST_FP16).half()
    back = rounded.double()
    error, norm, back_norm = ((z - back) ** 2).sum(1), (z**2).sum(1), (back**2).sum(1)
    half = (norm + extra) / 2
    err = (error / RHO + RHO * torch.maximum(norm, back_norm) + accumulation_error(z.shape[1]) * back_norm) / 2
    err += 2.0**-40 * half  # rounding error of the float64 sums
    return Points(rounded, half - err, half + err)


def coordinates(values: Tensor, space: Space) -> tuple[Tensor, Tensor]:
    """Return the float64 coordinates of rows, and the sum that missing values add to d².

    The coordinates are divided by the scale and padded with zeros.
    """
    x = values.double()
    lost = x.isnan()
    out = torch.zeros(len(x), space.columns, dtype=torch.float64, device=x.device)
    n = len(space.plain)
    out[:, :n] = ((x - space.mean) * (space.per_unit / space.scale))[:, space.plain]
    extra = (lost[:, space.plain] * (space.spread[space.plain] / space.scale**2)).sum(1)
    for c in space.corners:
        width = c.corner.shape[1]
        gone = lost[:, c.feature]
        corner = (c.corner / space.scale)[c.place(x[:, c.feature])]
        out[:, n : n + width] = torch.where(gone[:, None], 0.0, corner)
        extra += gone * (c.radius / space.scale**2)
        n += width
    return torch.nan_to_num_(out, nan=0.0), extra
