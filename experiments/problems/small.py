"""Generate small published problems whose relevant features are known.

They follow V. Bolón-Canedo, N. Sánchez-Maroño and A. Alonso-Betanzos, *A review of feature selection methods on
synthetic data*, Knowledge and Information Systems 34 (2013). Most have few rows and many features: some are relevant,
some redundant, and the others noise. The relevant features come first. The same seed gives the same data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belief._utils.validation import is_integer, is_real
from belief.method.arrays import Array

_SEGMENTS = (  # top, upper left, upper right, middle, lower left, lower right, bottom; one row for each digit
    (1, 1, 1, 0, 1, 1, 1),
    (0, 0, 1, 0, 0, 1, 0),
    (1, 0, 1, 1, 1, 0, 1),
    (1, 0, 1, 1, 0, 1, 1),
    (0, 1, 1, 1, 0, 1, 0),
    (1, 1, 0, 1, 0, 1, 1),
    (1, 1, 0, 1, 1, 1, 1),
    (1, 0, 1, 0, 0, 1, 0),
    (1, 1, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 0, 1, 1),
)
_SD_MEANS = {  # for each number of groups, the three class means of each group, close to the published files
    2: ((4.5, 1.5, 1.0), (1.0, 3.5, 0.0)),
    4: ((0.5, 4.0, 1.5), (2.5, -1.5, -1.0), (-2.5, 0.5, -2.5), (-1.5, -1.0, 1.5)),
    6: ((-2, 1, 2), (1.5, -1.5, -1.5), (-2.5, 1, -1.5), (1, -1, 1), (-1.5, -1, 1), (1.5, 0, -1.5)),
}
_SD_SPREAD = 2.7  # standard deviation of the signal of a group within a class
_SD_BLUR = 0.1  # standard deviation of the noise that is added to each copy of a signal
_SD_GROUP = 10  # features per group
_MADELON_REACH = 2.0  # half the edge length of the hypercube; nearest neighbours find it as hard as the published data


@dataclass(frozen=True)
class Problem:
    """A problem whose relevant features are known.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        The table, in float64.
    y : array of shape (n_rows,)
        The class of each row, from 0.
    relevant : tuple of tuples of int
        Groups of relevant features; one feature of each group is sufficient.
    redundant : array
        The features that are redundant with a relevant one.
    discrete : array of bool
        True for nominal features.
    name : str
        The name of the problem in the literature.
    """

    X: Array
    y: Array
    relevant: tuple[tuple[int, ...], ...]
    redundant: Array
    discrete: Array
    name: str


def corral100(n_rows: int = 32, seed: int = 0) -> Problem:
    """Generate Corral-100: 99 binary features, and the class (x0 and x1) or (x2 and x3).

    x5 is a trap: it agrees with the class in about three of four rows, but the class does not depend on it.

    Parameters
    ----------
    n_rows : int, default=32
        The number of rows.
    seed : int, default=0
        The random seed.

    Returns
    -------
    Problem
    """
    bits = _bits(n_rows, 99, seed)
    y = (bits[:, 0] & bits[:, 1]) | (bits[:, 2] & bits[:, 3])
    agrees = np.random.default_rng([seed, 5]).random(n_rows) < 0.75
    bits[:, 5] = np.where(agrees, y, 1 - y)
    return _binary("Corral-100", bits, y, make_single_groups(4))


def xor100(n_rows: int = 50, seed: int = 0) -> Problem:
    """Generate XOR-100: 99 binary features, and the class x0 xor x1. Neither is informative without the other.

    The parameters are as in `corral100`, but `n_rows` is 50 by default.
    """
    bits = _bits(n_rows, 99, seed)
    return _binary("XOR-100", bits, bits[:, 0] ^ bits[:, 1], make_single_groups(2))


def parity3plus3(n_rows: int = 64, seed: int = 0) -> Problem:
    """Generate Parity3+3: 12 binary features, and the parity of x0, x1 and x2 as the class.

    x3, x4 and x5 are copies of x0, x1 and x2; the last six are noise. The parameters are as in `corral100`, but
    `n_rows` is 64 by default.
    """
    bits = _bits(n_rows, 12, seed)
    bits[:, 3:6] = bits[:, :3]
    pairs = tuple((j, j + 3) for j in range(3))
    return _binary("Parity3+3", bits, bits[:, :3].sum(axis=1) % 2, pairs)


def sd(n_groups: int = 2, n_rows: int = 75, n_noise: int = 4000, seed: int = 0) -> Problem:
    """Generate SD1, SD2 or SD3: data like gene expression, with three classes, few rows and thousands of features.

    Each group consists of ten noisy copies of one signal. The class means of a signal are different for each group.

    Parameters
    ----------
    n_groups : {2, 4, 6}, default=2
        The number of groups: 2 for SD1, 4 for SD2 and 6 for SD3.
    n_rows : int, default=75
        The number of rows. A third of the rows belongs to each class.
    n_noise : int, default=4000
        The number of N(0, 1) noise features after the groups. In the published data, half of the noise is uniform.
    seed : int, default=0
        The random seed.

    Returns
    -------
    Problem
    """
    if n_groups not in _SD_MEANS:
        raise ValueError(f"n_groups must be 2, 4 or 6; got {n_groups!r}.")
    _check(n_rows=n_rows)
    _check(least=0, n_noise=n_noise, seed=seed)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_rows) % 3)
    signals = np.array(_SD_MEANS[n_groups]).T[y] + _SD_SPREAD * rng.standard_normal((n_rows, n_groups))
    copies = np.repeat(signals, _SD_GROUP, axis=1)
    copies += _SD_BLUR * rng.standard_normal(copies.shape)
    X = np.hstack([copies, rng.standard_normal((n_rows, n_noise))])
    groups = tuple(tuple(range(a, a + _SD_GROUP)) for a in range(0, n_groups * _SD_GROUP, _SD_GROUP))
    return Problem(X, y, groups, list_redundant(groups), np.zeros(X.shape[1], bool), f"SD{n_groups // 2}")


def madelon(n_rows: int = 2000, seed: int = 0) -> Problem:
    """Generate Madelon: 500 features, of which 5 are relevant, and two classes.

    The relevant features are the coordinates of points around the 32 corners of a hypercube; each class has 16 corners.
    The next 15 features are linear combinations of them, and count as redundant. The other 480 are noise. One row in a
    hundred has a random class. The parameters are as in `corral100`, but `n_rows` is 2,000 by default.
    """
    from sklearn.datasets import make_classification

    _check(n_rows=n_rows)
    _check(least=0, seed=seed)
    X, corner = make_classification(  # 32 classes, because with two the class would depend on one coordinate only
        n_rows, 500, n_informative=5, n_redundant=15, n_classes=32, n_clusters_per_class=1, flip_y=0.01,
        class_sep=_MADELON_REACH, shuffle=False, random_state=seed,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(32) % 2)[corner]
    order = rng.permutation(n_rows)  # the rows are sorted by corner
    return Problem(X[order], y[order], make_single_groups(5), np.arange(5, 20), np.zeros(500, bool), "Madelon")


def led(n_irrelevant: int = 17, noise: float = 0.0, n_rows: int = 50, seed: int = 0) -> Problem:
    """Generate LED-25 or LED-100: the seven segments of a digit on a display, with the digit as the class.

    Parameters
    ----------
    n_irrelevant : {17, 92}, default=17
        The number of noise features after the segments: 17 for LED-25 and 92 for LED-100.
    noise : float, default=0.0
        The probability that a segment is inverted.
    n_rows : int, default=50
        The number of rows. Each row shows a random digit.
    seed : int, default=0
        The random seed.

    Returns
    -------
    Problem
    """
    if n_irrelevant not in (17, 92):
        raise ValueError(f"n_irrelevant must be 17 or 92; got {n_irrelevant!r}.")
    if not (is_real(noise) and 0 <= noise <= 1):
        raise ValueError(f"noise must be from 0 to 1; got {noise!r}.")
    _check(n_rows=n_rows)
    _check(least=0, seed=seed)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, n_rows)
    segments = np.array(_SEGMENTS)[y] ^ (rng.random((n_rows, 7)) < noise)
    bits = np.hstack([segments, rng.integers(0, 2, (n_rows, n_irrelevant))])
    return _binary(f"LED-{n_irrelevant + 8}", bits, y, make_single_groups(7))


def _binary(name: str, bits: Array, y: Array, relevant: tuple[tuple[int, ...], ...]) -> Problem:
    """Return a problem in which all features are nominal."""
    return Problem(bits.astype(float), y, relevant, list_redundant(relevant), np.ones(bits.shape[1], bool), name)


def _bits(n_rows: int, n_features: int, seed: int) -> Array:
    """Check the arguments, and return an array of random bits."""
    _check(n_rows=n_rows)
    _check(least=0, seed=seed)
    return np.random.default_rng(seed).integers(0, 2, (n_rows, n_features))


def make_single_groups(n: int) -> tuple[tuple[int, ...], ...]:
    """Return n groups, each with one of the first n features."""
    return tuple((j,) for j in range(n))


def list_redundant(groups: tuple[tuple[int, ...], ...]) -> Array:
    """Return all but the first feature of each group."""
    return np.array([j for group in groups for j in group[1:]], int)


def _check(least: int = 1, **counts: int) -> None:
    for name, count in counts.items():
        if not (is_integer(count) and count >= least):
            raise ValueError(f"{name} must be an integer of at least {least}; got {count!r}.")
