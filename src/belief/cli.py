"""The command line: a file and a question in, an answer out, without Python.

Results go to stdout, progress and complaints to stderr; the exit code is 0, 1 (it failed) or 2 (the command was wrong).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import belief
from belief.method.settings import Settings, did_you_mean

OPTIONS = {"n_features_to_select": "top", "random_state": "seed"}  # settings that have another name here


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `belief`; return its exit code."""
    options = parser().parse_args(arguments)
    warnings.showwarning = lambda message, *more: print(f"belief: {message}", file=sys.stderr)
    try:
        options.run(options)
    except KeyboardInterrupt:
        print("belief: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if options.debug:
            raise
        print(f"belief: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The command and its options; those of the method are made from its settings."""
    top = argparse.ArgumentParser(
        prog="belief", description="Which columns of a table matter, and which repeat others?"
    )
    top.add_argument("--version", action="version", version=f"belief {belief.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _select_options(_command(commands, "select", run_select, "select features of the table in one or more files"))
    _command(commands, "demo", run_demo, "select features of a bundled example")
    explain = _command(commands, "explain", run_explain, "say why features were taken or left")
    explain.add_argument("result", type=Path, metavar="RESULT.json", help="a result of belief select --out")
    explain.add_argument("feature", nargs="?", help="one feature only")
    report = _command(commands, "report", run_report, "make a page to look at from a result")
    report.add_argument("result", type=Path, metavar="RESULT.json", help="a result of belief select --out")
    report.add_argument("--out", type=Path, metavar="FILE", help="the page (RESULT.html)")
    report.add_argument("--force", action="store_true", help="write over a file that exists")
    return top


def _command(commands: Any, name: str, run: Callable[..., None], said: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=said, description=said.capitalize() + ".")
    command.set_defaults(run=run)
    command.add_argument("--debug", action="store_true", help="show where an error came from")
    return command


def _select_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="CSV, TSV, Parquet, Arrow, LIBSVM or NPZ")
    command.add_argument("--label", metavar="COL", help="the column that holds the class")
    command.add_argument("--no-header", action="store_true", help="the first line of a CSV file is data: c0, c1, ...")
    command.add_argument("--drop", nargs="+", default=[], metavar="COL", help="columns to leave out")
    command.add_argument("--keep", nargs="+", default=[], metavar="COL", help="columns to choose from, and no others")
    command.add_argument("--discrete", nargs="+", default=[], metavar="COL", help="columns of numbers that are names")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the result: .json, .csv or .parquet")
    command.add_argument("--write-data", type=Path, metavar="FILE", help="write the selected columns: .csv or .parquet")
    command.add_argument("--report", type=Path, metavar="FILE", help="write a page to look at: .html")
    command.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="note what is done, and go on from there when run again"
    )
    command.add_argument("--force", action="store_true", help="write over files that exist")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (as many as there are cores)")
    command.add_argument("--working-memory", type=int, default=1024, metavar="MIB", help="beside the data (1024)")
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")
    method = command.add_argument_group("the method")
    for f in Settings.each():
        name = "--" + OPTIONS.get(f.name, f.name).replace("_", "-")
        if isinstance(f.default, bool):
            method.add_argument(name, dest=f.name, action="store_true", help=f.metadata["doc"])
            continue
        said = f"{f.metadata['doc']} ({f.default})".replace("%", "%%")
        method.add_argument(name, dest=f.name, type=_value, default=f.default, metavar="X", help=said)


def _value(text: str) -> Any:
    """A number where it is one, None for "none" as Python would write it, else the word."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return None if text == "None" else text


def run_select(options: argparse.Namespace) -> None:
    """Carry out `belief select`."""
    from belief.data.files import Wanted, open_files

    settings = {f.name: getattr(options, f.name) for f in Settings.each()}
    Settings(**settings)  # a wrong one is said before anything is read
    _check_outputs(options)
    wanted = Wanted(options.label, options.drop, options.keep, options.discrete, not options.no_header)
    opened = open_files(options.files, wanted)
    X, y = opened if isinstance(opened, tuple) else (opened, None)
    if options.write_data and not hasattr(X, "files"):
        raise ValueError("--write-data needs columns with names: CSV, Parquet or Arrow.")
    result = belief.select(
        X, y, **settings, n_jobs=options.n_jobs, working_memory=options.working_memory,
        verbose=0 if options.quiet else 1, checkpoint=options.checkpoint,
    )  # fmt: skip
    sizes = f"{result.n_rows:,} rows, {len(result.weights):,} features, {len(result.classes)} classes"
    print(f"{sizes}; seed {result.seed}\n")
    print(result.explain())
    if options.out:
        with beside(options.out) as path:
            WRITERS[options.out.suffix](result, path)
    if options.report:
        _write_report(result, options.report, " ".join(file.name for file in options.files))
    if options.write_data:
        _write_data(options.write_data, X, result)


def _check_outputs(options: argparse.Namespace) -> None:
    outputs = {"--out": (options.out, WRITERS), "--report": (options.report, (".html",))}
    outputs["--write-data"] = (options.write_data, (".csv", ".parquet"))
    taken: dict[Path, str] = {}
    for name, (path, endings) in outputs.items():
        if path is None:
            continue
        _check_output(path, endings, options.force)
        if path.resolve() in taken:
            raise ValueError(f"{taken[path.resolve()]} and {name} are both {path}: give them two names.")
        taken[path.resolve()] = name


def run_demo(options: argparse.Namespace) -> None:
    """Carry out `belief demo`."""
    from belief.datasets import CHURN

    print("Customers of a telephone company: which columns tell who leaves? That is,\n")
    print(f"  belief select {CHURN.name} --label left --top 4 --seed 0\n")
    options = parser().parse_args(["select", str(CHURN), "--label", "left", "--top", "4", "--seed", "0", "--quiet"])
    run_select(options)


def run_explain(options: argparse.Namespace) -> None:
    """Carry out `belief explain`."""
    table = _read_result(options.result).explain()
    if options.feature is None:
        print(table)
        return
    known = [line["feature"] for line in table]
    if options.feature not in known:
        near = did_you_mean(options.feature, known)
        raise ValueError(f"{options.feature!r} is not among the selected and watched features{near}.")
    for name, value in table[known.index(options.feature)].items():
        print(f"{name:10} {'-' if value is None else value}")


def run_report(options: argparse.Namespace) -> None:
    """Carry out `belief report`."""
    out = options.out or options.result.with_suffix(".html")
    _check_output(out, (".html",), options.force)
    _write_report(_read_result(options.result), out, options.result.stem)
    print(out)


def _read_result(path: Path) -> belief.Result:
    try:
        return belief.Result.from_dict(json.loads(path.read_text()))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: is not whole JSON (line {error.lineno}): {error.msg}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({getattr(error, 'strerror', 'not text')}).") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: {error}") from None


# --- writing: beside, then renamed, so that nothing half-written is ever left ---


def _check_output(path: Path | None, endings: Any, force: bool) -> None:
    if path is None:
        return
    if path.suffix not in endings:
        raise ValueError(f"{path}: the ending must be one of {', '.join(endings)}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already: choose another name, or say --force.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path}: the folder {path.parent} does not exist, or cannot be written to.")


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A file to write to, that takes the place of `path` when all is well."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_json(result: belief.Result, path: Path) -> None:
    path.write_text(json.dumps(result.to_dict()))


def _ranking(result: belief.Result) -> Any:
    import pyarrow as pa

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


def _write_table(table: Any, path: Path) -> None:
    if path.suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import parquet

        parquet.write_table(table, path)


WRITERS: dict[str, Callable[[belief.Result, Path], None]] = {
    ".json": _write_json,
    ".csv": lambda result, path: _write_table(_ranking(result), path),
    ".parquet": lambda result, path: _write_table(_ranking(result), path),
}


def _write_report(result: belief.Result, path: Path, title: str) -> None:
    from belief.report import render

    page = render(result, title)
    with beside(path) as file:
        file.write_text(page, encoding="utf-8")


def _write_data(path: Path, stream: Any, result: belief.Result) -> None:
    """The input with only the selected columns, in the order they had, and the label; read once more, in batches."""
    from pyarrow import csv, parquet, schema

    chosen = set(result.selected_names)
    wanted = [name for name in stream.names if name in chosen] + [stream.label]
    kinds = schema([stream.files.schema.field(name) for name in wanted])
    if path.suffix == ".csv":
        kinds = schema([(f.name, getattr(f.type, "value_type", f.type)) for f in kinds])
    writer = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
    with beside(path) as file, writer(str(file), kinds) as out:
        for batch in stream.files.batches(wanted):
            out.write(batch.cast(kinds))


if __name__ == "__main__":
    sys.exit(main())
