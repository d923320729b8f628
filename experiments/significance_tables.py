"""Make synthetic tables with known relevant columns, for experiments/significance.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from made import Array, letters

Rng = np.random.Generator
ROWS = 1000


@dataclass(frozen=True)
class Table:
    """A table, its target, the indices of its relevant columns, and the mask of its discrete columns."""

    X: Array
    y: Array
    relevant: Array
    discrete: Array
    is_numeric: bool = False


Maker = Callable[[Rng], Table]


def make(name: str, maker: Maker, seed: int) -> Table:
    """Make a table; its random numbers depend on the seed and the name."""
    return maker(np.random.default_rng([seed, crc32(name.encode())]))


def as_table(X: Array, y: Array, relevant: Iterable[int] = (), **options: Any) -> Table:
    """Return a table; by default, all its columns are numeric and irrelevant, and its target has classes."""
    discrete = options.pop("discrete", np.zeros(X.shape[1], bool))
    return Table(X, y, np.fromiter(relevant, int), discrete, **options)


def two_classes(rng: Rng, rows: int = ROWS) -> Array:
    """Return two classes of the same size, in random order."""
    return rng.permutation(np.arange(rows) % 2)


def rare_class(rng: Rng, rows: int, n_rare: int) -> Array:
    """Return two classes with `n_rare` rows in the second one, in random order."""
    return rng.permutation((np.arange(rows) < n_rare).astype(int))


def mislabelled(rng: Rng, y: Array, share: float) -> Array:
    """Return classes 0 and 1 after swapping each label with probability `share`."""
    return np.where(rng.random(len(y)) < share, 1 - y, y)


# --- calibration -----------------------------------------------------------------------------------------------------


def shifts(rng: Rng, rows: int, columns: int, n_shifted: int, by: float, y: Array | None = None) -> Table:
    """Return normal columns; the means of the first ones are larger in the second class."""
    y = two_classes(rng, rows) if y is None else y
    X = rng.normal(size=(rows, columns))
    X[:, :n_shifted] += by * y[:, None]
    return as_table(X, y, range(n_shifted))


def blocks(rng: Rng, n_blocks: int = 10, size: int = 10, share: float = 0.95) -> Array:
    """Return blocks of columns; `share` is the correlation of two columns of the same block."""
    common = np.repeat(rng.normal(size=(ROWS, n_blocks)), size, axis=1)
    return np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=common.shape)


def correlated_and_shifts(rng: Rng) -> Table:
    """Return five shifted columns, fifteen of noise and a hundred in correlated blocks."""
    found = shifts(rng, ROWS, 20, 5, 0.6)
    return as_table(np.hstack([found.X, blocks(rng)]), found.y, range(5))


def genotypes(rng: Rng, columns: int = 60, n_relevant: int = 5, share: float = 0.42) -> Table:
    """Return allele counts with frequency 0.3; in the second class, the first columns have the frequency `share`."""
    y, X = two_classes(rng), rng.binomial(2, 0.3, size=(ROWS, columns)).astype(float)
    X[:, :n_relevant] = rng.binomial(2, np.where(y[:, None] == 1, share, 0.3), size=(ROWS, n_relevant))
    return as_table(X, y, range(n_relevant))


def binary_and_strong(rng: Rng, columns: int) -> Table:
    """Return binary columns; the first one agrees with the class in 90 % of the rows."""
    y, X = two_classes(rng), rng.integers(0, 2, size=(ROWS, columns)).astype(float)
    X[:, 0] = mislabelled(rng, y, 0.1)
    return as_table(X, y, [0])


def parity(rng: Rng, columns: int, order: int, wrong: float = 0.0) -> Table:
    """Return binary columns; the class is the parity of the first ones, with a share of wrong labels."""
    X = rng.integers(0, 2, size=(ROWS, columns)).astype(float)
    y = X[:, :order].sum(axis=1).astype(int) % 2
    return as_table(X, mislabelled(rng, y, wrong), range(order))


def product(rng: Rng, columns: int, rows: int = ROWS, wrong: float = 0.0) -> Table:
    """Return normal columns; the class is the sign of the product of the first two, with a share of wrong labels."""
    X = rng.normal(size=(rows, columns))
    return as_table(X, mislabelled(rng, (X[:, 0] * X[:, 1] > 0).astype(int), wrong), range(2))


def four_classes(rng: Rng, by: float = 1.0, n_relevant: int = 4) -> Table:
    """Return four classes and normal columns; each of the first columns is shifted in one class."""
    y = rng.permutation(np.arange(ROWS) % 4)
    X = rng.normal(size=(ROWS, 60)) + by * (y[:, None] == np.arange(60) % 4) * (np.arange(60) < n_relevant)
    return as_table(X, y, range(n_relevant))


def cauchy(rng: Rng) -> Table:
    """Return Cauchy columns; the first three are shifted by 2 in the second class."""
    y, X = two_classes(rng), rng.standard_cauchy(size=(ROWS, 50))
    X[:, :3] += 2.0 * y[:, None]
    return as_table(X, y, range(3))


def lognormal(rng: Rng) -> Table:
    """Return lognormal noise."""
    return as_table(np.exp(2.0 * rng.normal(size=(ROWS, 50))), two_classes(rng))


def counts(rng: Rng, rate: float = 0.15, n_relevant: int = 5) -> Table:
    """Return Poisson counts; their rate is 0.05, but `rate` in the first `n_relevant` columns of the second class."""
    y, X = two_classes(rng), rng.poisson(0.05, size=(ROWS, 100)).astype(float)
    X[:, :n_relevant] = rng.poisson(np.where(y[:, None] == 1, rate, 0.05), size=(ROWS, n_relevant))
    return as_table(X, y, range(n_relevant))


def absolute_values(rng: Rng) -> Table:
    """Return a relevant column x, ten noisy copies of |x|, which does not depend on the class, and noise."""
    y, X = two_classes(rng), rng.normal(size=(ROWS, 41))
    X[:, 0] += 1.2 * (2 * y - 1)
    X[:, 1:11] = np.abs(X[:, :1]) + 0.5 * X[:, 1:11]
    return as_table(X, y, [0])


def polynomials(rng: Rng) -> Table:
    """Return eight columns and all their squares and products; only the first two columns influence the class."""
    X = rng.normal(size=(ROWS, 8))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=ROWS) > 0).astype(int)
    i, j = np.triu_indices(8)
    return as_table(np.hstack([X, X[:, i] * X[:, j]]), y, range(2))


def product_of_known(rng: Rng) -> Table:
    """Return normal columns; the class depends on the first one and on its product with the second."""
    X = rng.normal(size=(ROWS, 30))
    y = X[:, 0] + 1.5 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=ROWS) > 0
    return as_table(X, y.astype(int), range(2))


def rare_rows(rng: Rng, lognormal: bool) -> Table:
    """Return lognormal noise, or 0/1 columns with 1 % ones; the second class has 10 rows."""
    X = np.exp(rng.normal(size=(ROWS, 200))) if lognormal else (rng.random((ROWS, 200)) < 0.01).astype(float)
    return as_table(X, rare_class(rng, ROWS, 10))


def noise(rng: Rng, rows: int, columns: int) -> Table:
    """Return normal noise and two classes."""
    return as_table(rng.normal(size=(rows, columns)), two_classes(rng, rows))


def with_constants(rng: Rng) -> Table:
    """Return 20 columns of noise and 180 constant ones."""
    return as_table(np.c_[rng.normal(size=(ROWS, 20)), np.zeros((ROWS, 180))], two_classes(rng))


def clusters(rng: Rng) -> Table:
    """Return noise whose rows form six clusters, in random order."""
    centres = rng.normal(size=(6, 40))[rng.integers(0, 6, ROWS)]
    return as_table(2.0 * centres + rng.normal(size=(ROWS, 40)), two_classes(rng))


def nominal(rng: Rng) -> Table:
    """Return nominal noise with two to seven levels of unequal frequency."""
    X = np.stack([letters(rng, ROWS, int(n)) for n in rng.integers(2, 8, 60)], axis=1)
    return as_table(X, two_classes(rng), discrete=np.ones(60, bool))


def nominal_and_strong(rng: Rng) -> Table:
    """Return nominal noise and one relevant nominal column."""
    found = nominal(rng)
    found.X[:, 0] = np.where(rng.random(ROWS) < 0.5, found.y, rng.integers(0, 4, ROWS))
    return as_table(found.X, found.y, [0], discrete=found.discrete)


def ordinal(rng: Rng) -> Table:
    """Return columns with values from 1 to 5; the first three are relevant."""
    found = shifts(rng, ROWS, 60, 3, 0.8)
    return as_table(np.clip(np.round(3 + found.X), 1, 5), found.y, range(3))


def copied_columns(rng: Rng) -> Table:
    """Return noise; ten columns have four noisy copies each."""
    X = rng.normal(size=(ROWS, 60))
    copies = np.tile(X[:, :10], 4) + 0.2 * rng.normal(size=(ROWS, 40))
    return as_table(np.hstack([X, copies]), two_classes(rng))


def bootstrap(rng: Rng) -> Table:
    """Return a bootstrap sample of the rows of a table of noise."""
    found, rows = noise(rng, ROWS, 60), rng.integers(0, ROWS, ROWS)
    return as_table(found.X[rows], found.y[rows])


def missing(rng: Rng, by_class: bool) -> Table:
    """Return normal columns with missing values; three columns are relevant.

    25 % of the values are missing, or, with `by_class`, 10 % in the first class and 40 % in the second.
    """
    found = shifts(rng, ROWS, 60, 3, 0.6)
    share = np.where(found.y[:, None] == 1, 0.4, 0.1) if by_class else 0.25
    found.X[rng.random(found.X.shape) < share] = np.nan
    return found


def mixed(rng: Rng) -> Table:
    """Return columns of five kinds; the first three are normal columns with large shifts."""
    y = two_classes(rng)
    kinds = [
        rng.normal(size=(ROWS, 20)) + 1.5 * y[:, None] * (np.arange(20) < 3),
        rng.integers(0, 2, size=(ROWS, 20)),
        rng.random((ROWS, 20)) < 0.02,
        rng.standard_cauchy(size=(ROWS, 20)),
        blocks(rng, 4, 5),
    ]
    return as_table(np.hstack(kinds), y, range(3))


def numeric_linear(rng: Rng, rows: int, columns: int, n: int, slope: float, df: float = 2.0) -> Table:
    """Return a numeric target that is linear in the first columns, with errors from Student's t distribution."""
    X = rng.normal(size=(rows, columns))
    return as_table(X, slope * X[:, :n].sum(axis=1) + rng.standard_t(df, size=rows), range(n), is_numeric=True)


