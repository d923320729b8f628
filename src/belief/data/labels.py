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
from belief.data.diagnostics import are_numbers, shorten, warn_of_similar_classes
from belief.data.kinds import check_column
from belief.data.source import is_sparse
from belief.method.arrays import Array, unique_ids
from belief.method.targets import CLASSIFICATION, REGRESSION, TASKS, Target, make_class_target, make_numeric_target

# Up to 20 distinct whole numbers are classes, up to 50 are classes with a warning, and more are numbers to predict,
# such as ages, unless `task` is passed.
MAX_CLASSES_WITHOUT_WARNING = 20
MAX_WHOLE_NUMBER_CLASSES = 50
MIN_DISTINCT_NUMBERS = 50  # more distinct numbers are a regression target if they occur less than twice on average
MAX_FIXED_WIDTH = 1000  # characters; a NumPy array of strings needs as much memory per value as for the longest value
MAX_CLASSES = 1000  # limited because each row searches for neighbours in each class


class Labels:
    """The target of all rows, added block by block and stored as one code per row.

    While blocks are added, each distinct target gets a provisional code, in order of appearance. `encode_classes` sets
    `order`, an array that maps each provisional code to the index of its class.

    Parameters
    ----------
    name : the name of the target in error messages
    task : "classification", "regression", or "auto" to infer it from the values
    """

    def __init__(self, name: str = "y", task: str = "auto") -> None:
        self.name, self.n_rows, self.task = name, 0, task
        self.is_categorical = False  # categories are classes, even if they are numbers
        self.order = np.zeros(0, np.int32)
        self._codes: dict[Any, int] = {}  # the provisional code of each distinct target
        self._values: list[Array] = []  # for each block, the distinct targets that no earlier block contains
        self._blocks: list[Array] = []  # for each block, the provisional code of each row
        self._ends = [0]  # the number of rows up to the end of each block

    def add(self, y: Any) -> None:
        """Add the targets of the next rows."""
        series = None if isinstance(y, np.ndarray) else nw.from_native(y, series_only=True, pass_through=True)
        self.is_categorical |= isinstance(series, nw.Series) and isinstance(series.dtype, nw.Categorical | nw.Enum)
        y = as_array(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"{self.name} should be a 1d array with one class or number per row; got an array of shape {y.shape}"
                " instead."
            )
        check_no_missing(y, self.name, self.n_rows)
        odd = {list, tuple, dict, set, frozenset, np.ndarray, bytes, np.bytes_, np.void, complex}
        kind = next((t.__name__ for t in map(type, y) if t in odd), None) if y.dtype.kind == "O" else None
        if y.dtype.kind not in "OUbiufmM" or kind:
            advice = "Decode them to strings" if kind == "bytes" or y.dtype.kind == "S" else "Pass one value per row"
            raise ValueError(
                f"{self.name} has values of type {kind or y.dtype}, which are neither classes nor numbers. {advice}."
            )
        try:
            if y.dtype.kind not in "iu" or not len(y) or int(y.max()) - int(y.min()) > len(y):
                values, codes = np.unique(y, return_inverse=True)
            else:  # integers of a small range need no sorting; their difference is int64, so that it does not overflow
                low, wide = y.min(), y.astype(np.int64) if y.dtype.kind == "i" else y
                values, codes = unique_ids((wide - low).astype(np.int64))
                values = values.astype(y.dtype) + low
        except (TypeError, ValueError):
            types = ", ".join(sorted({type(v).__name__ for v in y}))
            raise ValueError(
                f"{self.name} mixes types that cannot be compared ({types}). Convert all values to strings."
            ) from None
        self.add_encoded(values, codes)

    def add_encoded(self, values: Array, codes: Array) -> None:
        """Add the targets of the next rows: row i has the target `values[codes[i]]`."""
        n_known = len(self._codes)
        provisional = np.array([self._codes.setdefault(v, len(self._codes)) for v in values.tolist()], np.int32)
        code, first = np.unique(provisional, return_index=True)
        self._values.append(values[first[code >= n_known]])
        self._blocks.append(provisional[codes])
        self.n_rows += len(codes)
        self._ends.append(self.n_rows)
        if len(self._codes) > MAX_CLASSES and self.task != REGRESSION and values.dtype.kind in "OUS":
            # raise the error before the end of the file, because each further class takes memory
            check_class_count(np.array([*self._codes]), self.name, self.n_rows)

    def check_n_rows(self, n_rows: int, more: str = "") -> None:
        """Raise a ValueError if X does not have as many rows as y; `more` is added to the message after `n_rows`."""
        if n_rows != self.n_rows:
            raise ValueError(
                f"X and y must have the same number of rows; X has {n_rows}{more}, y has {self.n_rows}. Pass one target"
                " per row."
            )

    def provisional_codes(self, a: int, b: int) -> Array:
        """Return the provisional codes of the rows from a to b (exclusive), which must have been added before."""
        i, j = bisect_right(self._ends, a) - 1, bisect_left(self._ends, b)
        return np.concatenate(self._blocks[i:j])[a - self._ends[i] : b - self._ends[i]]

    def target(self) -> tuple[Target, Array]:
        """Return the target, and an array with the class index (for regression, the rank) of each row."""
        task = self.infer_task() if self.task == "auto" else self.task
        if task == REGRESSION:
            return make_numeric_target(self.to_numbers())
        classes, codes = self.encode_classes()
        return make_class_target(classes, codes), codes

    def infer_task(self) -> str:
        """Infer the task from the values: regression if there are fractions or many whole numbers."""
        if self.is_categorical:
            return CLASSIFICATION
        values = np.unique(np.concatenate(self._values))
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
        """Return the sorted classes, and the class index of each row; raise a ValueError if the classes are invalid."""
        values = np.concatenate(self._values)
        classes = np.unique(values)
        if len(classes) < 2:
            only = f", {shorten(repr(classes.tolist()[0]))}" if len(classes) else ""
            raise ValueError(
                f"{self.name} has only one class{only}, but at least 2 classes are needed. Choose another target."
            )
        reason = None if self.is_categorical else describe_regression_target(classes, self.n_rows)
        if reason is not None:
            raise ValueError(
                f"{self.name} looks like a regression target ({reason}; unknown label type: continuous), but classes"
                f" are needed. To predict numbers, pass task={REGRESSION!r} where this parameter exists. Or bin the"
                " numbers with sklearn.preprocessing.KBinsDiscretizer, or convert them to strings."
            )
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


