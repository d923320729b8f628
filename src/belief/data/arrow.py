"""Conversion of Arrow data to numbers: batches of a file become blocks of rows, and categories become codes.

A category gets its code when it first occurs, and keeps this code in all passes over the file.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from belief._utils.optional import import_optional
from belief.data.diagnostics import warn_of_numbers_as_text
from belief.data.labels import RowError, check_no_missing
from belief.data.source import as_float, as_read_only, check_exact_codes
from belief.method.arrays import Array

MICROSECONDS, SECONDS_PER_DAY = 1e6, 86400.0
MAX_CATEGORIES = 2**24  # because larger codes are not exact in float32
TILE_ROWS, TILE_COLUMNS = 1024, 128  # blocks are filled in tiles of this size, which fit into the CPU cache


def pyarrow() -> Any:
    """Return the pyarrow module.

    This is called for every column, so it first looks in `sys.modules`, which is faster than an import.
    """
    return sys.modules.get("pyarrow") or import_optional("pyarrow", "files")


def is_text(kind: Any) -> bool:
    """Return True for the Arrow types of strings, and for dictionary types with string values."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_dictionary(kind: Any) -> bool:
    """Return True for Arrow dictionary types, the types of categories."""
    return bool(pyarrow().types.is_dictionary(kind))


