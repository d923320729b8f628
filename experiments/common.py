"""Shared code of the experiments: stored results (called answers), markdown tables, and pages that show tables."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import issparse

import belief

HOME = Path(__file__).parents[1]
MOSTLY_ZEROS = 0.1  # data with a smaller share of non-zero values is not scaled; the paper does not discuss such data


def read_answers(file: Path) -> dict[str, Any]:
    """Read a file of answers: its configuration, commits and answers; empty if there is no file."""
    if not file.exists():
        return {"configuration": None, "commits": [], "answers": {}}
    head, *answers = map(json.loads, file.read_text().splitlines())
    return {**head, "answers": dict(answers)}


def write_answers(file: Path, kept: dict[str, Any]) -> None:
    """Write answers as JSON lines: the configuration and the commits first, then each answer with its key."""
    head = {name: kept[name] for name in ("configuration", "commits")}
    lines = [head, *kept["answers"].items()]
    new = file.with_suffix(".new")
    new.write_text("".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) + "\n" for x in lines))
    new.replace(file)  # atomic: an interrupted run loses nothing


class Answers:
    """Answers stored in a file, each saved as soon as it is computed; a changed configuration discards them all.

    Parameters
    ----------
    file : Path
        A file of JSON lines, created when the first answer is saved.
    configuration : dict
        Everything the answers depend on, as plain JSON.
    """

    def __init__(self, file: Path, configuration: dict[str, Any]) -> None:
        self.file = file
        self.configuration = json.loads(json.dumps(configuration))
        kept = read_answers(file)
        same = kept["configuration"] == self.configuration
        self.commits: list[str] = kept["commits"] if same else []
        self.answers: dict[str, Any] = kept["answers"] if same else {}
        self._saving = Lock()  # several threads may compute answers

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the answer stored under this key, or compute and save it."""
        if key not in self.answers:
            print(key, file=sys.stderr)
            found = compute()
            with self._saving:
                self.answers[key] = found
                self.commits = sorted({*self.commits, commit()})
                self._save()
        return self.answers[key]

    @property
    def origin(self) -> str:
        """A sentence with the commits at which the answers were computed, for the page that shows the answers."""
        return f"Computed at commit {', '.join(self.commits)}."

    def _save(self) -> None:
        kept = {"configuration": self.configuration, "commits": self.commits, "answers": self.answers}
        write_answers(self.file, kept)


def commit() -> str:
    """Return the short hash of the current commit, with "-dirty" if the Python code has uncommitted changes."""
    code = ("src/*.py", "experiments/*.py", "benchmarks/*.py")
    changed = _git("status", "--porcelain", "--untracked-files=all", "--", *code)
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    asked = subprocess.run(["git", "--no-optional-locks", *words], cwd=HOME, capture_output=True, text=True)
    return asked.stdout.strip()


def data_home() -> Path | None:
    """Return the folder of the public data sets from the environment variable BELIEF_DATA, or None if it is not set."""
    named = os.environ.get("BELIEF_DATA")
    if named and not Path(named).is_dir():
        raise SystemExit(f"BELIEF_DATA is {named!r}, which is not a folder.")
    return Path(named) if named else None


def paper(X: Any, discrete: Any = None) -> dict[str, Any]:
    """Return the paper's settings for a table, without scaling if less than 10 % of its numeric values are non-zero.

    The paper does not discuss such tables. They were not scaled for the stored answers of the experiments, either.

    Parameters
    ----------
    X : array or sparse matrix
        The table.
    discrete : array of bool, optional
        Which features are nominal.
    """
    numbers = X if discrete is None else X[:, np.flatnonzero(~np.asarray(discrete))]
    filled = numbers.nnz if issparse(numbers) else np.count_nonzero(numbers)
    cells = numbers.shape[0] * numbers.shape[1]
    return {**belief.PAPER, "scale": "none"} if filled < MOSTLY_ZEROS * cells else dict(belief.PAPER)


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a table in markdown."""
    head = list(head)
    first, *rest = ("| " + " | ".join(row) + " |" for row in (head, *lines))
    return "\n".join([first, "|" + "---|" * len(head), *rest])


DATA = re.compile(r"<!-- data: (?P<name>[\w -]+) -->\n(?P<table>.*?)\n<!-- /data -->", re.S)


def as_data(name: str, table: str) -> str:
    """Mark a markdown table that a page should not show, but link to as a CSV file."""
    return f"<!-- data: {name} -->\n{table}\n<!-- /data -->"


def split_data(page: Path, text: str) -> tuple[str, dict[Path, str]]:
    """Return the text with a link to a CSV file in place of each table that was marked by `as_data`, and the CSV files.

    The files are a dictionary of their contents by path. This function does not write them.
    """
    files: dict[Path, str] = {}

    def link(found: re.Match[str]) -> str:
        file = page.parent / "data" / f"{page.stem}-{found['name'].replace(' ', '-')}.csv"
        files[file] = as_csv(found["table"])
        return f"[{found['name']}](data/{file.name})"

    return DATA.sub(link, text), files


def as_csv(markdown: str) -> str:
    """Convert a markdown table in the format of `table` to CSV."""
    rows = [line[2:-2].split(" | ") for line in markdown.splitlines()]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [re.sub(r"[*`]", "", x).strip() for x in row] for i, row in enumerate(rows) if i != 1
    )
    return out.getvalue()


def is_published(page: Path, text: str) -> bool:
    """Return True if a page contains a text and its CSV files contain the tables of this text."""
    shown, files = split_data(page, text)
    return shown in page.read_text() and all(file.exists() and file.read_text() == x for file, x in files.items())


def publish(page: Path, mark: str, text: str) -> None:
    """Write a text into a page, between <!-- mark --> and <!-- /mark -->.

    Tables in the text that were marked with `as_data` are written into CSV files, and the page has links to them.
    """
    text, files = split_data(page, text)
    marks = re.compile(rf"(<!-- {mark} -->\n).*(<!-- /{mark} -->)", re.S)
    old = page.read_text()
    if not marks.search(old):
        raise SystemExit(f"{page} has no <!-- {mark} --> and <!-- /{mark} -->. Add both where the tables should be.")
    page.write_text(marks.sub(lambda m: f"{m[1]}{text}\n{m[2]}", old))
    for file, content in files.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
