"""Partials as they travel: dataclasses taken apart into arrays, put together again, and cut by features.

Nothing here knows which fields there are. An array speaks of features on its last axis, if that is as long as there are
features; everything else is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from belief.method.arrays import Array
from belief.method.summary import Levels

T = TypeVar("T")
NARROWEST = 2  # features of a slice: in one of a single feature, an array for all features would look like its own


def flat(record: Any) -> dict[str, Any]:
    """The fields by name, those of a record within it as "outer.inner"; what is None is left out."""
    out: dict[str, Any] = {}
    for f in fields(record):
        x = getattr(record, f.name)
        if is_dataclass(x):
            out |= {f"{f.name}.{name}": y for name, y in flat(x).items()}
        elif x is not None:
            out[f.name] = x
    return out


def restored(kind: type[T], arrays: Mapping[str, Any]) -> T:
    """The inverse of `flat`."""
    return kind(**{f.name: _value(_kinds(kind)[f.name], f.name, arrays) for f in fields(kind)})  # type: ignore[arg-type]


def _value(kind: Any, name: str, arrays: Mapping[str, Any]) -> Any:
    if is_dataclass(kind):
        inner = {full[len(name) + 1 :]: x for full, x in arrays.items() if full.startswith(f"{name}.")}
        return restored(kind, inner)  # type: ignore[arg-type]
    x = arrays.get(name)
    return x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def n_bytes(record: Any) -> int:
    """The size of all arrays together."""
    return sum(np.asarray(x).nbytes for x in flat(record).values())


def of_features(record: T, n_features: int, which: Array | slice) -> T:
    """What it says of some features, in rising order, which are numbered from 0 then."""
    cut = {f.name: _of(getattr(record, f.name), n_features, which) for f in fields(record)}  # type: ignore[arg-type]
    return replace(record, **cut)  # type: ignore[type-var]


def _of(x: Any, n_features: int, which: Array | slice) -> Any:
    if isinstance(x, Levels):
        place = np.full(n_features, -1)
        place[which] = np.arange(len(place[which]))
        mine = place[x.feature] >= 0
        return Levels(place[x.feature[mine]], x.value[mine], x.count[mine], x.groups[mine])
    return x[..., which] if np.shape(x)[-1:] == (n_features,) else x


def side_by_side(parts: Sequence[T], widths: Sequence[int]) -> T:
    """One record of all features from those of slices of features, each so wide."""
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *widths[:-1]])
    joined = {f.name: _beside([getattr(x, f.name) for x in parts], widths, first) for f in fields(parts[0])}  # type: ignore[arg-type]
    return replace(parts[0], **joined)  # type: ignore[type-var]


def _beside(parts: Sequence[Any], widths: Sequence[int], first: Array) -> Any:
    if isinstance(parts[0], Levels):
        return Levels.concat([replace(x, feature=x.feature + a) for x, a in zip(parts, first, strict=True)])
    if all(np.shape(x)[-1:] == (n,) for x, n in zip(parts, widths, strict=True)):
        return np.concatenate(parts, axis=-1)
    return parts[0]
