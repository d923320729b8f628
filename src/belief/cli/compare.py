"""The command `belief compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from belief._utils.validation import is_real
from belief.cli.arguments import (
    UsageError,
    add_input_options,
    add_json_option,
    add_run_options,
    check_run_options,
    open_input,
    parse_value,
    read_column_selection,
)
from belief.cli.terminal import print_comparison
from belief.method.settings import Settings

COMPARE_USAGE = "belief compare FILE [FILE ...] --label COL [options]"
COMPARE_EXAMPLES = """examples:
  belief compare customers.csv --label left --top 4
  belief compare customers.csv --label left --top 4 --out comparison.json --plot comparison.png
"""


def add_compare_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command `belief compare` to its parser."""
    add_input_options(command.add_argument_group("input"))
    output = command.add_argument_group("output")
    output.add_argument("--out", type=Path, metavar="FILE", help="write the comparison as JSON (.json)")
    output.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the comparison (.png, .svg, .pdf)")
    output.add_argument("--force", action="store_true", help="overwrite existing files")
    add_json_option(output)
    running = command.add_argument_group("run")
    top = "number or share of features to select, or auto: as many as BELIEF finds significant (10)"
    running.add_argument("--top", dest="n_features_to_select", type=parse_value, default=10, metavar="auto|X", help=top)
    selectors = "selectors to compare, separated by commas (all eight)"
    running.add_argument("--selectors", type=_split_names, metavar="NAME,...", help=selectors)
    running.add_argument("--seconds", type=parse_value, default=60.0, metavar="X", help="time limit in seconds (60)")
    seed = "seed of the sampled rows, the folds and the selectors"
    running.add_argument("--seed", dest="random_state", type=parse_value, metavar="X", help=seed)
    add_run_options(running)
    command.set_defaults(working_memory=None, device=None)


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def run_compare(options: argparse.Namespace) -> None:
    """Run the command `belief compare`."""
    _check_options(options)
    columns = read_column_selection(options)
    from belief.cli.outputs import JSON_ENDINGS, PICTURE_ENDINGS, check_outputs, write_text

    check_outputs(options, [("--out", options.out, JSON_ENDINGS), ("--plot", options.plot, PICTURE_ENDINGS)])
    comparison = _compare(options, columns)
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


def _check_options(options: argparse.Namespace) -> None:
    from belief.comparison.benchmark import find_selectors

    check_run_options(options)
    try:
        Settings(n_features_to_select=options.n_features_to_select, random_state=options.random_state)
        find_selectors(options.selectors)
    except ValueError as error:
        raise UsageError(error) from None
    if not (is_real(options.seconds) and options.seconds > 0):
        raise UsageError(f"--seconds must be a number above 0; got {options.seconds!r}.")


def _compare(options: argparse.Namespace, columns: Any) -> Any:
    from belief.comparison.compare import compare

    X, y, discrete_features = open_input(options, columns)
    return compare(
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


def _write_plot(found: Any, path: Path) -> None:
    from belief.cli.outputs import replacing
    from belief.plot import comparison
    from belief.report.canvas import matplotlib

    figure = matplotlib(".figure").Figure(figsize=(9, 1.5 + 0.4 * len(found.standings)), layout="constrained")
    comparison(found, figure.add_subplot())
    with replacing(path) as file:
        figure.savefig(file, dpi=150)
