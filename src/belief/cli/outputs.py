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
from itertools import chain
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.cli.arguments import UsageError, refuse_output_inside_input
from belief.data.arrow import pyarrow
from belief.data.readers import MISSING, CsvFiles
from belief.result.result import Result

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets evaluate cells with these starts unless quoted
DATA_ENDINGS = (".csv", ".parquet")
RESULT_ENDINGS = (".json", ".csv", ".parquet")
JSON_ENDINGS = (".json",)
REPORT_ENDINGS = (".html",)
PICTURE_ENDINGS = (".png", ".svg", ".pdf")
REPORT_NEEDS = ("matplotlib", "jinja2")
TEMPORARY_PREFIX = ".belief-"  # short, because file systems limit the length of names
# For each type, the texts that survive a conversion to this type and back: no leading zeros, and not too many digits.
LOSSLESS_PATTERNS = {
    "bool": "^(true|false|True|False|TRUE|FALSE)$",
    "int64": r"^(-?[1-9]\d{0,17}|0)$",
    "double": r"^-?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$",
}
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
    selected = set(result.selected_names)
    names = [name for name in stream.names if name in selected] + [stream.label]
    with replacing(path) as file:
        if path.suffix == ".csv" and isinstance(stream.files, CsvFiles):
            header = pyarrow().record_batch([[name] for name in names], names=names)
            with file.open("wb") as text:
                text.writelines(map(_format_lines, chain([header], stream.files.text_batches(names))))
        else:
            _write_batches(*_typed_batches(stream.files, names), file)


def _write_batches(schema: Any, batches: Iterator[Any], path: Path) -> None:
    if path.suffix == ".csv":  # CSV files cannot contain Arrow's dictionary types
        schema = pyarrow().schema([(f.name, getattr(f.type, "value_type", f.type)) for f in schema])
    writer = _arrow("csv").CSVWriter if path.suffix == ".csv" else _arrow("parquet").ParquetWriter
    with writer(str(path), schema) as out:
        for batch in batches:
            out.write(batch.cast(schema))


def _format_lines(batch: Any) -> bytes:
    """Return the rows of a batch of text as CSV lines, with quotes only where they are needed."""
    compute = _arrow("compute")
    cells = []
    for column in batch.columns:
        quoted = compute.binary_join_element_wise('"', compute.replace_substring(column, '"', '""'), '"', "")
        needs_quotes = compute.match_substring_regex(column, '[",\r\n]')
        if batch.num_columns == 1:
            # Without quotes, the line of an empty cell would be empty, and readers skip empty lines.
            needs_quotes = compute.or_(needs_quotes, compute.equal(column, ""))
        cells.append(compute.if_else(needs_quotes, quoted, column))
    lines = compute.binary_join_element_wise(*cells, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines).encode()


def _typed_batches(files: Any, columns: Sequence[str]) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the Arrow batches of these columns of the input files.

    Columns of CSV files get types from which their text can be restored; columns of other files keep their types.
    """
    if not isinstance(files, CsvFiles):
        schema = pyarrow().schema([files.schema.field(name) for name in columns])
        return schema, (batch.cast(schema) for batch in files.batches(columns))
    pa, compute = pyarrow(), _arrow("compute")
    possible = {name: [*LOSSLESS_PATTERNS] for name in columns}  # the types in order, the narrowest first
    for batch in files.text_batches(columns):
        for name, types in possible.items():
            text = _without_missing(batch.column(name)).drop_null()
            types[:] = [
                t
                for t in types
                if compute.all(compute.match_substring_regex(text, LOSSLESS_PATTERNS[t])).as_py() is not False
            ]
    schema = pa.schema({name: pa.type_for_alias([*types, "string"][0]) for name, types in possible.items()})
    return schema, (_cast_text(batch, schema) for batch in files.text_batches(columns))


def _without_missing(text: Any) -> Any:
    """Replace the words for missing values, such as NA, by null."""
    pa, compute = pyarrow(), _arrow("compute")
    return compute.if_else(compute.is_in(text, pa.array(MISSING)), pa.scalar(None, pa.string()), text)


def _cast_text(batch: Any, schema: Any) -> Any:
    """Convert a batch of text to a schema. In text columns, only empty cells become null."""
    pa, compute = pyarrow(), _arrow("compute")
    columns = []
    for text, kind in zip(batch.columns, schema.types, strict=True):
        if kind == pa.string():
            columns.append(compute.if_else(compute.equal(text, ""), pa.scalar(None, pa.string()), text))
        else:
            columns.append(_without_missing(text).cast(kind))
    return pa.record_batch(columns, schema=schema)
