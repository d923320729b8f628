"""One pass over the data: what is known of each feature before anything is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from belief.method.arrays import Array, FeatureArray

GROUP_BYTES = 2**28  # what is kept of each group of rows takes no more, or nothing is kept
MOST_GROUPS = 256  # whose levels are counted; for more, the tables would be larger than what they are made from


def can_count_groups(n_groups: int, n_features: int) -> bool:
    """Whether a count and a sum can be kept for each group and feature."""
    return 16 * n_groups * n_features <= GROUP_BYTES


def pad_groups(x: Array, n: int, axis: int) -> Array:
    """The same for n groups in all: zeros for those it has not seen."""
    room = [(0, n - x.shape[i] if i == axis else 0) for i in range(x.ndim)]
    return x if x.shape[axis] == n else np.pad(x, room)


@dataclass(frozen=True)
class Levels:
    """The distinct values of the discrete features and how often each occurs, as columns of a table.

    `groups` has a column for each group of rows, the classes: how often the value occurs there. It has no columns where
    that is not kept, and counts less than `count` where it was kept of some rows only.
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
        """The lines of tables of different features, one table after the other."""
        n = max(x.groups.shape[1] for x in parts)
        columns = [(x.feature, x.value, x.count, pad_groups(x.groups, n, axis=1)) for x in parts]
        return cls(*(np.concatenate(x) for x in zip(*columns, strict=True)))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """The lines of all tables, those of the same feature and value as one."""
        every = cls.concat(parts)
        if not len(every.feature):
            return every
        order = np.lexsort((every.value, every.feature))
        feature, value = every.feature[order], every.value[order]
        new = np.r_[True, (feature[1:] != feature[:-1]) | (value[1:] != value[:-1])]
        first = np.flatnonzero(new)
        if 8 * len(first) * every.groups.shape[1] > GROUP_BYTES:
            return cls(feature[new], value[new], np.add.reduceat(every.count[order], first))
        count, groups = (np.add.reduceat(x[order], first, axis=0) for x in (every.count, every.groups))
        return cls(feature[new], value[new], count, groups)

    def merge(self, other: Self) -> Self:
        return self.merged([self, other])

    def regrouped(self, order: Array, n: int) -> Self:
        """The same, what was group g as order[g] of n."""
        known = self.groups.shape[1]
        keep = known > 0 and n <= MOST_GROUPS and 8 * len(self.feature) * n <= GROUP_BYTES
        return replace(self, groups=_regrouped(self.groups.T, order, n if keep else 0).T)


def _regrouped(x: Array, order: Array, n: int) -> Array:
    """The lines of groups, added up by what they are to be now; those of n = 0 are none."""
    out = np.zeros((n, x.shape[1]), x.dtype)
    if n:
        np.add.at(out, order[: len(x)], x)
    return out


@dataclass(frozen=True)
class Summary:
    """The number of rows, the moments of each feature, and its levels if it is discrete.

    The rows may come in groups, the classes. Of each group the present values and their sum are kept, unless there are
    too many groups; rows whose group nobody knew are in `count` and in no group.
    """

    m: int
    count: FeatureArray  # present values
    mean: FeatureArray
    m2: FeatureArray  # Σ(x - mean)²
    minimum: FeatureArray  # NaN where nothing is present
    maximum: FeatureArray
    nonzero: FeatureArray  # cells that are not 0, missing ones among them
    between: FeatureArray  # whether there are values other than the minimum and the maximum
    levels: Levels
    group_count: FeatureArray  # (groups, features)
    group_sum: FeatureArray  # (groups, features), Σ(x - origin): small numbers, whatever the mean is
    origin: FeatureArray  # near the mean; NaN where nothing is present

    @classmethod
    def zero(cls, n_features: int) -> Self:
        nothing, unknown, lines = np.zeros(n_features), np.full(n_features, np.nan), np.zeros((0, n_features))
        ends = unknown, unknown
        return cls(0, nothing, nothing, nothing, *ends, nothing, nothing > 0, Levels.zero(), lines, lines, unknown)

    def merge(self, other: Self) -> Self:
        """Chan's formula: the moments of the union, without sums of squares."""
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        with np.errstate(invalid="ignore", over="ignore"):  # infinities are refused when all is read, by name
            step = other.mean - self.mean
            mean = self.mean + step * share
            m2 = self.m2 + other.m2 + step**2 * self.count * share
            groups = self._groups_with(other)
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
            *groups,
        )

    def _groups_with(self, other: Self) -> tuple[Array, Array, Array]:
        """The counts and sums of the groups of both, and their origin: that of the first that has one."""
        origin = np.where(np.isnan(self.origin), other.origin, self.origin)
        if not len(other.group_count):
            return self.group_count, self.group_sum, origin
        n = max(len(self.group_count), len(other.group_count))
        moved = other.group_sum + other.group_count * np.nan_to_num(other.origin - origin, nan=0.0)
        count = pad_groups(self.group_count, n, axis=0) + pad_groups(other.group_count, n, axis=0)
        return count, pad_groups(self.group_sum, n, axis=0) + pad_groups(moved, n, axis=0), origin

    def regrouped(self, order: Array, n: int) -> Self:
        """The same, what was group g as order[g] of n: for groups that got their numbers as they came."""
        lines = n if len(self.group_count) and can_count_groups(n, len(self.count)) else 0
        return replace(
            self,
            group_count=_regrouped(self.group_count, order, lines),
            group_sum=_regrouped(self.group_sum, order, lines),
            levels=self.levels.regrouped(order, n),
        )

    @property
    def missing(self) -> Array:
        return self.m - self.count
