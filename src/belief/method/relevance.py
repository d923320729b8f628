"""Section 4 of the method: relevance, w (equation 5 of the paper)."""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Tally

NOISE = 1e-12  # a difference of two sums smaller than this share of them is rounding


def mean(total: Array, count: Array) -> Array:
    """Return total/count, and 0 where nothing was counted."""
    count = np.broadcast_to(count, total.shape)
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def relevance(tally: Tally, v: Array) -> Array:
    """w[j] = Σ_c v(c)·DD[c,j]/DC[c] - Σ_c v(c)·ED[c,j]/EC[c], with v(c) = P(c) in the paper."""
    return less(v @ mean(tally.DD, tally.DC), v @ mean(tally.ED, tally.EC))


def less(misses: Array, hits: Array) -> Array:
    """Misses less hits; what is left of two equal sums is 0, not their rounding."""
    w = misses - hits
    w[np.abs(w) <= NOISE * (misses + hits)] = 0.0
    return w


def normalise(w: Array, constant: Array) -> Array:
    """Min-max over the non-constant features; 0 for the constant ones, and for all where all are equal."""
    out = np.zeros_like(w)
    live = w[~constant]
    if len(live) and np.ptp(live) > 1e-9 * np.abs(live).max():
        out[~constant] = (live - live.min()) / np.ptp(live)
    return out


def contenders(tally: Tally, constant: Array, n: int) -> Array:
    """The features that can be among the first n: the non-constant ones, without those that n others stand before.

    Features in which no pair of neighbours differs are alike in everything, so of them the first n are enough. On
    sparse data these are nearly all.
    """
    live = ~constant
    if tally.count.shape[1] == 1:  # with missing values they may differ in their counts
        alike = np.flatnonzero(live & ~tally.total.any(axis=0))
        live[alike[n:]] = False
    return np.flatnonzero(live)


def by_weight(w: Array, features: Array) -> Array:
    """These features, the largest w first, ties (to ten digits) to the smaller index."""
    top = np.abs(w[features]).max(initial=0.0) or 1.0
    return features[np.argsort(-np.round(w[features] / top, 10), kind="stable")]
