"""Columns that are neither numbers nor categories (lists, structs, free text), which are left out with one warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from belief._utils.text import escape_controls
from belief._utils.warnings import warn

MAX_ROWS = 10_000  # whether a column is free text is decided by its first rows
MIN_TEXTS = 50  # fewer rows cannot show whether texts repeat
MOST = 0.9  # the share of distinct texts
MIN_WORDS = 4  # in most texts
MAX_NAMED = 100


def is_free_text(texts: Sequence[Any]) -> bool:
    """Return True if the texts of a column are free text: nearly all differ, and most have several words.

    None stands for a missing text.
    """
    present = [text for text in texts[:MAX_ROWS] if isinstance(text, str)]
    if len(present) <= MIN_TEXTS or len(set(present)) < MOST * len(present):
        return False
    return 2 * sum(len(text.split()) >= MIN_WORDS for text in present) > len(present)


def warn_of_left_out(
    reasons: Mapping[str, str], n_columns: int, source: str = "X", remedy: str = "add {} to drop"
) -> None:
    """Warn of the columns that are left out, with advice how to use them or avoid the warning.

    Parameters
    ----------
    reasons : the content of each omitted column, such as "free text", by column name
    n_columns : the number of all columns; a ValueError is raised if all are omitted
    source : the table or file
    remedy : how to avoid the warning, with {} for "it" or "them"
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
            "turn free text into numbers, for example with scikit-learn's TfidfVectorizer, or add it to"
            " discrete_features to use it as categories"
        )
    message = (
        f"{count} {verb} left out: {', '.join(names)}{more}. To use {them}, {'; '.join(advice)}. To avoid this warning,"
        f" {remedy.format(them)}."
    )
    if len(reasons) == n_columns:
        raise ValueError(f"{source} has no usable column. {message}")
    warn(f"{source}: {message}")
