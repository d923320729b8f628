"""What may be sent to a terminal: names come from files, and a terminal obeys what some characters say."""

from __future__ import annotations

import unicodedata

OBEYED = ("Cc", "Cs", "Zl", "Zp")  # control, surrogate, line and paragraph separators, as Unicode names them
TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # the direction in which text is read


def shown(text: object) -> str:
    """Text on one line, what a terminal would obey as Python writes it in a string."""
    return "".join(c.encode("unicode_escape").decode() if _is_obeyed(c) else c for c in str(text))


def _is_obeyed(c: str) -> bool:
    return unicodedata.category(c) in OBEYED or unicodedata.bidirectional(c) in TURNS
