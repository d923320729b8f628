"""The engine for sparse rows on one machine. It allocates no array of size rows x features.

The queries are indexed by feature, and each row is compared with all queries through this index. A row that has no
non-zero feature in common with a query can still be its neighbour, if the norm of the row is small.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from belief.data.source import Located, SparseSource, as_read_only
from belief.engines.block.rates import MAX_PARTS, MIN_PART_PAIRS, cut_pairs
from belief.engines.block.rounded_sparse import SparseRoundedSearch
from belief.engines.block.rows import RowEngine
from belief.engines.block.threads import spans
from belief.engines.suspicious import MAX_WIDTH, spread_rows
from belief.kernels import dense, sparse
from belief.kernels.shapes import cut_between_queries, reaches
from belief.method.arrays import Array
from belief.method.copies import column_keys
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.protocols import Search, Visit
from belief.method.redundancy.collisions import Collisions, Watch, joint_from_complement, without_noise
from belief.method.relevance import scale_spread
from belief.method.sampling import TIES, Sample, row_keys
from belief.method.summary import MAX_GROUPS, Levels, Summary, can_count_groups, pad_groups

ROWS_PER_TASK = 8192
COPIED_SHARE = 0.5  # if a search uses at most this share of the columns, they are copied out of the rows
DENSE_COLUMNS = 2  # joint sums use dense values for up to this many columns per non-zero value of an average row
VECTOR_SHARE = 0.125  # a feature that is non-zero in a larger share of the queries is stored as a dense vector


def as_csr(X: csr_array) -> sparse.Csr:
    """Return the three arrays of a CSR matrix in the form that kernels accept."""
    return sparse.Csr(as_read_only(X.indptr), as_read_only(X.indices), as_read_only(X.data))


class NonZeros:
    """An accumulator of the moments of non-zero values, from which the summary of all values is derived."""

    def __init__(self, discrete: Array) -> None:
        n_features = len(discrete)
        self.m, self.discrete, self.levels = 0, discrete, [Levels.zero()]  # levels of the non-zeros
        self.nonzero = np.zeros(n_features, np.int64)
        self.origin, self.shift, self.m2 = np.zeros((3, n_features))
        self.least, self.most = np.full(n_features, np.inf), np.full(n_features, -np.inf)
        self.between = np.zeros(n_features, bool)
        self.group_rows = np.zeros(0, np.int64)
        self.total, self.total_shift = np.zeros((2, 0, n_features))  # Σx and Σ(x - origin) per group

    def add(self, rows: sparse.Csr, first: int | None = None, groups: Array | None = None) -> None:
        """Add a block of rows to the moments.

        Parameters
        ----------
        first : the number of the block's first row; None: the block follows the previous one
        groups : the group of each row, numbered from 0; -1 for rows of unknown group, None if all are unknown
        """
        group = np.zeros(0, np.int32)  # empty: no sums by group
        n = 0 if groups is None else max(int(groups.max(initial=-1)) + 1, len(self.total))
        if groups is not None and n and can_count_groups(n, len(self.m2)):
            group = groups.astype(np.int32)
            self.group_rows = np.bincount(groups, minlength=n) + pad_groups(self.group_rows, n, axis=0)
            self.total, self.total_shift = (pad_groups(x, n, axis=0) for x in (self.total, self.total_shift))
        moments = (self.nonzero, self.origin, self.shift, self.m2, self.least, self.most, self.between)
        sums = (self.total, self.total_shift) if len(group) else (self.total[:0], self.total_shift[:0])
        bad = sparse.moments(rows, *moments, group, *sums)
        if bad >= 0:
            i = (self.m if first is None else first) + int(np.searchsorted(rows.start, bad, side="right")) - 1
            raise ValueError(
                f"Input X contains NaN (row {i}, column {rows.column[bad]}): missing values in sparse data are not"
                " supported. Replace them, or pass a dense matrix."
            )
        self.m += len(rows.start) - 1
        if self.discrete.any():
            self.levels.append(self._levels(rows, group))

    def _levels(self, rows: sparse.Csr, group: Array) -> Levels:
        """Return the non-zero levels of discrete features in a block, and their counts."""
        cells = np.flatnonzero(self.discrete[rows.column] & (rows.value != 0.0))
        n = len(self.total) if len(group) and len(self.total) <= MAX_GROUPS else 0
        code, lines = np.repeat(group, np.diff(rows.start))[cells] if n else 0, max(n, 1)
        table = np.stack([rows.column[cells], rows.value[cells]], axis=1, dtype=float)
        values, which = np.unique(table, axis=0, return_inverse=True)
        count = np.bincount(which * lines + code, minlength=len(values) * lines).reshape(len(values), lines)
        return Levels(values[:, 0].astype(np.int64), values[:, 1], count.sum(axis=1), count[:, :n])

    def summary(self) -> Summary:
        F, m, n = len(self.m2), self.m, self.nonzero
        some = n < m  # features that have zeros
        least, most = self.least.copy(), self.most.copy()
        between = self.between | (some & (least < most))
        least[some], most[some] = np.minimum(least[some], 0.0), np.maximum(most[some], 0.0)
        with np.errstate(over="ignore"):  # if values are too large to square, a later check names the feature
            mean = self.origin + self.shift
            m2 = self.m2 + mean**2 * n * ((m - n) / m)  # Chan's formula, with m - n zeros
        levels = Levels.merged(self.levels)
        if self.discrete.any():  # add the zeros
            count, groups = np.zeros(F, np.int64), np.zeros((F, levels.groups.shape[1]), np.int64)
            np.add.at(count, levels.feature, levels.count)
            np.add.at(groups, levels.feature, levels.groups)
            feature = np.flatnonzero(self.discrete & (count < m))
            of_groups = self.group_rows[: groups.shape[1]] - groups[feature]
            zeros = Levels(feature, np.zeros(len(feature)), m - count[feature], of_groups)
            levels = Levels.merged([levels, zeros])
        rows = np.broadcast_to(self.group_rows[:, None].astype(float), self.total.shape)
        # columns without zeros may have a large mean, for which Σx is not precise enough
        shift, total = np.where(some, mean * (n / m), self.shift), np.where(some, self.total, self.total_shift)
        return Summary(
            m, np.full(F, float(m)), shift, m2, least, most, n.astype(float), between,
            levels, rows, total, np.where(some, 0.0, self.origin),
        )  # fmt: skip


class SparseEngine(RowEngine):
    """The engine over the rows of CSR matrices, which may be a block or a whole table.

    The matrices must have sorted indices without duplicates.
    """

    def __init__(self, source: SparseSource, *about: Any) -> None:
        super().__init__(source, *about)
        self.blocks = source.blocks
        self.csr = [as_csr(X) for X in self.blocks]
        self.starts = np.cumsum([0] + [X.shape[0] for X in self.blocks])

    # --- 1. the summary ---

    def describe(self) -> Summary:
        found, has_groups = NonZeros(self.discrete), self._count_groups() > 0
        for rows, a in zip(self.csr, self.starts, strict=False):
            found.add(rows, groups=self.targets[a : a + len(rows.start) - 1] if has_groups else None)
        return found.summary()

    def _all_values(self) -> Iterator[Array]:
        return (x for X in self.blocks for x in (X.indptr, X.indices, X.data))

    def identities(self) -> Array:
        out, keys = np.zeros(self.m, np.uint64), column_keys(np.arange(self.n_features))
        for rows, a, b in zip(self.csr, self.starts[:-1], self.starts[1:], strict=True):
            sparse.add_identities(rows, keys, out[a:b])
        return out

    def rows(self, ids: Array, columns: Array) -> Array:
        return self._gather(ids)[:, columns].toarray().astype(np.float64)

    def peek(self) -> tuple[Array, Array] | None:
        if self.n_features > MAX_WIDTH:
            return None
        ids = spread_rows(self.m, self.n_features)
        return self.rows(ids, np.arange(self.n_features)), self.targets[ids]

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        rows = SearchRows(self.csr, difference, self.working_memory // (8 * self.n_jobs))
        X = rows.take(self._gather(sample.row) if visit is None else visit.queries)
        first, scale = 0 if visit is None else visit.first, rows.scale
        queries, by, norm = as_csr(X), postings(X, scale), np.zeros(X.shape[0])
        sparse.norms(queries, scale, norm)
        found = Neighbours.zero(X.shape[0], search.n_groups, search.size) if visit is None else visit.found.copy()
        rounded = SparseRoundedSearch(self, rows, X, queries, sample.row, difference.typical, search, first, found)

        def search_index(first_row: int, stop: int) -> None:
            own, results = threading.local(), [found]

            def task(span: tuple[int, int, int]) -> None:
                if not hasattr(own, "found"):
                    own.found = Neighbours.zero(X.shape[0], search.n_groups, search.size)
                    results.append(own.found)
                block, a, b = span
                start = int(self.starts[block])
                group = self.targets[start + a : start + b] if search.n_groups > 1 else np.zeros(b - a, np.int32)
                if self.counted is not None:
                    group = np.where(self.counted[start + a : start + b], group, -1)
                best = (own.found.d2, own.found.key, own.found.row)
                key = row_keys(search.seed, TIES, np.arange(a, b) + first + start)
                tile, at = rows.read(block, a, b)
                place, id_of_first = (at, at + b - a), first + start + a - at
                sparse.nearest(tile, place, id_of_first, group, key, queries, norm, sample.row, by, scale, best)

            work = self.cut_rows(first_row, stop, rows.limit(ROWS_PER_TASK, rounded.entries))
            done = first_row
            for (_, a, b), _ in zip(work, self.map(task, work), strict=True):
                done += b - a
                self.report(done, self.m)
            merged = reduce(Neighbours.merge, results)
            found.d2[:], found.key[:], found.row[:] = merged.d2, merged.key, merged.row

        kind = rounded.choose_instructions()
        done = 0 if kind is None else rounded.run(kind, partial(search_index, 0))
        search_index(done, self.m)
        return found.with_targets(first, self.targets, visit.found if visit else None)

    def cut_rows(self, first: int, stop: int, most: int) -> list[tuple[int, int, int]]:
        """Cut the rows from `first` to `stop` into tasks of at most `most` rows, each in one block.

        Each task is (block, start, stop), with the positions of the rows within the block.
        """
        out = []
        for block, (a, b) in enumerate(pairwise(self.starts.tolist())):
            lo, hi = max(first, a), min(stop, b)
            out += [(block, lo - a + i, lo - a + j) for i, j in spans(max(hi - lo, 0), most)]
        return out

    def _gather(self, ids: Array) -> csr_array:
        """Return the rows with these ids as one CSR matrix, in the order of the ids."""
        home = np.searchsorted(self.starts, ids, side="right") - 1
        order = np.argsort(home, kind="stable")
        parts = [self.blocks[i][ids[home == i] - self.starts[i]] for i in np.unique(home)]
        stacked = parts[0] if len(parts) == 1 else vstack(parts, format="csr")
        return stacked if len(parts) == 1 else stacked[np.argsort(order)]

    # --- 4. and 5. the tally ---

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        return (self._tally(pairs, difference, rates) for pairs in batches)

    def _tally(self, pairs: Pairs, difference: Difference, rates: Collisions | None) -> Tally:
        lines, _, n_groups = pairs.spread_shape
        weight = np.zeros(0) if pairs.weight is None else pairs.weight
        limits = reaches(difference, rates.kappa if rates else 1.0, slice(None))
        Q, query, N, neighbour = self._locate(pairs)

        def task(part: slice) -> tuple[Array, ...]:
            total, e = np.zeros((pairs.n_kinds, self.n_features)), np.zeros(self.n_features if rates else 0)
            spread = np.zeros((lines, n_groups, self.n_features))
            kind, share = pairs.kind[part], weight[part]
            sparse.tally(Q, query[part], N, neighbour[part], kind, share, limits, total, e, spread)
            return total, e, spread

        n_parts = int(
            np.clip(
                self.working_memory // 8 // (8 * self.n_features * (pairs.n_kinds + lines * n_groups)), 1, MAX_PARTS
            )
        )
        cuts = cut_between_queries(pairs, max(MIN_PART_PAIRS, -(-len(pairs) // n_parts)))
        total, e, spread = reduce(_add, self.map(task, cuts or [slice(0, 0)]))
        per_unit = difference.per_unit
        total *= per_unit
        scale_spread(spread, pairs, per_unit)
        return Tally.from_sums(pairs, total, without_noise(len(pairs) - e, len(pairs)), spread)

    def _locate(self, pairs: Pairs) -> tuple[sparse.Csr, Array, sparse.Csr, Array]:
        """Return a matrix of queries and the row of each pair's query in it, then the same for the neighbours."""
        if len(self.blocks) == 1:
            return self.csr[0], pairs.query, self.csr[0], pairs.neighbour
        ids, query = np.unique(pairs.query, return_inverse=True)
        others, neighbour = np.unique(pairs.neighbour, return_inverse=True)
        return as_csr(self._gather(ids)), query, as_csr(self._gather(others)), neighbour

    def _joint(self, pairs: Pairs, difference: Difference, rates: Collisions, watched: Array, columns: Array) -> Joint:
        """Return joint sums, computed from dense values for few features, and otherwise from non-zero values."""
        entries_per_row = sum(X.nnz for X in self.blocks) / max(self.m, 1)
        if len(np.union1d(watched, columns)) <= DENSE_COLUMNS * entries_per_row:
            return super()._joint(pairs, difference, rates, watched, columns)
        line, place = np.full(self.n_features, -1, np.int32), np.full(self.n_features, -1, np.int32)
        line[watched], place[columns] = np.arange(len(watched)), np.arange(len(columns))
        limits, (Q, query, N, neighbour) = reaches(difference, rates.kappa, slice(None)), self._locate(pairs)

        def task(part: slice) -> tuple[Array, ...]:
            lines, across = np.zeros((2, len(watched))), np.zeros((2, len(columns)))
            cross = np.zeros((len(watched), len(columns)))
            by_rate = rates.by == "rate"
            sparse.collisions(Q, query[part], N, neighbour[part], limits, by_rate, line, place, lines, across, cross)
            return lines, across, cross

        is_small = MAX_PARTS * 8 * len(watched) * len(columns) <= self.working_memory // 8
        parts = self.map(task, cut_pairs(len(pairs)) if is_small else [slice(0, len(pairs))])
        return joint_from_complement(rates, len(pairs), *reduce(_add, parts))

    @property
    def kernels(self) -> ModuleType:
        return dense

    def _read_columns(self, ids: Array, columns: Array) -> Located:
        out = np.empty((len(ids), len(columns)))
        self._fill(out, ids, columns, (0, len(ids)))
        return as_read_only(out), np.arange(len(ids)), 0

    def _read_all_columns(self, ids: Array, columns: Array) -> Located:
        out = np.empty((len(ids), len(columns)))
        deque(self.map(partial(self._fill, out, ids, columns), spans(len(ids), ROWS_PER_TASK)), maxlen=0)
        return as_read_only(out), np.arange(len(ids)), 0

    def _fill(self, out: Array, ids: Array, columns: Array, span: tuple[int, int]) -> None:
        """Write some columns of the rows ids[a:b] to the lines a to b of `out`, where `span` is (a, b)."""
        order, part = np.argsort(columns), np.arange(*span)
        home = np.searchsorted(self.starts, ids[part], side="right") - 1
        for i in np.unique(home):
            here = part[home == i]
            sparse.gather(self.csr[i], ids[here] - self.starts[i], columns[order], order, here, out)

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        return [seen.joint for seen in self.joint(difference, rates, watches, columns)]  # the exact sums are cheap


