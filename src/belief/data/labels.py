"""The class of each row, whatever it came as."""

from __future__ import annotations

from typing import Any

import numpy as np

from belief.method.partials import Array


def encode_labels(y: Any, n_rows: int) -> tuple[Array, Array]:
    """Return the classes, sorted, and the number of each row's class; a y of no use raises a ValueError."""
    if y is None:
        raise ValueError("y is missing: BELIEF requires y to be passed, the class of every row.")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()  # polars and pandas columns know best
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, one class per row; got an array of shape {y.shape} instead.")
    if len(y) != n_rows:
        raise ValueError(f"X and y must have as many rows as each other; X has {n_rows}, y has {len(y)}.")
    refuse_missing(y)
    if y.dtype.kind == "f" and not np.all(y == np.floor(y)):
        raise ValueError(
            "y looks like a regression target (it has fractions, such as"
            f" {y[y != np.floor(y)][0]!r}; unknown label type: continuous). BELIEF needs classes: cut y into a few"
            " ranges first, with sklearn.preprocessing.KBinsDiscretizer for example."
        )
    try:
        classes, labels = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in y})
        raise ValueError(
            f"y mixes values that cannot be compared ({', '.join(kinds)}); make them all strings."
        ) from None
    if len(classes) < 2:
        only = f", {classes[0]!r}" if len(classes) else ""
        raise ValueError(f"y has one class only{only}: at least 2 classes are needed to tell features apart.")
    return classes, labels.astype(np.int32)


def refuse_missing(y: Array) -> None:
    """Refuse a missing class; the words are those scikit-learn's users know."""
    if y.dtype.kind == "f":
        bad, what = ~np.isfinite(y), "NaN" if np.isnan(y).any() else "infinity"
    elif y.dtype.kind == "O":
        bad, what = np.array([v is None or v != v for v in y], bool), "a missing value"
    else:
        return
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(f"Input y contains {what} (first in row {i}): every row needs a class; drop such rows.")
