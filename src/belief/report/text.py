"""Formatting of names and numbers for figures and pages, and the sentences that are shown instead of empty figures."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # Unicode categories: control, surrogate, line and paragraph separators

NO_REDUNDANCY = "Redundancy was not measured: the features are ranked by relevance alone (redundancy=None)."
ONE_BATCH = "The sample was taken in one batch, so the stability of the ranking is unknown."
ONE_FEATURE = "Only one feature was selected, so there is no redundancy to show."
NO_CLASSES = "This result has no relevance by class: the target is numeric."
NO_STABILITY = "The stability of the selection was not computed: pass stability=50, for example."
NO_TIMINGS = "This result has no timings."
NO_INTERACTIONS = "No interactions were found among the selected features."
NO_PAIR = (
    "The result contains values only of the first six interacting pairs, and this feature is not in one of these pairs."
)
NO_DISTRIBUTION = "The result contains only the distributions of the first 100 selected features, and not of this one."
STOP_REASONS = {  # by Result.stop_reason
    "converged": "a larger sample would most likely select the same features",
    "equivalent": "a larger sample would find little more",
    "limit": "a larger sample would take too long",
    "all rows": "there are no more rows",
    "fixed": "the number requested",
}


def clean(name: object) -> str:
    """Return a name on one line: line breaks, control characters and lone surrogates become spaces."""
    return "".join(" " if c in "\ufffe\uffff" or unicodedata.category(c) in UNSHOWN else c for c in str(name))


def visible(name: str) -> str:
    """Return a name; put it in quotes if it consists only of spaces."""
    return name if name.strip() else repr(name)


def shorten(name: object, length: int) -> str:
    """Shorten a name to `length` characters by cutting its middle, because long names often differ at the end."""
    name = clean(name)
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[len(name) - tail :]}"


def shorten_distinct(names: Iterable[object], length: int) -> list[str]:
    """Shorten names to `length` characters so that different names stay different."""
    whole = [clean(name) for name in names]
    out = {name: shorten(name, length) for name in whole}
    for similar in _ambiguous(out):
        for name in similar:  # keep the beginning, and a piece at each position where the name differs from another
            others = ((other, min(len(name), len(other))) for other in similar if other != name)
            positions = sorted({next((i for i in range(n) if name[i] != other[i]), n) for other, n in others})
            room = max(1, (length - len(positions) - 1) // (len(positions) + 1))
            kept = {*range(room)}
            for position in positions:
                start = max(0, min(position - 1, len(name) - room)) if room > 2 else position
                kept |= {*range(start, min(start + room, len(name)))}
            runs = [("" if t == 0 or t - 1 in kept else "…") + name[t] for t in sorted(kept)]
            out[name] = ("".join(runs) + "…" * (len(name) - 1 not in kept))[:length]
    # names that remain equal, because they differ in too many positions, get a number
    rest = [name for similar in _ambiguous(out) for name in similar]
    marks = {name: f"~{i}" for i, name in enumerate(rest, 1)}
    out.update({name: shorten(name, length - len(mark)) + mark for name, mark in marks.items()})
    return [out[name] for name in whole]


def _ambiguous(texts: Mapping[str, str]) -> list[list[str]]:
    """Return the groups of different names with equal shortened texts."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 row, 2 rows, 12,000 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def format_share(x: float) -> str:
    """Return a share as text in per cent, with enough digits to differ from 0 and 100 %."""
    if x in (0, 1):
        return f"{x:.0%}".replace("%", " %")
    return f"{100 * x:.1f} %" if 0.0005 <= x < 0.9995 else ("< 0.1 %" if x < 0.5 else "> 99.9 %")


def format_percent_of(x: float) -> str:
    """Return a share as text in whole per cent."""
    return f"{100 * x:.0f} %" if x == 0 or 0.005 <= x <= 0.995 or x == 1 else ("< 1 %" if x < 0.5 else "> 99 %")


def format_number(x: float) -> str:
    """Return a number as text with three significant digits."""
    return f"{x:,.0f}" if abs(x) >= 1000 and abs(x) < 1e9 else f"{x:.3g}"


def format_seconds(s: float) -> str:
    """Return a duration as text in ms or s."""
    if s < 0.9995:
        return f"{1000 * s:.1f} ms" if s < 0.00995 else f"{1000 * s:.0f} ms"
    return f"{s:.1f} s" if s < 99.95 else f"{s:,.0f} s"