def read_labels(y: Any, n_rows: int, task: str) -> Labels:
    """Return the targets of all rows of a table in memory; raise a ValueError if y is not one target per row."""
    if y is None:
        raise ValueError("BELIEF requires y to be passed, but the target y is None. Pass the target of every row.")
    if is_sparse(y):
        raise ValueError("y is a sparse matrix, but must be a dense array. Pass y.toarray().ravel().")
    labels = Labels(task=task)
    labels.add(y)
    labels.check_n_rows(n_rows)
    return labels


def check_task(task: Any) -> None:
    """Raise a ValueError if `task` is not the name of a task."""
    if not (isinstance(task, str) and task in TASKS):
        raise ValueError(f"task must be 'auto', 'classification' or 'regression'; got {task!r}.")


def as_array(y: Any) -> Array:
    """Convert y to an array. Masked values become None, and Python numbers become a numeric array."""
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
    """Return a one-dimensional array of objects. NumPy alone would make lists of equal length a matrix."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _is_number(v: Any) -> bool:
    return is_real(v) or isinstance(v, Decimal) or (isinstance(v, float | np.floating) and v == v)


def _as_numeric(y: Array) -> Array:
    """Convert Python numbers to an array of 64-bit integers or floats; integers of more than 64 bits remain objects."""
    if not all(is_integer(v) or (isinstance(v, Decimal) and v.is_finite() and v == int(v)) for v in y):
        try:
            return y.astype(np.float64)
        except OverflowError:
            raise ValueError(
                "y contains fractions and also integers too large for floats. Convert all values to strings."
            ) from None
    whole = [int(v) for v in y]
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= min(whole) and max(whole) <= np.iinfo(dtype).max:
            return np.array(whole, dtype)
    return _as_objects(whole)


def as_numbers(values: Array, name: str) -> Array:
    """Convert values, which may be numbers stored as text, to floats; raise a ValueError if some are not numbers."""
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
            f"{name} has numbers too large for floats. Divide them by a constant, or take their logarithm."
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
    """An error in a row of a table; the message contains the row number.

    Code that reads one part of a table raises the error with the row number within this part. Its caller knows how many
    rows precede the part, and raises the error again with the row number in the whole table. The message consists of
    the text `before`, the row number and the text `rest`.
    """

    def __init__(self, before: str, row: int, rest: str) -> None:
        super().__init__(f"{before} {row}{rest}")
        self.parts = (before, row, rest)


def check_no_missing(y: Array, name: str, first: int | None) -> None:
    """Raise an error if a target is missing or infinite; `first` is the number of the first row, or None if unknown."""
    # scikit-learn's estimator checks expect the words "Input" and "NaN" or "infinity" in the message.
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
    """Return a mask of the values that are missing: None, NaN, NaT or NA."""
    return np.array([_is_missing(v) for v in values], bool)


def _is_missing(v: Any) -> bool:
    if v is None:
        return True
    try:
        return bool(v != v)
    except TypeError:  # pandas.NA != pandas.NA is NA, for which bool raises a TypeError
        return True
    except ValueError:  # v is an array, for which bool raises a ValueError
        return False


def has_dates(y: Array) -> bool:
    """Return True if y contains dates, times or durations."""
    dates = (datetime.date, datetime.timedelta)
    return y.dtype.kind in "mM" or (y.dtype.kind == "O" and any(isinstance(v, dates) for v in y))


def describe_regression_target(values: Array, n_rows: int) -> str | None:
    """Return a reason, in words, why distinct values look like a regression target; None if they look like classes."""
    fractions = values[values != np.floor(values)] if values.dtype.kind == "f" else values[:0]
    if len(fractions):
        return f"it has fractions, such as {float(fractions[0])!r}"
    if len(values) > max(MIN_DISTINCT_NUMBERS, n_rows // 2) and (values.dtype.kind in "iuf" or has_dates(values)):
        kind = "numbers" if values.dtype.kind in "iuf" else "dates"
        return f"it has {len(values)} distinct {kind} in {n_rows} rows"
    return None


def check_class_count(classes: Array, name: str, n_rows: int) -> None:
    """Raise a ValueError if there are too many classes, in all or for this number of rows."""
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
        f"{name} has {len(classes):,} distinct values in {n_rows:,} rows, too many for classes: at most"
        f" {MAX_CLASSES:,} classes are possible, with two or more rows each on average. {advice}, or merge them into"
        " fewer classes."
    )
