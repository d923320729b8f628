"""The values of interacting features in some rows. They are only used for scatter plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from belief.method.arrays import Array

MAX_PAIRS, MAX_POINTS, MAX_LEVELS = 6, 250, 12
DIGITS = 4


@dataclass(frozen=True)
class FeaturePair:
    """The values of two interacting features, and of the target, in some rows."""

    features: list[int]
    values: list[list[float]]  # one list per feature; a category is stored as its position in `levels`
    levels: list[list[str]]  # the categories of each feature; empty for numeric features
    target: list[float]  # for each row, the index of its class, or the rank of a numeric target from 0 to 1

    @classmethod
    def read(cls, plain: Mapping[str, Any], n_features: int) -> Self:
        """Create a pair from plain JSON values; raise a ValueError if they are invalid."""
        found = cls(**plain)
        numbers = [*found.target, *(x for line in found.values for x in line)]
        is_valid = (
            len(found.features) == len(found.values) == len(found.levels) == 2
            and all(type(j) is int and 0 <= j < n_features for j in found.features)
            and all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
            and all(len(line) == len(found.target) for line in found.values)
            and all(type(x) is str for line in found.levels for x in line)
        )
        if not is_valid:
            raise ValueError("invalid pair of features")
        return found


class Points(NamedTuple):
    """The values of some features in some rows, (rows, features), and the targets of the rows."""

    features: list[int]
    values: Array
    targets: Array  # the index of the class, or the rank of a numeric target

    @classmethod
    def take(cls, X: Array, targets: Array, features: Array) -> Points:
        """Take these features, and rows spread over all rows."""
        rows = np.unique(np.linspace(0, max(len(X) - 1, 0), min(len(X), MAX_POINTS)).astype(np.int64))
        return cls(features.tolist(), X[rows[:, None], features].astype(float), targets[rows])


def collect_pairs(
    points: Points, interactions: Sequence[tuple[int, int, float]], levels: Mapping[int, Mapping[float, str] | None]
) -> list[FeaturePair]:
    """Return the values of the first pairs of interacting features, in some rows.

    Parameters
    ----------
    points : the values of all these features
    interactions : tuples (feature, partner, share of the weight), as in `Result.interactions`
    levels : for each discrete feature, the names of its category codes
    """
    found: dict[frozenset[int], FeaturePair] = {}
    for i, j, _ in interactions:
        pair, names = [i, j], [levels.get(i) or {}, levels.get(j) or {}]
        if frozenset(pair) in found or max(map(len, names)) > MAX_LEVELS:
            continue
        values = points.values[:, [points.features.index(i), points.features.index(j)]]
        is_complete = np.isfinite(values).all(axis=1)
        placed = [_place(values[is_complete, t], [*names[t]]) for t in (0, 1)]
        shown = [[str(name) for name in each.values()] for each in names]
        found[frozenset(pair)] = FeaturePair([*pair], placed, shown, _round(points.targets[is_complete]))
        if len(found) == MAX_PAIRS:
            break
    return [*found.values()]


def _place(x: Array, codes: list[float]) -> list[float]:
    """Return rounded numbers; for categories, return the position of each value in `codes` instead."""
    return [float(codes.index(code)) for code in x.tolist()] if codes else _round(x)


def _round(x: Array) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in x.tolist()]
