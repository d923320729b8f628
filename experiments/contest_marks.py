"""Statistics of the results of experiments/contest.py: mean scores, ranks with their critical difference, and time.

A result is what `contest.compute` saved for a selector and a data set. A selector finished on a set if all of its
selections succeeded within the time limit.
"""

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
TICK = 1e-3  # seconds; shorter times cannot be compared reliably, and count as this long


def answer(answers: Answers, name: str, each: str) -> dict[str, Any] | None:
    """Return the result of a selector on a set, or None if there is none yet."""
    return answers.answers.get(f"{each} | {name}")


def taking_part(answers: Answers) -> list[str]:
    """Return the public sets with a result of BELIEF, the reference of all comparisons."""
    return [each for each in PUBLIC if answer(answers, BELIEF, each) is not None]


def aside(answers: Answers) -> list[str]:
    """Return the public sets that are kept aside and have a result of BELIEF."""
    return [each for each in taking_part(answers) if each in ASIDE]


def asked(answers: Answers, sets: Iterable[str] | None = None) -> list[str]:
    """Return the selectors that have a result on all these sets, even if they did not finish on some.

    The default is all public sets with a result of BELIEF.
    """
    sets = taking_part(answers) if sets is None else list(sets)
    return [name for name in SELECTORS if all(answer(answers, name, each) is not None for each in sets)]


# --- public sets -----------------------------------------------------------------------------------------------------


def f1(answers: Answers, name: str, each: str, size: int | None = None, judge: int | slice = ALL) -> float | None:
    """Return the macro F1 of a selector on a set, or None if there is none.

    This is the mean over the folds, all sizes (unless `size` is passed) and all classifiers (unless `judge` is passed).
    """
    by_size = (answer(answers, name, each) or {}).get("f1")
    if by_size is None or (size is not None and str(size) not in by_size):
        return None
    marks = [by_size[str(size)]] if size is not None else list(by_size.values())
    return float(np.mean([np.mean(np.mean(x, axis=0)[judge]) for x in marks]))


def mean_f1(answers: Answers, name: str, sets: Iterable[str], **part: Any) -> float:
    """Return the mean F1 of a selector over the sets on which it finished; `part` is passed to `f1`."""
    known = [x for each in sets if (x := f1(answers, name, each, **part)) is not None]
    return float(np.mean(known)) if known else np.nan


def against(answers: Answers, name: str, sets: Iterable[str]) -> Array:
    """Return the F1 of a selector minus that of BELIEF, for each set on which both finished."""
    both = [(f1(answers, name, each), f1(answers, BELIEF, each)) for each in sets]
    return np.array([a - b for a, b in both if a is not None and b is not None])


def ended(answers: Answers, name: str, sets: Iterable[str]) -> int:
    """Return the number of sets on which a selector finished."""
    return sum(f1(answers, name, each) is not None for each in sets)


def seconds(answers: Answers, name: str, each: str) -> float | None:
    """Return the CPU seconds of the largest selection on a set, the median of the folds; None if it did not finish."""
    by_size = (answer(answers, name, each) or {}).get("seconds")
    return None if not by_size else max(TICK, float(np.median(list(by_size.values())[-1])))


def both_times(answers: Answers, name: str, sets: Iterable[str]) -> Array:
    """Return the seconds of a selector and of BELIEF in two columns, for the sets on which both finished."""
    both = [(seconds(answers, name, each), seconds(answers, BELIEF, each)) for each in sets]
    return np.array([(a, b) for a, b in both if a is not None and b is not None], float).reshape(-1, 2)


def slower(answers: Answers, name: str, sets: Iterable[str]) -> float:
    """Return the geometric mean of the time relative to BELIEF, over the sets on which both finished."""
    its, ours = both_times(answers, name, sets).T
    return float(np.exp(np.mean(np.log(its / ours)))) if len(its) else np.nan


def slower_in_all(answers: Answers, name: str, sets: Iterable[str]) -> float:
    """Return the total time relative to BELIEF on the sets on which both finished; it depends most on large sets."""
    its, ours = both_times(answers, name, sets).sum(axis=0)
    return float(its / ours) if ours else np.nan


def filters() -> list[str]:
    """Return the selectors that use no model (filters), without BELIEF and its variants."""
    return [x for x, it in SELECTORS.items() if it.kind in (RELIEF, COLUMN) and not x.startswith(BELIEF)]


def in_hindsight(answers: Answers, sets: Iterable[str]) -> float:
    """Return the mean F1 of the best filter (BELIEF or another) of each set, which is known only in hindsight."""
    names = [BELIEF, *filters()]
    known = [[x for name in names if (x := f1(answers, name, each)) is not None] for each in sets]
    return float(np.mean([max(x) for x in known])) if all(known) else np.nan


# --- ranks -----------------------------------------------------------------------------------------------------------


def ranks(answers: Answers, names: list[str], sets: Iterable[str]) -> Array:
    """Return a table with a row for each set and a column for each selector, which holds its rank by F1; 1 is best.

    Ties share their mean rank. Selectors that did not finish are last.
    """
    from scipy.stats import rankdata

    marks = [[-np.inf if (x := f1(answers, name, each)) is None else x for name in names] for each in sets]
    return rankdata(-np.array(marks), axis=1)


def friedman(table: Array) -> tuple[float, float]:
    """Return the statistic and the p-value of Friedman's test on a table of ranks, corrected for ties."""
    from scipy.stats import friedmanchisquare

    found = friedmanchisquare(*table.T)
    return float(found.statistic), float(found.pvalue)


def critical_difference(n_selectors: int, n_sets: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference: smaller differences between mean ranks are not significant."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - alpha, n_selectors, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_selectors * (n_selectors + 1) / (6 * n_sets)))


# --- synthetic sets --------------------------------------------------------------------------------------------------


def truth(answers: Answers, name: str, each: str, what: str = "recall") -> float | None:
    """Return the mean recall, or another score, of a selector over the seeds of a synthetic set; None if unknown."""
    known = answer(answers, name, each)
    by_seed = [] if known is None else [x[what] for x in known.values() if isinstance(x, dict) and what in x]
    return float(np.mean(by_seed)) if by_seed else None


def mean_truth(answers: Answers, name: str, sets: Iterable[str], what: str = "recall") -> float:
    """Return the mean recall, or another score, of a selector over the synthetic sets on which it finished."""
    known = [x for each in sets if (x := truth(answers, name, each, what)) is not None]
    return float(np.mean(known)) if known else np.nan
