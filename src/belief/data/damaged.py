"""Checks of Arrow input. Data from a damaged file may contain offsets outside its buffers and crash the process."""

from __future__ import annotations

from typing import Any

import narwhals as nw


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
