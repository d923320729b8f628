"""Parsing of the target: a class for each row, or a number to predict."""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from belief._utils.validation import is_integer, is_real
from belief._utils.warnings import warn
from belief.data.damaged import check_column
from belief.data.diagnostics import are_numbers, shorten, warn_of_similar_classes
from belief.data.source import is_sparse
from belief.method.arrays import Array, unique_ids
from belief.method.targets import CLASSIFICATION, REGRESSION, TASKS, Target, make_class_target, make_numeric_target

MAX_CLASSES_WITHOUT_WARNING = 20  # distinct whole numbers; more are classes, but with a warning
MAX_WHOLE_NUMBER_CLASSES = 50  # more whole numbers, such as ages, are numbers unless task says otherwise
MIN_DISTINCT_NUMBERS = 50  # more whole numbers are a regression target if most of them occur once or twice
MAX_FIXED_WIDTH = 1000  # characters; an array of type str takes as much memory for every value as for the longest
MAX_CLASSES = 1000  # since each row searches for neighbours in each class


class Labels:
    """The targets of rows that come in blocks, encoded as one number per row.

    While blocks are added, distinct targets have provisional codes in order of appearance. `encode_classes` sets
    `order`, which maps each provisional code to the index of its class.

    Parameters
    ----------
    name : the target, as error messages call it
    task : "classification", "regression", or "auto" to infer it from the values
    """

    def __init__(self, name: str = "y", task: str = "auto") -> None:
        self.name, self.n_rows, self.task = name, 0, task
        self.is_categorical = False  # categories are classes, even if they are numbers
        self.order = np.zeros(0, np.int32)
        self._codes: dict[Any, int] = {}  # the provisional code of each distinct target
        self._values: list[Array] = []  # the targets that appear first in each block
        self._blocks: list[Array] = []  # the code of each row
        self._ends = [0]  # the number of rows up to each block

    def add(self, y: Any) -> None:
        """Add the targets of the next rows."""
        self.is_categorical |= has_categorical_type(y)
        y = as_array(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"{self.name} should be a 1d array with one class or number per row; got an array of shape {y.shape}"
                " instead."
            )
        check_no_missing(y, self.name, self.n_rows)
        check_target_type(y, self.name)
        try:
            values, codes = _encode(y)
        except (TypeError, ValueError):
            types = ", ".join(sorted({type(v).__name__ for v in y}))
            raise ValueError(
                f"{self.name} mixes types that cannot be compared ({types}). Convert all values to strings."
            ) from None
        self.add_encoded(values, codes)

    def add_encoded(self, values: Array, codes: Array) -> None:
        """Add the targets of the next rows, given as distinct values and the index of each row's value."""
        n_known = len(self._codes)
        provisional = np.array([self._codes.setdefault(v, len(self._codes)) for v in values.tolist()], np.int32)
        code, first = np.unique(provisional, return_index=True)
        self._values.append(values[first[code >= n_known]])
        self._blocks.append(provisional[codes])
        self.n_rows += len(codes)
        self._ends.append(self.n_rows)
        if len(self._codes) > MAX_CLASSES and self.task != REGRESSION and values.dtype.kind in "OUS":
            # raise now, since the tables of each further class take memory
            check_class_count(np.array([*self._codes]), self.name, self.n_rows)

    def provisional_codes(self, a: int, b: int) -> Array:
        """Return the provisional codes of the rows a to b, which must have been added."""
        i, j = bisect_right(self._ends, a) - 1, bisect_left(self._ends, b)
        return np.concatenate(self._blocks[i:j])[a - self._ends[i] : b - self._ends[i]]

    def target(self) -> tuple[Target, Array]:
        """Return the target, and the class index or rank of each row."""
        task = self.infer_task() if self.task == "auto" else self.task
        if task == REGRESSION:
            return make_numeric_target(self.to_numbers())
        classes, codes = self.encode_classes()
        return make_class_target(classes, codes), codes

    def infer_task(self) -> str:
        """Return the task that the values suggest: regression if there are fractions or many whole numbers."""
        values = self._distinct_values()
        if self.is_categorical:
            return CLASSIFICATION
        if describe_regression_target(values, self.n_rows) is not None:
            return REGRESSION
        if values.dtype.kind not in "iuf" or len(values) <= MAX_CLASSES_WITHOUT_WARNING:
            return CLASSIFICATION
        many = f"{self.name} has {len(values)} distinct whole numbers, which are treated as"
        if len(values) > MAX_WHOLE_NUMBER_CLASSES:
            warn(
                f"{many} numbers to predict. Pass task={CLASSIFICATION!r} if they are classes; task={REGRESSION!r}"
                " avoids this warning."
            )
            return REGRESSION
        warn(f"{many} classes. Pass task={REGRESSION!r} to predict numbers.")
        return CLASSIFICATION

    def encode_classes(self) -> tuple[Array, Array]:
        """Return the classes, sorted, and the class index of each row; raise a ValueError if they cannot be used."""
        values, classes = np.concatenate(self._values), self._distinct_values()
        if len(classes) < 2:
            only = f", {shorten(repr(classes.tolist()[0]))}" if len(classes) else ""
            raise ValueError(
                f"{self.name} has only one class{only}, but at least 2 classes are needed. Choose another target."
            )
        if not self.is_categorical:
            check_is_classification(classes, self.name, self.n_rows)
        check_class_count(classes, self.name, self.n_rows)
        warn_of_similar_classes(classes.tolist(), self.name)
        self.order = np.searchsorted(classes, values).astype(np.int32)
        return classes, self.order[np.concatenate(self._blocks)]

    def to_numbers(self) -> Array:
        """Return the target of each row as a float; raise a ValueError if it is constant or not numeric."""
        values = np.concatenate([as_numbers(values, self.name) for values in self._values])
        y = values[np.concatenate(self._blocks)]
        if len(y) == 1:
            raise ValueError("X has only one row (1 sample), but at least 2 rows are needed.")
        if len(y) and y.min() == y.max():
            raise ValueError(f"{self.name} is constant: all values are {y[0]:g}, so there is nothing to predict.")
        return y

    def _distinct_values(self) -> Array:
        return np.unique(np.concatenate(self._values))


