"""The standard streams, and printing of results: as tables that fit the terminal, or as plain text elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from belief.comparison.comparison import Comparison, list_notes, list_rows, summarize
from belief.result import explanation
from belief.result.explanation import Explanation, FeatureExplanation
from belief.result.result import Result

MAX_SELECTED, MAX_OTHERS = 30, 8  # rows that are printed on a terminal
MIN_LAST_COLUMN = 30  # characters; for a narrower last column, SPARE_COLUMNS are left out, the first ones first
SPARE_COLUMNS = ("unique_share", "score", "best_class", "q_value", "seconds", "common", "frequency", "relevance")
GOOD, DOUBTFUL, OTHER = "green", "yellow", "dim"


def prepare_streams() -> None:
    """Open stdout and stderr if they are closed, and make them accept every character."""
    # If a standard stream is closed, the next file that is opened would get its number, so this opens os.devnull.
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")


def flush_or_discard(stream: TextIO) -> None:
    """Flush a stream; if that fails, redirect it to os.devnull, so that Python does not fail again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_result(result: Result, summary: str) -> None:
    """Print a summary of a result, and why features were selected or not."""
    lines, n = result.explain(), len(result.selected)
    if not _is_terminal():
        print(f"{summary}\n\n{lines}")
        return
    _print_text(f"{summary}\n")
    print_explanation(Explanation([*lines[: min(n, MAX_SELECTED)], *lines[n : n + MAX_OTHERS]]))
    hidden = [(n - MAX_SELECTED, "selected"), (len(lines) - n - MAX_OTHERS, "not selected")]
    if more := ", ".join(f"+{count:,} more {kind}" for count, kind in hidden if count > 0):
        _print_text(more, OTHER)


def print_explanation(lines: Explanation | FeatureExplanation) -> None:
    """Print why features, or one feature, were selected or not."""
    if not _is_terminal():
        print(lines)
    elif isinstance(lines, FeatureExplanation):
        _print_table([["", ""], *explanation.list_fields(lines)], ["bold"] * 99)
    else:
        styles = [OTHER if line.rank is None else GOOD if line.is_significant else DOUBTFUL for line in lines]
        _print_table(explanation.list_rows(lines), styles)


def print_comparison(found: Comparison) -> None:
    """Print the score of each selector, and which selectors differ significantly from the best."""
    if not _is_terminal():
        print(found)
        return
    _print_text(f"{summarize(found)}\n")
    _print_table(list_rows(found), [GOOD if s.selector in found.tied else "" for s in found.standings])
    for note in list_notes(found):
        _print_text(f"\n{note}")


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _console() -> Any:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False)  # respects NO_COLOR and TERM=dumb


def _print_text(text: str, style: str = "") -> None:
    from rich.text import Text

    _console().print(Text(text, style))


def _print_table(rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
    """Print rows of texts below the headings, which are the first row. The last column wraps.

    `styles` has the style of each row below the headings. The style OTHER applies to the whole row. Other styles apply
    to its first two cells, if the table has more than two columns.
    """
    from rich.table import Table
    from rich.text import Text

    console = _console()
    columns = _fitting_columns(rows, console.width)
    table = Table(box=None, show_header=any(rows[0]), pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for j in columns:
        table.add_column(
            Text(rows[0][j]), no_wrap=j != columns[-1], overflow="fold" if j == columns[-1] else "ellipsis"
        )
    for row, style in zip(rows[1:], styles, strict=False):
        cells = [Text(row[j], style if j < 2 and len(row) > 2 else "") for j in columns]
        table.add_row(*cells, style=OTHER if style == OTHER else "")
    console.print(table)


def _fitting_columns(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the columns that fit on a terminal of this width, with enough room for the last column."""
    columns = list(range(len(rows[0])))
    widths = [max(len(row[j]) for row in rows) + 2 for j in columns]
    for name in SPARE_COLUMNS:
        needed = sum(widths[j] for j in columns[:-1]) + min(MIN_LAST_COLUMN, widths[-1])
        if needed > width and name in rows[0]:
            columns.remove(rows[0].index(name))
    return columns
