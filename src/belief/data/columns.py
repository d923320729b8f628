"""Choosing columns by name or position: the label, the features, and the discrete features."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from belief._utils.validation import did_you_mean, is_integer
from belief.data.diagnostics import shorten
from belief.method.arrays import Array

PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the column in which pandas stores the index of a DataFrame
CSV_OPTIONS = ("separator", "header", "encoding")


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns of a table or of files to use, and how CSV files are formatted.

    A column is given by its name, or by its position, counted from 0.

    Parameters
    ----------
    label : str or int, default=None
        The target column. LIBSVM files need no label. For NPZ files, the name of the target array; None means "y".
    drop : sequence of str or int, default=()
        Columns to exclude from the features.
    candidates : sequence of str or int, default=()
        Columns to use as features. By default, all columns are used.
    discrete_features : "auto", mask, indices or names, default="auto"
        Numeric features to treat as nominal.
    task : {"auto", "classification", "regression"}, default="auto"
        With "regression", the target column of a CSV file is read as floats even if its first values are whole numbers.
    separator : str, default=None
        The character between two columns of a CSV file. None: a tab in .tsv files, else a comma.
    header : bool, default=True
        Whether the first line of a CSV file holds the column names. If False, the columns are named c0, c1, ...
    encoding : str, default=None
        The encoding of CSV files. None: detected from the first bytes, otherwise UTF-8.

    Examples
    --------
    >>> import belief
    >>> columns = belief.data.ColumnSelection(label="left", drop=["age"])
    >>> stream = belief.data.open_files([belief.datasets.CHURN], columns)
    >>> "age" in stream.names
    False
    """

    label: str | int | None = None
    drop: Any = ()
    candidates: Any = ()
    discrete_features: Any = "auto"
    task: str = "auto"
    separator: str | None = None
    header: bool = True
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("drop", "candidates"):
            value = getattr(self, name)
            columns = as_columns(value, name)
            if name == "candidates" and not columns and value is not None and not isinstance(value, tuple):
                raise ValueError("candidates is empty. Give at least one column to use, or omit candidates.")
            object.__setattr__(self, name, columns)
        discrete = self.discrete_features
        if discrete is None or (isinstance(discrete, str) and discrete != "auto"):
            object.__setattr__(self, "discrete_features", "auto" if discrete is None else [discrete])
        text = self.separator
        is_character = isinstance(text, str) and len(text) == 1 and text.isascii() and text not in '"\r\n\0'
        if text is not None and not is_character:
            raise ValueError(
                f"separator must be one ASCII character other than a quote or a line break; got {text!r}. Save the file"
                " with another separator."
            )
        if self.encoding is not None:
            try:
                is_known = codecs.lookup(self.encoding)._is_text_encoding
            except (LookupError, ValueError):
                is_known = False
            if not is_known:
                raise ValueError(
                    "encoding must be the name of a text encoding, such as 'latin1' or 'utf-16'; got"
                    f" {self.encoding!r}."
                )

    def changed_options(self) -> list[str]:
        """Return the names of the options that differ from their defaults; `task` is ignored."""
        options = (f for f in fields(self) if f.name not in ("discrete_features", "task"))
        changed = [f.name for f in options if getattr(self, f.name) != f.default]
        return changed + ["discrete_features"] * (not isinstance(self.discrete_features, str))

    def with_names(self, names: Sequence[str], source: str = "X") -> ColumnSelection:
        """Return a copy in which positions are replaced by the names of the columns."""
        given = {"label": [] if self.label is None else [self.label], "drop": self.drop, "candidates": self.candidates}
        named: dict[str, Any] = {o: tuple(names[j] for j in find_columns(given[o], names, o, source)) for o in given}
        label = next(iter(named.pop("label")), None)
        return replace(self, label=label, **named)

    def feature_positions(self, names: Sequence[Any], source: str = "X") -> list[int]:
        """Return the positions of the features: all columns but the label, restricted by `drop` and `candidates`."""
        label = find_columns([] if self.label is None else [self.label], names, "label", source)
        drop, candidates = (set(find_columns(getattr(self, o), names, o, source)) for o in ("drop", "candidates"))
        excluded = drop.union(label)
        positions = [j for j in range(len(names)) if j not in excluded and (not candidates or j in candidates)]
        if not positions:
            raise ValueError(
                f"label, drop and candidates exclude every column of {source}. Drop fewer columns, or pass more"
                " candidates."
            )
        return positions

    def feature_names(self, names: Sequence[str], source: str) -> list[str]:
        """Return the names of the features, without the index column that pandas writes to Parquet files."""
        names = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
        return [names[j] for j in self.feature_positions(names, source)]

    def separator_for(self, path: Path) -> str:
        """Return the separator of a CSV file: the separator that was passed, or the default for the file's ending."""
        return self.separator or ("\t" if ".tsv" in (suffix.lower() for suffix in path.suffixes) else ",")


