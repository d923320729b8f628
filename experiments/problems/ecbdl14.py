"""A dense problem of any size shaped like ECBDL14: numbers and letters mixed, with columns that repeat one another."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from belief._utils.validation import is_real
from belief.method.arrays import Array
from problems.dense import DenseProblem, normals, uniforms
from problems.sparse import check_counts

# What is measured on 1,000 rows of the published, oversampled training set.
_LETTERS = (0.47, 0.25)  # shares of the letters C and E; the rest is H
_LEVELS = (0.23, 0.14, 0.06, 0.36)  # shares of the levels 0 to 3; the rest is 4
_BEYOND = (0.04, 0.03, 0.02, 0.007)  # how often the outer positions lie beyond the end of the chain: the letter X
_SCORE = (-1.7, 2.9, -16, 13)  # mean, standard deviation, least and largest of the scores
_ALIKE = {"whole": 1.0, "share": 0.7, "letter": 0.98, "level": 0.65, "score": 0.65}  # correlation within a group
_RUN = 3  # neighbouring positions that repeat one another
_STRONGEST, _WEAKEST = 0.9, 0.3  # how far apart a group's class means are, in standard deviations
_CENTRE, _SHARES, _SCORES = 5, (18, 38, 20), 20


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
    """Make a problem like ECBDL14: numbers and letters that describe two windows and a segment of a protein.

    The columns are those of the published set, in its order: 631, of which 92 are nominal. Three describe the whole
    (two of them counts), 76 are shares between 0 and 1, and each of 23 positions has a letter (C, E, H or X), three
    columns of levels (0 to 4 or X) and 20 scores, whole numbers from -16 to 13. X stands for a position beyond the end
    of the chain, in 0.7 % to 4 % of the rows for the four outer positions of either side of the windows.

    Types, ranges and shares of values are those of 1,000 published rows, and so is how alike neighbours are: letters of
    neighbouring positions agree in 7 of 8 rows, levels in 2 of 5. Which columns matter is made up: groups of columns
    that repeat one another, whose class means differ by 0.9 down to 0.3 standard deviations, so that the largest
    correlation of a column with the class is a third, as in the published rows.

    Parameters
    ----------
    n_rows : int
        How many rows. A million take 2.5 GB: see `DenseProblem.blocks`. The published set, oversampled, has some 65
        million.
    n_positions : int
        How many positions, at least 9. Each takes 24 columns, and 79 belong to none.
    n_relevant : int
        How many groups of columns differ between the classes.
    positive : float
        The share of class 1: half as in the oversampled set, 0.02 before that.
    repeats : int
        How many times each row of class 1 is there, in the mean. Random oversampling from 2 in 100 to a half made it
        49; 1 makes all rows different, as in a small part of the published set.
    seed : int
        The same seed makes the same problem, whatever `block_rows` is.
    block_rows : int
        The rows of a block.

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
        if repeats > 1:  # a row of class 1 is one of the different ones, whose numbers follow those of all rows
            drawn = n_rows + (different * uniforms(rows, stream + 1)).astype(np.uint64)
            rows = np.where(y, drawn, rows)
        return chain.values(normals(rows, stream + 2, chain.width), y), y

    groups = tuple(tuple(np.flatnonzero(chain.unit == u).tolist()) for u in chain.relevant)
    again = np.array(sorted(j for group in groups for j in group[1:]), int)
    nominal = np.array([column.kind in ("letter", "level") for column in columns])
    return DenseProblem(n_rows, groups, again, nominal, "ECBDL14-like", block_rows, make)


Kind = Literal["whole", "share", "letter", "level", "score"]


class _Column(NamedTuple):
    """What a column shows: its kind, the group of columns that repeat one another, and a position (-1: none)."""

    kind: Kind
    group: tuple[int, ...]
    position: int = -1


def _columns(n_positions: int) -> list[_Column]:
    """The columns in the order they were published in: windows first, then the segment in the centre, then scores."""
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
    """How normal variables become columns: one for each group, one for each column, and one for the chain's ends."""

    kind: Array
    unit: Array  # of each column, the number of its group
    alike: Array  # how much of a column's variance is its group's
    position: Array
    relevant: Array  # the groups that matter, strongest first
    shifts: Array
    means: Array  # of the shares

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
        """The normal variables that make a row."""
        return int(self.unit.max()) + 1 + len(self.unit) + 1

    def values(self, normals: Array, y: Array) -> Array:
        """The columns of rows with these classes."""
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
        """Put X, the last code, where a position of the windows lies beyond either end of the chain."""
        last = self.position.max() - _CENTRE
        for code, kind in ((3, "letter"), (5, "level")):
            for distance, rate in enumerate(_BEYOND):
                cut = ndtri(rate)
                for position, beyond in ((distance, ends < cut), (last - distance, ends > -cut)):
                    here = (self.kind == kind) & (self.position == position)
                    X[:, here] = np.where(beyond, code, X[:, here])


def _spread(kinds: list[Kind], rng: np.random.Generator) -> Array:
    """All groups in random order, the kinds by turns, so that the first few are of every kind."""
    order = rng.permutation(len(kinds))
    seen = dict.fromkeys(kinds, 0)
    turn = []
    for u in order:
        turn.append(seen[kinds[u]])
        seen[kinds[u]] += 1
    return order[np.argsort(turn, kind="stable")]


def _whole(X: Array) -> Array:
    """Two counts, and between them a number around 0."""
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
    """Where to cut a normal variable so that each value, but the last, has its share."""
    return ndtri(np.cumsum(shares)).astype(np.float32)