def numeric_product(rng: Rng) -> Table:
    """Return a numeric target: the product of two columns plus a small error."""
    X = rng.normal(size=(ROWS, 30))
    return as_table(X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=ROWS), range(2), is_numeric=True)


def numeric_binary(rng: Rng) -> Table:
    """Return a numeric target that depends on one of nine binary columns."""
    X = rng.integers(0, 2, size=(ROWS, 9)).astype(float)
    return as_table(X, 2 * X[:, 0] + 0.2 * rng.normal(size=ROWS), [0], is_numeric=True)


def numeric_noise(rng: Rng) -> Table:
    """Return noise and a lognormal target."""
    return as_table(rng.normal(size=(ROWS, 60)), np.exp(2 * rng.normal(size=ROWS)), is_numeric=True)


CALIBRATION: dict[str, Maker] = {
    "ten shifts among 100": lambda rng: shifts(rng, ROWS, 100, 10, 0.35),
    "correlated blocks, 5 shifts": correlated_and_shifts,
    "genotypes, 5 of 60": genotypes,
    "9 binary, one strong": lambda rng: binary_and_strong(rng, 9),
    "12 binary, one strong": lambda rng: binary_and_strong(rng, 12),
    "2 normal, one strong": lambda rng: shifts(rng, ROWS, 2, 1, 2.0),
    "4 normal, one strong": lambda rng: shifts(rng, ROWS, 4, 1, 2.0),
    "12 normal, one strong": lambda rng: shifts(rng, ROWS, 12, 1, 2.0),
    "30 normal, 3 strong": lambda rng: shifts(rng, ROWS, 30, 3, 1.5),
    "XOR among 20 binary": lambda rng: parity(rng, 20, 2),
    "product of two among 100": lambda rng: product(rng, 100),
    "product of a known column": product_of_known,
    "5 % in the rare class": lambda rng: shifts(rng, ROWS, 100, 5, 1.0, rare_class(rng, ROWS, 50)),
    "four classes": four_classes,
    "Cauchy": cauchy,
    "lognormal, s = 2": lognormal,
    "counts, 95 % zero": counts,
    "ten abs(x) and a shifted x": absolute_values,
    "polynomial features": polynomials,
    "10 rare rows, lognormal": lambda rng: rare_rows(rng, True),
    "10 rare rows, marks of 1 %": lambda rng: rare_rows(rng, False),
    "20 normal, 180 constant": with_constants,
    "thirty weak shifts among 200": lambda rng: shifts(rng, ROWS, 200, 30, 0.2),
    "12 rows x 5,000 of noise": lambda rng: noise(rng, 12, 5000),
    "20 rows x 5,000 of noise": lambda rng: noise(rng, 20, 5000),
    "30 rows x 5,000 of noise": lambda rng: noise(rng, 30, 5000),
    "60 rows x 5,000 of noise": lambda rng: noise(rng, 60, 5000),
    "1,000 rows x 200 of noise": lambda rng: noise(rng, ROWS, 200),
    "correlated blocks of noise": lambda rng: as_table(blocks(rng), two_classes(rng)),
    "noise in six clusters of rows": clusters,
    "nominal noise": nominal,
    "nominal, one strong": nominal_and_strong,
    "ordinal, 3 of 60": ordinal,
    "noise and copies of columns": copied_columns,
    "bootstrap sample of noise": bootstrap,
    "missing at random, 3 of 60": lambda rng: missing(rng, False),
    "missing by class, 3 of 60": lambda rng: missing(rng, True),
    "five kinds of columns, 3 strong": mixed,
    "numeric: five linear, t2 errors": lambda rng: numeric_linear(rng, ROWS, 60, 5, 0.3),
    "numeric: product of two": numeric_product,
    "numeric: 9 binary, one strong": numeric_binary,
    "numeric: lognormal target, noise": numeric_noise,
}

