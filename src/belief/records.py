"""Dataclasses that are written as plain JSON values, and read again by later versions.

All that is to be known of a field stands where the field is declared: how it is written and read, the format it came
with, and what stands for it in results that are older. The number of the format is that of the newest field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Values = Mapping[str, Any]


def kept(
    *,
    read: Callable[[Any, Values], Any] = lambda value, values: value,
    write: Callable[[Any], Any] = lambda value: value,
    since: int = 1,
    older: Callable[[Values], Any] | None = None,
    **options: Any,
) -> Any:
    """Declare a field of a record.

    Parameters
    ----------
    read : makes the value from the plain one, and from all plain values
    write : makes the plain value
    since : the first format that has the field
    older : what stands for it in formats before, made from the fields that those have; needed where since > 1
    **options : those of `dataclasses.field`; with a default the field may be left out of any format
    """
    return field(metadata={"read": read, "write": write, "since": since, "older": older}, **options)


def array(dtype: Any = None, shape: Sequence[str] | None = None, **options: Any) -> Any:
    """Declare a field that is an array; its shape, where a list does not tell, as the fields that are as long."""
    return kept(read=partial(_as_array, dtype, shape), **{"write": np.ndarray.tolist, **options})


def _as_array(dtype: Any, shape: Sequence[str] | None, value: Any, values: Values) -> np.ndarray:
    found = np.array(value, dtype)
    return found if shape is None else found.reshape([len(values[name]) for name in shape])


def format_of(cls: Any) -> int:
    """The format that this version writes, and the newest it reads."""
    return max(f.metadata["since"] for f in fields(cls))


def to_plain(record: Any) -> dict[str, Any]:
    """Everything as plain JSON values."""
    values = {f.name: f.metadata["write"](getattr(record, f.name)) for f in fields(record)}
    return {"format": format_of(type(record)), **values}


def from_plain(cls: type[T], given: Any) -> T:
    """Make a record of plain values, of this format or an older one; what cannot be read is said in one sentence."""
    name = cls.__name__.lower()
    if not isinstance(given, Mapping):
        raise ValueError(f"This is not a {name} of belief, but a {type(given).__name__}.")
    there = _format_in(cls, given, name)
    declared: dict[str, Field[Any]] = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    absent = [f for f in declared.values() if f.name not in given and not _has_default(f)]
    lost = [f.name for f in absent if f.metadata["since"] <= there]
    if lost:
        raise ValueError(f"This is not a {name} of belief: it has no {', '.join(lost)}.")
    values = {n: _read(f, given, name) for n, f in declared.items() if n in given}
    return cls(**values, **{f.name: f.metadata["older"](values) for f in absent})


def _format_in(cls: type, given: Values, name: str) -> int:
    there, newest = given.get("format", 1), format_of(cls)
    if not isinstance(there, int):
        raise ValueError(f"This is not a {name} of belief: its format is {there!r}, not a number.")
    if there > newest:
        raise ValueError(
            f"This {name} has format {there}, newer than this version of belief reads ({newest}): upgrade belief-fs."
        )
    return there


def _has_default(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _read(f: Field[Any], given: Values, name: str) -> Any:
    try:
        return f.metadata["read"](given[f.name], given)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"This {name} cannot be read: its {f.name} is not what it should be ({error}).") from None
