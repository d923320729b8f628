"""The class of each row, whatever it came as."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
from scipy.sparse import issparse

from belief.data.objects import is_missing
from belief.method.arrays import Array
from belief.method.settings import is_real


class Labels:
    """The classes of rows that come in blocks; in the end one number per row, from 0, in the order of the classes.

    Before the end the classes have numbers in order of appearance; `order` says then which class each of those is.
    """

    order: Array

    def __init__(self, name: str = "y") -> None:
        self.name, self.n_rows = name, 0
        self._numbers: dict[Any, int] = {}  # of the classes, in order of appearance
        self._values: list[Array] = []  # the classes that are new in each block
        self._blocks: list[Array] = []  # the number of each row's class
        self._ends = [0]  # of the blocks

    def add(self, y: Any) -> None:
        """Take the classes of the next rows."""
        y = as_array(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"{self.name} should be a 1d array, one class per row; got an array of shape {y.shape} instead."
            )
        refuse_missing(y, self.name, self.n_rows)
        try:
            values, codes = np.unique(y, return_inverse=True)
        except TypeError:
            kinds = sorted({type(v).__name__ for v in y})
            raise ValueError(
                f"{self.name} mixes values that cannot be compared ({', '.join(kinds)}); make them all strings."
            ) from None
        self.add_coded(values, codes)

    def add_coded(self, values: Array, codes: Array) -> None:
        """Take the classes of the next rows, as distinct values, and which of them each row has."""
        known = len(self._numbers)
        number = np.array([self._numbers.setdefault(v, len(self._numbers)) for v in values.tolist()], np.int32)
        number_of, first = np.unique(number, return_index=True)
        self._values.append(values[first[number_of >= known]])
        self._blocks.append(number[codes])
        self.n_rows += len(codes)
        self._ends.append(self.n_rows)

    def groups(self, a: int, b: int) -> Array:
        """The classes of the rows a to b, which have been taken, as numbers in order of appearance."""
        i, j = bisect_right(self._ends, a) - 1, bisect_left(self._ends, b)
        return np.concatenate(self._blocks[i:j])[a - self._ends[i] : b - self._ends[i]]

    def finish(self) -> tuple[Array, Array]:
        """Return the classes, sorted, and the number of each row's class; of no use, they raise a ValueError."""
        values = np.concatenate(self._values)
        classes = np.unique(values)
        if len(classes) < 2:
            only = f", {classes.tolist()[0]!r}" if len(classes) else ""
            raise ValueError(
                f"{self.name} has one class only{only}: at least 2 classes are needed to tell features apart."
            )
        refuse_numbers(classes, self.name, self.n_rows)
        self.order = np.searchsorted(classes, values).astype(np.int32)
        return classes, self.order[np.concatenate(self._blocks)]


def encode_labels(y: Any, n_rows: int) -> tuple[Array, Array]:
    """Return the classes, sorted, and the number of each row's class; a y of no use raises a ValueError."""
    if y is None:
        raise ValueError("BELIEF requires y to be passed, but the target y is None: give the class of every row.")
    if issparse(y):
        raise ValueError("y is a sparse matrix: pass y.toarray().ravel().")
    labels = Labels()
    labels.add(y)
    if labels.n_rows != n_rows:
        raise ValueError(f"X and y must have as many rows as each other; X has {n_rows}, y has {labels.n_rows}.")
    return labels.finish()


def as_array(y: Any) -> Array:
    """Y as an array; numbers that came as objects are numbers."""
    if hasattr(y, "to_pylist"):  # Arrow
        y = np.array(y.to_pylist(), object)
    elif hasattr(y, "to_numpy"):  # pandas and polars
        y = y.to_numpy()
    y = np.asarray(y)
    if y.dtype.kind == "O" and len(y) and y.ndim == 1 and all(is_real(v) for v in y):
        y = y.astype(np.float64)
    return y


class RowError(ValueError):
    """A row that cannot be used, and its number; who knows of rows before it raises it again with theirs added."""

    def __init__(self, before: str, row: int, rest: str) -> None:
        super().__init__(f"{before} {row}{rest}")
        self.parts = (before, row, rest)


def refuse_missing(y: Array, name: str, first: int) -> None:
    """Refuse a missing class; the words are those scikit-learn's users know."""
    if y.dtype.kind == "f":
        bad, what = ~np.isfinite(y), "NaN" if np.isnan(y).any() else "infinity"
    elif y.dtype.kind == "O":
        bad, what = is_missing(y), "a missing value"
    else:
        return
    if bad.any():
        i = first + int(np.flatnonzero(bad)[0])
        raise RowError(f"Input {name} contains {what} (first in row", i, "): every row needs a class; drop such rows.")


def refuse_numbers(classes: Array, name: str, n_rows: int) -> None:
    """Refuse a regression target: fractions, or numbers of which most occur once or twice."""
    fractions = classes[classes != np.floor(classes)] if classes.dtype.kind == "f" else classes[:0]
    if len(fractions):
        seen = f"it has fractions, such as {float(fractions[0])!r}"
    elif classes.dtype.kind in "iuf" and len(classes) > max(50, n_rows // 2):
        seen = f"it has {len(classes)} different numbers in {n_rows} rows"
    else:
        return
    raise ValueError(
        f"{name} looks like a regression target ({seen}; unknown label type: continuous). BELIEF needs classes: cut it"
        " into a few ranges first, with sklearn.preprocessing.KBinsDiscretizer for example, or make it strings."
    )
