"""The difference of two values of a feature, Δ_j(a, b) (section 1 of method.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from belief.method.arrays import Array, FeatureArray
from belief.method.summary import Levels, Summary

SPARSE_SHARE = 0.1  # scale="auto" does not scale data with a smaller share of non-zero cells


@dataclass(frozen=True)
class Difference:
    """The units and types of the features, which define the difference Δ_j(a, b) of two values of feature j.

    Δ_j(a, b) is |a - b|/u_j for continuous features; for discrete ones it is 1 if a ≠ b, else 0; for constant ones it
    is 0. With scale="sigma", the unit u_j is the standard deviation σ_j. With "standard", it is the same, except that
    features with two values have their range as the unit, so that Δ is 0 or 1. With "none", u_j is 1.
    """

    scale: str
    discrete: FeatureArray
    constant: FeatureArray
    mean: FeatureArray
    sigma: FeatureArray
    unit: FeatureArray  # u_j; 1 for discrete features
    spread: FeatureArray  # expected Δ² between a value and the mean, which a missing value adds to a distance
    levels: Levels
    missing: bool  # whether any value is missing

    @classmethod
    def from_summary(cls, summary: Summary, discrete: Array, scale: str) -> Self:
        constant = ~(summary.maximum > summary.minimum)
        sigma = np.sqrt(np.divide(summary.m2, summary.count, out=np.zeros_like(summary.m2), where=summary.count > 0))
        sigma[constant] = 0.0
        constant |= ~discrete & (sigma == 0.0)
        if scale == "auto":
            # division by σ would inflate features that are rarely non-zero, so data that is mostly zeros is not scaled
            cells = summary.m * int((~discrete).sum())
            scale = "none" if summary.nonzero[~discrete].sum() < SPARSE_SHARE * cells else "standard"
        unit = np.ones_like(sigma) if scale == "none" else np.where(discrete | constant, 1.0, sigma)
        if scale == "standard":
            is_binary = ~(discrete | constant | summary.between)
            unit[is_binary] = (summary.maximum - summary.minimum)[is_binary]
        # the Gini impurity of a discrete feature, the probability that the values of two random rows differ
        levels, n_features = summary.levels, len(sigma)
        total = np.bincount(levels.feature, levels.count, n_features)
        squares = np.bincount(levels.feature, levels.count.astype(float) ** 2, n_features)
        impurity = np.where(total > 0, 1.0 - squares / np.maximum(total, 1) ** 2, 0.0)
        spread = np.where(discrete, impurity / 2, (sigma / unit) ** 2)
        spread[constant] = 0.0
        has_missing = bool(summary.missing.any())
        return cls(scale, discrete, constant, summary.mean, sigma, unit, spread, summary.levels, has_missing)

    @property
    def n_features(self) -> int:
        return len(self.sigma)

    @property
    def typical(self) -> float:
        """The root mean square, over all features, of the difference between a value and the mean of its feature."""
        return float(np.sqrt(self.spread.mean())) or 1.0

    def restrict(self, features: Array) -> Self:
        """Return the difference restricted to these features: all others are treated as constant."""
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
        """1/u_j of each feature j, whose unit is u_j; 0 for constant features."""
        return np.where(self.constant, 0.0, 1.0 / self.unit)