def read_target(y: Any, n_rows: int, task: str) -> tuple[Target, Array]:
    """Return the target y, and the class index or rank of each row; raise a ValueError if y cannot be used."""
    return _labels_of(y, n_rows, task).target()


def read_numbers(y: Any, n_rows: int) -> Array:
    """Return the target of a regression as floats; raise a ValueError if y cannot be used."""
    return _labels_of(y, n_rows, REGRESSION).to_numbers()


def encode_labels(y: Any, n_rows: int) -> tuple[Array, Array]:
    """Return the classes of y, sorted, and the class index of each row; raise a ValueError if y cannot be used."""
    return _labels_of(y, n_rows, CLASSIFICATION).encode_classes()


def _labels_of(y: Any, n_rows: int, task: str) -> Labels:
    if y is None:
        raise ValueError("BELIEF requires y to be passed, but the target y is None. Pass the target of every row.")
    if is_sparse(y):
        raise ValueError("y is a sparse matrix, but must be a dense array. Pass y.toarray().ravel().")
    labels = Labels(task=task)
    labels.add(y)
    if labels.n_rows != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows; X has {n_rows}, y has {labels.n_rows}. Pass one target"
            " per row."
        )
    return labels


def check_task(task: Any) -> None:
    """Raise a ValueError if `task` is not the name of a task."""
    if not (isinstance(task, str) and task in TASKS):
        raise ValueError(f"task must be 'auto', 'classification' or 'regression'; got {task!r}.")


def has_categorical_type(y: Any) -> bool:
    """Return True if y is a series of categories of pandas, polars or Arrow."""
    if isinstance(y, np.ndarray):
        return False
    series = nw.from_native(y, series_only=True, pass_through=True)
    return isinstance(series, nw.Series) and isinstance(series.dtype, nw.Categorical | nw.Enum)


