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
    same stratum, and shuffles stay within it. A row of weight 2 counts twice in every mean.
    """

    group: Array | None = None
    stratum: Array | None = None
    weight: Array | None = None

    def take(self, rows: Array) -> Self:
        """Return the study design of these rows."""
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
        """Whether rows are sampled with probabilities that depend on their weights; with groups, they are not."""
        return self.weight is not None and self.group is None

    def strata(self, n: int) -> Array:
        return np.zeros(n, np.int64) if self.stratum is None else self.stratum

    def groups(self, n: int) -> Array:
        """Return the group of each of the n rows; without groups, every row is its own group."""
        return np.arange(n) if self.group is None else self.group

    def excludes(self, a: Array, b: Array) -> Array:
        """Return a mask of the pairs of a row in a and a row in b that must not be neighbours: (len(a), len(b))."""
        out = np.zeros((len(a), len(b)), bool)
        if self.group is not None:
            out |= self.group[a][:, None] == self.group[b]
        if self.stratum is not None:
            out |= self.stratum[a][:, None] != self.stratum[b]
        return out


def compute_weighted_keys(uniform: Array, weight: Array) -> Array:
    """Return a random number for each row, such that the rows with the smallest numbers are a weighted sample.

    The sample is drawn without replacement, with probabilities proportional to the weights. The number of a row is
    -log(u)/weight, with u uniform in (0, 1).
    """
    return -np.log1p(-uniform * (1 - 1e-12)) / weight


def weigh_by_inclusion(weight: Array, first_outside: float) -> Array:
    """Return the weight of each row, divided by the probability that the row is sampled.

    `first_outside` is the smallest number of `compute_weighted_keys` among the rows outside the sample.
    """
    return weight / -np.expm1(-weight * first_outside)


def make_strata(columns: Sequence[Array]) -> Array:
    """Return the index of the stratum of each row; a stratum is a combination of the values of all columns.

    Columns with more than ten different numbers or dates are cut at their quintiles first. Missing values count as a
    value of their own.
    """
    codes = np.stack([_levels(np.asarray(x)) for x in columns])
    return number_by_appearance(np.unique(codes, axis=1, return_inverse=True)[1].ravel())


def number_by_appearance(codes: Array) -> Array:
    """Renumber codes in the order in which they first appear, so that they do not depend on how a table was read."""
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code.ravel()]


def number_texts(values: Array) -> Array:
    """Number the different values, compared as texts, in the order in which they first appear.

    Return the number of each entry of `values`. Unlike `np.unique`, this does not copy long texts.
    """
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
    return np.unique(x, return_inverse=True)[1]


@dataclass(frozen=True)
class Units:
    """The units (groups, or single rows) that a shuffle moves as a whole, within their strata.

    If a unit takes the place of a larger one, its rows are repeated; if it takes the place of a smaller one, it is cut.
    """

    rows: Array  # sorted by stratum, unit and id, so that the rows of a unit keep their order
    unit: Array  # the unit of each of these rows
    first: Array  # the position in `rows` of the first row of each unit
    size: Array
    stratum: Array  # the stratum of each unit

    @classmethod
    def of(cls, rows: Array, design: Design, ids: Array) -> Self:
        """Return the units of the rows with indices `rows`, given the study design and the ids of all rows."""
        group, stratum = design.groups(len(ids))[rows], design.strata(len(ids))[rows]
        order = np.lexsort((ids[rows], group, stratum))
        rows, group, stratum = rows[order], group[order], stratum[order]
        is_new = np.r_[True, (group[1:] != group[:-1]) | (stratum[1:] != stratum[:-1])][: len(rows)]
        first = np.flatnonzero(is_new)
        return cls(rows, np.cumsum(is_new) - 1, first, np.diff(np.r_[first, len(rows)]), stratum[first])

    def shuffle(self, keys: Array, out: Array) -> None:
        """Write to out[i] the index of the row that takes the place of row i.

        The units of each stratum are put in the order of the keys of their first rows.
        """
        order = np.lexsort((keys[self.rows[self.first]], self.stratum))
        place = np.arange(len(self.rows)) - self.first[self.unit]
        source = order[self.unit]
        out[self.rows] = self.rows[self.first[source] + place % self.size[source]]
