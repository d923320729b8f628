"""Conversion of records (dataclasses of arrays) to plain dictionaries and back, and selection of their features.

A field annotated as FeatureArray has the features on its last axis. The axis may also have length 1 (one value for all
features) or 0 (not computed); such fields are the same in every slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from belief.method.arrays import FEATURES, Array
from belief.method.summary import Levels

T = TypeVar("T")


def flatten(record: Any) -> dict[str, Any]:
    """Return the fields of a record as a dictionary.

    Fields that are None are left out. Fields of nested records are named "outer.inner".
    """
    out: dict[str, Any] = {}
    for f in fields(record):
        x = getattr(record, f.name)
        if is_dataclass(x):
            out |= {f"{f.name}.{name}": y for name, y in flatten(x).items()}
        elif x is not None:
            out[f.name] = x
    return out


def restore(kind: type[T], arrays: Mapping[str, Any]) -> T:
    """Rebuild a record of this type from the dictionary that `flatten` made."""
    hints, values = _type_hints(kind), {}  # type: ignore[arg-type]
    for f in fields(kind):  # type: ignore[arg-type]
        x, nested = arrays.get(f.name), f"{f.name}."
        if is_dataclass(hints[f.name]):
            x = restore(hints[f.name], {k.removeprefix(nested): v for k, v in arrays.items() if k.startswith(nested)})
        values[f.name] = x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x
    return kind(**values)


_type_hints = cache(get_type_hints)


def count_bytes(record: Any) -> int:
    """Return the total size of all arrays of a record, in bytes."""
    return sum(np.asarray(x).nbytes for x in flatten(record).values())


@cache
def feature_fields(kind: Any) -> frozenset[str]:
    """Return the names of the fields of a record type whose last axis runs over the features."""
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(name for name, hint in hints.items() if FEATURES in getattr(hint, "__metadata__", ()))


def select_features(record: T, n_features: int, which: Array | slice) -> T:
    """Keep only the features of a record with the indices `which` (ascending), and renumber them from 0."""
    names = feature_fields(type(record))  # type: ignore[arg-type]
    cut = {name: x[..., which] for name in names if (x := getattr(record, name)).shape[-1] > 1}
    for f in fields(record):  # type: ignore[arg-type]
        x = getattr(record, f.name)
        if isinstance(x, Levels):
            place = np.full(n_features, -1)
            place[which] = np.arange(len(place[which]))
            kept = place[x.feature] >= 0
            cut[f.name] = Levels(place[x.feature[kept]], x.value[kept], x.count[kept], x.groups[kept])
    return replace(record, **cut)  # type: ignore[type-var]


def join_features(parts: Sequence[T], widths: Sequence[int]) -> T:
    """Join records of consecutive slices of features, which have these widths, into one record of all features."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *widths[:-1]])
    names = feature_fields(type(parts[0]))  # type: ignore[arg-type]
    joined: dict[str, Any] = {}
    for f in fields(parts[0]):  # type: ignore[arg-type]
        values = [getattr(x, f.name) for x in parts]
        if isinstance(values[0], Levels):
            levels = [replace(x, feature=x.feature + a) for x, a in zip(values, starts, strict=True)]
            joined[f.name] = Levels.concat(levels)
        elif f.name in names and all(x.shape[-1] == n for x, n in zip(values, widths, strict=True)):
            joined[f.name] = np.concatenate(values, axis=-1)
    return replace(parts[0], **joined)  # type: ignore[type-var]
