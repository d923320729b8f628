"""Section 4 of the method: relevance, w (equation 5 of the paper), its standard error, and sorting by w."""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Pairs, Tally

SUM_ROUNDING = 1e-12  # a difference of two sums below this share of them is rounding
VARIANCE_ROUNDING = 1e-9  # likewise for a sum of squares about the mean
WEAK, TRIFLE = 0.05, 0.001  # the least relevance of significant features, and how much evidence can add to it
LEAST_P = 1e-300
INFLUENCE_ROUNDING = 1e-13  # likewise for the sum of six products


def mean(total: Array, count: Array) -> Array:
    """Return total/count, and 0 where the count is 0."""
    count = np.broadcast_to(count, total.shape)
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def scale_spread(spread: Array, pairs: Pairs, per_unit: Array) -> Array:
    """Convert the sums of `Tally.spread` from a feature's own unit to Δ, in place."""
    squared = slice(1, 2) if pairs.weight is None else slice(0, 3)  # the lines that are products of two differences
    spread *= per_unit
    spread[squared] *= per_unit  # twice, because the square may overflow
    return spread


def relevance(tally: Tally, v: Array) -> Array:
    """Return w[j] = Σ_c v(c)·(DD[c,j]/DC[c] - ED[c,j]/EC[c]); a term without pairs is 0. In the paper v(c) = P(c)."""
    misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    return subtract_hits(*((v @ x if v.ndim == 1 else (v * x).sum(axis=0)) for x in (misses, hits)))


def subtract_hits(misses: Array, hits: Array) -> Array:
    """Return misses - hits, and 0 where the difference is only rounding."""
    w = misses - hits
    w[np.abs(w) <= SUM_ROUNDING * (misses + hits)] = 0.0
    return w


def standard_error(tally: Tally, v: Array) -> Array:
    """Return se[j] = √(Σ_c v(c)²·S²_c[j]/n_c), with S²_c the variance of δ_q over the n_c queries of class c (6c)."""
    v = v[:, None] if v.ndim == 1 else v
    return np.sqrt((v**2 * class_variances(tally)).sum(axis=0))


def class_variances(tally: Tally) -> Array:
    """Return S²_c/n_c of each class and feature."""
    first, second = tally.spread
    n = np.broadcast_to(tally.queries[0], first.shape)
    squares = second - mean(first**2, n)
    squares[squares <= VARIANCE_ROUNDING * second] = 0.0
    return mean(mean(squares, n - 1.0), n)


def influence_error(tally: Tally, v: Array) -> Array:
    """Return the standard error of Σ_c v(c)·(DD/DC - ED/EC) if pairs have weights, from the influence of each query.

    The influence of q is (a - A·t)/DC - (b - B·u)/EC, with a = Σ τΔ and t = Σ τ over its pairs, A = DD/DC, and b, u, B
    likewise for 1 - τ (section 10).
    """
    aa, ab, bb, at, au, bt, bu = tally.spread
    tt, tu, uu = tally.queries
    A, B = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    miss, hit = (np.divide(1.0, n, out=np.zeros_like(n), where=n > 0) for n in (tally.DC, tally.EC))
    terms = [
        miss**2 * (aa + A * A * tt),
        -2 * miss**2 * A * at,
        hit**2 * (bb + B * B * uu),
        -2 * hit**2 * B * bu,
        -2 * miss * hit * (ab + A * B * tu),
        2 * miss * hit * (B * au + A * bt),
    ]
    squares = np.sum(terms, axis=0)
    squares[squares <= INFLUENCE_ROUNDING * np.abs(terms).sum(axis=0)] = 0.0
    v = v[:, None] if v.ndim == 1 else v
    return np.sqrt((v**2 * squares).sum(axis=0))


def relevance_by_class(tally: Tally) -> Array:
    """Return DD[c]/DC[c] - ED[c]/EC[c], the weight of each feature in separating class c from the others."""
    return subtract_hits(mean(tally.DD, tally.DC), mean(tally.ED, tally.EC))


def separation_by_class(tally: Tally) -> Array:
    """Return the mean separation of class c from each other class: D[c] - (E[c] + mean of E[d] over the others)/2.

    The separation of two classes is half their energy distance, which counts the same for both. The weight of a class
    counts only the variation within that class, so it is small for a marker that not all rows of its class have.
    """
    misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    of_others = (hits.sum(axis=0) - hits) / max(len(hits) - 1, 1)
    return subtract_hits(misses, (hits + of_others) / 2.0)


def z_of(w: Array, se: Array) -> Array:
    """Return w/se; where se is 0, return 0 or ±infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(w == 0.0, 0.0, w / se)


def normalise_min_max(w: Array, constant: Array) -> Array:
    """Min-max normalise the non-constant features; constant features are 0, and all are 0 if all weights are equal."""
    out = np.zeros_like(w)
    live = w[~constant]
    if len(live) and np.ptp(live) > 1e-9 * np.abs(live).max():
        out[~constant] = (live - live.min()) / np.ptp(live)
    return out


def relevance_by_evidence(excess: Array, p: Array, significant: Array, constant: Array) -> Array:
    """Return u, the relevance in [0, 1]: by weight for significant features, by significance for the others (6b).

    Parameters
    ----------
    excess : array of shape (F,)
        The weights above the null weight.
    p : array of shape (F,)
        The p-values.
    significant, constant : array of bool of shape (F,)
    """
    evidence = np.abs(np.log(np.maximum(p, LEAST_P)))
    u = np.zeros(len(p))
    unit = largest_excess(excess, significant)
    if significant.any():
        rank = np.maximum(evidence / max(evidence[significant].max(), 1e-300), 0.0)
        by_weight = excess / unit if unit > 0 else np.zeros(len(p))
        u = np.where(significant, np.maximum(by_weight, WEAK + TRIFLE * rank), 0.0)
    others = ~significant & ~constant
    most = evidence[others].max(initial=0.0)
    if most > 0:
        u[others] = WEAK * evidence[others] / most
    return u


def largest_excess(excess: Array, significant: Array) -> float:
    """Return the excess over the null weight that corresponds to a relevance of 1."""
    return float(excess[significant].max(initial=0.0))


def candidate_features(tally: Tally, constant: Array, n: int) -> Array:
    """Return the features that can be among the first n by weight.

    Constant features are left out. Features in which no pair of neighbours differs have equal sums, so the first n of
    them are enough; on sparse data they are nearly all features.
    """
    live = ~constant
    if tally.count.shape[1] == 1:  # with missing values their counts may differ
        equal = np.flatnonzero(live & ~tally.total.any(axis=0))
        live[equal[n:]] = False
    return np.flatnonzero(live)


def round_for_ties(w: Array) -> Array:
    """Round weights to ten digits of the largest, so that the order of a summation does not break ties."""
    return np.round(w / (np.abs(w).max(initial=0.0) or 1.0), 10)


def sort_by_weight(w: Array, features: Array) -> Array:
    """Sort features by falling w; ties (to ten digits) go to the smaller index."""
    return features[np.argsort(-round_for_ties(w[features]), kind="stable")]
