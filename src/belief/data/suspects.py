"""Columns of text that look like something else: numbers, or names of rows."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import Any

from belief._utils.warnings import warn

FEW_ROWS = 50  # up to so many, a different text in each is nothing strange
NEARLY = 0.9  # of the rows, or of the texts
LOOKED_AT = 1000  # texts
NUMBER = re.compile(r"\s*[+-]?(\d+|\d{1,3}([.' ,]\d{3})+)?([.,]\d+)?([eE][+-]?\d+)?\s*")


def are_numbers(texts: Collection[Any]) -> bool:
    """Whether nearly all texts are numbers, written with a point or a comma."""
    some = [str(text) for text in islice(texts, LOOKED_AT)]
    return bool(some) and sum(map(is_number, some)) >= NEARLY * len(some)


def is_number(text: str) -> bool:
    """Whether a text is a number, written with a point or a comma."""
    return any(c.isdigit() for c in text) and NUMBER.fullmatch(text) is not None


def warn_of_text(column: str, texts: Collection[Any], n_rows: int) -> None:
    """Warn of a column that is text and looks like something else; `texts` are those in its filled rows."""
    fractions = [text for text in islice(texts, LOOKED_AT) if isinstance(text, str) and re.search(r"[.,]\d", text)]
    if 2 * len(fractions) > min(len(texts), LOOKED_AT) and are_numbers(texts):
        warn(
            f"{column} holds numbers written as text, such as {fractions[0]!r}, and each is taken for a name: write"
            " them with a point and nothing else, or name the column in discrete_features if they are names."
        )
    elif n_rows > FEW_ROWS and len(texts) > NEARLY * n_rows:
        warn(
            f"{column} has a different text in nearly every row ({len(texts):,} in {n_rows:,}), as IDs have: drop it,"
            " or name it in discrete_features if it is meant."
        )
