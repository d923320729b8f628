"""Opening of tables in memory. A `Table` has a source of rows, the names of the features, and the discrete features.

Arrays are not copied. Numeric columns of a DataFrame are not copied if its library allows that. Strings, categories and
booleans become codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import nan
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from belief._utils.system import total_memory
from belief.data.arrow import MICROSECONDS, SECONDS_PER_DAY
from belief.data.columns import parse_discrete_features
from belief.data.diagnostics import MAX_FREE_TEXT_ROWS, is_free_text, warn_of_left_out, warn_of_numbers_as_text
from belief.data.kinds import ACCEPTED, check_frame, check_is_table
from belief.data.labels import MAX_FIXED_WIDTH, is_missing
from belief.data.source import (
    ArraySource,
    BlockSource,
    ColumnSource,
    Source,
    SparseSource,
    check_exact_codes,
    is_sparse,
    max_abs_integer,
)
from belief.method.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BYTES_PER_FEATURE = 320  # size of the sums of a feature with two classes; measured were 341 for empty columns


@dataclass(frozen=True)
class Table:
    """A table in memory: a source of its rows, the feature names (or None), and the mask of the discrete features."""

    source: Source | SparseSource
    names: list[str] | None
    discrete: Array
    declared: Array  # the mask of the features that the user declared discrete
    codes: Sequence[Mapping[Any, float]] = ()  # per feature: category -> code; () if no feature has categories
    labels: list[Any] | None = None  # the original column labels; None if all of them are strings
    left_out: Sequence[str] = ()  # the names of columns that contain neither numbers nor categories

    def levels(self, j: int) -> dict[float, str]:
        """Return a mapping from the codes of feature j to the names of its categories."""
        return {code: str(category) for category, code in (self.codes[j].items() if len(self.codes) else ())}


def open_table(
    X: Any, discrete_features: Any = "auto", names: Sequence[str] | None = None, leave_out: bool = False
) -> Table:
    """Open an array, a memory map, a DataFrame, a sparse matrix, or a sequence of such blocks as a Table.

    `names` are the column names of a table without names. Columns of lists, structs and free text raise a ValueError;
    if `leave_out` is True, they are left out with a warning instead.
    """
    blocks = as_blocks(X)
    if any(is_sparse(block) for block in blocks):
        return _open_sparse(blocks, discrete_features, names)
    frames = [as_frame(block) for block in blocks]
    if all(frame is not None for frame in frames):
        opened = _open_frames(frames, discrete_features, leave_out)  # type: ignore[arg-type]
    else:
        opened = _open_arrays([as_2d_array(block) for block in blocks], discrete_features, names, leave_out)
    sources, names, found, declared, columns = opened
    discrete = found | declared
    for column, is_declared in zip(columns, declared, strict=False):
        if column.discrete and not is_declared:
            warn_of_numbers_as_text(column.name.capitalize(), column.codes)
    for source in sources:
        for j in np.flatnonzero(discrete).tolist():
            name = f"column {names[j]!r}" if names is not None else f"column {j}"
            check_exact_codes(source.max_abs_integer(j), name)
    source = sources[0] if len(sources) == 1 else BlockSource(sources)
    labels = None if frames[0] is None else find_labels(frames[0].columns, names or [])
    left_out = [] if frames[0] is None else [str(c) for c in frames[0].columns if str(c) not in {*(names or [])}]
    return Table(source, names, discrete, declared, [c.codes for c in columns], labels, left_out)


def find_labels(labels: Sequence[Any], names: Sequence[str]) -> list[Any] | None:
    """Return the original labels of the columns with these names; None if all labels are strings."""
    if all(isinstance(label, str) for label in labels):
        return None
    known = {str(label): label for label in labels}
    return [known[name] for name in names]


def as_blocks(X: Any) -> Sequence[Any]:
    """Return the blocks of X that are not empty. A single table is one block."""
    if isinstance(X, Sequence) and len(X) and all(getattr(x, "ndim", 0) == 2 or as_frame(x) is not None for x in X):
        return [block for block in X if block.shape[0]] or X[:1]
    return [X]


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a DataFrame of any library as a narwhals DataFrame; None if X is not a DataFrame."""
    if isinstance(X, np.ndarray):  # a common case, for which narwhals is slow
        return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = getattr(X, "column_names", None)
        check_unique_names(X.columns if names is None else names)
        raise
    return frame if isinstance(frame, nw.DataFrame) else None


