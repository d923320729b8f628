"""What a command is told to read and to write: its options, and what is wrong with them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from belief.cli.errors import UsageError
from belief.method.targets import TASKS


def reading(group: Any) -> None:
    """Add the options that say what to read."""
    group.add_argument("files", nargs="+", type=Path, metavar="FILE", help="CSV, TSV, Parquet, Arrow, LIBSVM or NPZ")
    group.add_argument("--label", metavar="COL", help="the column that holds the class, or the number to predict")
    said = "whether it holds classes or numbers; auto: fractions, and whole numbers that seldom repeat, are numbers"
    group.add_argument("--task", choices=TASKS, default="auto", help=said)
    group.add_argument("--drop", nargs="+", default=[], metavar="COL", help="columns to leave out")
    group.add_argument("--keep", nargs="+", default=[], metavar="COL", help="columns to choose from, and no others")
    group.add_argument("--discrete", nargs="+", default=[], metavar="COL", help="columns of numbers that are names")
    group.add_argument("--no-header", action="store_true", help="CSV without a line of names: c0, c1, ...")
    group.add_argument("--encoding", metavar="NAME", help="of the text of a CSV file: latin1, utf-16, ... (utf-8)")
    group.add_argument("--separator", metavar="C", help="between the columns of a CSV file (a comma; a tab for .tsv)")


def value_of(text: str) -> Any:
    """A number where it is one, None for "none" as Python would write it, else the word."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    if "=" in text:
        return {name: value_of(value) for name, _, value in (part.rpartition("=") for part in text.split(","))}
    return None if text == "None" else text


def wanted(options: argparse.Namespace) -> Any:
    """What is to be read; the columns of LIBSVM and NPZ files are called x0, x1, ..."""
    from belief.data.columns import ColumnSelection
    from belief.data.files import detect_common_format

    if options.separator == "\\t":
        options.separator = "\t"  # which is hard to type
    if options.separator is not None and len(options.separator) != 1:
        raise UsageError(f"--separator must be one character; got {options.separator!r}.")
    kind = detect_common_format(options.files)
    discrete = options.discrete
    if kind in ("libsvm", "npz"):
        discrete = [_number(name) for name in discrete]
    elif options.label is None:
        raise UsageError("Say which column holds the class, or the number to predict, with --label NAME.")
    try:
        return ColumnSelection(
            label=options.label,
            drop=tuple(options.drop),
            keep=tuple(options.keep),
            discrete_features=discrete or "auto",
            task=options.task,
            separator=options.separator,
            header=not options.no_header,
            encoding=options.encoding,
        )
    except ValueError as error:
        raise UsageError(error) from None


def _number(name: str) -> int:
    if not (name.startswith("x") and name[1:].isdecimal()):
        raise UsageError(f"--discrete: there is no column {name!r}; in files without names they are x0, x1, ...")
    return int(name[1:])


Output = tuple[str, Path | None, Collection[str]]  # an option, the file it names, and the endings that may have


def check_outputs(options: argparse.Namespace, outputs: Sequence[Output]) -> None:
    """Refuse files that could not be written in the end, or would be written over one that is read."""
    from belief.cli.outputs import check_output
    from belief.data.files import find_same_file, list_all_files

    read = list_all_files(options.files)
    taken: dict[Path, str] = {}
    for name, path, endings in outputs:
        if path is None:
            continue
        check_output(path, endings, options.force)
        if find_same_file(path, read) is not None:
            raise UsageError(f"{name} and a file to be read are both {path}: give them two names.")
        refuse_inside(name, path, options.files)
        other = find_same_file(path, taken) or path.resolve()
        if other in taken:
            raise UsageError(f"{name} and {taken[other]} are both {path}: give them two names.")
        taken[path.resolve()] = name


def refuse_inside(name: str, path: Path, read: Sequence[Path]) -> None:
    """Refuse to write into a folder that is read: the next run would read that too."""
    for folder in read:
        if folder.is_dir() and folder.resolve() in path.resolve().parents:
            raise UsageError(f"{name} {path} is in {folder}, which is read: the next run would read it too.")
