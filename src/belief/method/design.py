"""The study design: which rows may be neighbours, which rows move together in a shuffle, and how much each row counts.

Rows of one group (a patient, a household) are not independent: they are never neighbours of each other, and shuffles
move whole groups. Rows of different strata (batches, sites) are not comparable: neighbours come from the same stratum,
and shuffles stay within it. A row with a weight counts that many times in every mean.
"""

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
    """The group, the stratum and the weight of each row; None where there are none."""

    group: Array | None = None
    stratum: Array | None = None
    weight: Array | None = None

    def take(self, rows: Array) -> Self:
        """Return the design of some rows."""
        parts = (None if x is None else x[rows] for x in (self.group, self.stratum, self.weight))
        return type(self)(*parts)

    @property
    def exists(self) -> bool:
        return any(x is not None for x in (self.group, self.stratum, self.weight))

    @property
    def has_units(self) -> bool:
        """Return True if shuffles must respect groups or strata."""
        return self.group is not None or self.stratum is not None

    @property
    def is_drawn_by_weight(self) -> bool:
        """Return True if the sample is drawn by weight: there are weights, and no groups."""
        return self.weight is not None and self.group is None

    def strata(self, n: int) -> Array:
        return np.zeros(n, np.int64) if self.stratum is None else self.stratum

    def groups(self, n: int) -> Array:
        """Return the group of each row; without groups, every row is its own group."""
        return np.arange(n) if self.group is None else self.group

    def excludes(self, a: Array, b: Array) -> Array:
        """Return a mask of the pairs of rows, (a, b), that cannot be neighbours."""
        out = np.zeros((len(a), len(b)), bool)
        if self.group is not None:
            out |= self.group[a][:, None] == self.group[b]
        if self.stratum is not None:
            out |= self.stratum[a][:, None] != self.stratum[b]
        return out


def race(uniform: Array, weight: Array) -> Array:
    """Return -log(u)/ω: sorting rows by it draws them by weight without replacement."""
    out: Array = -np.log1p(-uniform * (1 - 1e-12)) / weight
    return out


def weigh_by_inclusion(weight: Array, first_outside: float) -> Array:
    """Divide weights by the probability of being sampled, given the smallest race value outside the sample."""
    out: Array = weight / -np.expm1(-weight * first_outside)
    return out


def make_strata(columns: Sequence[Array]) -> Array:
    """Return a number for each row that is equal for rows of one stratum, the combination of all columns.

    Numbers and dates with more than ten values are cut at their quintiles. Missing values are a level of their own.
    """
    codes = np.stack([_levels(np.asarray(x)) for x in columns])
    return number_by_appearance(np.unique(codes, axis=1, return_inverse=True)[1].ravel())


def number_by_appearance(codes: Array) -> Array:
    """Renumber codes by the first row that has them, so that they do not depend on how a table was read."""
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    numbers: Array = np.argsort(np.argsort(first))[code.ravel()]
    return numbers


def _levels(x: Array) -> Array:
    if x.dtype.kind in "mM":
        x = np.where(np.isnat(x), np.nan, x.astype(np.int64))
    if x.dtype.kind in "iuf":
        known = ~np.isnan(x)
        if len(np.unique(x[known])) > MAX_LEVELS:
            cuts = np.quantile(x[known], np.arange(1, PARTS) / PARTS)
            return np.where(known, np.searchsorted(cuts, x, side="right"), PARTS)
    else:
        x = np.array([str(value) for value in x.tolist()])
    levels: Array = np.unique(x, return_inverse=True)[1]
    return levels


@dataclass(frozen=True)
class Units:
    """Some rows as units that a shuffle moves as a whole, within strata: groups, or single rows.

    A unit that takes the place of a larger one is repeated, and cut if it takes that of a smaller one.
    """

    rows: Array  # sorted by stratum, unit and id, so that a block of time keeps its order
    unit: Array  # of each of these rows
    first: Array  # the place of the first row of each unit
    size: Array
    stratum: Array  # of each unit

    @classmethod
    def of(cls, rows: Array, design: Design, ids: Array) -> Self:
        """Return the units of some of the rows with these ids."""
        group, stratum = design.groups(len(ids))[rows], design.strata(len(ids))[rows]
        order = np.lexsort((ids[rows], group, stratum))
        rows, group, stratum = rows[order], group[order], stratum[order]
        is_new = np.r_[True, (group[1:] != group[:-1]) | (stratum[1:] != stratum[:-1])][: len(rows)]
        first = np.flatnonzero(is_new)
        return cls(rows, np.cumsum(is_new) - 1, first, np.diff(np.r_[first, len(rows)]), stratum[first])

    @classmethod
    def of_all(cls, design: Design, ids: Array) -> Self:
        """Return the units of all rows with these ids."""
        return cls.of(np.arange(len(ids)), design, ids)

    def shuffle(self, keys: Array, out: Array) -> None:
        """Write to out[i] the row that takes the place of row i; units are ordered by the keys of their first rows."""
        order = np.lexsort((keys[self.rows[self.first]], self.stratum))
        place = np.arange(len(self.rows)) - self.first[self.unit]
        source = order[self.unit]
        out[self.rows] = self.rows[self.first[source] + place % self.size[source]]
