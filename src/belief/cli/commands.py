"""The command line: a file and a question in, an answer out, without Python.

Results go to stdout, progress and complaints to stderr; the exit code is 0, 1 (it failed) or 2 (the command was wrong).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import belief
from belief._utils.text import escape_controls
from belief.cli.arguments import in_options, option
from belief.cli.compare import COMPARE_EXAMPLES, COMPARE_USAGE, compare_options, run_compare
from belief.cli.errors import Parser, UsageError, check_running, given
from belief.cli.inputs import check_outputs, reading, refuse_inside, value_of, wanted
from belief.cli.streams import complain, leave, make_ready
from belief.method.settings import PAPER, Settings
from belief.method.targets import REGRESSION

USAGE = "belief select FILE [FILE ...] --label COL [options]"
EXAMPLES = """examples:
  belief select customers.csv --label left --top 4
  belief select folder/ --label class --checkpoint notes --out result.json --report page.html
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `belief`; return its exit code."""
    make_ready()
    options = parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *more: complain(in_options(str(message)))
        try:
            options.run(options)
            sys.stdout.flush()
            return 0
        except KeyboardInterrupt:
            goes_on = getattr(options, "checkpoint", None)
            complain("stopped" + ("; the same command goes on." if goes_on else "."))
            return 130
        except BrokenPipeError:  # the reader of our output has seen enough
            code = 1
        except (ValueError, TypeError, OSError, MemoryError) as error:
            if options.debug:
                raise
            complain(in_options(" ".join(str(error).split()) or type(error).__name__))
            code = 2 if isinstance(error, UsageError) else 1
        finally:
            leave(sys.stdout)
            leave(sys.stderr)
    return code


def parser() -> argparse.ArgumentParser:
    """The command and its options; those of the method are made from its settings."""
    top = Parser(prog="belief", description="Which columns of a table matter, and which repeat others?")
    top.add_argument("--version", action="version", version=f"belief {belief.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    said = "select features of the table in one or more files"
    _select_options(_command(commands, "select", run_select, said, usage=USAGE, epilog=EXAMPLES))
    _command(commands, "demo", run_demo, "select features of a bundled example")
    said = "compare selectors on the table in one or more files, in about a minute"
    compare_options(_command(commands, "compare", run_compare, said, usage=COMPARE_USAGE, epilog=COMPARE_EXAMPLES))
    explain = _command(commands, "explain", run_explain, "say why features were taken or left")
    explain.add_argument("result", type=Path, metavar="RESULT.json", help="a result of belief select --out")
    explain.add_argument("feature", nargs="?", help="one feature only")
    report = _command(commands, "report", run_report, "make a page to look at from a result")
    report.add_argument("result", type=Path, metavar="RESULT.json", help="a result of belief select --out")
    report.add_argument("--out", type=Path, metavar="FILE", help="the page (RESULT.html)")
    report.add_argument("--force", action="store_true", help="write over a file that exists")
    return top


def _command(commands: Any, name: str, run: Callable[..., None], said: str, **more: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=said, description=said.capitalize() + ".", formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )  # fmt: skip
    command.set_defaults(run=run)
    command.add_argument("--debug", action="store_true", help="show where an error came from")
    return command


def _select_options(command: argparse.ArgumentParser) -> None:
    reading(command.add_argument_group("what to read"))
    _writing(command.add_argument_group("what to write"))
    running = command.add_argument_group("how to run")
    running.add_argument("--engine", choices=("local", "spark"), default="local", help="this machine, or Spark (local)")
    running.add_argument("--master", metavar="URL", help="of Spark: local[2], spark://host:port, sc://host:port, ...")
    running.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep notes, and go on from them if run again")
    running.add_argument("--restart", action="store_true", help="forget what the checkpoint holds, and start anew")
    running.add_argument("--n-jobs", type=int, metavar="N", help="threads (all cores; -2: all but one)")
    running.add_argument("--working-memory", type=int, metavar="MIB", help="memory to use beside the data (1024)")
    running.add_argument("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1, or several, cuda:0,1 (auto)")
    running.add_argument("--quiet", action="store_true", help="no progress on stderr")
    method = command.add_argument_group("the method")
    method.add_argument("--paper", action="store_true", help="the settings of the paper, but for those that are given")
    for f in Settings.definitions():
        said = f"{f.metadata['doc']} ({f.default})".replace("%", "%%")
        choices = _choices(f.metadata["allowed"])
        unless = argparse.SUPPRESS  # given
        method.add_argument(option(f.name), dest=f.name, type=value_of, default=unless, metavar=choices, help=said)


def _writing(group: Any) -> None:
    group.add_argument("--out", type=Path, metavar="FILE", help="the result (.json), or the ranking (.csv, .parquet)")
    group.add_argument("--report", type=Path, metavar="FILE", help="the result as a page to look at (.html)")
    group.add_argument("--write-data", type=Path, metavar="FILE", help="the selected columns (.csv, .parquet)")
    group.add_argument("--force", action="store_true", help="write over files that exist")


def _choices(allowed: str) -> str:
    """The words a setting may be, and X where it may be a number."""
    number = ["X"] if re.search("number|integer|share", allowed) else []
    pairs = ["NAME=X,..."] if "mapping" in allowed else []
    return "|".join(re.findall(r"'(\w+)'", allowed) + number + pairs + ["None"] * ("or None" in allowed))


def run_select(options: argparse.Namespace) -> None:
    """Carry out `belief select`."""
    from belief.cli.outputs import write_data, write_report, write_result

    settings = _settings(options)
    _check_running(options)
    asked = wanted(options)
    _check_outputs(options)
    if options.engine == "spark":
        X, result = None, _select_on_spark(options, asked, settings)
    else:
        X, result = _select_here(options, asked, settings)
    try:  # files first: a terminal may fail too
        if options.out:
            write_result(result, options.out)
        if options.report:
            write_report(result, options.report, " ".join(file.name for file in options.files))
        if options.write_data:
            write_data(X, result, options.write_data)
    finally:  # and if the disk is full, the answer is not lost
        print(
            f"{_first_line(result)}; {result.sample_size:,} rows sampled ({result.stop_reason}); seed {result.seed}\n"
        )
        print(result.explain())


def _first_line(result: belief.Result) -> str:
    """What was done, and of how much."""
    sizes = f"{result.task}: {result.n_rows:,} rows, {len(result.weights):,} features"
    if result.task == REGRESSION:
        return f"{sizes}, a target from {result.quantiles[0]:g} to {result.quantiles[-1]:g}"
    return f"{sizes}, {len(result.classes)} classes"


def _select_here(options: argparse.Namespace, wanted: Any, settings: dict[str, Any]) -> tuple[Any, belief.Result]:
    from belief.data.stream import open_files

    opened = open_files(options.files, wanted)
    arrays = isinstance(opened, tuple)  # a stream knows its classes and its discrete columns
    X, y = opened if isinstance(opened, tuple) else (opened, None)
    if options.write_data and not hasattr(X, "files"):
        raise UsageError("--write-data needs columns with names: CSV, Parquet or Arrow.")
    result = belief.select(
        X, y, task=options.task, **settings, **given(options, "n_jobs", "working_memory", "device", "checkpoint"),
        verbose=0 if options.quiet else 1, discrete_features=wanted.discrete_features if arrays else "auto",
        restart=options.restart,
    )  # fmt: skip
    return X, result


def _select_on_spark(options: argparse.Namespace, wanted: Any, settings: dict[str, Any]) -> belief.Result:
    for name in given(options, "checkpoint", "write_data", "n_jobs", "working_memory", "device"):
        raise UsageError(f"{option(name)} needs --engine local.")
    from belief.spark.frames import select_files

    return select_files(options.files, wanted, Settings(**settings), options.master, 0 if options.quiet else 1)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings; a wrong one is an error of usage, before anything is read."""
    given = {f.name: getattr(options, f.name) for f in Settings.definitions() if hasattr(options, f.name)}
    settings = {**(PAPER if options.paper else {}), **given}
    try:
        Settings(**settings)
    except ValueError as error:
        raise UsageError(error) from None
    return settings


