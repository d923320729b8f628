"""Sparse classification problems of any size, shaped like two large public ones: url and kddb.

A row has three kinds of columns. Informative ones are in it with a probability that depends on its class; real-valued
ones with one that does not; the rest are drawn at random, the r-th most popular column with a chance near 1/r (Zipf's
law). Redundant columns, where they are asked for, are in most rows of an informative one. Column numbers are then
scattered, so that they tell nothing of popularity. Each row is made from random numbers of its own, found from the seed
and the row's number: blocks of any size hold the same rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from belief._utils.validation import is_integer, is_real
from belief.kernels.compiling import kernel
from belief.method.arrays import Array

_RARE, _WEAKEST, _STRONGEST = 0.05, 0.05, 0.25  # an informative column's rate in its rare class, and how much more
_REAL_RATE = 0.9
_KEPT = 0.9  # of the rows of an informative column, the share that a redundant one is in: they correlate at 0.94
_SPREAD = 0.4  # rows have from 60 % to 140 % of the mean number of popular columns


@dataclass(frozen=True)
class SparseProblem:
    """A problem whose answer is known.

    Attributes
    ----------
    X : list of csr_array
        Blocks of rows: float32 values, int32 indices and indptr, sorted and without duplicates.
    y : array of int8
        The class of each row, 0 or 1.
    informative : array
        The columns that differ between the classes, strongest first. How strong a column is, is the difference between
        the shares of the rows of each class that have it: from 0.25 down to 0.05, in equal steps.
    relevant : tuple of tuples of int
        Groups of columns, strongest first: one column of each group is needed. The first of a group is informative,
        the others repeat it.
    redundant : array
        The columns that repeat an informative one.
    discrete : array of bool
        Which columns are nominal: none, since a column of zeros and ones is a number here.
    name : str
        What it is like.

    Examples
    --------
    >>> from problems import kddb_like
    >>> problem = kddb_like(1_000, 5_000)
    >>> problem.X[0].shape, problem.informative[:3]
    ((1000, 5000), array([1539, 4312, 2085]))
    """

    X: list[csr_array]
    y: Array
    informative: Array
    relevant: tuple[tuple[int, ...], ...]
    redundant: Array
    discrete: Array
    name: str


def url_like(
    n_rows: int = 1_916_904,
    n_features: int = 3_231_961,
    nnz_per_row: float = 115,
    *,
    n_informative: int = 40,
    n_real: int = 40,
    n_redundant: int = 0,
    positive: float = 1 / 3,
    seed: int = 0,
    block_rows: int = 200_000,
) -> SparseProblem:
    """Make a problem like url: binary columns, some dozens of real-valued ones in most rows, a third of it positive.

    Parameters
    ----------
    n_rows, n_features : int
        The shape; without others, that of url. n_features < 2**31.
    nnz_per_row : float
        The mean number of non-zeros in a row.
    n_informative : int
        How many columns differ between the classes. Each is in 5 % to 30 % of the rows; every other one is more
        frequent in class 1, the others in class 0.
    n_real : int
        How many columns have values between 0 and 1, in 9 of 10 rows; they tell nothing of the class.
    n_redundant : int
        How many columns repeat an informative one, the strongest first and each in turn: they are in 9 of 10 of its
        rows, and in no other.
    positive : float
        The share of class 1.
    seed : int
        The same seed makes the same problem, whatever `block_rows` is.
    block_rows : int
        The rows of a block.

    Examples
    --------
    >>> import belief
    >>> from problems import url_like
    >>> problem = url_like(2_000, 10_000, n_informative=5)
    >>> found = belief.select(problem.X, problem.y, 3, random_state=0).selected
    >>> set(found) <= set(problem.informative)
    True
    """
    plan = _plan(n_features, nnz_per_row, n_informative, n_real, n_redundant, positive, seed)
    return _make("url-like", n_rows, plan, block_rows)


def kddb_like(
    n_rows: int = 19_264_097,
    n_features: int = 29_890_095,
    nnz_per_row: float = 29,
    *,
    n_informative: int = 40,
    n_real: int = 0,
    n_redundant: int = 0,
    positive: float = 0.86,
    seed: int = 0,
    block_rows: int = 500_000,
) -> SparseProblem:
    """Make a problem like kddb: every value is 1, and 86 % of the rows are positive.

    The parameters are those of `url_like`. In full size X takes 4.5 GB.

    Examples
    --------
    >>> from problems import kddb_like
    >>> problem = kddb_like(2_000, 10_000, n_informative=5)
    >>> sum(block.nnz for block in problem.X)
    57818
    """
    plan = _plan(n_features, nnz_per_row, n_informative, n_real, n_redundant, positive, seed)
    return _make("kddb-like", n_rows, plan, block_rows)


class _Plan(NamedTuple):
    """All that the rows have in common. Columns are numbered informative, real-valued, redundant, then by popularity.

    The i-th redundant column repeats the informative one with the number i mod n_informative.
    """

    rates: Array  # (2, n_informative): how often each informative column is in a row of each class
    n_features: int
    n_real: int
    n_redundant: int
    popular: float  # the mean number of popular columns of a row
    step: int  # column c has the number (c·step + shift) mod n_features
    shift: int
    positive: float
    seed: int

    def columns(self, first: int, n: int) -> Array:
        """The numbers that n columns got when they were scattered."""
        return (np.arange(first, first + n) * self.step + self.shift) % self.n_features


def _make(name: str, n_rows: int, plan: _Plan, block_rows: int) -> SparseProblem:
    check_counts(n_rows=n_rows, block_rows=block_rows)
    y = np.empty(n_rows, np.int8)
    X = [_block(a, min(a + block_rows, n_rows), y, plan) for a in range(0, n_rows, block_rows)]
    n_informative = plan.rates.shape[1]
    informative = plan.columns(0, n_informative)
    copies = plan.columns(n_informative + plan.n_real, plan.n_redundant)
    groups = tuple((int(j), *copies[i::n_informative].tolist()) for i, j in enumerate(informative))
    return SparseProblem(X, y, informative, groups, np.sort(copies), np.zeros(plan.n_features, bool), name)


def check_counts(least: int = 1, **counts: int) -> None:
    """Refuse what is not a number of at least so much, by its name."""
    for name, count in counts.items():
        if not (is_integer(count) and count >= least):
            raise ValueError(f"{name} must be an integer of at least {least}; got {count!r}.")


def _plan(
    n_features: int,
    nnz_per_row: float,
    n_informative: int,
    n_real: int,
    n_redundant: int,
    positive: float,
    seed: int,
) -> _Plan:
    check_counts(n_features=n_features, n_informative=n_informative)
    check_counts(least=0, n_real=n_real, n_redundant=n_redundant, seed=seed)
    if n_features >= 2**31:
        raise ValueError(f"n_features must be below 2**31; got {n_features}.")
    if not (is_real(positive) and 0 < positive < 1):
        raise ValueError(f"positive must be between 0 and 1; got {positive!r}.")
    frequent = _RARE + np.linspace(_STRONGEST, _WEAKEST, n_informative)
    rates = np.full((2, n_informative), _RARE)
    rates[1, ::2], rates[0, 1::2] = frequent[::2], frequent[1::2]
    known = float((1 - positive) * rates[0].sum() + positive * rates[1].sum()) + _REAL_RATE * n_real
    copied = rates[:, np.arange(n_redundant) % n_informative]
    known += _KEPT * float((1 - positive) * copied[0].sum() + positive * copied[1].sum())
    if not (is_real(nnz_per_row) and nnz_per_row >= known + 1):
        raise ValueError(
            f"nnz_per_row={nnz_per_row!r} is too small: {n_informative} informative, {n_redundant} redundant and"
            f" {n_real} real-valued columns take {known:.1f} of a row, and at least one more must be left."
        )
    popular = nnz_per_row - known
    least = math.ceil(n_informative + n_real + n_redundant + 4 * popular)
    if n_features < least:
        raise ValueError(f"n_features={n_features} is too small for rows like these: at least {least} are needed.")
    rng = np.random.default_rng(seed)
    step = int(n_features * (0.3 + 0.4 * rng.random())) | 1
    while math.gcd(step, n_features) > 1:
        step += 2
    stream = int(rng.integers(2**63))
    shift = int(rng.integers(n_features))
    return _Plan(rates, n_features, n_real, n_redundant, popular, step, shift, positive, stream)


def _block(a: int, b: int, y: Array, plan: _Plan) -> csr_array:
    most = int(plan.popular * (1 + _SPREAD)) + 1 + plan.n_real + plan.n_redundant + plan.rates.shape[1]
    if (b - a) * most >= 2**31:
        raise ValueError(f"block_rows={b - a} is too large for rows like these: at most {2**31 // most} are allowed.")
    indptr = np.zeros(b - a + 1, np.int32)
    indices = np.empty((b - a) * most, np.int32)  # memory not written to is not taken
    values = np.empty((b - a) * most, np.float32)
    _fill(a, b, y[a:b], indptr, indices, values, *plan)
    n = int(indptr[-1])
    X = csr_array((values[:n].copy(), indices[:n].copy(), indptr), shape=(b - a, plan.n_features))
    X.has_canonical_format = True  # which spares whoever asks a pass over the matrix
    return X


# --- compiled --------------------------------------------------------------------------------------------------------

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel()
def mixed(z: np.uint64) -> np.uint64:
    """The mixing step of SplitMix64: nearby numbers become unlike each other."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel()
