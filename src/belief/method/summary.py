"""One pass over the data: what is known of each feature before anything is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from belief.method.arrays import Array


@dataclass(frozen=True)
class Levels:
    """The distinct values of the discrete features and how often each occurs, as three columns of a table."""

    feature: Array
    value: Array
    count: Array

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The lines of tables of different features, one table after the other."""
        return cls(*(np.concatenate([getattr(x, f.name) for x in parts]) for f in fields(cls)))

    def merge(self, other: Self) -> Self:
        both = self.concat([self, other])
        feature, value, count = both.feature, both.value, both.count
        if not len(feature):
            return self
        order = np.lexsort((value, feature))
        feature, value, count = feature[order], value[order], count[order]
        new = np.r_[True, (feature[1:] != feature[:-1]) | (value[1:] != value[:-1])]
        return type(self)(feature[new], value[new], np.add.reduceat(count, np.flatnonzero(new)))


@dataclass(frozen=True)
class Summary:
    """The number of rows, the moments of each feature, and its levels if it is discrete."""

    m: int
    count: Array  # present values
    mean: Array
    m2: Array  # Σ(x - mean)²
    minimum: Array  # NaN where nothing is present
    maximum: Array
    nonzero: Array  # cells that are not 0, missing ones among them
    between: Array  # whether there are values other than the minimum and the maximum
    levels: Levels

    @classmethod
    def zero(cls, n_features: int) -> Self:
        nothing, unknown = np.zeros(n_features), np.full(n_features, np.nan)
        return cls(0, nothing, nothing, nothing, unknown, unknown, nothing, nothing > 0, Levels.zero())

    def merge(self, other: Self) -> Self:
        """Chan's formula: the moments of the union, without sums of squares."""
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        with np.errstate(invalid="ignore", over="ignore"):  # infinities are refused when all is read, by name
            step = other.mean - self.mean
            mean = self.mean + step * share
            m2 = self.m2 + other.m2 + step**2 * self.count * share
        least, most = np.fmin(self.minimum, other.minimum), np.fmax(self.maximum, other.maximum)
        ends = (self.minimum, self.maximum, other.minimum, other.maximum)
        inside = np.logical_or.reduce([(x > least) & (x < most) for x in ends])
        return type(self)(
            self.m + other.m,
            count,
            mean,
            m2,
            least,
            most,
            self.nonzero + other.nonzero,
            self.between | other.between | inside,
            self.levels.merge(other.levels),
        )

    @property
    def missing(self) -> Array:
        return self.m - self.count
