"""Synthetic tables for the experiments: the relevant features are known, and each seed gives a different table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Made(NamedTuple):
    """A synthetic table: X, the classes, a mask of the nominal features, and the indices of the relevant features."""

    X: Array
    y: Array
    discrete: Array
    relevant: Array


def made(X: Array, y: Array, relevant: Array | range, discrete: Array | None = None) -> Made:
    """Return a table; no feature is nominal unless `discrete` is passed."""
    return Made(X, y, np.zeros(X.shape[1], bool) if discrete is None else discrete, np.asarray(relevant, int))


def classes(rng: np.random.Generator, n_rows: int, shares: tuple[float, ...]) -> Array:
    """Return the classes of n_rows rows, shuffled; `shares` are the shares of the classes."""
    counts = np.round(np.array(shares) * n_rows).astype(int)
    counts[0] += n_rows - counts.sum()
    return rng.permutation(np.repeat(np.arange(len(counts)), counts))


def xor_pair(rng: np.random.Generator, X: Array, y: Array) -> None:
    """Set the signs of the first two columns so that they differ in class 1 and are equal in class 0.

    Neither column is informative without the other.
    """
    signs = rng.choice([-1.0, 1.0], len(y))
    X[:, 0] = signs * np.abs(X[:, 0])
    X[:, 1] = np.where(y == 1, -signs, signs) * np.abs(X[:, 1])


# --- a rare class ----------------------------------------------------------------------------------------------------

RARE = (0.5, 0.1, 0.03)  # the share of the rare class


def shifts(rng: np.random.Generator, rare: float) -> Made:
    """Return 5,000 rows of 50 columns; the class means of the first ten differ by 0.4 to 1."""
    return shifted(rng, rare, 5000, 50, (0.4, 1.0))


def wide_shifts(rng: np.random.Generator, rare: float) -> Made:
    """Return 1,000 rows of 1,000 columns; the class means of the first ten differ by 0.8 to 1.6."""
    return shifted(rng, rare, 1000, 1000, (0.8, 1.6))


def shifted(rng: np.random.Generator, rare: float, n_rows: int, n_columns: int, by: tuple[float, float]) -> Made:
    """Return a table in which the class means of the first ten columns differ by `by[0]` to `by[1]`."""
    y = classes(rng, n_rows, (1 - rare, rare))
    X = rng.standard_normal((n_rows, n_columns))
    X[:, :10] += np.linspace(*by, 10) * y[:, None]
    return made(X, y, range(10))


def xor(rng: np.random.Generator, rare: float) -> Made:
    """Return a table of 30 columns; the first two are informative only together (see `xor_pair`)."""
    y = classes(rng, 5000, (1 - rare, rare))
    X = rng.standard_normal((5000, 30))
    xor_pair(rng, X, y)
    return made(X, y, range(2))


def xor_and_shifts(rng: np.random.Generator, rare: float) -> Made:
    """Return a table of 50 columns: an interacting pair as in `xor`, five columns with shifted means, and noise."""
    y = classes(rng, 5000, (1 - rare, rare))
    X = rng.standard_normal((5000, 50))
    xor_pair(rng, X, y)
    X[:, 2:7] += np.linspace(0.5, 1.0, 5) * y[:, None]
    return made(X, y, range(7))


def marks(rng: np.random.Generator, rare: float) -> Made:
    """Return 40 binary columns, of which ten are relevant, and ten columns of normal noise.

    Each binary column is 1 in 2 to 10 % of the rows. In the rare class, this share is 15 percentage points
    larger for the first ten columns.
    """
    y = classes(rng, 5000, (1 - rare, rare))
    rate = np.tile(rng.uniform(0.02, 0.1, 40), (5000, 1))
    rate[:, :10] += 0.15 * y[:, None]
    return made(np.hstack([rng.random((5000, 40)) < rate, rng.standard_normal((5000, 10))]), y, range(10))


IMBALANCED: dict[str, Callable[[np.random.Generator, float], Made]] = {
    "shifts": shifts, "wide shifts": wide_shifts, "XOR": xor, "XOR and shifts": xor_and_shifts, "rare marks": marks,
}  # fmt: skip


def imbalanced(kind: str, rare: float, seed: int) -> Made:
    """Return a table of this kind, in which the rare class has the share `rare` of the rows."""
    return IMBALANCED[kind](np.random.default_rng([seed, round(1000 * rare)]), rare)


# --- noise -----------------------------------------------------------------------------------------------------------

NOISE = ("balanced", "5 % rare", "five unequal", "wide", "correlated", "nominal", "missing", "beside eight strong")
_SHARES = {"5 % rare": (0.95, 0.05), "five unequal": (0.4, 0.3, 0.15, 0.1, 0.05)}


def noise(kind: str, seed: int) -> Made:
    """Return a table of noise, with 1,000 rows and 100 columns, or 300 rows and 2,000 columns if `kind` is "wide".

    No column is relevant, except for the first eight if `kind` is "beside eight strong".
    """
    rng = np.random.default_rng([seed, NOISE.index(kind)])
    n_rows, n_columns = (300, 2000) if kind == "wide" else (1000, 100)
    X = rng.standard_normal((n_rows, n_columns))
    y = classes(rng, n_rows, _SHARES.get(kind, (0.5, 0.5)))
    if kind == "correlated":  # groups of ten columns with pairwise correlations of 0.7
        X = np.sqrt(0.7) * np.repeat(rng.standard_normal((n_rows, n_columns // 10)), 10, axis=1) + np.sqrt(0.3) * X
    elif kind == "nominal":
        X = np.stack([letters(rng, n_rows, int(n)) for n in rng.integers(2, 8, n_columns)], axis=1)
    elif kind == "missing":
        X[rng.random(X.shape) < rng.uniform(0, 0.4, n_columns)] = np.nan
    elif kind == "beside eight strong":
        X[:, :8] += 1.5 * y[:, None]
    strong = range(8) if kind == "beside eight strong" else range(0)
    return made(X, y, strong, np.full(n_columns, kind == "nominal"))


def letters(rng: np.random.Generator, n_rows: int, n: int) -> Array:
    """Return a random nominal column with `n_rows` rows; its values are codes from 0 to n - 1, with unequal shares."""
    return rng.choice(n, n_rows, p=rng.dirichlet(np.full(n, 2.0))).astype(float)


# --- large -----------------------------------------------------------------------------------------------------------


def graded(n_rows: int, n_columns: int, seed: int, by: tuple[float, float] = (0.3, 1.0)) -> Made:
    """Return a table in which the class means of the first 20 columns differ.

    The difference changes in equal steps, from `by[0]` for the first column to `by[1]` for the last.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    X[:, :20] += np.linspace(*by, 20, dtype=np.float32) * y[:, None]
    return made(X, y, range(20))


