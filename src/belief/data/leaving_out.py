"""Detection of columns that are neither numbers nor categories (lists, structs, free text), and a warning of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from belief._utils.text import escape_controls
from belief._utils.warnings import warn

MAX_ROWS = 10_000  # rows that are inspected
MIN_TEXTS = 50  # columns with fewer texts are never free text
MIN_DISTINCT_SHARE = 0.9  # of all texts
MIN_WORDS = 4  # in more than half of the texts
MAX_NAMED = 100


def is_free_text(texts: Sequence[Any]) -> bool:
    """Return True if a column is free text: nearly all of its texts are distinct, and most have several words.

    Missing texts (None) are ignored.
    """
    present = [text for text in texts[:MAX_ROWS] if isinstance(text, str)]
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
