"""Redundancy planted on purpose: how many different informative features the first 20 selected show.

    python experiments/redundancy.py

Ten informative features, each there r times, and 100 columns of noise. Every answer is kept in redundancy.json as it
comes, so a run that was stopped goes on where it was. Prints the table, and writes it into docs/reproduction.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, publish, table
from numpy.typing import NDArray

import belief
from belief.baselines import MRMR

ROWS, INFORMATIVE, NOISE, SELECT = 1000, 10, 100, 20
SHIFTS = (0.6, 1.2)  # how far apart the class means are: the weakest feature's, and the strongest's
BLUR = 0.25  # the standard deviation of what is added to a copy: it correlates at 0.97 with the original
REPEATS = (1, 2, 5, 10, 20)
SEEDS = (0, 1, 2, 3, 4)

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
    """mRMR, by difference, in ten bins of equal frequency."""
    return MRMR(SELECT).fit(X, y).selected_


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


def compute() -> Answers:
    """All answers; only those that are missing are computed."""
    data = {"rows": ROWS, "noise": NOISE, "select": SELECT, "shifts": list(SHIFTS), "blur": BLUR}
    kept = Answers(CELLS, data)
    for cell in grid():
        kept.get(key_of(*cell), lambda cell=cell: distinct(*cell))  # type: ignore[misc]
    return kept


def grid() -> list[tuple[str, int, int]]:
    """Every method, r and seed."""
    return [(method, r, seed) for method in METHODS for r in REPEATS for seed in SEEDS]


def key_of(method: str, r: int, seed: int) -> str:
    """The name of an answer in redundancy.json."""
    return f"{method} | r={r} | seed={seed}"


def markdown(kept: Answers) -> str:
    """The table: mean over the seeds, and (minimum to maximum)."""
    lines = []
    for method in METHODS:
        shown = []
        for r in REPEATS:
            found = [kept.answers[key_of(method, r, seed)] for seed in SEEDS]
            shown.append(f"{np.mean(found):.1f} ({min(found)}–{max(found)})")
        lines.append([method, *shown])
    text = table(["method", *(f"r = {r}" for r in REPEATS)], lines)
    return f"{text}\n\nComputed at commit {', '.join(kept.commits)}."


if __name__ == "__main__":
    text = markdown(compute())
    print(text)
    publish(PAGE, "redundancy", text)
