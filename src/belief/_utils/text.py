"""Formatting of text, tables and numbers for terminals and notebooks."""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from html import escape

CONTROL_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")  # control, surrogate, line and paragraph separators
MIN_WRAPPED = 20  # characters; narrower columns do not wrap
BIDI_CONTROLS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
SMALLEST_PROBABILITY = 1e-16  # smaller probabilities are displayed as "< 1e-16"


def escape_controls(text: object) -> str:
    """Return a text with control characters escaped, so that names from files cannot send commands to a terminal."""
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in CONTROL_CATEGORIES or unicodedata.bidirectional(c) in BIDI_CONTROLS
        else c
        for c in str(text)
    )


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as text, aligned in columns. On a terminal, the last column wraps."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rest = shutil.get_terminal_size().columns - sum(widths[:-1]) - 2 * len(widths) + 1
    if sys.stdout is not None and sys.stdout.isatty() and MIN_WRAPPED <= rest < widths[-1]:
        wrapped = [(row, textwrap.wrap(row[-1], rest) or [""]) for row in rows]
        blank = [""] * (len(widths) - 1)
        rows = [[*(blank if i else row[:-1]), line] for row, lines in wrapped for i, line in enumerate(lines)]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def format_html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as an HTML table; the first row holds the headings."""
    lines = []
    for i, row in enumerate(rows):
        tag = "td" if i else "th"
        cells = "".join(f"<{tag} style='text-align: left'>{escape(cell)}</{tag}>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    return f"<table><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody></table>"


def format_probability(p: float) -> str:
    """Return a p-value or q-value as text, with two significant digits."""
    if p < SMALLEST_PROBABILITY:
        return f"< {SMALLEST_PROBABILITY:.0e}"
    return f"{p:.1e}" if p < 0.001 else f"{p:.2g}"


def format_percent(share: float) -> str:
    """Return a share as text, in whole per cent."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "< 1 %"


def print_message(message: str) -> None:
    """Print a message of the command line on stderr, if stderr is open."""
    with contextlib.suppress(OSError):
        print(f"belief: {escape_controls(message)}", file=sys.stderr, flush=True)
