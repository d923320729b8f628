"""What `select` is given: a table, files or a stream, which of its columns is the label, and which are features.

A column is called by its name, or by its number, from 0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from belief._utils.validation import did_you_mean, is_integer
from belief.data.encoding import CsvForm
from belief.data.files import Wanted, names_in, open_files
from belief.data.source import is_sparse
from belief.data.stream import LibsvmStream, TableStream
from belief.data.table import array_of, blocks_of, frame_of

Taken = tuple[Any, Any, list[str] | None]  # the features, y, and what features without names are called


@dataclass(frozen=True)
class Chosen:
    """Which columns are wanted, and how CSV files are laid out."""

    label: Any = None
    drop: Any = ()
    keep: Any = ()
    separator: str | None = None
    header: bool = True
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("drop", "keep"):
            value = getattr(self, name)
            columns = (value,) if _is_column(value) else () if value is None else tuple(value)
            if name == "keep" and not columns and value is not None and not isinstance(value, tuple):
                raise ValueError("keep names no column to choose from: name some, or leave it out.")
            object.__setattr__(self, name, columns)
        if self.separator is not None and (not isinstance(self.separator, str) or len(self.separator) != 1):
            raise ValueError(f"separator must be one character; got {self.separator!r}.")

    def given(self) -> list[str]:
        """What was said, by name."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]

    def by_number(self) -> bool:
        """Whether a column is called by its number."""
        return any(map(is_integer, (self.label, *self.drop, *self.keep)))

    def named(self, names: Sequence[Any]) -> Chosen:
        """The same, every column by its name."""
        label = None if self.label is None else names[place(self.label, names, "label")]
        drop, keep = (tuple(names[place(x, names, of)] for x in getattr(self, of)) for of in ("drop", "keep"))
        return replace(self, label=label, drop=drop, keep=keep)


def _is_column(x: Any) -> bool:
    return isinstance(x, str) or is_integer(x)


def place(column: Any, names: Sequence[Any], what: str) -> int:
    """Where a column is, by its name or else by its number."""
    if column in names:
        return list(names).index(column)
    if is_integer(column) and -len(names) <= column < len(names):
        return int(column) % len(names)
    if is_integer(column):
        raise ValueError(f"{what}: there is no column {column}: X has {len(names)}, from 0 on.")
    raise ValueError(f"{what}: there is no column {column!r} in X{did_you_mean(column, [str(n) for n in names])}.")


def y_or_label(y: Any, label: Any) -> tuple[Any, Any]:
    """A y that is one name or one number calls a column of X, as a label does; both together are refused."""
    if y is not None and label is not None:
        shown = f"y={y!r}" if _is_column(y) else "y"
        raise ValueError(f"Both {shown} and label={label!r} are given: give one of them.")
    if hasattr(label, "__len__") and not isinstance(label, str | tuple):
        raise ValueError(
            f"label must be the name or the number of a column of X; got a {type(label).__name__}: the classes"
            " themselves are passed as y."
        )
    return (None, y) if _is_column(y) else (y, label)


def take_columns(X: Any, y: Any, chosen: Chosen, discrete_features: Any, task: str = "auto") -> Taken:
    """Take the label and the features from a table, or open files."""
    if isinstance(X, TableStream | LibsvmStream):
        _refuse_beside_stream(y, chosen, discrete_features)
        return X, None, None
    paths = [X] if isinstance(X, str | os.PathLike) else X
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        if y is not None:
            raise ValueError("y is given beside a file, whose classes are in it: name their column, with label='name'.")
        return _from_files([Path(p) for p in paths], chosen, discrete_features, task)
    for name in ("separator", "header", "encoding"):
        if name in chosen.given():
            raise ValueError(f"{name} is for CSV files, and X is none: leave it out.")
    return _from_table(X, y, chosen) if chosen.given() else (X, y, None)


def _refuse_beside_stream(y: Any, chosen: Chosen, discrete_features: Any) -> None:
    """Refuse what would be ignored: a stream was told when it was opened."""
    auto = isinstance(discrete_features, str) and discrete_features == "auto"
    for name in [*["y"] * (y is not None), *chosen.given(), *["discrete_features"] * (not auto)]:
        raise ValueError(f"{name} is given beside an opened stream, which knows its own: leave it out.")


def _from_files(paths: list[Path], chosen: Chosen, discrete_features: Any, task: str) -> Taken:
    form = CsvForm(chosen.header, chosen.separator, chosen.encoding)
    if chosen.by_number():
        chosen = chosen.named(names_in(paths, form))
    discrete = () if discrete_features is None else discrete_features
    discrete = [discrete] if isinstance(discrete, str) and discrete != "auto" else discrete
    opened = open_files(paths, Wanted(chosen.label, chosen.drop, chosen.keep, discrete, form, task))
    return (*opened, None) if isinstance(opened, tuple) else (opened, None, None)


def _from_table(X: Any, y: Any, chosen: Chosen) -> Taken:
    blocks = [_Block(block) for block in blocks_of(X)]
    names = blocks[0].names
    _refuse_names_of_none(chosen, blocks[0])
    label = None if chosen.label is None else place(chosen.label, names, "label")
    drop, keep = ({place(x, names, of) for x in getattr(chosen, of)} for of in ("drop", "keep"))
    wanted = [j for j in range(len(names)) if j != label and j not in drop and (not keep or j in keep)]
    if not wanted:
        raise ValueError("No column of X is left to choose from.")
    if label is not None:
        found = [block.column(names[label]) for block in blocks]
        y = found[0] if len(found) == 1 else np.concatenate([np.asarray(x) for x in found])
    rest = [block.columns([names[j] for j in wanted]) for block in blocks]
    numbered = None if blocks[0].has_names else [f"x{j}" for j in wanted]
    return rest[0] if len(rest) == 1 else rest, y, numbered


def _refuse_names_of_none(chosen: Chosen, block: _Block) -> None:
    for of in ("label", "drop", "keep"):
        for column in [getattr(chosen, of)] if of == "label" else getattr(chosen, of):
            if isinstance(column, str) and not block.has_names:
                cure = "pass the classes as y, or the number of the column" if of == "label" else "use its number"
                raise ValueError(f"{of}={column!r} names a column, but X has no names: {cure}.")


class _Block:
    """Rows of a table, by columns."""

    def __init__(self, X: Any) -> None:
        frame = frame_of(X)
        self.has_names = frame is not None
        self._X: Any = X.tocsr() if is_sparse(X) else array_of(X) if frame is None else frame
        self.names: Any = range(self._X.shape[1]) if frame is None else frame.columns

    def columns(self, names: list[Any]) -> Any:
        """Some of the columns, as the table they came in."""
        if self.has_names:
            return self._X[:, [self._at(name) for name in names]].to_native()
        return self._X[:, names]

    def column(self, name: Any) -> Any:
        """One column by itself."""
        if self.has_names:
            return self._X[:, self._at(name)].to_native()
        found = self._X[:, [name]]
        return (found.toarray() if is_sparse(found) else found)[:, 0]

    def _at(self, name: Any) -> int:
        return place(name, self.names, "The blocks of X differ")
