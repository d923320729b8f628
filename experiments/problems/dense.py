"""Generate dense classification problems of any size: the problem class, and a generator that imitates epsilon.

The rows are generated block by block on demand, so a problem may be larger than the memory. The random numbers of a row
depend only on the seed and the number of the row, so the rows are the same for all block sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from belief.kernels.compiling import kernel
from belief.method.arrays import Array
from problems.sparse import GOLDEN, check_counts, mixed, uniform

# Distance of the class means of epsilon_like, in standard deviations. A linear classifier is right for 90 % of rows.
_APART = 2.56
_COPY = 0.9  # correlation of a redundant feature of epsilon_like with its informative feature


@dataclass(frozen=True)
class DenseProblem:
    """A problem whose relevant features are known, generated on demand.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    relevant : tuple of tuples of int
        Groups of relevant features, strongest first; one feature of each group is sufficient.
    redundant : array
        The features that are redundant with a relevant one: all but the first of each group.
    discrete : array of bool
        True for nominal features; their values are codes from 0.
    name : str
        The name of the problem, such as "epsilon-like".
    block_rows : int
        The number of rows per block.
    make : callable
        Called with the numbers of the first row and of the row after the last. Returns their features and classes.
    X : list of arrays
        All blocks, in float32. They are generated on first access and kept in memory.
    y : array of int8
        The class of each row, 0 or 1. It is generated together with X.

    Examples
    --------
    >>> from problems import epsilon_like
    >>> problem = epsilon_like(1_000, 50, n_informative=5, n_redundant=2, block_rows=400)
    >>> [len(block) for block in problem.X], problem.relevant
    ([400, 400, 200], ((18, 3), (23, 34), (36,), (4,), (2,)))
    """

    n_rows: int
    relevant: tuple[tuple[int, ...], ...]
    redundant: Array
    discrete: Array
    name: str
    block_rows: int
    make: Callable[[int, int], tuple[Array, Array]]

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Generate the blocks one at a time, as (features, classes). No block is kept in memory."""
        for a in range(0, self.n_rows, self.block_rows):
            yield self.make(a, min(a + self.block_rows, self.n_rows))

    @cached_property
    def _whole(self) -> tuple[list[Array], Array]:
        X, y = zip(*self.blocks(), strict=True)
        return list(X), np.concatenate(y)

    @property
    def X(self) -> list[Array]:
        return self._whole[0]

    @property
    def y(self) -> Array:
        return self._whole[1]


def epsilon_like(
    n_rows: int = 400_000,
    n_features: int = 2_000,
    *,
    n_informative: int = 200,
    n_redundant: int = 100,
    seed: int = 0,
    block_rows: int = 20_000,
) -> DenseProblem:
    """Generate a problem like epsilon: rows of length 1, two equally frequent classes, a weak signal in many features.

    The default shape is that of the training set in the LIBSVM collection. According to its description, every feature
    of epsilon was scaled to mean 0 and variance 1, and then every row to length 1. The relevant features of epsilon are
    not known. By default, a tenth of the generated features is informative, and a twentieth is redundant with them;
    these shares are invented. A linear classifier on all features is right for about 9 of 10 rows.

    Parameters
    ----------
    n_rows, n_features : int
        The shape, by default that of epsilon. X then takes 3.2 GB; `DenseProblem.blocks` needs less memory.
    n_informative : int
        The number of features whose mean differs between the classes. The difference of the strongest feature is three
        times that of the weakest. The total signal is fixed, so more informative features are weaker ones.
    n_redundant : int
        The number of features that are redundant with an informative one, with a correlation of 0.9.
    seed : int
        The random seed. The problem does not depend on `block_rows`.
    block_rows : int
        The number of rows per block.

    Returns
    -------
    DenseProblem

    Examples
    --------
    >>> import belief
    >>> from problems import epsilon_like
    >>> problem = epsilon_like(1_000, 50, n_informative=5, n_redundant=2)
    >>> belief.select(problem.X, problem.y, 3, random_state=0).selected
    array([18, 23, 36])
    """
    check_counts(n_rows=n_rows, n_features=n_features, n_informative=n_informative, block_rows=block_rows)
    check_counts(least=0, n_redundant=n_redundant, seed=seed)
    if n_features < n_informative + n_redundant:
        raise ValueError(
            f"n_features={n_features} is too small for {n_informative} informative and {n_redundant} redundant ones."
        )
    rng = np.random.default_rng(seed)
    place = rng.permutation(n_features)
    informative, copies = place[:n_informative], place[n_informative : n_informative + n_redundant]
    copied = informative[np.arange(n_redundant) % n_informative]
    shifts = _apart(np.linspace(1.5, 0.5, n_informative))
    stream = int(rng.integers(2**63))

    def make(a: int, b: int) -> tuple[Array, Array]:
        rows = np.arange(a, b, dtype=np.uint64)
        y = (uniforms(rows, stream) < 0.5).astype(np.int8)
        X = normals(rows, stream + 1, n_features)
        X[:, informative] += (y[:, None] - 0.5) * shifts
        X[:, copies] = _COPY * X[:, copied] + math.sqrt(1 - _COPY**2) * X[:, copies]
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X, y

    groups = tuple((int(j), *copies[copied == j].tolist()) for j in informative)
    nominal = np.zeros(n_features, bool)
    return DenseProblem(n_rows, groups, np.sort(copies), nominal, "epsilon-like", block_rows, make)


def _apart(strengths: Array) -> Array:
    """Return the difference of the class means for each informative feature, in proportion to its strength.

    The differences are alternately positive and negative, beginning with a positive one. They are scaled so that the
    distance between the class means, over all features, is `_APART`.
    """
    shifts = _APART * strengths / np.linalg.norm(strengths)
    shifts[1::2] *= -1
    return shifts.astype(np.float32)


def normals(rows: Array, stream: int, n: int) -> Array:
    """Return n standard normal random numbers for each row."""
    out = np.empty((len(rows), n), np.float32)
    _fill(rows, stream, out)
    return out


# --- compiled --------------------------------------------------------------------------------------------------------


@kernel()
def uniforms(rows: Array, stream: int) -> Array:
    """Return a uniform random number from [0, 1) for each row."""
    out = np.empty(len(rows))
    state = np.zeros(1, np.uint64)
    for i in range(len(rows)):
        state[0] = mixed(np.uint64(stream) + rows[i] * GOLDEN)
        out[i] = uniform(state)
    return out


@kernel()
def _fill(rows: Array, stream: int, out: Array) -> None:
    """Fill `out` with standard normal random numbers, by the Box-Muller method, which gives two numbers at a time."""
    state = np.zeros(1, np.uint64)
    for i in range(len(rows)):
        state[0] = mixed(np.uint64(stream) + rows[i] * GOLDEN)
        for j in range(0, out.shape[1], 2):
            length = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
            angle = 2.0 * math.pi * uniform(state)
            out[i, j] = length * math.cos(angle)
            if j + 1 < out.shape[1]:
                out[i, j + 1] = length * math.sin(angle)
