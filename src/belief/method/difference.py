"""Section 1 of the method: what a difference between two values of a feature is, Δ_j(a, b)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from belief.method.arrays import Array, FeatureArray
from belief.method.summary import Levels, Summary

MOSTLY_ZEROS = 0.1  # scale="auto": data with a smaller share of non-zero cells is left as it is


@dataclass(frozen=True)
class Difference:
    """Δ_j(a, b) = |a - b|/u_j for a continuous feature, a ≠ b for a discrete one, 0 for a constant one.

    u_j is σ_j, but by "standard" the range of a feature with two values only, whose Δ is then 0 or 1; or 1 by "none".
    """

    scale: str
    discrete: FeatureArray
    constant: FeatureArray
    mean: FeatureArray
    sigma: FeatureArray
    unit: FeatureArray  # u_j; 1 for discrete features
    spread: FeatureArray  # expected Δ² between a value and the mean of the feature: the price of a missing value
    levels: Levels
    missing: bool  # whether any value is

    @classmethod
    def from_summary(cls, summary: Summary, discrete: Array, scale: str) -> Self:
        constant = ~(summary.maximum > summary.minimum)
        sigma = np.sqrt(np.divide(summary.m2, summary.count, out=np.zeros_like(summary.m2), where=summary.count > 0))
        sigma[constant] = 0.0
        constant |= ~discrete & (sigma == 0.0)
        scale = resolve_scale(scale, summary, discrete)
        unit = np.ones_like(sigma) if scale == "none" else np.where(discrete | constant, 1.0, sigma)
        if scale == "standard":
            two_values = ~(discrete | constant | summary.between)
            unit[two_values] = (summary.maximum - summary.minimum)[two_values]
        spread = np.where(discrete, gini(summary.levels, len(sigma)) / 2, (sigma / unit) ** 2)
        spread[constant] = 0.0
        return cls(
            scale, discrete, constant, summary.mean, sigma, unit, spread, summary.levels, bool(summary.missing.any())
        )

    @property
    def n_features(self) -> int:
        return len(self.sigma)

    @property
    def typical(self) -> float:
        """The root mean square of a difference to the mean of a feature: a size to measure others by."""
        return float(np.sqrt(self.spread.mean())) or 1.0

    @property
    def per_unit(self) -> Array:
        """1/u_j, and 0 for a constant feature, whose Δ is 0 always."""
        return np.where(self.constant, 0.0, 1.0 / self.unit)


def resolve_scale(scale: str, summary: Summary, discrete: Array) -> str:
    """Resolve "auto": σ blows rare features up, so data that is mostly zeros is not scaled."""
    if scale != "auto":
        return scale
    cells = summary.m * int((~discrete).sum())
    return "none" if summary.nonzero[~discrete].sum() < MOSTLY_ZEROS * cells else "standard"


def gini(levels: Levels, n_features: int) -> Array:
    """1 - Σp² of each discrete feature: how often two values drawn from it differ."""
    total = np.bincount(levels.feature, levels.count, n_features)
    squares = np.bincount(levels.feature, levels.count.astype(float) ** 2, n_features)
    return np.where(total > 0, 1.0 - squares / np.maximum(total, 1) ** 2, 0.0)
