"""What the answers of experiments/contest.py come to: means, ranks with their critical difference, time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from common import Answers
from contest_selectors import BELIEF, COLUMN, RELIEF, SELECTORS
from contest_tasks import KIND, PUBLIC, SOURCES, kept_aside
from made import Array

ASIDE = [name for source in SOURCES.values() for name in kept_aside(source)]
MADE_ASIDE = kept_aside(KIND)
ALL = slice(None)
TICK = 1e-3  # seconds: less is not told apart


def answer(answers: Answers, name: str, each: str) -> dict[str, Any] | None:
    """What is known of a selector on a set; None: it was not asked."""
    return answers.answers.get(f"{each} | {name}")


def taking_part(answers: Answers) -> list[str]:
    """The public sets on which BELIEF was asked: where it was not, there is nothing to compare with."""
    return [each for each in PUBLIC if answer(answers, BELIEF, each) is not None]


def aside(answers: Answers) -> list[str]:
    """Those of them that are kept aside."""
    return [each for each in taking_part(answers) if each in ASIDE]


def asked(answers: Answers, sets: Iterable[str] | None = None) -> list[str]:
    """The selectors that were asked on all of these sets, by default the public ones, whether or not they ended."""
    sets = taking_part(answers) if sets is None else list(sets)
    return [name for name in SELECTORS if all(answer(answers, name, each) is not None for each in sets)]


# --- public sets -----------------------------------------------------------------------------------------------------


def f1(answers: Answers, name: str, each: str, size: int | None = None, judge: int | slice = ALL) -> float | None:
    """Macro F1 of a selector on a set: the mean over folds, and over sizes and judges unless some are named."""
    by_size = (answer(answers, name, each) or {}).get("f1")
    if by_size is None or (size is not None and str(size) not in by_size):
        return None
    marks = [by_size[str(size)]] if size is not None else list(by_size.values())
    return float(np.mean([np.mean(np.mean(x, axis=0)[judge]) for x in marks]))


def mean_f1(answers: Answers, name: str, sets: Iterable[str], **part: Any) -> float:
    """The mean over those sets on which it ended."""
    known = [x for each in sets if (x := f1(answers, name, each, **part)) is not None]
    return float(np.mean(known)) if known else np.nan


def against(answers: Answers, name: str, sets: Iterable[str]) -> Array:
    """Its F1 less BELIEF's, on each set on which it ended."""
    both = [(f1(answers, name, each), f1(answers, BELIEF, each)) for each in sets]
    return np.array([a - b for a, b in both if a is not None and b is not None])


def ended(answers: Answers, name: str, sets: Iterable[str]) -> int:
    """On how many of the sets it ended."""
    return sum(f1(answers, name, each) is not None for each in sets)


def seconds(answers: Answers, name: str, each: str) -> float | None:
    """The processor's seconds for the most features that were asked for: the median of the folds."""
    by_size = (answer(answers, name, each) or {}).get("seconds")
    return None if not by_size else max(TICK, float(np.median(list(by_size.values())[-1])))


def both_times(answers: Answers, name: str, sets: Iterable[str]) -> Array:
    """Its seconds and BELIEF's, in two columns, on the sets on which both ended."""
    both = [(seconds(answers, name, each), seconds(answers, BELIEF, each)) for each in sets]
    return np.array([(a, b) for a, b in both if a is not None and b is not None], float).reshape(-1, 2)


def slower(answers: Answers, name: str, sets: Iterable[str]) -> float:
    """How many times as long as BELIEF it takes: the geometric mean over the sets on which both ended."""
    its, ours = both_times(answers, name, sets).T
    return float(np.exp(np.mean(np.log(its / ours)))) if len(its) else np.nan


def slower_in_all(answers: Answers, name: str, sets: Iterable[str]) -> float:
    """The same of the sums, which are what one waits for: large sets count most."""
    its, ours = both_times(answers, name, sets).sum(axis=0)
    return float(its / ours) if ours else np.nan


def filters() -> list[str]:
    """Those that ask no model, without our own in other settings."""
    return [x for x, it in SELECTORS.items() if it.kind in (RELIEF, COLUMN) and not x.startswith(BELIEF)]


def in_hindsight(answers: Answers, sets: Iterable[str]) -> float:
    """The mean F1 of the best filter of each set, which one knows when all of them have been tried on it."""
    names = [BELIEF, *filters()]
    known = [[x for name in names if (x := f1(answers, name, each)) is not None] for each in sets]
    return float(np.mean([max(x) for x in known])) if all(known) else np.nan


# --- ranks -----------------------------------------------------------------------------------------------------------


def ranks(answers: Answers, names: list[str], sets: Iterable[str]) -> Array:
    """The rank of each selector on each set, 1 the best; equals share one, and who did not end comes last."""
    from scipy.stats import rankdata

    marks = [[-np.inf if (x := f1(answers, name, each)) is None else x for name in names] for each in sets]
    return rankdata(-np.array(marks), axis=1)


def friedman(table: Array) -> tuple[float, float]:
    """Friedman's statistic of a table of ranks, with ties, and its p."""
    from scipy.stats import friedmanchisquare

    found = friedmanchisquare(*table.T)
    return float(found.statistic), float(found.pvalue)


def critical_difference(n_selectors: int, n_sets: int, alpha: float = 0.05) -> float:
    """Nemenyi's: mean ranks that differ by less cannot be told apart."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - alpha, n_selectors, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_selectors * (n_selectors + 1) / (6 * n_sets)))


# --- made sets -------------------------------------------------------------------------------------------------------


def truth(answers: Answers, name: str, each: str, what: str = "recall") -> float | None:
    """The mean over the seeds of a made set."""
    known = answer(answers, name, each)
    by_seed = [] if known is None else [x[what] for x in known.values() if isinstance(x, dict) and what in x]
    return float(np.mean(by_seed)) if by_seed else None


def mean_truth(answers: Answers, name: str, sets: Iterable[str], what: str = "recall") -> float:
    """The mean over those sets on which it ended."""
    known = [x for each in sets if (x := truth(answers, name, each, what)) is not None]
    return float(np.mean(known)) if known else np.nan