MORE_SEEDS = {  # with 20 seeds, there were too few irrelevant columns, or a limit was exceeded, perhaps by chance
    **dict.fromkeys(("9 binary, one strong", "12 binary, one strong", "numeric: 9 binary, one strong"), 100),
    **dict.fromkeys(("4 normal, one strong", "12 normal, one strong", "noise and copies of columns"), 100),
    "2 normal, one strong": 1000,
}

# --- power -----------------------------------------------------------------------------------------------------------


def marks(rng: Rng) -> Table:
    """Return 100 columns of 0 and 1 with 10 % ones; in the second class, the first ten have 16 %."""
    y = two_classes(rng)
    rate = np.where((y[:, None] == 1) & (np.arange(100) < 10), 0.16, 0.1)
    return as_table((rng.random((ROWS, 100)) < rate).astype(float), y, range(10))


def skewed(rng: Rng) -> Table:
    """Return lognormal columns; the logarithms of the first ten are shifted in the second class."""
    found = shifts(rng, ROWS, 60, 10, 0.3)
    return as_table(np.exp(0.7 * found.X), found.y, range(10))


def numeric_counts(rng: Rng) -> Table:
    """Return a numeric target that is linear in ten of sixty counts."""
    X = rng.poisson(1.0, size=(ROWS, 60)).astype(float)
    return as_table(X, 0.12 * X[:, :10].sum(axis=1) + rng.normal(size=ROWS), range(10), is_numeric=True)


