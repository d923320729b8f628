"""Interaction partners of features that are relevant only together with another feature (section 6e of method.md).

Suppose that the class is the exclusive or of two features i and j. Then a query and a miss differ in one of the two
features, but a query and a hit differ in both or in neither. So the differences Δ_i and Δ_j are positively correlated
among the hits of a query, and negatively among its misses. Let cov be the covariance of Δ_i and Δ_j over the neighbours
of a query in one class, averaged over the queries (with the class weights of w). The regression slopes

    slope_hit[i, j] = cov_hit[i, j]/cov_hit[j, j]    slope_miss[i, j] = cov_miss[i, j]/cov_miss[j, j]

are the changes of Δ_i per unit of Δ_j. If j were not part of the distance, neighbours would differ in j as much as any
two rows do: the mean of Δ_j would be μ_j instead of Δ̄_j, the mean over the pairs. So w[i] would be lower by

    loss[i, j] = (slope_hit[i, j] - slope_miss[i, j]) · (μ_j - Δ̄_j)

Additive features, copies and noise have equal slopes among hits and misses. A partner is reported if the difference of
the covariances is significant and the loss exceeds half of w. The loss assumes that all features redundant with j are
removed, too: if a copy of j remains in the distance, removing j alone changes less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from belief.method.arrays import Array, unique_ids
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Tally
from belief.method.relevance import mean
from belief.method.sampling import Sample

MAX_FEATURES = 64  # selected features that are examined
MAX_QUERIES, MAX_CELLS = 4096, 2**16  # queries that are examined, and differences computed at a time
MIN_LOSS = 0.5  # partners are reported for features that would lose at least this share of their weight without them
N_ERRORS = 2.0  # this many standard errors are subtracted from the loss before it is compared with MIN_LOSS
LEVEL = 0.001  # the probability of reporting any pair by chance


@dataclass(frozen=True)
class CovarianceSums:
    """Covariances of the differences of n features, summed over the queries of each class.

    They are arrays of shape (|C|, n, n).
    """

    hit: Array  # covariance among the hits of a query
    miss: Array  # covariance among its misses
    squares: Array  # (hit - miss)²
    count: Array  # queries, shape (|C|,)

    @classmethod
    def from_differences(cls, D: Array, present: Array, labels: Array) -> Self:
        """Compute the sums from D, the differences Δ of queries and their neighbours, (queries, classes, k, n).

        `present` says which neighbours exist, (queries, classes, k). `labels` are the classes of the queries.
        """
        q, classes, k, n = D.shape
        # centred per query and class, and scaled so that sums of products are covariances
        mask, is_complete = present[..., None], present.all()
        count = np.maximum(k if is_complete else mask.sum(axis=2, keepdims=True), 2)
        D = D if is_complete else np.where(mask, D, 0.0)
        centred = D - D.sum(axis=2, keepdims=True) / count
        centred /= np.sqrt(count - 1)
        centred = centred if is_complete else np.where(mask, centred, 0.0)
        of_own, of_all = centred[np.arange(q), labels], centred.reshape(q, classes * k, n)
        hit = np.swapaxes(of_own, 1, 2) @ of_own  # (queries, n, n)
        miss = (np.swapaxes(of_all, 1, 2) @ of_all - hit) / (classes - 1)
        is_own = (labels == np.arange(classes)[:, None]).astype(float)
        parts = (hit, miss, (hit - miss) ** 2)
        hits, misses, squares = ((is_own @ x.reshape(q, n * n)).reshape(classes, n, n) for x in parts)
        return cls(hits, misses, squares, is_own.sum(axis=1))

    def merge(self, other: Self) -> Self:
        return type(self)(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def compute_z_scores(sums: CovarianceSums, v: Array) -> Array:
    """Return the covariance among hits minus that among misses for each pair of features, in standard errors."""
    n = np.maximum(sums.count, 2)[:, None, None]
    difference = (sums.hit - sums.miss) / n
    variance = np.maximum(sums.squares / n - difference**2, 0.0) / (n - 1)
    share = v[:, None, None]
    error = np.sqrt((share**2 * variance).sum(axis=0))
    z = np.divide((share * difference).sum(axis=0), error, out=np.zeros_like(error), where=error > 1e-12)
    np.fill_diagonal(z, 0.0)
    return z


def compute_losses(sums: CovarianceSums, v: Array, pair_mean: Array, random_mean: Array) -> Array:
    """Return the part of the weight w[i] that feature i would lose without feature j in the distance, (n, n).

    v are the weights of the classes. `pair_mean` is the mean of the mean Δ of hits and the mean Δ of misses;
    `random_mean` is the mean Δ of random rows.
    """
    share = (v / np.maximum(sums.count, 1))[:, None, None]
    slopes = []
    for cov in ((share * sums.hit).sum(axis=0), (share * sums.miss).sum(axis=0)):
        variance = np.diagonal(cov)
        slopes.append(np.divide(cov, variance, out=np.zeros_like(cov), where=variance > 1e-12))
    loss = (slopes[0] - slopes[1]) * (random_mean - pair_mean)
    np.fill_diagonal(loss, 0.0)
    return loss


def choose_partners(loss: Array, z: Array, w: Array) -> tuple[Array, Array]:
    """Return the partner of each feature (-1 for none), and the share of the weight that would be lost without it.

    `loss` and `z` have a line per feature and a column per possible partner. The share is at most 1.
    """
    lost = np.divide(loss, w[:, None], out=np.zeros_like(loss), where=w[:, None] > 0)
    n_pairs = max(len(w) * (len(w) - 1) / 2, 1)
    lost[z < ndtri(1.0 - LEVEL / n_pairs)] = 0.0
    best = lost.argmax(axis=1)
    line = np.arange(len(w))
    share, confidence = lost[line, best], 1.0 - N_ERRORS / np.maximum(z[line, best], N_ERRORS)
    return np.where(share * confidence >= MIN_LOSS, best, -1), np.clip(share, 0.0, 1.0)


@dataclass(frozen=True)
class PartnerSearch:
    """The values from which the interaction partners of some features are found.

    An array with a value for each query has the shape (queries,); one with a value for each feature, (features,).
    """

    features: Array
    X: Array  # (rows, features)
    query_at: Array  # the line of each query in X
    neighbour_at: Array  # the line of each neighbour in X, (queries, classes, k)
    exists: Array  # which neighbours exist, (queries, classes, k)
    labels: Array  # the class of each query
    unit: Array  # the unit of the differences of each feature
    discrete: Array
    size: float  # all differences are divided by it, so that squares neither overflow nor underflow
    missing: bool
    pair_mean: Array  # the mean difference over the pairs; hits and misses have equal weight
    v: Array
    w: Array

    @classmethod
    def read(
        cls,
        features: Array,
        values: Callable[[Array, Array], Array],
        difference: Difference,
        sample: Sample,
        neighbours: Neighbours,
        tally: Tally,
        v: Array,
        w: Array,
    ) -> Self:
        """Read the values of the first 64 of these features in the queries (`sample`) and their neighbours.

        `values` returns values, given the ids of rows and the indices of features. v and w are the weights of the
        classes and of all features.
        """
        features, v = features[:MAX_FEATURES], v if v.ndim == 1 else v.mean(axis=1)
        exists = neighbours.row >= 0
        known = np.where(exists, neighbours.row, sample.row[0])  # any row in place of a missing neighbour
        ids, at = unique_ids(np.concatenate([sample.row, known.ravel()]))
        query_at, neighbour_at = at[: len(sample.row)], at[len(sample.row) :].reshape(known.shape)
        size = difference.typical
        misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
        pair_mean = (v @ (misses + hits))[features] / (2 * size)
        unit, discrete = difference.unit[features] * size, difference.discrete[features]
        return cls(
            features, values(ids, features), query_at, neighbour_at, exists, sample.target, unit, discrete, size,
            difference.missing, pair_mean, v, w[features],
        )  # fmt: skip

    @property
    def nbytes(self) -> int:
        return self.X.nbytes + self.neighbour_at.nbytes + self.exists.nbytes

    def run(self) -> tuple[Array, Array]:
        """Find the partners.

        Returns
        -------
        partner : array of int
            The partner of each examined feature, -1 for none.
        share : array of float
            The share of the feature's weight that would be lost without the partner.
        """
        X, query_at = self.X, self.query_at
        random_mean = self._delta(X[query_at[1:]], X[query_at[:-1]]).mean(axis=0)
        sums = None
        step = max(1, MAX_CELLS // (self.exists[0].size * len(self.features)))
        for a in range(0, len(query_at), step):
            part = slice(a, a + step)
            D = self._delta(X[query_at[part], None, None], X.take(self.neighbour_at[part], axis=0))
            more = CovarianceSums.from_differences(D, self.exists[part], self.labels[part])
            sums = more if sums is None else sums.merge(more)
        assert sums is not None
        loss = compute_losses(sums, self.v, self.pair_mean, random_mean)
        best, share = choose_partners(loss, compute_z_scores(sums, self.v), self.w / self.size)
        return np.where(best >= 0, self.features[best], -1), share

    def _delta(self, a: Array, b: Array) -> Array:
        """Return the differences Δ between the rows a and b, overwriting b.

        If a value is missing, Δ is the mean difference of the feature over the pairs.
        """
        d = np.subtract(a, b, out=b)
        np.abs(d, out=d)
        d /= self.unit
        discrete = self.discrete
        if discrete.any():
            d[..., discrete] = (d[..., discrete] != 0.0) / self.size + 0.0 * d[..., discrete]
        return np.where(np.isnan(d), self.pair_mean, d) if self.missing else d
