"""Names and numbers as the pictures and the page show them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # control, surrogate, line and paragraph separators, as Unicode names them

NO_REDUNDANCY = "This run ranked by relevance alone (redundancy=None): no redundancy was measured."
ONE_BATCH = "The sample was taken in one batch, so there is no way to see the ranking settle."
ONE_FEATURE = "Only one feature was selected: there is no other for it to repeat."
NO_TIMINGS = "This result has no timings."
NO_PORTRAITS = "This result has no distributions: it is of an older version."
ONE_FEATURE_ENOUGH = "Only one feature was selected."
NO_PORTRAIT = "Of this feature no distribution was kept: it was not selected, or by an older version of belief."
STOPPED = {  # by Result.stop_reason
    "converged": "a larger sample would most likely select the same features",
    "equivalent": "a larger sample would find little more",
    "limit": "a larger sample would take too long",
    "all rows": "there are no more rows",
    "fixed": "as many as were asked for",
}


def clean(name: object) -> str:
    """A name on one line: what no page can hold (line breaks, control characters, halves of characters) is a space."""
    return "".join(" " if c in "\ufffe\uffff" or unicodedata.category(c) in UNSHOWN else c for c in str(name))


def visible(name: str) -> str:
    """A name, in quotes if it is of blanks alone."""
    return name if name.strip() else repr(name)


def short(name: object, length: int) -> str:
    """A name cut to `length` characters in its middle, since names that are long often differ at the end."""
    name = clean(name)
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[len(name) - tail :]}"


def told_apart(names: Iterable[object], length: int) -> list[str]:
    """Names cut to `length` characters, those that differ to texts that differ: they are cut where they are alike."""
    whole = [clean(name) for name in names]
    out = {name: short(name, length) for name in whole}
    for rivals in _alike(out):
        out.update({name: _pieces(name, _differences(name, rivals), length) for name in rivals})
    rest = [name for rivals in _alike(out) for name in rivals]  # they differ in too many places: by number
    marks = {name: f"~{i}" for i, name in enumerate(rest, 1)}
    out.update({name: short(name, length - len(mark)) + mark for name, mark in marks.items()})
    return [out[name] for name in whole]


def _alike(texts: Mapping[str, str]) -> list[list[str]]:
    """The names that have a text in common."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _differences(name: str, rivals: Iterable[str]) -> list[int]:
    """The places at which a name begins to differ from others."""
    return sorted({_first_difference(name, other) for other in rivals if other != name})


def _first_difference(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _pieces(name: str, places: list[int], length: int) -> str:
    """The beginning of a name and a piece at each of some places, as long as there is room for."""
    room = max(1, (length - len(places) - 1) // (len(places) + 1))
    kept = {*range(room)}
    for place in places:
        start = max(0, min(place - 1, len(name) - room)) if room > 2 else place
        kept |= {*range(start, min(start + room, len(name)))}
    runs = [("" if t == 0 or t - 1 in kept else "…") + name[t] for t in sorted(kept)]
    return ("".join(runs) + "…" * (len(name) - 1 not in kept))[:length]


def count(n: int, one: str, many: str | None = None) -> str:
    """1 row, 2 rows, 12,000 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def share(x: float) -> str:
    """A share in per cent, with as many digits as tell it from 0 and from all."""
    if x in (0, 1):
        return f"{x:.0%}".replace("%", " %")
    return f"{100 * x:.1f} %" if 0.0005 <= x < 0.9995 else ("< 0.1 %" if x < 0.5 else "> 99.9 %")


def percent_of(x: float) -> str:
    """A share in whole per cent."""
    return f"{100 * x:.0f} %" if x == 0 or 0.005 <= x <= 0.995 or x == 1 else ("< 1 %" if x < 0.5 else "> 99 %")


def figure(x: float) -> str:
    """A number of a table, to as many digits as are read."""
    return f"{x:,.0f}" if abs(x) >= 1000 and abs(x) < 1e9 else f"{x:.3g}"


def seconds(s: float) -> str:
    """A time in the unit that suits it."""
    if s < 0.9995:
        return f"{1000 * s:.1f} ms" if s < 0.00995 else f"{1000 * s:.0f} ms"
    return f"{s:.1f} s" if s < 99.95 else f"{s:,.0f} s"
