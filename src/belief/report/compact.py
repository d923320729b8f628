"""A result, and why features were taken or left, as small tables with pictures for notebooks; needs no matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from belief._utils.text import escape_controls
from belief.report.canvas import LINES
from belief.report.content import columns_of, line_of, run_of
from belief.report.page import fill
from belief.report.portraits import shown
from belief.result.explanation import FeatureExplanation
from belief.result.result import Result

ROWS = 20


def compact(result: Result) -> str | None:
    """The selected features, the first 20 of them, with the numbers that the page has, their distributions, and why.

    None without Jinja2: that is how a notebook is told to show the repr instead.
    """
    n, lines = len(result.selected), result.explain()
    about: dict[str, Any] = {
        "run": run_of(result),
        "n_taken": n,
        "columns": columns_of(result, lines),
        "portraits": {each.feature: shown(result, each) for each in result.distributions[:ROWS]},
    }
    return _filled(lines[: min(ROWS, n)], about)


def small_table(lines: Sequence[FeatureExplanation]) -> str | None:
    """What is said of some features, with a bar for each; None without Jinja2."""
    known = [
        key for key in ("relevance", "q_value", "unique_share", "score") if any(line[key] is not None for line in lines)
    ]
    return _filled(lines, {"run": None, "n_taken": len(lines), "columns": known, "portraits": {}})


def _filled(lines: Sequence[FeatureExplanation], about: dict[str, Any]) -> str | None:
    if find_spec("jinja2") is None:
        return None
    said = [replace(line, feature=escape_controls(line.feature), reason=escape_controls(line.reason)) for line in lines]
    return fill("compact.html", {**about, "taken": [line_of(line) for line in said], "LINES": LINES})
