"""All that the page says of a result, as one plain dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import belief
from belief.method.settings import Settings
from belief.progress import LABELS
from belief.report.groups import LEVEL, groups_of
from belief.report.more import more_of, told_from
from belief.report.words import clean
from belief.result.explanation import SIGNIFICANCE_LEVEL, FeatureExplanation, is_worth_more
from belief.result.result import Result

ROWS = 1_000  # of a table; a page with more is no page
CLASSES = 20
SECTIONS = {
    "ranking": "The ranking",
    "how_many": "How many features suffice",
    "portraits": "How they are distributed",
    "relevance": "Relevance, and how much of it each keeps",
    "redundancy": "Which of the selected agree",
    "left": "What was left out",
    "all": "All features",
    "settling": "How the ranking settled",
    "run": "What was run",
    "timings": "Timings",
}
OF_MCR = {"relevance": "Relevance, and what mCR subtracts", "redundancy": "What the selected features repeat"}


def content_of(result: Result, title: str | None = None) -> dict[str, Any]:
    """Gather what the page shows: names are clean but not escaped, numbers are numbers."""
    lines = [line_of(line) for line in result.explain()]
    taken, left = lines[: len(result.selected)], lines[len(result.selected) :]
    said: dict[str, Any] = {
        "title": clean(title) if title else "Features selected with BELIEF",
        "version": belief.__version__,
        "run": run_of(result),
        "classes": _classes(result),
        "settings": _settings(result.settings),
        "redundancy": result.settings["redundancy"],
        "columns": columns_of(result, lines),
        "taken": taken[:ROWS],
        "n_taken": len(taken),
        "n_doubtful": sum(not line.is_significant for line in taken),
        "left": left[:ROWS],
        "n_left": len(left),
        "kept_out": [line for line in left if _kept_out(result, line)],
        "noise_level": SIGNIFICANCE_LEVEL,
        "level": LEVEL,
        "groups": _groups(result),
        "settled": _settled(result),
        "timings": [(LABELS.get(phase, phase), float(s)) for phase, s in result.timings.items()],
    }
    said |= more_of(result, taken)
    return {**said, "kept_for": _kept_for(said["kept_out"]), "pictures": _pictures(said), "sections": _sections(said)}


def columns_of(result: Result, lines: Sequence[FeatureExplanation]) -> list[str]:
    """The numbers of each feature that mean something in this result."""
    score = [] if result.settings["redundancy"] is None else ["score"]
    return [
        "relevance",
        *(key for key in ("q_value", "unique_share") if any(line[key] is not None for line in lines)),
        *score,
    ]


def _kept_out(result: Result, line: FeatureExplanation) -> bool:
    """Whether a feature was left only for what it repeats."""
    if line.score is None or not line.is_significant:
        return False
    return is_worth_more(result, line) and line.score < line.relevance


def _sections(said: dict[str, Any]) -> dict[str, str]:
    """The sections of the page and their titles; without redundancy two have nothing to say."""
    titles = {**SECTIONS, **(OF_MCR if said["redundancy"] == "mcr" else {})}
    empty = () if said["redundancy"] else ("relevance", "redundancy")
    return {name: title for name, title in titles.items() if name not in empty}


def _kept_for(lines: Sequence[FeatureExplanation]) -> list[tuple[str, list[str]]]:
    """The features left, by the selected feature they repeat most; the longest list first."""
    sakes: dict[str, list[str]] = {}
    for line in lines:
        sakes.setdefault(str(line.redundant_with), []).append(line.feature)
    return sorted(sakes.items(), key=lambda item: -len(item[1]))


def _pictures(said: dict[str, Any]) -> list[str]:
    """The pictures there is something to see in."""
    there = {
        "ranking": True,
        "how_many": said["n_taken"] > 1,
        "relevance_redundancy": said["redundancy"] is not None,
        "redundancy": said["redundancy"] is not None and said["n_taken"] > 1,
        "settling": said["settled"] is not None,
        "timings": bool(said["timings"]),
    }
    return [name for name, yes in there.items() if yes]


def line_of(line: FeatureExplanation) -> FeatureExplanation:
    """A line of explain() with clean words."""
    words: dict[str, Any] = {name: clean(value) for name, value in vars(line).items() if isinstance(value, str)}
    return replace(line, **words)


def run_of(result: Result) -> dict[str, Any]:
    """How much of what was looked at."""
    return {
        "rows": result.n_rows,
        "features": len(result.weights),
        "constant": len(result.constant),
        "classes": len(result.classes),
        "told": told_from(result),
        "sample": result.sample_size,
        "sampling": result.settings["sampling"],
        "stopped": result.stop_reason,
        "neighbours": result.n_neighbors,
        "per_class": result.settings["neighborhood"] == "per_class",
        "batches": len(result.history),
        "pairs": int(result.n_pairs),
        "seed": result.seed,
    }


def _classes(result: Result) -> list[dict[str, Any]]:
    """The largest classes."""
    shares = zip(result.classes, result.priors.tolist(), strict=True)
    counted = [{"name": clean(c), "share": P, "rows": round(P * result.n_rows)} for c, P in shares]
    return sorted(counted, key=lambda c: -c["share"])[:CLASSES]


def _settings(settings: dict[str, Any]) -> list[dict[str, Any]]:
    known = {f.name: f for f in Settings.definitions()}
    return [
        {
            "name": name,
            "value": clean(value),
            "default": name in known and known[name].default == value,
            "doc": known[name].metadata["doc"] if name in known else "",
        }
        for name, value in settings.items()
    ]


def _groups(result: Result) -> list[list[str]]:
    """The groups of two and more, by the rank of their first; each by rank."""
    if result.settings["redundancy"] != "agreement":
        return []
    groups = sorted(sorted(group) for group in groups_of(result.redundancy) if len(group) > 1)
    return [_names(result, result.selected[group]) for group in groups]


def _settled(result: Result) -> dict[str, int] | None:
    """From which batch on the features of the largest weights, as many as were selected, stayed the same."""
    if len(result.history) < 2:
        return None
    n = min(len(result.selected), result.history.shape[1])
    best = [set(batch[:n].tolist()) for batch in result.history]
    batch = len(best)
    while batch > 1 and best[batch - 2] == best[-1]:
        batch -= 1
    return {"n": n, "batch": batch, "changed": len(best[-1] - best[-2]), "listed": result.history.shape[1]}


def _names(result: Result, features: Iterable[int]) -> list[str]:
    return [clean(result.feature_names[j]) for j in features]
