"""Open the `X` and `y` of `select`: a table in memory, paths of files, or a stream that is already open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from belief.data.columns import CSV_OPTIONS, ColumnSelection, find_columns, is_column
from belief.data.kinds import as_target, check_not_swapped
from belief.data.relations import Relation, open_relation
from belief.data.source import is_sparse
from belief.data.stream import LibsvmStream, TableStream, open_files, open_relation_stream
from belief.data.table import as_2d_array, as_blocks, as_frame, as_valid_csr, check_arrow_frame

OpenedInput = tuple[Any, Any, list[str] | None]  # X, y, and names for the features if X has none


def resolve_label(y: Any, label: Any) -> tuple[Any, Any]:
    """Return (y, label), where a `y` that names a column of X becomes the label."""
    if y is not None and label is not None:
        shown = f"y={y!r}" if is_column(y) else "y"
        raise ValueError(f"Both {shown} and label={label!r} are given. Pass only one of them.")
    if hasattr(label, "__len__") and not isinstance(label, str | tuple):
        raise ValueError(
            f"label must be the name or the position of a column of X; got a {type(label).__name__}. Pass an array of"
            " target values as y."
        )
    return (None, y) if is_column(y) else (y, label)


def open_input(X: Any, y: Any, columns: ColumnSelection) -> OpenedInput:
    """Open files, or extract the label and the features from a table."""
    changed = columns.changed_options()
    if isinstance(X, TableStream | LibsvmStream):
        for name in [*["y"] * (y is not None), *changed]:
            raise ValueError(f"{name} cannot be changed for an open stream. Omit it, or pass it to open_files.")
        return X, None, None
    paths = [X] if isinstance(X, str | os.PathLike) else X
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        if y is not None and all(Path(p).exists() for p in paths):
            raise ValueError("y must be the name of a column if X is a file. Name the target column with label='name'.")
        opened = open_files([Path(p) for p in paths], columns)
        return (*opened, None) if isinstance(opened, tuple) else (opened, None, None)
    for name in CSV_OPTIONS:
        if name in changed:
            raise ValueError(f"{name} applies only to CSV files, but X is a {type(X).__name__}. Omit it.")
    check_not_swapped(X, y)
    y = as_target(y)
    X = open_relation(X)
    if isinstance(X, Relation):
        return open_relation_stream(X, y, columns), None, None
    return _select_from_table(X, y, columns) if {"label", "drop", "keep"}.intersection(changed) else (X, y, None)


def _select_from_table(X: Any, y: Any, columns: ColumnSelection) -> OpenedInput:
    blocks = [_Block(block, f"block {i}") for i, block in enumerate(as_blocks(X))]
    names = blocks[0].names
    features = columns.feature_positions(names)
    if columns.label is not None:
        label = names[find_columns([columns.label], names, "label")[0]]
        found = [block.column(label) for block in blocks]
        y = found[0] if len(found) == 1 else np.concatenate([np.asarray(x) for x in found])
    rest = [block.columns([names[j] for j in features]) for block in blocks]
    generated = [f"x{j}" for j in features] if isinstance(names, range) else None
    return rest[0] if len(rest) == 1 else rest, y, generated


class _Block:
    """A block of rows from which columns can be selected."""

    def __init__(self, X: Any, source: str) -> None:
        frame = as_frame(X)
        if frame is not None:
            check_arrow_frame(frame)
        self._source, self._is_frame = source, frame is not None
        self._X: Any = as_valid_csr(X) if is_sparse(X) else as_2d_array(X) if frame is None else frame
        self.names: Any = range(self._X.shape[1]) if frame is None else frame.columns

    def columns(self, names: list[Any]) -> Any:
        """Return some columns, as a table of the type that was passed."""
        if not self._is_frame:
            return self._X[:, names]
        return self._X[:, find_columns(names, self.names, "The blocks of X differ", self._source)].to_native()

    def column(self, name: Any) -> Any:
        """Return one column, one-dimensional."""
        if self._is_frame:
            return self._X[:, find_columns([name], self.names, "The blocks of X differ", self._source)[0]].to_native()
        found = self._X[:, [name]]
        return (found.toarray() if is_sparse(found) else found)[:, 0]
