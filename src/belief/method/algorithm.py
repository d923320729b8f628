"""BELIEF (algorithm 1 of the paper), for any engine.

    describe ─► sample ─► nearest ─► for each batch: tally ─► w ± se ─► watch list
                   ▲                                   └─► joint sums ─► redundancy ─► forward selection by J
                   └──────────────── not settled: more queries ◄───────────────────────────────┘

The neighbours of all batches of a sample are searched in one pass; only the tally needs the batches in order, for the
watch list. When the sample grows, what was found is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from belief._utils.warnings import warn
from belief.method.arrays import Array
from belief.method.confidence import Eligibility, Null, p_values, q_values, threshold
from belief.method.copies import COPIED, LOOKED_AT, TOO_FEW, is_by_chance, log_equal, share_of_copied_hits
from belief.method.difference import Difference
from belief.method.distributions import FeatureDistribution, describe_distributions
from belief.method.growing import Reach, Step, next_step, rivals
from belief.method.null import CHUNK, bias, looked_at, pair_weights, pull, rates, rates_by_degree, scale, sharing
from belief.method.outcome import Outcome
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.partners import ENOUGH, Partners, partners_of
from belief.method.protocols import Engine, Notes, Search
from belief.method.redundancy import MEASURES
from belief.method.redundancy.base import Evidence, Measure
from belief.method.relevance import candidate_features, normalise, relevance, sort_by_weight
from belief.method.sampling import Sample, batches, sample_quota
from belief.method.selection import Selection, first_pool, forward_selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.method.univariate import univariate_p_values

EXPECTED = 32  # features to make ready for, where their number is to be found
Phase = Callable[[str, str], None]  # told the name of each phase as it begins, and a detail ("batch 2 of 4")


def belief(
    engine: Engine,
    settings: Settings,
    check: Callable[[Summary, Target], None],
    phase: Phase,
    notes: Notes | None = None,
) -> Outcome:
    """Run BELIEF on an engine.

    Parameters
    ----------
    check : called with the summary and the target, to refuse data that cannot be used by the names the caller knows
    phase : called as each phase begins
    notes : where the neighbours, and the sums after each batch, are noted, and found again by the next run
    """
    run = _Run(engine, settings, phase, notes or Notes())
    run.describe(check)
    step = run.first_step()
    while step.reason is None:
        run.search(step.size)
        run.weigh()
        outcome = run.select()
        step = run.next_step(outcome)
    run.warn_of_copies()
    return replace(outcome, stop_reason=step.reason, partners=run.partners(outcome), portraits=run.portraits(outcome))


class _Run:
    """One run: what is known so far."""

    def __init__(self, engine: Engine, settings: Settings, phase: Phase, notes: Notes) -> None:
        self.engine, self.settings, self.notes = engine, settings, notes
        self.timings: dict[str, float] = {}
        self.clock = partial(_timed, self.timings, phase)
        self.measure = MEASURES.get(settings.redundancy or "")
        self.found = Neighbours.zero(0, 1, 1)
        self.pairs: list[Pairs] = []  # of each batch; those of all are `together`
        self.tally: Tally | None = None  # the sums so far
        self.watch_lists: list[Array] = []  # the features of the largest w after each batch

    def describe(self, check: Callable[[Summary, Target], None]) -> None:
        engine = self.engine
        with self.clock("describe"):
            self.summary = engine.describe()
        settings = self.settings = engine.target.adapt(self.settings)
        check(self.summary, engine.target)
        self.difference = Difference.from_summary(self.summary, engine.discrete, settings.scale)
        self.seed = self.notes.begin(settings, self.summary, engine.target, engine.fingerprint)
        self.target = engine.merge_copies(self.seed) if settings.copies == "merge" else engine.target
        self.p_univariate = univariate_p_values(self.summary, self.target.counts / engine.target.counts)
        self.asked = make_search(settings, self.target, self.summary.m, self.seed)
        self.n_watch = settings.watch_list_length(settings.resolve_n_features(engine.n_features))

    # --- the sample, and how it grows ---

    def first_step(self) -> Step:
        """Draw the largest sample that may be wanted; the queries are the first of it."""
        m, sampling = self.target.m, self.settings.sampling
        s = self.settings.resolve_sample_size(m)
        self.reach = Reach.of(m, self.engine.n_features) if self.settings.grows else Reach(s, s)
        most = max(s, self.reach.same, self.reach.worth)
        with self.clock("sample"):
            quota = sample_quota(sampling, most, self.target.counts)
            self.sample = self.engine.sample(quota, self.seed).in_order(sampling, most)
        return Step(s, None)

    def next_step(self, outcome: Outcome) -> Step:
        """Stop, and say why, or go on with more queries."""
        s, m = len(self.found.row), self.target.m
        if s >= m or not self.settings.grows:
            return Step(s, "all rows" if s >= m else "fixed")
        with self.clock("redundancy", "has it settled?"):
            w = outcome.null.left_of(outcome.w)
            live = outcome.selection.selected[~self.difference.constant[outcome.selection.selected]]
            lowest = float(outcome.selection.scores[len(live) - 1] * w.max(initial=0.0)) if len(live) else 0.0
            race = rivals(np.where(self.difference.constant, -np.inf, w), outcome.se, live, lowest)
            R = outcome.redundancy.between(race) if outcome.redundancy is not None else np.eye(len(race))
            here = np.arange(len(live))
            jump = self.engine.rereads_data
            return next_step(w[race], outcome.se[race], R, here, s, m, self.reach, jump=jump, seed=self.seed)

    def search(self, size: int) -> None:
        """Find the neighbours of the first `size` sampled rows, but for those known, and make batches of pairs."""
        engine, known = self.engine, len(self.found.row)
        with self.clock("neighbours", f"of {size:,} rows" if known else ""):
            noted = self.notes.neighbours(self.asked, self.summary.m)
            if noted is not None and len(noted.row) > known:
                self.found = Neighbours(*(x[:size] for x in vars(noted).values()))
            if len(self.found.row) < size:
                new = self.sample.part(slice(len(self.found.row), size))
                more = engine.nearest(new, self.difference, self.asked)
                self.found = self.found.append(more) if len(self.found.row) else more
                self.notes.save_neighbours(self.found)
            cut = [slice(known + x.start, known + x.stop) for x in batches(size - known, self.settings.batch_size)]
            new_pairs = [make_pairs(self.sample, self.found, part, engine.target) for part in cut]
            engine.prefetch(new_pairs)
        self.pairs += new_pairs
        self.together = Pairs.concat(self.pairs)

    # --- sums, and what they say ---

    def weigh(self) -> None:
        """Add up the batches, but for those noted before."""
        noted = self.notes.sums(self.pairs, self.engine.n_features)
        if noted is not None and len(self.watch_lists) < len(noted[1]) <= len(self.pairs):
            self.tally, self.watch_lists = noted
        if len(self.watch_lists) == len(self.pairs):
            return
        measure = self.measure
        rates = (
            measure.collisions(self.settings.kappa) if measure is not None and measure.needs_collision_rates else None
        )
        tallies = self.engine.tally(self.pairs[len(self.watch_lists) :], self.difference, rates)
        for t in range(len(self.watch_lists), len(self.pairs)):
            with self.clock("tally", f"batch {t + 1} of {len(self.pairs)}"):
                more = next(tallies)
                self.tally = more if self.tally is None else self.tally.merge(more)
            order = sort_by_weight(
                self._weights()[0], candidate_features(self.tally, self.difference.constant, self.n_watch)
            )
            self.watch_lists.append(order[: self.n_watch])
            self.notes.save_sums(self.tally, self.watch_lists)

    def _weights(self) -> tuple[Array, Array]:
        """W, and v, what each class counts in it."""
        assert self.tally is not None
        v = self.engine.target.weights(self.settings.class_weight, self.tally)
        return relevance(self.tally, v), v

    def select(self) -> Outcome:
        engine, settings, tally, constant = self.engine, self.settings, self.tally, self.difference.constant
        assert tally is not None
        w, v = self._weights()
        se = engine.target.error(tally, v, w)
        with self.clock("confidence"):
            null = self._null(w, se, v)
            z = null.z(w)
            p, q = np.ones_like(w), np.ones_like(w)
            p[~constant] = p_values(z[~constant])
            q[~constant] = q_values(p[~constant])
        with self.clock("redundancy"):
            n_select = settings.resolve_n_features(engine.n_features)
            order = sort_by_weight(w, candidate_features(tally, constant, n_select + self.n_watch))
            stands = Eligibility(z, threshold(p[~constant])) if settings.n_features_to_select == "auto" else None
            if stands is not None:
                order = stands.first(order)
                n_select = len(order)
            measured = self._measured(first_pool(order, min(n_select, EXPECTED), engine.columns_at_once))
            normal, selection = selected_by(measured, settings, w, null, constant, order, n_select, stands)
        return Outcome(
            self.difference, engine.target, self.summary.m, len(self.found.row), self.asked.size, self.seed, tally, w,
            se, null, p, q, self.p_univariate, normal, selection, self._watched(w, len(selection.selected)),
            self.watch_lists, measured, self.timings,
        )  # fmt: skip

    def _null(self, w: Array, se: Array, v: Array) -> Null:
        """The weights that noise would have, from the pairs, their distances, and a few of the sampled rows."""
        assert self.tally is not None
        size = self.difference.typical
        grows, per_class = self._rates(size), v if v.ndim == 1 else v.mean(axis=1)
        shared = sharing(self.together, pair_weights(self.together, self.tally, v))
        n_rows, n_lags = looked_at(len(self.together), self.engine.n_features, shared)
        few = self.sample.row[: min(n_rows, len(self.found.row))]
        rate = None if grows is None else float(grows.mean())
        found = pull(partial(self.engine.rows, few), self.difference, rate, n_lags)
        lifted = np.zeros_like(w) if grows is None else bias(grows, per_class, found.slope) * size
        # where all queries say the same, one more might have said the opposite
        se = np.where((se == 0) & (w > 0), 2.0 * w / (len(self.found.row) + 1), se)
        return Null.of(w, lifted, scale(se, shared, found.single, lifted), self.p_univariate)

    def _rates(self, size: float) -> Array | None:
        """How fast the neighbours of either kind grow in number, with d² in units of size².

        Not known of classes that were pooled, nor of use where features are not of a size.
        """
        d2, targets = self.found.d2 / size**2, self.sample.target[: len(self.found.row)]
        if self.difference.scale == "none":
            return None
        if self.pairs[0].weight is not None:
            return rates_by_degree(d2, np.concatenate([x.weight for x in self.pairs]))
        return rates(d2, targets) if self.asked.n_groups > 1 else None

    def _watched(self, w: Array, n_selected: int) -> Array:
        """The last watch list used, where the measure uses them; else the features of the largest w."""
        if self.measure is not None and self.measure.needs_collision_rates:
            return self.watch_lists[-2] if len(self.pairs) > 1 else self.watch_lists[-1]
        n = self.settings.watch_list_length(n_selected)
        assert self.tally is not None
        return sort_by_weight(w, candidate_features(self.tally, self.difference.constant, n))[:n]

    def partners(self, outcome: Outcome) -> Partners:
        """Which of the selected features matter with which; known only where neighbours were searched by class."""
        selected = outcome.selection.selected
        selected = selected[~self.difference.constant[selected]]
        if self.asked.n_groups == 1 or min(len(selected), len(self.found.row)) < 2:
            return Partners.none()
        few = slice(0, min(len(self.found.row), ENOUGH))
        found = Neighbours(*(x[few] for x in vars(self.found).values()))
        _, v = self._weights()
        with self.clock("explain", "which matter together"):
            about = (self.engine.rows, self.difference, self.sample.part(few), found, outcome.tally, v, outcome.w)
            return partners_of(selected, *about)

    def portraits(self, outcome: Outcome) -> list[FeatureDistribution]:
        """How the selected features are distributed among the queries."""
        queries = self.sample.part(slice(0, len(self.found.row)))
        with self.clock("explain", "how they are distributed"):
            about = queries, self.target, self.summary, self.engine.discrete
            return describe_distributions(outcome.selection.selected, self.engine.rows, *about)

    def warn_of_copies(self) -> None:
        """Say so where the nearest rows of a class are mostly copies of the row itself."""
        if self.asked.n_groups == 1 or self.settings.copies == "merge" or len(self.found.row) < 2:
            return
        classes = self.sample.target[: len(self.found.row)]
        copied = share_of_copied_hits(self.found.d2, classes)
        for c in np.flatnonzero(copied >= COPIED)[:1]:
            rows = self.sample.row[: len(classes)][classes == c][:LOOKED_AT]
            if len(rows) < TOO_FEW or is_by_chance(self._log_equal(rows), int(self.target.counts[c])):
                continue
            name = self.target.names.tolist()[c]
            warn(
                f"{100 * copied[c]:.0f} % of the nearest rows of class {name!r} are copies of the row itself, so the"
                " weights and p-values say little: if rows were copied to oversample a class, set copies='merge'; if"
                " the columns just have few values, leave it."
            )

    def _log_equal(self, rows: Array) -> float:
        """The logarithm of the chance that two of these rows are equal in all features."""
        F = self.engine.n_features
        cuts = (np.arange(a, min(a + CHUNK, F)) for a in range(0, F, CHUNK))
        return sum(log_equal(self.engine.rows(rows, columns)) for columns in cuts)

    def _measured(self, pool: Array) -> Measure | None:
        if self.measure is None:
            return None
        how = self.difference, self.measure.collisions(self.settings.kappa)
        ask = partial(self.engine.joint, *how), partial(self.engine.joint_floor, *how)
        assert self.tally is not None
        return self.measure(
            Evidence(self.engine.n_features, self.tally, self.pairs, self.together, self.watch_lists, *ask), pool
        )


def selected_by(
    measured: Measure | None, settings: Settings, w: Array, null: Null, constant: Array, order: Array, n_select: int,
    stands: Eligibility | None,
) -> tuple[Array, Selection]:  # fmt: skip
    """The weights as scores, and the selection; constant features come last."""
    if measured is None:
        normal = normalise(w, constant)
        found = Selection(order[:n_select], normal[order[:n_select]])
    else:
        rule = measured.rule(settings.theta)
        normal = rule.normalise(null.left_of(w) if rule.above_null else w, constant)
        found = forward_selection(normal, order, n_select, measured, rule, w, stands if rule.above_null else None)
    return normal, found if stands is not None else constants_last(found, constant, n_select)


def make_search(settings: Settings, target: Target, m: int, seed: int) -> Search:
    """K of every class, or K = k·|C| in all; a warning where there are fewer rows than that."""
    counts = target.counts
    k = settings.resolve_n_neighbors(int(counts.min()))
    per_class = settings.neighborhood == "per_class"
    fewest = int(counts.min()) if per_class else m - 1
    size = k if per_class else k * len(counts)
    if fewest < size:
        warn(
            f"n_neighbors={k} asks for {size} neighbours {'of each class' if per_class else 'in all'}, but"
            f" {'the smallest class has' if per_class else 'beside itself a row has'} only {fewest}: fewer are taken."
        )
    most = int(counts.max()) if per_class else m
    return Search(min(size, most), len(counts) if per_class else 1, seed)


def make_pairs(sample: Sample, found: Neighbours, part: slice, target: Target) -> Pairs:
    """The pairs (q, r) of one batch, in the order of the sample."""
    row, of_row = found.row[part], found.target[part]
    there = row >= 0
    q = np.broadcast_to(sample.row[part, None, None], row.shape)[there]
    of_q = np.broadcast_to(sample.target[part, None, None], row.shape)[there]
    kind, weight = target.file(of_q, of_row[there])
    return Pairs(q, row[there], kind, target.n_kinds, weight, target.coupled)


def constants_last(selection: Selection, constant: Array, n_select: int) -> Selection:
    """Constant features come after all others, in order, with a score of 0."""
    rest = np.flatnonzero(constant)[: max(0, n_select - len(selection.selected))]
    return Selection(
        np.concatenate([selection.selected, rest]), np.concatenate([selection.scores, np.zeros(len(rest))])
    )


@contextmanager
def _timed(timings: dict[str, float], phase: Phase, name: str, detail: str = "") -> Iterator[None]:
    phase(name, detail)
    start = time.perf_counter()
    yield
    timings[name] = timings.get(name, 0.0) + time.perf_counter() - start
