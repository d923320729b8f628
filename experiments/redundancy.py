"""Redundancy planted on purpose: how many different informative features the first 20 selected show.

    python experiments/redundancy.py

Ten informative features, each there r times, and 100 columns of noise; and how the shifts of their means were chosen:
three tries with other seeds, at r = 10. Every answer is kept in redundancy.jsonl as it comes, so a run that was stopped
goes on where it was. Prints the tables, and writes them into docs/reproduction.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, as_data, publish, table
from numpy.typing import NDArray

import belief
from belief.baselines import MRMR

PAPER = dict(belief.PAPER)
ROWS, INFORMATIVE, NOISE, SELECT = 1000, 10, 100, 20
# how far apart the class means are: the weakest feature's, and the strongest's; all that were tried, and those used
SHIFTS = {"0.6 to 1.2": (0.6, 1.2), "0.4 to 0.8": (0.4, 0.8), "0.5 for all": (0.5, 0.5)}
USED = "0.6 to 1.2"
BLUR = 0.25  # the standard deviation of what is added to a copy: it correlates at 0.97 with the original
REPEATS = (1, 2, 5, 10, 20)
SEEDS = (0, 1, 2, 3, 4)
TRIED_R, TRIED_SEEDS = 10, (100, 101, 102)

CELLS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "reproduction.md"

Array = NDArray[Any]


def planted(r: int, seed: int, shifts: tuple[float, float] = SHIFTS[USED]) -> tuple[Array, Array, Array]:
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
    """BELIEF with some settings, and the defaults otherwise."""
    return lambda X, y, seed: belief.select(X, y, SELECT, random_state=seed, **settings).selected


def mrmr(X: Array, y: Array, seed: int) -> Array:
    """mRMR, by difference, in ten bins of equal frequency."""
    return MRMR(SELECT).fit(X, y).selected_


METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "BELIEF": with_belief(**PAPER | {"redundancy": None}),
    "BELIEF + mCR, θ = mean": with_belief(**PAPER),
    "BELIEF + mCR, θ = 0.3": with_belief(**PAPER | {"theta": 0.3}),
    "the defaults": with_belief(),
    "mRMR": mrmr,
}


def distinct(method: str, r: int, seed: int, shifts: str = USED) -> int:
    """How many different informative features a method has among its first 20."""
    X, y, origin = planted(r, seed, SHIFTS[shifts])
    found = origin[METHODS[method](X, y, seed)]
    return len(set(found[found >= 0].tolist()))


def compute() -> Answers:
    """All answers; only those that are missing are computed."""
    kept = Answers(CELLS, configuration())
    for cell in (*grid(), *tries()):
        kept.get(key_of(*cell), partial(distinct, *cell))
    return kept


def configuration() -> dict[str, Any]:
    """All that the answers depend on."""
    return {"rows": ROWS, "noise": NOISE, "select": SELECT, "shifts": SHIFTS, "blur": BLUR}


Cell = tuple[str, int, int, str]  # method, r, seed, shifts


def grid() -> list[Cell]:
    """Every method, r and seed."""
    return [(method, r, seed, USED) for method in METHODS for r in REPEATS for seed in SEEDS]


def tries() -> list[Cell]:
    """Every method with all shifts that were tried, and other seeds."""
    return [(method, TRIED_R, seed, shifts) for method in METHODS for shifts in SHIFTS for seed in TRIED_SEEDS]


def key_of(method: str, r: int, seed: int, shifts: str = USED) -> str:
    """The name of an answer in redundancy.jsonl."""
    return f"{method} | shifts {shifts} | r={r} | seed={seed}"


def markdown(kept: Answers) -> str:
    """The table by r: mean over the seeds, and (minimum to maximum)."""
    lines = [[method, *(summary(kept, method, r, SEEDS) for r in REPEATS)] for method in METHODS]
    return f"{table(['method', *(f'r = {r}' for r in REPEATS)], lines)}\n\n{kept.origin}"


def markdown_of_tries(kept: Answers) -> str:
    """The table by shifts, likewise."""
    head = [f"method, r = {TRIED_R}", *(f"shifts {name}" for name in SHIFTS)]
    lines = [[method, *(summary(kept, method, TRIED_R, TRIED_SEEDS, x) for x in SHIFTS)] for method in METHODS]
    return f"With other shifts: {as_data('shifts tried before', table(head, lines))}."


def summary(kept: Answers, method: str, r: int, seeds: tuple[int, ...], shifts: str = USED) -> str:
    """The mean, and (minimum to maximum)."""
    found = [kept.answers[key_of(method, r, seed, shifts)] for seed in seeds]
    return f"{np.mean(found):.1f} ({min(found)}–{max(found)})"


def main(words: list[str]) -> None:
    """Compute what is missing, and write the page."""
    if words:
        raise SystemExit(__doc__)
    kept = compute()
    for mark, text in (("redundancy", markdown(kept)), ("tries", markdown_of_tries(kept))):
        print(text, end="\n\n")
        publish(PAGE, mark, text)


if __name__ == "__main__":
    main(sys.argv[1:])
