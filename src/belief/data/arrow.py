"""Arrow columns as numbers: what a batch of a file becomes a block of rows through.

A category gets its code the first time it is seen, and keeps it for as long as the file is read, and read again.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from belief._utils.optional import import_optional
from belief.data.labels import RowError, refuse_missing
from belief.data.source import as_float, frozen
from belief.data.suspects import warn_of_text
from belief.method.arrays import Array

MOST_CATEGORIES = 2**24  # codes are exact in float32 below it
TILE_ROWS, TILE_COLUMNS = 1024, 128  # of a block, filled column by column while they are in the cache


def pyarrow() -> Any:
    """The library, or a word on how to get it."""
    return sys.modules.get("pyarrow") or import_optional("pyarrow", "files")  # asked for each column of many


def is_text(kind: Any) -> bool:
    """Whether a type is strings, as such or as a dictionary."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def dtype_of(kind: Any) -> np.dtype[Any]:
    """The type of numbers; for Arrow's own `to_pandas_dtype` older versions of it import pandas."""
    types = pyarrow().types
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def as_numpy(column: Any) -> Array:
    """A column of numbers, NaN where there is none; Arrow's own `to_numpy` would import pandas, which takes long."""
    pa = pyarrow()
    if not len(column):
        return np.empty(0, dtype_of(column.type))
    whole = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], 0, column.offset)
    values = np.from_dlpack(whole)
    if not column.null_count:
        return values
    return np.where(np.from_dlpack(column.is_valid().cast(pa.uint8())), values, np.nan)


class Columns:
    """The features of a file: which are discrete, and a block of numbers from each batch."""

    def __init__(self, columns: Sequence[Any], source: str, text: Callable[[str], Categories] | None = None) -> None:
        self._coders = [_coder(column, source, text or Categories) for column in columns]
        self.discrete = np.array([coder.discrete for coder in self._coders], bool)
        kinds = [coder.dtype for coder in self._coders]
        self._dtype = np.result_type(np.float32, *kinds) if kinds else np.dtype(np.float32)

    def declare(self, discrete: Array) -> None:
        """Take these features as discrete too."""
        self.discrete = self.discrete | discrete
        for coder, declared in zip(self._coders, discrete, strict=True):
            coder.named |= bool(declared)

    def warn_of_text(self, declared: Array) -> None:
        """Warn of columns of text, but for those declared discrete, that look like something else in all rows."""
        for coder, is_name in zip(self._coders, declared, strict=True):
            if isinstance(coder, Categories) and not is_name:
                warn_of_text(f"Column {coder.name!r}", coder.texts, coder.filled)

    def levels(self, j: int) -> dict[float, str]:
        """What the codes of a feature stand for, of strings that have been read."""
        return self._coders[j].levels()

    def block(self, batch: Any, run: Callable[..., Iterable[None]] = map) -> Array:
        """The rows of a batch: floats in C order, NaN where a value is missing; filled by `run`, a map."""
        out = np.empty((len(batch), len(self._coders)), self._dtype)
        for j in range(0, len(self._coders), TILE_COLUMNS):
            columns = [coder(batch.column(i)) for i, coder in enumerate(self._coders[j : j + TILE_COLUMNS], j)]
            fill = partial(_fill, out, columns, j)
            deque(run(fill, range(0, len(out), TILE_ROWS)), maxlen=0)
        return frozen(out)


def _fill(out: Array, columns: list[Array], j: int, a: int) -> None:
    for i, column in enumerate(columns, j):
        out[a : a + TILE_ROWS, i] = column[a : a + TILE_ROWS]


class Batch:
    """The rows of a batch, which are put together when they are asked for: often a few of them will do."""

    def __init__(self, columns: Columns, batch: Any) -> None:
        self._columns, self._batch = columns, batch
        self.shape = (len(batch), batch.num_columns)

    def __getitem__(self, rows: Array) -> Array:
        """Some of the rows, of a file that has been read before: its categories must be known."""
        return self._columns.block(self._batch.take(pyarrow().array(rows)))

    def whole(self, run: Callable[..., Iterable[None]] = map) -> Array:
        return self._columns.block(self._batch, run)


class Numbers:
    """A column of numbers; `named` where they are only names."""

    discrete = False

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.named = name, False
        self.dtype = as_float(np.empty(0, dtype)).dtype

    def __call__(self, column: Any) -> Array:
        pa = pyarrow()
        if self.named and pa.types.is_integer(column.type):
            longest = max(abs(x or 0) for x in pa.compute.min_max(column).as_py().values())
            if longest > 2**53:
                raise ValueError(
                    f"column {self.name!r} is discrete and holds integers as large as {longest}: make it strings."
                )
        if column.null_count or pa.types.is_decimal(column.type):
            column = column.cast(pa.from_numpy_dtype(self.dtype), safe=False)
        return as_float(as_numpy(column))

    def levels(self) -> dict[float, str]:
        return {}  # a number is its own name