def count_columns(X: Any) -> int:
    """Return the number of columns of a table in memory."""
    block = as_blocks(X)[0]
    return int(block.shape[1] if hasattr(block, "shape") else np.asarray(block, object).shape[1])


def check_unique_names(names: Iterable[Any]) -> None:
    """Raise a ValueError if two columns have the same name."""
    name, n = next(iter(Counter(names).most_common(1)), ("", 0))
    if n > 1:
        raise ValueError(f"X has more than one column named {name!r}. Rename the columns, or delete one of them.")


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise a ValueError if X is not two-dimensional, or has no rows or no columns."""
    # scikit-learn's estimator checks expect the words "Reshape your data" and "0 feature(s) ... 1 is required".
    if not shape:
        raise ValueError(f"X is a single value, which is not a table. {ACCEPTED}.")
    if len(shape) != 2:
        advice = "a single feature is X.reshape(-1, 1), a single row X.reshape(1, -1)"
        if len(shape) > 2:
            advice = f"with one row for each of the {shape[0]} samples, X.reshape(len(X), -1)"
        raise ValueError(
            f"X must be a table: Expected 2D array, got {len(shape)}D array instead. Reshape your data: {advice}."
        )
    for size, kind, unit in zip(shape, ("rows", "columns"), ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise ValueError(
                f"X has no {kind}: Found array with 0 {unit} (shape={shape}) while a minimum of 1 is required."
            )


def check_same_width(width: int, first: int, i: int) -> None:
    """Raise a ValueError if block i and the first block have different numbers of columns."""
    if width != first:
        raise ValueError(
            f"The blocks of X have different numbers of columns: block 0 has {first} columns, block {i} has {width}."
            " Pass blocks of rows of one table."
        )


# --- sparse matrices ---


def _open_sparse(blocks: Sequence[Any], discrete_features: Any, names: Sequence[str] | None) -> Table:
    for i, X in enumerate(blocks):
        if not is_sparse(X):
            raise ValueError(
                f"The blocks of X have different types: some are sparse matrices, but block {i} is a"
                f" {type(X).__name__}. Convert them to one type."
            )
        check_shape((1, *X.shape[1:]))
        check_same_width(X.shape[1], blocks[0].shape[1], i)
    F = blocks[0].shape[1]
    check_memory_for_sums(F)
    check_shape((sum(X.shape[0] for X in blocks), F))
    declared = parse_discrete_features(discrete_features, names, F)
    discrete = np.full(F, all(X.dtype.kind == "b" for X in blocks)) | declared
    blocks = [as_valid_csr(X) for X in blocks]
    if discrete.any():
        check_exact_codes(max(max_abs_integer(X.data) for X in blocks), "A column of X")
    return Table(
        SparseSource([as_canonical_csr(X) for X in blocks]), None if names is None else [*names], discrete, declared
    )


def check_memory_for_sums(F: int) -> None:
    """Raise a ValueError if the sums of F features need more memory than this machine has.

    The usual cause is a wrong column index in a sparse matrix, which makes F very large.
    """
    needed = BYTES_PER_FEATURE * F
    available = total_memory()
    if available is not None and needed > available:
        raise ValueError(
            f"X has {F:,} features, which need {needed / 1e9:.0f} GB of memory, but this machine has only"
            f" {available / 1e9:.0f} GB. Check the data for a wrong column index."
        )


def as_valid_csr(X: Any) -> csr_array:
    """Convert a sparse matrix of any format to CSR; raise a ValueError if its indices are invalid.

    The result shares the arrays of a CSR matrix. The indices are checked first, because SciPy does not check them and
    would access memory outside the arrays; its `check_format` skips some checks if the matrix has no entries.
    """
    from scipy.sparse import csr_array

    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has the type {X.dtype}. Convert it to real numbers.")
    try:
        if X.format in ("csr", "csc", "bsr"):
            X = copy(X)  # a shallow copy, because the check may replace arrays of X
            for name in ("indptr", "indices"):
                if getattr(X, name).dtype.kind not in "iu":
                    raise ValueError(f"{name} must be integers")
            if np.any(np.diff(X.indptr.astype(np.int64, copy=False)) < 0):
                raise ValueError("indptr must not decrease")
            if X.format == "bsr" and (X.shape[0] % X.blocksize[0] or X.shape[1] % X.blocksize[1]):
                raise ValueError(f"the shape {X.shape} is not a multiple of the block size {X.blocksize}")
            X.check_format(full_check=True)
            return csr_array(X)
        if X.format == "lil":
            if not len(X.rows) == len(X.data) == X.shape[0]:
                raise ValueError("the number of lists is not the number of rows")
            if any(len(columns) != len(values) for columns, values in zip(X.rows, X.data, strict=True)):
                raise ValueError("the numbers of indices and values of a row differ")
        X = X.tocoo()
        if not len(X.row) == len(X.col) == len(X.data):
            raise ValueError("row, col and data must have equal lengths")
        for indices, size in ((X.row, X.shape[0]), (X.col, X.shape[1])):
            if indices.dtype.kind not in "iu" or (len(indices) and not 0 <= indices.min() <= indices.max() < size):
                raise ValueError(f"indices must be integers from 0 to {size - 1}")
        return csr_array(X)
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}.") from None


def as_canonical_csr(X: csr_array) -> csr_array:
    """Return X with sorted indices, no duplicates and float values. X is copied only if it must be changed."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return X