POWER: dict[str, Maker] = {
    "500 x 60, 10 shifts of 0.3": lambda rng: shifts(rng, 500, 60, 10, 0.3),
    "1,000 x 200, 30 shifts of 0.2": CALIBRATION["thirty weak shifts among 200"],
    "2,000 x 60, 10 shifts of 0.15": lambda rng: shifts(rng, 2000, 60, 10, 0.15),
    "5,000 x 60, 10 shifts of 0.1": lambda rng: shifts(rng, 5000, 60, 10, 0.1),
    "20,000 x 30, 10 shifts of 0.05": lambda rng: shifts(rng, 20_000, 30, 10, 0.05),
    "genotypes, 10 of 100": lambda rng: genotypes(rng, 100, 10, 0.37),
    "counts, 10 of 100": lambda rng: counts(rng, 0.1, 10),
    "marks on 10 %, 10 of 100": marks,
    "skewed, 10 of 60": skewed,
    "5 % in the rare class, 10 of 60": lambda rng: shifts(rng, 2000, 60, 10, 0.35, rare_class(rng, 2000, 100)),
    "four classes, 10 of 60": lambda rng: four_classes(rng, 0.3, 10),
    "numeric: 1,000 x 60, t2 errors": lambda rng: numeric_linear(rng, ROWS, 60, 10, 0.15),
    "numeric: 20,000 x 30, t5 errors": lambda rng: numeric_linear(rng, 20_000, 30, 10, 0.03, 5.0),
    "numeric: counts, 10 of 60": numeric_counts,
}

