"""The study design: groups, strata and weights of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from belief.method.arrays import Array

MAX_LEVELS = 10  # numeric columns with more values are cut into fifths
PARTS = 5


@dataclass(frozen=True)
class Design:
    """The group, the stratum and the weight of each row; each is None if the user did not pass it.

    Rows of one group (a patient, a household) are not independent: they are never neighbours of each other, and
    shuffles move whole groups. Rows of different strata (batches, sites) are not comparable: neighbours come from the
    same stratum, and shuffles stay within it. A row with a weight counts that many times in every mean.
    """

    group: Array | None = None
    stratum: Array | None = None
    weight: Array | None = None

    def take(self, rows: Array) -> Self:
        """Return the design of these rows."""
        parts = (None if x is None else x[rows] for x in (self.group, self.stratum, self.weight))
        return type(self)(*parts)

    @property
    def exists(self) -> bool:
        return any(x is not None for x in (self.group, self.stratum, self.weight))

    @property
    def has_units(self) -> bool:
        """Whether shuffles must move whole groups, or stay within strata."""
        return self.group is not None or self.stratum is not None

    @property
    def is_drawn_by_weight(self) -> bool:
        """Whether rows are sampled by weight: if rows have weights and are not grouped."""
        return self.weight is not None and self.group is None

    def strata(self, n: int) -> Array:
        return np.zeros(n, np.int64) if self.stratum is None else self.stratum

    def groups(self, n: int) -> Array:
        """Return the group of each of the n rows; without groups, every row is its own group."""
        return np.arange(n) if self.group is None else self.group

    def excludes(self, a: Array, b: Array) -> Array:
        """Return a mask of shape (len(a), len(b)) of the rows a and b that may not be neighbours of each other."""
        out = np.zeros((len(a), len(b)), bool)
        if self.group is not None:
            out |= self.group[a][:, None] == self.group[b]
        if self.stratum is not None:
            out |= self.stratum[a][:, None] != self.stratum[b]
        return out


def race(uniform: Array, weight: Array) -> Array:
    """Return a random number for each row; the rows with the smallest numbers form a weighted sample.

    The sample is drawn by weight, without replacement.

    The number is -log(u)/weight, with u uniform in (0, 1), as if rows raced and the heavier ones were faster.
    """
    out: Array = -np.log1p(-uniform * (1 - 1e-12)) / weight
    return out


def weigh_by_inclusion(weight: Array, first_outside: float) -> Array:
    """Return weights divided by the probability of being sampled.

    The probability follows from the smallest random number (see `race`) of a row outside the sample.
    """
    out: Array = weight / -np.expm1(-weight * first_outside)
    return out


def make_strata(columns: Sequence[Array]) -> Array:
    """Return the index of the stratum of each row; a stratum is a combination of the values of all columns.

    Columns of more than ten numbers or dates are cut into fifths first. Missing values are a level of their own.
    """
    codes = np.stack([_levels(np.asarray(x)) for x in columns])
    return number_by_appearance(np.unique(codes, axis=1, return_inverse=True)[1].ravel())


def number_by_appearance(codes: Array) -> Array:
    """Renumber codes in the order in which they first appear, so that they do not depend on how a table was read."""
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    numbers: Array = np.argsort(np.argsort(first))[code.ravel()]
    return numbers


def number_texts(values: Array) -> Array:
    """Return the number of each value by its text, in the order of appearance. Long texts are not copied."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(str(value), len(known)) for value in values.tolist()], np.int64)


def _levels(x: Array) -> Array:
    if x.dtype.kind in "mM":
        x = np.where(np.isnat(x), np.nan, x.astype(np.int64))
    if x.dtype.kind in "iuf":
        known = ~np.isnan(x)
        if len(np.unique(x[known])) > MAX_LEVELS:
            cuts = np.quantile(x[known], np.arange(1, PARTS) / PARTS)
            return np.where(known, np.searchsorted(cuts, x, side="right"), PARTS)
    else:
        x = number_texts(x)
    levels: Array = np.unique(x, return_inverse=True)[1]
    return levels


@dataclass(frozen=True)
class Units:
    """The units of some rows that a shuffle moves as a whole, and within strata. Units are groups, or single rows.

    If a unit takes the place of a larger one, it is repeated; if it takes the place of a smaller one, it is cut.
    """

    rows: Array  # sorted by stratum, unit and id, so that a block of time keeps its order
    unit: Array  # the unit of each of these rows
    first: Array  # the place of the first row of each unit
    size: Array
    stratum: Array  # the stratum of each unit

    @classmethod
    def of(cls, rows: Array, design: Design, ids: Array) -> Self:
        """Return the units of the rows with indices `rows`, given the design and the ids of all rows."""
        group, stratum = design.groups(len(ids))[rows], design.strata(len(ids))[rows]
        order = np.lexsort((ids[rows], group, stratum))
        rows, group, stratum = rows[order], group[order], stratum[order]
        is_new = np.r_[True, (group[1:] != group[:-1]) | (stratum[1:] != stratum[:-1])][: len(rows)]
        first = np.flatnonzero(is_new)
        return cls(rows, np.cumsum(is_new) - 1, first, np.diff(np.r_[first, len(rows)]), stratum[first])

    @classmethod
    def of_all(cls, design: Design, ids: Array) -> Self:
        """Return the units of all rows, given their design and ids."""
        return cls.of(np.arange(len(ids)), design, ids)

    def shuffle(self, keys: Array, out: Array) -> None:
        """Write to out[i] the index of the row that takes the place of row i.

        Units are ordered by the keys of their first rows.
        """
        order = np.lexsort((keys[self.rows[self.first]], self.stratum))
        place = np.arange(len(self.rows)) - self.first[self.unit]
        source = order[self.unit]
        out[self.rows] = self.rows[self.first[source] + place % self.size[source]]
