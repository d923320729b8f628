"""What was tried because of the contest: other settings and rules, on the sets that are not kept aside.

    BELIEF_DATA=folder python experiments/tried.py

The F1 of public sets and what is found on made ones, as in experiments/contest.py, with other seeds. What was chosen by
that is then measured on the sets kept aside, with the contest's seeds. Every answer is kept in tried.jsonl as it comes.
Writes its tables into docs/experiments/contest.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from choices import Data
from common import Answers, data_home, publish, table
from contest import PAGE, Judge, sizes_of
from contest_tasks import KIND, PUBLIC, SOURCES, found, kept_aside, planted_truth, public
from contest_tasks import SEEDS as CONTEST_SEEDS
from made import Array
from steps import NO_DOUBT
from threadpoolctl import threadpool_limits

import belief
from belief.method.redundancy.agreement import UniqueShareRule

ANSWERS = Path(__file__).with_suffix(".jsonl")
SEEDS = (200, 201, 202)  # the contest has others
HEAD = ["changed", "F1", "more than the defaults", "recall", "precision"]
ASIDE = "kept aside"  # begins the names of answers of the sets that nothing was chosen by


class Variant(NamedTuple):
    """Settings, and what is changed in the method while they are used."""

    settings: dict[str, Any]
    change: Callable[[], AbstractContextManager[Any]] = nullcontext


def by_each(self: UniqueShareRule, gathered: Array, row: Array) -> Array:
    """A feature loses what it shares with each selected one, not only with the one that it agrees with most."""
    return gathered * (1.0 - self.theta * row)


@contextmanager
def as_before() -> Iterator[None]:
    """Every agreement counts, and no feature has the benefit of the doubt."""
    with EVERY(), NO_DOUBT():
        yield


EVERY = partial(patch.object, UniqueShareRule, "accumulate", by_each)


VARIANTS = {
    "the defaults": Variant({}),
    "mCR": Variant({"redundancy": "mcr"}),
    "no redundancy": Variant({"redundancy": None}),
    "half of the agreement counts": Variant({"theta": 0.5}),
    "every agreement counts": Variant({}, EVERY),
    "what a feature says alone does not": Variant({}, NO_DOUBT),
    "both, as it was": Variant({}, as_before),
    "relevance of noise counts, too": Variant({}, lambda: patch.object(UniqueShareRule, "above_null", False)),
    "classes weigh by their share": Variant({"class_weight": "prior"}),
    "10 neighbours": Variant({"n_neighbors": 10}),
    "40 neighbours": Variant({"n_neighbors": 40}),
    "100 neighbours": Variant({"n_neighbors": 100}),
}


CHOSEN = ("the defaults", "every agreement counts", "what a feature says alone does not", "both, as it was")


def selected(variant: Variant, data: Data, n: int) -> list[int]:
    """What it selects."""
    options = {"discrete_features": data.discrete, "random_state": 0, "n_jobs": 1, **variant.settings}
    with variant.change():
        return belief.select(data.X, data.y, n, **options).selected.tolist()


def f1(judge: Judge, variant: Variant) -> float:
    """The mean over folds, sizes and judges."""
    marks = []
    for fold, (learn, _) in enumerate(judge.folds):
        part = judge.data._replace(X=judge.data.X[learn], y=judge.data.y[learn])
        marks += [judge.marks(fold, selected(variant, part, n)) for n in sizes_of(part.X.shape[1])]
    return round(float(np.mean(marks)), 5)


def truth(name: str, variant: Variant, seeds: tuple[int, ...] = SEEDS) -> dict[str, float]:
    """Recall and precision on a made set, the means over the seeds."""
    every = [planted_truth(name, seed) for seed in seeds]
    each = [found(data, selected(variant, data, len(data.relevant or ()))) for data in every]
    return {key: round(float(np.mean([x[key] for x in each])), 4) for key in each[0]}


def compute(answers: Answers) -> None:
    """All answers; only those that are missing are computed."""
    judge = cache(lambda name: Judge(public(name)))
    for way, variant in VARIANTS.items():
        for name in [x for source in SOURCES.values() for x in source if x not in kept_aside(source)]:
            answers.get(f"{name} | {way}", lambda: f1(judge(name), variant))  # noqa: B023
        for name in [x for x in KIND if x not in kept_aside(KIND)]:
            answers.get(f"{name} | {way}", partial(truth, name, variant))
    for way in CHOSEN:
        for name in [x for source in SOURCES.values() for x in kept_aside(source)]:
            answers.get(f"{ASIDE} | {name} | {way}", lambda: f1(judge(name), VARIANTS[way]))  # noqa: B023
        for name in kept_aside(KIND):
            answers.get(f"{ASIDE} | {name} | {way}", partial(truth, name, VARIANTS[way], CONTEST_SEEDS))


def tables(answers: dict[str, Any]) -> list[str]:
    """What was tried, and what was chosen by it on the sets kept aside."""
    aside = {key.removeprefix(f"{ASIDE} | "): value for key, value in answers.items() if key.startswith(ASIDE)}
    tried = {key: value for key, value in answers.items() if not key.startswith(ASIDE)}
    return [table(HEAD, lines(some, ways)) for some, ways in ((tried, tuple(VARIANTS)), (aside, CHOSEN))]


def lines(answers: dict[str, Any], ways: tuple[str, ...]) -> list[list[str]]:
    """A line of each way: F1, what it is above the defaults' with its standard error, recall and precision."""
    rows = []
    for way in ways:
        of = {key.split(" | ")[0]: value for key, value in answers.items() if key.endswith(f" | {way}")}
        marks = np.array([value for name, value in of.items() if name in PUBLIC])
        plain = np.array([answers[f"{name} | the defaults"] for name in of if name in PUBLIC])
        more, error = np.mean(marks - plain), np.std(marks - plain, ddof=1) / np.sqrt(len(plain))
        shown = [np.mean([value[key] for name, value in of.items() if name in KIND]) for key in ("recall", "precision")]
        apart = "" if way == "the defaults" else f"{more:+.3f} ± {error:.3f}"
        rows.append([way, f"{marks.mean():.3f}", apart, *(f"{x:.3f}" for x in shown)])
    return rows


def configuration() -> dict[str, Any]:
    """What the answers depend on, beside the code."""
    return {"seeds": SEEDS, "ways": {way: variant.settings for way, variant in VARIANTS.items()}}


def main(words: list[str]) -> None:
    """Compute what is missing, and write the table."""
    if words:
        raise SystemExit(__doc__)
    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
    warnings.simplefilter("ignore")  # few steps of the SVM, rare classes
    answers = Answers(ANSWERS, configuration())
    with threadpool_limits(1):
        compute(answers)
    tried, aside = tables(answers.answers)
    publish(PAGE, "tried", tried)
    publish(PAGE, "chosen", f"{aside}\n\n{answers.origin}")


if __name__ == "__main__":
    main(sys.argv[1:])
