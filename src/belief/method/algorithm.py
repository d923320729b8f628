"""BELIEF (algorithm 1 of the paper), for any engine.

    describe ─► sample ─► nearest ─► for each batch: tally ─► w ─► watch list
                                                       └─► collide ─► I_α ─► forward selection by J

The neighbours of all batches are searched in one pass; only the tally needs the batches in order, for the watch list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.protocols import Engine, Notes, Search
from belief.method.redundancy import MEASURES
from belief.method.redundancy.base import Evidence, Measure
from belief.method.relevance import by_weight, contenders, normalise, relevance
from belief.method.sampling import Sample, batches, quotas
from belief.method.selection import Selection, first_pool, forward_selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Classes, Target
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
    relevance: Array  # w normalised
    selection: Selection
    watched: Array  # the last watch list used
    history: Sequence[Array]  # the watch list made after each batch
    redundancy: Measure | None
    timings: dict[str, float] = field(default_factory=dict)


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
    notes = notes or Notes()
    timings: dict[str, float] = {}
    clock = partial(_timed, timings, phase)
    with clock("describe"):
        summary = engine.describe()
    check(summary, engine.target)
    difference = Difference.of(summary, engine.discrete, settings.scale)
    seed = notes.begin(settings, summary, engine.target, engine.fingerprint)

    with clock("sample"):
        sample = engine.sample(quota_of(settings, engine.target, summary.m), seed)
    with clock("neighbours"):
        search = search_of(settings, engine.target, summary.m, seed)
        found = notes.neighbours() or engine.nearest(sample, difference, search)
        notes.keep_neighbours(found)
        cut = batches(len(sample.row), settings.batch_size)
        pairs = [pairs_of(sample, found, part, engine.target) for part in cut]
        engine.expect(pairs)

    P = engine.target.P
    measure = MEASURES.get(settings.redundancy or "")
    n_select = settings.select_of(engine.n_features)
    n_watch = settings.watch_of(n_select)
    rates = measure.collisions(settings.kappa) if measure is not None and measure.sums_rates else None
    # the sums so far, and the watch list made after each batch
    nothing = Tally.zero(engine.target.n_kinds, engine.n_features, rates is not None)
    tally, watch_lists = notes.sums() or (nothing, [])
    tallies = engine.tally(pairs[len(watch_lists) :], difference, rates)
    for t in range(len(watch_lists), len(pairs)):
        with clock("tally", f"batch {t + 1} of {len(pairs)}"):
            tally = tally.merge(next(tallies))
        w = relevance(tally, P)
        watch_lists.append(by_weight(w, contenders(tally, difference.constant, n_watch))[:n_watch])
        notes.keep_sums(tally, watch_lists)
    w = relevance(tally, P)

    with clock("redundancy"):
        order = by_weight(w, contenders(tally, difference.constant, n_select + n_watch))
        measured = None
        if measure is not None:
            how = difference, measure.collisions(settings.kappa)
            ask = partial(engine.joint, *how), partial(engine.joint_floor, *how)
            pool = first_pool(order, n_select, engine.columns_at_once)
            measured = measure(Evidence(tally, pairs, watch_lists, *ask), pool)
        normal, selection = selected_by(measured, settings, w, difference.constant, order, n_select)
    watched = watch_lists[-2] if len(pairs) > 1 else watch_lists[-1]
    return Outcome(
        difference, engine.target, summary.m, len(sample.row), seed, tally, w, normal, selection, watched, watch_lists,
        measured, timings,
    )  # fmt: skip


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
        found = forward_selection(normal, order, n_select, measured, rule)
    return normal, constants_last(found, constant, n_select)


def quota_of(settings: Settings, target: Target, m: int) -> Array:
    """How many rows are sampled: in all, or of each class."""
    s = settings.sample_of(m)
    return quotas(s, target.counts) if settings.stratify and isinstance(target, Classes) else np.array([s])


def search_of(settings: Settings, target: Target, m: int, seed: int) -> Search:
    """K of every class, or K = k·|C| in all; a warning where there are fewer rows than that."""
    k, counts = settings.n_neighbors, target.counts
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
    return Pairs(q, row[there], kind, target.n_kinds, weight)


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
