"""Dense classification problems of any size, made when asked for; here one shaped like epsilon.

They are made block by block, so that a problem larger than the memory can be gone through. Each row is made from random
numbers of its own, found from the seed and the row's number: blocks of any size hold the same rows.
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

_APART = 2.56  # standard deviations between the class means of epsilon_like: a linear rule is right in 9 of 10 rows
_COPY = 0.9  # the correlation of a redundant feature of epsilon_like with the one it repeats


@dataclass(frozen=True)
class DenseProblem:
    """A problem whose answer is known, made when asked for.

    Attributes
    ----------
    n_rows : int
        The rows of it.
    relevant : tuple of tuples of int
        Groups of features, strongest first: one feature of each group is needed.
    redundant : array
        The features that repeat a relevant one.
    discrete : array of bool
        Which features are nominal; their values are codes from 0.
    name : str
        What it is like.
    block_rows : int
        The rows of a block.
    X : list of arrays
        All blocks, in float32: made at once when first asked for, and kept.
    y : array of int8
        The class of each row, 0 or 1; made with X.

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
        """Each block and its classes, one at a time: none is kept."""
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
    """Make a problem like epsilon: rows of length 1, two classes of the same size, a weak signal in many features.

    The shape is that of the training set in LIBSVM's collection, which says of it that every feature was brought to
    mean 0 and variance 1 and then every row to length 1. Which of epsilon's features matter is not known: that a tenth
    does, and that a twentieth repeats them, is made up. A linear rule on all features is right in about 9 of 10 rows.

    Parameters
    ----------
    n_rows, n_features : int
        The shape; without others, that of epsilon. X then takes 3.2 GB: see `DenseProblem.blocks`.
    n_informative : int
        How many features differ between the classes, the strongest three times as much as the weakest. The more there
        are, the weaker is each.
    n_redundant : int
        How many features repeat an informative one, at a correlation of 0.9.
    seed : int
        The same seed makes the same problem, whatever `block_rows` is.
    block_rows : int
        The rows of a block.

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
    """Shifts of these proportions that put the class means _APART from each other; every other one is negative."""
    shifts = _APART * strengths / np.linalg.norm(strengths)
    shifts[1::2] *= -1
    return shifts.astype(np.float32)


def normals(rows: Array, stream: int, n: int) -> Array:
    """So many standard normal numbers for each row."""
    out = np.empty((len(rows), n), np.float32)
    _fill(rows, stream, out)
    return out


# --- compiled --------------------------------------------------------------------------------------------------------


@kernel()
def uniforms(rows: Array, stream: int) -> Array:
    """One number for each row, at least 0 and below 1."""
    out = np.empty(len(rows))
    state = np.zeros(1, np.uint64)
    for i in range(len(rows)):
        state[0] = mixed(np.uint64(stream) + rows[i] * GOLDEN)
        out[i] = uniform(state)
    return out


@kernel()
def _fill(rows: Array, stream: int, out: Array) -> None:
    """Standard normal numbers, two at a time (Box and Muller)."""
    state = np.zeros(1, np.uint64)
    for i in range(len(rows)):
        state[0] = mixed(np.uint64(stream) + rows[i] * GOLDEN)
        for j in range(0, out.shape[1], 2):
            length = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
            angle = 2.0 * math.pi * uniform(state)
            out[i, j] = length * math.cos(angle)
            if j + 1 < out.shape[1]:
                out[i, j + 1] = length * math.sin(angle)
