"""Why each feature was taken or left, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from belief.method.arrays import Array

if TYPE_CHECKING:
    from belief.result import Result

LEVEL = 0.05  # a feature with a larger q-value may be noise, as far as the sample tells
MUCH = 0.05  # of its relevance a feature must lose before it is said that it repeats another
COLUMNS = ("rank", "feature", "relevance", "q_value", "keeps", "score", "why")


class Explanation(list[dict[str, Any]]):
    """A table of a few lines, as a list of dictionaries that prints well."""

    def __str__(self) -> str:
        known = [name for name in COLUMNS if any(line[name] is not None for line in self)]
        lines = [known] + [[_cell(line, name) for name in known] for line in self]
        widths = [max(len(line[i]) for line in lines) for i in range(len(known))]
        return "\n".join("  ".join(x.ljust(w) for x, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _cell(line: dict[str, Any], name: str) -> str:
    value = line[name]
    if value is None:
        return "-"
    if name == "relevance" and line["error"] is not None:
        return f"{value:.3f} ± {line['error']:.3f}"
    if name == "q_value":
        return p_text(value)
    return percent(value) if name == "keeps" else f"{value:.3f}" if isinstance(value, float) else str(value)


def p_text(p: float) -> str:
    """A probability, to as many digits as matter."""
    return f"{p:.1e}" if p < 0.001 else f"{p:.2g}"


def percent(share: float) -> str:
    """A share, to as many digits as matter."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "under 1 %"


def explained(result: Result, features: Array | None = None) -> Explanation:
    """Say of features why they were taken or left: of all selected and watched ones, or of those named."""
    if features is None:
        features = np.concatenate([result.selected, result.watched[~np.isin(result.watched, result.selected)]])
    return Explanation([_line(result, int(j)) for j in features])


def _line(result: Result, j: int) -> dict[str, Any]:
    place = np.flatnonzero(result.selected == j)
    rank = int(place[0]) + 1 if len(place) else None
    repeated = _repeated(result, j, rank)
    score = float(result.scores[rank - 1]) if rank else _score_left(result, j, repeated)
    most = int(np.argmax(repeated)) if repeated is not None and repeated.max(initial=0.0) > 0 else None
    relevance = float(result.relevance[j])
    line = {
        "feature": result.feature_names[j],
        "index": j,
        "rank": rank,
        "relevance": relevance,
        "error": _finite(result.error_of_relevance[j]),
        "p_value": _finite(result.p_value[j]),
        "q_value": _finite(result.q_value[j]),
        "keeps": _keeps(result, relevance, score),
        "score": score,
        "repeats": None if most is None else result.feature_names[result.selected[most]],
        "agreement": None if repeated is None else float(repeated[most]) if most is not None else 0.0,
        "partner": _partner(result, rank),
    }
    return {**line, "why": _why(result, j, line)}


def _partner(result: Result, rank: int | None) -> str | None:
    """The selected feature it matters with."""
    partner = int(result.partner[rank - 1]) if rank else -1
    return result.feature_names[partner] if partner >= 0 else None


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def _repeated(result: Result, j: int, rank: int | None) -> Array | None:
    """What the feature repeats of each of the selected ones before it; None where that was not measured."""
    if result.settings["redundancy"] is None:
        return np.zeros(0)
    if rank is not None:
        return result.redundancy[: rank - 1, rank - 1]
    column = np.flatnonzero(result.watched == j)
    return result.watched_redundancy[:, int(column[0])] if len(column) else None


def _score_left(result: Result, j: int, repeated: Array | None) -> float | None:
    """J as it would be next."""
    if repeated is None:
        return None
    return float(result.rule.score_after(result.relevance[j], repeated))


def _keeps(result: Result, relevance: float, score: float | None) -> float | None:
    """The share of its relevance that nothing selected before repeats."""
    if result.settings["redundancy"] != "agreement" or score is None or relevance <= 0:
        return None
    return score / relevance


def _why(result: Result, j: int, line: dict[str, Any]) -> str:
    if j in result.constant:
        return "taken: constant, and nothing else was left" if line["rank"] else "left: constant"
    doubt = _doubt(line)
    if line["rank"]:
        return _why_taken(line, doubt) + (f"; matters with {line['partner']!r}" if line["partner"] else "")
    return _why_left(result, line, doubt)


def _doubt(line: dict[str, Any]) -> str | None:
    """That a feature may be noise, where it may."""
    p, q = line["p_value"], line["q_value"]
    if p is None or q is None or q <= LEVEL:
        return None
    told = f"p = {p:.2g}" if p > LEVEL else f"p = {p:.2g}, but of so many features q = {q:.2g}"
    return f"not distinguishable from noise ({told})"


def _repeats(line: dict[str, Any]) -> str | None:
    """That a feature repeats one selected before, where it loses by it."""
    if line["repeats"] is None:
        return None
    told = f"repeats {line['repeats']!r} at {line['agreement']:.2f}"
    if line["keeps"] is None:  # mCR: its numbers are relative, and subtracted
        return told if line["score"] < line["relevance"] else None
    return f"{told}: keeps {percent(line['keeps'])} of its relevance" if line["keeps"] < 1 - MUCH else None


def _why_taken(line: dict[str, Any], doubt: str | None) -> str:
    if doubt is not None:
        return f"taken to make up the number, but {doubt}"
    if line["rank"] == 1:
        return "taken: the most relevant"
    repeats = _repeats(line)
    return f"taken: the best left, though it {repeats}" if repeats else "taken: the best left"


def _why_left(result: Result, line: dict[str, Any], doubt: str | None) -> str:
    if doubt is not None:
        return f"left: {doubt}"
    repeats = _repeats(line)
    # more relevant than one that was taken: only what it repeats can have kept it out
    if repeats and line["relevance"] > result.relevance[result.selected].min(initial=np.inf):
        return f"left: {repeats}"
    return f"left: less relevant than those taken, and {repeats}" if repeats else "left: less relevant than those taken"
