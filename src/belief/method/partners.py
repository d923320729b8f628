"""Which other feature a feature matters with, where it says nothing alone.

A feature that matters with another (exclusive or, parity) differs from a neighbour of another class where the other
does not, and along with it from a neighbour of its own class. So the differences of the two go together among
the hits of a query and against each other among its misses. With cov the covariance among the neighbours of one query
and class, about their own mean, averaged over queries (weighed by class as w is),

    slope_h[i, j] = cov_hit[i, j]/cov_hit[j, j],   slope_m likewise

are what Δ_i gains among hits and among misses for every unit that Δ_j gains. If j had not been in the distance,
neighbours would differ in it as any two rows do, by μ_j instead of the mean Δ̄_j of the pairs: so w[i] would be lower by

    fall[i, j] = (slope_h[i, j] - slope_m[i, j]) · (μ_j - Δ̄_j)

Features that add up, copies and noise have the same slope among hits and misses. A partner is named where the
difference of the covariances is beyond chance and the fall takes more than half of w. The fall is that without j and
all that repeats it: where a copy of j stays in the distance, taking out j alone changes less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from belief.method.arrays import Array, unique_ids
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Tally
from belief.method.relevance import mean
from belief.method.sampling import Sample

MOST = 64  # features among which partners are looked for
ENOUGH, CELLS = 4096, 2**16  # queries that are looked at, and differences at a time
HALF = 0.5  # the share of its weight a feature must lose without its partner,
ERRORS = 2.0  # even if what it loses is so many standard errors less
LEVEL = 0.001  # the chance of naming any pair that is none


@dataclass(frozen=True)
class Together:
    """Sums over queries by their class, of n features: they add up over blocks and batches."""

    hit: Array  # |C| x n x n: of the covariance among the hits of a query
    miss: Array
    squares: Array  # of the square of hit less miss
    count: Array  # |C|: queries

    @classmethod
    def of(cls, D: Array, present: Array, labels: Array) -> Self:
        """Sums over some queries.

        Parameters
        ----------
        D : array of shape (queries, classes, k, n)
            Δ between each query and its neighbours of each class.
        present : array of bool of shape (queries, classes, k)
            Which neighbours there are.
        labels : array of int of shape (queries,)
            The class of each query.
        """
        q, classes, k, n = D.shape
        apart = _apart(D, present)
        hit = _products(apart[np.arange(q), labels])
        miss = (_products(apart.reshape(q, classes * k, n)) - hit) / (classes - 1)
        own = (labels == np.arange(classes)[:, None]).astype(float)
        parts = (hit, miss, (hit - miss) ** 2)
        hits, misses, squares = ((own @ x.reshape(q, n * n)).reshape(classes, n, n) for x in parts)
        return cls(hits, misses, squares, own.sum(axis=1))

    def merge(self, other: Self) -> Self:
        return type(self)(
            self.hit + other.hit, self.miss + other.miss, self.squares + other.squares, self.count + other.count
        )


def _apart(D: Array, present: Array) -> Array:
    """The differences of the neighbours of one query and class, about their mean: their products are covariances."""
    there = present[..., None]
    count = np.maximum(there.sum(axis=2, keepdims=True), 2)
    D = D if present.all() else np.where(there, D, 0.0)
    apart = (D - D.sum(axis=2, keepdims=True) / count) / np.sqrt(count - 1)
    return apart if present.all() else np.where(there, apart, 0.0)


def _products(x: Array) -> Array:
    """The products of the features of each query, over its neighbours."""
    products: Array = np.swapaxes(x, 1, 2) @ x
    return products


def z_scores(sums: Together, v: Array) -> Array:
    """How many standard errors the covariance among hits is above that among misses."""
    n = np.maximum(sums.count, 2)[:, None, None]
    apart = (sums.hit - sums.miss) / n
    spread = np.maximum(sums.squares / n - apart**2, 0.0) / (n - 1)
    share = v[:, None, None]
    error = np.sqrt((share**2 * spread).sum(axis=0))
    return _off_diagonal(np.divide((share * apart).sum(axis=0), error, out=np.zeros_like(error), where=error > 1e-12))


def falls(sums: Together, v: Array, near: Array, anyhow: Array) -> Array:
    """What w[i] would lose without feature j in the distance.

    Parameters
    ----------
    sums : Together
    v : array of shape (|C|,)
        The weights of the classes.
    near, anyhow : array of shape (n,)
        The mean Δ of the pairs (of hits and misses alike), and that of any two sampled rows.
    """
    share = (v / np.maximum(sums.count, 1))[:, None, None]
    slopes = _slopes((share * sums.hit).sum(axis=0)) - _slopes((share * sums.miss).sum(axis=0))
    return _off_diagonal(slopes * (anyhow - near))


def _slopes(cov: Array) -> Array:
    """What row i gains for every unit of column j."""
    own = np.diagonal(cov)
    slopes: Array = np.divide(cov, own, out=np.zeros_like(cov), where=own > 1e-12)
    return slopes


def _off_diagonal(a: Array) -> Array:
    np.fill_diagonal(a, 0.0)
    return a


def threshold(n: int, level: float = LEVEL) -> float:
    """The z that none of the pairs of n features reaches by chance, but in `level` of the cases."""
    return NormalDist().inv_cdf(1.0 - level / max(n * (n - 1) / 2, 1))


def partners(fall: Array, z: Array, w: Array) -> tuple[Array, Array]:
    """The partner of each feature, -1 if it has none, and the share of w it would lose without it (at most 1)."""
    lost = np.divide(fall, w[:, None], out=np.zeros_like(fall), where=w[:, None] > 0)
    lost[z < threshold(len(w))] = 0.0
    best = lost.argmax(axis=1)
    line = np.arange(len(w))
    most, sure = lost[line, best], 1.0 - ERRORS / np.maximum(z[line, best], ERRORS)
    return np.where(most * sure >= HALF, best, -1), np.clip(most, 0.0, 1.0)


@dataclass(frozen=True)
class Partners:
    """Of some features, the one without which each would lose most of its weight, -1 for none, and how much of it."""

    features: Array
    partner: Array
    share: Array

    @classmethod
    def none(cls) -> Self:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def partners_of(
    features: Array, values: Callable[[Array, Array], Array], difference: Difference, sample: Sample, found: Neighbours,
    tally: Tally, v: Array, w: Array,
) -> Partners:  # fmt: skip
    """Look for the partners of some features among them, by the pairs at hand.

    Parameters
    ----------
    values : gives some features of some rows, by their ids
    sample, found : the queries, and their neighbours of each class
    v : what each class counts in w
    """
    features, v = features[:MOST], v if v.ndim == 1 else v.mean(axis=1)
    known = np.where(found.row >= 0, found.row, sample.row[0])  # any row in the place of none
    ids, at = unique_ids(np.concatenate([sample.row, known.ravel()]))
    place, places = at[: len(sample.row)], at[len(sample.row) :].reshape(known.shape)
    X = values(ids, features)
    size = difference.typical  # in units of which differences are neither too large to square nor too small
    unit, discrete = difference.unit[features] * size, difference.discrete[features]

    def apart(a: Array, b: Array) -> Array:
        """Δ, and what is to be expected of it where a value is missing."""
        d = a - b
        np.abs(d, out=d)
        d /= unit
        if discrete.any():
            d[..., discrete] = (d[..., discrete] != 0.0) / size + 0.0 * d[..., discrete]
        return np.where(np.isnan(d), near, d) if difference.missing else d

    misses, hits = mean(tally.DD, tally.DC), mean(tally.ED, tally.EC)
    near = (v @ (misses + hits))[features] / (2 * size)
    anyhow = apart(X[place[1:]], X[place[:-1]]).mean(axis=0)
    sums = None
    step = max(1, CELLS // (found.row[0].size * len(features)))
    for a in range(0, len(sample.row), step):
        D = apart(X[place[a : a + step], None, None], X[places[a : a + step]])
        more = Together.of(D, found.row[a : a + step] >= 0, sample.target[a : a + step])
        sums = more if sums is None else sums.merge(more)
    assert sums is not None
    best, share = partners(falls(sums, v, near, anyhow), z_scores(sums, v), w[features] / size)
    return Partners(features, np.where(best >= 0, features[best], -1), share)
