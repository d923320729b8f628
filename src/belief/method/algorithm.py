"""BELIEF (algorithm 1 of the paper), for any engine.

    describe ─► sample ─► nearest ─► for each batch: tally ─► w ± se ─► watch list
                   ▲                                   └─► joint sums ─► redundancy ─► forward selection by J
                   └──────────────── not settled: more queries ◄───────────────────────────────┘

The neighbours of all batches of a sample are searched in one pass; only the tally needs the batches in order, for the
watch list. When the sample grows, what was found is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from belief.method.alone import alone_p
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.protocols import Engine, Notes, Search
from belief.method.redundancy import MEASURES
from belief.method.redundancy.base import Evidence, Measure
from belief.method.relevance import by_weight, contenders, normalise, relevance
from belief.method.sampling import Sample, batches, quota_of
from belief.method.selection import Selection, first_pool, forward_selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.warn import warn

Phase = Callable[[str, str], None]  # told the name of each phase as it begins, and a detail ("batch 2 of 4")


@dataclass
class Outcome:
    """All that one run found, as the method names it."""

    difference: Difference
    target: Target
    n_rows: int
    sample_size: int
    seed: int
    tally: Tally
    w: Array
    se: Array
    p: Array
    q: Array
    alone_p: Array = field(kw_only=True)  # of each feature by itself
    relevance: Array  # w normalised
    selection: Selection
    watched: Array  # the last watch list used
    history: Sequence[Array]  # the watch list made after each batch
    redundancy: Measure | None
    timings: dict[str, float] = field(default_factory=dict)

    def repeated(self, features: Array) -> Array:
        """What some features repeat of each of the selected ones (lines); 0 where nothing was measured."""
        selected, constant = self.selection.selected, self.difference.constant
        out = np.zeros((len(selected), len(features)))
        if self.redundancy is not None:
            live = np.flatnonzero(~constant[features])
            self.redundancy.extend(features[live])
            for line, j in zip(out, selected.tolist(), strict=True):
                if not constant[j]:
                    line[live] = self.redundancy.row(j, features[:0])[self.redundancy.place[features[live]]]
        return out


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
    run.sample_rows()
    run.search()
    run.weigh()
    return run.select()


class _Run:
    """One run: what is known so far."""

    def __init__(self, engine: Engine, settings: Settings, phase: Phase, notes: Notes) -> None:
        self.engine, self.settings, self.notes = engine, settings, notes
        self.timings: dict[str, float] = {}
        self.clock = partial(_timed, self.timings, phase)
        self.measure = MEASURES.get(settings.redundancy or "")
        self.pairs: list[Pairs] = []  # of each batch
        self.tally: Tally | None = None  # the sums so far
        self.watch_lists: list[Array] = []  # the features of the largest w after each batch

    def describe(self, check: Callable[[Summary, Target], None]) -> None:
        engine, settings = self.engine, self.settings
        with self.clock("describe"):
            self.summary = engine.describe()
        check(self.summary, engine.target)
        self.alone_p = alone_p(self.summary)
        self.difference = Difference.of(self.summary, engine.discrete, settings.scale)
        self.seed = self.notes.begin(settings, self.summary, engine.target, engine.fingerprint)
        self.n_select = settings.select_of(engine.n_features)
        self.n_watch = settings.watch_of(self.n_select)

    def sample_rows(self) -> None:
        s, sampling = self.settings.sample_of(self.summary.m), self.settings.sampling
        with self.clock("sample"):
            quota = quota_of(sampling, s, self.engine.target.counts)
            self.sample = self.engine.sample(quota, self.seed).in_order(sampling, s)

    def search(self) -> None:
        """Find the neighbours of the sampled rows, and make batches of pairs of them."""
        engine, sample = self.engine, self.sample
        with self.clock("neighbours"):
            search = search_of(self.settings, engine.target, self.summary.m, self.seed)
            found = self.notes.neighbours() or engine.nearest(sample, self.difference, search)
            self.notes.keep_neighbours(found)
            cut = batches(len(sample.row), self.settings.batch_size)
            self.pairs = [pairs_of(sample, found, part, engine.target) for part in cut]
            engine.expect(self.pairs)

    def weigh(self) -> None:
        """Add up the batches, those noted before but for one."""
        if (noted := self.notes.sums()) is not None:
            self.tally, self.watch_lists = noted
        measure = self.measure
        rates = measure.collisions(self.settings.kappa) if measure is not None and measure.sums_rates else None
        tallies = self.engine.tally(self.pairs[len(self.watch_lists) :], self.difference, rates)
        for t in range(len(self.watch_lists), len(self.pairs)):
            with self.clock("tally", f"batch {t + 1} of {len(self.pairs)}"):
                more = next(tallies)
                self.tally = more if self.tally is None else self.tally.merge(more)
            order = by_weight(self._weights()[0], contenders(self.tally, self.difference.constant, self.n_watch))
            self.watch_lists.append(order[: self.n_watch])
            self.notes.keep_sums(self.tally, self.watch_lists)

    def _weights(self) -> tuple[Array, Array]:
        """W, and v, what each class counts in it."""
        assert self.tally is not None
        v = self.engine.target.weights(self.settings.class_weight, self.tally)
        return relevance(self.tally, v), v

    def select(self) -> Outcome:
        engine, tally, constant = self.engine, self.tally, self.difference.constant
        assert tally is not None
        w, v = self._weights()
        with self.clock("redundancy"):
            order = by_weight(w, contenders(tally, constant, self.n_select + self.n_watch))
            measured = self._measured(first_pool(order, self.n_select, engine.columns_at_once))
            normal, selection = selected_by(measured, self.settings, w, constant, order, self.n_select)
        watched = self.watch_lists[-2] if len(self.pairs) > 1 else self.watch_lists[-1]
        return Outcome(
            self.difference, engine.target, self.summary.m, len(self.sample.row), self.seed, tally, w,
            engine.target.error(tally, v, w), normal, selection, watched, self.watch_lists, measured, self.timings,
            alone_p=self.alone_p,
        )  # fmt: skip

    def _measured(self, pool: Array) -> Measure | None:
        if self.measure is None:
            return None
        how = self.difference, self.measure.collisions(self.settings.kappa)
        ask = partial(self.engine.joint, *how), partial(self.engine.joint_floor, *how)
        assert self.tally is not None
        return self.measure(Evidence(self.engine.n_features, self.tally, self.pairs, self.watch_lists, *ask), pool)


def selected_by(
    measured: Measure | None, settings: Settings, w: Array, constant: Array, order: Array, n_select: int
) -> tuple[Array, Selection]:
    """The weights as scores, and the selection; constant features come last."""
    if measured is None:
        normal = normalise(w, constant)
        found = Selection(order[:n_select], normal[order[:n_select]])
    else:
        rule = measured.rule(settings.theta)
        normal = rule.normalise(w, constant)
        found = forward_selection(normal, order, n_select, measured, rule, w)
    return normal, constants_last(found, constant, n_select)


def search_of(settings: Settings, target: Target, m: int, seed: int) -> Search:
    """K of every class, or K = k·|C| in all; a warning where there are fewer rows than that."""
    counts = target.counts
    k = settings.neighbours_of(int(counts.min()))
    per_class = settings.neighborhood == "per_class"
    fewest = int(counts.min()) if per_class else m - 1
    size = k if per_class else k * len(counts)
    if fewest < size:
        warn(
            f"n_neighbors={k} asks for {size} neighbours {'of each class' if per_class else 'in all'}, but there are"
            f" only {fewest} {'rows of the smallest class' if per_class else 'other rows'}: all of them are taken."
        )
    most = int(counts.max()) if per_class else m
    return Search(min(size, most), len(counts) if per_class else 1, seed)


def pairs_of(sample: Sample, found: Neighbours, part: slice, target: Target) -> Pairs:
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
