"""The options of the command line: their declaration, parsing and checks, and the translation of messages.

Messages of the package mention parameters of the Python API, which become options, such as `n_jobs` and `--n-jobs`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import shutil
import sys
from ast import literal_eval
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from belief._utils.text import escape_controls, print_message
from belief._utils.validation import did_you_mean
from belief.method.settings import Settings
from belief.method.targets import TASKS

CLI_NAMES = {"top": "n_features_to_select", "seed": "random_state", "discrete": "discrete_features"}
OPTION_NAMES = {"header": "no_header"} | {parameter: name for name, parameter in CLI_NAMES.items()}
PARAMETERS = (
    *(f.name for f in Settings.definitions()),
    *("task", "label", "drop", "candidates", "given", "groups", "adjust_for", "sample_weight", "encoding", "separator"),
    *("header", "discrete_features", "n_jobs", "working_memory", "device", "checkpoint", "restart", "force"),
    *("selectors", "seconds"),
)
ANY_PARAMETER = "|".join(PARAMETERS)
UNAMBIGUOUS = "|".join(name for name in PARAMETERS if "_" in name)  # names that cannot be English words
QUOTED = r"'[^']*'|\"[^\"]*\""
ASSIGNMENT = re.compile(rf"(?<!['\"\w])({ANY_PARAMETER})=(\[(?:{QUOTED})\]|{QUOTED}|[\w+-]+(?:\.\d+)?)")
VERBS = "must|applies|cannot|has no effect|is empty"
MENTION = re.compile(
    rf"(?<!['\"\w])(?:{UNAMBIGUOUS})\b(?!['\"])|^(?:{ANY_PARAMETER})(?=:| (?:{VERBS})\b)"
    rf"|(?<=[Oo]mit )(?:{ANY_PARAMETER})\b"
)
GREEDY_OPTIONS = ("drop", "candidates", "given", "adjust_for", "discrete")  # all names that follow become their values
MAX_LISTED_COLUMNS = 40
FILES_FIRST = "put the files before such options, or after --"


class UsageError(ValueError):
    """An error in the command; the exit code is 2."""


class Parser(argparse.ArgumentParser):
    """A parser that suggests similar options and commands, and explains why there is no input file."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; exit with an error if there are unknown options.

        `parse_args` cannot do this, because only the parser of a command such as `select` knows the options to suggest.
        """
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = next((did_you_mean(x.partition("=")[0], [*self._option_string_actions]) for x in unknown), "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message, with a suggestion if possible, and exit with code 2."""
        if message.endswith("required: FILE"):
            options = ", ".join(map(option_name, GREEDY_OPTIONS))
            message += f"; all names after {options} are read as columns: {FILES_FIRST}"
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message += did_you_mean(choice[1], choice[2].replace("'", "").split(", "))
        super().error(escape_controls(message))


def option_name(parameter: str) -> str:
    """Return the command-line option for a parameter of the Python API."""
    return "--" + OPTION_NAMES.get(parameter, parameter).replace("_", "-")


def translate_message(message: str) -> str:
    """Replace parameters of the Python API in a message by options, for example `n_jobs` by `--n-jobs`.

    `label='y'` becomes `--label y`.
    """
    message = ASSIGNMENT.sub(lambda match: _translate_assignment(match[1], match[2]), message)
    return MENTION.sub(lambda match: option_name(match[0]), message)


def _translate_assignment(parameter: str, shown: str) -> str:
    if parameter == "header":
        return option_name(parameter)  # a flag
    try:
        value = literal_eval(shown) if shown[0] in "['\"" else shown
    except (SyntaxError, ValueError):  # part of the name of a file
        return f"{parameter}={shown}"
    words = [] if value == "True" else value if isinstance(value, list) else [value]
    return " ".join([option_name(parameter), *(shlex.quote(word).replace("\t", "\\t") for word in words)])


