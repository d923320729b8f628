"""Files as tables: CSV and TSV, Parquet, Arrow/Feather, LIBSVM and NPZ, one file or several of the same columns.

The rows of several files follow one another, in the order the files are named. For now a file is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from belief.data.libsvm import load_libsvm
from belief.method.settings import did_you_mean

FORMATS = {
    "csv": ("csv", "tsv", "txt", "data"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "npz": ("npz",),
}
PACKED = {".gz", ".bz2", ".xz", ".zst"}  # .xz for LIBSVM only
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"]


@dataclass(frozen=True)
class FileTable:
    """Blocks of rows, the class of each, and the name of the label where it has one."""

    X: Sequence[Any]
    y: Any
    label: str | None = None

    def keep(self, names: Sequence[str]) -> FileTable:
        """Only these columns, in their order."""
        return replace(self, X=[block.select(list(names)) for block in self.X])


def _files_in(path: Path) -> list[Path]:
    """A file itself; of a folder what is in it, by name. A partitioned Parquet folder is one file to its reader."""
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


def read_files(paths: Sequence[Path], label: str | None, *, header: bool = True) -> FileTable:
    """Read files of one format and the same columns.

    Parameters
    ----------
    label : the column that holds the class; for LIBSVM it is the first number of a line, for NPZ the array y if None
    header : whether the first line of a CSV file names its columns; if not they are c0, c1, ...
    """
    paths = [file for path in paths for file in _files_in(path)]
    kinds = {path: format_of(path) for path in paths}
    if len(set(kinds.values())) > 1:
        raise ValueError(f"Files of one format at a time: {', '.join(f'{p} is {k}' for p, k in kinds.items())}.")
    kind = kinds[paths[0]]
    if kind == "libsvm":
        X, y = load_libsvm(list(paths))
        return FileTable(X, y)
    if kind == "npz":
        return _read_npz(paths, label or "y")
    if label is None:
        raise ValueError("Say which column holds the class, with --label NAME.")
    tables = [_read_columns(path, kind, header) for path in paths]
    _check_columns(paths, tables)
    names = tables[0].column_names
    if label not in names:
        hint = did_you_mean(label, names) or f"; it has {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        raise ValueError(f"There is no column {label!r} in {paths[0]}{hint}.")
    y = np.concatenate([_labels(t.column(label)) for t in tables])
    return FileTable([t.drop_columns([label]) for t in tables], y, label)


def _labels(column: Any) -> Any:
    """Integers stay integers; a missing label is None."""
    return np.array(column.to_pylist(), object) if column.null_count else column.to_numpy()


def _check_columns(paths: Sequence[Path], tables: Sequence[Any]) -> None:
    first = tables[0].column_names
    twice = next((name for name in first if first.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{paths[0]} has more than one column named {twice!r}; rename them, or drop one.")
    for path, table in zip(paths, tables, strict=True):
        if table.column_names != first:
            odd = next((n for n in [*table.column_names, *first] if (n in first) != (n in table.column_names)), "order")
            raise ValueError(f"{path} and {paths[0]} do not have the same columns ({odd!r}).")


def _read_columns(path: Path, kind: str, header: bool) -> Any:
    """An Arrow table."""
    pa = _pyarrow()
    try:
        if kind == "csv":
            return _read_csv(path, header)
        if kind == "parquet":
            from pyarrow import parquet

            return parquet.read_table(path)
        from pyarrow import feather

        return feather.read_table(path)
    except pa.ArrowInvalid as error:
        where = _line_of(path, header) if kind == "csv" else None
        raise ValueError(f"{path}: {where or str(error).splitlines()[0]}") from None
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: cannot be read as {kind}: {str(error).splitlines()[0]}") from None


def _read_csv(path: Path, header: bool, threads: bool = True) -> Any:
    from pyarrow import csv

    names = [e.lower() for e in path.suffixes]
    delimiter = "\t" if ".tsv" in names else ","
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(autogenerate_column_names=not header, use_threads=threads),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True),
    )
    return table if header else table.rename_columns([f"c{j}" for j in range(table.num_columns)])


def _line_of(path: Path, header: bool) -> str | None:
    """Which line of a CSV file has too many or too few columns: Arrow knows when it reads without threads."""
    try:
        _read_csv(path, header, threads=False)
    except _pyarrow().ArrowInvalid as error:
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if ragged:
            return f"line {ragged[1]} has {ragged[3]} columns, the lines before it {ragged[2]}."
    return None


def _read_npz(paths: Sequence[Path], label: str) -> FileTable:
    X, y = [], []
    for path in paths:
        with _load(path) as file:
            for name in ("X", label):
                if name not in file.files:
                    raise ValueError(f"{path}: has no array {name!r} (it has {', '.join(file.files)}).")
            X.append(file["X"])
            y.append(file[label])
    return FileTable(X, np.concatenate(y))


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, BadZipFile):
        raise ValueError(f"{path}: is not a whole NPZ file of plain arrays.") from None


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ValueError("Reading tables from files needs pyarrow, the extra 'files': pip install pyarrow.") from None
    return pyarrow
