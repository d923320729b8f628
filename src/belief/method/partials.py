"""What travels between the blocks of the data and the method: sums and locators, never rows.

Each partial is a frozen bundle of arrays with a `merge` that is associative and commutative (up to rounding), so blocks
may come in any number and order, from threads, partitions or files:

    block --kernel--> partial --merge--> ... --merge--> partial --method--> w, redundancy, J
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from belief.method.arrays import Array


@dataclass(frozen=True)
class Neighbours:
    """The best rows so far: for each query and each group of rows (one per class, or one in all), nearest first.

    `row` is the locator, -1 where there are fewer rows than asked for; `target` is what is known of that row's target.
    """

    d2: Array  # (queries, groups, size)
    key: Array
    row: Array
    target: Array

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

    def with_targets(self, first: int, targets: Array, before: Self | None = None) -> Self:
        """With the targets: of the rows from `first` on these are, the others were known before."""
        target = np.full(self.row.shape, -1, targets.dtype)
        mine = (self.row >= first) & (self.row < first + len(targets))
        target[mine] = targets[self.row[mine] - first]
        if before is not None:
            lists = np.arange(self.row.shape[0] * self.row.shape[1]).reshape(*self.row.shape[:2], 1)
            most = max(int(self.row.max(initial=0)), int(before.row.max(initial=0))) + 2
            known = (lists * most + before.row + 1).ravel()  # each list by itself
            order = np.argsort(known)
            wanted = (lists * most + self.row + 1)[~mine]
            at = np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)
            target[~mine] = before.target.ravel()[order[at]]
        return replace(self, target=target)

    def merge(self, other: Self) -> Self:
        """Keep the best of both: by distance, ties by key."""
        both = [np.concatenate([getattr(self, f.name), getattr(other, f.name)], axis=2) for f in fields(self)]
        order = np.lexsort((both[1], both[0]), axis=2)[:, :, : self.d2.shape[2]]
        return type(self)(*(np.take_along_axis(x, order, axis=2) for x in both))


@dataclass(frozen=True)
class Pairs:
    """Queries and their neighbours, one pair a line, those of a query together.

    `kind` is the sum a pair is filed under. With a `weight`, that share of it is, and the rest under the kind after.
    """

    query: Array  # row ids
    neighbour: Array
    kind: Array
    n_kinds: int
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.query)

    def take(self, which: Array | slice) -> Self:
        """Some of the pairs."""
        weight = None if self.weight is None else self.weight[which]
        return replace(
            self, query=self.query[which], neighbour=self.neighbour[which], kind=self.kind[which], weight=weight
        )

    def counts(self) -> Array:
        """How many pairs there are of each kind."""
        if self.weight is None:
            return np.bincount(self.kind, minlength=self.n_kinds).astype(float)
        share = np.bincount(self.kind, self.weight, self.n_kinds)
        return share + np.bincount(self.kind + 1, 1.0 - self.weight, self.n_kinds)


@dataclass(frozen=True)
class Tally:
    """The sums over pairs (sections 4 and 5 of the method), a line for each kind of pair.

    `count` has one column for all features, or one for each where values are missing; `rates` is empty where no
    redundancy measure asks for them.
    """

    total: Array  # Σ difference, (kinds, F)
    count: Array  # Σ 1
    rates: Array  # Σ collision rate, (F,)
    n_pairs: int

    @classmethod
    def zero(cls, n_kinds: int, n_features: int, rates: bool) -> Self:
        return cls(
            np.zeros((n_kinds, n_features)), np.zeros((n_kinds, 1)), np.zeros(n_features if rates else 0), 0
        )  # fmt: skip

    @classmethod
    def of(cls, pairs: Pairs, total: Array, rates: Array, absent: Array | None = None) -> Self:
        """From the sums of each kind of pair, and how many pairs of each kind lacked a value."""
        count = pairs.counts()[:, None]
        return cls(total, count if absent is None else count - absent, rates, len(pairs))

    def merge(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    # --- in the paper's symbols, where the kinds are miss and hit of each class in turn ---

    @property
    def DD(self) -> Array:
        """Σ difference to neighbours of another class, a line for each class of the query."""
        return self.total[0::2]

    @property
    def ED(self) -> Array:
        """Σ difference to neighbours of the same class."""
        return self.total[1::2]

    @property
    def DC(self) -> Array:
        return self.count[0::2]

    @property
    def EC(self) -> Array:
        return self.count[1::2]

    @property
    def present(self) -> Array:
        """The pairs in which both values are there, of each feature or of all alike."""
        return self.count.sum(axis=0)


@dataclass(frozen=True)
class Joint:
    """Joint sums over pairs: of some features (lines) with others (columns), and the pairs that have both."""

    joint: Array
    pairs: Array

    @classmethod
    def zero(cls, n_lines: int, n_columns: int) -> Self:
        return cls(np.zeros((n_lines, n_columns)), np.zeros((n_lines, n_columns)))

    def merge(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))
