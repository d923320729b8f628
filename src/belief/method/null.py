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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Pairs, Tally

TRUST = 0.05  # the part of the bias that may be wrong; 0.04 was seen where noise had a raw z of 26
SHARE, LITTLE = 128, 150_000  # `pull` looks at one in so many of the pairs, or at so many values if that is more,
ROWS, LAGS = (24, 256), (2, 8)  # of so many rows, each with so many before it and after it, at least and at most
MUCH = 4  # times as much as shared pairs, shared rows may inflate the variance before more is looked at
CELLS = 50_000_000  # and so many values of them, so that very wide data pay a second or two
CHUNK, BLOCK = 2048, 2**16  # features that are read, and values of theirs that are looked at, at a time
TINY, LARGE = 1e-30, 1e30  # in place of a weight that is 0, and of a rate that single precision may not hold


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
    query, neighbour, n = pairs.coded
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


def looked_at(n_pairs: int, n_features: int, shared: Sharing) -> tuple[int, int]:
    """How many of the sampled rows `pull` looks at, and with how many others each is compared on either side.

    So many that it takes a small share of the time: of that of the tally, or where that is none, of what any fit takes.
    More, where much depends on what single rows do.
    """
    more = max(1.0, shared.rows / max(MUCH * shared.pairs, 1.0))
    most = int(max(n_pairs / SHARE, LITTLE / n_features) * more)
    rows = int(np.clip(min(most // 4, CELLS // n_features), *ROWS))  # four pairs each, to begin with
    return rows, int(np.clip(most // rows, *LAGS))


def pull(values: Callable[[Array], Array], d: Difference, rate: float | None, n_lags: int) -> Pull:
    """Measure what a rate of growth does to each feature, on a few rows, of which `values` gives some features.

    Differences are in units of the typical one, and `rate` in those of its square. Where it is not known there is no
    slope, and each feature has a unit of its own. Single precision is enough: few rows are what makes it uncertain.
    """
    found, room = np.zeros((2, d.n_features)), np.empty(5 * BLOCK, np.float32)  # memory that was used is faster
    unit, one = d.unit * d.typical, 1.0 / d.typical
    if rate is None:
        unit, one = np.where(d.discrete | d.constant, 1.0, d.sigma), 1.0
    for a in range(0, d.n_features, CHUNK):
        X = values(np.arange(a, min(a + CHUNK, d.n_features)))
        mine = np.flatnonzero((X[0] != X).any(axis=0))  # of sparse data few columns
        X = X if len(mine) == X.shape[1] else X[:, mine]
        lags, width = lags_of(len(X), n_lags), BLOCK // len(X)
        for part in (slice(t, t + width) for t in range(0, len(mine), width)):
            j = a + mine[part]
            x = ((X[:, part] - np.nan_to_num(X[0, part])) / unit[j]).astype(np.float32)
            counts = _counts(~np.isnan(x), lags) if d.missing else (np.array(len(x)), np.array(len(x) * len(lags)))
            sums = _tilted_sums(x, lags, d.discrete[j], one, rate or 0.0, room[: 5 * x.size])
            found[:, j] = _moments(*sums, *counts)
    return Pull(found[0] if rate is not None else np.zeros(d.n_features), found[1])


def lags_of(n: int, most: int) -> list[int]:
    """How far on the rows are that each of n is compared with: far, for the next are often of other classes."""
    far = max((n - 1) // 2, 1)
    return list(range(far, max(far - most, 0), -1))


def _tilted_sums(
    x: Array, lags: list[int], nominal: Array, one: float, rate: float, room: Array
) -> tuple[Array, Array]:
    """Sums over the pairs of rows (i, i + lag), a pair counted e^(-rate·Δ²) times.

    Parameters
    ----------
    x : array of shape (n, F)
        The values; of nominal features, `one` is the Δ of two different ones.
    room : array of 5·n·F numbers to work in

    Returns
    -------
    by_row : array of shape (2, n, F)
        Of 1 and Δ, over the pairs of each row.
    sums : array of shape (2, F)
        Of Δ² and Δ³, over all pairs, each for both of its rows.
    """
    room = room.reshape(5, *x.shape)
    (gap, square, term), by_row = room[:3], room[3:]
    sums, names, missing = np.zeros((2, x.shape[1]), np.float32), np.flatnonzero(nominal), bool(np.isnan(x.sum()))
    by_row[:] = 0.0
    for lag in lags:
        np.subtract(x[lag:], x[:-lag], out=gap[:-lag])
        np.subtract(x[:lag], x[-lag:], out=gap[-lag:])
        np.abs(gap, out=gap)
        if len(names):
            gap[:, names] = np.where(gap[:, names] > 0.0, one, gap[:, names])
        np.multiply(gap, gap, out=square)
        with np.errstate(over="ignore"):  # e^-∞ is 0
            np.multiply(square, -min(rate, LARGE), out=term)
        np.exp(term, out=term)
        if missing:
            gone = np.isnan(gap)
            gap[gone] = square[gone] = term[gone] = 0.0
        _add(by_row[0], term, lag)
        term *= gap
        _add(by_row[1], term, lag)
        sums += 2.0 * np.einsum("nf,nf->f", term, gap), 2.0 * np.einsum("nf,nf->f", term, square)
    return by_row, sums


def _add(by_row: Array, of_pair: Array, lag: int) -> None:
    """Add what the pairs (i, i + lag) have to both of their rows."""
    by_row += of_pair
    by_row[lag:] += of_pair[:-lag]
    by_row[:lag] += of_pair[-lag:]


def _counts(there: Array, lags: list[int]) -> tuple[Array, Array]:
    """How many rows have a value, and how many pairs of them are compared."""
    pairs = sum(np.count_nonzero(there & np.roll(there, lag, axis=0), axis=0) for lag in lags)
    return np.count_nonzero(there, axis=0), np.asarray(pairs)


def _moments(by_row: Array, sums: Array, rows: Array, pairs: Array) -> tuple[Array, Array]:
    """Slope and single of a `Pull`: cov(Δ, Δ²), and var h over the mean variance of Δ from one row.

    Few rows underestimate both variances: that from one row by 1 in as many others as it is compared with; that of all
    by the variance of their mean, which is 4·var h/rows + var g/pairs.
    """
    n, total = by_row.sum(axis=1)
    mean, square, cube = (ratio(power, n) for power in (total, *sums))
    by_row[1] *= by_row[1]
    by_row[1] /= np.maximum(by_row[0], TINY)
    others, each = np.maximum(2.0 * pairs / np.maximum(rows, 1), 2.0), 1.0 / np.maximum(pairs, 1)
    within = (square - ratio(by_row[1].sum(axis=0), n)) * others / (others - 1.0)
    due = square - mean**2 - within * (1.0 - each)
    due /= np.maximum(1.0 - 4.0 / np.maximum(rows, 1) + each, 0.25)
    return cube - mean * square, np.clip(ratio(due, within), 0.0, 1.0)


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
