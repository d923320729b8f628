"""What travels between the blocks of the data and the method: sums and locators, never rows.

Each partial is a frozen bundle of arrays with a `merge` that is associative and commutative (up to rounding), so blocks
may come in any number and order, from threads, partitions or files:

    block --kernel--> partial --merge--> ... --merge--> partial --method--> w, I_alpha, J
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Levels:
    """The distinct values of the discrete features and how often each occurs, as three columns of a table."""

    feature: Array
    value: Array
    count: Array

    @classmethod
    def zero(cls) -> Self:
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The lines of tables of different features, one table after the other."""
        return cls(*(np.concatenate([getattr(x, f.name) for x in parts]) for f in fields(cls)))

    def merge(self, other: Self) -> Self:
        both = self.concat([self, other])
        feature, value, count = both.feature, both.value, both.count
        if not len(feature):
            return self
        order = np.lexsort((value, feature))
        feature, value, count = feature[order], value[order], count[order]
        new = np.r_[True, (feature[1:] != feature[:-1]) | (value[1:] != value[:-1])]
        return type(self)(feature[new], value[new], np.add.reduceat(count, np.flatnonzero(new)))


@dataclass(frozen=True)
class Summary:
    """One pass over the data: the moments of each feature, its levels if it is discrete, and the class counts."""

    class_counts: Array
    count: Array  # present values
    mean: Array
    m2: Array  # Σ(x - mean)²
    minimum: Array  # NaN where nothing is present
    maximum: Array
    nonzero: Array  # cells that are not 0, missing ones among them
    levels: Levels

    @classmethod
    def zero(cls, n_classes: int, n_features: int) -> Self:
        F = n_features
        nothing = np.zeros(F)
        return cls(
            np.zeros(n_classes, np.int64), nothing, nothing, nothing,
            np.full(F, np.nan), np.full(F, np.nan), nothing, Levels.zero(),
        )  # fmt: skip

    def merge(self, other: Self) -> Self:
        """Chan's formula: the moments of the union, without sums of squares."""
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        with np.errstate(invalid="ignore", over="ignore"):  # infinities are refused when all is read, by name
            step = other.mean - self.mean
            mean = self.mean + step * share
            m2 = self.m2 + other.m2 + step**2 * self.count * share
        return type(self)(
            self.class_counts + other.class_counts,
            count,
            mean,
            m2,
            np.fmin(self.minimum, other.minimum),
            np.fmax(self.maximum, other.maximum),
            self.nonzero + other.nonzero,
            self.levels.merge(other.levels),
        )

    @property
    def m(self) -> int:
        """The number of rows."""
        return int(self.class_counts.sum())

    @property
    def missing(self) -> Array:
        return self.m - self.count


@dataclass(frozen=True)
class Neighbours:
    """The best rows so far: for each query and each group of rows (one per class, or one in all), nearest first.

    `row` is the locator, -1 where there are fewer rows than asked for.
    """

    d2: Array  # (queries, groups, size)
    key: Array
    row: Array
    label: Array

    @classmethod
    def zero(cls, n_queries: int, n_groups: int, size: int) -> Self:
        shape = (n_queries, n_groups, size)
        return cls(
            np.full(shape, np.inf),
            np.full(shape, np.iinfo(np.uint64).max, np.uint64),
            np.full(shape, -1, np.int64),
            np.full(shape, -1, np.int32),
        )

    def copy(self) -> Self:
        return type(self)(*(getattr(self, f.name).copy() for f in fields(self)))

    def labelled(self, first: int, labels: Array, before: Self | None = None) -> Self:
        """With the classes: of the rows from `first` on these are the labels, the others were there before."""
        label = np.full_like(self.label, -1)
        mine = (self.row >= first) & (self.row < first + len(labels))
        label[mine] = labels[self.row[mine] - first]
        if before is not None:
            lists = np.arange(self.row.shape[0] * self.row.shape[1]).reshape(*self.row.shape[:2], 1)
            most = max(int(self.row.max(initial=0)), int(before.row.max(initial=0))) + 2
            known = (lists * most + before.row + 1).ravel()  # each list by itself
            order = np.argsort(known)
            wanted = (lists * most + self.row + 1)[~mine]
            at = np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)
            label[~mine] = before.label.ravel()[order[at]]
        return type(self)(self.d2, self.key, self.row, label)

    def merge(self, other: Self) -> Self:
        """Keep the best of both: by distance, ties by key."""
        both = [np.concatenate([getattr(self, f.name), getattr(other, f.name)], axis=2) for f in fields(self)]
        order = np.lexsort((both[1], both[0]), axis=2)[:, :, : self.d2.shape[2]]
        return type(self)(*(np.take_along_axis(x, order, axis=2) for x in both))


@dataclass(frozen=True)
class Pairs:
    """Queries and their neighbours, one pair a line: row ids, the class of the query, and whether they share it."""

    query: Array
    neighbour: Array
    c: Array
    hit: Array

    def __len__(self) -> int:
        return len(self.query)

    @property
    def kind(self) -> Array:
        """Under which sum a pair is filed: 2·c for a miss, 2·c + 1 for a hit."""
        return (2 * self.c + self.hit).astype(np.int64)


@dataclass(frozen=True)
class Tally:
    """The sums of sections 4 and 5 of the method, in the paper's symbols.

    The counts DC, EC and pairs have one column for all features, or one for each where values are missing.
    """

    DD: Array  # Σ difference to neighbours of another class, (|C|, F)
    ED: Array  # ... of the same class
    DC: Array
    EC: Array
    marginal: Array  # Σ collision rate, (F,)
    pairs: Array
    n_pairs: int

    @classmethod
    def zero(cls, n_classes: int, n_features: int) -> Self:
        return cls(
            np.zeros((n_classes, n_features)), np.zeros((n_classes, n_features)), np.zeros((n_classes, 1)),
            np.zeros((n_classes, 1)), np.zeros(n_features), np.zeros(1), 0,
        )  # fmt: skip

    @classmethod
    def of(cls, pairs: Pairs, total: Array, marginal: Array, absent: Array | None = None) -> Self:
        """From the sums of each kind of pair (2·|C|, F), and how many pairs of each kind lacked a value."""
        counts = np.bincount(pairs.kind, minlength=len(total))[:, None].astype(float)
        present = counts if absent is None else counts - absent
        return cls(
            DD=total[0::2], ED=total[1::2], DC=present[0::2], EC=present[1::2],
            marginal=marginal, pairs=present.sum(axis=0), n_pairs=len(pairs),
        )  # fmt: skip

    def merge(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Joint:
    """Joint collisions of watched features (lines) with some features (columns), and the pairs they were seen in."""

    joint: Array
    pairs: Array

    @classmethod
    def zero(cls, n_watched: int, n_columns: int) -> Self:
        return cls(np.zeros((n_watched, n_columns)), np.zeros((n_watched, n_columns)))

    def merge(self, other: Self) -> Self:
        return type(self)(self.joint + other.joint, self.pairs + other.pairs)
