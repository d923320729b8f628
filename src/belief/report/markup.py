"""Pieces of HTML. All text is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from belief.report.words import listed

NAMES = 10  # in a sentence
TALL = 20  # lines of a table that scrolls in a box of its own


def text(given: object) -> str:
    """Text as HTML."""
    return escape(str(given), quote=True)


def paragraph(sentence: str) -> str:
    """A sentence of ours, without names, as a paragraph."""
    return f"<p>{text(sentence)}</p>"


def name(given: str) -> str:
    """The name of a feature or a class; one of blanks is shown in quotes."""
    return f'<span class="name">{text(given if given.strip() else repr(given))}</span>'


def names(given: Sequence[str]) -> str:
    """Some names in a sentence."""
    shown = [name(n) for n in given[:NAMES]]
    return listed(shown + ([f"{len(given) - NAMES:,} more"] if len(given) > NAMES else []))


def table(label: str, head: str, lines: Sequence[str], attributes: str = "") -> str:
    """A table in a box that scrolls by itself where the table is wider than the page, or tall."""
    kind = "box tall" if len(lines) > TALL else "box"
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    whole = f"<table{attributes}><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return f'<div class="{kind}" role="region" aria-label="{text(label)}" tabindex="0">{whole}</div>'


def figure(svg: dict[str, str], label: str, caption: str) -> str:
    """A picture for either width of screen."""
    both = "".join(f'<div class="{width}" role="img" aria-label="{text(label)}">{svg[width]}</div>' for width in svg)
    return f"<figure>{both}<figcaption>{text(caption)}</figcaption></figure>"
