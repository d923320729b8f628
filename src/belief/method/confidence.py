"""How sure (section 6c of the method): p-values against the weights of noise, q-values, and how many features stand.

What is computed of the weights of noise (null.py) leaves a small common shift. It is estimated from the features that
look irrelevant, and held near 0 by how far off the computed null was ever seen (`recentre`). So few features, or none
that is irrelevant, do no harm.

    w, bias, spread of noise ─► recentre ─► Null ─► p ─► q ─► how many features stand
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

from belief._utils.warnings import warn
from belief.method.arrays import Array
from belief.method.null import ratio

ROUNDING = 1e-12  # a weight above noise by less than this share of both is not
LOOKS_NULL = 1.0  # a larger z says nothing about the null: it may be relevance
OFF = 0.5  # by how much z of the computed null is off: the spread of its mean over 27 kinds of tables was 0.1 to 0.6
LEVEL = 0.01  # false discovery rate for n_features_to_select="auto"
DOUBT = 2.0  # the most standard deviations of luck that a feature is let off


@dataclass(frozen=True)
class Null:
    """The weights that noise would have in each feature's place: mean and spread; a spread of 0 is not known.

    `luck` is how many standard deviations are put down to luck.
    """

    mean: Array
    spread: Array
    luck: Array

    @classmethod
    def of(cls, w: Array, bias: Array, spread: Array, p_univariate: Array) -> Self:
        """From the computed bias and spread, and what the weights that look irrelevant say of both."""
        known = spread > 0
        shift, width = recentre(ratio(w - bias, spread)[known])
        return cls(np.where(known, bias + shift * spread, 0.0), spread * width, luck(p_univariate))

    def left_of(self, w: Array) -> Array:
        """By how much w is above what noise may well have; 0 where that is but rounding."""
        lucky = self.luck * self.spread
        left = w - self.mean - lucky
        return np.where(np.abs(left) <= ROUNDING * (np.abs(w) + np.abs(self.mean) + np.abs(lucky)), 0.0, left)

    def z(self, w: Array) -> Array:
        """W in standard deviations above noise; -inf, that is p = 1, for features without variance."""
        return np.where(self.spread > 0, ratio(w - self.mean, self.spread), -np.inf)


def luck(p_univariate: Array) -> Array:
    """How many standard deviations of a weight are put down to luck: 1 - min(-log10(q), 2), q of the features alone.

    One, where a feature says nothing by itself or that is not known. One that does is less likely to be noise, and the
    neighbours, which are of all columns' making, hide part of what it says: it is given the benefit of the doubt.
    """
    q, known = np.ones_like(p_univariate), ~np.isnan(p_univariate)
    q[known] = np.maximum(q_values(p_univariate[known]), 0.0)  # a file may say anything
    with np.errstate(divide="ignore"):  # q may be too small for a number
        return 1.0 - np.minimum(-np.log10(q), DOUBT)


def recentre(z: Array) -> tuple[float, float]:
    """The mean of the null and its spread with the uncertainty of that mean.

    The z below LOOKS_NULL are taken for a normal of spread 1 cut off there, and its mean has the prior N(0, OFF²).
    """
    low = z[z < LOOKS_NULL]
    n, total = len(low), float(low.sum())
    mean = _falling_root(lambda m: total - n * m + n * _mills(LOOKS_NULL - m) - m / OFF**2)
    edge, mills = LOOKS_NULL - mean, _mills(LOOKS_NULL - mean)
    known = 1.0 / OFF**2 + n * (1.0 - mills * (edge + mills))
    return mean, math.sqrt(1.0 + 1.0 / known)


def _mills(x: float) -> float:
    """φ(x)/Φ(x)."""
    return math.exp(-x * x / 2.0) * math.sqrt(2.0 / math.pi) / math.erfc(-x / math.sqrt(2.0))


def _falling_root(score: Callable[[float], float], low: float = -4.0, high: float = 4.0) -> float:
    """Where a falling function is 0, by halving."""
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if score(middle) > 0 else (low, middle)
    return (low + high) / 2.0


def p_values(z: Array) -> Array:
    """Return one-sided p-values: the probability that the weight of an irrelevant feature reaches z."""
    p: Array = ndtr(-z)
    return p


def q_values(p: Array) -> Array:
    """Return the q-values of Benjamini and Hochberg: the expected share of false discoveries up to each p-value."""
    from scipy.stats import false_discovery_control  # takes a third of a second to import

    q: Array = np.asarray(false_discovery_control(np.clip(p, 0.0, 1.0)))
    return q


def threshold(p: Array, level: float = LEVEL) -> float:
    """Return the largest significant p-value; 0 if none is.

    This is the procedure of Benjamini and Hochberg for the estimated number of irrelevant features (Storey) instead of
    the number of all features.
    """
    n_irrelevant = min(len(p), 2.0 * (1 + np.count_nonzero(p > 0.5)))
    steps = np.minimum(level * np.arange(1, len(p) + 1) / n_irrelevant, level)
    return float(steps[np.sort(p) <= steps].max(initial=0.0))


@dataclass(frozen=True)
class Eligibility:
    """Which features may be selected with n_features_to_select="auto": the significant ones that are not redundant.

    Parameters
    ----------
    z : array of shape (F,)
        The weights in standard deviations above the null.
    largest_p : float
        The largest significant p-value.
    max_redundancy : float or None
        Features that are more redundant than this with a selected one are excluded; None: redundancy does not matter.
    """

    z: Array
    largest_p: float
    max_redundancy: float | None

    def mask(self, features: Array, redundancy: Array) -> Array:
        """Return which features are still eligible, given the largest redundancy of each with a selected one.

        Redundancy only grows during the selection, so a feature that is excluded once stays excluded.
        """
        p = p_values(self.z[features] * (1.0 - redundancy))
        is_significant = (p <= self.largest_p) & (self.largest_p > 0)
        return is_significant if self.max_redundancy is None else is_significant & (redundancy <= self.max_redundancy)

    def filter(self, order: Array) -> Array:
        """Return the features that are eligible at the start, or the first one alone if none is."""
        eligible = order[self.mask(order, np.zeros(len(order)))]
        if not len(eligible):
            warn("No feature is significant. The one with the largest weight is selected.")
            return order[:1]
        return eligible