def as_array(y: Any) -> Array:
    """Return y as an array. Masked values become None, and an object array of numbers becomes an array of numbers."""
    check_column(y)
    if hasattr(y, "to_pylist"):  # Arrow
        y = _as_objects(y.to_pylist())
    elif hasattr(y, "to_numpy"):  # pandas and polars
        y = y.to_numpy()
    elif np.ma.isMaskedArray(y):
        mask, y = np.ma.getmaskarray(y), np.ma.getdata(y)
        y = np.where(mask, None, y.astype(object)) if mask.any() else y
    elif isinstance(y, list | tuple) and any(isinstance(v, str) and len(v) > MAX_FIXED_WIDTH for v in y):
        y = _as_objects(y)
    try:
        y = np.asarray(y)
    except ValueError:  # a list of lists of different lengths
        y = _as_objects(y)
    if y.dtype.kind == "O" and y.ndim == 1 and len(y) and all(is_integer(v) or _is_number(v) for v in y):
        y = _as_numeric(y)
    if y.dtype == np.longdouble:
        rounded = y.astype(np.float64)
        is_whole = np.isfinite(y).all() and (y == np.rint(y)).all()
        return _as_numeric(_as_objects([int(v) for v in y])) if is_whole and (y != rounded).any() else rounded
    return y


def _as_objects(values: Sequence[Any]) -> Array:
    """Return a one-dimensional array of objects, even if they are lists of the same length."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _is_number(v: Any) -> bool:
    return is_real(v) or isinstance(v, Decimal) or (isinstance(v, float | np.floating) and v == v)


def _as_numeric(y: Array) -> Array:
    """Return Python numbers as an array of 64-bit integers or floats; larger integers remain objects."""
    if not all(is_integer(v) or (isinstance(v, Decimal) and v.is_finite() and v == int(v)) for v in y):
        try:
            return y.astype(np.float64)
        except OverflowError:
            raise ValueError("y has fractions, and integers too large for floats. Convert them to strings.") from None
    whole = [int(v) for v in y]
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= min(whole) and max(whole) <= np.iinfo(dtype).max:
            return np.array(whole, dtype)
    return _as_objects(whole)


def check_target_type(y: Array, name: str) -> None:
    """Raise a ValueError if the targets are neither classes nor numbers."""
    odd = {list, tuple, dict, set, frozenset, np.ndarray, bytes, np.bytes_, np.void, complex}
    kind = next((t.__name__ for t in map(type, y) if t in odd), None) if y.dtype.kind == "O" else None
    if y.dtype.kind not in "OUbiufmM" or kind:
        advice = "Decode them to strings" if kind == "bytes" or y.dtype.kind == "S" else "Pass one value per row"
        raise ValueError(
            f"{name} has values of type {kind or y.dtype}, which are neither classes nor numbers. {advice}."
        )


def _encode(y: Array) -> tuple[Array, Array]:
    """Return the distinct values of y, sorted, and the index of each element's value among them."""
    if y.dtype.kind not in "iu" or not len(y) or int(y.max()) - int(y.min()) > len(y):
        return np.unique(y, return_inverse=True)
    # integers of a small range are encoded without sorting; in int64, so that the difference cannot overflow
    low, wide = y.min(), y.astype(np.int64) if y.dtype.kind == "i" else y
    values, codes = unique_ids((wide - low).astype(np.int64))
    return values.astype(y.dtype) + low, codes


