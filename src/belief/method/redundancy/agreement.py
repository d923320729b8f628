"""Agreement (section 5b of the method): how far two features agree on which rows are alike.

R[i, j] is the correlation over the pairs of neighbours of cr_i and cr_j, and 0 where that is negative: 0 for features
that collide independently, 1 for features that collide on the same pairs. It needs no normalisation and no watch list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Joint, Pairs
from belief.method.redundancy.base import Evidence
from belief.method.redundancy.collisions import Collisions
from belief.method.relevance import NOISE

WORTHWHILE = 0.1  # the share of pairs that must be spared, or they are not taken apart
FIRST_LINES = 32  # features whose agreement with the whole pool is measured to begin with


@dataclass(frozen=True)
class Share:
    """J(X_i) = w⁺(X_i)·(1 - θ·max_{X_j in S} R[j, i]): what no selected feature repeats of a feature's relevance."""

    theta: float
    start: ClassVar[float] = 1.0
    above_null: ClassVar[bool] = True
    ties_by_weight: ClassVar[bool] = True

    def normalise(self, w: Array, constant: Array) -> Array:
        """w⁺ = max(w, 0)/max w, and 0 for all where no w is positive."""
        top = w[~constant].max(initial=0.0)  # w may have been freed of what noise has
        return np.where(constant | (w <= 0.0), 0.0, w / top) if top > 0.0 else np.zeros_like(w)

    def gather(self, gathered: Array, row: Array) -> Array:
        return np.minimum(gathered, 1.0 - self.theta * row)

    def score(self, w: Array, gathered: Array, n_selected: int) -> Array:
        return w * gathered

    def score_next(self, w: float, repeated: Array) -> float:
        return float(w * (1.0 - self.theta * repeated.max(initial=0.0)))


class Agreement:
    """R between features, measured when asked for: a line for each feature that is or may soon be selected."""

    needs_collision_rates: ClassVar[bool] = False

    @staticmethod
    def rule(theta: float | str) -> Share:
        if theta == "auto":
            return Share(1.0)
        if isinstance(theta, str) or theta > 1:
            raise ValueError(f"theta must be 'auto' or a number up to 1 with redundancy='agreement'; got {theta!r}.")
        return Share(float(theta))

    @staticmethod
    def collisions(kappa: float) -> Collisions:
        return Collisions(kappa, by="rate")

    def __init__(self, evidence: Evidence, pool: Array) -> None:
        self._evidence = evidence
        self._counted = counted(evidence.batches, evidence.together)
        self.place = np.full(evidence.n_features, -1, np.int32)
        self.pool = np.zeros(0, np.int64)
        self._line: dict[int, int] = {}  # feature -> its line of R
        self.R = np.zeros((0, 0))
        self._measure_lines(pool[:FIRST_LINES])
        self.extend(pool)

    def extend(self, features: Array) -> None:
        new = np.sort(features[self.place[features] < 0])
        if len(new):
            self.place[new] = len(self.pool) + np.arange(len(new))
            self.pool = np.concatenate([self.pool, new])
            self.R = np.hstack([self.R, self._measured(np.array(list(self._line), np.int64), new)])

    def row(self, feature: int, likely: Array) -> Array:
        """R of a feature with each of the pool."""
        if feature not in self._line:
            others = [j for j in likely.tolist() if j not in self._line and j != feature]
            self._measure_lines(np.array([feature, *others], np.int64))
        out = self.R[self._line[feature]].copy()
        out[self.place[feature]] = 0.0
        return out

    def _measure_lines(self, features: Array) -> None:
        self.R = np.vstack([self.R, self._measured(features, self.pool)])
        self._line.update({j: len(self._line) + t for t, j in enumerate(features.tolist())})

    def _measured(self, lines: Array, columns: Array) -> Array:
        if not len(lines) or not len(columns):
            return np.zeros((len(lines), len(columns)))
        found = self._evidence.joint([(pairs, lines) for pairs, _ in self._counted], columns)
        every = [sums for sums, (_, times) in zip(found, self._counted, strict=True) for _ in range(times)]
        return correlation(reduce(Joint.merge, every))

    def between(self, features: Array) -> Array:
        """R among some features: of those that have been measured, from what is known."""
        self.extend(features)
        self._measure_lines(np.array([j for j in features.tolist() if j not in self._line], np.int64))
        lines = np.array([self._line[j] for j in features.tolist()], np.int64)
        return self.R[lines[:, None], self.place[features]]

    def floor(self, features: Array, others: Array) -> None:
        """Nothing is cheaper than R itself, and J falls fast enough without."""


def counted(batches: Sequence[Pairs], together: Pairs) -> list[tuple[Pairs, int]]:
    """The pairs to be looked at, and how often they count.

    Rows that found each other collide the same way round, so one of two such pairs is looked at and counts twice. Where
    that would save little, the batches are taken as they are: an engine may have them at hand.
    """
    twice, spare = together.mutual
    if len(twice) <= WORTHWHILE * len(together):
        return [(pairs, 1) for pairs in batches]
    once = np.ones(len(together), bool)
    once[twice] = once[spare] = False
    parts = (together.take(once), 1), (together.take(twice), 2)
    return [(pairs, times) for pairs, times in parts if len(pairs)]


def correlation(sums: Joint) -> Array:
    """The correlation of lines and columns over the pairs that have both; 0 where it is negative or has no meaning."""
    n = sums.pairs
    (a, a2), (b, b2) = sums.lines, sums.columns
    var_a, var_b = _variance(n, a, a2), _variance(n, b, b2)
    both = np.sqrt(var_a * var_b)
    return np.clip(np.divide(n * sums.joint - a * b, both, out=np.zeros(n.shape), where=both > 0), 0.0, 1.0)


def _variance(n: Array, first: Array, second: Array) -> Array:
    """n² times the variance, from Σx and Σx²; what is rounding is 0."""
    v = n * second - first**2
    return np.where(v > NOISE * n * second, v, 0.0)
