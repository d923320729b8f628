"""Section 1 of the method: Δ_j(a, b), the difference of two values of a feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from belief.method.arrays import Array, FeatureArray
from belief.method.summary import Levels, Summary

SPARSE_SHARE = 0.1  # scale="auto" does not scale data with a smaller share of non-zero cells


@dataclass(frozen=True)
class Difference:
    """Δ_j(a, b) = |a - b|/u_j for continuous features, a ≠ b for discrete ones, 0 for constant ones.

    u_j is σ_j with scale="sigma". With "standard" it is the range for features with two values, whose Δ is then 0 or 1.
    With "none" it is 1.
    """

    scale: str
    discrete: FeatureArray
    constant: FeatureArray
    mean: FeatureArray
    sigma: FeatureArray
    unit: FeatureArray  # u_j; 1 for discrete features
    spread: FeatureArray  # expected Δ² between a value and the mean, which a missing value adds
    levels: Levels
    missing: bool  # whether any value is missing

    @classmethod
    def from_summary(cls, summary: Summary, discrete: Array, scale: str) -> Self:
        constant = ~(summary.maximum > summary.minimum)
        sigma = np.sqrt(np.divide(summary.m2, summary.count, out=np.zeros_like(summary.m2), where=summary.count > 0))
        sigma[constant] = 0.0
        constant |= ~discrete & (sigma == 0.0)
        scale = resolve_scale(scale, summary, discrete)
        unit = np.ones_like(sigma) if scale == "none" else np.where(discrete | constant, 1.0, sigma)
        if scale == "standard":
            is_binary = ~(discrete | constant | summary.between)
            unit[is_binary] = (summary.maximum - summary.minimum)[is_binary]
        spread = np.where(discrete, gini_impurity(summary.levels, len(sigma)) / 2, (sigma / unit) ** 2)
        spread[constant] = 0.0
        has_missing = bool(summary.missing.any())
        return cls(scale, discrete, constant, summary.mean, sigma, unit, spread, summary.levels, has_missing)

    @property
    def n_features(self) -> int:
        return len(self.sigma)

    @property
    def typical(self) -> float:
        """The root mean square difference from the mean, over all features."""
        return float(np.sqrt(self.spread.mean())) or 1.0

    def restrict(self, features: Array) -> Self:
        """Return the difference in these features only: all others are treated as constant."""
        is_out = np.ones(self.n_features, bool)
        is_out[features] = False
        return replace(
            self,
            discrete=self.discrete & ~is_out,
            constant=self.constant | is_out,
            unit=np.where(is_out, 1.0, self.unit),
            spread=np.where(is_out, 0.0, self.spread),
        )

    @property
    def per_unit(self) -> Array:
        """1/u_j, and 0 for constant features."""
        return np.where(self.constant, 0.0, 1.0 / self.unit)


def resolve_scale(scale: str, summary: Summary, discrete: Array) -> str:
    """Resolve "auto": dividing by σ would inflate rare features, so data that is mostly zeros is not scaled."""
    if scale != "auto":
        return scale
    cells = summary.m * int((~discrete).sum())
    return "none" if summary.nonzero[~discrete].sum() < SPARSE_SHARE * cells else "standard"


def gini_impurity(levels: Levels, n_features: int) -> Array:
    """Return 1 - Σp² of each discrete feature: the probability that two random values differ."""
    total = np.bincount(levels.feature, levels.count, n_features)
    squares = np.bincount(levels.feature, levels.count.astype(float) ** 2, n_features)
    return np.where(total > 0, 1.0 - squares / np.maximum(total, 1) ** 2, 0.0)
