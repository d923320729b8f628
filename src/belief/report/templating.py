"""Jinja2 templates of the report, and of the small HTML tables in notebooks.

page.html is the frame of the report, sections/ contains one file per section, macros.html contains the shared parts,
and compact.html is the table for notebooks. Templates escape everything that they print, except figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from belief._utils.optional import import_optional
from belief._utils.text import escape_controls, format_percent, format_probability
from belief.comparison.comparison import Comparison, list_notes, list_rows, summarize
from belief.method.relevance import WEAK
from belief.report import text
from belief.report.canvas import LINES
from belief.report.content import clean_texts, collect_findings, describe_run, table_columns
from belief.report.distributions import describe_distribution
from belief.report.findings import Name
from belief.result.explanation import FeatureExplanation
from belief.result.result import Result

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_NOTEBOOK_ROWS = 20


def render_template(template: str, content: dict[str, Any]) -> str:
    """Fill a template with its content, and return the text."""
    return _environment().get_template(template).render(content)


@cache
def _environment() -> Environment:
    jinja2 = import_optional("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("belief.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["name"] = lambda part: isinstance(part, Name)
    shared = {"text": text, "format_probability": format_probability, "format_percent": format_percent}
    environment.globals |= {**shared, "WEAK": WEAK}
    return environment


def render_result_table(result: Result) -> str | None:
    """Return HTML for notebooks: the findings, and a table of the first features with distributions and reasons.

    Return None if Jinja2 is not installed; the notebook then shows the repr.
    """
    n, lines = len(result.selected), result.explain()
    context = {
        **collect_findings(result, [clean_texts(line) for line in lines]),
        "run": describe_run(result),
        "n_selected": n,
        "columns": table_columns(result, lines),
        "others": _escape(lines[n : n + MAX_NOTEBOOK_ROWS]),
        "distributions": {
            each.feature: describe_distribution(result, each) for each in result.distributions[:MAX_NOTEBOOK_ROWS]
        },
    }
    return _render_table(lines[: min(MAX_NOTEBOOK_ROWS, n)], context)


def render_explanation_table(lines: Sequence[FeatureExplanation]) -> str | None:
    """Return an HTML table for notebooks with explanations of features, each with a bar; None without Jinja2."""
    keys = ("relevance", "q_value", "unique_share", "score")
    known = [key for key in keys if any(line[key] is not None for line in lines)]
    context: dict[str, Any] = {
        "run": None,
        "n_selected": len(lines),
        "columns": known,
        "others": [],
        "distributions": {},
    }
    return _render_table(lines, context)


def render_comparison_table(found: Comparison) -> str | None:
    """Return an HTML table for notebooks with the selectors of a comparison and bars of scores; None without Jinja2."""
    if find_spec("jinja2") is None:
        return None
    scores = [s.by_fold for s in found.standings] + ([found.all_features] if found.all_features else [])
    ends = [(mean - spread, mean, mean + spread) for mean, spread in ((np.mean(x), np.std(x)) for x in scores)]
    low, high = min(x[0] for x in ends), max(x[2] for x in ends)
    scale = [[round(200 * float((x - low) / ((high - low) or 1.0)), 1) for x in each] for each in ends]
    parts = {"summary": summarize(found), "rows": list_rows(found), "notes": list_notes(found)}
    return render_template("comparison.html", {**parts, "scale": scale})


def _render_table(lines: Sequence[FeatureExplanation], context: dict[str, Any]) -> str | None:
    if find_spec("jinja2") is None:
        return None
    key = "belief" + format(crc32(repr(lines).encode(errors="replace")), "x")  # equal tables get equal ids
    return render_template("compact.html", {**context, "selected": _escape(lines), "LINES": LINES, "id": key})


def _escape(lines: Sequence[FeatureExplanation]) -> list[FeatureExplanation]:
    """Return explanations without line breaks and with escaped control characters."""
    safe = [replace(line, feature=escape_controls(line.feature), reason=escape_controls(line.reason)) for line in lines]
    return [clean_texts(line) for line in safe]
