"""The summary of the data (counts, moments and levels of the features), which the first pass computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from belief.method.arrays import Array, FeatureArray

MAX_GROUP_BYTES = 2**28  # counts per group are not kept if they need more memory
MAX_GROUPS = 256  # with more groups, levels are not counted per group, because the counts may be larger than the data


def can_count_groups(n_groups: int, n_features: int) -> bool:
    """Return True if a count and a sum for each group of rows and each feature fit into the allowed memory."""
    return 16 * n_groups * n_features <= MAX_GROUP_BYTES


def pad_groups(x: Array, n: int, axis: int) -> Array:
    """Pad x with zeros to n groups along an axis that has an entry per group of rows."""
    width = [(0, n - x.shape[i] if i == axis else 0) for i in range(x.ndim)]
    return x if x.shape[axis] == n else np.pad(x, width)


@dataclass(frozen=True)
class Levels:
    """The distinct values (levels) of all discrete features, and how often each occurs.

    The arrays have one entry per feature and value. `groups` has a column for each group of rows (class), which holds
    the count of the value in that group; it has no columns if groups are not counted. If the group of some rows is
    unknown, the sum of the columns is below `count`.
    """

    feature: Array
    value: Array
    count: Array
    groups: Array = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.feature):
            object.__setattr__(self, "groups", np.zeros((len(self.feature), 0), np.int64))

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the levels of different features."""
        n = max(x.groups.shape[1] for x in parts)
        columns = [(x.feature, x.value, x.count, pad_groups(x.groups, n, axis=1)) for x in parts]
        return cls(*(np.concatenate(x) for x in zip(*columns, strict=True)))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """Merge levels of different rows: the counts of the same value of the same feature are added."""
        lines = cls.concat(parts)
        if not len(lines.feature):
            return lines
        order = np.lexsort((lines.value, lines.feature))
        feature, value = lines.feature[order], lines.value[order]
        is_new = np.r_[True, (feature[1:] != feature[:-1]) | (value[1:] != value[:-1])]
        first = np.flatnonzero(is_new)
        if 8 * len(first) * lines.groups.shape[1] > MAX_GROUP_BYTES:
            return cls(feature[is_new], value[is_new], np.add.reduceat(lines.count[order], first))
        count, groups = (np.add.reduceat(x[order], first, axis=0) for x in (lines.count, lines.groups))
        return cls(feature[is_new], value[is_new], count, groups)

    def regrouped(self, order: Array, n: int) -> Self:
        """Renumber the groups of rows: group g becomes order[g], of n groups."""
        n_known = self.groups.shape[1]
        keep = n_known > 0 and n <= MAX_GROUPS and 8 * len(self.feature) * n <= MAX_GROUP_BYTES
        return replace(self, groups=_add_by_group(self.groups.T, order, n if keep else 0).T)


def _add_by_group(x: Array, order: Array, n: int) -> Array:
    """Return n lines, where line h is the sum of all lines g of x with order[g] = h; no lines if n is 0."""
    out = np.zeros((n, x.shape[1]), x.dtype)
    if n:
        np.add.at(out, order[: len(x)], x)
    return out


@dataclass(frozen=True)
class Summary:
    """Counts and moments of each feature over m rows, and the levels of the discrete features.

    The groups of rows are their classes. For each group, the number of present values and their sum are kept, unless
    there are too many groups. Rows of an unknown group are included in the other fields only.
    """

    m: int
    count: FeatureArray  # present values
    shift: FeatureArray  # mean - origin, which keeps more digits than the mean if the mean is large compared with σ
    m2: FeatureArray  # Σ(x - mean)²
    minimum: FeatureArray  # NaN if all values are missing
    maximum: FeatureArray
    nonzero: FeatureArray  # non-zero cells, including missing ones
    between: FeatureArray  # whether there are values between the minimum and the maximum
    levels: Levels
    group_count: FeatureArray  # (groups, features)
    group_sum: FeatureArray  # (groups, features), Σ(x - origin)
    origin: FeatureArray  # one of the values; NaN if all values are missing

    @classmethod
    def zero(cls, n_features: int) -> Self:
        zeros, nans, no_groups = np.zeros(n_features), np.full(n_features, np.nan), np.zeros((0, n_features))
        return cls(
            m=0,
            count=zeros,
            shift=zeros,
            m2=zeros,
            minimum=nans,
            maximum=nans,
            nonzero=zeros,
            between=zeros > 0,
            levels=Levels.zero(),
            group_count=no_groups,
            group_sum=no_groups,
            origin=nans,
        )

    def merge(self, other: Self) -> Self:
        """Return the summary of the rows of both summaries.

        Chan's formula merges the variances without cancellation.
        """
        if not self.m and not len(self.group_count):
            return other
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        with np.errstate(invalid="ignore", over="ignore"):  # infinities raise an error later, with the column's name
            origin = np.where(np.isnan(self.origin), other.origin, self.origin)
            moved = np.nan_to_num(other.origin - origin, nan=0.0)  # to the common origin
            step = other.shift + moved - self.shift
            m2 = self.m2 + other.m2 + step**2 * self.count * share
            group_count, group_sum, n = self.group_count, self.group_sum, len(other.group_count)
            if n:
                n = max(n, len(group_count))
                total = other.group_sum + other.group_count * moved
                group_count = pad_groups(group_count, n, axis=0) + pad_groups(other.group_count, n, axis=0)
                group_sum = pad_groups(group_sum, n, axis=0) + pad_groups(total, n, axis=0)
        minimum, maximum = np.fmin(self.minimum, other.minimum), np.fmax(self.maximum, other.maximum)
        extremes = (self.minimum, self.maximum, other.minimum, other.maximum)
        is_inside = np.logical_or.reduce([(x > minimum) & (x < maximum) for x in extremes])
        return type(self)(
            m=self.m + other.m,
            count=count,
            shift=self.shift + step * share,
            m2=m2,
            minimum=minimum,
            maximum=maximum,
            nonzero=self.nonzero + other.nonzero,
            between=self.between | other.between | is_inside,
            levels=Levels.merged([self.levels, other.levels]),
            group_count=group_count,
            group_sum=group_sum,
            origin=origin,
        )

    def regrouped(self, order: Array, n: int) -> Self:
        """Renumber the groups of rows: group g becomes order[g], of n groups."""
        lines = n if len(self.group_count) and can_count_groups(n, len(self.count)) else 0
        return replace(
            self,
            group_count=_add_by_group(self.group_count, order, lines),
            group_sum=_add_by_group(self.group_sum, order, lines),
            levels=self.levels.regrouped(order, n),
        )

    @property
    def mean(self) -> Array:
        """The mean of each feature; 0 if all values are missing."""
        with np.errstate(invalid="ignore"):  # infinities raise an error later, with the column's name
            return np.where(np.isnan(self.origin), 0.0, self.origin + self.shift)

    def count_other_values(self) -> Array:
        """Return, for each feature, the number of cells that are missing or differ from the most frequent value."""
        has_two_values = (self.maximum > self.minimum) & ~self.between
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = (self.origin - self.minimum + self.shift) / (self.maximum - self.minimum)
        high = np.rint(self.count * share)
        frequent = np.where(has_two_values, np.fmax(high, self.count - high), self.m - self.nonzero)
        frequent[self.levels.feature] = 0.0
        np.maximum.at(frequent, self.levels.feature, self.levels.count.astype(float))
        return self.m - frequent

    @property
    def missing(self) -> Array:
        """The number of missing values of each feature."""
        return self.m - self.count