def is_column(x: Any) -> bool:
    """Return True if x can refer to a column: by its name (a string) or its position (an integer)."""
    return isinstance(x, str) or is_integer(x)


def as_columns(value: Any, option: str) -> tuple[Any, ...]:
    """Return a tuple of columns. `value` may be a single column, several columns, or None for no column."""
    if value is None or is_column(value):
        return () if value is None else (value,)
    try:
        return tuple(value)
    except TypeError:
        raise ValueError(f"{option} must be a list of columns; got {shorten(repr(value))}.") from None


def find_columns(columns: Iterable[Any], names: Sequence[Any], option: str, source: str = "X") -> list[int]:
    """Return the positions of columns that are given by name or position.

    Parameters
    ----------
    columns : names or positions; positions count from 0, negative positions from the end
    names : all column names; a `range` if the columns have no names
    option : the parameter that holds the columns, for error messages
    source : the table or file, for error messages
    """
    known = {name: j for j, name in reversed([*enumerate(names)])}
    positions = []
    for column in columns:
        try:
            found = known.get(column)
        except TypeError:  # not hashable, so not a column name
            found = None
        if found is not None:
            positions.append(found)
        elif is_integer(column) and -len(names) <= column < len(names):
            positions.append(int(column) % len(names))
        else:
            raise ValueError(_unknown_column(column, names, option, source))
    return positions


def _unknown_column(column: Any, names: Sequence[Any], option: str, source: str) -> str:
    if is_integer(column):
        number = shorten(str(column))
        return f"{option}: there is no column {number} in {source}, which has {len(names)} columns, counted from 0."
    if not isinstance(column, str):
        return f"{option}: there is no column {shorten(repr(column))} in {source}. Pass a name or a position."
    if isinstance(names, range):
        fix = "Pass the target as y, or use the position of its column" if option == "label" else "Use its position"
        return f"{option}: {column!r} is a column name, but {source} has no column names. {fix}."
    parts = [part.strip() for part in str(column).split(",")]
    if len(parts) > 1 and set(parts) <= set(map(str, names)):
        fix = f"Pass a list, {option}={parts}, or on the command line --{option} {' '.join(parts)}"
        return f"{option}: {column!r} names {len(parts)} columns of {source} in one string. {fix}."
    some = f", whose columns are {', '.join(map(str, names[:8]))}{', ...' if len(names) > 8 else ''}"
    return f"{option}: there is no column {column!r} in {source}{did_you_mean(column, [*map(str, names)]) or some}."


def parse_discrete_features(discrete_features: Any, names: Sequence[str] | None, n_features: int) -> Array:
    """Return the mask of the features that `discrete_features` declares discrete; "auto" declares no feature."""
    if discrete_features is None or (isinstance(discrete_features, str) and discrete_features == "auto"):
        return np.zeros(n_features, bool)
    allowed = f"'auto', a mask of {n_features} booleans, column indices, or column names"
    try:
        items = [discrete_features] if isinstance(discrete_features, str) else list(discrete_features)
    except TypeError:
        raise ValueError(f"discrete_features must be {allowed}; got {discrete_features!r}.") from None
    if items and all(isinstance(v, bool | np.bool_) for v in items):
        if len(items) != n_features:
            raise ValueError(
                f"discrete_features is a mask of {len(items)} booleans, but X has {n_features} columns. Pass one"
                " boolean per column."
            )
        return np.array(items, bool)
    for item in items:
        if not is_column(item):
            raise ValueError(f"discrete_features must be {allowed}; it contains {item!r}.")
    mask = np.zeros(n_features, bool)
    mask[find_columns(items, range(n_features) if names is None else names, "discrete_features")] = True
    return mask
