"""A result as a small table for notebooks; needs no matplotlib."""

from __future__ import annotations

from importlib.util import find_spec

from belief.report.content import columns_of, line_of, run_of
from belief.report.page import fill
from belief.result import Result

ROWS = 20


def compact(result: Result) -> str | None:
    """The selected features, the first 20 of them, with the numbers that the page has, and why.

    None without Jinja2: that is how a notebook is told to show the repr instead.
    """
    if find_spec("jinja2") is None:
        return None
    n, lines = len(result.selected), result.explain()
    taken = [line_of(line) for line in lines[: min(ROWS, n)]]
    return fill(
        "compact.html",
        {"run": run_of(result), "taken": taken, "n_taken": n, "columns": columns_of(result, lines)},
    )
