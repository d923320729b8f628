"""Generate sparse classification problems of any size that imitate two large public data sets, url and kddb.

The columns are of four kinds. Informative columns are non-zero with a probability that depends on the class of the row.
Real-valued columns are non-zero with a probability that does not depend on the class. Redundant columns, which are
optional, are non-zero in most rows of an informative column. The other columns are called popular columns. They are
drawn at random, and the probability of the r-th most popular column is roughly proportional to 1/r (Zipf's law). The
columns are then renumbered, so that their numbers do not reveal their kind or popularity.

The random numbers of a row depend only on the seed and the number of the row, so the rows are the same for all block
sizes.
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

# The share of the rows of one class in which an informative column is non-zero, and how much larger this share is in
# the other class, for the weakest and for the strongest column.
_RARE, _WEAKEST, _STRONGEST = 0.05, 0.05, 0.25
_REAL_RATE = 0.9  # share of the rows in which a real-valued column is non-zero
_KEPT = 0.9  # a redundant column is non-zero in this share of the rows of its informative column: correlation 0.94
_SPREAD = 0.4  # a row has 60 % to 140 % of the mean number of popular columns


@dataclass(frozen=True)
class SparseProblem:
    """A problem whose relevant features are known.

    Attributes
    ----------
    X : list of csr_array
        Blocks of rows, with float32 values and int32 indices. The indices are sorted, without duplicates.
    y : array of int8
        The class of each row: 0 or 1, or the cell type in `single_cells`.
    informative : array
        The columns that differ between the classes, strongest first. In `url_like` and `kddb_like`, the strength of a
        column is the difference between the classes in the share of rows where it is non-zero. It falls from 0.25 to
        0.05 in equal steps.
    relevant : tuple of tuples of int
        Groups of relevant columns, strongest first; one column of each group is sufficient. The first column of a group
        is informative, and the others are redundant with it.
    redundant : array
        The columns that are redundant with an informative one.
    discrete : array of bool
        True for nominal columns. There are none, because columns of zeros and ones are treated as numbers.
    name : str
        The name of the problem, such as "url-like".

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
    """Generate a problem like url: binary columns, dozens of real-valued columns, and a third of the rows positive.

    Parameters
    ----------
    n_rows, n_features : int
        The shape, by default that of url. n_features must be below 2**31.
    nnz_per_row : float
        The mean number of non-zeros per row.
    n_informative : int
        The number of columns that differ between the classes. Each is non-zero in 5 % of the rows of one class, and in
        10 % to 30 % of the rows of the other. The strongest column is more often non-zero in class 1, the second in
        class 0, the third in class 1, and so on.
    n_real : int
        The number of columns that have values between 0 and 1, in 9 of 10 rows. They do not depend on the class.
    n_redundant : int
        The number of columns that are redundant with an informative one. They are assigned to the informative columns
        in turn, beginning with the strongest. A redundant column is non-zero in 9 of 10 rows of its informative column,
        and in no other row.
    positive : float
        The share of class 1.
    seed : int
        The random seed. The problem does not depend on `block_rows`.
    block_rows : int
        The number of rows per block.

    Returns
    -------
    SparseProblem

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
    """Generate a problem like kddb: every non-zero value is 1, and 86 % of the rows are positive.

    The parameters are the same as in `url_like`. With the default shape, that of kddb, X takes 4.5 GB.

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
    """The parameters that all rows share.

    Before columns are renumbered, the informative columns come first, then the real-valued, then the redundant, then
    the popular ones, most popular first. The i-th redundant column belongs to informative column i mod n_informative.
    """

    rates: Array  # (2, n_informative): the share of rows of each class where an informative column is non-zero
    n_features: int
    n_real: int
    n_redundant: int
    popular: float  # the mean number of popular columns per row
    step: int  # column c is renumbered to (c·step + shift) mod n_features
    shift: int
    positive: float
    seed: int

    def columns(self, first: int, n: int) -> Array:
        """Return the new numbers of columns `first` to `first + n - 1` after the columns have been renumbered."""
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
    """Raise a ValueError if a count is not an integer of at least `least`. The message has the name of the count."""
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
            f" {n_real} real-valued columns need {known:.1f} non-zeros per row, and at least one more is required."
        )
    popular = nnz_per_row - known
    least = math.ceil(n_informative + n_real + n_redundant + 4 * popular)
    if n_features < least:
        raise ValueError(f"n_features={n_features} is too small for these rows; it must be at least {least}.")
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
        raise ValueError(f"block_rows={b - a} is too large for these rows; it must be at most {2**31 // most}.")
    indptr = np.zeros(b - a + 1, np.int32)
    indices = np.empty((b - a) * most, np.int32)  # an upper bound; pages that are never written take no memory
    values = np.empty((b - a) * most, np.float32)
    _fill(a, b, y[a:b], indptr, indices, values, *plan)
    n = int(indptr[-1])
    X = csr_array((values[:n].copy(), indices[:n].copy(), indptr), shape=(b - a, plan.n_features))
    X.has_canonical_format = True  # otherwise SciPy checks this with a pass over the matrix
    return X


# --- compiled --------------------------------------------------------------------------------------------------------

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel()
def mixed(z: np.uint64) -> np.uint64:
    """Return z after the mixing step of SplitMix64, which maps nearby numbers to unrelated ones."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel()
def uniform(state: Array) -> float:
    """Advance the state, and return a random number from [0, 1)."""
    state[0] += GOLDEN
    return float(mixed(state[0]) >> np.uint64(11)) * 2.0**-53


@kernel()
def _insert(indices: Array, values: Array, lo: int, hi: int, column: int, value: float) -> int:
    """Insert a column into the sorted row from lo to hi, unless the row has it. Return the new end of the row."""
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
    """Generate rows a to b - 1, and write them to the arrays."""
    n_informative = rates.shape[1]
    copies = n_informative + n_real  # the first redundant column
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
