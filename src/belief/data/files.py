"""Files as streams of rows: CSV and TSV, Parquet, Arrow/Feather, LIBSVM; and NPZ, whose arrays are read whole.

The rows of several files follow one another, in the order the files are named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from belief.data.arrow import pyarrow
from belief.data.discrete import discrete_mask
from belief.data.encoding import CsvForm
from belief.data.finding import files_in, once
from belief.data.hints import layout_hint
from belief.data.stream import LibsvmStream, TableStream, position
from belief.data.tabular import CsvFiles, DatasetFiles, Tabular
from belief.method.arrays import Array

FORMATS = {
    "csv": ("csv", "tsv", "txt", "data"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "npz": ("npz",),
}
PACKED = {"csv": (".gz", ".bz2", ".zst"), "libsvm": (".gz", ".bz2", ".xz")}
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the numbers of the rows, which pandas writes beside the columns


@dataclass(frozen=True)
class Wanted:
    """What is wanted of files: the label, which columns, and which of them are names.

    Parameters
    ----------
    label : the column that holds the class, or the number to predict; for LIBSVM it is the first number of a line, for
        NPZ the array y if None
    drop, keep : columns to leave out; columns to choose from, and no others
    discrete : columns of numbers that are only names
    csv : how the text of CSV files is laid out
    task : "regression" where whole numbers in the label of a CSV file may become fractions further down

    Examples
    --------
    >>> import belief
    >>> wanted = belief.data.Wanted(label="left", drop=["age"])
    >>> stream = belief.data.open_files([belief.datasets.CHURN], wanted)
    >>> "age" in stream.names
    False
    """

    label: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    discrete: Any = ()
    csv: CsvForm = CsvForm()
    task: str = "auto"


def open_files(paths: Sequence[Path], wanted: Wanted) -> TableStream | LibsvmStream | tuple[list[Array], Array]:
    """Open files of one format and the same columns; of NPZ files, the arrays.

    Parameters
    ----------
    paths : list of Path
        Files, or folders of files, whose rows follow one another.
    wanted : Wanted
        The label, and which columns.

    Returns
    -------
    a stream for `belief.select`, which reads it again and again; or a list of blocks and the labels

    Examples
    --------
    >>> import belief
    >>> stream = belief.data.open_files([belief.datasets.CHURN], belief.data.Wanted(label="left"))
    >>> belief.select(stream, n_features_to_select=2, random_state=0).selected_names
    ['support_calls', 'contract']
    """
    kind, files = find_files(paths)
    if kind in ("libsvm", "npz"):
        for option, given in (("drop", wanted.drop), ("keep", wanted.keep)):
            if given:
                raise ValueError(f"{option}: columns have names in CSV, Parquet and Arrow files only; got {given!r}.")
        return LibsvmStream(files, wanted.discrete) if kind == "libsvm" else _read_npz(files, wanted.label or "y")
    if wanted.label is None:
        raise ValueError("Say which column holds the class, with label='name'.")
    pyarrow()
    if kind == "csv":
        numeric = wanted.task == "regression"
        table: Tabular = CsvFiles(files, wanted.csv, wanted.label, _names(files, wanted), numeric)
        refuse_layout(table.schema.names, files[0], wanted)
    else:
        table = DatasetFiles(files, kind)
    return TableStream(
        table,
        wanted.label,
        names := chosen_names(table.schema.names, str(table.first), wanted),
        _declared(wanted, names),
    )


def refuse_layout(names: Sequence[str], file: Path, wanted: Wanted) -> None:
    """Refuse a CSV file without the label, where it looks laid out in another way than was said."""
    if wanted.label not in names and (hint := layout_hint(names, wanted.csv.separator_of(file))):
        raise ValueError(f"{file}: there is no column {wanted.label!r}; {hint}")


def names_in(paths: Sequence[Path], form: CsvForm) -> list[str]:
    """The names of all columns of some files."""
    kind, files = find_files(paths)
    if kind in ("libsvm", "npz"):
        raise ValueError(f"{paths[0]}: columns have numbers and names in CSV, Parquet and Arrow files only.")
    table: Tabular = CsvFiles(files, form, None, []) if kind == "csv" else DatasetFiles(files, kind)
    return [name for name in table.schema.names if not PANDAS_INDEX.fullmatch(name)]


def _names(files: Sequence[Path], wanted: Wanted) -> list[str]:
    """The names of the columns of CSV files that are declared discrete, which are read as text."""
    if isinstance(wanted.discrete, str):
        return []
    if all(isinstance(x, str) for x in wanted.discrete):
        return list(wanted.discrete)
    plain = CsvFiles(files, wanted.csv, wanted.label, [])
    names = chosen_names(plain.schema.names, str(plain.first), wanted)
    return [name for name, is_name in zip(names, _declared(wanted, names), strict=True) if is_name]


def _declared(wanted: Wanted, names: list[str]) -> Array:
    return discrete_mask(wanted.discrete, names, len(names))


def chosen_names(names: Sequence[str], source: str, wanted: Any) -> list[str]:
    """The features: all columns but the label, less those dropped, or of those kept."""
    names = [n for n in names if not PANDAS_INDEX.fullmatch(n)]
    position(wanted.label or "", names, source)
    known, drop, keep = set(names), set(wanted.drop), set(wanted.keep)
    for option, given in (("drop", wanted.drop), ("keep", wanted.keep)):
        for name in given:
            if name not in known:
                position(name, names, option)
    chosen = [n for n in names if n != wanted.label and n not in drop and (not keep or n in keep)]
    if not chosen:
        raise ValueError(f"{source}: no column is left to choose from.")
    return chosen


def kind_of(paths: Sequence[Path]) -> str:
    """The format of some files and folders, which is the same for all."""
    kinds = {file: format_of(file) for file in all_files(paths)}
    if len(set(kinds.values())) > 1:
        raise ValueError(f"Files of one format at a time: {', '.join(f'{p} is {k}' for p, k in kinds.items())}.")
    return next(iter(kinds.values()))


def find_files(paths: Sequence[Path]) -> tuple[str, list[Path]]:
    """The format of some files and folders, and the files; a folder of Parquet files is one to its reader."""
    kind = kind_of(paths)
    return kind, once(paths if kind == "parquet" else all_files(paths))


def all_files(paths: Sequence[Path]) -> list[Path]:
    """Every file that is read."""
    return [file for path in paths for file in files_in(path)]


def format_of(path: Path) -> str:
    """The format of a file by its ending."""
    *before, last = ["", *(e.lower() for e in path.suffixes)]
    packed = last if last in {e for endings in PACKED.values() for e in endings} else ""
    ending = (before[-1] if packed and before else last)[1:]
    for name, known in FORMATS.items():
        if ending in known and (not packed or packed in PACKED.get(name, ())):
            return name
        if ending in known:
            raise ValueError(f"{path}: a {name} file cannot be read from {packed}: unpack it first.")
    allowed = ", ".join(e for known in FORMATS.values() for e in known)
    raise ValueError(f"{path}: the ending .{ending} is not one of {allowed}; rename it, or convert it.")


def _read_npz(paths: Sequence[Path], label: str) -> tuple[list[Array], Array]:
    X, y = [], []
    for path in paths:
        arrays = _load(path, ("X", label))
        if arrays["X"].ndim != 2:
            raise ValueError(f"{path}: X must have rows and columns; its shape is {arrays['X'].shape}.")
        X.append(arrays["X"])
        y.append(arrays[label])
    return X, np.concatenate(y)


def _load(path: Path, names: Sequence[str]) -> dict[str, Array]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            missing = [name for name in names if name not in file.files]
            if not missing:
                return {name: file[name] for name in names}
            there = ", ".join(file.files)
    except (ValueError, OSError, EOFError, BadZipFile, TypeError):
        raise ValueError(f"{path}: is not a whole NPZ file of plain arrays.") from None
    raise ValueError(f"{path}: has no array {missing[0]!r} (it has {there}).")
