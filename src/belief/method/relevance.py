"""The relevance w of features (equation 5 of the paper), its standard error, and sorting by w.

See section 4 of method.md.
"""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Pairs, Tally

SUM_ROUNDING = 1e-12  # a difference below this share of the sum of its two terms is rounding error
VARIANCE_ROUNDING = 1e-9  # a sum of squares about the mean below this share of the sum of squares is rounding error
WEAK, TRIFLE = 0.05, 0.001  # the least relevance of significant features, and how much evidence can add to it
LEAST_P = 1e-300  # the smallest p-value; it also keeps divisors from being 0
INFLUENCE_ROUNDING = 1e-13  # a sum of six products below this share of their absolute sum is rounding error


def mean(total: Array, count: Array) -> Array:
    """Return total/count, and 0 where the count is 0."""
    return np.divide(total, count, out=np.zeros(total.shape), where=count > 0)


def scale_spread(spread: Array, pairs: Pairs, per_unit: Array) -> Array:
    """Convert the sums of `Tally.spread` from units of the features to scaled differences Δ, in place; return them."""
    squared = slice(1, 2) if pairs.weight is None else slice(0, 3)  # the lines that are products of two differences
    spread *= per_unit
    spread[squared] *= per_unit  # multiply again, because the square of per_unit may overflow
    return spread


def relevance(tally: Tally, v: Array) -> Array:
    """Return the relevance w of each feature: the mean difference from misses minus that from hits.

    It is a weighted sum over the classes, w[j] = Σ_c v(c)·(DD[c,j]/DC[c] - ED[c,j]/EC[c]). DD and ED are the sums of
    differences of the queries of class c from their misses and hits, DC and EC are the numbers of these pairs, and v(c)
    is the weight of the class. A term without pairs is 0. In the paper, v(c) is P(c), the share of class c.
    """
    misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    return subtract_hits(*((v @ x if v.ndim == 1 else (v * x).sum(axis=0)) for x in (misses, hits)))


def subtract_hits(misses: Array, hits: Array) -> Array:
    """Return misses - hits, set to 0 where it is only rounding error."""
    w = misses - hits
    w[np.abs(w) <= SUM_ROUNDING * (misses + hits)] = 0.0
    return w


def standard_error(tally: Tally, v: Array) -> Array:
    """Return the standard error of the relevance of each feature (section 6c of method.md).

    se[j] = √(Σ_c v(c)²·S²_c[j]/n_c), where n_c is the number of queries of class c. For each of these queries, let δ be
    the mean difference from its misses minus the mean difference from its hits. S²_c is the variance of δ.
    """
    v = v[:, None] if v.ndim == 1 else v
    return np.sqrt((v**2 * class_variances(tally)).sum(axis=0))


def class_variances(tally: Tally) -> Array:
    """Return S²_c/n_c, the squared standard error of each class's term in the relevance, for each feature."""
    first, second = tally.spread
    n = np.broadcast_to(tally.queries[0], first.shape)
    squares = second - mean(first**2, n)
    squares[squares <= VARIANCE_ROUNDING * second] = 0.0
    return mean(mean(squares, n - 1.0), n)


