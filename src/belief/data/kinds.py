"""Checks of what users pass as X and y: objects that are not a table or not a target, and damaged Arrow data.

Arrow data from a damaged file may contain offsets outside its buffers and crash the process.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import narwhals as nw
import numpy as np

ACCEPTED = (
    "Pass an array, a DataFrame, a sparse matrix, a lazy frame, a dictionary of columns, a list of blocks of rows, or"
    " the path of a file"
)


def describe_kind(X: Any) -> str:
    """Describe the type of an object for error messages, such as "a set", "the class dict" or "None"."""
    if X is None:
        return "None"
    if isinstance(X, type):
        return f"the class {X.__name__}"
    if inspect.isroutine(X):
        return f"the function {X.__name__}"
    name = type(X).__name__
    if isinstance(X, bytes | bytearray):
        return name
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def is_array_like(X: Any) -> bool:
    """Return True if X is an array (of any library), a list, or another sequence except strings and bytes."""
    if isinstance(X, str | bytes | type):
        return False
    return hasattr(X, "__array__") or hasattr(X, "__array_interface__") or isinstance(X, Sequence | memoryview | array)


def check_is_table(X: Any) -> None:
    """Raise a ValueError if X is not a table; the message suggests what to pass instead."""
    if is_array_like(X):
        return
    advice = ACCEPTED
    if inspect.isroutine(X):
        advice = "Call it, and pass the table that it returns"
    elif hasattr(X, "fit") and hasattr(X, "get_params"):
        advice = "Pass the table as the first argument; no estimator is needed"
    elif hasattr(X, "selected_names"):
        advice = "Pass the table from which the features were selected"
    elif hasattr(X, "read") and hasattr(X, "close"):
        advice = "Pass the path of the file"
    elif hasattr(X, "obj") and hasattr(X, "groups"):
        advice = "Pass the DataFrame as it was before groupby"
    raise ValueError(f"X is {describe_kind(X)}, which is not a table. {advice}.")


def check_not_swapped(X: Any, y: Any) -> None:
    """Raise a ValueError if X looks like a target and y like a table, because they were probably swapped."""
    if y is None:  # the shape of a lazy table would cost a query
        return
    shapes = []
    for data in (X, y):
        try:
            shape = getattr(data, "shape", ())
        except Exception:  # such as a closed connection; the error is raised again, and reported, when X is read
            shape = ()
        shapes.append(shape if isinstance(shape, tuple) else ())
    if len(shapes[0]) == 1 and len(shapes[1]) == 2 and shapes[1][1] > 1:
        raise ValueError(
            f"X has one dimension and y has {shapes[1][1]} columns: they look swapped. Pass the table as X and the"
            " target as y."
        )


def as_target(y: Any) -> Any:
    """Return y; for a table of one column, this column. Raise a ValueError if y cannot be a target."""
    if isinstance(y, np.ndarray):
        return y
    if isinstance(frame := nw.from_native(y, pass_through=True, allow_series=True), nw.DataFrame):
        if frame.shape[1] != 1:
            raise ValueError(
                f"y should be a 1d array with one class or number per row; got a table of shape {frame.shape} instead."
                " Pass one of its columns."
            )
        return frame[:, 0].to_native()
    if isinstance(frame, nw.LazyFrame | Mapping | Set | Iterator) or not (
        y is None or is_array_like(y) or isinstance(frame, nw.Series) or hasattr(y, "to_pylist") or hasattr(y, "format")
    ):
        raise ValueError(
            f"y is {describe_kind(y)}, which is not a sequence of values. Pass an array, a Series or a list with one"
            " class or number per row, or the name of a column of X."
        )
    return y


def check_arrow(data: Any, what: str) -> Any:
    """Return Arrow data unchanged; raise a ValueError if it is damaged. The message calls the data `what`."""
    try:
        data.validate(full=True)
    except ValueError as error:
        raise ValueError(f"{what} is damaged: {error}. Read or create it again.") from None
    return data


def check_column(column: Any) -> None:
    """Raise a ValueError if a column of pyarrow or pandas contains damaged Arrow data; ignore other columns."""
    if hasattr(column, "to_pylist"):
        check_arrow(column, "An Arrow array")
    elif _is_arrow_dtype(getattr(column, "dtype", None)):
        check_arrow(column.array.__arrow_array__(), f"Column {column.name!r}, which pandas stores as an Arrow array,")


def check_frame(frame: nw.DataFrame[Any]) -> None:
    """Raise a ValueError if a DataFrame contains damaged Arrow data."""
    table = frame.to_native()
    if frame.implementation.is_pyarrow():
        check_arrow(table, "X, an Arrow table,")
    elif frame.implementation.is_pandas():
        for j, dtype in enumerate(table.dtypes):
            if _is_arrow_dtype(dtype):
                check_column(table.iloc[:, j])


def _is_arrow_dtype(dtype: Any) -> bool:
    """Return True if pandas stores columns of this dtype as Arrow arrays."""
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"
