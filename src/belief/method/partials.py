"""What travels between the blocks of the data and the method: sums and locators, never rows.

Each partial is a frozen bundle of arrays with a `merge` that is associative and commutative (up to rounding), so blocks
may come in any number and order, from threads, partitions or files:

    block --kernel--> partial --merge--> ... --merge--> partial --method--> w, redundancy, J
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from belief.method.arrays import Array, FeatureArray, compact_ids, lexsort_pairs


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

    @classmethod
    def validated(cls, n_groups: int, size: int, m: int, arrays: Mapping[str, Array]) -> Self:
        """Of arrays that others may have changed: those of such a search among m rows, or a ValueError."""
        found = cls(**arrays)
        shape = (len(found.row), n_groups, size)
        kinds = {"d2": "f", "key": "u", "row": "i", "target": "if"}
        if any(getattr(found, x).shape != shape or getattr(found, x).dtype.kind not in kinds[x] for x in kinds):
            raise ValueError("neighbours of another search")
        limits = (found.row >= -1, found.row < m, found.d2 >= 0.0, found.target >= -1, found.target < m)
        if not all(each.all() for each in limits):
            raise ValueError("neighbours that are no rows")
        return found

    def copy(self) -> Self:
        return type(self)(*(getattr(self, f.name).copy() for f in fields(self)))

    def append(self, other: Self) -> Self:
        """These queries, and after them those."""
        return type(self)(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

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
    Where kinds come in couples, 2·g for the far and 2·g + 1 for the near pairs of a query of group g, the spread of the
    queries is measured too.
    """

    query: Array  # row ids
    neighbour: Array
    kind: Array
    n_kinds: int
    weight: Array | None = None
    coupled: bool = False

    def __len__(self) -> int:
        return len(self.query)

    def take(self, which: Array | slice) -> Self:
        """Some of the pairs."""
        weight = None if self.weight is None else self.weight[which]
        return replace(
            self, query=self.query[which], neighbour=self.neighbour[which], kind=self.kind[which], weight=weight
        )

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The pairs of all parts, which are filed alike."""
        query, neighbour, kind = (
            np.concatenate([getattr(x, f) for x in parts]) for f in ("query", "neighbour", "kind")
        )
        weights = [x.weight for x in parts if x.weight is not None]
        weight = np.concatenate(weights) if weights else None
        return replace(parts[0], query=query, neighbour=neighbour, kind=kind, weight=weight)

    @cached_property
    def coded(self) -> tuple[Array, Array, int]:
        """Queries and neighbours as numbers below n, and n."""
        ids, n = compact_ids(np.concatenate([self.query, self.neighbour]))
        return ids[: len(self)], ids[len(self) :], n

    @cached_property
    def mutual(self) -> tuple[Array, Array]:
        """Which pairs are there the other way round too: of two such the first, by rising number, and the other.

        A query has each neighbour once, so none is there more often; and only a neighbour that is a query can be.
        """
        query, neighbour, n = self.coded
        asked = np.zeros(n, bool)
        asked[query[self.starts]] = True
        may = np.flatnonzero(asked[neighbour])
        low, high = np.minimum(query, neighbour)[may], np.maximum(query, neighbour)[may]
        order = lexsort_pairs(low, high, n)
        low, high = low[order], high[order]
        twice = np.flatnonzero((low[1:] == low[:-1]) & (high[1:] == high[:-1]))
        first, other = may[order[twice]], may[order[twice + 1]]
        by_number = np.argsort(first)
        return first[by_number], other[by_number]

    def counts(self) -> Array:
        """How many pairs there are of each kind."""
        if self.weight is None:
            return np.bincount(self.kind, minlength=self.n_kinds).astype(float)
        share = np.bincount(self.kind, self.weight, self.n_kinds)
        return share + np.bincount(self.kind + 1, 1.0 - self.weight, self.n_kinds)

    @cached_property
    def starts(self) -> Array:
        """Where the pairs of each query begin."""
        return np.flatnonzero(np.r_[True, self.query[1:] != self.query[:-1]]) if len(self) else np.zeros(0, np.int64)

    @property
    def spread_shape(self) -> tuple[int, int, int]:
        """Lines of `spread`, lines of `queries`, and couples, of the tally of these pairs."""
        lines = (0, 0) if not self.coupled else (2, 1) if self.weight is None else (7, 3)
        return (*lines, self.n_kinds // 2)

    def query_sums(self) -> Array:
        """Of each couple, where no value is missing: the queries with both kinds, or the products of their weights."""
        _, lines, couples = self.spread_shape
        out = np.zeros((lines, couples, 1))
        if not lines or not len(self):
            return out
        far = 1.0 - (self.kind & 1) if self.weight is None else self.weight
        t, n = np.add.reduceat(far, self.starts), np.diff(np.r_[self.starts, len(self)])
        u, g = n - t, self.kind[self.starts] // 2
        sums = [(t > 0) & (u > 0)] if self.weight is None else [t * t, t * u, u * u]
        for line, x in zip(out, sums, strict=True):
            line[:, 0] = np.bincount(g, x, couples)
        return out


@dataclass(frozen=True)
class Tally:
    """The sums over pairs (sections 4 and 5 of the method), a line for each kind of pair.

    `count` and `queries` have one column for all features, or one for each where values are missing. What nobody asks
    for is empty: `rates` without a redundancy measure that needs them, `spread` of pairs that do not come in couples.
    """

    total: FeatureArray  # Σ difference, (kinds, F)
    count: FeatureArray  # Σ 1
    rates: FeatureArray  # Σ collision rate, (F,)
    spread: FeatureArray  # Σδ and Σδ² over the queries of each couple, (2, couples, F); with weights, seven products
    queries: FeatureArray  # how many queries those are, (1, couples, 1 or F); with weights, three products of weights
    n_pairs: int

    @classmethod
    def from_sums(
        cls, pairs: Pairs, total: Array, rates: Array, spread: Array, absent: Array | None = None,
        queries: Array | None = None,
    ) -> Self:  # fmt: skip
        """From the sums over some pairs; where values are missing, with the pairs of each kind that lacked one."""
        count = pairs.counts()[:, None]
        if absent is None:
            return cls(total, count, rates, spread, pairs.query_sums(), len(pairs))
        assert queries is not None
        return cls(total, count - absent, rates, spread, queries, len(pairs))

    @classmethod
    def zero(cls, pairs: Pairs, n_features: int, rates: bool) -> Self:
        """That of no pairs, which are filed as these are."""
        lines, query_lines, couples = pairs.spread_shape
        return cls(
            np.zeros((pairs.n_kinds, n_features)), np.zeros((pairs.n_kinds, 1)), np.zeros(n_features if rates else 0),
            np.zeros((lines, couples, n_features)), np.zeros((query_lines, couples, 1)), 0,
        )  # fmt: skip

    @classmethod
    def validated(cls, pairs: Pairs, n_features: int, values: Mapping[str, Any]) -> Self:
        """Of values that others may have changed: the sums of such pairs, or a ValueError."""
        found = cls(**values)
        like = cls.zero(pairs, n_features, rates=found.rates.size > 0)
        for name in ("total", "count", "rates", "spread", "queries"):
            x, own = getattr(found, name), getattr(like, name).shape
            wide = (*own[:-1], n_features)  # where values are missing
            if x.dtype.kind != "f" or x.shape not in (own, wide) or not np.isfinite(x).all():
                raise ValueError("sums of another run")
        return found

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
    """Joint sums over pairs: of some features (lines) with others (columns), over the pairs that have both.

    `lines` and `columns` are Σx and Σx² of either; empty where the measure does not ask for them. Where no value is
    missing, one column of `lines`, and one line of `columns`, are enough.
    """

    joint: Array  # (lines, columns)
    pairs: Array
    lines: Array  # (2, lines, 1 or columns)
    columns: Array  # (2, 1 or lines, columns)

    def merge(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def check_features(lists: Iterable[Array], n_features: int) -> None:
    """Refuse lists that others may have changed, where they are not of different features."""
    for x in lists:
        if x.ndim != 1 or x.dtype.kind != "i" or len(np.unique(x)) != len(x) or not np.all((x >= 0) & (x < n_features)):
            raise ValueError("features that are none")