def _check_running(options: argparse.Namespace) -> None:
    check_running(options)
    if options.restart and options.checkpoint is None:
        raise UsageError("--restart needs --checkpoint DIR.")
    if options.master is not None and options.engine != "spark":
        raise UsageError("--master needs --engine spark.")


def _check_outputs(options: argparse.Namespace) -> None:
    from belief.cli.outputs import DATA_ENDINGS, REPORT_ENDINGS, RESULT_WRITERS

    if options.checkpoint is not None:
        refuse_inside("--checkpoint", options.checkpoint, options.files)
    outputs = [
        ("--out", options.out, RESULT_WRITERS),
        ("--report", options.report, REPORT_ENDINGS),
        ("--write-data", options.write_data, DATA_ENDINGS),
    ]
    check_outputs(options, outputs)


def run_demo(options: argparse.Namespace) -> None:
    """Carry out `belief demo`."""
    churn = Path(belief.__file__).with_name("datasets") / "churn.csv"  # the package would bring pandas with it
    print("Customers of a telephone company: which columns tell who leaves? That is,\n")
    print(f"  belief select {churn.name} --label left --top 4 --seed 0\n")
    options = parser().parse_args(["select", str(churn), "--label", "left", "--top", "4", "--seed", "0"])
    run_select(options)


def run_explain(options: argparse.Namespace) -> None:
    """Carry out `belief explain`."""
    result = _result_in(options.result)
    print(result.explain(options.feature))


def run_report(options: argparse.Namespace) -> None:
    """Carry out `belief report`."""
    from belief.cli.outputs import REPORT_ENDINGS, check_output, write_report
    from belief.data.files import find_same_file

    out = options.out or options.result.with_suffix(".html")
    check_output(out, REPORT_ENDINGS, options.force)
    if find_same_file(out, [options.result]) is not None:
        raise UsageError(f"--out and the result to be read are both {out}: give them two names.")
    write_report(_result_in(options.result), out, options.result.stem)
    print(escape_controls(out))


def _result_in(path: Path) -> belief.Result:
    if path.exists() and not path.is_file():  # a pipe would never end
        raise ValueError(f"{path}: is no file: give a result of belief select --out.")
    return _read_result(path)


def _read_result(path: Path) -> belief.Result:
    try:
        return belief.Result.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: is not whole JSON (line {error.lineno}): {error.msg}.") from None
    except RecursionError:
        raise ValueError(f"{path}: was changed by hand: it is nested too deep.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({getattr(error, 'strerror', 'not text')}).") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
