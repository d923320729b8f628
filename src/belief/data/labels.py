"""The class of each row, whatever it came as."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from belief.data.objects import is_missing
from belief.method.partials import Array
from belief.method.settings import is_real


def encode_labels(y: Any, n_rows: int) -> tuple[Array, Array]:
    """Return the classes, sorted, and the number of each row's class; a y of no use raises a ValueError."""
    if y is None:
        raise ValueError("BELIEF requires y to be passed, but the target y is None: give the class of every row.")
    if issparse(y):
        raise ValueError("y is a sparse matrix: pass y.toarray().ravel().")
    y = as_array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, one class per row; got an array of shape {y.shape} instead.")
    if len(y) != n_rows:
        raise ValueError(f"X and y must have as many rows as each other; X has {n_rows}, y has {len(y)}.")
    refuse_missing(y)
    try:
        classes, labels = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in y})
        raise ValueError(
            f"y mixes values that cannot be compared ({', '.join(kinds)}); make them all strings."
        ) from None
    if len(classes) < 2:
        only = f", {classes.tolist()[0]!r}" if len(classes) else ""
        raise ValueError(f"y has one class only{only}: at least 2 classes are needed to tell features apart.")
    refuse_numbers(y, classes)
    return classes, labels.astype(np.int32)


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


def refuse_missing(y: Array) -> None:
    """Refuse a missing class; the words are those scikit-learn's users know."""
    if y.dtype.kind == "f":
        bad, what = ~np.isfinite(y), "NaN" if np.isnan(y).any() else "infinity"
    elif y.dtype.kind == "O":
        bad, what = is_missing(y), "a missing value"
    else:
        return
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(f"Input y contains {what} (first in row {i}): every row needs a class; drop such rows.")


def refuse_numbers(y: Array, classes: Array) -> None:
    """Refuse a regression target: fractions, or numbers of which most occur once or twice."""
    fractions = y[y != np.floor(y)] if y.dtype.kind == "f" else y[:0]
    if len(fractions):
        seen = f"it has fractions, such as {float(fractions[0])!r}"
    elif y.dtype.kind in "iuf" and len(classes) > max(50, len(y) // 2):
        seen = f"it has {len(classes)} different numbers in {len(y)} rows"
    else:
        return
    raise ValueError(
        f"y looks like a regression target ({seen}; unknown label type: continuous). BELIEF needs classes: cut y into a"
        " few ranges first, with sklearn.preprocessing.KBinsDiscretizer for example, or make it strings."
    )