def clusters(n_rows: int, n_columns: int, seed: int) -> Made:
    """Return a table of scikit-learn's `make_classification`.

    In the first 15 columns, the classes are clusters around the corners of a hypercube. The next five columns are
    linear combinations of these; they count as relevant, too.
    """
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n_rows, n_columns, n_informative=15, n_redundant=5, shuffle=False, random_state=seed
    )  # fmt: skip
    return made(X.astype(np.float32), y, range(20))


def repeated(n_rows: int, n_columns: int, seed: int) -> Made:
    """Return a table of ten columns with shifted means, two noisy copies of each (correlation 0.97), and noise."""
    found = graded(n_rows, n_columns, seed, (1.2, 0.4))
    rng = np.random.default_rng([seed, 1])
    for j in range(10):
        found.X[:, [10 + j, 20 + j]] = found.X[:, [j]] + 0.25 * rng.standard_normal((n_rows, 2), dtype=np.float32)
    return found._replace(relevant=np.arange(30))


def mixed(n_rows: int, n_columns: int, seed: int) -> Made:
    """Return a table in which the class depends on the XOR of the first two columns, the next three, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    both = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    total = 2 * both + X[:, 2] + 0.7 * X[:, 3] + 0.5 * X[:, 4] + 0.5 * rng.standard_normal(n_rows)
    return made(X, (total > 1).astype(int), range(5))


LARGE: dict[str, Callable[[int, int, int], Made]] = {
    "graded shifts": graded, "clusters": clusters, "shifts with copies": repeated, "XOR and shifts": mixed,
}  # fmt: skip
