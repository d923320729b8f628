"""What may be wrong with a CSV file whose columns are not those that were expected."""

from __future__ import annotations

import math
from collections.abc import Sequence

SEPARATORS = (";", "\t", "|", ",")


def layout_hint(names: Sequence[str], separator: str = ",") -> str:
    """What would help, by the names that were read; nothing where nothing looks odd."""
    for other in SEPARATORS:
        if len(names) == 1 and other != separator and other in names[0]:
            return f"its columns look separated by {other!r}: say separator={other!r}."
    if names and 2 * sum(map(is_number, names)) >= len(names):
        return "its first line looks like values, not like names: say header=False, and they are c0, c1, ..."
    return ""


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes it."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
