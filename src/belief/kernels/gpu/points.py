"""Rows as points in fp16 whose squared distances are nearly d², and how nearly.

The error bound
---------------
Let z be the exact coordinates of a row, z~ the same rounded to fp16, e = |z - z~| and N the squared norm with what
missing values add, so that d² = N_q + N_x - 2·z_q·z_x. With acc the product that the tensor cores return,

    z~_q·z~_x - z_q·z_x = z~_q·(z~_x - z_x) + (z~_q - z_q)·z_x          so at most |z~_q|·e_x + e_q·|z_x|
    |acc - z~_q·z~_x|  <= γ·|z~_q|·|z~_x|

e is measured row by row when the row is rounded, not bounded: subnormals, values cut off at the largest fp16, and what
fp16 holds exactly need no case of their own. γ: products of two fp16 are exact in fp32; the unit adds blocks of at
least 4 of them to the accumulator, each addend cut to 24 bits below the largest and the sum cut again, so a block of b
loses at most (b + 2)·2^-23 of the largest, which Cauchy and Schwarz bound by |z~_q|·|z~_x|, and K columns lose at most
1.5·K·2^-23 of it. (Rounding to nearest in any order, as on a CPU, loses less.) By 2xy <= ρx² + y²/ρ, for any ρ > 0,

    ½d² >= low_q + low_x - acc,   low = ½N - err,   err = ½(e²/ρ + ρ·max(|z|, |z~|)² + γ·|z~|²)
    ½d² <= high_q + high_x - acc, high = ½N + err

so a row with low_x - acc > ½D·(1 + 1e-8) - low_q cannot be nearer than D, not even after rounding to 9 digits. low_x is
rounded down to fp32, the right side up, and since rounding is monotone the one subtraction in fp32 loses nothing. ρ is
2^-12, near the best for values that fill their binades.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from belief.kernels.embedding import MOST_LEVELS, simplex
from belief.kernels.gpu.loading import compiled
from belief.method.arrays import Array
from belief.method.difference import Difference

RHO = 2.0**-12
STEP = 64  # columns of the points are padded to a multiple of it
LARGEST = 65504.0  # of fp16
WORDS = 2**25  # numbers a temporary array may have


@dataclass(frozen=True)
class Corners:
    """A discrete feature as points: the corners of a regular simplex with edges of length 1, centred.

    Beyond MOST_LEVELS levels share corners, so that points are never farther apart than the rows, and at most 1 nearer.
    """

    feature: int
    level: Tensor  # sorted
    share: Tensor  # how frequent each is
    corner: Tensor  # of each level, (levels, columns)
    radius: float  # what a missing value adds to the squared norm

    @classmethod
    def of(cls, feature: int, level: Array, count: Array, device: torch.device) -> Self:
        share = count / max(count.sum(), 1)
        bucket = np.arange(len(level)) % MOST_LEVELS
        p = np.bincount(bucket, share, min(len(level), MOST_LEVELS))
        corners = simplex(len(p)) - p @ simplex(len(p))
        level, share, corner = (torch.tensor(x, device=device) for x in (level, share, corners[bucket]))
        return cls(feature, level, share, corner, float(1.0 - (p * p).sum()) / 2)

    def place(self, x: Tensor) -> Tensor:
        """Which level each value is; any for a missing one."""
        there = x.nan_to_num(nan=float("inf")).contiguous()
        return torch.searchsorted(self.level, there).clamp(max=len(self.level) - 1)


@dataclass(frozen=True)
class Space:
    """What Δ is, feature by feature, and the columns of the points: continuous features first, then the corners."""

    mean: Tensor
    per_unit: Tensor
    spread: Tensor  # what a missing value is expected to cost
    discrete: Tensor
    plain: Tensor  # the continuous features
    corners: tuple[Corners, ...]  # of each discrete feature that varies
    missing: bool
    scale: float  # a power of two
    shared: int  # features of which two different levels may have the same corner
    columns: int  # of the points, padded

    @classmethod
    def of(cls, d: Difference, device: torch.device) -> Self:
        def put(x: Array) -> Tensor:
            return torch.tensor(x, device=device)

        first = np.searchsorted(d.levels.feature, np.arange(d.n_features + 1))
        live = np.flatnonzero(d.discrete & (np.diff(first) > 1)).tolist()
        cut = [(j, slice(first[j], first[j + 1])) for j in live]
        corners = tuple(Corners.of(j, d.levels.value[x], d.levels.count[x], device) for j, x in cut)
        columns = int((~d.discrete).sum()) + sum(x.corner.shape[1] for x in corners)
        return cls(
            put(d.mean), put(d.per_unit), put(d.spread), put(d.discrete), put(np.flatnonzero(~d.discrete)), corners,
            d.missing, scale_of(d.spread), sum(len(x.level) > MOST_LEVELS for x in corners),
            max(-(-columns // STEP) * STEP, STEP),
        )  # fmt: skip

    @property
    def n_features(self) -> int:
        return len(self.mean)

    @property
    def mixed(self) -> bool:
        return len(self.plain) < self.n_features


def scale_of(spread: Array) -> float:
    """The root mean square of a coordinate as a power of two: dividing by it rounds nothing, and keeps to fp16."""
    mean = float(spread.mean())
    return float(2.0 ** round(math.log2(mean) / 2)) if mean > 0 else 1.0


@dataclass(frozen=True)
class Points:
    """Rows as fp16 points, and the bounds of ½d² that belong to them: low + low - acc <= ½d² <= high + high - acc."""

    point: Tensor  # (rows, columns) fp16
    low: Tensor  # float64
    high: Tensor

    def at(self, which: Tensor | slice) -> Points:
        return Points(self.point[which], self.low[which], self.high[which])


def accumulation(columns: int) -> float:
    """γ: what the fp32 sum of so many products may lose, relative to the norms."""
    return (1.5 * columns + 16) * 2.0**-23


def embed(values: Tensor, where: Tensor, space: Space) -> Points:
    """The points of the rows values[where]."""
    kernels = compiled(values.device)
    if kernels is not None and not space.mixed and space.columns <= kernels.WIDEST:
        return Points(*kernels.embed_plain(values, where, space, accumulation(space.columns)))
    parts = [_embed(values[x], space) for x in where.split(max(1, WORDS // space.columns))]
    return Points(*(torch.cat([getattr(x, f) for x in parts]) for f in ("point", "low", "high")))


def _embed(values: Tensor, space: Space) -> Points:
    z, extra = coordinates(values, space)
    rounded = z.clamp(-LARGEST, LARGEST).half()
    back = rounded.double()
    error, near, far = ((z - back) ** 2).sum(1), (z**2).sum(1), (back**2).sum(1)
    half = (near + extra) / 2
    err = (error / RHO + RHO * torch.maximum(near, far) + accumulation(z.shape[1]) * far) / 2
    err += 2.0**-40 * half  # for the float64 sums themselves
    return Points(rounded, half - err, half + err)


def coordinates(values: Tensor, space: Space) -> tuple[Tensor, Tensor]:
    """The float64 coordinates of rows, padded, in units of the scale, and what missing values add to the norm."""
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
