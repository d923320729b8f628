"""Redundancy planted on purpose: how many different informative features the first 20 selected show.

    python experiments/redundancy.py

Ten informative features, each there r times, and 100 columns of noise. Every answer is kept in redundancy.json as it
comes, so a run that was stopped goes on where it was. Prints the table, and writes it into docs/reproduction.md.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import belief

ROWS, INFORMATIVE, NOISE, SELECT = 1000, 10, 100, 20
SHIFTS = (0.6, 1.2)  # how far apart the class means are: the weakest feature's, and the strongest's
BLUR = 0.25  # the standard deviation of what is added to a copy: it correlates at 0.97 with the original
REPEATS = (1, 2, 5, 10, 20)
SEEDS = (0, 1, 2, 3, 4)

HOME = Path(__file__).parents[1]
CELLS = Path(__file__).with_suffix(".json")
PAGE = HOME / "docs" / "reproduction.md"

Array = NDArray[Any]


def planted(r: int, seed: int) -> tuple[Array, Array, Array]:
    """A table with planted redundancy.

    Parameters
    ----------
    r : int
        How many columns each informative feature has: itself and r - 1 copies with noise.
    seed : int
        The seed of the data.

    Returns
    -------
    X : array of shape (ROWS, 10 * r + 100)
        The columns, shuffled.
    y : array of shape (ROWS,)
        The class, 0 or 1, half of the rows each.
    origin : array of shape (10 * r + 100,)
        Which informative feature a column shows, from 0 to 9; -1 is noise.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(ROWS) % 2)
    original = rng.standard_normal((ROWS, INFORMATIVE)) + np.linspace(*SHIFTS, INFORMATIVE) * y[:, None]
    columns = np.tile(original, r)
    columns[:, INFORMATIVE:] += BLUR * rng.standard_normal((ROWS, INFORMATIVE * (r - 1)))
    X = np.hstack([columns, rng.standard_normal((ROWS, NOISE))])
    origin = np.append(np.tile(np.arange(INFORMATIVE), r), np.full(NOISE, -1))
    order = rng.permutation(len(origin))
    return X[:, order], y, origin[order]


def with_belief(**settings: Any) -> Callable[[Array, Array, int], Array]:
    """BELIEF with the defaults, but for the settings given."""
    return lambda X, y, seed: belief.select(X, y, SELECT, random_state=seed, **settings).selected


def mrmr(X: Array, y: Array, seed: int) -> Array:
    """mRMR, by difference: mutual information with the class, less its mean with the selected, in ten bins each."""
    from sklearn.metrics import mutual_info_score

    bins = (10 * X.argsort(axis=0).argsort(axis=0) // len(X)).T  # of equal frequency
    relevance = np.array([mutual_info_score(y, column) for column in bins])
    redundancy = np.zeros(len(bins))
    selected: list[int] = []
    for n in range(SELECT):
        score = relevance - redundancy / max(n, 1)
        score[selected] = -np.inf
        selected.append(int(score.argmax()))
        redundancy += [mutual_info_score(bins[selected[-1]], column) for column in bins]
    return np.array(selected)


METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "BELIEF": with_belief(redundancy=None),
    "BELIEF + mCR, θ = mean": with_belief(theta="mean"),
    "BELIEF + mCR, θ = 0.3": with_belief(theta=0.3),
    "mRMR": mrmr,
}


def distinct(method: str, r: int, seed: int) -> int:
    """How many different informative features a method has among its first 20."""
    X, y, origin = planted(r, seed)
    found = origin[METHODS[method](X, y, seed)]
    return len(set(found[found >= 0].tolist()))


def load() -> dict[str, Any]:
    """The answers so far; none, if the data they are for was another."""
    data = {"rows": ROWS, "noise": NOISE, "select": SELECT, "shifts": list(SHIFTS), "blur": BLUR}
    if CELLS.exists():
        kept: dict[str, Any] = json.loads(CELLS.read_text())
        if kept["data"] == data:
            return kept
    return {"data": data, "commits": [], "cells": {}}


def compute() -> dict[str, Any]:
    """All answers; only those that are missing are computed."""
    kept = load()
    cells = kept["cells"]
    for key, cell in {key_of(*cell): cell for cell in grid()}.items():
        if key not in cells:
            cells[key] = distinct(*cell)
            kept["commits"] = sorted({*kept["commits"], commit()})
            CELLS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return kept


def grid() -> list[tuple[str, int, int]]:
    """Every method, r and seed."""
    return [(method, r, seed) for method in METHODS for r in REPEATS for seed in SEEDS]


def key_of(method: str, r: int, seed: int) -> str:
    """The name of an answer in redundancy.json."""
    return f"{method} | r={r} | seed={seed}"


def commit() -> str:
    """The commit that is checked out, in short."""
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HOME, capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


def markdown(kept: dict[str, Any]) -> str:
    """The table: mean over the seeds, and (minimum to maximum)."""
    lines = ["| method | " + " | ".join(f"r = {r}" for r in REPEATS) + " |", "|---" * (len(REPEATS) + 1) + "|"]
    for method in METHODS:
        shown = []
        for r in REPEATS:
            found = [kept["cells"][key_of(method, r, seed)] for seed in SEEDS]
            shown.append(f"{np.mean(found):.1f} ({min(found)}–{max(found)})")
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join([*lines, "", f"Computed at commit {', '.join(kept['commits'])}."])


def publish(text: str) -> None:
    """Put the table into the page, between its marks."""
    marks = re.compile(r"(<!-- redundancy -->\n).*(<!-- /redundancy -->)", re.S)
    PAGE.write_text(marks.sub(lambda m: f"{m[1]}{text}\n{m[2]}", PAGE.read_text()))


if __name__ == "__main__":
    table = markdown(compute())
    print(table)
    publish(table)
