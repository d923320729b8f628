"""Section 4 of the method: relevance, w (equation 5 of the paper)."""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Pairs, Tally

NOISE = 1e-12  # a difference of two sums smaller than this share of them is rounding
VARIATION = 1e-9  # and so is a sum of squares about the mean
ROUNDING = 1e-13  # and what is left of six products


def mean(total: Array, count: Array) -> Array:
    """Return total/count, and 0 where nothing was counted."""
    count = np.broadcast_to(count, total.shape)
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def scale_spread(spread: Array, pairs: Pairs, per_unit: Array) -> Array:
    """Make the spread of differences in a feature's own unit that of Δ, in place."""
    squared = slice(1, 2) if pairs.weight is None else slice(0, 3)  # the lines that are products of two differences
    spread *= per_unit
    spread[squared] *= per_unit  # twice rather than by the square, which may be too large
    return spread


def relevance(tally: Tally, v: Array) -> Array:
    """w[j] = Σ_c v(c)·(DD[c,j]/DC[c] - ED[c,j]/EC[c]), with v(c) = P(c) in the paper; a term without pairs is 0."""
    misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    return less(*((v @ x if v.ndim == 1 else (v * x).sum(axis=0)) for x in (misses, hits)))


def standard_error(tally: Tally, v: Array) -> Array:
    """se[j]² = Σ_c v(c)²·S²_c[j]/n_c, with S²_c the variance of δ_q over the n_c queries of class c (section 6c)."""
    first, second = tally.spread
    n = np.broadcast_to(tally.queries[0], first.shape)
    squares = second - mean(first**2, n)
    squares[squares <= VARIATION * second] = 0.0
    S2 = mean(squares, n - 1.0)
    v = v[:, None] if v.ndim == 1 else v
    return np.sqrt((v**2 * mean(S2, n)).sum(axis=0))


def influence_error(tally: Tally) -> Array:
    """The standard error of DD/DC - ED/EC where each pair counts in both, from the influence of each query.

    That of q is (a - A·t)/DC - (b - B·u)/EC, with a = Σ τΔ, t = Σ τ over its pairs, A = DD/DC, and b, u, B alike for
    1 - τ (section 10).
    """
    aa, ab, bb, at, au, bt, bu = tally.spread[:, 0]
    tt, tu, uu = tally.queries[:, 0]
    A, B = mean(tally.DD, tally.DC)[0], mean(tally.ED, tally.EC)[0]
    far, near = (np.divide(1.0, n, out=np.zeros_like(n), where=n > 0) for n in (tally.DC[0], tally.EC[0]))
    terms = [
        far**2 * (aa + A * A * tt), -2 * far**2 * A * at, near**2 * (bb + B * B * uu), -2 * near**2 * B * bu,
        -2 * far * near * (ab + A * B * tu), 2 * far * near * (B * au + A * bt),
    ]  # fmt: skip
    squares = np.sum(terms, axis=0)
    squares[squares <= ROUNDING * np.abs(terms).sum(axis=0)] = 0.0
    return np.sqrt(squares)


def z_of(w: Array, se: Array) -> Array:
    """w/se; where nothing varies, 0 or infinite as w is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(w == 0.0, 0.0, w / se)


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


def candidate_features(tally: Tally, constant: Array, n: int) -> Array:
    """The features that can be among the first n: the non-constant ones, without those that n others stand before.

    Features in which no pair of neighbours differs are alike in everything, so of them the first n are enough. On
    sparse data these are nearly all.
    """
    live = ~constant
    if tally.count.shape[1] == 1:  # with missing values they may differ in their counts
        alike = np.flatnonzero(live & ~tally.total.any(axis=0))
        live[alike[n:]] = False
    return np.flatnonzero(live)


def comparable(w: Array) -> Array:
    """Weights to ten digits of the largest, so that the order of a sum does not decide."""
    return np.round(w / (np.abs(w).max(initial=0.0) or 1.0), 10)


def sort_by_weight(w: Array, features: Array) -> Array:
    """These features, the largest w first, ties (to ten digits) to the smaller index."""
    return features[np.argsort(-comparable(w[features]), kind="stable")]
