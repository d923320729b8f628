"""What the weight of a feature of noise looks like (section 6c of the method).

A feature of noise does not have z = w/se of mean 0 and spread 1, for two reasons, and both can be computed:

* **It took part in the search.** At the edge of a neighbourhood the number of rows grows as e^(rate·d²), so a row that
  differs by Δ in one feature is e^(-rate·Δ²) times as likely to be a neighbour. Where other features part the classes,
  misses are far and their rate is low: noise is held together less in misses than in hits, and its w is positive. The
  distances of the neighbours tell the rates (`rates`), a few rows tell what they do to a feature (`pull`), and together
  the `bias`.
* **Queries share neighbours.** A row at the border is a near miss of many queries, and its one value counts in all of
  them. With Δ(a, b) = mean + h(a) + h(b) + g(a, b), the variance of w is that of independent queries times a mean of
  two numbers that the pairs alone tell (`sharing`), weighted by how much of the variance of Δ is due to h
  (`Pull.single`).

    pairs (ids, weights), d² of neighbours -> sharing, rates        a few rows of the sample -> pull
                                          └──────────────► bias, spread of w of noise ◄──────┘
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from belief.method.arrays import Array, coded
from belief.method.difference import Difference
from belief.method.partials import Pairs, Tally

TRUST = 0.05  # the part of the bias that may be wrong; 0.04 was seen where noise had a raw z of 26
ROWS = (24, 128)  # the fewest and the most rows `pull` looks at
CELLS = 50_000_000  # and how many Δ, so that wide data pay a second or two
CHUNK = 2048  # features at a time
LEVELS = (0, 4, 32, ROWS[1])  # features with about as many levels are looked at together


@dataclass(frozen=True)
class Sharing:
    """By how much shared rows inflate the variance of w: of the part due to single rows, and of that due to pairs."""

    rows: float
    pairs: float
    queries: float  # what se² has of the first already: 0 where what counts for and against cancels in every query


@dataclass(frozen=True)
class Pull:
    """What taking part in the search does to each feature: arrays of shape (F,)."""

    slope: Array  # by how much the mean Δ of neighbours falls when the rate grows by one
    single: Array  # variance of Δ due to a row of the pair, over the variance left when the other row is given


def pair_weights(pairs: Pairs, tally: Tally, v: Array) -> Array:
    """What Δ of each pair counts in w: v(c)/DC[c] for a miss, -v(c)/EC[c] for a hit, some of both with a weight."""
    v = v if v.ndim == 1 else v.mean(axis=1)
    each = np.repeat(v, 2) * np.tile([1.0, -1.0], len(v)) / np.maximum(tally.count.mean(axis=1), 1.0)
    if pairs.weight is None:
        return each[pairs.kind]
    return pairs.weight * each[pairs.kind] + (1.0 - pairs.weight) * each[pairs.kind + 1]


def sharing(pairs: Pairs, weights: Array) -> Sharing:
    """How far the pairs share rows; w = Σ weights·Δ."""
    alone = float(np.square(weights).sum())
    if not alone > 0:
        return Sharing(1.0, 1.0, 1.0)
    ids, n = coded(np.concatenate([pairs.query, pairs.neighbour]))
    query, neighbour = ids.reshape(2, -1)
    of_query, by_row = np.add.reduceat(weights, pairs.starts), np.bincount(neighbour, weights, n)
    by_row[query[pairs.starts]] += of_query
    first, other = pairs.mutual
    both = alone + 2.0 * float(weights[first] @ weights[other])  # Σ(a + b)², b being 0 of most pairs
    rows, by_query = (float(np.square(x).sum()) for x in (by_row, of_query))
    return Sharing(rows / alone, both / alone, by_query / alone)


def rates(distances: Array, classes: Array) -> Array:
    """How fast the number of rows grows with d² at the edge of a neighbourhood: d log N / d(d²).

    Parameters
    ----------
    distances : array of shape (queries, |C|, k)
        d² of the neighbours of each class, nearest first; infinite where there are fewer.
    classes : array of shape (queries,)
        The class of each query.

    Returns
    -------
    array of shape (|C|, |C|)
        By class of the query and class of the neighbour: the gaps to the farthest neighbour are exponential with this
        rate, so it is one over their mean. 0, that is no correction, where all neighbours are equally far.
    """
    there = np.isfinite(distances)
    known = np.where(there, distances, 0.0)
    gaps = np.where(there, known.max(axis=2, keepdims=True) - known, 0.0)
    members = (np.arange(distances.shape[1])[:, None] == classes).astype(float)
    return ratio(members @ np.maximum(there.sum(axis=2) - 1.0, 0.0), members @ gaps.sum(axis=2))


def rates_by_degree(distances: Array, far: Array) -> Array:
    """The same for pairs that are far to a degree, of pooled neighbours: the rates of near and of far pairs, (1, 2).

    Parameters
    ----------
    distances : array of shape (queries, 1, k)
        d² of the neighbours of each query, nearest first; infinite where there are fewer.
    far : array of as many degrees as there are neighbours
    """
    there = np.isfinite(distances)
    known = np.where(there, distances, 0.0)
    gaps = (known.max(axis=2, keepdims=True) - known)[there]
    n = there.sum(axis=2, keepdims=True)
    inner = np.broadcast_to((n - 1.0) / np.maximum(n, 1), there.shape)[there]  # the farthest has no gap
    near = 1.0 - far
    hits, misses = (ratio(np.array(x @ inner), np.array(x @ gaps)) for x in (near, far))
    return np.array([[hits, misses]])


def rows_for(features: int) -> int:
    """How many rows `pull` is worth: all ROWS[1] but on very wide data."""
    return int(np.clip(math.sqrt(CELLS / max(features, 1)), *ROWS))


def pull(values: Callable[[Array], Array], d: Difference, rate: float) -> Pull:
    """Measure what a rate of growth does to each feature, on a few rows, of which `values` gives some features.

    Differences are in units of the typical one, and `rate` in those of its square.
    """
    found = np.zeros((2, d.n_features))
    for a in range(0, d.n_features, CHUNK):
        level, count = _levels(values(np.arange(a, min(a + CHUNK, d.n_features))))
        n_levels = (count > 0).sum(axis=0)
        for least, most in pairwise(LEVELS):
            mine = np.flatnonzero((n_levels > least) & (n_levels <= most))
            if len(mine):
                n, units = n_levels[mine].max(), d.unit[a + mine] * d.typical
                few = (level[:n, mine] - level[0, mine]) / units, count[:n, mine]
                sums = _tilted_sums(*few, d.discrete[a + mine], 1.0 / d.typical, rate)
                found[:, a + mine] = _moments(sums, few[1])
    return Pull(*found)


def _levels(values: Array) -> tuple[Array, Array]:
    """The values of each feature, and in how many rows each is, (n, F) both: missing ones are left out, the rest is 0.

    Rows of the same value are alike, so where a feature has few values there is little to do.
    """
    ordered = np.sort(values, axis=0)
    there = ~np.isnan(ordered)
    new = there.copy()
    new[1:] &= ordered[1:] != ordered[:-1]
    place = (np.cumsum(new, axis=0) - 1) * ordered.shape[1] + np.arange(ordered.shape[1])
    level, count = np.zeros(ordered.size), np.bincount(place[there], minlength=ordered.size)
    level[place[new]] = ordered[new]
    return level.reshape(ordered.shape), count.reshape(ordered.shape).astype(float)


def _tilted_sums(level: Array, count: Array, nominal: Array, one: float, rate: float) -> Array:
    """Sums of 1, Δ, Δ², Δ³ from a row of each level to the others, a pair counted e^(-rate·Δ²) times: (4, n, F).

    `one` is the Δ of two different categories. Each pair of levels is looked at once, for both.
    """
    sums, any_nominal, single = np.zeros((4, *level.shape)), bool(nominal.any()), bool((count == 1.0).all())
    ones = np.ones(len(level))
    for a in range(len(level) - 1):
        gap = level[a + 1 :] - level[a]  # levels rise
        if any_nominal:
            gap[:, nominal] = one
        term = gap * -rate
        term *= gap
        np.exp(term, out=term)
        for t, power in enumerate(sums):
            if t:
                term *= gap
            power[a] += ones[a + 1 :] @ term if single else np.einsum("nf,nf->f", term, count[a + 1 :])
            power[a + 1 :] += term if single else term * count[a]
    sums[0] += np.maximum(count - 1.0, 0.0)  # the others of the same level, at distance 0
    return sums


def _moments(sums: Array, count: Array) -> tuple[Array, Array]:
    """Slope and single of a `Pull`: cov(Δ, Δ²), and var h over the mean variance of Δ from one row."""
    total = (count * sums).sum(axis=1)
    mean, square, cube = (ratio(power, total[0]) for power in total[1:])
    by_row = ratio((ratio(sums[1], sums[0]) ** 2 * sums[0] * count).sum(axis=0), total[0])
    others = np.maximum((count * (sums[0] > 0)).sum(axis=0) - 1.0, 2.0)
    within = (square - by_row) * others / (others - 1.0)
    return cube - mean * square, np.clip(ratio(square - mean**2 - within, within), 0.0, 1.0)


def bias(rate: Array, class_weight: Array, slope: Array) -> Array:
    """The w that noise has because it takes part in the search."""
    hits = np.diag(rate)
    misses = (rate.sum(axis=1) - hits) / max(len(rate) - 1, 1)
    return float(class_weight @ (hits - misses)) * slope


def scale(se: Array, shared: Sharing, single: Array, lifted: Array) -> Array:
    """The spread of w of noise: se, with shared rows and the uncertainty of the bias accounted for."""
    inflation = (single * shared.rows + (1.0 - single) * shared.pairs) / (1.0 + single * shared.queries)
    return np.where(se > 0, np.hypot(se * np.sqrt(inflation), TRUST * lifted), 0.0)


def ratio(a: Array, b: Array) -> Array:
    """Return a/b, and 0 where b is not positive."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
