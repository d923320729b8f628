"""An engine that applies a study design (groups, strata and weights of rows) to another engine.

See section 11 of method.md.

The other engine, called the inner engine, searches for neighbours. It searches in cells instead of classes. A cell has
the rows of one class in one stratum. The rows of a large group are in cells of their own, and the small groups share
cells. From the neighbours found, rows of other strata and of the query's own group are removed. Enough rows remain,
because the search finds more neighbours than needed: the surplus is the largest number of rows that a small group has
in a cell. If rows have weights, each pair has a weight of at most 1. Its differences are added to one sum with
this weight, and to a second sum, which is ignored, with 1 minus this weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from belief._utils.warnings import warn
from belief.engines.block.threads import checksum
from belief.method.arrays import Array
from belief.method.design import Design, compute_weighted_keys, weigh_by_inclusion
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Pairs, Tally
from belief.method.protocols import Engine, Search
from belief.method.redundancy.collisions import Collisions
from belief.method.sampling import SAMPLE, Sample, row_keys
from belief.method.summary import Summary
from belief.method.targets import Classes, Target

MIN_CELL = 10  # a class with fewer rows in a stratum is left out of that stratum
MAX_OWN_GROUPS = 4096  # groups that can have a cell of their own


class DesignedEngine:
    """An engine that applies a study design to the rows of another engine.

    Parameters
    ----------
    inner : Engine
        The engine that stores and searches the rows.
    read_design : callable
        Returns the design of all rows. It is called after the inner engine has described the data.
    """

    def __init__(self, inner: Engine, read_design: Callable[[], Design]) -> None:
        self.inner, self._read_design = inner, read_design
        self.design = Design()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.inner.__exit__(*error)

    def fingerprint(self) -> bytes:
        parts = (self.design.group, self.design.stratum, self.design.weight)
        return self.inner.fingerprint() + checksum(x for x in parts if x is not None)

    def describe(self) -> Summary:
        summary = self.inner.describe()
        self.design, self.targets = self._read_design(), self.inner.targets
        m = len(self.targets)
        parts = {"groups": self.design.group, "adjust_for": self.design.stratum, "sample_weight": self.design.weight}
        for name, x in parts.items():
            if x is not None and len(x) != m:
                raise ValueError(f"{name} has {len(x)} values, but X has {m} rows. Pass one value per row.")
        if self.design.weight is not None and self.design.weight.min() == self.design.weight.max():
            self.design = replace(self.design, weight=None)
        self._usable = np.ones(m, bool) if self.design.weight is None else self.design.weight > 0
        if self.design.stratum is not None:
            self._leave_out_small_cells()
        if self.design.group is not None:
            self._check_groups(self.design.group)
        self._weight = self.design.weight  # the weight of each row as a query
        self.inner.retarget(self.targets, self._usable)
        self.target = self._count()
        return summary

    def _check_groups(self, group: Array) -> None:
        """Raise a ValueError if no row has a neighbour of its class in another group."""
        n_groups, classes = int(group.max()) + 1, 0 if self._is_numeric else self.targets.astype(np.int64)
        cell = self.design.strata(len(group)) * (int(np.max(classes)) + 1) + classes
        pairs = np.unique((cell * n_groups + group)[self._usable])
        if np.unique(pairs // n_groups, return_counts=True)[1].max() < 2:
            raise ValueError(
                "groups has no two groups that can be compared: all rows of a class (in the same stratum, if there are"
                " strata) belong to the same group. Pass groups with fewer rows each."
            )

    @property
    def _is_numeric(self) -> bool:
        return not isinstance(self.inner.target, Classes)

    def _leave_out_small_cells(self) -> None:
        """Leave out of each stratum the classes with few rows in it, then the strata with fewer than two classes."""
        stratum, m = self.design.strata(len(self.targets)), len(self.targets)
        classes = np.zeros(m, np.int64) if self._is_numeric else self.targets.astype(np.int64)
        n_classes = int(classes.max()) + 1
        before = self._usable.copy()
        cell = stratum * n_classes + classes
        size = np.bincount(cell[self._usable], minlength=(int(stratum.max()) + 1) * n_classes).reshape(-1, n_classes)
        size[size < (2 * MIN_CELL if self._is_numeric else MIN_CELL)] = 0
        size[(size > 0).sum(axis=1) < (1 if self._is_numeric else 2)] = 0
        self._usable &= (size > 0)[stratum, classes]
        n_out = int((before & ~self._usable).sum())
        if not self._is_numeric:
            gone = np.flatnonzero(~(size > 0).any(axis=0))
            if len(gone):
                name = self.inner.target.names.tolist()[gone[0]]
                raise ValueError(
                    f"adjust_for makes {len(size)} strata, and no stratum has {MIN_CELL} rows of class {name!r}"
                    f" and {MIN_CELL} rows of another class. Adjust for fewer columns, or merge their values."
                )
        elif not self._usable.any():
            raise ValueError(
                f"adjust_for makes {len(size)} strata, and none of them has {2 * MIN_CELL} rows. Adjust for fewer"
                " columns, or merge their values."
            )
        if n_out:
            small = (
                f"strata with fewer than {2 * MIN_CELL} rows are not used"
                if self._is_numeric
                else f"a stratum is used for the classes with at least {MIN_CELL} rows in it, if there are two of them"
            )
            warn(f"{n_out:,} of {m:,} rows are left out: adjust_for makes {len(size)} strata, and {small}.")

    def _count(self) -> Target:
        """Count the rows that are used; return the target with the shares of its classes.

        If rows have weights, the share of a class is its share of the total weight.
        """
        target: Target = self.inner.target.counted(self.targets[self._usable])
        if self.design.weight is not None and isinstance(target, Classes):
            shares = np.bincount(self.targets, self.design.weight * self._usable, len(target.names))
            target = replace(target, shares=shares / shares.sum())
        return target

    def merge_copies(self, seed: int) -> Target:
        """Keep one of several identical rows with the same target, group, stratum and weight.

        The other copies are excluded from samples and searches. Return the target of the remaining rows.
        """
        parts = [x for x in (self.design.group, self.design.stratum, self.design.weight) if x is not None]
        columns = np.stack([self.targets.astype(float), self._usable.astype(float), *(x.astype(float) for x in parts)])
        self.inner.retarget(np.unique(columns, axis=1, return_inverse=True)[1].ravel().astype(np.int32), None)
        self.inner.merge_copies(seed)
        assert self.inner.counted is not None  # set by merge_copies
        self._usable = self._usable & self.inner.counted
        self.inner.retarget(self.targets, self._usable)
        self.target = self._count()
        return self.target

    # --- the sample, which depends on weights and groups ---

    def sample(self, quota: Array, seed: int) -> Sample:
        """Return the sampled rows.

        If rows have groups, the sample takes one row of each group, then a second row of each, and so on. Otherwise,
        rows with large weights are likely to come first.
        """
        self._seed = seed
        ids = np.flatnonzero(self._usable)
        values = self._sampling_numbers(ids, seed)
        rank = np.zeros(len(ids), np.int64)
        if self.design.group is not None:
            classes = self.targets[ids] if not self._is_numeric else np.zeros(len(ids))
            order = np.lexsort((values, self.design.group[ids], classes))
            unit = np.stack([classes, self.design.group[ids]])[:, order]
            is_new = np.r_[True, (unit[:, 1:] != unit[:, :-1]).any(axis=0)]
            place = np.arange(len(ids))
            rank[order] = place - np.maximum.accumulate(np.where(is_new, place, 0))
        key = np.empty(len(ids), np.uint64)
        key[np.lexsort((values, rank))] = np.arange(len(ids), dtype=np.uint64)
        return Sample(key, ids, self.targets[ids]).first(quota)

    def _sampling_numbers(self, ids: Array, seed: int) -> Array:
        """Return a random number for each row; rows with smaller numbers are sampled first."""
        uniform = (row_keys(seed, SAMPLE, ids).astype(float) + 1.0) / 2.0**64
        if self.design.weight is None or not self.design.is_drawn_by_weight:
            return uniform
        return compute_weighted_keys(uniform, self.design.weight[ids])

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Announce all pairs of the run, so that the inner engine can read their rows together.

        The sampling weights of the queries are computed here.
        """
        if batches and self.design.weight is not None and self.design.is_drawn_by_weight:
            queries = np.unique(np.concatenate([pairs.query for pairs in batches]))
            self._weight = self.design.weight.copy()
            self._weight[queries] = self.weigh(queries, queries)
        self.inner.prefetch(batches)

    def weigh(self, rows: Array, sampled: Array) -> Array:
        """Return the sampling weight of each of `rows`: its weight divided by the probability of being sampled.

        The probability follows from the current sample, whose rows are `sampled`.
        """
        assert self.design.weight is not None
        weight: Array = self.design.weight[rows]
        if not self.design.is_drawn_by_weight:
            return weight
        ids = np.flatnonzero(self._usable)
        values, inside = self._sampling_numbers(ids, self._seed), np.isin(ids, sampled)
        classes = np.zeros(len(self.targets), np.int64) if self._is_numeric else self.targets
        for c in np.unique(classes[rows]):
            mine, in_class = classes[rows] == c, classes[ids] == c
            outside = values[in_class & ~inside]
            outside = outside[outside > values[in_class & inside].max(initial=0.0)]
            if len(outside):
                weight[mine] = weigh_by_inclusion(weight[mine], float(outside.min()))
        return weight

    # --- neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        found = Neighbours.zero(len(sample.row), search.n_groups, search.size)
        target = np.full(found.row.shape, -1, self.targets.dtype)
        stratum = self.design.strata(len(self.targets))
        if self.inner.rereads_data:
            parts = [np.unique(stratum)]
        else:
            parts = [np.array([s]) for s in np.unique(stratum[sample.row])]
        try:
            for strata in parts:
                lines = np.flatnonzero(np.isin(stratum[sample.row], strata))
                if len(lines):
                    some = self._nearest_in(strata, sample.part(lines), difference, search)
                    found.d2[lines], found.key[lines], found.row[lines] = some
        finally:
            self.inner.retarget(self.targets, self._usable)
        known = found.row >= 0
        target[known] = self.targets[found.row[known]]
        return replace(found, target=target)

    def _nearest_in(
        self, strata: Array, sample: Sample, difference: Difference, search: Search
    ) -> tuple[Array, Array, Array]:
        """Return d², key and row of the nearest allowed rows of each query. All queries belong to the given strata."""
        m, n_classes = len(self.targets), search.n_groups
        usable = self._usable & np.isin(self.design.strata(m), strata)
        stratum = np.searchsorted(strata, self.design.strata(m))
        classes = np.zeros(m, np.int64) if n_classes == 1 else self.targets.astype(np.int64)
        cell = np.where(usable, stratum * n_classes + classes, 0)
        bucket, n_buckets, extra = self._own_buckets(cell, usable, search.size)
        cells = (cell * n_buckets + bucket).astype(np.int32)
        self.inner.retarget(cells, usable)
        wide = Search(search.size + extra, len(strata) * n_classes * n_buckets, search.seed)
        found = self.inner.nearest(sample, difference, wide)
        shape = len(sample.row), len(strata), n_classes, n_buckets * wide.size
        line = np.arange(len(sample.row))
        d2, key, row = (
            getattr(found, x).reshape(shape)[line, stratum[sample.row]].copy() for x in ("d2", "key", "row")
        )
        excluded = row < 0
        if self.design.group is not None:
            excluded |= self.design.group[row] == self.design.group[sample.row][:, None, None]
        d2[excluded], key[excluded], row[excluded] = np.inf, np.iinfo(np.uint64).max, -1
        order = np.lexsort((key, d2), axis=2)[:, :, : search.size]
        d2, key, row = (np.take_along_axis(x, order, axis=2) for x in (d2, key, row))
        short = search.size - d2.shape[2]
        if short > 0:
            pad = ((0, 0), (0, 0), (0, short))
            d2, key = np.pad(d2, pad, constant_values=np.inf), np.pad(key, pad, constant_values=np.iinfo(key.dtype).max)
            row = np.pad(row, pad, constant_values=-1)
        return d2, key, row

    def _own_buckets(self, cell: Array, usable: Array, k: int) -> tuple[Array, int, int]:
        """Divide cells into buckets by group: one bucket for each large group, and bucket 0 for all small groups.

        Return the bucket of each row, the number of buckets, and how many more rows to search for.

        A query of a large group ignores the bucket of its group. A query of a small group may find rows of its own
        group in bucket 0. So the search returns more rows: as many as the largest small group has in a cell.
        """
        bucket = np.zeros(len(cell), np.int64)
        if self.design.group is None:
            return bucket, 1, 0
        group = self.design.group
        pair, count = np.unique(group[usable] * (int(cell.max()) + 1) + cell[usable], return_counts=True)
        largest = np.zeros(int(group.max()) + 1, np.int64)
        np.maximum.at(largest, pair // (int(cell.max()) + 1), count)
        order = np.argsort(-largest, kind="stable")
        # limit[n]: how many rows the largest small group has in a cell, if n groups have their own buckets
        limit = np.r_[largest[order], 0][: MAX_OWN_GROUPS + 1]
        n_own = int(np.argmin((1 + np.arange(len(limit))) * (k + limit)))
        number = np.zeros(len(largest), np.int64)
        number[order[:n_own]] = 1 + np.arange(n_own)
        return number[group], 1 + n_own, int(limit[n_own])

    # --- sums ---

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        """Yield the sums over each batch of pairs. The weight of a pair is the product of the weights of its rows."""
        if self.design.weight is None:
            yield from self.inner.tally(batches, difference, rates)
            return
        assert self._weight is not None
        unit = float(self._weight.max()) * float(self.design.weight.max())
        split = []
        for pairs in batches:
            share = self._weight[pairs.query] * self.design.weight[pairs.neighbour] / unit
            # a share of each pair is added to the sum `kind`, and the rest to the next sum, which is ignored
            pairs = replace(pairs, coupled=False)
            if pairs.weight is None:
                split.append(replace(pairs, kind=2 * pairs.kind, n_kinds=2 * pairs.n_kinds, weight=share))
            else:
                shares = (share * pairs.weight, share * (1.0 - pairs.weight))
                split += [replace(pairs, n_kinds=2, weight=x) for x in shares]
        sums = self.inner.tally(split, difference, rates)
        for pairs in batches:
            parts = [next(sums)] if pairs.weight is None else [next(sums), next(sums)]
            total, count = (np.concatenate([getattr(x, f)[0::2] for x in parts]) for f in ("total", "count"))
            nothing = Tally.zero(pairs, total.shape[1], rates is not None)
            known = {"rates": parts[0].rates, "unweighted": parts[0].count.sum(axis=0) + np.zeros(total.shape[1])}
            yield replace(nothing, total=total, count=count, n_pairs=len(pairs), **known)
