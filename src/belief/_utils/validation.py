"""Tests of single values, and helpers for error messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np


def is_integer(x: object) -> bool:
    """Return True if x is an integer of any type; booleans are not integers."""
    return isinstance(x, Integral) and not isinstance(x, bool | np.bool_)


def is_real(x: object) -> bool:
    """Return True if x is a finite number of any type; booleans are not numbers."""
    try:
        return isinstance(x, Real) and not isinstance(x, bool | np.bool_) and math.isfinite(x)
    except OverflowError:  # an integer beyond the range of floats
        return False


def is_count(x: Any) -> bool:
    """Return True if x is an integer of at least 1."""
    return is_integer(x) and x >= 1


def is_share(x: Any) -> bool:
    """Return True if x is a float in (0, 1]. The integer 1 is a count and not a share."""
    return is_real(x) and not is_integer(x) and 0 < x <= 1


def is_weights(x: Any) -> bool:
    """Return True if x is a mapping that is not empty, and all its values are numbers of at least 0."""
    return isinstance(x, Mapping) and bool(x) and all(is_real(v) and v >= 0 for v in x.values())


def one_of(*options: object) -> Callable[[Any], bool]:
    """Return a function that tests whether a value is one of the options."""
    return lambda x: any(x is o or (isinstance(x, str) and x == o) for o in options)


def words_of(*options: object) -> str:
    """Join options to a phrase for messages, such as "'a', 'b' or 'c'"."""
    *first, last = map(repr, options)
    return f"{', '.join(first)} or {last}"


def did_you_mean(name: object, known: list[str]) -> str:
    """Return " (did you mean ...?)" with the known name that is most similar, or "" if no name is similar."""
    matches = get_close_matches(str(name), [str(k) for k in known], n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def check_result(result: Any) -> None:
    """Raise a ValueError if the value passed as `result` is not a Result."""
    if not hasattr(result, "selected_names"):
        kind = type(result).__name__
        is_estimator = hasattr(result, "fit")
        fix = "Pass its attribute result_, after fit" if is_estimator else "Pass the return value of belief.select"
        raise ValueError(f"result must be a belief.Result; got a {kind}. {fix}.")
