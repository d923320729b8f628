"""The commands of `belief`: `select`, `demo`, `compare`, `explain` and `report`.

Results go to stdout, progress and errors to stderr. The exit code is 0 for success, 1 for an error, 2 for an invalid
command, 130 after Ctrl-C, 143 after SIGTERM, and 129 after SIGHUP.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import belief
from belief._utils.text import escape_controls, print_message
from belief._utils.validation import is_real
from belief.cli.arguments import (
    Parser,
    UsageError,
    add_input_options,
    add_run_options,
    check_run_options,
    given_options,
    local_files,
    open_input,
    option_name,
    parse_value,
    read_column_selection,
    refuse_output_inside_input,
    translate_message,
)
from belief.cli.signals import Terminated, raising_on_signals
from belief.cli.terminal import flush_or_discard, prepare_streams, print_comparison, print_explanation, print_result
from belief.method.settings import PAPER, Settings
from belief.method.targets import REGRESSION

USAGE = "belief select FILE [FILE ...] --label COL [options]"
EXAMPLES = """examples:
  belief demo
  belief select customers.csv --label left
  belief select customers.csv --label left --top auto --out result.json
  belief explain result.json age
  belief report result.json
  belief compare customers.csv --label left --top 4

belief COMMAND --help lists the options of a command.
"""
SELECT_EXAMPLES = """examples:
  belief select customers.csv --label left --top 4
  belief select folder/ --label class --checkpoint notes --out result.json --report page.html
"""
COMPARE_USAGE = "belief compare FILE [FILE ...] --label COL [options]"
COMPARE_EXAMPLES = """examples:
  belief compare customers.csv --label left --top 4
  belief compare customers.csv --label left --top 4 --out comparison.json --plot comparison.png