def parse_value(text: str) -> Any:
    """Convert the text of an option to a number, a mapping (from "a=1,b=2"), None or a string."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    if "=" in text:
        return {name: parse_value(value) for name, _, value in (part.rpartition("=") for part in text.split(","))}
    return None if text == "None" else text


def _parse_file(text: str) -> Any:
    return text if "://" in text else Path(text)  # in a Path, the URL would lose a slash


@contextlib.contextmanager
def local_files(options: argparse.Namespace) -> Iterator[None]:
    """Replace URLs of input files by copies in a temporary folder, which is deleted at the end of this context."""
    if not any(isinstance(file, str) for file in options.files):
        yield
        return
    from belief.data.remote import RemoteFiles

    if not all(isinstance(file, str) for file in options.files):
        raise UsageError("Some of the files are URLs and some are local. Read them separately.")
    options.files, folder = RemoteFiles(options.files).copy()
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def add_input_options(group: Any) -> None:
    """Add the options for the input files and their columns to a group of options."""
    kinds = "CSV, TSV, Parquet, Arrow, LIBSVM, NPZ or H5AD; local, or a URL such as s3://bucket/name"
    group.add_argument("files", nargs="+", type=_parse_file, metavar="FILE", help=kinds)
    group.add_argument("--label", metavar="COL", help="the target column; if omitted, you are asked for it")
    task = "whether the target is classes or numbers (auto: numbers if it has fractions or many different values)"
    group.add_argument("--task", choices=TASKS, default="auto", help=task)
    group.add_argument("--drop", nargs="+", default=[], metavar="COL", help="columns to ignore")
    group.add_argument("--candidates", nargs="+", default=[], metavar="COL", help="columns to use; ignore all others")
    group.add_argument(
        "--discrete", nargs="+", default=[], metavar="COL", help="numeric columns to treat as categories"
    )
    text = "the CSV files have no line of column names; columns are named c0, c1, ..."
    group.add_argument("--no-header", action="store_true", help=text)
    group.add_argument("--encoding", metavar="NAME", help="encoding of CSV files: latin1, utf-16, ... (utf-8)")
    group.add_argument("--separator", metavar="C", help="column separator of CSV files (a comma; a tab for .tsv)")


def add_run_options(group: Any) -> None:
    """Add the options of every command that runs a selection, such as the number of threads."""
    group.add_argument("--n-jobs", type=int, metavar="N", help="number of threads (all cores; -2: all but one)")
    group.add_argument("--quiet", action="store_true", help="no progress on stderr")


def given_options(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the values of the options with these names, except options without a value."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def check_run_options(options: argparse.Namespace) -> None:
    """Raise a UsageError if threads, memory or device are invalid, or if a file was passed as a column."""
    from belief.engines.checks import check_resources

    if options.n_jobs == 0:
        raise UsageError("--n-jobs must be a number of threads, -1 for all cores, or -2 for all but one; got 0.")
    given = given_options(options, "n_jobs", "working_memory", "device")
    try:
        check_resources(**{"n_jobs": None, "working_memory": 1024, "verbose": 0, "device": "auto", **given})
    except ValueError as error:
        raise UsageError(error) from None
    for name in GREEDY_OPTIONS:
        for column in getattr(options, name, None) or ():
            if Path(column).suffix and os.path.isfile(column):  # unlike Path.is_file, it accepts any text
                raise UsageError(f"{option_name(name)}: {column!r} is a file, not a column: {FILES_FIRST}.")


def read_column_selection(options: argparse.Namespace) -> Any:
    """Return the options on columns and CSV files as a ColumnSelection.

    The columns of LIBSVM and NPZ files are named x0, x1, ...
    """
    from belief.data.columns import ColumnSelection
    from belief.data.files import detect_common_format

    if options.separator == "\\t":
        options.separator = "\t"  # a tab is hard to type in a shell
    discrete, kind = options.discrete, detect_common_format(options.files)
    if kind in ("libsvm", "npz"):
        for name in discrete:
            if not (name.startswith("x") and name[1:].isdecimal()):
                raise UsageError(
                    f"--discrete: there is no column {name!r}. Columns without names are called x0, x1, ..."
                )
        discrete = [int(name[1:]) for name in discrete]
    try:
        columns = ColumnSelection(
            label=options.label,
            drop=tuple(options.drop),
            candidates=tuple(options.candidates),
            discrete_features=discrete or "auto",
            task=options.task,
            separator=options.separator,
            header=not options.no_header,
            encoding=options.encoding,
        )
    except ValueError as error:
        raise UsageError(error) from None
    if columns.label is None and kind not in ("libsvm", "npz"):
        columns = replace(columns, label=_ask_for_label(options.files, columns))
    return columns


def _ask_for_label(files: Sequence[Path], columns: Any) -> str:
    """List the columns and ask the user for the target; without a terminal, raise an error that lists them."""
    from belief.data.files import detect_common_format
    from belief.data.stream import list_columns

    if detect_common_format(files) == "anndata":
        raise UsageError("Pass --label NAME, the column of obs that is the target.")
    names = list_columns(files, columns)
    listed = ", ".join(map(escape_controls, names[:MAX_LISTED_COLUMNS]))
    listed += f" and {len(names) - MAX_LISTED_COLUMNS:,} more" if len(names) > MAX_LISTED_COLUMNS else ""
    while sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        print(f"Columns: {listed}\nTarget column: ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip()
        if answer in names:
            return answer
        if not answer:
            break
        print_message(f"there is no column {answer!r}{did_you_mean(answer, names)}.")
    raise UsageError(f"Pass --label NAME to name the target column. The columns are {listed}.")


def open_input(options: argparse.Namespace, columns: Any) -> tuple[Any, Any, Any]:
    """Open the input files; return X, y and the discrete features."""
    from belief.data.stream import open_files

    opened = open_files(options.files, columns)
    if isinstance(opened, tuple):
        return *opened, columns.discrete_features
    return opened, None, "auto"  # a stream includes the target and the discrete features


def refuse_output_inside_input(name: str, path: Path, inputs: Sequence[Path]) -> None:
    """Raise a UsageError if an output file is inside an input folder, because the next run would read it."""
    for folder in inputs:
        if folder.is_dir() and folder.resolve() in path.resolve().parents:
            raise UsageError(
                f"{name} {path} is inside the input folder {folder}: the next run would read it. Choose another folder."
            )