class SearchRows:
    """The rows of a search. If the search uses only few columns, these are copied tile by tile.

    Parameters
    ----------
    blocks : the blocks of all rows
    memory : bytes that each thread may use for copies
    """

    def __init__(self, blocks: list[sparse.Csr], difference: Difference, memory: int) -> None:
        per_unit, self._blocks, self._memory = difference.per_unit, blocks, memory
        self._live = np.flatnonzero(per_unit > 0)
        self._is_whole = len(self._live) > COPIED_SHARE * len(per_unit)
        if self._is_whole:
            self._live = np.arange(len(per_unit))
        self._place = np.full(len(per_unit), -1, np.int32)
        self._place[self._live] = np.arange(len(self._live))
        self.scale = sparse.Scale(per_unit[self._live], difference.discrete[self._live])

    def take(self, X: csr_array) -> csr_array:
        """Keep only the columns of X that the search uses."""
        return X if self._is_whole else X[:, self._live]

    def limit(self, height: int, entries: float) -> int:
        """Return how many rows to read at once, at most `height`, if rows have this number of entries on average."""
        return height if self._is_whole else max(min(height, int(self._memory / (16 * entries + 16))), 1)

    def read(self, block: int, first: int, stop: int) -> tuple[sparse.Csr, int]:
        """Return a matrix that contains the rows `first` to `stop` of a block, and the position of `first` in it."""
        rows = self._blocks[block]
        if self._is_whole:
            return rows, first
        return sparse.Csr(*map(as_read_only, sparse.take_columns(rows, first, stop, self._place))), 0


