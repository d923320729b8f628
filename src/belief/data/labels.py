"""The target of each row, whatever it came as: a class, or a number."""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from belief._utils.validation import is_real
from belief._utils.warnings import warn
from belief.data.objects import is_missing
from belief.data.source import is_sparse
from belief.data.suspects import are_numbers
from belief.method.arrays import Array, unique_ids
from belief.method.targets import CLASSIFICATION, REGRESSION, TASKS, Target, make_class_target, make_numeric_target

FEW = 20  # different whole numbers that are surely classes
MANY = 50  # and so many are not, if most of them occur once or twice
MOST_CLASSES = 1000  # that can be told apart: every row looks for neighbours in each


class Labels:
    """The targets of rows that come in blocks; in the end one number per row.

    Before the end the different targets have numbers in order of appearance; `order` says then which class each of
    those is.

    Parameters
    ----------
    name : what the user calls them
    task : "classification", "regression", or "auto": what they look like
    """

    def __init__(self, name: str = "y", task: str = "auto") -> None:
        self.name, self.n_rows, self.task = name, 0, task
        self.named = False  # whether they came as categories, which are classes even if they are numbers
        self.order = np.zeros(0, np.int32)
        self._numbers: dict[Any, int] = {}  # of the targets, in order of appearance
        self._values: list[Array] = []  # the targets that are new in each block
        self._blocks: list[Array] = []  # the number of each row's target
        self._ends = [0]  # of the blocks

    def add(self, y: Any) -> None:
        """Take the targets of the next rows."""
        self.named |= is_categories(y)
        y = as_array(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"{self.name} should be a 1d array, one class or number per row; got an array of shape {y.shape}"
                " instead."
            )
        refuse_missing(y, self.name, self.n_rows)
        try:
            values, codes = _distinct(y)
        except TypeError:
            kinds = sorted({type(v).__name__ for v in y})
            raise ValueError(
                f"{self.name} mixes values that cannot be compared ({', '.join(kinds)}); make them all strings."
            ) from None
        self.add_coded(values, codes)

    def add_coded(self, values: Array, codes: Array) -> None:
        """Take the targets of the next rows, as distinct values, and which of them each row has."""
        known = len(self._numbers)
        number = np.array([self._numbers.setdefault(v, len(self._numbers)) for v in values.tolist()], np.int32)
        number_of, first = np.unique(number, return_index=True)
        self._values.append(values[first[number_of >= known]])
        self._blocks.append(number[codes])
        self.n_rows += len(codes)
        self._ends.append(self.n_rows)
        if len(self._numbers) > MOST_CLASSES and self.task != REGRESSION and values.dtype.kind in "OUS":
            refuse_too_many(np.array([*self._numbers]), self.name, self.n_rows)  # at once: each costs memory

    def groups(self, a: int, b: int) -> Array:
        """The classes of the rows a to b, which have been taken, as numbers in order of appearance."""
        i, j = bisect_right(self._ends, a) - 1, bisect_left(self._ends, b)
        return np.concatenate(self._blocks[i:j])[a - self._ends[i] : b - self._ends[i]]

    def target(self) -> tuple[Target, Array]:
        """Return what is to be explained, and each row's number in it; of no use, it raises a ValueError."""
        task = self.looks_like() if self.task == "auto" else self.task
        if task == REGRESSION:
            return make_numeric_target(self.numbers())
        classes, labels = self.finish()
        return make_class_target(classes, labels), labels

    def looks_like(self) -> str:
        """The task that the values speak for; where that is in doubt, what scikit-learn's type_of_target says."""
        values = self._distinct()
        if self.named or regression_by(values, self.n_rows) is None:
            if not self.named and values.dtype.kind in "iuf" and len(values) > FEW:
                warn(
                    f"{self.name} has {len(values)} different whole numbers, which are taken for classes: if they are"
                    f" numbers, say so with task={REGRESSION!r}."
                )
            return CLASSIFICATION
        return REGRESSION

    def finish(self) -> tuple[Array, Array]:
        """Return the classes, sorted, and the number of each row's class; of no use, they raise a ValueError."""
        values, classes = np.concatenate(self._values), self._distinct()
        if len(classes) < 2:
            only = f", {classes.tolist()[0]!r}" if len(classes) else ""
            raise ValueError(
                f"{self.name} has one class only{only}: at least 2 classes are needed to tell features apart."
            )
        if not self.named:
            refuse_numbers(classes, self.name, self.n_rows)
        refuse_too_many(classes, self.name, self.n_rows)
        self.order = np.searchsorted(classes, values).astype(np.int32)
        return classes, self.order[np.concatenate(self._blocks)]

    def _distinct(self) -> Array:
        return np.unique(np.concatenate(self._values))

    def numbers(self) -> Array:
        """The number of each row."""
        y = np.concatenate([as_numbers(values, self.name) for values in self._values])[np.concatenate(self._blocks)]
        if len(y) == 1:
            raise ValueError("There is one row only (1 sample): at least two are needed to tell features apart.")
        if len(y) and y.min() == y.max():
            raise ValueError(f"{self.name} has one value only, {y[0]:g}: there is nothing to explain by features.")
        return y


