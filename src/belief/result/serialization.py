"""Dataclasses that are written as plain JSON values, and read again by later versions.

All that is to be known of a field stands where the field is declared: how it is written and read, what it must look
like, the format it came with, and what stands for it in results that are older. The number of the format is that of the
newest field. From format 2 on a checksum is written too: a record that was changed by hand is not believed.
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
Values = Mapping[str, Any]
SEALED_SINCE = 2  # the first format with a checksum
ODD = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


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
    read : makes the value from the plain one, and from all plain values; it raises where that is not what it should be
    write : makes the plain value
    since : the first format that has the field
    older : what stands for it in formats before, made from the fields that those have; needed where since > 1
    **options : those of `dataclasses.field`; with a default the field may be left out of any format
    """
    return field(metadata={"read": read, "write": write, "since": since, "older": older}, **options)


@dataclass(frozen=True)
class Shape:
    """What an array must look like, and how it is made of a list.

    Parameters
    ----------
    dtype : of its numbers; None: any plain values
    like : for each dimension the field that is as long, None: any length
    of : the field that its numbers are indices into, from `least` on; from 0 on they are all different
    least : the smallest of them
    gaps : whether a number may be NaN
    optional : whether it may be empty
    """

    dtype: Any = None
    like: Sequence[str | None] = (None,)
    of: str | None = None
    least: int = 0
    gaps: bool = False
    optional: bool = False

    def __call__(self, value: Any, values: Values) -> np.ndarray:
        found = np.array(value)
        if found.size and found.dtype.kind not in _kinds(self.dtype):
            raise ValueError("other values than it may hold")
        found = found if self.dtype is None else found.astype(self.dtype)
        if self.optional and not found.size:
            return found
        found = self._shaped(found, [None if name is None else len(values[name]) for name in self.like])
        self._refuse_range(found, values)
        return found

    def _shaped(self, found: np.ndarray, want: Sequence[int | None]) -> np.ndarray:
        if not found.size:
            return found.reshape([n or 0 for n in want])  # a list does not tell
        if found.ndim != len(want) or any(n is not None and n != m for n, m in zip(want, found.shape, strict=True)):
            raise ValueError(f"the shape {found.shape}")
        return found

    def _refuse_range(self, found: np.ndarray, values: Values) -> None:
        if found.dtype.kind == "f" and not (np.isnan(found) & self.gaps | np.isfinite(found)).all():
            raise ValueError("numbers that are none")
        if self.of is None:
            return
        if ((found < self.least) | (found >= len(values[self.of]))).any():
            raise ValueError("indices out of range")
        if self.least == 0 and len(np.unique(found)) != found.size:
            raise ValueError("an index twice")


def _kinds(dtype: Any) -> str:
    return "biufU" if dtype is None else "i" if np.dtype(dtype).kind == "i" else "if"


def array(
    dtype: Any = None, like: Sequence[str | None] = (None,), *, of: str | None = None, least: int = 0,
    gaps: bool = False, optional: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Declare a field that is an array; see `Shape`."""
    return kept(read=Shape(dtype, like, of, least, gaps, optional), **{"write": np.ndarray.tolist, **options})


def whole(least: int | None = None, **options: Any) -> Any:
    """Declare a field that is a whole number, at least `least`."""

    def read(value: Any, values: Values) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool) or (least is not None and value < least):
            raise ValueError(_shown(value))
        return int(value)

    return kept(read=read, **options)


def word(among: Sequence[str], **options: Any) -> Any:
    """Declare a field that is one of a few words."""

    def read(value: Any, values: Values) -> str:
        if not isinstance(value, str) or value not in among:
            raise ValueError(_shown(value))
        return value

    return kept(read=read, **options)


def seconds(value: Any, values: Values) -> dict[str, float]:
    """Read seconds by name."""
    if not all(isinstance(x, Real) and not isinstance(x, bool) and 0 <= float(x) < np.inf for x in value.values()):
        raise ValueError("other values than seconds")
    return {str(name): float(x) for name, x in value.items()}


def _shown(value: Any) -> str:
    """A value, on one line and not too long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def format_of(cls: Any) -> int:
    """The format that this version writes, and the newest it reads."""
    return max(f.metadata["since"] for f in fields(cls))


def to_plain(record: Any) -> dict[str, Any]:
    """Everything as plain JSON values."""
    values = {f.name: f.metadata["write"](getattr(record, f.name)) for f in fields(record)}
    there = format_of(type(record))
    return {"format": there, **values, "checksum": checksum(type(record), values, there)}


def checksum(cls: Any, values: Values, there: int) -> str:
    """Of the plain values that a format has, but for those that may be left out; the order of a mapping counts not."""
    found = hashlib.sha256()
    for f in fields(cls):
        if f.metadata["since"] <= there and not _has_default(f):
            found.update(f.name.encode() + _bytes(f, values[f.name]))
    return found.hexdigest()


def _bytes(f: Field[Any], value: Any) -> bytes:
    dtype = getattr(f.metadata["read"], "dtype", None)
    if dtype is None:
        plain = json.loads(json.dumps(value, default=str, skipkeys=True))
        return json.dumps(plain, sort_keys=True).encode()
    numbers = np.array(value, dtype)
    return str(numbers.shape if numbers.size else 0).encode() + np.where(numbers == numbers, numbers, np.nan).tobytes()


def from_plain(cls: type[T], given: Any) -> T:
    """Make a record of plain values, of this format or an older one; what cannot be read is said in one sentence."""
    name = cls.__name__.lower()
    if not isinstance(given, Mapping):
        raise ValueError(f"This is not a {name} of belief, but a {type(given).__name__}.")
    there = _format_in(cls, given, name)
    declared: dict[str, Field[Any]] = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    absent = [f for f in declared.values() if f.name not in given and not _has_default(f)]
    lost = [f.name for f in absent if f.metadata["since"] <= there]
    if not lost and there >= SEALED_SINCE and "checksum" not in given:
        lost = ["checksum"]
    if lost:
        raise ValueError(f"This is not a {name} of belief: it has no {', '.join(lost)}.")
    values = {n: _read(f, given, name) for n, f in declared.items() if n in given}
    _refuse_changed(cls, given, there, name)
    return cls(**values, **{f.name: _older(f, values, name) for f in absent})


def _refuse_changed(cls: type, given: Values, there: int, name: str) -> None:
    if "checksum" not in given and there < SEALED_SINCE:
        return
    if given.get("checksum") != checksum(cls, given, there):
        raise ValueError(f"This {name} was changed by hand: its checksum is another. Make it anew.")


def _format_in(cls: type, given: Values, name: str) -> int:
    there, newest = given.get("format", 1), format_of(cls)
    if not isinstance(there, int) or there < 1:
        raise ValueError(f"This is not a {name} of belief: its format is {_shown(there)}, not a number from 1 on.")
    if there > newest:
        raise ValueError(
            f"This {name} has format {_shown(there)}, newer than this version of belief reads ({newest}): upgrade"
            " belief-fs."
        )
    return there


def _has_default(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _read(f: Field[Any], given: Values, name: str) -> Any:
    try:
        return f.metadata["read"](given[f.name], given)
    except ODD as error:
        raise changed(name, f.name, error) from None


def _older(f: Field[Any], values: Values, name: str) -> Any:
    try:
        return f.metadata["older"](values)
    except ODD as error:
        raise changed(name, f.name, error) from None


def changed(name: str, part: str, error: BaseException) -> ValueError:
    """What to say of a part that is not what it should be."""
    why = " ".join(str(error).split())[:200]
    return ValueError(f"This {name} was changed by hand: its {part} is not what it should be ({why}).")