"""

JSON_HELP = "print JSON instead of a table"
GROUPS = {  # groups of settings in --help; all other settings belong to the group "method"
    "selection": (
        *("n_features_to_select", "per_class", "redundancy", "theta", "eta", "kappa", "stability", "random_state"),
    ),
    "significance": ("significance", "alpha", "rounds"),
    "sample": ("sample_size", "sampling", "batch_size", "copies"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `belief` and return its exit code."""
    prepare_streams()
    options = build_parser().parse_args((sys.argv[1:] if arguments is None else arguments) or ["--help"])
    with warnings.catch_warnings(), raising_on_signals():
        warnings.showwarning = lambda message, *more: print_message(translate_message(str(message)))
        try:
            with local_files(options) if hasattr(options, "files") else nullcontext():
                options.run(options)
            sys.stdout.flush()
            return 0
        except (KeyboardInterrupt, Terminated) as stop:
            again = ""
            if getattr(options, "checkpoint", None):
                again = f"; repeat the command{' without --restart' * options.restart} to continue"
            print_message(f"stopped{again}.")
            return 128 + stop.signal if isinstance(stop, Terminated) else 130
        except BrokenPipeError:  # as in `belief select ... | head`
            code = 1
        except (ValueError, TypeError, OSError, MemoryError) as error:
            if options.debug:
                raise
            print_message(translate_message(" ".join(str(error).split()) or type(error).__name__))
            code = 2 if isinstance(error, UsageError) else 1
        finally:
            flush_or_discard(sys.stdout)
            flush_or_discard(sys.stderr)
    return code


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. The options of the method are generated from its settings."""
    text = "Select relevant features and leave out redundant ones."
    top = Parser(prog="belief", description=text, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"belief {belief.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", title="commands")
    text = "select features of the table in one or more files"
    _add_select_options(_add_command(commands, "select", _run_select, text, usage=USAGE, epilog=SELECT_EXAMPLES))
    _add_command(commands, "demo", _run_demo, "select features of a bundled example")
    text = "compare selectors on the table in one or more files, in about a minute"
    compare = _add_command(commands, "compare", _run_compare, text, usage=COMPARE_USAGE, epilog=COMPARE_EXAMPLES)
    _add_compare_options(compare)
    explain = _add_command(commands, "explain", _run_explain, "explain why features were selected or not")
    explain.add_argument("result", type=Path, metavar="RESULT.json", help="a result of belief select --out")
    explain.add_argument("feature", nargs="?", help="explain only this feature, in detail")
    explain.add_argument("--json", action="store_true", help=JSON_HELP)
    report = _add_command(commands, "report", _run_report, "write a result as an HTML report")
    report.add_argument("result", type=Path, metavar="RESULT.json", help="a result of belief select --out")
    report.add_argument("--out", type=Path, metavar="FILE", help="the report (RESULT.html)")
    report.add_argument("--force", action="store_true", help="overwrite existing files")
    return top


def _add_command(
    commands: Any, name: str, run: Callable[..., None], text: str, **options: Any
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text.capitalize() + "." + " Defaults are in brackets." * ("usage" in options),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )
    command.set_defaults(run=run)
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return command


def _add_select_options(command: argparse.ArgumentParser) -> None:
    add_input_options(command.add_argument_group("input"))
    study = command.add_argument_group("study")
    study.add_argument("--given", nargs="+", default=[], metavar="COL", help="features that are selected already")
    study.add_argument("--groups", metavar="COL", help="the group of each row, such as a patient with several rows")
    adjust = "columns to adjust for, such as a batch: neighbours are rows with the same values in these columns"
    study.add_argument("--adjust-for", nargs="+", metavar="COL", help=adjust)
    study.add_argument("--sample-weight", metavar="COL", help="the weight of each row")
    output = command.add_argument_group("output")
    output.add_argument("--out", type=Path, metavar="FILE", help="the result (.json), or the ranking (.csv, .parquet)")
    output.add_argument("--report", type=Path, metavar="FILE", help="the result as an HTML report (.html)")
    text = "add the score of models by the number of features to the report (about a minute)"
    output.add_argument("--score-by-size", action="store_true", help=text)
    output.add_argument("--write-data", type=Path, metavar="FILE", help="the selected columns (.csv, .parquet)")
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    output.add_argument("--json", action="store_true", help=JSON_HELP)
    running = command.add_argument_group("run")
    running.add_argument("--engine", choices=("local", "spark"), default="local", help="this machine or Spark (local)")
    running.add_argument("--master", metavar="URL", help="Spark master: local[2], spark://host:port, sc://host:port")
    checkpoint = "folder for intermediate results; an interrupted run continues from there"
    running.add_argument("--checkpoint", type=Path, metavar="DIR", help=checkpoint)
    running.add_argument("--restart", action="store_true", help="discard the contents of the checkpoint")
    running.add_argument(
        "--working-memory", type=int, metavar="MIB", help="memory in MiB, in addition to the data (1024)"
    )
    running.add_argument("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1, or several, cuda:0,1 (auto)")
    add_run_options(running)
    groups = {name: command.add_argument_group(name) for name in ("selection", "significance", "sample", "method")}
    groups["method"].add_argument(
        "--paper", action="store_true", help="use the paper's settings, except settings that are passed explicitly"
    )
    for f in Settings.definitions():
        group = groups[next((name for name, settings in GROUPS.items() if f.name in settings), "method")]
        doc = re.sub("^[α-ω], ", "", f.metadata["doc"])  # not every terminal has Greek letters
        text = translate_message(f"{doc} ({f.default})").replace("%", "%%")
        allowed = f.metadata["allowed"]
        choices = re.findall(r"'(\w+)'", allowed)
        choices += ["X"] if re.search("number|integer|share", allowed) else []  # X stands for a number
        choices += ["NAME=X,..."] * ("mapping" in allowed) + ["None"] * ("or None" in allowed)
        group.add_argument(
            option_name(f.name),
            dest=f.name,
            type=parse_value,
            default=argparse.SUPPRESS,
            metavar="|".join(choices),
            help=text,
        )


def _add_compare_options(command: argparse.ArgumentParser) -> None:
    add_input_options(command.add_argument_group("input"))
    output = command.add_argument_group("output")
    output.add_argument("--out", type=Path, metavar="FILE", help="write the comparison as JSON (.json)")
    output.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the comparison (.png, .svg, .pdf)")
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    output.add_argument("--json", action="store_true", help=JSON_HELP)
    running = command.add_argument_group("run")
    top = "number or share of features to select, or auto: as many as BELIEF finds significant (10)"
    running.add_argument("--top", dest="n_features_to_select", type=parse_value, default=10, metavar="auto|X", help=top)
    running.add_argument(
        "--selectors",
        type=lambda text: [name.strip() for name in text.split(",")],
        metavar="NAME,...",
        help="selectors to compare, separated by commas (all eight)",
    )
    running.add_argument("--seconds", type=parse_value, default=60.0, metavar="X", help="time limit in seconds (60)")
    seed = "seed of the sampled rows, the folds and the selectors"
    running.add_argument("--seed", dest="random_state", type=parse_value, metavar="X", help=seed)
    add_run_options(running)
    command.set_defaults(working_memory=None, device=None)


def _run_select(options: argparse.Namespace) -> None:
    from belief.cli.outputs import (
        DATA_ENDINGS,
        REPORT_ENDINGS,
        RESULT_ENDINGS,
        check_outputs,
        write_data,
        write_report,
        write_result,
    )

    given = {f.name: getattr(options, f.name) for f in Settings.definitions() if hasattr(options, f.name)}
    settings = {**(PAPER if options.paper else {}), **given}
    try:
        Settings(**settings)
    except ValueError as error:
        raise UsageError(error) from None
    check_run_options(options)
    if options.score_by_size and (options.report is None or options.engine == "spark"):
        raise UsageError("--score-by-size needs --report FILE and --engine local.")
    if options.restart and options.checkpoint is None:
        raise UsageError("--restart needs --checkpoint DIR.")
    if options.master is not None and options.engine != "spark":
        raise UsageError("--master needs --engine spark.")
    columns = read_column_selection(options)
    if options.checkpoint is not None:
        refuse_output_inside_input("--checkpoint", options.checkpoint, options.files)
    outputs = [
        ("--out", options.out, RESULT_ENDINGS),
        ("--report", options.report, REPORT_ENDINGS),
        ("--write-data", options.write_data, DATA_ENDINGS),
    ]
    check_outputs(options, outputs)
    if options.engine == "spark":
        X, result = None, _select_on_spark(options, columns, settings)
    else:
        X, result = _select_locally(options, columns, settings)
    try:  # write files first, because printing may fail
        if options.out:
            write_result(result, options.out)
        if options.report:
            title = " ".join(file.name for file in options.files)
            curve = _score_by_size(options, columns, result.seed) if options.score_by_size else None
            write_report(result, options.report, title, curve)
        if options.write_data:
            write_data(X, result, options.write_data)
    finally:  # print the result even if it could not be written, for example to a full disk
        if options.json:
            print(json.dumps(result.to_dict(), allow_nan=False))
        else:
            target = f"{len(result.classes)} classes"
            if result.task == REGRESSION:
                target = f"target from {result.quantiles[0]:g} to {result.quantiles[-1]:g}"
            sizes = f"{result.task}: {result.n_rows:,} rows, {len(result.weights):,} features, {target}"
            sample = f"{result.sample_size:,} rows sampled ({result.stop_reason})"
            print_result(result, f"{sizes}; {sample}; seed {result.seed}")


def _score_by_size(options: argparse.Namespace, columns: Any, seed: int) -> Any:
    if not options.quiet:
        print_message("scoring models by the number of features")
    X, y, discrete_features = open_input(options, columns)
    n_jobs = options.n_jobs
    return belief.score_by_size(
        X, y, task=options.task, discrete_features=discrete_features, n_jobs=n_jobs, random_state=seed
    )


def _select_locally(options: argparse.Namespace, columns: Any, settings: dict[str, Any]) -> tuple[Any, belief.Result]:
    X, y, discrete_features = open_input(options, columns)
    if options.write_data and not hasattr(X, "files"):
        raise UsageError("--write-data needs a file with column names: CSV, Parquet or Arrow.")
    result = belief.select(
        X,
        y,
        task=options.task,
        discrete_features=discrete_features,
        verbose=0 if options.quiet else 1,
        restart=options.restart,
        given=options.given,
        **settings,
        **given_options(options, "groups", "adjust_for", "sample_weight"),
        **given_options(options, "n_jobs", "working_memory", "device", "checkpoint"),
    )
    return X, result


def _select_on_spark(options: argparse.Namespace, columns: Any, settings: dict[str, Any]) -> belief.Result:
    for name in given_options(options, "checkpoint", "write_data", "n_jobs", "working_memory", "device"):
        raise UsageError(f"{option_name(name)} needs --engine local.")
    from belief.data.roles import Roles
    from belief.spark.frames import select_files

    roles = Roles(options.groups, options.adjust_for, options.sample_weight)
    return select_files(
        options.files, columns, Settings(**settings), options.master, 0 if options.quiet else 1, options.given, roles
    )


def _run_demo(options: argparse.Namespace) -> None:
    churn = Path(belief.__file__).with_name("datasets") / "churn.csv"  # belief.datasets would import pandas
    print("Customers of a telephone company: which columns predict who leaves? This runs\n")
    print(f"  belief select {churn.name} --label left --top 4 --seed 0\n")
    _run_select(build_parser().parse_args(["select", str(churn), "--label", "left", "--top", "4", "--seed", "0"]))


def _run_compare(options: argparse.Namespace) -> None:
    from belief.cli.outputs import JSON_ENDINGS, PICTURE_ENDINGS, check_outputs, write_text
    from belief.comparison.benchmark import find_selectors
    from belief.comparison.compare import compare

    check_run_options(options)
    try:
        Settings(n_features_to_select=options.n_features_to_select, random_state=options.random_state)
        find_selectors(options.selectors)
    except ValueError as error:
        raise UsageError(error) from None
    if not (is_real(options.seconds) and options.seconds > 0):
        raise UsageError(f"--seconds must be a number above 0; got {options.seconds!r}.")
    columns = read_column_selection(options)
    check_outputs(options, [("--out", options.out, JSON_ENDINGS), ("--plot", options.plot, PICTURE_ENDINGS)])
    X, y, discrete_features = open_input(options, columns)
    comparison = compare(
        X,
        y,
        options.n_features_to_select,
        task=options.task,
        selectors=options.selectors,
        seconds=options.seconds,
        n_jobs=options.n_jobs,
        verbose=0 if options.quiet else 1,
        random_state=options.random_state,
        discrete_features=discrete_features,
    )
    try:  # write files first, because printing may fail
        if options.out:
            write_text(comparison.to_json(), options.out)
        if options.plot:
            _write_plot(comparison, options.plot)
    finally:  # print the comparison even if it could not be written, for example to a full disk
        if options.json:
            print(comparison.to_json())
        else:
            print_comparison(comparison)


def _write_plot(found: Any, path: Path) -> None:
    from belief.cli.outputs import replacing
    from belief.plot import comparison
    from belief.report.canvas import matplotlib

    figure = matplotlib(".figure").Figure(figsize=(9, 1.5 + 0.4 * len(found.standings)), layout="constrained")
    comparison(found, figure.add_subplot())
    with replacing(path) as file:
        figure.savefig(file, dpi=150)


def _run_explain(options: argparse.Namespace) -> None:
    lines = read_result(options.result).explain(options.feature)
    if options.json:
        print(json.dumps([line.as_dict() for line in lines] if isinstance(lines, list) else lines.as_dict()))
    else:
        print_explanation(lines)


def _run_report(options: argparse.Namespace) -> None:
    from belief.cli.outputs import REPORT_ENDINGS, check_output, write_report
    from belief.data.files import find_same_file

    out = options.out or options.result.with_suffix(".html")
    check_output(out, REPORT_ENDINGS, options.force)
    if find_same_file(out, [options.result]) is not None:
        raise UsageError(f"--out {out} would overwrite the result: choose another name.")
    write_report(read_result(options.result), out, options.result.stem)
    print(escape_controls(out))


def read_result(path: Path) -> belief.Result:
    """Read a result from a file that was written by `belief select --out`."""
    if os.path.exists(path) and not path.is_file():  # reading a pipe could block forever
        raise ValueError(f"{path} is not a file: pass a file that was written by belief select --out.")
    try:
        return belief.Result.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not valid JSON (line {error.lineno}): {error.msg}.") from None
    except RecursionError:
        raise ValueError(f"{path}: was edited or damaged: it is nested too deeply.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({getattr(error, 'strerror', 'not text')}).") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
