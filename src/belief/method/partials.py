"""The mergeable sums and lists (partials) that data blocks send to the method instead of rows.

Each partial is a frozen dataclass of arrays with a `merge` that is associative and commutative (up to rounding), so
blocks may come in any number and order, from threads, partitions or files:

    block --kernel--> partial --merge--> ... --merge--> partial --method--> w, redundancy, J
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from belief.method.arrays import Array, FeatureArray, compact_ids, is_first_of_run, lexsort_pairs, run_lengths


@dataclass(frozen=True)
class Neighbours:
    """The nearest rows found so far for each query, in each group of rows (each class, or one group of all rows).

    The arrays have the shape (queries, groups, size), and the last axis is sorted, nearest row first. `d2` is the
    squared distance, and `key` the random key that orders rows at the same distance. `row` is the id of the row; lists
    of fewer than `size` rows end with -1. `target` is the target of the row, or -1 while it is unknown.
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
        """Make neighbours from stored arrays; raise a ValueError if they cannot be the result of this search.

        The search finds the `size` nearest rows in each of `n_groups` groups of rows; the table has m rows in all.
        """
        found = cls(**arrays)
        shape = (len(found.row), n_groups, size)
        kinds = {"d2": "f", "key": "u", "row": "i", "target": "if"}
        if any(getattr(found, x).shape != shape or getattr(found, x).dtype.kind not in kinds[x] for x in kinds):
            raise ValueError("stored neighbours belong to another search")
        limits = (found.row >= -1, found.row < m, found.d2 >= 0.0, found.target >= -1, found.target < m)
        if not all(each.all() for each in limits):
            raise ValueError("stored neighbours are not rows of this table")
        return found

    def copy(self) -> Self:
        return type(self)(*(getattr(self, f.name).copy() for f in fields(self)))

    def append(self, other: Self) -> Self:
        """Return these neighbours followed by the neighbours of other queries."""
        return type(self)(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def with_targets(self, first: int, targets: Array, before: Self | None = None) -> Self:
        """Return a copy with the targets of the neighbours filled in.

        `targets` are the targets of consecutive rows, the first of which has the id `first`. Neighbours that are not
        among these rows get their targets from `before`, an earlier list for the same queries.
        """
        target = np.full(self.row.shape, -1, targets.dtype)
        is_new = (self.row >= first) & (self.row < first + len(targets))
        target[is_new] = targets[self.row[is_new] - first]
        if before is not None:
            lists = np.arange(self.row.shape[0] * self.row.shape[1]).reshape(*self.row.shape[:2], 1)
            n_ids = max(int(self.row.max(initial=0)), int(before.row.max(initial=0))) + 2
            known = (lists * n_ids + before.row + 1).ravel()  # a unique number for each list and row
            order = np.argsort(known)
            missing = (lists * n_ids + self.row + 1)[~is_new]
            at = np.minimum(np.searchsorted(known[order], missing), len(order) - 1)
            target[~is_new] = before.target.ravel()[order[at]]
        return replace(self, target=target)

    def merge(self, other: Self) -> Self:
        """Merge the two lists of each query and group, keeping the nearest rows. Ties go to the smaller key."""
        both = [np.concatenate([getattr(self, f.name), getattr(other, f.name)], axis=2) for f in fields(self)]
        order = np.lexsort((both[1], both[0]), axis=2)[:, :, : self.d2.shape[2]]
        return type(self)(*(np.take_along_axis(x, order, axis=2) for x in both))


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, a query and one of its neighbours, ordered by query.

    `kind` is the index of the sum that a pair is added to. If pairs have a `weight`, this share of the pair is added to
    the sum `kind`, and the rest to the sum `kind + 1`. If pairs are `coupled`, the kinds 2·g and 2·g + 1 are the misses
    and the hits of the queries of group g, and the engine also computes the sums for the variance over queries.
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
        """Return the pairs with these indices."""
        weight = None if self.weight is None else self.weight[which]
        return replace(
            self, query=self.query[which], neighbour=self.neighbour[which], kind=self.kind[which], weight=weight
        )

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the pairs of several parts, which all have the same `spread_shape`."""
        query, neighbour, kind = (
            np.concatenate([getattr(x, f) for x in parts]) for f in ("query", "neighbour", "kind")
        )
        weights = [x.weight for x in parts if x.weight is not None]
        weight = np.concatenate(weights) if weights else None
        return replace(parts[0], query=query, neighbour=neighbour, kind=kind, weight=weight)

    @cached_property
    def coded(self) -> tuple[Array, Array, int]:
        """The query ids and the neighbour ids of all pairs, renumbered so that they lie below a small n; and n."""
        ids, n = compact_ids(np.concatenate([self.query, self.neighbour]))
        return ids[: len(self)], ids[len(self) :], n

    @cached_property
    def mutual(self) -> tuple[Array, Array]:
        """The positions of pairs (a, b) that also occur reversed, and the positions of their reverses (b, a).

        Each query has a neighbour at most once, so no pair occurs twice. The reverse of a pair exists only if the
        neighbour is a query as well. The first array of positions is sorted.
        """
        query, neighbour, n = self.coded
        is_query = np.zeros(n, bool)
        is_query[query[self.starts]] = True
        candidates = np.flatnonzero(is_query[neighbour])
        low = np.minimum(query, neighbour)[candidates]
        high = np.maximum(query, neighbour)[candidates]
        order = lexsort_pairs(low, high, n)
        low, high = low[order], high[order]
        twice = np.flatnonzero((low[1:] == low[:-1]) & (high[1:] == high[:-1]))
        first, other = candidates[order[twice]], candidates[order[twice + 1]]
        by_index = np.argsort(first)
        return first[by_index], other[by_index]

    def counts(self) -> Array:
        """Return the number of pairs of each kind, or their total weight if pairs have weights."""
        if self.weight is None:
            return np.bincount(self.kind, minlength=self.n_kinds).astype(float)
        share = np.bincount(self.kind, self.weight, self.n_kinds)
        return share + np.bincount(self.kind + 1, 1.0 - self.weight, self.n_kinds)

    @cached_property
    def starts(self) -> Array:
        """The index of the first pair of each query."""
        return np.flatnonzero(is_first_of_run(self.query))

    @property
    def spread_shape(self) -> tuple[int, int, int]:
        """The lengths of the first axes of `Tally.spread` and `Tally.queries`, and the number of groups.

        Group g has two kinds of pairs: 2·g for misses and 2·g + 1 for hits.
        """
        lines = (0, 0) if not self.coupled else (2, 1) if self.weight is None else (7, 3)
        return (*lines, self.n_kinds // 2)

    def query_sums(self) -> Array:
        """Return the array `Tally.queries` of data without missing values, the divisor of the variances over queries.

        It holds the number of queries that have both misses and hits or, if pairs have weights, sums of products of
        these weights.
        """
        _, lines, n_groups = self.spread_shape
        out = np.zeros((lines, n_groups, 1))
        if not lines or not len(self):
            return out
        miss = 1.0 - (self.kind & 1) if self.weight is None else self.weight
        t, n = np.add.reduceat(miss, self.starts), run_lengths(self.starts, len(self))
        u, g = n - t, self.kind[self.starts] // 2
        sums = [(t > 0) & (u > 0)] if self.weight is None else [t * t, t * u, u * u]
        for line, x in zip(out, sums, strict=True):
            line[:, 0] = np.bincount(g, x, n_groups)
        return out


@dataclass(frozen=True)
class Tally:
    """The sums over pairs from which relevance, standard errors and marginal collision rates are computed.

    See sections 4 to 6c of method.md. In the comments on the fields, δ is the mean difference of a query from its
    misses minus that from its hits.

    `total` and `count` have one line per kind of pair. `count` and `queries` have one column for all features, or one
    per feature if values are missing. `rates` is empty unless the redundancy measure needs it, and `spread` is empty
    unless the pairs are coupled (see `Pairs`). If pairs have weights, `spread` and `queries` hold the sums of products
    that `influence_error` uses: seven and three lines instead of two and one.
    """

    total: FeatureArray  # Σ difference, (kinds, F)
    count: FeatureArray  # the number of pairs, or their total weight, (kinds, 1 or F)
    rates: FeatureArray  # Σ collision rate, (F,)
    spread: FeatureArray  # Σδ and Σδ² over the queries of each group, (2, groups, F)
    queries: FeatureArray  # the number of these queries, (1, groups, 1 or F)
    n_pairs: int
    # if rows have weights, the number of pairs in which both values are present, (F,); `count` adds up weights then
    unweighted: FeatureArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def from_sums(
        cls,
        pairs: Pairs,
        total: Array,
        rates: Array,
        spread: Array,
        absent: Array | None = None,
        queries: Array | None = None,
    ) -> Self:
        """Make a tally from the sums of a kernel.

        If values are missing, `absent` holds the number of pairs in which a value is missing, with one line for each
        kind of pair and one column for each feature.
        """
        count = pairs.counts()[:, None]
        if absent is None:
            return cls(total, count, rates, spread, pairs.query_sums(), len(pairs))
        assert queries is not None
        return cls(total, count - absent, rates, spread, queries, len(pairs))

    @classmethod
    def zero(cls, pairs: Pairs, n_features: int, rates: bool) -> Self:
        """Return a tally of zeros with the shapes that the sums over `pairs` have."""
        lines, query_lines, n_groups = pairs.spread_shape
        return cls(
            total=np.zeros((pairs.n_kinds, n_features)),
            count=np.zeros((pairs.n_kinds, 1)),
            rates=np.zeros(n_features if rates else 0),
            spread=np.zeros((lines, n_groups, n_features)),
            queries=np.zeros((query_lines, n_groups, 1)),
            n_pairs=0,
        )

    @classmethod
    def validated(cls, pairs: Pairs, n_features: int, values: Mapping[str, Any]) -> Self:
        """Make a tally from stored values; raise a ValueError if they cannot be sums over `pairs`."""
        found = cls(**values)
        like = cls.zero(pairs, n_features, rates=found.rates.size > 0)
        for name in ("total", "count", "rates", "spread", "queries", "unweighted"):
            x, shape = getattr(found, name), getattr(like, name).shape
            shape_with_missing = (*shape[:-1], n_features)
            if x.dtype.kind != "f" or x.shape not in (shape, shape_with_missing) or not np.isfinite(x).all():
                raise ValueError("stored sums belong to another run")
        return found

    def merge(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    # --- in the paper's symbols: kind 2·c holds the misses of class c, and kind 2·c + 1 its hits ---

    @property
    def DD(self) -> Array:
        """The sum of differences between queries and their misses, (classes of the query, features)."""
        return self.total[0::2]

    @property
    def ED(self) -> Array:
        """The sum of differences between queries and their hits, (classes of the query, features)."""
        return self.total[1::2]

    @property
    def DC(self) -> Array:
        return self.count[0::2]

    @property
    def EC(self) -> Array:
        return self.count[1::2]

    @property
    def present(self) -> Array:
        """The number of pairs in which both values are present, (F,); (1,) if no value is missing."""
        return self.count.sum(axis=0)


@dataclass(frozen=True)
class Joint:
    """Joint sums of collision rates for two sets of features, one as the lines and one as the columns of a matrix.

    Each sum is over the pairs of rows in which both features are present. `lines` and `columns` each hold Σe and Σe²
    over the same pairs, with e = 1 - collision rate, (2, lines, columns): `lines` those of the feature of the line,
    `columns` those of the feature of the column. Both are empty if the redundancy measure does not need them. If no
    value is missing, `lines` has a single column, and `columns` has a single line.
    """

    joint: Array  # (lines, columns)
    pairs: Array
    lines: Array  # (2, lines, 1 or columns)
    columns: Array  # (2, 1 or lines, columns)

    def merge(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def check_features(lists: Iterable[Array], n_features: int) -> None:
    """Raise a ValueError unless each stored list consists of distinct feature indices."""
    for x in lists:
        if x.ndim != 1 or x.dtype.kind != "i" or len(np.unique(x)) != len(x) or not np.all((x >= 0) & (x < n_features)):
            raise ValueError("stored list is not a list of features")