# --- arrays ---


def as_2d_array(X: Any) -> Array:
    """Convert X to a two-dimensional array of numbers, strings or objects; raise a ValueError if X is not a table."""
    check_is_table(X)
    if np.ma.isMaskedArray(X):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    given = X
    rows = X if isinstance(X, list | tuple) else ()
    cells = (v for row in rows if isinstance(row, list | tuple) for v in row)
    # In a NumPy array of strings, every cell would need as much memory as the longest text.
    is_long = any(isinstance(v, str) and len(v) > MAX_FIXED_WIDTH for v in cells)
    try:
        X = X if isinstance(X, np.memmap) else np.asarray(X, object if is_long else None)
    except ValueError:
        raise ValueError("X is not a table: its rows have different lengths. Pass rows of equal length.") from None
    if X.dtype.kind in "US" and not hasattr(given, "dtype"):
        X = np.asarray(given, object)  # for lists of strings and numbers, so that numbers do not become strings
    check_shape(X.shape)
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has the type {X.dtype}. Convert it to real numbers.")
    if X.dtype.kind not in "biufOUSmM":
        raise ValueError(
            f"X has the type {X.dtype}, which is neither numeric nor text. Convert it to numbers or strings."
        )
    if X.dtype == np.longdouble:
        X = X.astype(np.float64)
    return X


def _open_arrays(arrays: list[Array], discrete_features: Any, names: Sequence[str] | None, leave_out: bool) -> Opened:
    width = arrays[0].shape[1]
    for i, X in enumerate(arrays):
        check_same_width(X.shape[1], width, i)
    declared = parse_discrete_features(discrete_features, names, width)
    known = None if names is None else [*names]
    if any(X.dtype.kind in "OUSmM" for X in arrays):
        return _open_columns([[X[:, j] for X in arrays] for j in range(width)], known, declared, leave_out)
    discrete = np.full(width, all(X.dtype.kind == "b" for X in arrays))
    return [ArraySource(X) for X in arrays], known, discrete, declared, []


def _open_columns(columns: list[list[Any]], names: list[str] | None, declared: Array, leave_out: bool) -> Opened:
    """Encode columns as numbers. A column is a list of its blocks of rows, which are arrays or narwhals Series.

    If `leave_out` is True, columns of lists, structs and free text are left out, with a warning.
    """
    unusable = {}
    for j, blocks in enumerate(columns if leave_out else ()):
        if reason := _describe_unusable(blocks, bool(declared[j])):
            unusable[j] = reason
    all_names = names or [f"x{j}" for j in range(len(columns))]
    warn_of_left_out({all_names[j]: reason for j, reason in unusable.items()}, len(columns))
    kept = [j for j in range(len(columns)) if j not in unusable]
    shown = [f"column {j}" if names is None else f"column {names[j]!r}" for j in kept]
    encoded = [_Column(name, _encode_blocks(columns[j], name)) for j, name in zip(kept, shown, strict=True)]
    discrete = np.array([column.discrete for column in encoded])
    known = [all_names[j] for j in kept] if unusable else names
    sources: list[Source] = [ColumnSource([column.blocks[i] for column in encoded]) for i in range(len(columns[0]))]
    return sources, known, discrete, declared[kept], encoded