def as_numbers(values: Array, name: str) -> Array:
    """Return values as floats, parsing text; raise a ValueError if some are not numbers."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if has_dates(values):
        raise ValueError(
            f"{name} contains dates or times, but must be numeric. Convert them to numbers, such as days since the"
            " first date, or to strings if they are classes."
        )
    try:
        if values.dtype.kind not in "OUS" or any(isinstance(v, bool | np.bool_) for v in values):
            raise TypeError
        y = values.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{name} has numbers beyond the range of floats. Divide them by a constant, or take their logarithm."
        ) from None
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} contains classes, such as {shorten(repr(_first_class(values)))}, but task={REGRESSION!r} needs"
            f" numbers. Omit task, pass task={CLASSIFICATION!r}, or convert the classes to numbers."
        ) from None
    check_no_missing(y, name, None)
    return y


def _first_class(values: Array) -> Any:
    """Return the first value that cannot be converted to a number."""
    for v in values.tolist():
        try:
            if isinstance(v, bool):
                return v
            float(v)
        except (TypeError, ValueError):
            return v
    return values.tolist()[0]


class RowError(ValueError):
    """An error in one row of a table, whose number depends on who reads the rows.

    Code that reads part of the rows raises it with the row's number in that part. Code that knows the number of rows
    before that part raises it again, from `parts`, with the number in the whole table.
    """

    def __init__(self, before: str, row: int, rest: str) -> None:
        super().__init__(f"{before} {row}{rest}")
        self.parts = (before, row, rest)


def check_no_missing(y: Array, name: str, first: int | None) -> None:
    """Raise an error if a target is missing or infinite.

    Parameters
    ----------
    y : the targets of some rows
    name : the target, for the error message, which scikit-learn's estimator checks look at
    first : the number of the first row; None if unknown
    """
    if y.dtype.kind == "f":
        bad, problem = ~np.isfinite(y), "NaN" if np.isnan(y).any() else "infinity"
    elif y.dtype.kind in "mM":
        bad, problem = np.isnat(y), "NaT"
    elif y.dtype.kind == "O":
        bad, problem = is_missing(y), "a missing value"
    else:
        return
    if bad.any() and first is None:
        raise ValueError(f"Input {name} contains {problem}. Every row needs a target: drop such rows.")
    if bad.any():
        row = int(first or 0) + int(np.flatnonzero(bad)[0])
        raise RowError(
            f"Input {name} contains {problem} (first in row", row, "). Every row needs a target: drop such rows."
        )


def is_missing(values: Iterable[Any]) -> Array:
    """Return a mask of the Python objects that represent a missing value: None, NaN, NaT or NA."""
    return np.array([_is_missing(v) for v in values], bool)


def _is_missing(v: Any) -> bool:
    if v is None:
        return True
    try:
        return bool(v != v)
    except TypeError:  # pandas.NA != pandas.NA is NA, which has no truth value
        return True
    except ValueError:  # an array, which has no truth value either
        return False


def has_dates(y: Array) -> bool:
    """Return True if y contains dates, times or durations."""
    dates = (datetime.date, datetime.timedelta)
    return y.dtype.kind in "mM" or (y.dtype.kind == "O" and any(isinstance(v, dates) for v in y))


def describe_regression_target(values: Array, n_rows: int) -> str | None:
    """Return the reason why distinct values look like a regression target; None if they look like classes."""
    fractions = values[values != np.floor(values)] if values.dtype.kind == "f" else values[:0]
    if len(fractions):
        return f"it has fractions, such as {float(fractions[0])!r}"
    if len(values) > max(MIN_DISTINCT_NUMBERS, n_rows // 2) and (values.dtype.kind in "iuf" or has_dates(values)):
        kind = "numbers" if values.dtype.kind in "iuf" else "dates"
        return f"it has {len(values)} distinct {kind} in {n_rows} rows"
    return None


def check_is_classification(classes: Array, name: str, n_rows: int) -> None:
    """Raise a ValueError if classes look like a regression target."""
    reason = describe_regression_target(classes, n_rows)
    if reason is not None:
        raise ValueError(
            f"{name} looks like a regression target ({reason}; unknown label type: continuous), but classes are needed."
            f" Pass task={REGRESSION!r} where it is available, bin the numbers with"
            " sklearn.preprocessing.KBinsDiscretizer, or convert them to strings."
        )


def check_class_count(classes: Array, name: str, n_rows: int) -> None:
    """Raise a ValueError if there are too many classes, or if most classes have a single row."""
    if len(classes) <= MAX_CLASSES and len(classes) <= max(MIN_DISTINCT_NUMBERS, n_rows // 2):
        return
    if classes.dtype.kind in "iuf":
        advice = f"They look like numbers: pass task={REGRESSION!r} to predict them"
    elif are_numbers(classes.tolist()):
        advice = f"They look like numbers stored as text: convert them, and pass task={REGRESSION!r}"
    elif len(classes) > n_rows // 2:
        advice = "They look like IDs: choose another target column"
    else:
        advice = "They look like the names of many groups: choose another target column"
    raise ValueError(
        f"{name} has {len(classes):,} distinct values in {n_rows:,} rows, too many for classes (at most"
        f" {MAX_CLASSES:,}, with two rows each on average). {advice}, or merge them into fewer classes."
    )