def _distinct(y: Array) -> tuple[Array, Array]:
    """The values that there are, sorted, and the place of each of the given ones among them."""
    if y.dtype.kind not in "iu" or not len(y) or int(y.max()) - int(y.min()) > len(y):
        return np.unique(y, return_inverse=True)
    low, wide = y.min(), y.astype(np.int64) if y.dtype.kind == "i" else y  # so that no difference overflows
    values, codes = unique_ids((wide - low).astype(np.int64))  # without sorting
    return values.astype(y.dtype) + low, codes


def read_target(y: Any, n_rows: int, task: str) -> tuple[Target, Array]:
    """Return what is to be explained, and each row's number in it; a y of no use raises a ValueError."""
    return _labels_of(y, n_rows, task).target()


def read_numbers(y: Any, n_rows: int) -> Array:
    """Return the number of each row; a y of no use raises a ValueError."""
    return _labels_of(y, n_rows, REGRESSION).numbers()


def encode_labels(y: Any, n_rows: int) -> tuple[Array, Array]:
    """Return the classes, sorted, and the number of each row's class; a y of no use raises a ValueError."""
    return _labels_of(y, n_rows, CLASSIFICATION).finish()


def _labels_of(y: Any, n_rows: int, task: str) -> Labels:
    if y is None:
        raise ValueError(
            "BELIEF requires y to be passed, but the target y is None: give the class or the number of every row."
        )
    if is_sparse(y):
        raise ValueError("y is a sparse matrix: pass y.toarray().ravel().")
    labels = Labels(task=task)
    labels.add(y)
    if labels.n_rows != n_rows:
        raise ValueError(f"X and y must have as many rows as each other; X has {n_rows}, y has {labels.n_rows}.")
    return labels


def check_task(task: Any) -> None:
    """Refuse what is no task."""
    if not (isinstance(task, str) and task in TASKS):
        raise ValueError(f"task must be 'auto', 'classification' or 'regression'; got {task!r}.")


def is_categories(y: Any) -> bool:
    """Whether y is a column of categories."""
    series = nw.from_native(y, series_only=True, pass_through=True)
    return isinstance(series, nw.Series) and isinstance(series.dtype, nw.Categorical | nw.Enum)


def as_array(y: Any) -> Array:
    """Y as an array; numbers that came as objects are numbers."""
    if hasattr(y, "to_pylist"):  # Arrow
        y = np.array(y.to_pylist(), object)
    elif hasattr(y, "to_numpy"):  # pandas and polars
        y = y.to_numpy()
    y = np.asarray(y)
    if y.dtype.kind == "O" and len(y) and y.ndim == 1 and all(is_real(v) or isinstance(v, Decimal) for v in y):
        y = y.astype(np.float64)
    return y