def _describe_unusable(blocks: list[Any], is_declared: bool) -> str | None:
    """Name the values of a column if it cannot be a feature, such as "lists"; otherwise, return None."""
    first = blocks[0]
    if isinstance(first, nw.Series) and isinstance(first.dtype, nw.List | nw.Array | nw.Struct | nw.Binary):
        return {"List": "lists", "Array": "lists", "Struct": "structs"}.get(type(first.dtype).__name__, "bytes")
    if isinstance(first, nw.Series):
        if isinstance(first.dtype, nw.Unknown) and first.null_count() < len(first):
            kind = str(getattr(first.to_native(), "type", getattr(first.to_native(), "dtype", "unknown")))
            return "bytes" if "binary" in kind else kind
        if not isinstance(first.dtype, nw.Object | nw.String):
            return None
        head = first[:MAX_FREE_TEXT_ROWS].to_list()
    elif first.dtype.kind in "OUS":
        head = first[:MAX_FREE_TEXT_ROWS].tolist()
    else:
        return None
    present = [v for v in head if isinstance(v, list | tuple | set | dict | np.ndarray | bytes)]
    if present and len(present) == sum(v is not None and v is not nan for v in head):
        return "structs" if isinstance(present[0], dict) else "bytes" if isinstance(present[0], bytes) else "lists"
    return "free text" if not is_declared and is_free_text(head) else None


# --- DataFrames ---


def _open_frames(frames: list[nw.DataFrame[Any]], discrete_features: Any, leave_out: bool) -> Opened:
    for frame in frames:
        check_frame(frame)
    names = [str(name) for name in frames[0].columns]
    check_unique_names(names)  # a pandas DataFrame may have both 1 and "1" as column names
    check_shape((sum(len(f) for f in frames), len(names)))
    for i, frame in enumerate(frames):
        others = [str(name) for name in frame.columns]
        if others != names:
            problem = next(
                (repr(n) for n in [*others, *names] if (n in others) != (n in names)), "the order of columns"
            )
            raise ValueError(
                f"The blocks of X have different columns: block {i} differs from block 0 in {problem}. Pass blocks of"
                " rows of one table."
            )
    declared = parse_discrete_features(discrete_features, names, len(names))
    arrays = [_shared_array(frame) for frame in frames]
    if all(X is not None for X in arrays):
        return [ArraySource(X) for X in arrays], names, np.zeros(len(names), bool), declared, []  # type: ignore[arg-type]
    columns: list[list[Any]] = [[frame[:, j] for frame in frames] for j in range(len(names))]
    return _open_columns(columns, names, declared, leave_out)


def _shared_array(frame: nw.DataFrame[Any]) -> Array | None:
    """Return the array that contains all columns of a DataFrame; None if the columns are separate arrays."""
    dtypes = set(frame.schema.values())
    if len(dtypes) > 1 or not dtypes <= {nw.Float32(), nw.Float64()}:
        return None
    head = frame[:2]  # two rows are enough to find out whether `to_numpy` makes a copy
    return frame.to_numpy() if np.shares_memory(head.to_numpy()[:, 0], head[:, 0].to_numpy()) else None


Encoded = tuple[Array, list[Any] | None]  # (codes, categories), where code -1 is missing, or (numbers, None)


class _Column:
    """A feature encoded as numbers. A category has the same code in all blocks of rows."""

    def __init__(self, name: str, blocks: Sequence[Encoded]) -> None:
        self.name = name
        self.discrete = any(categories is not None for _, categories in blocks)
        if self.discrete:
            blocks = [  # in a block without values, all codes are missing
                (np.full(len(x), -1), []) if known is None and np.isnan(x).all() else (x, known) for x, known in blocks
            ]
            if any(categories is None for _, categories in blocks):
                raise ValueError(
                    f"{name} has numbers in one block of X and categories in another. Convert them to one type."
                )
        categories = sorted({c for _, known in blocks for c in known or ()}, key=str)
        self.codes = {c: float(i) for i, c in enumerate(categories)}
        dtype = np.float32 if len(categories) < 2**24 else np.float64
        self.blocks = [  # the code -1 of missing values selects the last entry, NaN
            values if known is None else np.array([*map(self.codes.__getitem__, known), np.nan], dtype)[values]
            for values, known in blocks
        ]


# blocks, feature names, mask of the features with a discrete type, mask of the features declared discrete, columns
Opened = tuple[list[Source], list[str] | None, Array, Array, list[_Column]]