def influence_error(tally: Tally, v: Array) -> Array:
    """Return the standard error of the relevance if pairs have weights, from the influence of each query.

    It is √(Σ_c v(c)²·Σ influence²), with the second sum over the queries of class c. The influence of a query is
    (a - A·t)/DC - (b - B·u)/EC (section 10 of method.md). Here, a is the sum of τΔ over the pairs of the query, and t
    is the sum of τ, with Δ the difference of the pair and τ its weight as a miss. A and DC are the mean of Δ and the
    sum of τ over the misses of all queries of the class. For hits, the same quantities are called b, u, B and EC.
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
    """Return the term of each class in the relevance of each feature.

    It is the mean difference of the queries of this class from their misses minus that from their hits.
    """
    return subtract_hits(mean(tally.DD, tally.DC), mean(tally.ED, tally.EC))


def separation_by_class(tally: Tally) -> Array:
    """Return how well each feature separates each class c from the other classes, on average.

    The separation is D[c] - (E[c] + the mean E[d] of the other classes d)/2, with D the mean difference from misses and
    E that from hits. For two classes, this is half of their energy distance, which counts the variation within both
    classes equally. `relevance_by_class` counts only the variation within c, so it is small for a marker that not all
    rows of c have. The separation of a class without hits, such as a class of a single row, is 0.
    """
    misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    return np.where(has_pairs(tally), subtract_hits(misses, average_hits(hits, tally.EC)), 0.0)


def has_pairs(tally: Tally) -> Array:
    """Return a mask of the classes that have both hits and misses; the others do not count."""
    return (tally.DC > 0) & (tally.EC > 0)


def average_hits(hits: Array, count: Array) -> Array:
    """Return (E[c] + the mean E[d] of the other classes d)/2 for each class c, with `hits` as E.

    Classes without hits, whose `count` is 0, are left out of the mean. If no other class has hits, return E[c].
    """
    others = (count > 0).sum(axis=0) - (count > 0)
    of_others = np.where(others > 0, mean(hits.sum(axis=0) - hits, others), hits)
    return (hits + of_others) / 2.0


def z_of(w: Array, se: Array) -> Array:
    """Return w/se. Where se is 0, return 0 if w is 0, and ±infinity otherwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(w == 0.0, 0.0, w / se)


def largest_excess(excess: Array, significant: Array) -> float:
    """Return the largest excess of a significant feature, which corresponds to a relevance of 1."""
    return float(excess[significant].max(initial=0.0))


def relevance_by_evidence(excess: Array, p: Array, significant: Array, constant: Array) -> Array:
    """Return u, the relevance of each feature in [0, 1] (section 6b of method.md).

    Significant features are ranked by their weights above the null weight (`excess`), the others by their p-values.
    The null weight is the weight of an irrelevant feature.
    """
    evidence = evidence_of(p)
    u = np.zeros(len(p))
    unit = largest_excess(excess, significant)
    if significant.any():
        by_weight = excess / unit if unit > 0 else np.zeros(len(p))
        u = np.where(significant, np.maximum(by_weight, least_relevance(p, float(evidence[significant].max()))), 0.0)
    others = ~significant & ~constant
    most = evidence[others].max(initial=0.0)
    if most > 0:
        u[others] = WEAK * evidence[others] / most
    return u


def evidence_of(p: Array) -> Array:
    """Return -log p; smaller p-values than LEAST_P count as LEAST_P."""
    return np.abs(np.log(np.maximum(p, LEAST_P)))


def least_relevance(p: Array, most: float) -> Array:
    """Return the least relevance that significant features with the p-values p can have: between 0.05 and 0.051.

    It rises linearly with -log p. `most` is the largest -log p.
    """
    return WEAK + TRIFLE * np.maximum(evidence_of(p) / max(most, 1e-300), 0.0)


def candidate_features(tally: Tally, constant: Array, n: int) -> Array:
    """Return the features that can be among the first n by weight, without the constant ones.

    Features in which no two neighbours differ have equal sums, so the first n of these features are enough. On sparse
    data, nearly all features are of this kind.
    """
    live = ~constant
    if tally.count.shape[1] == 1:  # with missing values, the counts of these features may differ
        equal = np.flatnonzero(live & ~tally.total.any(axis=0))
        live[equal[n:]] = False
    return np.flatnonzero(live)


def round_for_ties(w: Array) -> Array:
    """Round w, in units of its largest absolute value, to ten decimals.

    Otherwise, the order of summation would decide between equal weights.
    """
    return np.round(w / (np.abs(w).max(initial=0.0) or 1.0), 10)


def sort_by_weight(w: Array, features: Array) -> Array:
    """Return these features sorted by falling w.

    Weights equal to ten digits are ties, which go to the smaller index.
    """
    return features[np.argsort(-round_for_ties(w[features]), kind="stable")]