def uniform(state: Array) -> float:
    """The next random number, at least 0 and below 1."""
    state[0] += GOLDEN
    return float(mixed(state[0]) >> np.uint64(11)) * 2.0**-53


@kernel()
def _insert(indices: Array, values: Array, lo: int, hi: int, column: int, value: float) -> int:
    """Put a column into the sorted row from lo to hi, unless it is there; return where the row then ends."""
    k = hi
    while k > lo and indices[k - 1] > column:
        k -= 1
    if k > lo and indices[k - 1] == column:
        return hi
    for i in range(hi, k, -1):
        indices[i], values[i] = indices[i - 1], values[i - 1]
    indices[k], values[k] = column, value
    return hi + 1


@kernel()
def _fill(
    a: int,
    b: int,
    y: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    rates: Array,
    n_features: int,
    n_real: int,
    n_redundant: int,
    popular: float,
    step: int,
    shift: int,
    positive: float,
    seed: int,
) -> None:
    """Make the rows a to b."""
    n_informative = rates.shape[1]
    copies = n_informative + n_real  # where the redundant columns begin
    first = copies + n_redundant
    stretch = math.log(n_features - first + 1.0)
    state = np.zeros(1, np.uint64)
    n = 0
    for row in range(a, b):
        state[0] = mixed(np.uint64(seed) + np.uint64(row) * GOLDEN)
        label = 1 if uniform(state) < positive else 0
        lo = n
        for j in range(n_informative):
            if uniform(state) < rates[label, j]:
                n = _insert(indices, values, lo, n, (j * step + shift) % n_features, 1.0)
                for i in range(copies + j, first, n_informative):
                    if uniform(state) < _KEPT:
                        n = _insert(indices, values, lo, n, (i * step + shift) % n_features, 1.0)
        for j in range(n_informative, copies):
            if uniform(state) < _REAL_RATE:
                n = _insert(indices, values, lo, n, (j * step + shift) % n_features, 1.0 - uniform(state))
        end = n + int(popular * (1.0 + _SPREAD * (2.0 * uniform(state) - 1.0)) + uniform(state))
        while n < end:
            rank = min(int(math.exp(stretch * uniform(state))) - 1, n_features - first - 1)
            n = _insert(indices, values, lo, n, ((first + rank) * step + shift) % n_features, 1.0)
        y[row - a] = label
        indptr[row - a + 1] = n
