"""Which features are discrete: as they are declared, by a mask, indices or names."""

from __future__ import annotations

from typing import Any

import numpy as np

from belief._utils.validation import did_you_mean, is_integer
from belief.method.arrays import Array


def discrete_mask(given: Any, names: list[str] | None, n_features: int) -> Array:
    """Which features are declared discrete, from a mask, indices or names; none from "auto"."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return np.zeros(n_features, bool)
    allowed = f"'auto', a mask of {n_features} booleans, indices, or names of columns"
    if isinstance(given, str):
        given = [given]
    try:
        items = list(given)
    except TypeError:
        raise ValueError(f"discrete_features must be {allowed}; got {given!r}.") from None
    if items and all(isinstance(v, bool | np.bool_) for v in items):
        if len(items) != n_features:
            raise ValueError(f"discrete_features is a mask of {len(items)} booleans, but X has {n_features} columns.")
        return np.array(items, bool)
    mask = np.zeros(n_features, bool)
    places = None if names is None else {name: j for j, name in reversed([*enumerate(names)])}
    for item in items:
        mask[_position(item, places, n_features, allowed)] = True
    return mask


def _position(item: Any, names: dict[str, int] | None, n_features: int, allowed: str) -> int:
    if isinstance(item, str):
        if names is None:
            raise ValueError(f"discrete_features names {item!r}, but X has no column names; use indices.")
        if item not in names:
            raise ValueError(
                f"discrete_features names {item!r}, which is not a column of X{did_you_mean(item, list(names))}."
            )
        return names[item]
    if not is_integer(item):
        raise ValueError(f"discrete_features must be {allowed}; got {item!r} in it.")
    if not -n_features <= item < n_features:
        raise ValueError(
            f"discrete_features has the index {item}, but X has {n_features} columns (0 to {n_features - 1})."
        )
    return int(item)