class Booleans:
    """A column of yes and no."""

    discrete, dtype = True, np.dtype(np.float32)

    def __init__(self, name: str) -> None:
        self.named = True

    def __call__(self, column: Any) -> Array:
        return as_numpy(column.cast(pyarrow().float32()))

    def levels(self) -> dict[float, str]:
        return {0.0: "False", 1.0: "True"}


class Categories:
    """A column of strings: each gets a number when it is first seen."""

    discrete = True
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, name: str) -> None:
        self.name, self.named = name, True
        self._book: dict[Any, float] = {}
        self.filled = 0  # cells that were not empty

    @property
    def texts(self) -> Collection[Any]:
        """Those seen so far."""
        return self._book.keys()

    def __call__(self, column: Any) -> Array:
        values, codes = coded(column)
        self.filled += len(column) - column.null_count
        known = [np.nan if v is None else self._code(v) for v in values]
        if len(self._book) > MOST_CATEGORIES:
            raise ValueError(
                f"column {self.name!r} has more than {MOST_CATEGORIES:,} different values, as names of rows have:"
                " drop it."
            )
        return np.array([*known, np.nan], self.dtype)[codes]  # -1 is the last: missing

    def levels(self) -> dict[float, str]:
        return {code: str(value) for value, code in self._book.items()}

    def _code(self, value: Any) -> float:
        return self._book.setdefault(value, float(len(self._book)))


class Nothing:
    """A column without a value."""

    discrete, dtype = False, np.dtype(np.float32)

    def __init__(self, name: str) -> None:
        self.named = False

    def __call__(self, column: Any) -> Array:
        return np.full(len(column), np.nan, np.float32)

    def levels(self) -> dict[float, str]:
        return {}


Coder = Numbers | Booleans | Categories | Nothing


def _coder(field: Any, source: str, text: Callable[[str], Categories]) -> Coder:
    types, kind = pyarrow().types, field.type
    if is_text(kind):
        return text(field.name)
    if types.is_boolean(kind):
        return Booleans(field.name)
    if types.is_null(kind):
        return Nothing(field.name)
    if types.is_integer(kind) or types.is_floating(kind):
        return Numbers(field.name, dtype_of(kind))
    if types.is_decimal(kind):
        return Numbers(field.name, np.float64)
    raise ValueError(
        f"{source}: column {field.name!r} has the type {kind}, which is neither numbers nor strings; convert it, or"
        " drop it."
    )


def coded(column: Any) -> tuple[Any, Array]:
    """The distinct values of a column, an array or a list, and which of them each row has; -1 where it has none."""
    pa = pyarrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = as_numpy(column.indices)
    if codes.dtype.kind == "f":
        codes = np.nan_to_num(codes, nan=-1).astype(np.int64)
    values = column.dictionary
    return as_numpy(values) if is_number(values.type) else values.to_pylist(), codes


def refuse_label(field: Any, source: str) -> None:
    """Refuse a label that is neither numbers nor strings."""
    types = pyarrow().types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    known = types.is_boolean(kind) or types.is_null(kind) or is_number(kind)
    if not (known or is_text(kind)):
        raise ValueError(
            f"{source}: column {field.name!r} has the type {kind}, which is no class and no number; convert it."
        )


def is_dictionary(kind: Any) -> bool:
    """Whether a type is categories."""
    return bool(pyarrow().types.is_dictionary(kind))


def is_number(kind: Any) -> bool:
    """Whether a type is numbers."""
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def label_values(column: Any, name: str, first: int) -> tuple[Array, Array]:
    """The distinct values of a label column, and which of them each row has; a missing one is refused by its row."""
    if pyarrow().types.is_decimal(column.type):
        column = column.cast(pyarrow().float64(), safe=False)
    values, codes = coded(column)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        rest = " (counted from 0): every row needs a class or a number; drop such rows, or fill them in."
        raise RowError(f"Column {name!r} has no value in row", first + int(missing[0]), rest)
    used, codes = np.unique(codes, return_inverse=True)  # a dictionary may hold values that no row has
    array = values[used] if isinstance(values, np.ndarray) else np.array([values[i] for i in used])
    refuse_missing(array[codes], f"column {name!r}", first)
    order = np.argsort(array, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    return array[order], place[codes]