# --- interactions ----------------------------------------------------------------------------------------------------

INTERACTIONS: dict[str, Maker] = {
    "product of two among 500": lambda rng: product(rng, 500),
    "parity of three among 200": lambda rng: parity(rng, 200, 3),
}


def two_products(rng: Rng) -> Table:
    """Return normal columns; the class is the sign of the sum of two products of columns, with some wrong labels."""
    X = rng.normal(size=(ROWS, 200))
    y = (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0).astype(int)
    return as_table(X, mislabelled(rng, y, WRONG), range(4))


def checkerboard(rng: Rng) -> Table:
    """Return uniform columns; the class is the colour of a 3 x 3 checkerboard at the point given by the first two."""
    X = rng.random((ROWS, 600))
    y = np.floor(3 * X[:, :2]).sum(axis=1).astype(int) % 2
    return as_table(X, mislabelled(rng, y, WRONG), range(2))


def weak_shifts(rng: Rng) -> Table:
    """Return 200 normal columns with ten shifts of 0.35, and classes with some wrong labels."""
    found = shifts(rng, ROWS, 200, 10, 0.35)
    return as_table(found.X, mislabelled(rng, found.y, WRONG), range(10))


def shifts_and_product(rng: Rng, columns: int) -> Table:
    """Return five columns with shifts of 0.4, two columns whose product has the sign of the class, and noise.

    Some labels are wrong.
    """
    found = shifts(rng, ROWS, columns, 5, 0.4)
    found.X[:, 6] = np.abs(found.X[:, 6]) * np.sign(found.X[:, 5]) * (2 * found.y - 1)
    return as_table(found.X, mislabelled(rng, found.y, WRONG), range(7))


WRONG = 0.05  # the expected share of wrong labels
ASKED: dict[str, tuple[Maker, float]] = {  # makers, and targets for the share of relevant columns among the selected
    "product of two among 1,000": (lambda rng: product(rng, 1000, wrong=WRONG), 0.97),
    "two products among 200": (two_products, 0.97),
    "checkerboard of 3 x 3 among 600": (checkerboard, 0.72),
    "parity of three among 200": (lambda rng: parity(rng, 200, 3, WRONG), 0.97),
    "ten weak shifts among 200": (weak_shifts, 0.97),
    "five shifts and a product among 200": (lambda rng: shifts_and_product(rng, 200), 0.95),
    "five shifts and a product among 600": (lambda rng: shifts_and_product(rng, 600), 0.90),
    "product of two among 4,000, 2,000 rows": (lambda rng: product(rng, 4000, 2000, WRONG), 0.90),
}

# --- the automatic number --------------------------------------------------------------------------------------------


def linear(rng: Rng, error: float) -> Table:
    """Return normal columns; the class is whether the sum of the first eight and a normal error is positive."""
    X = rng.normal(size=(500, 100))
    y = X[:, :8].sum(axis=1) + error * rng.normal(size=500) > 0
    return as_table(X, y.astype(int), range(8))


def logistic(rng: Rng) -> Table:
    """Return normal columns; the class follows a logistic model with five coefficients of 1 and 95 of 0."""
    X = rng.normal(size=(500, 100))
    y = rng.random(500) < 1 / (1 + np.exp(-X[:, :5].sum(axis=1)))
    return as_table(X, y.astype(int), range(5))


AUTO: dict[str, Maker] = {
    "linear, 8 of 100": lambda rng: linear(rng, 1.0),
    "linear, half of the variance is error": lambda rng: linear(rng, np.sqrt(8.0)),
    "sparse logistic, 5 of 100": logistic,
}
BORUTA: dict[str, Maker] = {**AUTO, "product of two among 100": CALIBRATION["product of two among 100"]}
