"""Why each feature was taken or left, in words."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.terminal import shown
from belief.method.arrays import Array
from belief.method.confidence import LEVEL as FOUND

if TYPE_CHECKING:
    from belief.result.result import Result

LEVEL = 0.05  # a feature with a larger q-value may be noise, as far as the sample tells
MUCH = 0.05  # of its relevance a feature must lose before it is said that it repeats another
SMALLEST = 1e-16  # a smaller probability is a figure of speech
Line = dict[str, Any]  # what is said of one feature
COLUMNS = ("rank", "feature", "relevance", "q_value", "unique_share", "score", "reason")


class Explanation(list[Line]):
    """A table of a few lines, as a list of dictionaries that prints well."""

    def __str__(self) -> str:
        return aligned(self._table())

    def _repr_html_(self) -> str:
        """For notebooks: with bars where Jinja2 is installed."""
        from belief.report.compact import small_table

        return small_table(self) or html_table(self._table())

    def _table(self) -> list[list[str]]:
        """The headings, and the cells of each line."""
        known = [name for name in COLUMNS if any(line[name] is not None for line in self)]
        return [known] + [[shown(_cell(line, name)) for name in known] for line in self]


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns, for a terminal."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def html_table(lines: Sequence[Sequence[str]]) -> str:
    """The same for a notebook; the first line holds the headings."""
    head, *rest = [_html("th" if i == 0 else "td", line) for i, line in enumerate(lines)]
    return f"<table><thead>{head}</thead><tbody>{''.join(rest)}</tbody></table>"


def _html(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align: left'>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _cell(line: Line, name: str) -> str:
    value = line[name]
    if value is None:
        return "-"
    if name == "relevance" and line["error"] is not None:
        return f"{value:.3f} ± {line['error']:.3f}"
    if name == "q_value":
        return p_text(value)
    return percent(value) if name == "unique_share" else f"{value:.3f}" if isinstance(value, float) else str(value)


def p_text(p: float) -> str:
    """A probability, to as many digits as matter."""
    if p < SMALLEST:
        return f"< {SMALLEST:.0e}"
    return f"{p:.1e}" if p < 0.001 else f"{p:.2g}"


def percent(share: float) -> str:
    """A share, to as many digits as matter."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "under 1 %"


def explained(result: Result, features: Array | None = None) -> Explanation:
    """Say of features why they were taken or left: of all selected and watched ones, or of those named."""
    if features is None:
        features = np.concatenate([result.selected, result.watched[~np.isin(result.watched, result.selected)]])
    return Explanation([_line(result, int(j)) for j in features])


def _line(result: Result, j: int) -> Line:
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
        "unique_share": _keeps(result, relevance, score),
        "score": score,
        "redundant_with": None if most is None else result.feature_names[result.selected[most]],
        "agreement": None if repeated is None else float(repeated[most]) if most is not None else 0.0,
        "p_univariate": _finite(result.p_univariate[j]),
        "partner": _partner(result, rank),
    }
    return {**line, "reason": _why(result, j, line)}


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
    if result.settings["redundancy"] is None:
        return float(result.relevance[j])
    return float(result.rule.score_next(result.relevance[j], repeated))


def _keeps(result: Result, relevance: float, score: float | None) -> float | None:
    """The share of its relevance that nothing selected before repeats."""
    if result.settings["redundancy"] != "agreement" or score is None or relevance <= 0:
        return None
    return score / relevance


def _why(result: Result, j: int, line: Line) -> str:
    if j in result.constant:
        return "taken: constant, and nothing else was left" if line["rank"] else "left: constant"
    doubt = _doubt(line)
    if line["rank"]:
        return _why_taken(line, doubt) + ("" if doubt else _together(line))
    return _why_left(result, line, doubt)


def _together(line: Line) -> str:
    """That a feature matters with another, or says nothing alone, where it does."""
    silent = line["p_univariate"] is not None and line["p_univariate"] > LEVEL
    if line["partner"]:
        says = f"says nothing alone (p = {line['p_univariate']:.2g}) but " if silent else ""
        return f"; {says}matters with {line['partner']!r}"
    return f"; says nothing alone (p = {line['p_univariate']:.2g}) but matters with others" if silent else ""


def is_doubtful(line: Line) -> bool:
    """Whether noise is likely to do as well, as far as the sample tells."""
    return line["q_value"] is not None and line["q_value"] > LEVEL


def is_worth_more(result: Result, line: Line) -> bool:
    """Whether a feature is worth more than the last one taken, but for what it repeats."""
    return bool(line["relevance"] > result.scores.min(initial=np.inf))


def _doubt(line: Line) -> str | None:
    """That a feature may be noise, where it may."""
    if not is_doubtful(line) or line["p_value"] is None:
        return None
    p, q = line["p_value"], line["q_value"]
    told = f"p = {p:.2g}" if p > LEVEL else f"p = {p:.2g}, but of so many features q = {q:.2g}"
    return f"not distinguishable from noise ({told})"


def _repeats(line: Line) -> str | None:
    """That a feature repeats one selected before, where it loses by it."""
    if line["redundant_with"] is None:
        return None
    if line["unique_share"] is None:  # mCR: its numbers are relative, and only what it subtracts can be compared
        lost = line["relevance"] - line["score"]
        return f"loses {lost:.2f} by mCR, most of all to {line['redundant_with']!r}" if lost > 0 else None
    told = f"repeats {line['redundant_with']!r} at {line['agreement']:.2f}"
    return (
        f"{told}: keeps {percent(line['unique_share'])} of its relevance" if line["unique_share"] < 1 - MUCH else None
    )


def _why_taken(line: Line, doubt: str | None) -> str:
    if doubt is not None:
        return f"taken for want of better, but {doubt}"
    if line["rank"] == 1:
        alike = line["relevance"] <= 0
        return "taken for want of better: no feature is more relevant" if alike else "taken: the most relevant"
    repeats = _repeats(line)
    return f"taken: the best left, though it {repeats}" if repeats else "taken: the best left"


def _why_left(result: Result, line: Line, doubt: str | None) -> str:
    if doubt is not None:
        return f"left: {doubt}"
    repeats = _repeats(line)
    if result.settings["n_features_to_select"] == "auto":
        return _why_not_found(line, repeats)
    if is_worth_more(result, line):
        return f"left: {repeats or 'repeats those taken (how much was not kept)'}"
    return f"left: less relevant than those taken, and {repeats}" if repeats else "left: less relevant than those taken"


def _why_not_found(line: Line, repeats: str | None) -> str:
    """Why a feature is none of those that stand, where their number was to be found."""
    if line["q_value"] is not None and line["q_value"] > FOUND:
        return f"left: too likely to be noise (q = {p_text(line['q_value'])})"
    return f"left: {repeats or 'what others leave of it cannot be told from noise'}"
