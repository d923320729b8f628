"""Collisions of pairs of dense rows (5.)."""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.distance import FAST
from belief.kernels.shapes import Reach
from belief.method.arrays import Array


@kernel(fastmath=FAST)
def rate(d: float, slope: float, reach: float) -> float:
    """The collision rate of a difference d; 0 where d is NaN, since a missing value is never near."""
    return 1.0 - slope * d if d <= reach else 0.0


@kernel()
def collisions(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, R: Array, P: Array
) -> None:
    """Write cr into R, and presence into P where that is not empty (pairs x features)."""
    n = len(r.reach)
    for p in range(len(queries)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        cr = R[p]
        for j in range(n):
            d = abs(np.float64(x[j]) - np.float64(y[j]))
            d = (1.0 if d > 0.0 else d) if r.discrete[j] else d
            cr[j] = rate(d, r.slope[j], r.reach[j])
        if len(P):
            for j in range(n):
                P[p, j] = 1.0 if x[j] == x[j] and y[j] == y[j] else 0.0


@kernel()
def half_hits(
    Xq: Array, queries: Array, aq: int, Xr: Array, rows: Array, ar: int, r: Reach, H: Array, gap: Array
) -> None:
    """Write h = (cr + b)/2 of each pair into H (pairs x features), float32; add Σ(b - h)² to `gap` (features)."""
    n = len(r.reach)
    mixed = False
    for j in range(n):
        mixed |= r.discrete[j]
    for p in range(len(queries)):
        x = Xq[queries[p], aq : aq + n]
        y = Xr[rows[p], ar : ar + n]
        half = H[p]
        if mixed:
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                d = (1.0 if d > 0.0 else d) if r.discrete[j] else d
                half[j] = rate(d, 0.5 * r.slope[j], r.reach[j])
        else:
            for j in range(n):
                d = abs(np.float64(x[j]) - np.float64(y[j]))
                half[j] = rate(d, 0.5 * r.slope[j], r.reach[j])
        for j in range(n):
            g = 1.0 - np.float64(half[j]) if half[j] > 0.0 else 0.0
            gap[j] += g * g
