"""How the selected features are distributed, by class or along the target, in rows that were sampled.

A few numbers for each feature, to be looked at: no weight is made of them.
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

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the rows of a group, for the quantiles
FEATURES, ROWS, GROUPS, LEVELS = 100, 4096, 12, 8  # the most that are looked at, and told of
PARTS = 5  # of a numeric target, from its lowest fifth to its highest


@dataclass(frozen=True)
class FeatureDistribution:
    """One feature in the sampled rows of each group: a class, or a fifth of the numbers to predict."""

    feature: int
    discrete: bool
    missing: float  # the share of all rows that have no value
    groups: list[int]  # the numbers of the classes, the largest ones; or of the fifths
    quantiles: list[list[float]]  # of each group that has values, by SHARES; of names none
    ranks: list[float]  # the mean rank of each group among all sampled rows, from 0 to 1; of names none
    levels: list[str]  # the most frequent names
    shares: list[list[float]]  # of each group, how many of its rows have each of those

    @classmethod
    def read(cls, plain: Mapping[str, Any], n_features: int, n_groups: int) -> Self:
        """Make one of plain values; a ValueError where they are not what they should be."""
        found = cls(**plain)
        numbers = [*found.ranks, *(x for line in (*found.quantiles, *found.shares) for x in line), found.missing]
        held = [found.feature, *found.groups]
        if not (
            all(type(x) is int for x in held)
            and 0 <= found.feature < n_features
            and all(0 <= g < n_groups for g in found.groups)
            and all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
            and all(type(x) is str for x in found.levels)
            and found.discrete in (False, True)
            and found._fits()
        ):
            raise ValueError(f"the portrait of feature {found.feature!r:.40}")
        return found

    def _fits(self) -> bool:
        """Whether each group has its line, and each line its numbers."""
        if self.discrete:
            drawn = len(self.shares) == len(self.groups) and not self.quantiles and not self.ranks
            return drawn and all(len(line) == len(self.levels) for line in self.shares)
        drawn = len(self.quantiles) == len(self.ranks) == len(self.groups) and not self.levels and not self.shares
        return drawn and all(len(line) == len(SHARES) for line in self.quantiles)

    def named(self, names: Mapping[float, str] | None) -> FeatureDistribution:
        """The same with what its levels are called, by their codes; None: nobody knows."""
        told = [f"level {i}" if names is None else names.get(float(x), x) for i, x in enumerate(self.levels, 1)]
        return replace(self, levels=told)


def describe_distributions(
    features: Array, values: Callable[[Array, Array], Array], sample: Sample, target: Target, summary: Summary,
    discrete: Array,
) -> list[FeatureDistribution]:  # fmt: skip
    """Portray some features, the first 100 of them, by the first sampled rows; `values` gives them by their ids."""
    features, sample = features[:FEATURES], sample.part(slice(0, ROWS))
    if not len(features):
        return []
    group, chosen = groups_of(sample.target, target)
    X, missing = values(sample.row, features), summary.missing / max(summary.m, 1)
    there = ~np.isnan(X)
    whole = ~discrete[features] & there.all(axis=0)
    drawn = dict(zip(np.flatnonzero(whole).tolist(), _whole_columns(X[:, whole], group, chosen), strict=True))
    for t in np.flatnonzero(~whole).tolist():
        drawn[t] = (_of_names if discrete[features[t]] else _of_numbers)(X[:, t], group, chosen)
    return [
        FeatureDistribution(j, bool(discrete[j]), float(missing[j]), *drawn[t]) for t, j in enumerate(features.tolist())
    ]


def groups_of(targets: Array, target: Target) -> tuple[Array, list[int]]:
    """The group of each row, and the groups to tell of: the largest classes in order, or all fifths."""
    if target.task == CLASSIFICATION:
        largest = np.argsort(-target.counts, kind="stable")[:GROUPS]
        return np.asarray(targets), sorted(largest.tolist())
    return np.minimum((PARTS * np.asarray(targets)).astype(np.int64), PARTS - 1), list(range(PARTS))


Drawn = tuple[list[int], list[list[float]], list[float], list[str], list[list[float]]]  # from `groups` on


def _whole_columns(X: Array, group: Array, chosen: list[int]) -> list[Drawn]:
    """Columns of numbers without a missing value, all at once."""
    held, n = [g for g in chosen if (group == g).any()], X.shape[1]
    if not held or not n:
        return [([], [], [], [], [])] * n
    rank = mean_ranks(X)
    quantiles = np.array([np.quantile(X[group == g], SHARES, axis=0) for g in held])  # (groups, SHARES, columns)
    ranks = np.array([rank[group == g].mean(axis=0) for g in held])
    return [(list(held), quantiles[:, :, t].tolist(), ranks[:, t].tolist(), [], []) for t in range(n)]


def _of_numbers(x: Array, group: Array, chosen: list[int]) -> Drawn:
    """A column of numbers, of the rows that have one."""
    there = ~np.isnan(x)
    return _whole_columns(x[there, None], group[there], chosen)[0]


def _of_names(x: Array, group: Array, chosen: list[int]) -> Drawn:
    there = ~np.isnan(x)
    level, count = np.unique(x[there], return_counts=True)
    top = level[np.argsort(-count, kind="stable")[:LEVELS]]
    held = [g for g in chosen if (there & (group == g)).any()]
    equal = x[:, None] == top
    shares = [equal[there & (group == g)].mean(axis=0).tolist() for g in held]
    return held, [], [], [f"{v:.17g}" for v in top.tolist()], shares


def mean_ranks(X: Array) -> Array:
    """The rank of each value in its column from 0 to 1, the mean of those that are equal; missing ones have none."""
    order = np.argsort(X, axis=0)  # missing values come last
    ordered = np.take_along_axis(X, order, axis=0)
    place = np.broadcast_to(np.arange(len(X)).reshape(-1, *(1 for _ in X.shape[1:])), X.shape)
    new, last = np.ones((2, *X.shape), bool)
    new[1:] = last[:-1] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=0)
    end = np.minimum.accumulate(np.where(last, place, len(X))[::-1], axis=0)[::-1]
    most = np.maximum((X == X).sum(axis=0) - 1, 1)
    out = np.empty(X.shape)
    np.put_along_axis(out, order, np.where(ordered == ordered, (first + end) / 2.0 / most, np.nan), axis=0)
    return out
