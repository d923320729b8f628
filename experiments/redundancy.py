"""Redundancy planted on purpose: how many different informative features the first 20 selected show.

    python experiments/redundancy.py
    python experiments/redundancy.py --tries

Ten informative features, each there r times, and 100 columns of noise. Every answer is kept in redundancy.json as it
comes, so a run that was stopped goes on where it was. Prints the table, and writes it into docs/reproduction.md.
`--tries` prints how the shifts were chosen instead: three tries with other seeds, at r = 10. Nothing of it is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, commit, publish, table
from numpy.typing import NDArray

import belief
from belief.baselines import MRMR

ROWS, INFORMATIVE, NOISE, SELECT = 1000, 10, 100, 20
SHIFTS = (0.6, 1.2)  # how far apart the class means are: the weakest feature's, and the strongest's
BLUR = 0.25  # the standard deviation of what is added to a copy: it correlates at 0.97 with the original
REPEATS = (1, 2, 5, 10, 20)
SEEDS = (0, 1, 2, 3, 4)
TRIES = {"0.6 to 1.2": (0.6, 1.2), "0.4 to 0.8": (0.4, 0.8), "0.5 for all": (0.5, 0.5)}  # the shifts that were tried
TRIED_R, TRIED_SEEDS = 10, (100, 101, 102)

CELLS = Path(__file__).with_suffix(".json")
PAGE = HOME / "docs" / "reproduction.md"

Array = NDArray[Any]


def planted(r: int, seed: int, shifts: tuple[float, float] = SHIFTS) -> tuple[Array, Array, Array]:
    """A table with planted redundancy.

    Parameters
    ----------
    r : int
        How many columns each informative feature has: itself and r - 1 copies with noise.
    seed : int
        The seed of the data.
    shifts : pair of float
        How far apart the class means are: the weakest feature's, and the strongest's.

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
    original = rng.standard_normal((ROWS, INFORMATIVE)) + np.linspace(*shifts, INFORMATIVE) * y[:, None]
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


def distinct(method: str, r: int, seed: int, shifts: tuple[float, float] = SHIFTS) -> int:
    """How many different informative features a method has among its first 20."""
    X, y, origin = planted(r, seed, shifts)
    found = origin[METHODS[method](X, y, seed)]
    return len(set(found[found >= 0].tolist()))


def compute() -> Answers:
    """All answers; only those that are missing are computed."""
    kept = Answers(CELLS, configuration())
    for cell in grid():
        kept.get(key_of(*cell), lambda cell=cell: distinct(*cell))  # type: ignore[misc]
    return kept


def configuration() -> dict[str, Any]:
    """All that the answers depend on."""
    return {"rows": ROWS, "noise": NOISE, "select": SELECT, "shifts": list(SHIFTS), "blur": BLUR}


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
            shown.append(summary([kept.answers[key_of(method, r, seed)] for seed in SEEDS]))
        lines.append([method, *shown])
    text = table(["method", *(f"r = {r}" for r in REPEATS)], lines)
    return f"{text}\n\n{kept.origin}"


def summary(found: list[int]) -> str:
    """The mean, and (minimum to maximum)."""
    return f"{np.mean(found):.1f} ({min(found)}–{max(found)})"


def tries() -> str:
    """The table of the tries: other shifts, other seeds."""
    lines = []
    for method in METHODS:
        found = [[distinct(method, TRIED_R, seed, shifts) for seed in TRIED_SEEDS] for shifts in TRIES.values()]
        lines.append([method, *map(summary, found)])
    text = table([f"method, r = {TRIED_R}", *(f"shifts {name}" for name in TRIES)], lines)
    return f"{text}\n\nSeeds {TRIED_SEEDS[0]} to {TRIED_SEEDS[-1]}. Computed at commit {commit()}."


def main(words: list[str]) -> None:
    """Compute what is missing and write the page, or print the tries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", action="store_true", help="print how the shifts were chosen, and write nothing")
    if parser.parse_args(words).tries:
        print(tries())
        return
    text = markdown(compute())
    print(text)
    publish(PAGE, "redundancy", text)


if __name__ == "__main__":
    main(sys.argv[1:])
