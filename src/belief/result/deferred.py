"""Fields of a result that only explanations need. They are computed when one of them is first used.

Until then, the values from which they are computed are kept. If these values take much memory, the fields are computed
at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from belief.engines.block.blas import limit_blas
from belief.method.arrays import Array
from belief.method.distributions import SampledValues
from belief.method.partners import PartnerSearch

MAX_PAIRS, MAX_POINTS, MAX_LEVELS = 6, 250, 12
DIGITS = 4
MAX_KEPT_BYTES = 2**22
MAX_KEPT_LEVELS = 1000  # category names
Levels = Mapping[float, str]  # the name of each category code


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
        """Return the values of these features in rows at equal distances, at most MAX_POINTS."""
        rows = np.unique(np.linspace(0, max(len(X) - 1, 0), min(len(X), MAX_POINTS)).astype(np.int64))
        return cls(features.tolist(), X[rows[:, None], features].astype(float), targets[rows])

    def collect_pairs(
        self, interactions: Sequence[tuple[int, int, float]], levels: Mapping[int, Mapping[float, str] | None]
    ) -> list[FeaturePair]:
        """Return the values of the first pairs of interacting features.

        `interactions` are tuples (feature, partner, share of the weight), as in `Result.interactions`. `levels` are the
        names of the category codes of each discrete feature.
        """
        found: dict[frozenset[int], FeaturePair] = {}
        for i, j, _ in interactions:
            pair, names = [i, j], [levels.get(i) or {}, levels.get(j) or {}]
            if frozenset(pair) in found or max(map(len, names)) > MAX_LEVELS:
                continue
            values = self.values[:, [self.features.index(i), self.features.index(j)]]
            is_complete = np.isfinite(values).all(axis=1)
            placed = []
            for x, codes in zip(values[is_complete].T, map(list, names), strict=True):
                # a category is stored as its position
                placed.append([float(codes.index(code)) for code in x.tolist()] if codes else _round(x))
            shown = [[str(name) for name in each.values()] for each in names]
            found[frozenset(pair)] = FeaturePair(pair, placed, shown, _round(self.targets[is_complete]))
            if len(found) == MAX_PAIRS:
                break
        return [*found.values()]


def _round(x: Array) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in x.tolist()]


@dataclass(frozen=True)
class DeferredFields:
    """The values from which some fields of a `Result`, those in `names`, are computed."""

    names: ClassVar[tuple[str, ...]] = ("partner", "partner_share", "distributions", "pairs")
    selected: Array
    partners: PartnerSearch | None  # None if no feature can have a partner
    sampled: SampledValues
    points: Points | None
    levels: dict[int, Levels | None]  # of the discrete features that were selected

    @property
    def is_large(self) -> bool:
        """Whether the stored values take so much memory that the fields should be computed immediately."""
        n_levels = sum(len(x or ()) for x in self.levels.values())
        n_bytes = self.sampled.X.nbytes + (self.partners.nbytes if self.partners is not None else 0)
        return n_bytes > MAX_KEPT_BYTES or n_levels > MAX_KEPT_LEVELS

    def compute(self) -> dict[str, Any]:
        """Return the fields except `pairs`."""
        partner, share = np.full(len(self.selected), -1), np.zeros(len(self.selected))
        with limit_blas():  # so that the last digits do not depend on the number of threads
            if self.partners is not None:
                at = np.isin(self.selected, self.partners.features)
                partner[at], share[at] = self.partners.run()
            found = self.sampled.describe()
        distributions = [x.with_level_names(self.levels.get(x.feature)) for x in found]
        return {"partner": partner, "partner_share": share, "distributions": distributions}
