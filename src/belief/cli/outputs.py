"""What the command line writes: each file beside its place, and renamed when it is whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.data.arrow import pyarrow
from belief.result.result import Result

DATA_ENDINGS = (".csv", ".parquet")
REPORT_ENDINGS = (".html",)
PICTURE_ENDINGS = (".png", ".svg", ".pdf")
REPORT_NEEDS = ("matplotlib", "jinja2")


def check_output(path: Path, endings: Collection[str], force: bool = False) -> None:
    """Refuse a file that could not be written in the end, before the work begins."""
    if path.suffix not in endings:
        raise ValueError(f"{path}: the ending must be one of {', '.join(endings)}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already: choose another name, or give force=True.")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass  # asking for leave is not enough: root has it on file systems that take no files
    except OSError as error:
        raise ValueError(f"{path}: cannot write to the folder {path.parent} ({error.strerror}).") from None
    if endings is REPORT_ENDINGS:
        for module in REPORT_NEEDS:
            import_optional(module, "report")
    elif endings is PICTURE_ENDINGS:
        import_optional("matplotlib", "report")
    elif path.suffix != ".json":
        pyarrow()


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A file to write to, that takes the place of `path` when all is well."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(handle)
        try:
            yield Path(name)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise ValueError(f"{path}: cannot be written ({why}).") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_result(result: Result, path: Path) -> None:
    """Write a result as JSON, or its ranking as a table."""
    with beside(path) as file:
        RESULT_WRITERS[path.suffix](result, file)


def _write_json(result: Result, path: Path) -> None:
    path.write_text(json.dumps(result.to_dict()))


def _write_ranking(result: Result, path: Path) -> None:
    write = _arrow("csv").write_csv if path.suffix == ".csv" else _arrow("parquet").write_table
    write(_ranking(result), path)


def _arrow(module: str) -> Any:
    return import_optional(f"pyarrow.{module}", "files")


RESULT_WRITERS: dict[str, Callable[[Result, Path], None]] = {
    ".json": _write_json,
    ".csv": _write_ranking,
    ".parquet": _write_ranking,
}


def _ranking(result: Result) -> Any:
    pa = pyarrow()
    order = result.ranking.argsort()
    scores = dict(zip(result.selected.tolist(), result.scores.tolist(), strict=True))
    return pa.table(
        {
            "rank": result.ranking[order],
            "feature": [result.feature_names[j] for j in order],
            "selected": [int(j) in scores for j in order],
            "weight": result.weights[order],
            "relevance": result.relevance[order],
            "score": pa.array([scores.get(int(j)) for j in order], pa.float64()),
        }
    )


def write_report(result: Result, path: Path, title: str) -> None:
    """Write a result as a page to look at."""
    from belief.report import render

    page = render(result, title)
    with beside(path) as file:
        file.write_text(page, encoding="utf-8")


def write_data(stream: Any, result: Result, path: Path) -> None:
    """Write the selected columns of the input, in the order they had, and the label; read once more, in batches."""
    from belief.data.export import csv_lines, typed_batches
    from belief.data.readers import CsvFiles

    chosen = set(result.selected_names)
    wanted = [name for name in stream.names if name in chosen] + [stream.label]
    with beside(path) as file:
        if path.suffix == ".csv" and isinstance(stream.files, CsvFiles):
            with file.open("wb") as text:
                text.writelines(csv_lines(stream.files, wanted))
        else:
            _write_batches(*typed_batches(stream.files, wanted), file)


def _write_batches(schema: Any, batches: Iterator[Any], path: Path) -> None:
    if path.suffix == ".csv":  # has words, no categories
        schema = pyarrow().schema([(f.name, getattr(f.type, "value_type", f.type)) for f in schema])
    writer = _arrow("csv").CSVWriter if path.suffix == ".csv" else _arrow("parquet").ParquetWriter
    with writer(str(path), schema) as out:
        for batch in batches:
            out.write(batch.cast(schema))
