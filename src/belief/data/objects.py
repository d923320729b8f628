"""Python objects in a column: which are missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from belief.method.arrays import Array


def is_missing(values: Iterable[Any]) -> Array:
    """Which values are None, NaN, NaT or NA."""
    return np.array([_missing(v) for v in values], bool)


def _missing(v: Any) -> bool:
    if v is None:
        return True
    try:
        return bool(v != v)
    except TypeError:  # pandas.NA will not say whether it is itself
        return True