def as_numbers(values: Array, name: str) -> Array:
    """Values as floats, and text too where it is numbers; a class is refused."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    refuse_dates(values, name)
    try:
        if values.dtype.kind not in "OUS" or any(isinstance(v, bool | np.bool_) for v in values):
            raise TypeError
        y = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} holds classes, such as {_odd_one(values)!r}, but task={REGRESSION!r} needs numbers: leave it out,"
            f" say task={CLASSIFICATION!r}, or make them numbers."
        ) from None
    refuse_missing(y, name, None)
    return y


def _odd_one(values: Array) -> Any:
    """The first value that is no number."""
    for v in values.tolist():
        try:
            if isinstance(v, bool):
                return v
            float(v)
        except (TypeError, ValueError):
            return v
    return values.tolist()[0]


class RowError(ValueError):
    """A row that cannot be used, and its number; who knows of rows before it raises it again with theirs added."""

    def __init__(self, before: str, row: int, rest: str) -> None:
        super().__init__(f"{before} {row}{rest}")
        self.parts = (before, row, rest)


def refuse_missing(y: Array, name: str, first: int | None) -> None:
    """Refuse a missing target, by its row if that is known; the words are those scikit-learn's users know."""
    if y.dtype.kind == "f":
        bad, what = ~np.isfinite(y), "NaN" if np.isnan(y).any() else "infinity"
    elif y.dtype.kind == "O":
        bad, what = is_missing(y), "a missing value"
    else:
        return
    if bad.any() and first is None:
        raise ValueError(f"Input {name} contains {what}: every row needs a class or a number; drop such rows.")
    if bad.any():
        i = int(first or 0) + int(np.flatnonzero(bad)[0])
        rest = "): every row needs a class or a number; drop such rows."
        raise RowError(f"Input {name} contains {what} (first in row", i, rest)


def refuse_dates(y: Array, name: str) -> None:
    """Refuse dates and times where numbers are needed."""
    if are_dates(y):
        raise ValueError(
            f"{name} holds dates or times, which are no numbers: make them numbers, days since the first for example,"
            " or strings if they are classes."
        )


def are_dates(y: Array) -> bool:
    """Whether there are dates or times in y."""
    some = (datetime.date, datetime.timedelta)
    return y.dtype.kind in "mM" or (y.dtype.kind == "O" and any(isinstance(v, some) for v in y))


def regression_by(values: Array, n_rows: int) -> str | None:
    """What makes distinct values a regression target: fractions, or whole numbers that mostly occur once or twice."""
    fractions = values[values != np.floor(values)] if values.dtype.kind == "f" else values[:0]
    if len(fractions):
        return f"it has fractions, such as {float(fractions[0])!r}"
    if len(values) > max(MANY, n_rows // 2) and (values.dtype.kind in "iuf" or are_dates(values)):
        what = "numbers" if values.dtype.kind in "iuf" else "dates"
        return f"it has {len(values)} different {what} in {n_rows} rows"
    return None


def refuse_numbers(classes: Array, name: str, n_rows: int) -> None:
    """Refuse a regression target where classes are needed."""
    seen = regression_by(classes, n_rows)
    if seen is not None:
        raise ValueError(
            f"{name} looks like a regression target ({seen}; unknown label type: continuous), but classes are asked"
            f" for: say task={REGRESSION!r} where there is one, cut it into a few ranges, with"
            " sklearn.preprocessing.KBinsDiscretizer for example, or make it strings."
        )


def refuse_too_many(classes: Array, name: str, n_rows: int) -> None:
    """Refuse more classes than can be told apart, and classes of which most have one row; say what they look like."""
    if len(classes) <= MOST_CLASSES and len(classes) <= max(MANY, n_rows // 2):
        return
    if classes.dtype.kind in "iuf":
        looks = f"numbers: say task={REGRESSION!r} if they are to be predicted"
    elif are_numbers(classes.tolist()):
        looks = f"numbers written as text: make them numbers, and say task={REGRESSION!r}"
    elif len(classes) > n_rows // 2:
        looks = "IDs, a name for each row: take another column for the class"
    else:
        looks = "names of many groups: take another column for the class"
    raise ValueError(
        f"{name} has {len(classes):,} different values in {n_rows:,} rows, too many to be classes (at most"
        f" {MOST_CLASSES:,}, and two rows of each): they look like {looks}, or make a few classes of them."
    )
