"""Generate dense problems of any size like ECBDL14, with numeric and nominal columns, many of them redundant."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from belief._utils.validation import is_real
from belief.method.arrays import Array
from problems.dense import DenseProblem, normals, uniforms
from problems.sparse import check_counts

# These figures follow 1,000 rows of the published, oversampled training set.
_LETTERS = (0.47, 0.25)  # shares of the letters C and E; the rest is H
_LEVELS = (0.23, 0.14, 0.06, 0.36)  # shares of the levels 0 to 3; the rest is 4
_BEYOND = (0.04, 0.03, 0.02, 0.007)  # how often the four outer positions, outermost first, are beyond the chain
_SCORE = (-1.7, 2.9, -16, 13)  # mean, standard deviation, minimum and maximum of the scores
_ALIKE = {"whole": 1.0, "share": 0.7, "letter": 0.98, "level": 0.65, "score": 0.65}  # correlation of columns of a group
_RUN = 3  # number of neighbouring positions whose columns form a group
_STRONGEST, _WEAKEST = 0.9, 0.3  # distance of the class means of a relevant group, in standard deviations
_CENTRE, _SHARES, _SCORES = 5, (18, 38, 20), 20  # positions of the segment, columns of shares, scores per position


def ecbdl14_like(
    n_rows: int = 1_000_000,
    *,
    n_positions: int = 23,
    n_relevant: int = 20,
    positive: float = 0.5,
    repeats: int = 1,
    seed: int = 0,
    block_rows: int = 50_000,
) -> DenseProblem:
    """Generate a problem like ECBDL14, whose columns describe two windows and a segment of a protein chain.

    The columns are the same as in the published set, in the same order: 631 columns, 92 of them nominal. Three columns
    describe the row as a whole (two are counts), and 76 columns are shares between 0 and 1. Each of 23 positions in the
    chain has a letter (C, E, H or X, encoded as 0 to 3), three levels (0 to 4, or X, encoded as 5) and 20 scores
    (integers from -16 to 13). X marks positions beyond the end of the chain. It occurs in 0.7 % to 4 % of the rows, at
    the four outermost positions on each side of the windows.

    The types, ranges and shares of values are those of 1,000 published rows. So is the similarity of neighbouring
    positions: their letters agree in 7 of 8 rows, and their levels in 2 of 5. The relevant columns are invented: they
    are groups of mutually redundant columns, whose class means differ by 0.3 to 0.9 standard deviations. The
    largest correlation of a column with the class is therefore a third, as in the published rows.

    Parameters
    ----------
    n_rows : int
        The number of rows. A million rows take 2.5 GB; `DenseProblem.blocks` needs less memory. The published,
        oversampled set has about 65 million rows.
    n_positions : int
        The number of positions, at least 9. Each position has 24 columns, and 79 columns do not belong to a position.
    n_relevant : int
        The number of groups of columns that differ between the classes.
    positive : float
        The share of class 1. It is 0.5 in the oversampled set, and was 0.02 before oversampling.
    repeats : int
        The mean number of copies of each distinct row of class 1. In the published set it is 49, because random
        oversampling raised the share of class 1 from 2 % to 50 %. With 1, all rows are different, as in a small part of
        the published set.
    seed : int
        The random seed. The problem does not depend on `block_rows`.
    block_rows : int
        The number of rows per block.

    Returns
    -------
    DenseProblem

    Examples
    --------
    >>> from problems import ecbdl14_like
    >>> problem = ecbdl14_like(500)
    >>> problem.X[0].shape, int(problem.discrete.sum()), len(problem.relevant)
    ((500, 631), 92, 20)
    """
    check_counts(n_rows=n_rows, n_relevant=n_relevant, repeats=repeats, block_rows=block_rows)
    check_counts(least=_CENTRE + len(_BEYOND), n_positions=n_positions)
    check_counts(least=0, seed=seed)
    if not (is_real(positive) and 0 < positive < 1):
        raise ValueError(f"positive must be between 0 and 1; got {positive!r}.")
    columns = _columns(n_positions)
    rng = np.random.default_rng(seed)
    chain = _Chain.of(columns, n_relevant, rng)
    different = math.ceil(n_rows * positive / repeats)
    stream = int(rng.integers(2**63))

    def make(a: int, b: int) -> tuple[Array, Array]:
        rows = np.arange(a, b, dtype=np.uint64)
        y = (uniforms(rows, stream) < positive).astype(np.int8)
        if repeats > 1:  # the distinct rows of class 1 have the row numbers from n_rows on
            drawn = n_rows + (different * uniforms(rows, stream + 1)).astype(np.uint64)
            rows = np.where(y, drawn, rows)
        return chain.values(normals(rows, stream + 2, chain.width), y), y

    groups = tuple(tuple(np.flatnonzero(chain.unit == u).tolist()) for u in chain.relevant)
    again = np.array(sorted(j for group in groups for j in group[1:]), int)
    nominal = np.array([column.kind in ("letter", "level") for column in columns])
    return DenseProblem(n_rows, groups, again, nominal, "ECBDL14-like", block_rows, make)


Kind = Literal["whole", "share", "letter", "level", "score"]


class _Column(NamedTuple):
    """A column: its kind, its group of mutually redundant columns, and its position in the protein chain (-1: none)."""

    kind: Kind
    group: tuple[int, ...]
    position: int = -1


def _columns(n_positions: int) -> list[_Column]:
    """Return the columns in the published order.

    First come three columns that describe the row as a whole, then the letters, levels and shares of the windows, then
    those of the segment in the centre, and last the scores of all positions.
    """
    outer, centre = range(n_positions - _CENTRE), range(n_positions - _CENTRE, n_positions)

    def letters(positions: range) -> list[_Column]:
        return [_Column("letter", (p // _RUN,), p) for p in positions]

    def levels(positions: range) -> list[_Column]:
        return [_Column("level", (t, p // _RUN), p) for t in range(3) for p in positions]

    def shares(part: int) -> list[_Column]:
        return [_Column("share", (part, j // 4)) for j in range(_SHARES[part])]

    scores = [_Column("score", (p, a // 5), p) for p in range(n_positions) for a in range(_SCORES)]
    front = [_Column("whole", (j,)) for j in range(3)] + letters(outer) + shares(0) + levels(outer) + shares(1)
    return front + letters(centre) + levels(centre) + shares(2) + scores


class _Chain(NamedTuple):
    """The parameters for converting normal variables to the columns of a row.

    A row describes positions in a protein chain. It needs one normal variable for each group of columns, one for each
    column, and one that decides how many of its positions lie beyond an end of the chain.
    """

    kind: Array
    unit: Array  # the number of the group of each column
    alike: Array  # the share of the variance of each column that comes from the variable of its group
    position: Array  # of each column; -1: none
    relevant: Array  # the relevant groups, strongest first
    shifts: Array  # the difference of the class means of each relevant group
    means: Array  # the mean of each column of shares, before values are clipped

    @classmethod
    def of(cls, columns: list[_Column], n_relevant: int, rng: np.random.Generator) -> _Chain:
        units = list(dict.fromkeys((c.kind, c.group) for c in columns))
        if n_relevant > len(units):
            raise ValueError(f"n_relevant={n_relevant} is too large: there are {len(units)} groups of columns.")
        number = {unit: u for u, unit in enumerate(units)}
        shifts = np.linspace(_STRONGEST, _WEAKEST, n_relevant)
        shifts[1::2] *= -1
        return cls(
            np.array([c.kind for c in columns]),
            np.array([number[c.kind, c.group] for c in columns]),
            np.array([_ALIKE[c.kind] for c in columns], np.float32),
            np.array([c.position for c in columns]),
            _spread([kind for kind, _ in units], rng)[:n_relevant],
            shifts.astype(np.float32),
            rng.uniform(0.02, 0.5, sum(_SHARES)).astype(np.float32),
        )

    @property
    def width(self) -> int:
        """The number of normal variables per row."""
        return int(self.unit.max()) + 1 + len(self.unit) + 1

    def values(self, normals: Array, y: Array) -> Array:
        """Return the columns of rows with classes y, computed from their normal variables."""
        n_units = int(self.unit.max()) + 1
        shared, own, ends = normals[:, :n_units], normals[:, n_units:-1], normals[:, -1:]
        shared[:, self.relevant] += (y[:, None] - 0.5) * self.shifts
        X = np.sqrt(self.alike) * shared[:, self.unit] + np.sqrt(1 - self.alike) * own
        X[:, :3] = _whole(X[:, :3])
        for kind, shown in (("letter", _letters), ("level", _levels), ("score", _scores)):
            X[:, self.kind == kind] = shown(X[:, self.kind == kind])
        share = self.kind == "share"
        X[:, share] = np.round(np.clip(self.means * (1 + 0.6 * X[:, share]), 0, 1), 3)
        self._cut(X, ends)
        return X

    def _cut(self, X: Array, ends: Array) -> None:
        """Mark window positions beyond an end of the protein chain: set their letters to 3 and their levels to 5.

        The columns in `X` are changed in place. `ends` has one normal variable per row. If it is very small, the first
        positions lie beyond the chain; if it is very large, the last positions do.
        """
        last = self.position.max() - _CENTRE
        for code, kind in ((3, "letter"), (5, "level")):
            for distance, rate in enumerate(_BEYOND):
                cut = ndtri(rate)
                for position, beyond in ((distance, ends < cut), (last - distance, ends > -cut)):
                    here = (self.kind == kind) & (self.position == position)
                    X[:, here] = np.where(beyond, code, X[:, here])


def _spread(kinds: list[Kind], rng: np.random.Generator) -> Array:
    """Return the groups in random order, but with alternating kinds, so that the first few include every kind."""
    order = rng.permutation(len(kinds))
    seen = dict.fromkeys(kinds, 0)
    turn = []
    for u in order:
        turn.append(seen[kinds[u]])
        seen[kinds[u]] += 1
    return order[np.argsort(turn, kind="stable")]


def _whole(X: Array) -> Array:
    """Convert three normal variables to a count, a number around 0, and another count."""
    first = np.clip(np.round(np.exp(3.85 + 0.95 * X[:, 0])), 6, 1014)
    third = np.clip(np.round(np.exp(5.23 + 0.8 * X[:, 2])), 51, 1244)
    return np.stack([first, np.clip(0.685 * X[:, 1], -1.9, 2.7), third], axis=1)


def _letters(X: Array) -> Array:
    return np.searchsorted(_cuts(_LETTERS), X)


def _levels(X: Array) -> Array:
    return np.searchsorted(_cuts(_LEVELS), X)


def _scores(X: Array) -> Array:
    mean, spread, least, largest = _SCORE
    return np.clip(np.round(mean + spread * X), least, largest)


def _cuts(shares: tuple[float, ...]) -> Array:
    """Return the cuts that divide a normal variable into levels with these shares; the rest is the last level."""
    return ndtri(np.cumsum(shares)).astype(np.float32)
