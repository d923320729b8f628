"""BELIEF (algorithm 1 of the paper), for any engine.

    describe ─► sample ─► significance, on a probe of the rows ─► the metric: features that define the distances
                   │                                                                   ▼
                   └─► nearest ─► for each batch: tally ─► w ± se ─► watch list
                          ▲                          └─► joint sums ─► redundancy ─► forward selection by J
                          └──────────── not converged: more queries ◄──────────────────────────────┘

One pass finds the neighbours of all queries of a sample. Only the tally works batch by batch, because the watch list is
updated after each batch. When the sample grows, the neighbours and sums found before are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from belief._utils.warnings import warn
from belief.method.arrays import Array
from belief.method.copies import (
    EXPECTED_COPIES,
    MAX_COMPARED_ROWS,
    MIN_COPIED_SHARE,
    MIN_QUERIES,
    log_chance_equal,
    share_of_copied_hits,
)
from belief.method.design import Design
from belief.method.difference import Difference
from belief.method.distributions import SampledValues
from belief.method.folds import (
    Stability,
    deal,
    fold_errors,
    half_samples,
    interchangeable_sets,
    nogueira_index,
    separation_errors,
)
from belief.method.growing import Limits, Step, find_rivals, next_step
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.partners import MAX_QUERIES, PartnerSearch
from belief.method.probe import (
    MIN_CLASS,
    LocalSearch,
    Probe,
    choose_ranked_size,
    choose_size,
    count_copies,
    make_probe,
)
from belief.method.protocols import Engine, Search, Storage
from belief.method.redundancy import MEASURES, make_rule
from belief.method.redundancy.base import Evidence, Measure
from belief.method.relevance import (
    candidate_features,
    class_variances,
    evidence_of,
    mean,
    relevance,
    relevance_by_class,
    relevance_by_evidence,
    round_for_ties,
    separation_by_class,
    sort_by_weight,
)
from belief.method.sampling import Sample, batches, sample_quota
from belief.method.selection import FEW_FEATURES, Selection, forward_selection, initial_pool, select_per_class
from belief.method.settings import MAX_AUTO_NEIGHBOURS, Settings
from belief.method.significance import (
    Eligibility,
    LeastScores,
    check_univariate,
    combine,
    find_significant,
    no_tests,
    q_values,
    sampled_p_values,
)
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.method.univariate import missingness_p_values, p_values_by_class, univariate_p_values

MISSINGNESS_LEVEL = 0.001  # false discovery rate of the test whether missing values depend on the class
MIN_COPIES = 0.005  # copies are merged if they are at least this share of the rows of the probe
SECOND_CHOICE = 0.1  # factor of the relevance for a class if a feature is not significant for it, or better for another
CHUNK = 2048  # number of features compared at a time
EXPECTED_SELECTED = 32  # the initial pool of features is sized for at most this many selected features
LINES_AT_ONCE = 64  # number of selected features whose redundancy with the others is measured together
TOO_FEW_ROWS = (
    "Interactions are not tested for significance, because there are too few rows. The test needs two classes with at"
    f" least {MIN_CLASS} rows each, or {2 * MIN_CLASS} rows with a numeric target; with groups, these rows need"
    " neighbours in other groups. All p-values come from univariate tests."
)
Phase = Callable[[str, str], None]  # called with the name of each phase as it begins, and a detail ("batch 2 of 4")


def belief(
    engine: Engine,
    settings: Settings,
    check: Callable[[Summary, Target], None],
    phase: Phase,
    storage: Storage | None = None,
    given: Callable[[], Array] = lambda: np.zeros(0, np.int64),
) -> dict[str, Any]:
    """Run BELIEF on an engine; return the fields of `belief.Result`, except the feature names, as a dictionary.

    In place of the fields that only explanations need, the dictionary has the values that they are computed from:
    `partners` for the interaction partners, and `sampled` for the distributions of the selected features.

    Parameters
    ----------
    engine : Engine
        Access to the data.
    settings : Settings
        The settings of the run.
    check : callable
        Called with the summary and the target; raises an error, in the caller's terms, if the data cannot be used.
    phase : callable
        Called as each phase begins.
    storage : Storage, optional
        Stores the neighbours, and the sums after each batch, so that an interrupted run can be continued.
    given : callable
        Returns the given features, which are selected first. It is called after the data has been described.
    """
    return Run(engine, settings, phase, storage or Storage(), given).execute(check)


@dataclass(frozen=True)
class Estimate:
    """The weights of all features and the selection, as computed from the queries sampled so far."""

    w: Array
    v: Array  # the weight of each class
    se: Array
    null_weight: Array  # the weight that an irrelevant feature has because it takes part in the search
    relevance: Array
    selection: Selection
    measure: Measure | None
    selected_for: Array  # the class for which each feature was selected, -1 for given ones; empty without per_class


@dataclass(frozen=True)
class Candidates:
    """The features that can be selected, best first, and the quantities on which the selection depends."""

    order: Array
    n_select: int
    w: Array
    relevance: Array
    of_class: Array  # the relevance for each class
    least: list[LeastScores]  # the least score for each class; empty if there are none
    eligibility: Eligibility | None


class Run:
    """One run of BELIEF: its settings, its intermediate results, and the steps of the algorithm as methods."""

    def __init__(
        self, engine: Engine, settings: Settings, phase: Phase, storage: Storage, find_given: Callable[[], Array]
    ) -> None:
        self.engine, self.settings, self.storage, self.find_given = engine, settings, storage, find_given
        self.timings: dict[str, float] = {}
        self.timed = partial(_timed, self.timings, phase)
        self.measure = MEASURES.get(settings.redundancy or "")
        self.rule = make_rule(settings.redundancy, settings.theta)
        self.neighbours = Neighbours.zero(0, 1, 1)
        self.pairs: list[Pairs] = []  # one entry per batch
        self.tally: Tally | None = None  # the sums so far
        self.folds: list[Tally] = []  # the sums of folds of the queries
        self.watch_lists: list[Array] = []  # the features with the largest w after each batch

    def execute(self, check: Callable[[Summary, Target], None]) -> dict[str, Any]:
        self.describe(check)
        step = self.first_step()
        self.test_significance()
        while step.reason is None:
            self.search(step.size)
            self.compute_sums()
            self.estimate = self.select()
            step = self.next_step(self.estimate)
        self.warn_of_copies()
        return self.collect_results(self.estimate, step.reason)

    def describe(self, check: Callable[[Summary, Target], None]) -> None:
        engine = self.engine
        with self.timed("describe"):
            self.summary = engine.describe()
        settings = self.settings = engine.target.adapt(self.settings)
        check(self.summary, engine.target)
        if settings.per_class is not None and not len(engine.target.names):
            raise ValueError(
                f"per_class={settings.per_class} needs a target with classes, but the target is numeric. Pass"
                " n_features_to_select instead."
            )
        self.given = self.find_given()
        self.difference = Difference.from_summary(self.summary, engine.discrete, settings.scale)
        of_data = self.summary, engine.target, lambda: engine.fingerprint() + self.given.tobytes()
        self.seed = self.storage.begin(settings, *of_data)
        self.target = engine.merge_copies(self.seed) if settings.copies == "merge" else engine.target
        self.constant = np.flatnonzero(self.difference.constant)
        self.given_live = self.given[~np.isin(self.given, self.constant)]
        self.metric = self.difference
        self.search_settings = make_search(settings, self.target, self.summary.m, self.seed)
        self.n_watch = settings.watch_list_length(settings.resolve_n_features(engine.n_features))

    # --- the sample ---

    def first_step(self) -> Step:
        """Draw as many rows as the sample may grow to, and return the first step: the initial number of queries."""
        m, sampling = self.target.m, self.settings.sampling
        s = self.settings.resolve_sample_size(m)
        self.limits = Limits.from_shape(m, self.engine.n_features) if self.settings.grows else Limits(s, s)
        self.sample = self.draw(sampling, max(s, self.limits.same, self.limits.loss))
        return Step(s, None)

    def draw(self, sampling: str, size: int) -> Sample:
        with self.timed("sample"):
            quota = sample_quota(sampling, size, self.target.counts)
            return self.engine.sample(quota, self.seed).in_order(sampling, size)

    # --- significance, and the metric ---

    def test_significance(self) -> None:
        """Test the significance of all features, and choose the features that define the distances.

        The tests use a small sample of the rows, the probe.
        """
        settings, constant = self.settings, self.difference.constant
        if settings.significance is None:
            self.significance = no_tests(self._univariate_p_values())
            return
        sample = self._sample_of_probe()
        if settings.copies == "auto" and self._merge_copies(sample):
            self.first_step()
            sample = self._sample_of_probe()
        with self.timed("significance"):
            engine, search = self.engine, self.engine.local_search()
            k, n_groups = self.search_settings.size, self.search_settings.n_groups
            if n_groups == 1:  # small tables with a numeric target have more neighbours in the full search
                k = min(MAX_AUTO_NEIGHBOURS, k // max(len(self.target.counts), 1))
            design = self._design_of(sample)
            of_data = self.summary, engine.discrete, self.target
            probe = make_probe(sample, engine.rows, *of_data, k, self.seed, search, design, engine.weigh)
            p_univariate = self._test_features(probe, search)
            if settings.per_class is not None:
                self.p_by_class = self._test_classes(probe, p_univariate, search)
            how = settings.class_weight, settings.max_rounds, self.given, search
            self.significance = find_significant(probe, p_univariate, constant, *how)
        self.metric = self.difference.restrict(self.significance.metric)
        self._warn_of_missingness()
        if not probe.k:
            warn(TOO_FEW_ROWS)

    def _test_features(self, probe: Probe, search: LocalSearch) -> Array:
        """Return the univariate p-value of each feature.

        With classes, it is computed from all rows, and checked by shuffles on the probe, a small sample of the rows.
        With a numeric target or a study design, it is computed from sampled rows.
        """
        engine, is_numeric = self.engine, probe.target.is_numeric
        if engine.design.exists:
            return self._test_design(self._sample_of_tests(probe.sample, is_numeric), is_numeric, search)
        p = self._univariate_p_values()
        if is_numeric and len((sample := self._sample_of_tests(probe.sample, is_numeric)).row) > len(probe.sample.row):
            p = sampled_p_values(sample, True, engine.rows, engine.discrete, self.difference.constant, search)
        return check_univariate(probe, engine.rows, p, engine.discrete, search)

    def _sample_of_tests(self, sample: Sample, is_numeric: bool) -> Sample:
        """Return the rows for univariate tests by ranks or shuffles: `sample`, or a larger sample."""
        size = min(self.target.m, choose_ranked_size(self.engine.n_features))
        return self.draw("random" if is_numeric else "balanced", size) if size > len(sample.row) else sample

    def _test_design(self, sample: Sample, is_numeric: bool, search: LocalSearch) -> Array:
        of_data = self.engine.rows, self.engine.discrete, self.difference.constant
        return sampled_p_values(sample, is_numeric, *of_data, search, self._design_of(sample), self.seed)

    def _design_of(self, sample: Sample) -> Design:
        """Return the study design of sampled rows, with weights divided by the probability of being in the sample."""
        design = self.engine.design.take(sample.row)
        return design if design.weight is None else replace(design, weight=self.engine.weigh(sample.row, sample.row))

    def _test_classes(self, probe: Probe, p_univariate: Array, search: LocalSearch) -> Array:
        """Return the univariate p-values of each class against all others, (classes, features).

        If a p-value cannot be computed, use the p-value of the test of all classes.
        """
        n, live = len(self.engine.target.names), ~self.difference.constant
        if self.engine.design.exists:
            sample = self._sample_of_tests(probe.sample, is_numeric=False)
            classes = (replace(sample, target=(sample.target == c).astype(np.int32)) for c in range(n))
            return np.array([self._test_design(each, False, search) for each in classes])
        out = p_values_by_class(self.summary, n)
        out = np.where(np.isnan(out), p_univariate, out)
        for c, p in enumerate(out):
            small = np.flatnonzero(live)[q_values(np.nan_to_num(p[live], nan=1.0)) < self.settings.alpha]
            one = replace(probe, sample=replace(probe.sample, target=(probe.sample.target == c).astype(np.int32)))
            of_small = np.ones(len(p))
            of_small[small] = p[small]
            p[small] = check_univariate(one, self.engine.rows, of_small, self.engine.discrete, search)[small]
        return out

    def _univariate_p_values(self) -> Array:
        """Return the univariate p-values from the sums over all rows.

        These sums count all rows equally, so all p-values are NaN with a study design or merged copies.
        """
        p = univariate_p_values(self.summary)
        is_whole = self.target.m == self.summary.m and not self.engine.design.exists
        return p if is_whole else np.full_like(p, np.nan)

    def _sample_of_probe(self) -> Sample:
        """Return the rows of the probe, the sample for significance tests, with equal numbers per class if possible."""
        size = min(self.target.m, choose_size(self.engine.n_features))
        sampling = "random" if len(self.target.names) == 0 else "balanced"
        if sampling == self.settings.sampling and len(self.sample.row) >= size:
            return self.sample.part(slice(0, size))
        return self.draw(sampling, size)

    def _merge_copies(self, sample: Sample) -> bool:
        """Merge identical rows with the same target if `sample` has copies that chance cannot explain.

        Return True if they were merged.
        """
        features = np.flatnonzero(~self.difference.constant)
        with self.timed("significance", "copies"):
            n_copies = count_copies(sample.row, sample.target, self.engine.rows, features)
            if n_copies < max(2, MIN_COPIES * len(sample.row)):
                return False
            before, self.target = self.target.m, self.engine.merge_copies(self.seed)
            if self.target.m == before:  # the copies differ in group, stratum or weight
                return False
        warn(
            f"{before - self.target.m:,} of {before:,} rows are copies of another row with the same target, so"
            " identical rows count once. Set copies='keep' to count every row."
        )
        self.search_settings = make_search(self.settings, self.target, self.summary.m, self.seed)
        return True

    def _warn_of_missingness(self) -> None:
        p = missingness_p_values(self.summary, self.engine.target.counts)
        known = np.flatnonzero(~np.isnan(p))
        differs = known[q_values(p[known]) < MISSINGNESS_LEVEL] if len(known) else known
        if len(differs):
            warn(
                f"The share of missing values differs between classes in {len(differs):,} features; the first is"
                f" feature {differs[0]}. The tests ignore missing values. If missingness itself may matter, add columns"
                " that mark missing values."
            )

    # --- neighbours, sums and estimates ---

    def search(self, size: int) -> None:
        """Find the neighbours of the first `size` sampled rows, and divide the new pairs into batches.

        Neighbours that are known or stored are not searched again.
        """
        engine, known = self.engine, len(self.neighbours.row)
        with self.timed("neighbours", f"of {size:,} rows" if known else ""):
            saved = self.storage.load_neighbours(self.search_settings, self.summary.m)
            if saved is not None and len(saved.row) > known:
                self.neighbours = Neighbours(*(x[:size] for x in vars(saved).values()))
            if len(self.neighbours.row) < size:
                queries = self.sample.part(slice(len(self.neighbours.row), size))
                found = engine.nearest(queries, self.metric, self.search_settings)
                self.neighbours = self.neighbours.append(found) if len(self.neighbours.row) else found
                self.storage.save_neighbours(self.neighbours)
            parts = batches(size - known, self.settings.batch_size)
            parts = [slice(known + part.start, known + part.stop) for part in parts]
            new_pairs = [make_pairs(self.sample, self.neighbours, part, engine.target) for part in parts]
            self.pairs += new_pairs
            if engine.design.is_drawn_by_weight:
                # the weights of all queries depend on the size of the sample
                self.tally, self.watch_lists, new_pairs = None, [], self.pairs
            engine.prefetch(new_pairs)
        self.all_pairs = Pairs.concat(self.pairs)

    def compute_sums(self) -> None:
        """Add up the differences of each batch of pairs; after each, list the features with the largest w so far.

        Sums and lists that are stored are not computed again.
        """
        # if weights depend on the size of the sample, the sums of a smaller sample cannot be used
        is_stored = not (self.settings.grows and self.engine.design.is_drawn_by_weight)
        saved = self.storage.load_sums(self.pairs, self.engine.n_features) if is_stored else None
        if saved is not None and len(self.watch_lists) < len(saved[1]) <= len(self.pairs):
            self.tally, self.watch_lists = saved
        if len(self.watch_lists) == len(self.pairs):
            return
        measure = self.measure
        needs_rates = measure is not None and measure.needs_collision_rates
        collisions = measure.collisions(self.settings.kappa) if measure is not None and needs_rates else None
        tallies = self.engine.tally(self.pairs[len(self.watch_lists) :], self.difference, collisions)
        for t in range(len(self.watch_lists), len(self.pairs)):
            with self.timed("tally", f"batch {t + 1} of {len(self.pairs)}"):
                tally = next(tallies)
                self.tally = tally if self.tally is None else self.tally.merge(tally)
            heaviest = self._heaviest(self._compute_weights()[0], self.n_watch)
            if len(self.given_live):
                heaviest = np.r_[heaviest, np.setdiff1d(self.given_live, heaviest)]
            self.watch_lists.append(heaviest)
            if is_stored:
                self.storage.save_sums(self.tally, self.watch_lists)

    def _compute_weights(self) -> tuple[Array, Array]:
        """Return the weights w of the features, and the weights v of the classes."""
        assert self.tally is not None
        v = self.engine.target.weights(self.settings.class_weight, self.tally)
        return relevance(self.tally, v), v

    def _heaviest(self, w: Array, n: int) -> Array:
        """Return the n non-constant features with the largest w."""
        assert self.tally is not None
        return sort_by_weight(w, candidate_features(self.tally, self.difference.constant, n))[:n]

    def select(self) -> Estimate:
        tally = self.tally
        assert tally is not None
        w, v = self._compute_weights()
        se = fold_errors(self._folds(), v) if self._needs_folds else self.engine.target.error(tally, v, w)
        # irrelevant features that define the distances have a weight above 0, because neighbours differ less in them
        null_weight, metric = np.zeros(self.engine.n_features), self.significance.metric
        if self.significance.bias:
            null_weight[metric] = self.significance.bias * mean(tally.total.sum(axis=0), tally.present)[metric]
        with self.timed("redundancy"):
            candidates = self._rank_features(tally, w, null_weight)
            expected = min(candidates.n_select, EXPECTED_SELECTED)
            pool = initial_pool(candidates.order, expected, self.engine.columns_at_once)
            if self.settings.per_class is not None:
                best = np.argsort(-candidates.of_class, axis=1)[:, : 2 * self.settings.per_class]
                pool = np.intersect1d(best, candidates.order)
            measure = None
            if self.measure is not None:
                how = self.difference, self.measure.collisions(self.settings.kappa)
                joint, joint_floor = partial(self.engine.joint, *how), partial(self.engine.joint_floor, *how)
                known = tally, self.pairs, self.all_pairs, self.watch_lists
                evidence = Evidence(self.engine.n_features, *known, joint, joint_floor)
                measure = self.measure(evidence, np.r_[self.given_live, pool])
            selection, classes = self._select(candidates, measure)
            given_constants = np.unique(self.given[self.difference.constant[self.given]])
            selection = selection.insert_constants(given_constants, len(self.given_live))
            if candidates.eligibility is None and self.settings.per_class is None:
                rest = self.constant[~np.isin(self.constant, self.given)]
                selection = selection.append_constants(rest, len(self.given) + candidates.n_select)
        return Estimate(w, v, se, null_weight, candidates.relevance, selection, measure, classes)

    def _rank_features(self, tally: Tally, w: Array, null_weight: Array) -> Candidates:
        """Return the features that can be selected, their relevance, and how many to select."""
        settings, constant = self.settings, self.difference.constant
        n_select, eligibility = settings.resolve_n_features(self.engine.n_features), None
        if settings.significance is None:
            scores = self.rule.normalise(w, constant)
            order = sort_by_weight(w, candidate_features(tally, constant, n_select + self.n_watch))
        else:
            p, is_significant = self.significance.p_value, self.significance.q_value < settings.alpha
            scores = relevance_by_evidence(w - null_weight, p, is_significant, constant)
            order = candidate_features(tally, constant, n_select + self.n_watch)
            order = sort_by_weight(scores, np.union1d(order, np.flatnonzero(is_significant)))
        if settings.n_features_to_select == "auto":
            largest_p = settings.alpha * float(is_significant.sum()) / max(float((~constant).sum()), 1.0)
            eligibility = Eligibility.from_p_values(p, largest_p, self.rule.max_redundancy)
            eligible = order[eligibility.mask(order, np.zeros(len(order)))]
            if not len(self.given) and not len(eligible):
                warn("No feature is significant. The one with the largest weight is selected.")
                eligible = order[:1]
            order, n_select = eligible, len(eligible)
        order = order[~np.isin(order, self.given_live)]
        of_class, least = scores[None], list[LeastScores]()
        if settings.per_class is not None:
            of_class, least = self._relevance_by_class(separation_by_class(tally) - null_weight)
        return Candidates(order, n_select, w, scores, of_class, least, eligibility)

    def _relevance_by_class(self, excess: Array) -> tuple[Array, list[LeastScores]]:
        """Return the relevance of each feature for each class, (classes, features), and lower limits of the scores.

        The relevance for a class is reduced if the feature is not significant for it, and if the feature separates
        another class better. `excess` is the separation of each class above the null weight.
        """
        constant, out, found = self.difference.constant, np.zeros_like(excess), np.zeros(excess.shape, bool)
        p = np.ones_like(excess)
        if self.settings.significance is None:
            out[:] = [self.rule.normalise(x, constant) for x in excess]
        else:
            for c, (x, p_univariate) in enumerate(zip(excess, self.p_by_class, strict=True)):
                p[c] = combine(self.significance.p_neighbours, p_univariate)
                found[c, ~constant] = q_values(p[c, ~constant]) < self.settings.alpha
                out[c] = relevance_by_evidence(x, p[c], found[c], constant)
                out[c, ~found[c]] *= SECOND_CHOICE
        best = np.lexsort((round_for_ties(excess), found), axis=0)[-1]
        share = np.where(best == np.arange(len(excess))[:, None], 1.0, SECOND_CHOICE)
        least: list[LeastScores] = []
        limit, level = self.settings.alpha / max(float((~constant).sum()), 1.0), self.rule.max_redundancy
        if level is not None and self.settings.significance is not None:
            for found_c, p_c, share_c in zip(found, p, share, strict=True):
                eligibility = Eligibility.from_p_values(p_c, limit * float(found_c.sum()), level)
                least.append(LeastScores(eligibility, float(evidence_of(p_c[found_c]).max(initial=0.0)), share_c))
        return share * out, least

    def _select(
        self, candidates: Candidates, measure: Measure | None, at_once: int = FEW_FEATURES
    ) -> tuple[Selection, Array]:
        """Return the selection, and the class for which each feature was selected (empty without `per_class`)."""
        x, given, classes = candidates, self.given_live, np.zeros(0, np.int64)
        if measure is None:
            order = np.r_[given, x.order[: x.n_select]]
            return Selection(order, x.relevance[order]), classes
        if self.settings.per_class is not None:
            n = self.settings.per_class
            return select_per_class(x.of_class, x.least, x.w, x.order, n, measure, self.rule, given, at_once)
        eligibility = x.eligibility if self.rule.max_redundancy is not None else None
        how = measure, self.rule, given, eligibility, at_once
        selected = forward_selection(x.relevance, x.w, x.order, x.n_select, *how)
        return selected, classes

    def _measure_stability(self, estimate: Estimate) -> Stability | None:
        """Repeat the selection with the weights of half-samples, and return how often each feature is selected.

        A half-sample is a random half of the queries. All half-samples use the neighbours, p-values and redundancy of
        the whole sample. Return None if the setting `stability` is 0.
        """
        n = self.settings.stability
        if not n:
            return None
        folds = self._folds()
        with self.timed("stability"):
            chosen, measure = np.zeros((n, self.engine.n_features), bool), estimate.measure
            known = 0 if measure is None else len(measure.pool)
            for line, half in zip(chosen, half_samples(folds, n, self.seed), strict=True):
                v = self.engine.target.weights(self.settings.class_weight, half)
                candidates = self._rank_features(half, relevance(half, v), estimate.null_weight)
                # half-samples need few features that are not measured yet, so measure few at a time
                n_new = 0 if measure is None else len(measure.pool) - known
                at_once = max(1, self.engine.columns_at_once, min(n_new, FEW_FEATURES))
                line[self._select(candidates, measure, at_once)[0].selected] = True
            level, sets = self.rule.max_redundancy, []
            if measure is not None and level is not None:
                often = np.flatnonzero(chosen.any(axis=0))
                sets = interchangeable_sets(often, measure.matrix(often) >= level)
            return Stability(chosen.mean(axis=0), *nogueira_index(chosen), sets)

    @property
    def _needs_folds(self) -> bool:
        return self.engine.design.group is not None or self.engine.design.weight is not None

    def _folds(self) -> list[Tally]:
        """Divide the queries into folds, and return the sums over the pairs of each fold."""
        if self.folds and sum(x.n_pairs for x in self.folds) == len(self.all_pairs):
            return self.folds
        group = self.engine.design.group
        with self.timed("tally", "folds"):
            groups = (lambda rows: rows) if group is None else (lambda rows: group[rows])
            folds = deal(self.all_pairs, groups, self.engine.n_features, self.seed)
            self.folds = list(self.engine.tally(folds, self.difference, None))
        return self.folds

    # --- growth of the sample ---

    def next_step(self, estimate: Estimate) -> Step:
        """Decide whether to stop or to continue with more queries."""
        s, m, selection = len(self.neighbours.row), self.target.m, estimate.selection
        if s >= m or not self.settings.grows:
            return Step(s, "all rows" if s >= m else "fixed")
        with self.timed("redundancy", "convergence"):
            # features that are ranked by p-value, which is the same in a larger sample, cannot change their rank
            is_tested = self.settings.significance is not None
            may_change = self.significance.q_value < self.settings.alpha if is_tested else ~self.difference.constant
            may_change[self.given] = False
            w = np.where(may_change, estimate.w - estimate.null_weight, -np.inf)
            is_live = may_change[selection.selected]
            live = selection.selected[is_live]
            if not len(live):
                return Step(s, "converged")
            lowest = float(selection.scores[is_live][-1] * w.max(initial=0.0))
            rivals = find_rivals(w, estimate.se, live, lowest)
            R = estimate.measure.matrix(rivals) if estimate.measure is not None else np.eye(len(rivals))
            of_rivals = w[rivals], estimate.se[rivals], R, np.arange(len(live))
            jump = self.engine.rereads_data
            return next_step(*of_rivals, self.rule, s, m, self.limits, jump=jump, seed=self.seed)

    # --- the result ---

    def warn_of_copies(self) -> None:
        """Warn if many of the hits of a class are copies of the query, and chance does not explain them."""
        n, n_features = len(self.neighbours.row), self.engine.n_features
        if self.search_settings.n_groups == 1 or self.settings.copies != "keep" or n < 2:
            return
        classes = self.sample.target[:n]
        copied = share_of_copied_hits(self.neighbours.d2, classes)
        for c in np.flatnonzero(copied >= MIN_COPIED_SHARE)[:1]:
            rows = self.sample.row[:n][classes == c][:MAX_COMPARED_ROWS]
            if len(rows) < MIN_QUERIES:
                continue
            parts = (np.arange(a, min(a + CHUNK, n_features)) for a in range(0, n_features, CHUNK))
            log_chance = sum(log_chance_equal(self.engine.rows(rows, features)) for features in parts)
            if int(self.target.counts[c]) * np.exp(log_chance) >= EXPECTED_COPIES:
                continue
            name = self.target.names.tolist()[c]
            warn(
                f"{100 * copied[c]:.0f} % of the nearest neighbours within class {name!r} are copies of the row"
                " itself, so the weights and p-values are unreliable. If rows were duplicated to oversample a class,"
                " set copies='merge'. If the columns merely have few values, ignore this warning."
            )

    def collect_results(self, estimate: Estimate, reason: str) -> dict[str, Any]:
        target, tally = self.engine.target, self.tally
        assert tally is not None
        selected = estimate.selection.selected
        if self.measure is not None and self.measure.needs_collision_rates:  # the last watch list that was used
            watched = self.watch_lists[-2] if len(self.pairs) > 1 else self.watch_lists[-1]
        else:
            watched = self._heaviest(estimate.relevance, self.settings.watch_list_length(len(selected)))
        found = self.significance
        with self.timed("explain"):
            class_weights, class_errors, separations, separation_se = np.zeros((4, 0, self.engine.n_features))
            if len(target.names):
                class_weights, separations = relevance_by_class(tally), separation_by_class(tally)
                if self._needs_folds:
                    class_errors = np.array([fold_errors(self._folds(), v) for v in np.eye(len(tally.DD))])
                else:
                    class_errors = np.sqrt(class_variances(tally))
                if self._needs_folds or self.settings.per_class is not None or self.settings.stability > 0:
                    separation_se = separation_errors(self._folds())
        stability = self._measure_stability(estimate)
        partners, sampled = self._read_details(estimate)
        return {
            "weights": estimate.w,
            "se": estimate.se,
            "null_weight": estimate.null_weight,
            "p_value": found.p_value,
            "q_value": found.q_value,
            "p_neighbours": found.p_neighbours,
            "p_univariate": found.p_univariate,
            "round": found.round,
            "metric": found.metric,
            "probe": found.extent,
            "selected": selected,
            "scores": estimate.selection.scores,
            "relevance": estimate.relevance,
            "marginal": tally.rates,
            "n_pairs": tally.n_pairs,
            "redundancy": self._redundancy_with_selected(estimate, selected),
            "watched": watched,
            "watched_redundancy": self._redundancy_with_selected(estimate, watched),
            "history": np.array(list(zip_longest(*self.watch_lists, fillvalue=-1)), np.int64).T,
            "constant": self.constant,
            "given": self.given,
            "selected_for": estimate.selected_for,
            "class_weights": class_weights,
            "class_errors": class_errors,
            "separations": separations,
            "separation_errors": separation_se,
            "task": target.task,
            "classes": target.names,
            "priors": target.P,
            "quantiles": target.quantiles,
            "n_rows": self.summary.m,
            "sample_size": len(self.neighbours.row),
            "n_neighbors": self.search_settings.size,
            "partners": partners,
            "sampled": sampled,
            "stability": stability,
            "stop_reason": reason,
            "seed": self.seed,
            "settings": self.settings.as_dict(),
            "timings": self.timings,
        }

    def _redundancy_with_selected(self, estimate: Estimate, features: Array) -> Array:
        """Return the redundancy of the selected features (lines) with `features` (columns).

        It is 0 for constant features, and for pairs of features that were never measured.
        """
        selected, constant, measure = estimate.selection.selected, self.difference.constant, estimate.measure
        out = np.zeros((len(selected), len(features)))
        if measure is not None:
            live = np.flatnonzero(~constant[features])
            measure.extend(features[live])
            for i, j in enumerate(selected.tolist()):
                if not constant[j]:
                    likely = selected[i : i + LINES_AT_ONCE]
                    out[i, live] = measure.row(j, likely[~constant[likely]])[measure.column[features[live]]]
        return out

    def _read_details(self, estimate: Estimate) -> tuple[PartnerSearch | None, SampledValues]:
        """Read the values from which the partners and the distributions of the selected features are computed.

        Partners can only be found if the neighbours of each class were searched; otherwise, no feature has a partner.
        """
        selected, n, partners = estimate.selection.selected, len(self.neighbours.row), None
        live = selected[~self.difference.constant[selected]]
        if self.search_settings.n_groups > 1 and min(len(live), n) >= 2:
            first = slice(0, min(n, MAX_QUERIES))
            neighbours = Neighbours(*(x[first] for x in vars(self.neighbours).values()))
            assert self.tally is not None
            of_queries = self.sample.part(first), neighbours, self.tally, estimate.v, estimate.w
            with self.timed("explain", "interactions"):
                partners = PartnerSearch.read(live, self.engine.rows, self.difference, *of_queries)
        with self.timed("explain", "distributions"):
            of_data = self.target, self.summary, self.engine.discrete
            sampled = SampledValues.read(selected, self.engine.rows, self.sample.part(slice(0, n)), *of_data)
        return partners, sampled


def make_search(settings: Settings, target: Target, m: int, seed: int) -> Search:
    """Return the parameters of the neighbour search: k neighbours of each class, or k·|C| among all rows.

    Warn if there are not enough rows for this.
    """
    counts = target.counts
    k = settings.resolve_n_neighbors(int(counts.min()))
    is_per_class = settings.neighborhood == "per_class"
    available = int(counts.min()) if is_per_class else m - 1
    size = k if is_per_class else k * len(counts)
    if available < size:
        wanted, reason = f"{size} neighbours in all", f"each row has only {available} other rows"
        if is_per_class:
            wanted, reason = f"{size} neighbours of each class", f"the smallest class has only {available} rows"
        warn(f"n_neighbors={k} means {wanted}, but {reason}. All available rows are used.")
    largest = int(counts.max()) if is_per_class else m
    return Search(min(size, largest), len(counts) if is_per_class else 1, seed)


def make_pairs(sample: Sample, neighbours: Neighbours, part: slice, target: Target) -> Pairs:
    """Return the pairs of the queries of a batch with their neighbours, in the order of the sample.

    `part` is the slice of the sample that forms the batch.
    """
    row, row_target = neighbours.row[part], neighbours.target[part]
    exists = row >= 0
    query = np.broadcast_to(sample.row[part, None, None], row.shape)[exists]
    query_target = np.broadcast_to(sample.target[part, None, None], row.shape)[exists]
    kind, weight = target.assign_kinds(query_target, row_target[exists])
    return Pairs(query, row[exists], kind, target.n_kinds, weight, target.coupled)


@contextmanager
def _timed(timings: dict[str, float], phase: Phase, name: str, detail: str = "") -> Iterator[None]:
    phase(name, detail)
    start = time.perf_counter()
    yield
    timings[name] = timings.get(name, 0.0) + time.perf_counter() - start
