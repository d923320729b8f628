"""Diagnoses of common problems: wrong CSV options, Arrow's parse errors, numbers stored as text, unusable columns.

A column is unusable if it contains neither numbers nor categories, but lists, structs or free text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from belief._utils.text import escape_controls
from belief._utils.warnings import warn

SEPARATORS = (";", "\t", "|", ",")
ALMOST_ALL = 0.9  # the share of the values
MAX_CHECKED_TEXTS = 1000
MAX_SHOWN = 80  # characters of a value in a message
MAX_FREE_TEXT_ROWS = 10_000  # rows that are inspected
MIN_TEXTS = 50  # columns with fewer texts are never free text
MIN_DISTINCT_SHARE = 0.9  # of all texts
MIN_WORDS = 4  # in more than half of the texts
MAX_NAMED = 100  # columns in a warning
NUMBER = re.compile(r"\s*[+-]?(\d+|\d{1,3}([.' ,]\d{3})+)?([.,]\d+)?([eE][+-]?\d+)?\s*")
NOT_UTF8 = "is not valid UTF-8. Pass the encoding of the file, such as encoding='latin1'."


def suggest_csv_options(names: Sequence[str], separator: str = ",") -> str:
    """Return advice if the column names show that a CSV option is wrong; return "" if they look right."""
    for other in SEPARATORS:
        if len(names) == 1 and other != separator and other in names[0]:
            return f"The columns look separated by {other!r}. Pass separator={other!r}."
    if names and 2 * sum(map(is_float, names)) >= len(names):
        return "The first line looks like values, not like names. Pass header=False to name the columns c0, c1, ..."
    return ""


def suggest_fix(name: str) -> str:
    """Return advice on a column of numbers, named `name`, that contains a text."""
    return (
        f"Correct the value, leave it empty if it is missing, or pass discrete_features={[name]!r} to read the column"
        " as categories."
    )


def explain_csv_error(error: str, names: Sequence[str] | None, label: str | None = None) -> str | None:
    """Return a clearer message for Arrow's error while parsing a CSV file; None for errors of other kinds."""
    if "Empty CSV file" in error:
        return "the file is empty."
    if "straddl" in error:
        return "it has a line of more than 1 GB, perhaps because a quote is not closed. Correct the line."
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", error)
    if ragged:
        return f"line {ragged[1]} has {ragged[3]} columns, but the lines before have {ragged[2]}."
    conversion = re.search(
        r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid (\w+)", error
    )
    if conversion is None:
        return None
    column, line, kind, problem = conversion.groups()
    name = names[int(column)] if names else f"number {column}"
    where = f"line {line}, " if line else ""
    if problem == "UTF8":
        return f"{where}column {name!r} {NOT_UTF8}"
    value = error[error.index("invalid value '") + 15 :].rsplit("'", 1)[0]
    expected = "booleans" if kind == "bool" else "numbers"
    fix = "Correct the value." if name == label else suggest_fix(name)
    if name == label and kind.startswith("int") and is_float(value):
        fix = "Correct the value, or pass task='regression'."
    return f"{where}column {name!r} has the value {shorten(value)!r}, but {expected} in the lines before. {fix}"


def shorten(text: str) -> str:
    """Cut a text to 80 characters, for a message."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def is_float(text: str) -> bool:
    """Return True if Python can parse a text as a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def are_numbers(texts: Collection[Any]) -> bool:
    """Return True if almost all texts are numbers, written with a decimal point or a decimal comma."""
    some = [str(text) for text in islice(texts, MAX_CHECKED_TEXTS)]
    numbers = sum(any(c.isdigit() for c in text) and NUMBER.fullmatch(text) is not None for text in some)
    return bool(some) and numbers >= ALMOST_ALL * len(some)


def warn_of_numbers_as_text(column: str, texts: Collection[Any]) -> None:
    """Warn if `texts`, the distinct values of a text column, look like numbers."""
    some = islice(texts, MAX_CHECKED_TEXTS)
    fractions = [text for text in some if isinstance(text, str) and re.search(r"[.,]\d", text)]
    if 2 * len(fractions) > min(len(texts), MAX_CHECKED_TEXTS) and are_numbers(texts):
        warn(
            f"{column} contains numbers stored as text, such as {fractions[0]!r}, and is treated as categories. Convert"
            " it to a numeric column (with points as decimal separators), or add it to discrete_features if the values"
            " are categories."
        )


def warn_of_similar_classes(classes: Sequence[Any], name: str) -> None:
    """Warn if two classes differ only in white space, because they are probably the same class."""
    seen: dict[str, str] = {}
    for text in (c for c in classes if isinstance(c, str)):
        other = seen.setdefault(" ".join(text.split()), text)
        if other != text:
            warn(
                f"{name} has the classes {other!r} and {text!r}, which differ only in white space. Correct the spelling"
                " if they are the same class."
            )
            return


def is_free_text(texts: Sequence[Any]) -> bool:
    """Return True if a column is free text: nearly all of its texts are distinct, and most have several words.

    Missing texts (None) are ignored.
    """
    present = [text for text in texts[:MAX_FREE_TEXT_ROWS] if isinstance(text, str)]
    if len(present) <= MIN_TEXTS or len(set(present)) < MIN_DISTINCT_SHARE * len(present):
        return False
    return 2 * sum(len(text.split()) >= MIN_WORDS for text in present) > len(present)


def warn_of_left_out(
    reasons: Mapping[str, str], n_columns: int, source: str = "X", remedy: str = "add {} to drop"
) -> None:
    """Warn of columns that are left out; raise a ValueError if no column remains.

    Parameters
    ----------
    reasons : for each column that is left out, a phrase for its content, such as "free text"
    n_columns : the number of all columns
    source : the table or file
    remedy : how to avoid the warning; {} is replaced by "it" or "them"
    """
    if not reasons:
        return
    names = [f"{escape_controls(name)!r} ({reason})" for name, reason in [*reasons.items()][:MAX_NAMED]]
    more = f" and {len(reasons) - MAX_NAMED} more" if len(reasons) > MAX_NAMED else ""
    count, verb, them = ("1 column", "is", "it") if len(reasons) == 1 else (f"{len(reasons)} columns", "are", "them")
    advice = []
    if set(reasons.values()) - {"free text"}:
        advice.append(f"convert {them} to columns of numbers or categories")
    if "free text" in reasons.values():
        advice.append(
            "turn free text into numbers, for example with scikit-learn's TfidfVectorizer, or add its column to"
            " discrete_features to treat the texts as categories"
        )
    message = f"{count} {verb} left out: {', '.join(names)}{more}. To use {them}, {'; '.join(advice)}."
    if len(reasons) == n_columns:
        raise ValueError(f"{source} has no usable column. {message}")
    warn(f"{source}: {message} To avoid this warning, {remedy.format(them)}.")
