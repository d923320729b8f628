"""`belief compare`: the contest without Python."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from belief._utils.validation import is_real
from belief.cli.errors import UsageError, check_running
from belief.cli.inputs import check_outputs, reading, value_of, wanted
from belief.method.settings import Settings

COMPARE_USAGE = "belief compare FILE [FILE ...] --label COL [options]"
COMPARE_EXAMPLES = """examples:
  belief compare customers.csv --label left --top 4
  belief compare customers.csv --label left --top 4 --json found.json --plot found.png
"""
JSON_ENDINGS = (".json",)


def compare_options(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    reading(command.add_argument_group("what to read"))
    writing = command.add_argument_group("what to write")
    writing.add_argument("--json", type=Path, metavar="FILE", help="everything that was found (.json)")
    writing.add_argument("--plot", type=Path, metavar="FILE", help="the same as a picture (.png, .svg, .pdf)")
    writing.add_argument("--force", action="store_true", help="write over files that exist")
    running = command.add_argument_group("how to run")
    top = "how many features to select, which share, or auto: as many as can be told from noise (10)"
    running.add_argument("--top", dest="n_features_to_select", type=value_of, default=10, metavar="auto|X", help=top)
    said = "which to compare, with commas between them (the usual eight)"
    running.add_argument("--selectors", type=_names, metavar="NAME,...", help=said)
    running.add_argument("--seconds", type=value_of, default=60.0, metavar="X", help="how long it may take (60)")
    running.add_argument("--seed", dest="random_state", type=value_of, metavar="X", help="of rows, folds and selectors")
    running.add_argument("--n-jobs", type=int, metavar="N", help="threads (all cores; -2: all but one)")
    running.add_argument("--quiet", action="store_true", help="no progress on stderr")
    command.set_defaults(working_memory=None, device=None)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def run_compare(options: argparse.Namespace) -> None:
    """Carry out `belief compare`."""
    _check(options)
    asked = wanted(options)
    from belief.cli.outputs import PICTURE_ENDINGS

    check_outputs(options, [("--json", options.json, JSON_ENDINGS), ("--plot", options.plot, PICTURE_ENDINGS)])
    found = _compared(options, asked)
    try:  # files first: a terminal may fail too
        if options.json:
            _write_json(found, options.json)
        if options.plot:
            _write_picture(found, options.plot)
    finally:  # and if the disk is full, the answer is not lost
        print(found)


def _check(options: argparse.Namespace) -> None:
    """Refuse what is wrong whatever the files hold."""
    from belief.comparison.contest import entrants_of

    check_running(options)
    try:
        Settings(n_features_to_select=options.n_features_to_select, random_state=options.random_state)
        entrants_of(options.selectors)
    except ValueError as error:
        raise UsageError(error) from None
    if not (is_real(options.seconds) and options.seconds > 0):
        raise UsageError(f"--seconds must be a number above 0; got {options.seconds!r}.")


def _compared(options: argparse.Namespace, asked: Any) -> Any:
    from belief.comparison.contest import compare
    from belief.data.stream import open_files

    opened = open_files(options.files, asked)
    X, y = opened if isinstance(opened, tuple) else (opened, None)
    return compare(
        X, y, options.n_features_to_select, task=options.task, selectors=options.selectors, seconds=options.seconds,
        n_jobs=options.n_jobs, verbose=0 if options.quiet else 1, random_state=options.random_state,
        discrete_features=asked.discrete_features if isinstance(opened, tuple) else "auto",
    )  # fmt: skip


def _write_json(found: Any, path: Path) -> None:
    from belief.cli.outputs import beside

    with beside(path) as file:
        file.write_text(found.to_json(), encoding="utf-8")


def _write_picture(found: Any, path: Path) -> None:
    from belief.cli.outputs import beside
    from belief.plot import comparison
    from belief.report.canvas import matplotlib

    figure = matplotlib(".figure").Figure(figsize=(9, 1.5 + 0.4 * len(found.standings)), layout="constrained")
    comparison(found, figure.add_subplot())
    with beside(path) as file:
        figure.savefig(file, dpi=150)
