"""Files as streams of rows: CSV and TSV, Parquet, Arrow/Feather, LIBSVM; and NPZ, whose arrays are read whole.

The rows of several files follow one another, in the order the files are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from belief.data.arrow import pyarrow
from belief.data.stream import LibsvmStream, TableStream, position
from belief.data.table import discrete_mask
from belief.data.tabular import CsvFiles, DatasetFiles, Tabular
from belief.method.partials import Array

FORMATS = {
    "csv": ("csv", "tsv", "txt", "data"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "npz": ("npz",),
}
PACKED = {".gz", ".bz2", ".xz", ".zst"}  # .xz for LIBSVM only


@dataclass(frozen=True)
class Wanted:
    """What is wanted of files: the label, which columns, and which of them are names.

    Parameters
    ----------
    label : the column that holds the class; for LIBSVM it is the first number of a line, for NPZ the array y if None
    drop, keep : columns to leave out; columns to choose from, and no others
    discrete : columns of numbers that are only names
    header : whether the first line of a CSV file names its columns; if not they are c0, c1, ...
    """

    label: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    discrete: Any = ()
    header: bool = True


def open_files(paths: Sequence[Path], wanted: Wanted) -> TableStream | LibsvmStream | tuple[list[Array], Array]:
    """Open files of one format and the same columns; of NPZ files, the arrays."""
    kind, files = find_files(paths)
    if kind in ("libsvm", "npz"):
        if wanted.drop or wanted.keep:
            raise ValueError("--drop and --keep need columns with names: CSV, Parquet or Arrow.")
        return LibsvmStream(files, wanted.discrete) if kind == "libsvm" else _read_npz(files, wanted.label or "y")
    if wanted.label is None:
        raise ValueError("Say which column holds the class, with --label NAME.")
    pyarrow()
    if kind == "csv":
        table: Tabular = CsvFiles(files, wanted.header, wanted.label, _names(wanted.discrete))
    else:
        table = DatasetFiles(files, kind)
    return TableStream(table, wanted.label, names := _chosen(table, wanted), _declared(wanted, names))


def _names(discrete: Any) -> list[str]:
    return [x for x in discrete if isinstance(x, str)] if not isinstance(discrete, str) else []


def _declared(wanted: Wanted, names: list[str]) -> Array:
    return discrete_mask(wanted.discrete, names, len(names))


def _chosen(table: Tabular, wanted: Wanted) -> list[str]:
    """The features: all columns but the label, less those dropped, or of those kept."""
    names = table.schema.names
    position(wanted.label or "", names, str(table.first))
    for option, given in (("--drop", wanted.drop), ("--keep", wanted.keep)):
        for name in given:
            position(name, names, option)
    chosen = [n for n in names if n != wanted.label and n not in wanted.drop and (not wanted.keep or n in wanted.keep)]
    if not chosen:
        raise ValueError(f"{table.first}: no column is left to choose from.")
    return chosen


def find_files(paths: Sequence[Path]) -> tuple[str, list[Path]]:
    """The format of some files and folders, and the files; a folder of Parquet files is one to its reader."""
    files = [file for path in paths for file in _files_in(path)]
    kinds = {path: format_of(path) for path in files}
    if len(set(kinds.values())) > 1:
        raise ValueError(f"Files of one format at a time: {', '.join(f'{p} is {k}' for p, k in kinds.items())}.")
    return kinds[files[0]], files


def _files_in(path: Path) -> list[Path]:
    """A file itself; of a folder what is in it, by name."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(("_", ".")))
    if not found:
        raise ValueError(f"{path}: the folder has no data in it.")
    return [path] if format_of(found[0]) == "parquet" else found


def format_of(path: Path) -> str:
    """The format of a file by its ending; a folder is Parquet."""
    if path.is_dir():
        return "parquet"
    endings = [e for e in path.suffixes if e.lower() not in PACKED]
    ending = endings[-1][1:].lower() if endings else ""
    for name, known in FORMATS.items():
        if ending in known:
            return name
    allowed = ", ".join(e for known in FORMATS.values() for e in known)
    raise ValueError(f"{path}: the ending .{ending} is not one of {allowed}; rename it, or convert it.")


def _read_npz(paths: Sequence[Path], label: str) -> tuple[list[Array], Array]:
    X, y = [], []
    for path in paths:
        with _load(path) as file:
            for name in ("X", label):
                if name not in file.files:
                    raise ValueError(f"{path}: has no array {name!r} (it has {', '.join(file.files)}).")
            X.append(file["X"])
            y.append(file[label])
    return X, np.concatenate(y)


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, BadZipFile):
        raise ValueError(f"{path}: is not a whole NPZ file of plain arrays.") from None
