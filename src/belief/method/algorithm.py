"""BELIEF (algorithm 1 of the paper), for any engine.

    describe ─► sample ─► nearest ─► for each batch: tally ─► w ± se ─► watch list
                   ▲                                   └─► joint sums ─► redundancy ─► forward selection by J
                   └──────────── not converged: more queries ◄──────────────────────────────┘

The neighbours of all batches of a sample are searched in one pass; only the tally needs the batches in order, for the
watch list. When the sample grows, earlier neighbours and sums are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

import numpy as np

from belief._utils.warnings import warn
from belief.method.arrays import Array
from belief.method.confidence import Eligibility, Null, p_values, q_values, threshold
from belief.method.copies import (
    MAX_COMPARED_ROWS,
    MIN_COPIED_SHARE,
    MIN_QUERIES,
    is_by_chance,
    log_chance_equal,
    share_of_copied_hits,
)
from belief.method.difference import Difference
from belief.method.distributions import describe_distributions
from belief.method.growing import Limits, Step, find_rivals, next_step
from belief.method.null import CHUNK, bias, looked_at, pair_weights, pull, rates, rates_by_degree, scale, sharing
from belief.method.outcome import Outcome
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.partners import MAX_QUERIES, find_partners
from belief.method.protocols import Engine, Search, Storage
from belief.method.redundancy import MEASURES, make_rule
from belief.method.redundancy.base import Evidence, Measure
from belief.method.relevance import candidate_features, relevance, sort_by_weight
from belief.method.sampling import Sample, batches, sample_quota
from belief.method.selection import Selection, forward_selection, initial_pool
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.method.univariate import univariate_p_values

EXPECTED_SELECTED = 32  # features to prepare for with n_features_to_select="auto"
LINES_AT_ONCE = 64  # selected features whose redundancy with the others is measured together
Phase = Callable[[str, str], None]  # called with the name of each phase as it begins, and a detail ("batch 2 of 4")


def belief(
    engine: Engine,
    settings: Settings,
    check: Callable[[Summary, Target], None],
    phase: Phase,
    storage: Storage | None = None,
) -> Outcome:
    """Run BELIEF on an engine.

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
        Stores the neighbours, and the sums after each batch, so that the next run can continue from them.
    """
    return Run(engine, settings, phase, storage or Storage()).execute(check)


@dataclass(frozen=True)
class Estimate:
    """The weights and the selection from the sample so far."""

    w: Array
    v: Array  # the weight of each class
    se: Array
    null: Null
    p: Array
    q: Array
    relevance: Array
    selection: Selection
    measure: Measure | None


class Run:
    """The state of one run."""

    def __init__(self, engine: Engine, settings: Settings, phase: Phase, storage: Storage) -> None:
        self.engine, self.settings, self.storage = engine, settings, storage
        self.timings: dict[str, float] = {}
        self.timed = partial(_timed, self.timings, phase)
        self.measure = MEASURES.get(settings.redundancy or "")
        self.rule = make_rule(settings.redundancy, settings.theta)
        self.neighbours = Neighbours.zero(0, 1, 1)
        self.pairs: list[Pairs] = []  # one entry per batch
        self.tally: Tally | None = None  # the sums so far
        self.watch_lists: list[Array] = []  # the features with the largest w after each batch

    def execute(self, check: Callable[[Summary, Target], None]) -> Outcome:
        self.describe(check)
        step = self.first_step()
        while step.reason is None:
            self.search(step.size)
            self.compute_sums()
            self.estimate = self.select()
            step = self.next_step(self.estimate)
        self.warn_of_copies()
        return self.make_outcome(self.estimate, step.reason)

    def describe(self, check: Callable[[Summary, Target], None]) -> None:
        engine = self.engine
        with self.timed("describe"):
            self.summary = engine.describe()
        settings = self.settings = engine.target.adapt(self.settings)
        check(self.summary, engine.target)
        self.difference = Difference.from_summary(self.summary, engine.discrete, settings.scale)
        self.seed = self.storage.begin(settings, self.summary, engine.target, engine.fingerprint)
        self.target = engine.merge_copies(self.seed) if settings.copies == "merge" else engine.target
        self.p_univariate = univariate_p_values(self.summary, self.target.counts / engine.target.counts)
        self.search_settings = make_search(settings, self.target, self.summary.m, self.seed)
        self.n_watch = settings.watch_list_length(settings.resolve_n_features(engine.n_features))

    # --- the sample, and how it grows ---

    def first_step(self) -> Step:
        """Draw the largest sample that may be needed; the queries are the first rows of it."""
        m, sampling = self.target.m, self.settings.sampling
        s = self.settings.resolve_sample_size(m)
        self.limits = Limits.from_shape(m, self.engine.n_features) if self.settings.grows else Limits(s, s)
        largest = max(s, self.limits.same, self.limits.loss)
        with self.timed("sample"):
            quota = sample_quota(sampling, largest, self.target.counts)
            self.sample = self.engine.sample(quota, self.seed).in_order(sampling, largest)
        return Step(s, None)

    def next_step(self, estimate: Estimate) -> Step:
        """Decide whether to stop or to continue with more queries."""
        s, m, selection = len(self.neighbours.row), self.target.m, estimate.selection
        if s >= m or not self.settings.grows:
            return Step(s, "all rows" if s >= m else "fixed")
        with self.timed("redundancy", "convergence"):
            w = estimate.null.left_of(estimate.w)
            live = selection.selected[~self.difference.constant[selection.selected]]
            lowest = float(selection.scores[len(live) - 1] * w.max(initial=0.0)) if len(live) else 0.0
            rivals = find_rivals(np.where(self.difference.constant, -np.inf, w), estimate.se, live, lowest)
            R = estimate.measure.matrix(rivals) if estimate.measure is not None else np.eye(len(rivals))
            return next_step(
                w[rivals],
                estimate.se[rivals],
                R,
                np.arange(len(live)),
                self.rule,
                s,
                m,
                self.limits,
                jump=self.engine.rereads_data,
                seed=self.seed,
            )

    def search(self, size: int) -> None:
        """Find the neighbours of the first `size` sampled rows that are not known yet, and make batches of pairs."""
        engine, known = self.engine, len(self.neighbours.row)
        with self.timed("neighbours", f"of {size:,} rows" if known else ""):
            saved = self.storage.load_neighbours(self.search_settings, self.summary.m)
            if saved is not None and len(saved.row) > known:
                self.neighbours = Neighbours(*(x[:size] for x in vars(saved).values()))
            if len(self.neighbours.row) < size:
                queries = self.sample.part(slice(len(self.neighbours.row), size))
                found = engine.nearest(queries, self.difference, self.search_settings)
                self.neighbours = self.neighbours.append(found) if len(self.neighbours.row) else found
                self.storage.save_neighbours(self.neighbours)
            parts = batches(size - known, self.settings.batch_size)
            parts = [slice(known + part.start, known + part.stop) for part in parts]
            new_pairs = [make_pairs(self.sample, self.neighbours, part, engine.target) for part in parts]
            engine.prefetch(new_pairs)
        self.pairs += new_pairs
        self.all_pairs = Pairs.concat(self.pairs)

    # --- sums and estimates ---

    def compute_sums(self) -> None:
        """Add up the batches that are not in the storage, and make the watch list after each."""
        saved = self.storage.load_sums(self.pairs, self.engine.n_features)
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
            self.watch_lists.append(self._heaviest(self._compute_weights()[0], self.n_watch))
            self.storage.save_sums(self.tally, self.watch_lists)

    def _compute_weights(self) -> tuple[Array, Array]:
        """Return w, and v, the weight of each class in it."""
        assert self.tally is not None
        v = self.engine.target.weights(self.settings.class_weight, self.tally)
        return relevance(self.tally, v), v

    def _heaviest(self, w: Array, n: int) -> Array:
        """Return the n non-constant features with the largest w."""
        assert self.tally is not None
        return sort_by_weight(w, candidate_features(self.tally, self.difference.constant, n))[:n]

    def select(self) -> Estimate:
        engine, settings, tally, constant = self.engine, self.settings, self.tally, self.difference.constant
        assert tally is not None
        w, v = self._compute_weights()
        se = engine.target.error(tally, v, w)
        with self.timed("confidence"):
            null = self._null(w, se, v)
            z = null.z(w)
            p, q = np.ones_like(w), np.ones_like(w)
            p[~constant] = p_values(z[~constant])
            q[~constant] = q_values(p[~constant])
        with self.timed("redundancy"):
            n_select = settings.resolve_n_features(engine.n_features)
            order = sort_by_weight(w, candidate_features(tally, constant, n_select + self.n_watch))
            eligibility = None
            if settings.n_features_to_select == "auto":
                eligibility = Eligibility(z, threshold(p[~constant]), self.rule.max_redundancy)
                order = eligibility.filter(order)
                n_select = len(order)
            pool = initial_pool(order, min(n_select, EXPECTED_SELECTED), engine.columns_at_once)
            measure = self._make_measure(pool)
            scores = self.rule.normalise(null.left_of(w) if self.rule.above_null else w, constant)
            if measure is None:
                selection = Selection(order[:n_select], scores[order[:n_select]])
            else:
                on_the_way = eligibility if self.rule.max_redundancy is not None else None
                selection = forward_selection(scores, w, order, n_select, measure, self.rule, on_the_way)
            if eligibility is None:
                selection = selection.append_constants(constant, n_select)
        return Estimate(w, v, se, null, p, q, scores, selection, measure)

    def _make_measure(self, pool: Array) -> Measure | None:
        if self.measure is None:
            return None
        how = self.difference, self.measure.collisions(self.settings.kappa)
        joint, joint_floor = partial(self.engine.joint, *how), partial(self.engine.joint_floor, *how)
        assert self.tally is not None
        n_features = self.engine.n_features
        evidence = Evidence(n_features, self.tally, self.pairs, self.all_pairs, self.watch_lists, joint, joint_floor)
        return self.measure(evidence, pool)

    def _null(self, w: Array, se: Array, v: Array) -> Null:
        """The weights that noise would have, from the pairs, their distances, and a few of the sampled rows."""
        assert self.tally is not None
        size = self.difference.typical
        grows, per_class = self._rates(size), v if v.ndim == 1 else v.mean(axis=1)
        shared = sharing(self.all_pairs, pair_weights(self.all_pairs, self.tally, v))
        n_rows, n_lags = looked_at(len(self.all_pairs), self.engine.n_features, shared)
        few = self.sample.row[: min(n_rows, len(self.neighbours.row))]
        rate = None if grows is None else float(grows.mean())
        found = pull(partial(self.engine.rows, few), self.difference, rate, n_lags)
        lifted = np.zeros_like(w) if grows is None else bias(grows, per_class, found.slope) * size
        # where all queries say the same, one more might have said the opposite
        se = np.where((se == 0) & (w > 0), 2.0 * w / (len(self.neighbours.row) + 1), se)
        return Null.of(w, lifted, scale(se, shared, found.single, lifted), self.p_univariate)

    def _rates(self, size: float) -> Array | None:
        """How fast the neighbours of either kind grow in number, with d² in units of size².

        Not known of classes that were pooled, nor of use where features are not of a size.
        """
        d2, targets = self.neighbours.d2 / size**2, self.sample.target[: len(self.neighbours.row)]
        if self.difference.scale == "none":
            return None
        if self.pairs[0].weight is not None:
            return rates_by_degree(d2, np.concatenate([x.weight for x in self.pairs]))
        return rates(d2, targets) if self.search_settings.n_groups > 1 else None

    # --- the outcome ---

    def make_outcome(self, estimate: Estimate, reason: str) -> Outcome:
        target, tally = self.engine.target, self.tally
        assert tally is not None
        selected = estimate.selection.selected
        watched = self._watched(estimate.w, len(selected))
        partner, partner_share = self._find_partners(estimate)
        queries = self.sample.part(slice(0, len(self.neighbours.row)))
        with self.timed("explain", "distributions"):
            distributions = describe_distributions(
                selected, self.engine.rows, queries, self.target, self.summary, self.engine.discrete
            )
        return Outcome(
            weights=estimate.w,
            se=estimate.se,
            noise=estimate.null.mean,
            noise_spread=estimate.null.spread,
            p_value=estimate.p,
            q_value=estimate.q,
            p_univariate=self.p_univariate,
            selected=selected,
            scores=estimate.selection.scores,
            relevance=estimate.relevance,
            marginal=tally.rates,
            n_pairs=tally.n_pairs,
            redundancy=self._redundancy_with_selected(estimate, selected),
            watched=watched,
            watched_redundancy=self._redundancy_with_selected(estimate, watched),
            history=np.array(list(zip_longest(*self.watch_lists, fillvalue=-1)), np.int64).T,
            constant=np.flatnonzero(self.difference.constant),
            task=target.task,
            classes=target.names,
            priors=target.P,
            quantiles=target.quantiles,
            n_rows=self.summary.m,
            sample_size=len(self.neighbours.row),
            n_neighbors=self.search_settings.size,
            partner=partner,
            partner_share=partner_share,
            stop_reason=reason,
            seed=self.seed,
            distributions=distributions,
            settings=self.settings.as_dict(),
            timings=self.timings,
        )

    def _watched(self, w: Array, n_selected: int) -> Array:
        """Return the last watch list in use; if the measure uses none, the features with the largest w."""
        if self.measure is not None and self.measure.needs_collision_rates:
            return self.watch_lists[-2] if len(self.pairs) > 1 else self.watch_lists[-1]
        return self._heaviest(w, self.settings.watch_list_length(n_selected))

    def _redundancy_with_selected(self, estimate: Estimate, features: Array) -> Array:
        """Return the redundancy of features (columns) with the selected ones (lines); 0 where it is not measured."""
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

    def _find_partners(self, estimate: Estimate) -> tuple[Array, Array]:
        """Return the interaction partner of each selected feature, and the share of w that depends on it.

        Partners need the neighbours of each class; without them, all are -1.
        """
        selected = estimate.selection.selected
        partner, share = np.full(len(selected), -1), np.zeros(len(selected))
        live = np.flatnonzero(~self.difference.constant[selected])
        if self.search_settings.n_groups > 1 and min(len(live), len(self.neighbours.row)) >= 2:
            first = slice(0, min(len(self.neighbours.row), MAX_QUERIES))
            neighbours = Neighbours(*(x[first] for x in vars(self.neighbours).values()))
            assert self.tally is not None
            with self.timed("explain", "interactions"):
                found = find_partners(
                    selected[live],
                    self.engine.rows,
                    self.difference,
                    self.sample.part(first),
                    neighbours,
                    self.tally,
                    estimate.v,
                    estimate.w,
                )
            live = live[: len(found[0])]
            partner[live], share[live] = found
        return partner, share

    def warn_of_copies(self) -> None:
        """Warn if the nearest rows of a class are mostly copies of the row itself."""
        n = len(self.neighbours.row)
        if self.search_settings.n_groups == 1 or self.settings.copies == "merge" or n < 2:
            return
        classes = self.sample.target[:n]
        copied = share_of_copied_hits(self.neighbours.d2, classes)
        for c in np.flatnonzero(copied >= MIN_COPIED_SHARE)[:1]:
            rows = self.sample.row[:n][classes == c][:MAX_COMPARED_ROWS]
            if len(rows) < MIN_QUERIES or is_by_chance(self._log_chance_equal(rows), int(self.target.counts[c])):
                continue
            name = self.target.names.tolist()[c]
            warn(
                f"{100 * copied[c]:.0f} % of the nearest rows of class {name!r} are copies of the row itself, so the"
                " weights and p-values are unreliable. If rows were duplicated to oversample a class, set"
                " copies='merge'; if the columns merely have few values, ignore this warning."
            )

    def _log_chance_equal(self, rows: Array) -> float:
        F = self.engine.n_features
        chunks = (np.arange(a, min(a + CHUNK, F)) for a in range(0, F, CHUNK))
        return sum(log_chance_equal(self.engine.rows(rows, columns)) for columns in chunks)


def make_search(settings: Settings, target: Target, m: int, seed: int) -> Search:
    """Return the neighbours to search for: k of each class, or k·|C| in all. Warn if there are fewer rows than that."""
    counts = target.counts
    k = settings.resolve_n_neighbors(int(counts.min()))
    is_per_class = settings.neighborhood == "per_class"
    available = int(counts.min()) if is_per_class else m - 1
    size = k if is_per_class else k * len(counts)
    if available < size:
        wanted, reason = f"{size} neighbours in all", f"each row has only {available} other rows"
        if is_per_class:
            wanted, reason = f"{size} neighbours of each class", f"the smallest class has only {available} rows"
        warn(f"n_neighbors={k} means {wanted}, but {reason}. All of them are used.")
    largest = int(counts.max()) if is_per_class else m
    return Search(min(size, largest), len(counts) if is_per_class else 1, seed)


def make_pairs(sample: Sample, neighbours: Neighbours, part: slice, target: Target) -> Pairs:
    """Return the pairs (query, neighbour) of one batch, in the order of the sample."""
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