def is_number(kind: Any) -> bool:
    """Return True for the Arrow types of integers, floats and decimals."""
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def numpy_dtype(kind: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of a numeric Arrow type.

    Arrow's own method `to_pandas_dtype` imports pandas in some versions of pyarrow.
    """
    types = pyarrow().types
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def as_numpy(column: Any) -> Array:
    """Return an Arrow column of numbers as an array, with NaN for nulls.

    Arrow's own method `to_numpy` imports pandas, which takes long.
    """
    pa = pyarrow()
    if not len(column):
        return np.empty(0, numpy_dtype(column.type))
    without_nulls = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], 0, column.offset)
    values = np.from_dlpack(without_nulls)
    if not column.null_count:
        return values
    return np.where(np.from_dlpack(column.is_valid().cast(pa.uint8())), values, np.nan)


class TableEncoder:
    """Converts Arrow batches to blocks of numbers, with one encoder per feature column.

    Parameters
    ----------
    columns : the Arrow fields of the features
    source : the file or table, for error messages
    make_category_encoder : a function that returns the encoder of a text column with a given name
    time_origin : the time from which days are counted, in microseconds since 1970; None: the first time in each column
    """

    def __init__(
        self,
        columns: Sequence[Any],
        source: str,
        make_category_encoder: Callable[[str], CategoryEncoder] | None = None,
        time_origin: float | None = None,
    ) -> None:
        make = make_category_encoder or CategoryEncoder
        self._encoders = [_make_encoder(column, source, make, time_origin) for column in columns]
        self.discrete = np.array([encoder.discrete for encoder in self._encoders], bool)
        dtypes = [encoder.dtype for encoder in self._encoders]
        self._dtype = np.result_type(np.float32, *dtypes) if dtypes else np.dtype(np.float32)

    def declare_discrete(self, discrete: Array) -> None:
        """Treat the features in the mask `discrete` as discrete, whatever their type."""
        self.discrete = self.discrete | discrete
        for encoder, declared in zip(self._encoders, discrete, strict=True):
            encoder.is_declared_discrete = bool(declared)

    def warn_of_numbers_as_text(self, declared: Array) -> None:
        """Warn of text columns that look like numbers, except the columns in the mask `declared`."""
        for encoder, is_declared in zip(self._encoders, declared, strict=True):
            if isinstance(encoder, CategoryEncoder) and not is_declared:
                warn_of_numbers_as_text(f"Column {encoder.name!r}", encoder.codes.keys())

    def levels(self, j: int) -> dict[float, str]:
        """Return a mapping from the codes of feature j that have occurred so far to the names of their categories."""
        return self._encoders[j].levels()

    def block(self, batch: Any, run: Callable[..., Iterable[None]] = map) -> Array:
        """Return the rows of a batch as a float array in C order, with NaN for missing values.

        `run` is `map`, or the `map` of a thread pool.
        """
        out = np.empty((len(batch), len(self._encoders)), self._dtype)
        for j in range(0, len(self._encoders), TILE_COLUMNS):
            columns = [encode(batch.column(i)) for i, encode in enumerate(self._encoders[j : j + TILE_COLUMNS], j)]
            deque(run(partial(_fill_tile, out, columns, j), range(0, len(out), TILE_ROWS)), maxlen=0)
        return as_read_only(out)


def _fill_tile(out: Array, columns: list[Array], j: int, a: int) -> None:
    for i, column in enumerate(columns, j):
        out[a : a + TILE_ROWS, i] = column[a : a + TILE_ROWS]


class Batch:
    """The rows of an Arrow batch. They are converted to numbers on access, because often only a few are needed."""

    def __init__(self, columns: TableEncoder, batch: Any) -> None:
        self._columns, self._batch = columns, batch
        self.shape = (len(batch), batch.num_columns)

    def __getitem__(self, rows: Array) -> Array:
        """Return some rows as numbers.

        This is only valid after a first pass, because categories get their codes in order of appearance.
        """
        return self._columns.block(self._batch.take(pyarrow().array(rows)))

    def whole(self, run: Callable[..., Iterable[None]] = map) -> Array:
        """Return all rows as numbers."""
        return self._columns.block(self._batch, run)


class Encoder:
    """Base class of encoders. An encoder converts the Arrow arrays of one column to numbers, with NaN for nulls."""

    discrete, is_declared_discrete = False, False
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, column: Any) -> Array:
        """Convert a column to numbers. The base class handles columns without values, and returns NaN."""
        return np.full(len(column), np.nan, np.float32)

    def levels(self) -> dict[float, str]:
        """Return a mapping from codes to the names of the categories; it is empty if the values are numbers."""
        return {}


class NumberEncoder(Encoder):
    """Encoder of a column of numbers."""

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name)
        self.dtype = as_float(np.empty(0, dtype)).dtype

    def __call__(self, column: Any) -> Array:
        pa = pyarrow()
        if self.is_declared_discrete and pa.types.is_integer(column.type):
            largest = max(abs(x or 0) for x in pa.compute.min_max(column).as_py().values())
            check_exact_codes(largest, f"column {self.name!r}")
        if column.null_count or pa.types.is_decimal(column.type):
            column = column.cast(pa.from_numpy_dtype(self.dtype), safe=False)
        return as_float(as_numpy(column))


class BooleanEncoder(Encoder):
    """Encoder of a column of booleans, which become 0 and 1."""

    discrete = True

    def __call__(self, column: Any) -> Array:
        return as_numpy(column.cast(pyarrow().float32()))

    def levels(self) -> dict[float, str]:
        return {0.0: "False", 1.0: "True"}


class TimeEncoder(Encoder):
    """Encoder of dates and times, as days since an origin, and of durations and times of day, as seconds."""

    dtype = np.dtype(np.float64)

    def __init__(self, name: str, origin: float | None) -> None:
        super().__init__(name)
        self._origin = origin  # None until the first value, which becomes the origin

    def __call__(self, column: Any) -> Array:
        pa = pyarrow()
        types, kind = pa.types, column.type
        if types.is_duration(kind) or types.is_time(kind):
            micro = pa.duration("us") if types.is_duration(kind) else pa.time64("us")
            return as_numpy(column.cast(micro, safe=False).cast(pa.int64())) / MICROSECONDS
        micro = pa.timestamp("us", kind.tz if types.is_timestamp(kind) else None)
        times = as_numpy(column.cast(micro, safe=False).cast(pa.int64())).astype(np.float64)
        if self._origin is None and not np.isnan(times).all():
            self._origin = times[~np.isnan(times)][0]
        return (times - (self._origin or 0.0)) / MICROSECONDS / SECONDS_PER_DAY


class CategoryEncoder(Encoder):
    """Encoder of a column of strings, which become codes in order of appearance."""

    discrete = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.codes: dict[Any, float] = {}  # of the strings seen so far

    def __call__(self, column: Any) -> Array:
        values, rows = dictionary_encode(column)
        codes = [np.nan if v is None else self._code(v) for v in values]
        if len(self.codes) > MAX_CATEGORIES:
            raise ValueError(
                f"column {self.name!r} has more than {MAX_CATEGORIES:,} different strings, so it is probably an"
                " identifier. Drop it."
            )
        return np.array([*codes, np.nan], self.dtype)[rows]  # the row index -1 of nulls selects the last entry, NaN

    def levels(self) -> dict[float, str]:
        return {code: str(value) for value, code in self.codes.items()}

    def _code(self, value: Any) -> float:
        return self.codes.setdefault(value, float(len(self.codes)))


def _make_encoder(
    field: Any, source: str, make_category_encoder: Callable[[str], CategoryEncoder], time_origin: float | None
) -> Encoder:
    types, kind = pyarrow().types, field.type
    if is_text(kind) or is_dictionary(kind):
        return make_category_encoder(field.name)
    if types.is_boolean(kind):
        return BooleanEncoder(field.name)
    if types.is_null(kind):
        return Encoder(field.name)
    if is_number(kind):
        return NumberEncoder(field.name, np.float64 if types.is_decimal(kind) else numpy_dtype(kind))
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_duration(kind) or types.is_time(kind):
        return TimeEncoder(field.name, time_origin)
    raise ValueError(
        f"{source}: column {field.name!r} has the type {kind}, which is neither numeric nor text. Convert it, or drop"
        " it."
    )


def describe_unusable(kind: Any) -> str | None:
    """Name the values of an Arrow type if features cannot have this type, such as "lists"; otherwise, return None."""
    types = pyarrow().types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind):
        return "lists"
    if types.is_struct(kind):
        return "structs"
    is_variable = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    if is_variable or types.is_fixed_size_binary(kind):
        return "bytes"
    return "lists" if "list" in str(kind) else None


def dictionary_encode(column: Any) -> tuple[Any, Array]:
    """Return the distinct values of a column, and for each row the index of its value (-1 for null)."""
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


def hash_values(column: Any) -> Array:
    """Return a hash of each value of a column of numbers or text; zeros for columns of other types.

    Within a process, equal values have equal hashes.
    """
    if is_text(column.type) or is_dictionary(column.type):
        values, codes = dictionary_encode(column)
        return np.array([*map(hash, values), 0], np.int64).view(np.uint64)[codes]
    if not is_number(column.type) or pyarrow().types.is_decimal(column.type):
        return np.zeros(len(column), np.uint64)
    values = as_numpy(column).astype(np.float64)
    return np.where(np.isnan(values), 0.5, values).view(np.uint64)


def check_target_type(field: Any, source: str) -> None:
    """Raise a ValueError if the target column is neither numeric, boolean nor text."""
    types = pyarrow().types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if not (types.is_boolean(kind) or types.is_null(kind) or is_number(kind) or is_text(kind)):
        raise ValueError(
            f"{source}: the target column {field.name!r} has the type {kind}, but must be numeric, boolean or text."
            " Convert it."
        )


def target_values(column: Any, name: str, first: int) -> tuple[Array, Array]:
    """Return the sorted distinct values of a target column, and for each row the index of its value.

    Error messages count the rows from `first`, the number of the first row of this column.
    """
    if pyarrow().types.is_decimal(column.type):
        is_whole = column.type.scale <= 0 and column.type.precision - column.type.scale <= 18
        column = column.cast(pyarrow().int64() if is_whole else pyarrow().float64(), safe=is_whole)
    values, codes = dictionary_encode(column)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        fix = " (counted from 0). Every row needs a target: drop such rows, or fill in the value."
        raise RowError(f"Column {name!r} has no value in row", first + int(missing[0]), fix)
    used, codes = np.unique(codes, return_inverse=True)  # an Arrow dictionary may contain unused values
    array = values[used] if isinstance(values, np.ndarray) else np.array([values[i] for i in used])
    check_no_missing(array[codes], f"column {name!r}", first)
    order = np.argsort(array, kind="stable")
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order))
    return array[order], position[codes]
