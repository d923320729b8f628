"""Checking and writing of output files.

The output is written to a temporary file first, which replaces the output file when it is complete.
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.cli.arguments import UsageError, refuse_output_inside_input
from belief.data.arrow import pyarrow
from belief.result.result import Result

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets evaluate cells with these starts unless quoted
DATA_ENDINGS = (".csv", ".parquet")
RESULT_ENDINGS = (".json", ".csv", ".parquet")
JSON_ENDINGS = (".json",)
REPORT_ENDINGS = (".html",)
PICTURE_ENDINGS = (".png", ".svg", ".pdf")
REPORT_NEEDS = ("matplotlib", "jinja2")
TEMPORARY_PREFIX = ".belief-"  # short, because file systems limit the length of names
Output = tuple[str, Path | None, Collection[str]]  # (option, output file, allowed endings)


def check_outputs(options: argparse.Namespace, outputs: Sequence[Output]) -> None:
    """Raise an error if an output file cannot be written, or would overwrite an input or another output."""
    from belief.data.files import find_same_file, list_all_files

    inputs = list_all_files(options.files)
    used: dict[Path, str] = {}
    for name, path, endings in outputs:
        if path is None:
            continue
        check_output(path, endings, options.force)
        if find_same_file(path, inputs) is not None:
            raise UsageError(f"{name} {path} would overwrite an input file: choose another name.")
        refuse_output_inside_input(name, path, options.files)
        other = find_same_file(path, used) or path.resolve()
        if other in used:
            raise UsageError(f"{name} and {used[other]} are the same file, {path}: choose two names.")
        used[path.resolve()] = name


def check_output(path: Path, endings: Collection[str], force: bool = False) -> None:
    """Raise an error, before the run begins, if an output file cannot be written."""
    if path.suffix not in endings:
        raise ValueError(f"{path}: the ending must be one of {', '.join(endings)}.")
    try:
        kind = path.stat().st_mode if path.exists() else None
    except OSError as error:  # for example, the name is too long
        raise ValueError(f"{path}: cannot be written ({error.strerror}): choose another name.") from None
    if kind is not None and stat.S_ISDIR(kind):
        raise ValueError(f"{path} is a folder: pass the name of a file.")
    if kind is not None and not force:
        raise ValueError(f"{path} exists already: choose another name, or pass force=True.")
    if kind is not None and not stat.S_ISREG(kind):
        raise ValueError(f"{path} is not a regular file: choose another name.")
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=TEMPORARY_PREFIX):
            pass  # permissions do not tell: root has write permission even on read-only file systems
    except OSError as error:
        raise ValueError(f"{path}: cannot write to the folder {folder} ({error.strerror}).") from None
    if endings is REPORT_ENDINGS:
        for module in REPORT_NEEDS:
            import_optional(module, "report")
    elif endings is PICTURE_ENDINGS:
        import_optional("matplotlib", "report")
    elif path.suffix != ".json":
        pyarrow()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` unless an error occurs.

    The new file gets the permissions of the file that it replaces. If `path` is a link, the linked file is replaced.
    """
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=TEMPORARY_PREFIX, suffix=path.suffix)
        os.close(handle)
        try:
            yield Path(name)
            with open(name, "r+b") as file:  # Windows can only sync files that were opened for writing
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~umask)
            os.replace(name, target)
            with suppress(OSError):  # Windows cannot open folders, and some file systems cannot sync them
                handle = os.open(target.parent, os.O_RDONLY)
                try:
                    os.fsync(handle)  # waits until the new entry of the folder is on disk
                finally:
                    os.close(handle)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        closing = " Close the program that has it open." if isinstance(error, PermissionError) and path.exists() else ""
        raise ValueError(f"{path}: cannot be written ({why}).{closing}") from None


def write_text(text: str, path: Path) -> None:
    """Write a text file, in UTF-8."""
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")


def write_result(result: Result, path: Path) -> None:
    """Write a result as JSON, or its ranking as a CSV or Parquet table."""
    if path.suffix == ".json":
        write_text(json.dumps(result.to_dict(), allow_nan=False), path)
        return
    pa = pyarrow()
    order = result.ranking.argsort()
    names = [result.feature_names[j] for j in order]
    if path.suffix == ".csv":
        names = [f"'{name}" if name.startswith(FORMULA_STARTS) else name for name in names]
    scores = dict(zip(result.selected.tolist(), result.scores.tolist(), strict=True))
    ranking = {
        "rank": result.ranking[order],
        "feature": names,
        "selected": [int(j) in scores for j in order],
        "weight": result.weights[order],
        "relevance": result.relevance[order],
        "score": pa.array([scores.get(int(j)) for j in order], pa.float64()),
    }
    with replacing(path) as file:
        if path.suffix == ".csv":
            _arrow("csv").write_csv(pa.table(ranking), file)
        else:
            _arrow("parquet").write_table(pa.table(ranking), file)


def _arrow(module: str) -> Any:
    return import_optional(f"pyarrow.{module}", "files")


def write_report(result: Result, path: Path, title: str, curve: Any = None) -> None:
    """Write a result as an HTML report."""
    from belief.report import render

    write_text(render(result, title, curve), path)


def write_data(stream: Any, result: Result, path: Path) -> None:
    """Write the selected columns and the target column, in the order of the input. The input is read again for this."""
    from belief.data.export import csv_lines, typed_batches
    from belief.data.readers import CsvFiles

    selected = set(result.selected_names)
    names = [name for name in stream.names if name in selected] + [stream.label]
    with replacing(path) as file:
        if path.suffix == ".csv" and isinstance(stream.files, CsvFiles):
            with file.open("wb") as text:
                text.writelines(csv_lines(stream.files, names))
        else:
            _write_batches(*typed_batches(stream.files, names), file)


def _write_batches(schema: Any, batches: Iterator[Any], path: Path) -> None:
    if path.suffix == ".csv":  # CSV files cannot contain Arrow's dictionary types
        schema = pyarrow().schema([(f.name, getattr(f.type, "value_type", f.type)) for f in schema])
    writer = _arrow("csv").CSVWriter if path.suffix == ".csv" else _arrow("parquet").ParquetWriter
    with writer(str(path), schema) as out:
        for batch in batches:
            out.write(batch.cast(schema))
