"""Count how many different informative features are selected from tables with many noisy copies.

    python experiments/redundancy.py

Each table has ten informative features, r - 1 noisy copies of each, and 100 columns of noise. Each method selects 20
columns. A feature and its copies count as one. A second comparison, with other seeds and r = 10, shows the effect of
the shifts between the class means: three sets of shifts were tried, and one of them was chosen for the experiment.

Each result is saved in redundancy.jsonl as soon as it is computed, so an interrupted run continues where it stopped.
The script prints the tables and writes them into docs/reproduction.md.
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
# differences between the class means of the weakest and of the strongest feature: all that were tried, and the one used
SHIFTS = {"0.6 to 1.2": (0.6, 1.2), "0.4 to 0.8": (0.4, 0.8), "0.5 for all": (0.5, 0.5)}
USED = "0.6 to 1.2"
BLUR = 0.25  # standard deviation of the noise in a copy; its correlation with the original is 0.97
REPEATS = (1, 2, 5, 10, 20)
SEEDS = (0, 1, 2, 3, 4)
TRIED_R, TRIED_SEEDS = 10, (100, 101, 102)

CELLS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "reproduction.md"

Array = NDArray[Any]


def planted(r: int, seed: int, shifts: tuple[float, float] = SHIFTS[USED]) -> tuple[Array, Array, Array]:
    """Make a table with redundant columns.

    Parameters
    ----------
    r : int
        The number of columns of each informative feature: the feature itself and r - 1 noisy copies.
    seed : int
        The random seed.
    shifts : pair of float
        The difference between the class means of the weakest and of the strongest feature.

    Returns
    -------
    X : array of shape (ROWS, 10 * r + 100)
        The table, with its columns in random order.
    y : array of shape (ROWS,)
        The class of each row, 0 or 1; each class has half of the rows.
    origin : array of shape (10 * r + 100,)
        The informative feature that each column is or copies, from 0 to 9; -1 for noise.
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
    """Return a function that selects features by BELIEF; settings that are not passed have their defaults."""
    return lambda X, y, seed: belief.select(X, y, SELECT, random_state=seed, **settings).selected


def mrmr(X: Array, y: Array, seed: int) -> Array:
    """Select features by mRMR in its difference form, with ten bins of equal frequency."""
    return MRMR(SELECT).fit(X, y).selected_


METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "BELIEF": with_belief(**PAPER | {"redundancy": None}),
    "BELIEF + mCR, θ = mean": with_belief(**PAPER),
    "BELIEF + mCR, θ = 0.3": with_belief(**PAPER | {"theta": 0.3}),
    "the defaults": with_belief(),
    "mRMR": mrmr,
}


def distinct(method: str, r: int, seed: int, shifts: str = USED) -> int:
    """Return the number of different informative features among the 20 columns that a method selects."""
    X, y, origin = planted(r, seed, SHIFTS[shifts])
    found = origin[METHODS[method](X, y, seed)]
    return len(set(found[found >= 0].tolist()))


def compute() -> Answers:
    """Compute the missing results, and return all of them."""
    kept = Answers(CELLS, configuration())
    for cell in (*grid(), *tries()):
        kept.get(key_of(*cell), partial(distinct, *cell))
    return kept


def configuration() -> dict[str, Any]:
    """Return the constants on which the results depend; if they change, all results are computed again."""
    return {"rows": ROWS, "noise": NOISE, "select": SELECT, "shifts": SHIFTS, "blur": BLUR}


Cell = tuple[str, int, int, str]  # one combination of method, r, seed and shifts


def grid() -> list[Cell]:
    """Return all combinations of method, r and seed for the main table."""
    return [(method, r, seed, USED) for method in METHODS for r in REPEATS for seed in SEEDS]


def tries() -> list[Cell]:
    """Return all combinations of method, shifts and seed for the comparison of shifts; its seeds are different."""
    return [(method, TRIED_R, seed, shifts) for method in METHODS for shifts in SHIFTS for seed in TRIED_SEEDS]


def key_of(method: str, r: int, seed: int, shifts: str = USED) -> str:
    """Return the key of a result in redundancy.jsonl."""
    return f"{method} | shifts {shifts} | r={r} | seed={seed}"


def markdown(kept: Answers) -> str:
    """Return the table of methods by r, and the commits that computed the results."""
    lines = [[method, *(summary(kept, method, r, SEEDS) for r in REPEATS)] for method in METHODS]
    return f"{table(['method', *(f'r = {r}' for r in REPEATS)], lines)}\n\n{kept.origin}"


def markdown_of_tries(kept: Answers) -> str:
    """Return the table of methods by shifts."""
    head = [f"method, r = {TRIED_R}", *(f"shifts {name}" for name in SHIFTS)]
    lines = [[method, *(summary(kept, method, TRIED_R, TRIED_SEEDS, x) for x in SHIFTS)] for method in METHODS]
    return f"With other shifts: {as_data('shifts tried before', table(head, lines))}."


def summary(kept: Answers, method: str, r: int, seeds: tuple[int, ...], shifts: str = USED) -> str:
    """Return the mean over the seeds, followed by (minimum–maximum)."""
    found = [kept.answers[key_of(method, r, seed, shifts)] for seed in seeds]
    return f"{np.mean(found):.1f} ({min(found)}–{max(found)})"


def main(words: list[str]) -> None:
    """Compute the missing results, print the tables, and write them into the page."""
    if words:
        raise SystemExit(__doc__)
    kept = compute()
    for mark, text in (("redundancy", markdown(kept)), ("tries", markdown_of_tries(kept))):
        print(text, end="\n\n")
        publish(PAGE, mark, text)


if __name__ == "__main__":
    main(sys.argv[1:])