def _add(x: tuple[Array, ...], y: tuple[Array, ...]) -> tuple[Array, ...]:
    """Add each array of y to the corresponding array of x, in place; return x."""
    for a, b in zip(x, y, strict=True):
        a += b
    return x


def postings(X: csr_array, scale: sparse.Scale) -> sparse.Postings:
    """Return an index that lists the queries with a non-zero value of each feature."""
    by_column = X.astype(np.float64).tocsc()
    column = np.repeat(np.arange(X.shape[1]), np.diff(by_column.indptr))
    by_column.data *= np.where(scale.discrete[column], 1.0, scale.per_unit[column])
    n = np.diff(by_column.indptr)
    present = np.flatnonzero(n)
    many = n[present] > VECTOR_SHARE * X.shape[0]
    lists, vectors = present[~many], present[many]
    slot = np.full(X.shape[1], -1, np.int32)
    slot[lists] = np.arange(len(lists))
    slot[vectors] = len(lists) + np.arange(len(vectors))
    listed = by_column[:, lists]
    vector = np.ascontiguousarray(by_column[:, vectors].toarray().T.astype(np.float64))
    return sparse.Postings(
        slot, listed.indptr.astype(np.int64), listed.indices.astype(np.int32), listed.data.astype(np.float64), vector
    )
