"""The redundancy measure "agreement": how far two features agree on which rows are alike (section 5b of method.md).

R[i, j] is the correlation of the collision rates cr_i and cr_j over the pairs of neighbours; negative values count as
0. R is 0 for features that collide independently, and 1 for features that collide on the same pairs. Agreement needs
neither normalisation nor a watch list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Joint, Pairs
from belief.method.redundancy.base import Evidence, Measure, Presentation, Rule
from belief.method.redundancy.collisions import Collisions
from belief.method.relevance import SUM_ROUNDING

MIN_MUTUAL_SHARE = 0.1  # mutual pairs are summed only once if they are more than this share of the pairs
FIRST_LINES = 32  # number of features whose agreement with the whole pool is measured at the start
NEGLIGIBLE_LOSS = 0.05  # features that lose no more than this share of their relevance are not called redundant


@dataclass(frozen=True)
class UniqueShareRule(Rule):
    """The selection rule of agreement: the score is relevance times unique share.

    J(X_i) = w⁺(X_i)·(1 - θ·max_{X_j in S} R[j, i]), with w⁺ the relevance, S the selected features and R the agreement.
    """

    theta: float
    initial: ClassVar[float] = 1.0
    least: ClassVar[float] = 0.0
    ties_by_weight: ClassVar[bool] = True
    max_redundancy: ClassVar[float | None] = 0.5
    presentation: ClassVar[Presentation] = Presentation(
        name="agreement",
        has_unique_share=True,
        has_absolute_scale=True,
        redundancy_title="Agreement of the selected features",
        score_note="score: relevance times unique share.",
        relevance_axis="unique share of the relevance, in %",
        redundancy_axis="agreement with the feature of this rank",
        redundancy_caption=(
            "How far two features agree on which neighbours are alike, from 0 (no more than by chance) to 1 (on"
            " the same pairs of rows). Frames surround groups of redundant features."
        ),
    )

    def relevance_scale(self, w: Array) -> tuple[float, float]:
        return 0.0, float(w.max(initial=0.0))

    def normalise(self, w: Array, constant: Array) -> Array:
        """Return max(w, 0) divided by the largest w; 0 for all features if no w is positive."""
        _, top = self.relevance_scale(w[~constant])
        return np.where(constant | (w <= 0.0), 0.0, w / top) if top > 0.0 else np.zeros_like(w)

    def accumulate(self, accumulated: Array, redundancy: Array) -> Array:
        return np.minimum(accumulated, 1.0 - self.theta * redundancy)

    def score(self, relevance: Array, accumulated: Array, n_selected: int) -> Array:
        return relevance * accumulated

    def score_next(self, relevance: float, redundancy: Array) -> float:
        return float(relevance * (1.0 - self.theta * redundancy.max(initial=0.0)))

    def describe_loss(self, feature: str, redundancy: float, relevance: float, score: float) -> str | None:
        if relevance <= 0 or score / relevance >= 1.0 - NEGLIGIBLE_LOSS:
            return None
        partly = "" if redundancy >= 0.5 else "partly "
        return f"{partly}redundant with {feature!r} ({redundancy:.2f})"


class Agreement(Measure):
    """The agreement R between features, measured when it is needed.

    R has a line for each feature that is selected or may soon be selected, and a column for each feature of the pool,
    which holds the features that the selection compares.
    """

    doc: ClassVar[str] = "their agreement"
    theta_doc: ClassVar[str] = "a number up to 1 for agreement ('auto': 1)"

    @staticmethod
    def make_rule(theta: float | str) -> UniqueShareRule:
        if theta == "auto":
            return UniqueShareRule(1.0)
        if isinstance(theta, str) or theta > 1:
            raise ValueError(f"With redundancy='agreement', theta must be 'auto' or a number up to 1; got {theta!r}.")
        return UniqueShareRule(float(theta))

    @staticmethod
    def collisions(kappa: float) -> Collisions:
        return Collisions(kappa, by="rate")

    def __init__(self, evidence: Evidence, pool: Array) -> None:
        super().__init__(evidence, pool)
        self._counted = count_mutual_once(evidence.batches, evidence.all_pairs)
        self._line: dict[int, int] = {}  # feature -> its line of R
        self.R = np.zeros((0, 0))
        self._measure_lines(pool[:FIRST_LINES])
        self.extend(pool)

    def add_columns(self, new: Array) -> None:
        self.R = np.hstack([self.R, self._measure(np.array(list(self._line), np.int64), new)])

    def row(self, feature: int, likely: Array) -> Array:
        if feature not in self._line:
            others = [j for j in likely.tolist() if j not in self._line and j != feature]
            self._measure_lines(np.array([feature, *others], np.int64))
        out = self.R[self._line[feature]].copy()
        out[self.column[feature]] = 0.0
        return out

    def _measure_lines(self, features: Array) -> None:
        self.R = np.vstack([self.R, self._measure(features, self.pool)])
        self._line.update({j: len(self._line) + t for t, j in enumerate(features.tolist())})

    def _measure(self, lines: Array, columns: Array) -> Array:
        if not len(lines) or not len(columns):
            return np.zeros((len(lines), len(columns)))
        found = self.evidence.joint([(pairs, lines) for pairs, _ in self._counted], columns)
        repeated = [sums for sums, (_, times) in zip(found, self._counted, strict=True) for _ in range(times)]
        return compute_correlation(reduce(Joint.merge, repeated))

    def matrix(self, features: Array) -> Array:
        self.extend(features)
        self._measure_lines(np.array([j for j in features.tolist() if j not in self._line], np.int64))
        lines = np.array([self._line[j] for j in features.tolist()], np.int64)
        return self.R[lines[:, None], self.column[features]]


def count_mutual_once(batches: Sequence[Pairs], all_pairs: Pairs) -> list[tuple[Pairs, int]]:
    """Return sets of pairs to sum over, each with the number of times that its sums count.

    Two rows that are neighbours of each other form two pairs with the same collisions, so only one of these pairs is
    summed, and it counts twice. If this saves little, the batches are returned unchanged, because an engine may have
    their rows in memory.
    """
    kept, dropped = all_pairs.mutual
    if len(kept) <= MIN_MUTUAL_SHARE * len(all_pairs):
        return [(pairs, 1) for pairs in batches]
    once = np.ones(len(all_pairs), bool)
    once[kept] = once[dropped] = False
    parts = (all_pairs.take(once), 1), (all_pairs.take(kept), 2)
    return [(pairs, times) for pairs, times in parts if len(pairs)]


def compute_correlation(sums: Joint) -> Array:
    """Return the correlation of the collision rates of each two features, (lines, columns), from joint sums.

    Correlations that are negative or undefined are 0.
    """
    n = sums.pairs
    (a, a2), (b, b2) = sums.lines, sums.columns
    var_a, var_b = _scaled_variance(n, a, a2), _scaled_variance(n, b, b2)
    both = np.sqrt(var_a * var_b)
    return np.clip(np.divide(n * sums.joint - a * b, both, out=np.zeros(n.shape), where=both > 0), 0.0, 1.0)


def _scaled_variance(n: Array, first: Array, second: Array) -> Array:
    """Return n² times the variance, given n, Σx and Σx²; 0 where it is only rounding error."""
    v = n * second - first**2
    return np.where(v > SUM_ROUNDING * n * second, v, 0.0)
