"""Distributions of the selected features by class, or along a numeric target, in the sampled rows.

They are for display; no weight depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from belief.method.arrays import Array
from belief.method.sampling import Sample
from belief.method.summary import Summary
from belief.method.targets import CLASSIFICATION, Target

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # the shares whose quantiles are computed
MAX_FEATURES, MAX_ROWS, MAX_GROUPS, MAX_LEVELS = 100, 4096, 12, 8
PARTS = 5  # a numeric target is cut into fifths


@dataclass(frozen=True)
class FeatureDistribution:
    """The distribution of one feature in the sampled rows of each group.

    A group is a class, or a fifth of a numeric target. Discrete features, and continuous features with two
    distinct values, have `levels` and `shares`. All other features have `quantiles` and `ranks`.
    """

    feature: int
    discrete: bool
    missing: float  # the share of all rows without a value
    groups: list[int]  # the indices of the largest classes, or of the fifths
    quantiles: list[list[float]]  # one line per group: the quantiles at SHARES
    ranks: list[float]  # the mean rank of each group among all sampled rows, from 0 to 1
    levels: list[str]  # the most frequent levels
    shares: list[list[float]]  # one line per group: the share of its rows with each level

    @classmethod
    def read(cls, plain: Mapping[str, Any], n_features: int, n_groups: int) -> Self:
        """Make a distribution from the values of a JSON file; raise a ValueError if they are invalid."""
        found = cls(**plain)
        numbers = [*found.ranks, *(x for line in (*found.quantiles, *found.shares) for x in line), found.missing]
        is_valid = (
            all(type(x) is int for x in (found.feature, *found.groups))
            and 0 <= found.feature < n_features
            and all(0 <= g < n_groups for g in found.groups)
            and all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
            and all(type(x) is str for x in found.levels)
            and found.discrete in (False, True)
        )
        per_group, other, n = found.quantiles, found.shares, len(SHARES)
        if found.discrete or found.levels:
            per_group, other, n = found.shares, found.quantiles, len(found.levels)
            is_valid = is_valid and not found.ranks
        else:
            is_valid = is_valid and len(found.ranks) == len(found.groups)
        is_valid = is_valid and not other and len(per_group) == len(found.groups) and {*map(len, per_group)} <= {n}
        if not is_valid:
            raise ValueError(f"invalid distribution of feature {found.feature!r:.40}")
        return found

    def with_level_names(self, names: Mapping[float, str] | None) -> FeatureDistribution:
        """Return a copy with the names of the levels instead of their codes.

        Without names, the levels are called "level 1", "level 2" and so on.
        """
        if not self.discrete:
            return self
        if names is None:
            return replace(self, levels=[f"level {i}" for i in range(1, len(self.levels) + 1)])
        return replace(self, levels=[names.get(float(x), x) for x in self.levels])


@dataclass(frozen=True)
class SampledValues:
    """The values of some features in sampled rows, from which the distributions are computed."""

    features: Array
    X: Array  # (rows, features)
    group: Array  # the group of each row: its class, or its fifth of a numeric target
    shown: list[int]  # the groups to display
    missing: Array  # the share of all rows without a value, for each feature
    discrete: Array

    @classmethod
    def read(
        cls,
        features: Array,
        values: Callable[[Array, Array], Array],
        sample: Sample,
        target: Target,
        summary: Summary,
        discrete: Array,
    ) -> Self:
        """Read the values of the first 100 of these features in the first 4,096 sampled rows.

        `values` returns values, given the ids of rows and the indices of features.
        """
        features, sample = features[:MAX_FEATURES], sample.part(slice(0, MAX_ROWS))
        X = values(sample.row, features) if len(features) else np.zeros((len(sample.row), 0))
        missing = summary.missing[features] / max(summary.m, 1)
        group, shown = np.asarray(sample.target), list(range(PARTS))
        if target.task == CLASSIFICATION:
            shown = sorted(np.argsort(-target.counts, kind="stable")[:MAX_GROUPS].tolist())  # the largest classes
        else:
            group = np.minimum((PARTS * group).astype(np.int64), PARTS - 1)
        return cls(features, X, group, shown, missing, discrete[features])

    def describe(self) -> list[FeatureDistribution]:
        """Return the distribution of each feature."""
        X, group, shown = self.X, self.group, self.shown
        is_complete = ~self.discrete & ~np.isnan(X).any(axis=0) & ~_has_two_values(X)
        columns = np.flatnonzero(is_complete).tolist()
        described = dict(zip(columns, _describe_numeric(X[:, is_complete], group, shown), strict=True))
        for t in np.flatnonzero(~is_complete).tolist():
            x, present = X[:, t], ~np.isnan(X[:, t])
            if self.discrete[t] or _has_two_values(x[present, None])[0]:
                x, groups = x[present], group[present]
                top, count = np.unique(x, return_counts=True)
                if self.discrete[t]:
                    top = top[np.argsort(-count, kind="stable")[:MAX_LEVELS]]
                some = [g for g in shown if (groups == g).any()]
                shares = [(x[groups == g, None] == top).mean(axis=0).tolist() for g in some]
                described[t] = some, [], [], [f"{v:.17g}" for v in top.tolist()], shares
            else:
                described[t] = _describe_numeric(x[present, None], group[present], shown)[0]
        return [
            FeatureDistribution(j, bool(self.discrete[t]), float(self.missing[t]), *described[t])
            for t, j in enumerate(self.features.tolist())
        ]


_Described = tuple[list[int], list[list[float]], list[float], list[str], list[list[float]]]  # the last five fields


def _describe_numeric(X: Array, group: Array, shown: list[int]) -> list[_Described]:
    """Return the quantiles and mean ranks of numeric columns without missing values, in each displayed group."""
    present, n = [g for g in shown if (group == g).any()], X.shape[1]
    if not present or not n:
        return [([], [], [], [], [])] * n
    rank = mean_ranks(X)
    quantiles = np.array([np.quantile(X[group == g], SHARES, axis=0) for g in present])  # (groups, SHARES, columns)
    ranks = np.array([rank[group == g].mean(axis=0) for g in present])
    return [(list(present), quantiles[:, :, t].tolist(), ranks[:, t].tolist(), [], []) for t in range(n)]


def _has_two_values(X: Array) -> Array:  # False if a value is missing
    if not len(X):
        return np.zeros(X.shape[1], bool)
    low, high = X.min(axis=0), X.max(axis=0)
    return ((low == X) | (high == X)).all(axis=0) & (low < high)


def mean_ranks(X: Array) -> Array:
    """Return the mid-rank of each value in its column, scaled to [0, 1]; NaN for missing values."""
    columns = np.ascontiguousarray(X.T)
    is_missing, order = np.isnan(columns), np.argsort(columns, axis=-1)
    values = np.take_along_axis(columns, order, axis=-1)
    is_new = values[..., 1:] != values[..., :-1]
    if is_new.all():
        place = np.broadcast_to(np.arange(float(columns.shape[-1])), columns.shape)
    else:
        # the mean position of the values equal to a value, from the first and the last of them
        n, edge = columns.shape[-1], np.ones((*is_new.shape[:-1], 1), bool)
        is_first, is_last = np.concatenate([edge, is_new], axis=-1), np.concatenate([is_new, edge], axis=-1)
        first = np.maximum.accumulate(np.where(is_first, np.arange(n), 0), axis=-1)
        last = np.minimum.accumulate(np.where(is_last, np.arange(n), n)[..., ::-1], axis=-1)[..., ::-1]
        place = (first + last) / 2
    rank = np.empty(columns.shape)
    np.put_along_axis(rank, order, place, axis=-1)
    rank[is_missing] = np.nan
    n_present = columns.shape[-1] - is_missing.sum(axis=-1)
    return np.ascontiguousarray(rank.T) / np.maximum(n_present - 1, 1)
