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

from belief.checkpoint import NO_CHECKPOINT, Checkpoint
from belief.engines.base import Engine, Search
from belief.method.difference import Difference
from belief.method.partials import Array, Neighbours, Pairs, Summary, Tally
from belief.method.redundancy import Collide, Redundancy
from belief.method.relevance import by_weight, contenders, normalise, relevance
from belief.method.sampling import Sample, batches, quotas
from belief.method.selection import Selection, first_pool, forward_selection
from belief.method.settings import Settings
from belief.warn import warn

Phase = Callable[[str, str], None]  # told the name of each phase as it begins, and a detail ("batch 2 of 4")


@dataclass
class Outcome:
    """All that one run found, as the method names it."""

    difference: Difference
    priors: Array
    n_rows: int
    sample_size: int
    seed: int
    tally: Tally
    w: Array
    relevance: Array  # w normalised
    selection: Selection
    watched: Array  # the last watch list used
    history: Sequence[Array]  # the watch list made after each batch
    redundancy: Redundancy | None
    timings: dict[str, float] = field(default_factory=dict)


def belief(
    engine: Engine,
    settings: Settings,
    check: Callable[[Summary], None],
    phase: Phase,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Outcome:
    """Run BELIEF on an engine.

    Parameters
    ----------
    check : called with the summary, to refuse data that cannot be used by the names the caller knows
    phase : called as each phase begins
    checkpoint : where the neighbours, and the sums after each batch, are noted, and found again by the next run
    """
    timings: dict[str, float] = {}
    clock = partial(_timed, timings, phase)
    with clock("describe"):
        summary = engine.describe()
    check(summary)
    difference = Difference.of(summary, engine.discrete, settings.scale)
    P = summary.class_counts / summary.m
    n_select = settings.select_of(engine.n_features)
    n_watch = settings.watch_of(n_select)
    seed = checkpoint.begin(settings, summary, engine.fingerprint)

    s = settings.sample_of(summary.m)
    with clock("sample"):
        sample = engine.sample(quotas(s, summary.class_counts) if settings.stratify else np.array([s]), seed)
    with clock("neighbours"):
        search = search_of(settings, summary, seed)
        found = checkpoint.neighbours() or engine.nearest(sample, difference, search)
        checkpoint.keep_neighbours(found)
        pairs = [pairs_of(sample, found, part) for part in batches(len(sample.row), settings.batch_size)]
        engine.expect(pairs)

    # the sums so far, and the watch list made after each batch
    tally, watch_lists = checkpoint.sums() or (Tally.zero(engine.n_classes, engine.n_features), [])
    for t, batch in enumerate(pairs[len(watch_lists) :], len(watch_lists)):
        with clock("tally", f"batch {t + 1} of {len(pairs)}"):
            tally = tally.merge(engine.tally(batch, difference, settings.kappa))
        w = relevance(tally, P)
        watch_lists.append(by_weight(w, contenders(tally, difference.constant, n_watch))[:n_watch])
        checkpoint.keep_sums(tally, watch_lists)
    w = relevance(tally, P)

    with clock("redundancy"):
        order = by_weight(w, contenders(tally, difference.constant, n_select + n_watch))
        mcr = None
        if settings.redundancy == "mcr":
            # a batch is watched with the list made before it; a single batch with its own
            watches = list(zip(pairs[1:] or pairs, watch_lists, strict=False))
            how = difference, settings.kappa
            collide = Collide(partial(engine.collide, *how), partial(engine.collide_floor, *how))
            mcr = Redundancy(tally, watches, first_pool(order, n_select, engine.at_once), collide)
        normal = normalise(w, difference.constant)
        selection = forward_selection(normal, order, n_select, mcr, settings.theta)
        selection = constants_last(selection, difference.constant, n_select)
    watched = watch_lists[-2] if len(pairs) > 1 else watch_lists[-1]
    return Outcome(
        difference, P, summary.m, len(sample.row), seed, tally, w, normal, selection, watched, watch_lists, mcr, timings
    )  # fmt: skip


def search_of(settings: Settings, summary: Summary, seed: int) -> Search:
    """K of every class, or K = k·|C| in all; a warning where there are fewer rows than that."""
    k, n_classes = settings.n_neighbors, len(summary.class_counts)
    per_class = settings.neighborhood == "per_class"
    fewest = int(summary.class_counts.min()) if per_class else summary.m - 1
    size = k if per_class else k * n_classes
    if fewest < size:
        warn(
            f"n_neighbors={k} asks for {size} neighbours {'of each class' if per_class else 'in all'}, but there are"
            f" only {fewest} {'rows of the smallest class' if per_class else 'other rows'}: all of them are taken."
        )
    most = int(summary.class_counts.max()) if per_class else summary.m
    return Search(min(size, most), per_class, seed)


def pairs_of(sample: Sample, found: Neighbours, part: slice) -> Pairs:
    """The pairs (q, r) of one batch, in the order of the sample."""
    row, label = found.row[part], found.label[part]
    there = row >= 0
    q = np.broadcast_to(sample.row[part, None, None], row.shape)[there]
    c = np.broadcast_to(sample.label[part, None, None], row.shape)[there]
    return Pairs(q, row[there], c, label[there] == c)


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