def _encode_blocks(blocks: list[Any], name: str) -> list[Encoded]:
    """Encode the blocks of a column, each as numbers or as codes and categories.

    Dates and times become days since the first one, and durations become seconds.
    """
    times: list[Any] = [_as_times(block) for block in blocks]
    if any(x is None for x in times):
        return [
            _encode_series(block, name) if isinstance(block, nw.Series) else _encode_objects(block, name)
            for block in blocks
        ]
    numbers = [np.where(np.isnat(x), np.nan, x.astype(np.int64).astype(np.float64)) for x in times]
    if times[0].dtype.kind == "m":
        return [(x / MICROSECONDS, None) for x in numbers]
    origin = next((x[~np.isnan(x)][0] for x in numbers if not np.isnan(x).all()), 0.0)
    return [((x - origin) / MICROSECONDS / SECONDS_PER_DAY, None) for x in numbers]


def _as_times(block: Any) -> Array | None:
    """Convert dates and times to datetime64, durations and times of day to timedelta64; None for other columns."""
    if isinstance(block, nw.Series):
        dtype = block.dtype
        if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
            block = block.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        if not isinstance(dtype, nw.Date | nw.Datetime | nw.Duration | nw.Time | nw.Object):
            return None
        block = block.to_numpy() if isinstance(dtype, nw.Datetime | nw.Duration) else np.array(block.to_list(), object)
    if block.dtype.kind in "mM":
        return block.astype("M8[us]" if block.dtype.kind == "M" else "m8[us]")
    if block.dtype.kind != "O":
        return None
    missing = is_missing(block)
    for kind, unit in (((date,), "M8[us]"), ((timedelta,), "m8[us]"), ((time,), "m8[us]")):
        if not missing.all() and all(isinstance(v, kind) for v in block[~missing]):
            out = np.full(len(block), "NaT", unit)
            out[~missing] = [_without_zone(v) for v in block[~missing]]
            return out
    return None


def _without_zone(value: date | timedelta | time) -> Any:
    """Convert a date with a time zone to UTC, and a time of day to the duration since midnight."""
    if isinstance(value, time):
        return timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _encode_series(series: nw.Series[Any], name: str) -> Encoded:
    dtype = series.dtype
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        categories = series.drop_nulls().unique().to_list()
        if not categories:
            return np.full(len(series), -1), []
        native = series.to_native()
        if hasattr(native, "factorize"):  # pandas
            codes, found = native.factorize()
            return codes, list(found)
        codes = series.cast(nw.String).replace_strict(
            [str(c) for c in categories], list(range(len(categories))), return_dtype=nw.Int64
        )
        return codes.fill_null(-1).to_numpy(), categories
    if isinstance(dtype, nw.Boolean):
        return series.cast(nw.Int64).fill_null(-1).to_numpy(), [False, True]
    if dtype.is_numeric():
        if not series.null_count() and not dtype.is_decimal():
            return series.to_numpy(), None
        return series.cast(nw.Float64).to_numpy(), None
    if isinstance(dtype, nw.Unknown) and series.null_count() == len(series):
        return np.full(len(series), np.nan), None
    if isinstance(dtype, nw.Object):
        return _encode_objects(series.to_numpy(), name)
    raise ValueError(f"{name} has the type {dtype}, which is neither numeric nor text. Convert it, or drop it.")


def _encode_objects(values: Array, name: str) -> Encoded:
    """Encode a column of Python objects, which must be either booleans, strings or numbers; None is missing."""
    missing = is_missing(values)
    present = values[~missing]
    if len(present) and all(isinstance(v, bool | np.bool_) for v in present):
        codes = np.full(len(values), -1)
        codes[~missing] = present.astype(int)
        return codes, [False, True]
    if all(isinstance(v, str | bytes) for v in present):
        # A NumPy array of strings would need as much memory per cell as the longest string.
        text = [v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else v for v in present.tolist()]
        categories, codes = sorted(set(text)), np.full(len(values), -1)
        code = {category: i for i, category in enumerate(categories)}
        codes[~missing] = [code[v] for v in text]
        return codes, categories
    try:
        out = np.full(len(values), np.nan)
        if any(isinstance(v, str | bytes) for v in present):
            raise TypeError
        out[~missing] = present.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{name} of X has integers too large for floats. Convert them to strings, or drop the column."
        ) from None
    except (TypeError, ValueError):
        types = ", ".join(sorted({type(v).__name__ for v in present}))
        raise ValueError(
            f"{name} of X contains {types}. Every column of X must be all strings or all numbers. Convert the column,"
            " or drop it."
        ) from None
    return out, None
