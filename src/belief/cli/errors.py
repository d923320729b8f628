"""What is wrong with a command, whatever its files hold: said before anything is read, with exit code 2."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from belief._utils.text import escape_controls
from belief.cli.arguments import option

GREEDY = ("drop", "keep", "discrete")  # options that take all names that follow
FILES_FIRST = "name the files before it, or put -- before them"


class UsageError(ValueError):
    """The command itself is wrong, whatever the files hold."""


class Parser(argparse.ArgumentParser):
    """A parser that knows where files have gone that it does not find."""

    def error(self, message: str) -> NoReturn:
        """Say it, and exit with 2."""
        if message.endswith("required: FILE"):
            message += f"; after {', '.join(map(option, GREEDY))} all that follows is a column: {FILES_FIRST}"
        super().error(escape_controls(message))  # which has words of the command in it, as they came


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def check_running(options: argparse.Namespace) -> None:
    """Refuse threads, memory or a device that cannot be, and files that an option took for columns."""
    from belief.engines.checks import check_resources

    if options.n_jobs == 0:
        raise UsageError("--n-jobs must be a number of threads, -1 for all cores, or -2 for all but one; got 0.")
    said = given(options, "n_jobs", "working_memory", "device")
    try:
        check_resources(**{"n_jobs": None, "working_memory": 1024, "verbose": 0, "device": "auto", **said})
    except ValueError as error:
        raise UsageError(error) from None
    for name in GREEDY:
        for column in getattr(options, name):
            if Path(column).is_file() and Path(column).suffix:
                raise UsageError(f"{option(name)}: {column!r} is a file, not a column: {FILES_FIRST}.")
