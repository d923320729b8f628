"""The embedding of features as points, whose squared Euclidean distances are d², in slices of limited width.

A slice has consecutive features, a to b - 1, which are embedded in at most `WIDTH` columns. Products are computed in
float32 for each slice, and then summed over the slices. So even with millions of features, only the products of one
slice and the sum over the slices contribute to the rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.linalg import helmert

from belief.kernels.dense import Geometry
from belief.kernels.shapes import UNIT_ROUNDOFF
from belief.method.arrays import Array
from belief.method.difference import Difference

WIDTH = 1024
MOST_LEVELS = 32  # discrete features with more levels are compared directly instead of embedded


@cache
def simplex(n_levels: int) -> Array:
    """Return the corners of a regular simplex with edges of length 1, one line per level: (n_levels, n_levels - 1)."""
    return np.ascontiguousarray(helmert(n_levels).T / np.sqrt(2)) if n_levels > 1 else np.zeros((n_levels, 0))


@dataclass(frozen=True)
class Slice:
    """The parameters with which kernels embed the features from a to b - 1 as points of `width` coordinates."""

    a: int
    b: int
    width: int
    geometry: Geometry
    direct: bool  # whether any feature is compared directly


class Embedding:
    """The embedding of the features of a Difference, slice by slice, and a bound of the error of float32 products."""

    def __init__(self, difference: Difference) -> None:
        self.difference = difference
        d = difference
        self._first = np.searchsorted(d.levels.feature, np.arange(d.n_features + 1))
        n_levels = np.diff(self._first)
        embedded = ~d.discrete | (n_levels <= MOST_LEVELS)
        self._widths = np.where(d.discrete, np.where(embedded, np.maximum(n_levels - 1, 0), 0), 1)
        self._embedded = embedded
        # divide by the root mean square of the coordinates to keep unscaled data within the range of float32
        self.scale = d.typical
        self.slices = self.cut(WIDTH)
        terms = max(s.width for s in self.slices) + len(self.slices) + int((~embedded).sum())
        # the largest error of d² as a share of the sum of the two squared norms; 16 is for all other roundings
        self.error = (terms + 16) * UNIT_ROUNDOFF

    @cached_property
    def whole(self) -> Slice:
        """All features as one slice, for rows rounded to integers, whose products are exact for any width."""
        return self._slice(0, self.difference.n_features)

    def cut(self, width: int) -> list[Slice]:
        """Return all features in slices of at most `width` columns."""
        upto, out = np.cumsum(np.maximum(self._widths, 1)), []
        a, before = 0, 0
        while a < len(upto):
            b = max(a + 1, int(np.searchsorted(upto, before + width, side="right")))
            out.append(self._slice(a, b))
            a, before = b, int(upto[b - 1])
        return out

    def _slice(self, a: int, b: int) -> Slice:
        d, widths = self.difference, self._widths[a:b]
        at = np.where(self._embedded[a:b], np.cumsum(widths) - widths, -1)
        lo, hi = self._first[a], self._first[b]
        first = self._first[a : b + 1] - lo
        level, count = d.levels.value[lo:hi], d.levels.count[lo:hi].astype(float)
        group = np.repeat(np.arange(b - a), np.diff(first))
        share = count / np.bincount(group, count, b - a)[group] if len(count) else count
        # The coordinates of each embedded feature's corners, and their position in an array of coordinates. Each level
        # is a corner of a simplex. The mean of the data is at zero.
        point, parts, size = np.zeros(b - a, np.int64), [np.zeros(0)], 0
        for j in np.flatnonzero(d.discrete[a:b] & self._embedded[a:b] & (np.diff(first) > 1)):
            corners = simplex(int(first[j + 1] - first[j]))
            point[j] = size
            parts.append((corners - share[first[j] : first[j + 1]] @ corners).ravel())
            size += corners.size
        points = np.concatenate(parts)
        geometry = Geometry(
            d.mean[a:b], d.per_unit[a:b], d.spread[a:b], d.discrete[a:b], first, level, share, at, point, points
        )
        return Slice(a, b, int(widths.sum()), geometry, bool((~self._embedded[a:b]).any()))
