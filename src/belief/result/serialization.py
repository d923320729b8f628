"""Conversion of dataclasses to plain JSON values and back, with validation.

Each field declares how it is written, read and validated. A checksum detects changes made by hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
PlainValues = Mapping[str, Any]
FORMAT = 1
INVALID = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


def plain_field(
    *,
    read: Callable[[Any, PlainValues], Any] = lambda value, values: value,
    write: Callable[[Any], Any] = lambda value: value,
    checked: bool = True,
    **options: Any,
) -> Any:
    """Declare a field that is stored as a plain JSON value.

    Parameters
    ----------
    read : callable
        Called with the plain value of the field and the plain values of the whole record. Returns the value of the
        field, or raises an error if the plain value is invalid.
    write : callable
        Called with the value of the field. Returns the plain value.
    checked : bool
        Whether the checksum includes the field.
    **options
        Options of `dataclasses.field`. A field with a default is optional.
    """
    return field(metadata={"read": read, "write": write, "checked": checked}, **options)


@dataclass(frozen=True)
class ArrayReader:
    """Converts a JSON list to an array, and validates the array."""

    dtype: Any = None  # the dtype of the array; None accepts numbers and strings
    shape: Sequence[str | None] = (None,)  # for each dimension, a field of the same length; None accepts any length
    index_into: str | None = None  # the name of a field; the values are indices into this field
    minimum: int = 0  # the smallest valid index: 0, or -1 if -1 means "none"; with 0, indices must be unique
    allow_nan: bool = False  # whether values may be NaN, stored as None
    allow_empty: bool = False  # whether an empty array is valid, whatever `shape` is

    def __call__(self, value: Any, values: PlainValues) -> np.ndarray:
        array = np.array(value, self.dtype if self.allow_nan else None)  # None becomes NaN
        kinds = "biufU" if self.dtype is None else "i" if np.dtype(self.dtype).kind == "i" else "if"
        if array.size and array.dtype.kind not in kinds:
            raise ValueError(f"unexpected dtype {array.dtype}")
        array = array if self.dtype is None else array.astype(self.dtype)
        if self.allow_empty and not array.size:
            return array
        expected = [None if name is None else len(values[name]) for name in self.shape]
        if not array.size:
            array = array.reshape([n or 0 for n in expected])  # JSON does not store the shape of an empty array
        elif array.ndim != len(expected) or any(n not in (None, m) for n, m in zip(expected, array.shape, strict=True)):
            raise ValueError(f"unexpected shape {array.shape}")
        if array.dtype.kind == "f" and not (np.isnan(array) & self.allow_nan | np.isfinite(array)).all():
            raise ValueError("non-finite values")
        if self.index_into is not None:
            if ((array < self.minimum) | (array >= len(values[self.index_into]))).any():
                raise ValueError("index out of range")
            if self.minimum == 0 and len(np.unique(array)) != array.size:
                raise ValueError("duplicate index")
        return array


def array_field(dtype: Any = None, shape: Sequence[str | None] = (None,), **options: Any) -> Any:
    """Declare an array field of a record; `options` are parameters of `ArrayReader`."""
    write = options.pop("write", _write_nan_as_none if options.get("allow_nan") else np.ndarray.tolist)
    return plain_field(read=ArrayReader(dtype, shape, **options), write=write)


def _write_nan_as_none(array: np.ndarray) -> Any:
    """Return an array as lists with None instead of NaN, because JSON has no NaN."""
    out = array.astype(object)
    out[np.isnan(array)] = None
    return out.tolist()


def integer_field(minimum: int | None = None) -> Any:
    """Declare a field that holds an integer, of at least `minimum`."""

    def read(value: Any, values: PlainValues) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool) or (minimum is not None and value < minimum):
            raise ValueError(_shorten(value))
        return int(value)

    return plain_field(read=read)


def choice_field(choices: Sequence[str]) -> Any:
    """Declare a field that holds one of the `choices`."""

    def read(value: Any, values: PlainValues) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(_shorten(value))
        return value

    return plain_field(read=read)


def read_seconds(value: Any, values: PlainValues) -> dict[str, float]:
    """Return a mapping from names to seconds; raise an error if a value is not a number of seconds."""
    if not all(isinstance(x, Real) and not isinstance(x, bool) and 0 <= float(x) < np.inf for x in value.values()):
        raise ValueError("not a number of seconds")
    return {str(name): float(x) for name, x in value.items()}


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def to_plain(record: Any) -> dict[str, Any]:
    """Return a record as a dictionary of plain JSON values, with a format number and a checksum."""
    values = {f.name: f.metadata["write"](getattr(record, f.name)) for f in fields(record)}
    return {"format": FORMAT, **values, "checksum": compute_checksum(type(record), values)}


def from_plain(cls: type[T], plain: Any) -> T:
    """Return the record with these plain values; raise a ValueError if they are invalid."""
    name = cls.__name__.lower()
    if not isinstance(plain, Mapping):
        raise ValueError(f"This is not a {name} of belief-fs: expected a mapping, got a {type(plain).__name__}.")
    declared: dict[str, Field[Any]] = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    is_required = {n: f.default is MISSING and f.default_factory is MISSING for n, f in declared.items()}
    required = ["format", *(n for n in declared if is_required[n]), "checksum"]
    if "format" in plain and plain["format"] != FORMAT:
        raise ValueError(
            f"This {name} has format {_shorten(plain['format'])}, but this version of belief reads format {FORMAT}:"
            " run the selection again, or install the version that wrote it."
        )
    missing = [n for n in required if n not in plain]
    if missing:
        raise ValueError(f"This is not a {name} of belief-fs. It lacks {', '.join(missing)}.")
    values: dict[str, Any] = {}
    for n in (n for n in declared if n in plain):
        try:
            values[n] = declared[n].metadata["read"](plain[n], plain)
        except INVALID as error:
            why = " ".join(str(error).split())[:200]
            raise ValueError(f"This {name} was edited or damaged: {n} is invalid ({why}). Save it again.") from None
    if plain["checksum"] != compute_checksum(cls, plain):
        raise ValueError(f"This {name} was edited or damaged: its checksum does not match. Save it again.")
    return cls(**values)


def compute_checksum(cls: Any, values: PlainValues) -> str:
    """Return the checksum of the fields that are declared as checked. The order of the keys does not matter."""
    checksum = hashlib.sha256()
    for f in fields(cls):
        if f.name not in values or not f.metadata["checked"]:
            continue
        value, dtype = values[f.name], getattr(f.metadata["read"], "dtype", None)
        if dtype is None:
            plain = json.loads(json.dumps(value, default=str, skipkeys=True))
            contents = json.dumps(plain, sort_keys=True).encode()
        else:
            numbers = np.array(value, dtype)
            unified = np.where(numbers == numbers, numbers, np.nan)  # there are several bit patterns for NaN
            contents = str(numbers.shape if numbers.size else 0).encode() + unified.tobytes()
        checksum.update(f.name.encode() + contents)
    return checksum.hexdigest()
