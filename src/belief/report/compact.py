"""A result as a small table for notebooks; needs no matplotlib."""

from __future__ import annotations

from html import escape

from belief.report.words import clean, count
from belief.result import Result

ROWS = 20


def compact(result: Result) -> str:
    """The selected features, the first 20 of them, with relevance, what they paid, score and why."""
    lines = result.explain()[: min(ROWS, len(result.selected))]
    columns = ("relevance", "paid", "score") if result.settings["redundancy"] is not None else ("relevance",)
    head = "".join(f"<th>{name}</th>" for name in ("", "feature", *columns, "why"))
    body = "".join(_row(line, columns) for line in lines)
    more = len(result.selected) - len(lines)
    rest = f"<p>and {count(more, 'more feature')}: see <code>result.selected_names</code></p>" if more else ""
    caption = (
        f"<b>{len(result.selected):,} of {count(len(result.weights), 'feature')}</b> selected, from"
        f" {count(result.n_rows, 'row')} in {count(len(result.classes), 'class', 'classes')}; seed {result.seed}"
    )
    return f"<p>{caption}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _row(line: dict[str, object], columns: tuple[str, ...]) -> str:
    numbers = "".join(f"<td>{line[name]:.3f}</td>" for name in columns)
    words = [f'<td style="text-align: left">{escape(clean(line[name]))}</td>' for name in ("feature", "why")]
    return f"<tr><th>{line['rank']}</th>{words[0]}{numbers}{words[1]}</tr>"
