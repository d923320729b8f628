"""Opening of the `X` and `y` of `select`: a table in memory, paths of files, or a stream that is already open."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from belief._utils.validation import is_integer
from belief.data.columns import CSV_OPTIONS, ColumnSelection, as_columns, find_columns, is_column
from belief.data.containers import (
    ANNDATA_ENDINGS,
    as_dense_columns,
    is_on_disk,
    open_anndata_file,
    stream_rows,
    unwrap,
)
from belief.data.kinds import as_target, check_frame, check_not_swapped, describe_kind
from belief.data.relations import Relation, open_relation
from belief.data.remote import RemoteFiles, expand_wildcards, is_remote
from belief.data.source import Stream, is_sparse
from belief.data.stream import NUMPY_ERRORS, TableStream, open_files, open_relation_stream
from belief.data.table import as_2d_array, as_blocks, as_frame, as_valid_csr, count_columns

OpenedInput = tuple[Any, Any, list[str] | None]  # X, y, and feature names; None if X has names or needs default names


def resolve_label(y: Any, label: Any) -> tuple[Any, Any]:
    """Return (y, label). If `y` is the name or position of a column of X, return (None, y)."""
    if y is not None and label is not None:
        shown = f"y={y!r}" if is_column(y) else "y"
        raise ValueError(f"Both {shown} and label={label!r} are given. Pass only one of them.")
    if hasattr(label, "__len__") and not isinstance(label, str | tuple):
        raise ValueError(
            f"label must be the name or the position of a column of X; got a {type(label).__name__}. Pass an array of"
            " target values as y."
        )
    return (None, y) if is_column(y) else (y, label)


def describe_origin(X: Any, y: Any, label: Any) -> dict[str, str]:
    """Return the target name, the file and the date of a run as texts; unknown items are omitted."""
    files = [X] if isinstance(X, str | Path) else X if isinstance(X, list | tuple) else []
    files = [getattr(getattr(X, "files", None), "first", "")] if isinstance(X, TableStream) else files
    names = [Path(str(file).partition("?")[0]).name for file in files if isinstance(file, str | Path) and str(file)]
    target = getattr(X, "label", None) if label is None else label
    known = {
        "target": getattr(y, "name", None) if target is None else target,
        "source": names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else None,
        "date": date.today().isoformat(),
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def name_columns(X: Any, columns: Any, feature_names: Sequence[str] | None) -> list[Any]:
    """Return the names of columns of X that are given by name or position.

    The names remain valid when columns that are not features are removed from X; positions do not.
    """
    columns = list(as_columns(columns, "given"))
    if not any(map(is_integer, columns)):
        return columns
    block = as_blocks(X)[0]
    frame = as_frame(block)
    if frame is not None:
        names: Sequence[Any] = frame.columns
    elif getattr(block, "ndim", 0) == 2:
        names = [f"x{j}" for j in range(block.shape[1])] if feature_names is None else feature_names
    else:
        raise ValueError(
            f"given contains the position of a column, but X is {describe_kind(X)}. Pass the names of columns."
        )
    return [names[j] for j in find_columns(columns, names, "given")]


def open_input(
    X: Any,
    y: Any,
    columns: ColumnSelection,
    feature_names: Sequence[str] | None = None,
    layer: str | None = None,
) -> OpenedInput:
    """Open files, and split tables into features and target; return X, y and feature names.

    X, y, `feature_names` and `layer` are the arguments of `select`; `columns` selects the target and the features.
    """
    changed = columns.changed_options()
    if isinstance(X, Stream):
        for name in [*["y"] * (y is not None), *changed]:
            raise ValueError(f"{name} cannot be changed for an open stream. Pass {name} to open_files instead.")
        return X, None, None
    paths = [X] if isinstance(X, str | os.PathLike) else X
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        if any(map(is_remote, paths)):
            return _open_remote(paths, y, columns, feature_names, layer)
        paths = [file for path in paths for file in expand_wildcards(path)]
        if [Path(p).suffix for p in paths] == [".npy"]:
            if not Path(paths[0]).exists():
                raise FileNotFoundError(f"{paths[0]}: there is no such file or folder.")
            try:
                X = np.load(paths[0], mmap_mode="r", allow_pickle=False)
            except NUMPY_ERRORS:
                raise ValueError(
                    f"{paths[0]}: the file is not a valid NPY file of numbers. Write it with np.save."
                ) from None
        elif Path(paths[0]).suffix in ANNDATA_ENDINGS and y is not None:
            return open_anndata_file(Path(paths[0]), columns, layer, as_target(y)), None, None
        else:
            if y is not None and all(Path(p).exists() for p in paths):
                raise ValueError(
                    "X is a file, so y cannot hold the values of the target. Pass the name of its column, label='name'."
                )
            _check_no_names(feature_names, "a file, whose columns have names")
            opened = open_files([Path(p) for p in paths], columns, layer)
            return (*opened, None) if isinstance(opened, tuple) else (opened, None, None)
    for name in CSV_OPTIONS:
        if name in changed:
            raise ValueError(f"{name} applies only to CSV files, but X is a {type(X).__name__}. Omit {name}.")
    check_not_swapped(X, y)
    y = as_target(y)
    unwrapped = unwrap(X, columns.label, layer)
    if unwrapped is not None:
        if unwrapped.names is not None:
            _check_no_names(feature_names, f"{describe_kind(X)} with names")
        if is_on_disk(unwrapped.X):
            names = unwrapped.names or _checked_names(feature_names, unwrapped.X)
            target = y if unwrapped.y is None else unwrapped.y
            return stream_rows(replace(unwrapped, names=names), target, columns), None, None
        if unwrapped.y is not None:
            y, columns = unwrapped.y, replace(columns, label=None)
        X = unwrapped.X
        feature_names = unwrapped.names or feature_names
    else:
        X = open_relation(as_dense_columns(X))
    if isinstance(X, Relation):
        _check_no_names(feature_names, "a table with column names")
        return open_relation_stream(X, y, columns), None, None
    names = _checked_names(feature_names, X)
    if {"label", "drop", "candidates"}.intersection(columns.changed_options()):
        return _select_from_table(X, y, columns, names)
    return X, y, names


def _open_remote(urls: Sequence[Any], y: Any, columns: ColumnSelection, feature_names: Any, layer: Any) -> OpenedInput:
    """Open remote files; return X, y and feature names. Files that cannot be read in place are first copied."""
    if not all(map(is_remote, urls)):
        raise ValueError("Some of the files are URLs and some are local. Read them separately.")
    files = RemoteFiles(urls)
    relation = files.open()
    if relation is not None:
        for option, given in (("feature_names", feature_names), ("layer", layer)):
            if given is not None:
                kind = files.kind.capitalize()
                raise ValueError(f"{option} has no effect because X is a {kind} file. Omit {option}.")
        return open_relation_stream(relation, as_target(y), columns), None, None
    copies, folder = files.copy()
    opened = open_input(copies, y, columns, feature_names, layer)
    try:
        weakref.finalize(opened[0], shutil.rmtree, folder, ignore_errors=True)
    except TypeError:  # X supports no weak references, so it has been read into memory
        shutil.rmtree(folder, ignore_errors=True)
    return opened


def _check_no_names(feature_names: Any, kind: str) -> None:
    if feature_names is not None:
        raise ValueError(f"feature_names has no effect because X is {kind}. Omit feature_names.")


def _checked_names(names: Any, X: Any) -> list[str] | None:
    """Return the names that the user gave the columns of X; raise a ValueError if they do not fit X."""
    if names is None:
        return None
    first = as_blocks(X)[0]
    if as_frame(first) is not None:
        _check_no_names(names, "a table with column names")
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"feature_names must be a list of names; got {names!r:.60}.")
    names = [str(name) for name in names]
    if len(names) != (n_columns := count_columns(X)):
        raise ValueError(f"feature_names has {len(names)} names, but X has {n_columns} columns. Pass one per column.")
    return names


def _select_from_table(X: Any, y: Any, columns: ColumnSelection, given: list[str] | None) -> OpenedInput:
    """Split a table in memory; return the features, the target and the feature names.

    `given` contains the user's names for the columns of an array; None if there are none.
    """
    blocks = [TableBlock(block, f"block {i}") for i, block in enumerate(as_blocks(X))]
    names = blocks[0].names
    features = columns.feature_positions(given or names)
    if columns.label is not None:
        label = names[find_columns([columns.label], given or names, "label")[0]]
        found = [block.column(label) for block in blocks]
        y = found[0] if len(found) == 1 else np.concatenate([np.asarray(x) for x in found])
    rest = [block.columns([names[j] for j in features]) for block in blocks]
    generated = None
    if isinstance(names, range):
        generated = [f"x{j}" if given is None else given[j] for j in features]
    return rest[0] if len(rest) == 1 else rest, y, generated


class TableBlock:
    """A block of rows in memory, whose columns can be selected by name or position."""

    def __init__(self, X: Any, source: str) -> None:
        frame = as_frame(X)
        if frame is not None:
            check_frame(frame)
        self._source, self._is_frame = source, frame is not None
        self._X: Any = as_valid_csr(X) if is_sparse(X) else as_2d_array(X) if frame is None else frame
        self.names: Any = range(self._X.shape[1]) if frame is None else frame.columns

    def columns(self, names: list[Any]) -> Any:
        """Return the columns with these names; the type of the table does not change."""
        if not self._is_frame:
            return self._X[:, names]
        return self._X[:, find_columns(names, self.names, "The blocks of X differ", self._source)].to_native()

    def find(self, column: Any, role: str) -> Any:
        """Return a column, given by name or position, as a one-dimensional array.

        `role` is the parameter that holds the column, such as "groups", for error messages.
        """
        return self.column(self.names[find_columns([column], self.names, role)[0]])

    def column(self, name: Any) -> Any:
        """Return the column with this name as a one-dimensional array."""
        if self._is_frame:
            return self._X[:, find_columns([name], self.names, "The blocks of X differ", self._source)[0]].to_native()
        found = self._X[:, [name]]
        return (found.toarray() if is_sparse(found) else found)[:, 0]
