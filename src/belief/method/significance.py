"""Statistical significance of the features, measured by permutation on the probe (section 6c of method.md).

    univariate p ─► S, the features known to be relevant; N, the others
    rounds over S and N: search, weigh N, drop the weakest fifth ─► T, the largest z of each feature of N
    the same with the rows of N shuffled against S and the target ─► T under the null ─► p
    the strongest features found join S; repeat until nothing new is found

A feature of N may have a large z without any relevance: because it took part in the search, because queries share
neighbours, or because its distribution is unusual. Shuffled features share all of this but are irrelevant, so their T
is the null distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from belief.method.arrays import Array
from belief.method.design import Design, Units
from belief.method.partials import Tally
from belief.method.probe import (
    FEATURES_PER_READ,
    FIRST_SHUFFLES,
    MIN_NULL_VALUES,
    SHUFFLES,
    LocalSearch,
    Probe,
    ProbeTarget,
    Rows,
    Scores,
    fill_missing,
    rank_on_grid,
    score_features,
)
from belief.method.relevance import LEAST_P, least_relevance, mean, relevance
from belief.method.sampling import Sample, row_keys
from belief.method.univariate import ShareTest, correct_by_shuffles, pareto_tails

LEVEL = 0.05  # false discovery rate of the features that join S; also the share of the null in its tail
CLOSE = 3  # features with q < CLOSE * LEVEL may become significant with more shuffles
UNIVARIATE_SHARE = 0.8  # the share of the error rate for the univariate test; the neighbour test has the rest
DROPPED, LAST = 0.2, 16  # share of the features that each round drops, and number of features left at the end
MAX_SECOND_ROUND = 10_000  # largest number of features after the first round
MIN_CENTRED = 20  # z is centred by its median if there are at least this many features
MIN_EXCESSES = 10  # the smallest number of null values to which a tail is fitted
MIN_UPDATED = 400  # with more features than this, the dropped features are subtracted from d²
TIE = 1e-9  # values of z that differ by less are ties, so that the order of a summation does not matter
MAX_PASSES = 5
CHECKED = 0.05  # univariate p-values below this are checked by shuffles
PROSPECT_ROWS, PROSPECT_SHARE = (10, 40), 25  # nearest rows for an expected target: a 25th of all, within these limits
ROWS_PER_STRATUM, MAX_STRATA = 10, 60
STRATA, FIRST_NULL, SECOND_NULL = 4, 16, 2**20  # streams of keys: for ties in strata, and the first ones of both nulls


@dataclass(frozen=True)
class Significance:
    """The results of the significance tests: one entry per feature of the data, NaN for features without a test."""

    p_neighbours: Array
    p_univariate: Array
    p_value: Array
    q_value: Array
    round: Array  # the round in which z was largest; 0 for features without a neighbour test
    metric: Array  # the features that define the distances: the known ones and those left after the rounds
    bias: float  # the weight of irrelevant features in this metric, as a share of their mean difference
    extent: dict[str, int]  # the size of the neighbour test: rows, queries, neighbours, features, shuffles and rounds


def no_tests(p_univariate: Array) -> Significance:
    """Return the results of a run without significance tests, which contain only univariate p-values."""
    unknown, zeros = np.full(len(p_univariate), np.nan), np.zeros(len(p_univariate), np.int64)
    return Significance(unknown, p_univariate, unknown, unknown, zeros, metric=zeros[:0], bias=0.0, extent={})


def sampled_p_values(
    sample: Sample,
    is_numeric: bool,
    rows: Rows,
    discrete: Array,
    constant: Array,
    search: LocalSearch,
    design: Design | None = None,
    seed: int = 0,
) -> Array:
    """Return the univariate p-value of each feature from sampled rows; NaN for constant features.

    They come from theory or, with a study design, from shuffles.
    """
    p, features = np.full(len(discrete), np.nan), np.flatnonzero(~constant)
    for a in range(0, len(features), FEATURES_PER_READ):
        part = features[a : a + FEATURES_PER_READ]
        test = make_share_test(sample, is_numeric, rows, part, discrete[part], search)
        if design is None:
            p[part] = test.p_values()
        else:
            units = Units.of(np.arange(len(sample.row)), design, sample.row)
            p[part] = test.under(design).shuffled_p_values(sample.row, seed, search.map, units)
    return p


def check_univariate(probe: Probe, rows: Rows, p: Array, discrete: Array, search: LocalSearch) -> Array:
    """Return the univariate p-values, after small ones have been checked by shuffles.

    The shuffles use the rows that were drawn for the probe, a small sample. Unknown p-values are computed from these
    rows.
    """
    p, sample, is_numeric = p.copy(), probe.sample, probe.target.is_numeric
    is_unknown = np.zeros(len(p), bool)
    is_unknown[probe.features] = np.isnan(p[probe.features])
    # includes features and classes that are too rare for the neighbour test
    features = np.flatnonzero(is_unknown | (p < CHECKED))
    for a in range(0, len(features), FEATURES_PER_READ):
        part = features[a : a + FEATURES_PER_READ]
        test = make_share_test(sample, is_numeric, rows, part, discrete[part], search)
        theory = test.p_values()
        known = np.where(is_unknown[part], theory, p[part])
        p[part] = known
        small = np.flatnonzero(known < CHECKED)
        if len(small):
            shuffled = test.take(small).mid_p_values(search.map)
            others = np.flatnonzero(np.isnan(shuffled))
            if len(others):
                of_others = test.take(small[others])
                shuffled[others] = of_others.shuffled_p_values(sample.row, probe.seed, search.map)
            p[part[small]] = correct_by_shuffles(known[small], theory[small], shuffled)
    return p


def make_share_test(
    sample: Sample, is_numeric: bool, rows: Rows, features: Array, discrete: Array, search: LocalSearch
) -> ShareTest:
    """Return the univariate test of these features on sampled rows.

    With a numeric target, the values of continuous features are replaced by their normal scores.
    """
    numbers, nominal = np.flatnonzero(~discrete), np.flatnonzero(discrete)
    read = rows(sample.row, features)
    values, of_levels = read[:, numbers], read[:, nominal]
    fill_missing(of_levels, sample.row, features[nominal])
    X, of = score_features(of_levels, discrete[nominal], search)
    # an indicator of each level; a feature with one column has two levels
    is_level, n_columns = X.min(axis=0, initial=127) < X, np.bincount(of, minlength=len(nominal))
    single = np.flatnonzero(n_columns[of] == 1)
    of_level = np.concatenate([of, of[single]])
    order = np.argsort(of_level, kind="stable")
    columns, of_level = np.concatenate([is_level, ~is_level[:, single]], axis=1)[:, order], of_level[order]
    if is_numeric:
        fill_missing(values, sample.row, features[numbers])
        values, _ = score_features(values, np.zeros(len(numbers), bool), search)
    feature = np.concatenate([numbers, nominal[of_level]])
    order = np.argsort(feature, kind="stable")
    columns = np.concatenate([values, columns], axis=1, dtype=float)[:, order]
    target = rank_on_grid(sample.target) if is_numeric else sample.target
    return ShareTest.of(columns, feature[order], discrete, target, is_numeric)


# --- one search, and rounds of them ---


@dataclass(frozen=True)
class Rounds:
    """The results of successive searches, each of which leaves out the weakest features of the search before it.

    T is the largest z of each feature, `round` the search in which it was reached, and `left` the features of the last
    search.
    """

    T: Array
    round: Array
    left: Array
    number: int  # the number of rounds


@dataclass(frozen=True)
class Arrangement:
    """The input of a search on the probe: a block of features to weigh, and the parts of d² between queries and rows.

    One part of d² comes from the features of the block, the other (`fixed`) from all other features. If the
    block is shuffled against the other features, only the rows of its own part change places.
    """

    block: Scores
    fixed: Array  # d² in the other features, float32, (queries, m)
    of_block: Array  # d² in the features of the block, likewise
    queries: Array
    line: Array  # the line of `of_block` for each query
    order: Array  # the column of `of_block` for each row

    @classmethod
    def of(cls, probe: Probe, block: Array, others: Array, search: LocalSearch) -> Self:
        """Return the input for weighing the features `block` of the probe; nothing is shuffled yet.

        `others` are the other features that count in distances.
        """
        scores, queries = probe.scores.take(block), probe.queries
        of_block, line = search.squared_distances(scores.X, queries), np.arange(len(queries))
        return cls(scores, probe.distances(others, search), of_block, queries, line, np.arange(len(probe.ids)))

    def shuffle_block(self, probe: Probe, stream: int) -> Arrangement:
        """Return a copy in which the rows of `self.block` are shuffled.

        The values of the other features and the target stay in place. Queries are shuffled among queries, and other
        rows among other rows.
        """
        keys, m = row_keys(probe.seed, stream, probe.ids), len(probe.ids)
        order, line = np.empty(m, np.int64), np.empty(m, np.int64)
        for units in probe.units:
            units.shuffle(keys, order)
        line[self.queries] = self.line
        return replace(self, block=self.block.arrange(order), line=line[order[self.queries]], order=order)

    def shuffle_target(self, probe: Probe, stratum: Array, stream: int) -> Arrangement:
        """Return a copy in which the target is shuffled within strata. Its rows are sorted by their new target.

        The rows of a unit (a group, or a row) stay together.
        """
        keys, ids = row_keys(probe.seed, stream, probe.ids), probe.ids
        _, first, unit = np.unique(probe.design.groups(len(keys)), return_index=True, return_inverse=True)
        order, place = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        order[np.lexsort((ids, unit, stratum))] = np.lexsort((ids, unit, keys[first][unit], stratum))
        place[order] = np.arange(len(order))  # row order[i] has the target of row i
        block, fixed = self.block.arrange(order), np.take(self.fixed, order, axis=1)
        return replace(self, block=block, fixed=fixed, queries=place[self.queries], order=order)


@dataclass(frozen=True)
class Weigher:
    """Computes the weights of features on the probe, a sample of the rows, from the neighbours of its queries."""

    probe: Probe
    class_weight: Any
    search: LocalSearch
    max_rounds: int

    def weigh(self, queries: Array, rows: Array, block: Scores) -> tuple[Array, Array, Tally]:
        """Return the weights w of a block of features, their standard errors, and the sums of differences behind them.

        `rows` are the neighbours of each query.
        """
        target = self.probe.target
        tally = self.search.tally(queries, rows, block, target)
        v = target.target.weights(self.class_weight, tally)
        w = relevance(tally, v)
        return w, target.target.error(tally, v, w), tally

    def rounds(self, a: Arrangement) -> Rounds:
        """Search neighbours and compute z of each feature, in rounds.

        Each round drops the weakest features, until few are left.
        """
        n, block, search, ends = a.block.n_features, a.block, self.search, self.probe.target.ends
        T, round_of, live, number = np.full(n, -np.inf), np.zeros(n, np.int64), np.arange(n), 1
        D, rows = self.start(a)
        while True:
            w, se, _ = self.weigh(a.queries, rows, block)
            z = w / np.maximum(se, 1e-12)
            if len(live) >= MIN_CENTRED:
                z -= np.median(z)
            is_larger = z > T[live]
            T[live[is_larger]], round_of[live[is_larger]] = z[is_larger], number
            size = max(LAST, min(int(len(live) * (1.0 - DROPPED)), MAX_SECOND_ROUND))
            if size >= len(live) or number == self.max_rounds:
                return Rounds(T, round_of, live, number)
            order = np.argsort(-np.round(z / TIE), kind="stable")
            kept = np.sort(order[:size])
            if 2 * size >= len(live) > MIN_UPDATED:
                search.find(D, block.take(np.sort(order[size:])).X, -1.0, True, a.queries, rows, ends)
                block = block.take(kept)
            else:
                D, block = a.fixed.copy() if size > MIN_UPDATED else a.fixed, block.take(kept)
                search.find(D, block.X, 1.0, size > MIN_UPDATED, a.queries, rows, ends)
            live, number = live[kept], number + 1

    def start(self, a: Arrangement) -> tuple[Array, Array]:
        """Return d² between the queries and all rows of an arrangement, and the nearest rows of each query."""
        target, k = self.probe.target, self.probe.k
        size = 2 * k if target.is_numeric else k
        rows = np.empty((len(a.queries), len(target.ends), size), np.int32)
        D = self.search.add_shuffled(a.fixed, a.of_block, a.line, a.order)
        self.search.find(D, a.block.X[:, :0], 1.0, False, a.queries, rows, target.ends)
        return D, rows


# --- p-values ---


def find_significant(
    probe: Probe,
    p_univariate: Array,
    constant: Array,
    class_weight: Any,
    max_rounds: int,
    given: Array,
    search: LocalSearch,
) -> Significance:
    """Test the significance of all features, and choose the features that define the distances.

    The features of the probe, a sample of the rows, are tested by the neighbours of its queries, in several passes.
    Distances use features that are known to be relevant. Given features, and features with small univariate p-values,
    are known from the start, and not tested. Each pass adds the strongest features that it finds. Given features do not
    count in the correction of the other features for multiple testing. Unknown univariate p-values are NaN.
    """
    F, features, target = len(p_univariate), probe.features, probe.target
    is_given = np.zeros(F, bool)
    is_given[given] = True
    p_of_probe = np.where(np.isnan(p_univariate[features]) | is_given[features], 1.0, p_univariate[features])
    weigher = Weigher(probe, class_weight, search, max_rounds)
    p, round_of = np.full(len(features), np.nan), np.zeros(F, np.int64)
    known = is_given[features] | (q_values(p_of_probe) < LEVEL)
    left, shuffles, rounds = np.zeros(0, np.int64), 0, 0
    for t in range(MAX_PASSES if probe.k else 0):
        S, N = np.flatnonzero(known), np.flatnonzero(~known)
        if not len(N):
            break
        start, most, n = Arrangement.of(probe, N, S, search), probe.shuffles(len(N)), 0

        def run(b: int | None, start: Arrangement = start) -> Rounds:
            return weigher.rounds(start if b is None else start.shuffle_block(probe, FIRST_NULL + b))

        first = max(FIRST_SHUFFLES, -(-MIN_NULL_VALUES // len(N)))  # show whether any feature may be significant
        found, *null = search.map(run, [None, *range(min(first, most))])
        while n < len(null):
            n = len(null)
            p[N], above = compare(found.T, [x.T for x in null])
            is_found, is_close = is_significant(p, p_of_probe, N)
            if is_close.any():
                null += search.map(run, range(n, min(2 * n, most)))
        shuffles = max(shuffles, n)
        round_of[features[N]], left, rounds = found.round, N[found.left], max(rounds, found.number)
        if len(S) and is_found.any():
            keys = row_keys(probe.seed, STRATA, probe.ids)
            strata = equal_prospects(probe.scores.take(S), target, probe.design, keys, search)

            def run_second(b: int, start: Arrangement = start, strata: Array = strata) -> Array:
                return weigher.rounds(start.shuffle_target(probe, strata, SECOND_NULL + b)).T

            p[N] = np.maximum(p[N], compare(found.T, list(search.map(run_second, range(n))))[0])
            is_found, _ = is_significant(p, p_of_probe, N)
            del run_second  # it holds the scores of N and d², which would stay in memory during the next pass
        if not is_found.any() or t == MAX_PASSES - 1:
            break
        known[N[is_found & (above >= above[is_found].max() / 2)]] = True
    known_features = np.flatnonzero(known)
    bias = estimate_bias(weigher, np.setdiff1d(left, known_features), known_features) if probe.k else 0.0
    p_neighbours = np.full(F, np.nan)
    p_neighbours[features] = p
    p_value, q_value, tested = combine(p_neighbours, p_univariate), np.ones(F), ~constant & ~is_given
    q_value[~constant] = q_values(p_value[~constant])
    if len(given) and tested.any():
        q_value[tested] = q_values(p_value[tested])
    metric = features[np.union1d(known_features, left)]
    if not len(metric):
        metric = np.flatnonzero(~constant)
    extent = {
        "rows": len(probe.ids),
        "queries": len(probe.queries),
        "neighbours": probe.k,
        "features": len(features),
        "shuffles": shuffles,
        "rounds": rounds,
    }
    extent = extent if rounds else {}
    return Significance(p_neighbours, p_univariate, p_value, q_value, round_of, metric, bias, extent)


def estimate_bias(weigher: Weigher, left: Array, known: Array) -> float:
    """Return the weight that irrelevant features get by taking part in the search, as a share of their mean difference.

    It is measured by shuffling the features `left`, so that they are irrelevant. The search also uses the features
    `known`, which are not shuffled. The mean difference of a feature is over all pairs of neighbours.
    """
    if not len(left):
        return 0.0
    probe, start = weigher.probe, Arrangement.of(weigher.probe, left, known, weigher.search)

    def weigh_shuffled(b: int) -> tuple[float, float]:
        shuffled = start.shuffle_block(probe, FIRST_NULL + b)
        w, _, tally = weigher.weigh(shuffled.queries, weigher.start(shuffled)[1], shuffled.block)
        return float(w.sum()), float((tally.total.sum(axis=0) / tally.count.sum(axis=0)).sum())

    w, difference = np.array(list(weigher.search.map(weigh_shuffled, range(SHUFFLES[0])))).sum(axis=0)
    return float(w / difference) if difference > 0 else 0.0


def compare(T: Array, null: list[Array]) -> tuple[Array, Array]:
    """Return the p-value of each statistic T under a null distribution, and T minus its expected value.

    The expected value is the mean of T over the shuffles, shrunk towards the mean of all features. If chance
    explains all differences between the means of features, the expected value is the mean of all features.
    """
    values = np.array(null)
    n = len(values)
    mean, total = values.mean(axis=0), values.sum(axis=0)
    noise = values.var(axis=0, ddof=1).mean() / n if n > 1 else np.inf
    between = max(float(mean.var()) - noise, 0.0)
    share = between / (between + noise) if between > 0 else 0.0
    overall = mean.mean()
    centre = overall + share * (mean - overall)
    others = (total - values) / max(n - 1, 1)  # for each value, the mean over the other shuffles
    values = values - (overall + share * (others - overall))
    return upper_tail(np.sort(values.ravel()), T - centre), T - centre


def upper_tail(null: Array, T: Array) -> Array:
    """Return the p-value of each statistic T: the share of the sorted null values that are at least as large.

    Above the 95th percentile of the null values, it comes from a Pareto tail that is fitted to them.
    """
    n = len(null)
    p = (1.0 + n - np.searchsorted(null, T - TIE, side="left")) / (n + 1.0)
    cut = null[int((1.0 - LEVEL) * n)]
    excess = null[null > cut + TIE] - cut
    if len(excess) >= MIN_EXCESSES:
        far = cut + TIE < T
        p[far] = LEVEL * pareto_tails(excess[:, None], np.array([len(excess)]), T[far] - cut)
    return p


def is_significant(p_neighbours: Array, p_univariate: Array, features: Array) -> tuple[Array, Array]:
    """Return masks of these features: those that are significant, and those that may become so with more shuffles."""
    p = combine(p_neighbours, p_univariate)
    q = q_values(p)
    limit = p[q < CLOSE * LEVEL].max(initial=0.0)
    is_close = combine(p_neighbours, np.ones(len(p))) <= limit
    return (q < LEVEL)[features], is_close[features]


def combine(p_neighbours: Array, p_univariate: Array) -> Array:
    """Return the combined p-value of both tests; NaN counts as a p-value of 1."""
    parts = p_univariate / UNIVARIATE_SHARE, p_neighbours / (1.0 - UNIVARIATE_SHARE)
    return np.minimum(1.0, np.fmin(*(np.where(np.isnan(x), 1.0, x) for x in parts)))


def q_values(p: Array) -> Array:
    """Return the q-values of Benjamini and Hochberg.

    The q-value of a feature is the false discovery rate if all features with p-values up to its own are selected.
    """
    from scipy.stats import false_discovery_control  # takes a third of a second to import

    return np.asarray(false_discovery_control(np.clip(p, 0.0, 1.0)))


def equal_prospects(known: Scores, target: ProbeTarget, design: Design, keys: Array, search: LocalSearch) -> Array:
    """Return the stratum of each row; rows of a stratum have similar expected targets, given the known features.

    The expected target of a row is the mean target of the nearest other rows, by distances in the known features. With
    groups, all rows of a group have the mean of their expected targets.
    """
    m = len(keys)
    D = search.squared_distances(known.X, np.arange(m))
    if design.has_units:
        D[design.excludes(np.arange(m), np.arange(m))] = np.inf
    np.fill_diagonal(D, np.inf)
    n = min(int(np.clip(m // PROSPECT_SHARE, *PROSPECT_ROWS)), m - 1)
    near = np.partition(D, n - 1, axis=1)[:, n - 1 : n] >= D
    weight, values = target.weights, target.values[:, None]
    values = values if target.is_numeric else values == np.arange(len(target.target.counts))
    votes = near @ (weight[:, None] * values) / (near @ weight)[:, None]  # the mean target of the nearest rows
    score = votes[:, -1] if votes.shape[1] <= 2 else votes.argmax(axis=1) * 2.0 + votes.max(axis=1)
    if design.group is not None:
        score = mean(*(np.bincount(design.group, x) for x in (weight * score, weight)))[design.group]
    n_strata = max(1, min(m // ROWS_PER_STRATUM, MAX_STRATA))
    _, first, unit = np.unique(design.groups(m), return_index=True, return_inverse=True)
    stratum = np.empty(m, np.int64)
    stratum[np.lexsort((keys[first][unit], np.round(score, 9)))] = np.arange(m) * n_strata // m
    return stratum * (1 + int(design.strata(m).max())) + design.strata(m)


# --- how many features ---


@dataclass(frozen=True)
class Eligibility:
    """The features that may be selected with n_features_to_select="auto": significant ones that are not redundant."""

    z: Array  # the p-values of the features, converted to standard normal deviates
    largest_p: float  # features with a larger p-value are not significant
    max_redundancy: float | None  # features more redundant with a selected feature are excluded; None excludes none

    @classmethod
    def from_p_values(cls, p: Array, largest_p: float, max_redundancy: float | None) -> Self:
        return cls(-ndtri(np.maximum(p, LEAST_P)), largest_p, max_redundancy)

    def mask(self, features: Array, redundancy: Array) -> Array:
        """Return a mask of the features that are still eligible.

        `redundancy` is the largest redundancy of each feature with a selected feature. It only grows during the
        selection, so excluded features stay excluded.
        """
        p = self.p_of_unique_share(features, redundancy)
        is_significant = (p <= self.largest_p) & (self.largest_p > 0)
        return is_significant if self.max_redundancy is None else is_significant & (redundancy <= self.max_redundancy)

    def p_of_unique_share(self, features: Array, redundancy: Array) -> Array:
        """Return the p-value of z·(1 - redundancy), the part of a feature's z that no selected feature shares."""
        return ndtr(-self.z[features] * (1.0 - redundancy))


@dataclass(frozen=True)
class LeastScores:
    """Lower limits of the scores of the significant features for one class (section 11 of method.md).

    A feature whose weight gives a lower score gets the limit as its score.
    """

    eligibility: Eligibility  # the significance of each feature for the class
    most: float  # the largest -log p of the features that are significant for the class
    share: Array  # a factor of each minimum: 1 for the features that separate this class best, smaller for others

    def of(self, features: Array, redundancy: Array) -> Array:
        """Return the lower limit of the score of each feature.

        `redundancy` is the largest redundancy of each feature with a selected one. The limit is 0 for a feature whose
        unique share, the part of its information that no selected feature contains, is not significant.
        """
        u = self.share[features] * least_relevance(self.eligibility.p_of_unique_share(features, redundancy), self.most)
        return np.where(self.eligibility.mask(features, redundancy), u, 0.0)
