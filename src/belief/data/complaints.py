"""What Arrow says of a line of CSV, in words that help."""

from __future__ import annotations

import re
from collections.abc import Sequence

from belief.data.hints import is_number

NOT_UTF8 = "is not text in UTF-8: say in which encoding it is, with encoding='latin1' for example."


def cures(name: str) -> str:
    """What to do about a word among numbers."""
    return f"mend it, leave it empty if it is missing, or take the column as names with discrete_features={[name]!r}."


def explained(said: str, names: Sequence[str] | None, label: str | None = None) -> str | None:
    """What Arrow says of a line, in words; None where it is about something else."""
    if "Empty CSV file" in said:
        return "the file is empty."
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if ragged:
        return f"line {ragged[1]} has {ragged[3]} columns, the lines before it {ragged[2]}."
    odd = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid (\w+)", said)
    if odd is None:
        return None
    name = names[int(odd[1])] if names else f"number {odd[1]}"
    where = f"line {odd[2]}, " if odd[2] else ""
    if odd[4] == "UTF8":
        return f"{where}column {name!r} {NOT_UTF8}"
    value = said[said.index("invalid value '") + 15 :].rsplit("'", 1)[0]
    what = "yes and no" if odd[3] == "bool" else "numbers"
    whole = ", or say task='regression'" if odd[3].startswith("int") and is_number(value) else ""
    remedy = f"mend it{whole}." if name == label else cures(name)
    return f"{where}column {name!r} has {value!r}, but {what} before: {remedy}"
