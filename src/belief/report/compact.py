"""A result as a small table for notebooks; needs no matplotlib."""

from __future__ import annotations

from importlib.util import find_spec

from belief.report.content import line_of, run_of
from belief.report.page import fill
from belief.result import Result

ROWS = 20


def compact(result: Result) -> str | None:
    """The selected features, the first 20 of them, with relevance, what they paid, score and why.

    None without Jinja2: that is how a notebook is told to show the repr instead.
    """
    if find_spec("jinja2") is None:
        return None
    n = len(result.selected)
    said = {
        "run": run_of(result),
        "taken": [line_of(line) for line in result.explain()[: min(ROWS, n)]],
        "n_taken": n,
        "columns": ("relevance", "paid", "score") if result.settings["redundancy"] is not None else ("relevance",),
    }
    return fill("compact.html", said)
