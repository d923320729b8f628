"""The probe: a small part of the rows, on which significance tests search neighbours many times.

See section 6c of method.md.

The probe is one table in memory, and all engines use the same one: the rows with the smallest keys, with equal numbers
from each class if the classes are large enough. Feature values become small integers that depend only on the order of
the values, so that scaling, outliers and units do not matter, and sums of differences are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy.special import ndtri

from belief.method.arrays import Array
from belief.method.copies import column_keys
from belief.method.design import Design, Units, number_by_appearance
from belief.method.partials import Tally
from belief.method.sampling import Sample, row_keys, splitmix64
from belief.method.summary import Summary
from belief.method.targets import CLASSIFICATION, Classes, Target, make_class_target, make_numeric_target

R = TypeVar("R")
Rows = Callable[[Array, Array], Array]  # returns some features (the second argument) of some rows (the first)
MAX_ROWS, MIN_ROWS, MAX_QUERIES, MIN_QUERIES = 2_000, 500, 1_000, 250
MAX_CELLS = 250_000_000  # rows x features
MAX_RANKED_ROWS, MAX_RANKED_CELLS = 20_000, 20_000_000  # for the univariate tests of a numeric target
MAX_MULTIPLICATIONS = 60_000_000_000  # rows x queries x features x searches: the same on every machine
SHUFFLES, MIN_SHUFFLES, FIRST_SHUFFLES, MIN_NULL_VALUES = (20, 50), 3, 5, 1_000
MIN_CLASS = 5  # classes with fewer rows are left out: nearly all of their rows would be hits
MIN_OTHER_ROWS = 3  # features with the same value in nearly all rows are left out
FEATURES_PER_READ = 2048
KNOTS, SCORE_SCALE, LEVEL_SCORE, MAX_LEVELS = 255, 32, 23, 32  # 2·23² is nearly 32², so two levels are 32 apart
WEIGHT_GRID = 65_536  # weights of rows are rounded to multiples of 1/65,536 of the largest weight
T_GRID = 4096  # ranks of a numeric target are rounded to multiples of 1/4096, so that their products are exact
FEATURES_FIRST = 64  # enough features to distinguish nearly all rows
BY_CHANCE = 10  # more copies than this many times the expected number are not due to chance
IMPUTATION = 3  # the stream of keys for imputing missing values


class LocalSearch(Protocol):
    """The interface to threads and kernels that search the probe; implemented in `belief.engines.probe`."""

    def map(self, task: Callable[[Any], R], arguments: Sequence[Any]) -> Iterator[R]:
        """Apply the task to each argument, in threads, and yield the results in order."""

    def rank_scores(self, values: Array, knots: Array, scores: Array) -> Array:
        """Return the score of each value, looked up in `scores` by its rank among the knots of its column.

        Knots are a sample of the values, sorted.
        """

    def add_shuffled(self, fixed: Array, of_block: Array, line: Array, order: Array) -> Array:
        """Return fixed + of_block[line][:, order], the sum of two matrices of d² of which the second is rearranged."""

    def find(
        self, D: Array, columns: Array, sign: float, is_kept: bool, queries: Array, rows: Array, ends: Array
    ) -> None:
        """Find the nearest rows of each query in each class, after d² in some columns is added or subtracted.

        D is d² between the queries and all rows, float32, (queries, m). `columns` are int8 values, (m, columns),
        whose d² is added to D (sign 1) or subtracted from it (sign -1). D is updated if `is_kept`. `rows`, int32,
        (queries, classes, size), is replaced by the nearest rows, in no particular order.
        """

    def squared_distances(self, X: Array, rows: Array) -> Array:
        """Return d² between the given rows of X and all rows of X, (rows, m), in single precision."""

    def tally(self, queries: Array, rows: Array, block: Scores, target: ProbeTarget) -> Tally:
        """Return the sums of the differences of the queries from their nearest rows, for each feature of `block`."""


@dataclass(frozen=True)
class ProbeTarget:
    """The target of the rows of the probe, which are sorted by class, and the weights of rows if they have any."""

    target: Target  # the target of these rows alone
    values: Array  # the class of each row, or its rank from 0 to 1
    row_weight: Array | None = None  # the weight of each row as a neighbour
    query_weight: Array | None = None  # the weight of each row as a query

    @property
    def is_numeric(self) -> bool:
        return self.target.task != CLASSIFICATION

    @property
    def ends(self) -> Array:
        """The index after the last row of each class."""
        return np.array([len(self.values)]) if self.is_numeric else np.cumsum(self.target.counts)

    def weighted(self, row_weight: Array, query_weight: Array) -> ProbeTarget:
        """Return the target with weights of the rows.

        The weights are rounded to multiples of 1/65,536 of the largest weight, but never to 0.
        """
        row, query = (
            np.maximum(np.rint(x / x.max() * WEIGHT_GRID), 1.0) / WEIGHT_GRID for x in (row_weight, query_weight)
        )
        target = self.target
        if isinstance(target, Classes):
            shares = np.bincount(self.values, row)
            target = replace(target, shares=shares / shares.sum())
        return ProbeTarget(target, self.values, row, query)

    @property
    def weights(self) -> Array:
        return np.ones(len(self.values)) if self.row_weight is None else self.row_weight


@dataclass(frozen=True)
class Scores:
    """Features of the probe as small integers.

    A continuous feature has one column of normal scores; a discrete feature has one column per level.
    """

    X: Array  # int8, (m, columns)
    feature: Array  # the feature of each column, sorted
    n_features: int
    line: Array | None = None  # the line of X for each row; None if the rows are in the order of the lines

    def take(self, features: Array) -> Scores:
        """Return the scores of these features, given by sorted indices."""
        line = np.full(self.n_features, -1, np.int64)
        line[features] = np.arange(len(features))
        columns = np.flatnonzero(line[self.feature] >= 0)
        X = self.X if len(columns) == self.X.shape[1] else np.take(self.X, columns, axis=1)
        return Scores(X if self.line is None else X[self.line], line[self.feature[columns]], len(features))

    def arrange(self, order: Array) -> Scores:
        """Return the scores with the rows in another order."""
        return replace(self, line=order if self.line is None else self.line[order])


@dataclass(frozen=True)
class Probe:
    """The rows of the probe, with their scores, targets and ids, and the queries among these rows."""

    scores: Scores
    features: Array  # their indices in the data
    target: ProbeTarget
    ids: Array  # row ids; rows are sorted by class, then by key
    queries: Array
    k: int  # neighbours of each class; 0 if the classes are too small for a test
    seed: int
    sample: Sample  # the rows, including rows of classes that are too small
    design: Design  # the study design of the rows of `scores`

    @cached_property
    def units(self) -> list[Units]:
        """The sets of rows that shuffles move as a whole: first of the queries, then of the other rows."""
        others = np.setdiff1d(np.arange(len(self.ids)), self.queries)
        return [Units.of(rows, self.design, self.ids) for rows in (self.queries, others)]

    def distances(self, features: Array, search: LocalSearch) -> Array:
        """Return the squared distances d² of the queries to all rows, by these features.

        Rows that must not be neighbours get a very large distance.
        """
        D = search.squared_distances(self.scores.take(features).X, self.queries)
        if self.design.has_units:
            # larger than any distance in all features, so that these rows are the farthest for any set of features
            longest = max(float(np.square(x.astype(np.float64)).sum()) for x in self.scores.X)
            D[self.design.excludes(self.queries, np.arange(len(self.ids)))] += np.float32(4.0 * longest)
        return D

    def shuffles(self, n_features: int) -> int:
        """Return the number of shuffles for testing n_features features, reduced if the search would take too long."""
        n = int(np.clip(MIN_NULL_VALUES // n_features, *SHUFFLES))
        affordable = MAX_MULTIPLICATIONS // (len(self.ids) * len(self.queries) * n_features) - 1
        return max(MIN_SHUFFLES, min(n, affordable))


def make_probe(
    sample: Sample,
    rows: Rows,
    summary: Summary,
    discrete: Array,
    target: Target,
    n_neighbors: int,
    seed: int,
    search: LocalSearch,
    design: Design,
    weigh: Callable[[Array, Array], Array],
) -> Probe:
    """Read the rows of the probe, `sample`, and convert their values to scores.

    `rows` returns values, given the ids of rows and the indices of features. `design` is the study design of the
    sample. `weigh` returns sampling weights, given the ids of rows and of all sampled rows.
    """
    features, whole = choose_features(summary, len(sample.row)), sample
    if target.task == CLASSIFICATION:
        counts = np.bincount(sample.target, minlength=len(target.counts))
        is_large = counts[sample.target] >= MIN_CLASS
        sample, design = sample.part(is_large), design.take(np.flatnonzero(is_large))
        order = np.lexsort((np.arange(len(sample.row)), sample.target))
        codes, values = np.unique(sample.target, return_inverse=True)
        of_probe = ProbeTarget(make_class_target(target.names[codes], values), values[order])
        n = int(of_probe.target.counts.min()) if len(codes) > 1 else 0
    else:
        order, n = np.arange(len(sample.row)), len(sample.row)
        of_probe = ProbeTarget(target.counted(sample.target), rank_on_grid(sample.target))
        n = n // 2
    k = min(n_neighbors, max(10, n // 6), n // 2) if n >= MIN_CLASS else 0
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ids, m, design = sample.row[order], len(order), design.take(order)
    cells = m * len(features)
    n_queries = int(np.clip(MAX_MULTIPLICATIONS // ((1 + MIN_SHUFFLES) * max(cells, 1)), MIN_QUERIES, MAX_QUERIES))
    none = np.zeros(0, np.int64)
    parts, feature, kept, n_kept = [np.zeros((m, 0), np.int8)], [none], [none], 0
    for a in range(0, len(features), FEATURES_PER_READ):
        columns = features[a : a + FEATURES_PER_READ]
        values = rows(ids, columns)
        fill_missing(values, ids, columns)
        X, of = score_features(values, discrete[columns], search)
        varies = np.zeros(len(columns), bool)
        varies[of[(X[:1] != X).any(axis=0)]] = True
        line = np.cumsum(varies) - 1 + n_kept
        n_kept += int(varies.sum())
        parts.append(X if varies.all() else X[:, varies[of]])
        feature.append(line[of[varies[of]]])
        kept.append(columns[varies])
    scores = Scores(np.concatenate(parts, axis=1), np.concatenate(feature), n_kept)
    queries = np.sort(place[:n_queries])
    if design.has_units and k:
        queries, k = choose_queries(place, n_queries, of_probe, design, k)
    if design.weight is not None:
        of_probe = of_probe.weighted(design.weight, weigh(ids, ids[queries]))
    return Probe(scores, np.concatenate(kept), of_probe, ids, queries, k, seed, whole, design)


def choose_queries(place: Array, n: int, target: ProbeTarget, design: Design, k: int) -> tuple[Array, int]:
    """Choose about n queries of a probe with a study design, in whole groups; return them and the number of neighbours.

    Only rows that may have neighbours of every class are chosen. `place` are the rows, in the order of the sample, and
    k is the number of neighbours wanted.
    """
    m = len(place)
    allowed = ~design.excludes(np.arange(m), np.arange(m))
    np.fill_diagonal(allowed, False)
    if target.is_numeric:
        available = allowed.sum(axis=1) // 2
    else:
        of_class = target.values[:, None] == np.arange(len(target.ends))
        available = (allowed.astype(np.float32) @ of_class.astype(np.float32)).min(axis=1).astype(np.int64)
    group = design.groups(m)
    usable = place[available[place] >= min(k, MIN_CLASS)]
    if not len(usable):
        return np.sort(place[:n]), 0
    k = min(k, int(np.quantile(available[usable], 0.1)))
    usable = usable[available[usable] >= k]
    last = len(usable) if len(usable) <= n else n
    chosen = np.isin(group[usable], group[usable[:last]])
    while chosen.sum() > n and last > 1:  # as many whole groups as fit
        last = int(last * n / chosen.sum())
        chosen = np.isin(group[usable], group[usable[: max(last, 1)]])
    return np.sort(usable[chosen]), k


def choose_features(summary: Summary, m: int) -> Array:
    """Return the features that can be tested on a sample of m rows; features that are nearly constant are left out.

    If too many features remain, the ones in which the fewest rows differ from the most frequent value are left out too.
    """
    varies, others = summary.maximum > summary.minimum, summary.count_other_values()
    features = np.flatnonzero(varies & (others / max(summary.m, 1) * m >= MIN_OTHER_ROWS))
    most = MAX_CELLS // max(m, 1)
    if len(features) > most:
        features = np.sort(features[np.argsort(-others[features], kind="stable")[:most]])
    return features


def choose_size(n_features: int, max_cells: int = MAX_CELLS // 2) -> int:
    """Return the number of rows of the probe, the sample for significance tests, given the number of features."""
    return int(np.clip(max_cells // max(n_features, 1), MIN_ROWS, MAX_ROWS))


def choose_ranked_size(n_features: int) -> int:
    """Return the number of rows for univariate tests by ranks or shuffles, given the number of features."""
    return max(choose_size(n_features, MAX_CELLS), min(MAX_RANKED_ROWS, MAX_RANKED_CELLS // max(n_features, 1)))


def rank_on_grid(values: Array) -> Array:
    """Return the ranks of a numeric target among these rows, from 0 to 1, rounded to multiples of 1/4,096."""
    return np.rint(make_numeric_target(values)[1] * T_GRID) / T_GRID


# --- scores ---


def squared_distances(X: Array, rows: Array) -> Array:
    """Return d² between the given rows of X and all rows of X, (rows, m), in single precision."""
    D = np.zeros((len(rows), len(X)))
    for a in range(0, X.shape[1], 1024):  # sums of up to 1,024 products are exact in float32
        x = X[:, a : a + 1024].astype(np.float32)
        norm = np.einsum("ij,ij->i", x, x)
        x_rows = x[rows]
        x_rows *= -2.0
        D += x_rows @ x.T
        D += norm[rows, None]
        D += norm
    return D.astype(np.float32)


def fill_missing(values: Array, ids: Array, columns: Array) -> None:
    """Replace each missing value by a random present value of its column, in place.

    The random choice depends only on the ids of the row and the column.
    """
    for t in np.flatnonzero(np.isnan(values).any(axis=0)).tolist():
        x = values[:, t]
        is_missing = np.isnan(x)
        known = x[~is_missing]
        if len(known):
            draw = splitmix64(ids[is_missing].astype(np.uint64) ^ row_keys(0, IMPUTATION, columns[t : t + 1]))
            x[is_missing] = known[(draw % np.uint64(len(known))).astype(np.int64)]


def score_features(values: Array, discrete: Array, search: LocalSearch) -> tuple[Array, Array]:
    """Convert features without missing values to columns of int8; return these columns and the feature of each.

    Continuous features and those of two levels become one column of normal scores. A discrete feature with more levels
    becomes one column per level; from the 32nd most frequent level on, all levels share a column.
    """
    m = len(values)
    if discrete.any():
        values = values.copy()
        for j in np.flatnonzero(discrete).tolist():
            values[:, j] = number_by_appearance(values[:, j])  # codes of categories depend on how a table was read
    some = np.arange(m) if m <= KNOTS else (np.arange(KNOTS) * m) // KNOTS
    knots = np.sort(values[some].T.copy()).T  # sorting lines is faster than sorting columns
    # the score of a rank; the rank of a value is the number of knots below it plus the number that are not above it
    share = (np.arange(2 * len(knots) + 1) + 1.0) / (2.0 * (len(knots) + 1))
    X = search.rank_scores(values, knots, np.rint(SCORE_SCALE * ndtri(share)).astype(np.int8))
    if not discrete.any():
        return X, np.arange(values.shape[1])
    parts, feature = [], []
    for j in range(values.shape[1]):
        levels, code, count = np.unique(values[:, j], return_inverse=True, return_counts=True)
        if discrete[j] and len(levels) > 2:
            # the rare levels share the last column
            top = np.sort(np.argsort(-count, kind="stable")[: MAX_LEVELS - 1])
            place = np.full(len(levels), len(top))
            place[top] = np.arange(len(top))
            one_hot = place[code][:, None] == np.arange(min(len(levels), MAX_LEVELS))
            parts.append(one_hot.astype(np.int8) * np.int8(LEVEL_SCORE))
        else:
            parts.append(X[:, j : j + 1])
        feature += [j] * parts[-1].shape[1]
    return np.ascontiguousarray(np.concatenate(parts, axis=1)), np.array(feature)


# --- copies of rows ---


def count_copies(ids: Array, targets: Array, rows: Rows, features: Array) -> int:
    """Return the number of rows that are copies of others with the same target; 0 if chance can explain them.

    In tables with few distinct values, rows may be equal by chance. So a set of equal rows counts only if these rows
    have a value that no row outside the set has. All sets together count only if they have many more copies than
    expected for independent columns.
    """
    identity, a = splitmix64(np.asarray(targets).astype(np.float64).view(np.uint64)), 0
    while a < len(features):
        b = a + (FEATURES_PER_READ if a else FEATURES_FIRST)
        values = rows(ids, features[a:b])
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
        identity = identity + splitmix64(bits ^ column_keys(features[a:b])).sum(axis=1, dtype=np.uint64)
        _, first, count = np.unique(identity, return_index=True, return_counts=True)
        if len(first) == len(ids):
            return 0
        a = b
    is_open = count > 1  # sets of equal rows for which no value has been found that others do not have
    n_copies = 0
    for part in (features[a : a + FEATURES_PER_READ] for a in range(0, len(features), FEATURES_PER_READ)):
        values = rows(ids[first], part)
        for t in range(len(part)):
            if not is_open.any():
                break
            _, level, shared = np.unique(values[:, t], return_inverse=True, return_counts=True)
            is_unique = is_open & (shared[level] == 1)
            n_copies += int((count[is_unique] - 1).sum())
            is_open &= ~is_unique
    # the expected number of equal pairs of rows if columns were independent
    expected = len(ids) * (len(ids) - 1) / 2.0 * _share_of_equal_pairs(targets)
    for part in (features[a : a + FEATURES_FIRST] for a in range(0, len(features), FEATURES_FIRST)):
        for x in rows(ids, part).T:
            expected *= _share_of_equal_pairs(x)
            if expected < 1.0:
                return n_copies
    return n_copies if n_copies > BY_CHANCE * expected else 0


def _share_of_equal_pairs(x: Array) -> float:
    count = np.unique(x, return_counts=True)[1]
    return float((count * (count - 1.0)).sum() / (len(x) * (len(x) - 1.0)))
