"""The tables of features, which the page's script makes sortable and searchable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from belief.report.markup import name, paragraph, table, text

LABELS = {"taken": "The selected features", "left": "The watched features that were left"}
SMALLEST_FIRST = ("rank", "feature")  # when sorted by


def feature_table(kind: str, lines: Sequence[dict[str, Any]], there: int, redundancy: bool) -> str:
    """The features taken or left, the first of all that are `there`."""
    columns = (["rank"] if kind == "taken" else []) + ["feature", "relevance"]
    columns += ["paid", "score", "at"] if redundancy else []
    head = "".join(_head(key, kind) for key in columns)
    more = paragraph(f"The first {len(lines):,} of {there:,}.") if len(lines) < there else ""
    rows = ["".join(_cell(line, key) for key in columns) for line in lines]
    return more + table(LABELS[kind], head, rows, f' class="live" id="{kind}-table"')


def _head(key: str, kind: str) -> str:
    title = "would pay" if key == "paid" and kind == "left" else key
    first = "ascending" if key in SMALLEST_FIRST else "descending"
    return f'<th scope="col" data-first="{first}"{"" if key == "feature" else " class=n"}>{title}</th>'


def _cell(line: dict[str, Any], key: str) -> str:
    """`data-value` is what the column is sorted by."""
    value = line[key]
    if key == "feature":
        why = line["why"].partition(": ")[2]
        return f'<td class="feature" data-value="{text(value)}">{name(value)}<span class="why">{text(why)}</span></td>'
    return f'<td class="n" data-value="{value:.9g}">{value if key == "rank" else f"{value:.3f}"}</td>'
