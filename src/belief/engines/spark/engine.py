"""BELIEF on Spark: the Engine protocol over a DataFrame, executors running the kernels of one machine on blocks.

    stage ─► blocks in files or persisted ─► describe ─► fetch the sample ─► search ─► weigh ─► collide
             (rows stay there)               sums        rows, once         locators   sums     small matrices

Only DataFrames are used (mapInArrow, applyInArrow), so classic Spark and Spark Connect are served alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import reduce
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from belief.data.labels import Labels
from belief.engines.base import Search, spans
from belief.engines.spark.blocks import Placed, Reader, Rows
from belief.engines.spark.merging import beside, frozen_rows, joined, merged, merged_table, refuse_lost
from belief.engines.spark.session import described, small_batches
from belief.engines.spark.store import (
    ANSWERS,
    COLLECT_BYTES,
    SEEN,
    Files,
    Persisted,
    Staged,
    refuse_shared_codes,
    store_for,
)
from belief.engines.spark.tasks import (
    Choose,
    Collide,
    Describe,
    Fetch,
    Here,
    Job,
    Nearest,
    Weigh,
    summary_of,
    tally_of,
)
from belief.engines.spark.wire import unpack
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.redundancy import Watch
from belief.method.sampling import Sample
from belief.method.summary import Summary

SPARSE_BELOW = 0.25  # vectors of which some are sparse are kept sparse if fewer of their values are not 0
SLICE = 2**20  # features whose sums are merged in one place, at the most
MERGE_BYTES = 2**28  # of answers that are merged in one place
QUERY_BYTES = 2**26  # of queries that travel with one search


class SparkEngine:
    """The Engine protocol over a DataFrame; to be used as a context."""

    n_features: int
    n_classes: int
    discrete: Array
    classes: Array
    at_once = 2048  # a job costs more

    def __init__(
        self, spark: Any, df: Any, reader: Reader, discrete: Array, staging: str, say: Callable[[str], None]
    ) -> None:
        self._spark, self._df, self._reader = spark, df, reader
        self.discrete = discrete
        self._say = say
        self._store = store_for(spark, staging)
        self._few: Files | Persisted | None = None
        self._sample: Sample | None = None
        self._batches: Sequence[Pairs] = []
        self._tallies: dict[int, Tally] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        stores = [self._store, *([self._few] if self._few not in (None, self._store) else [])]
        for store in stores:
            with suppress(Exception) if error else nullcontext():  # what went wrong before is what is told
                store.close()

    # --- 1. staging, and the summary ---

    def describe(self) -> Summary:
        with described(self._spark, self._say, "staging"), small_batches(self._spark):
            staged = self._store.stage(self._df, self._reader, self.discrete)
        if not any(x.rows for x in staged):
            raise ValueError("The DataFrame has no rows.")
        refuse_shared_codes(staged)
        self._place([x for x in staged if x.rows])
        F = self.n_features
        if self._reader.masked and len(self.discrete) != F:
            raise ValueError(f"discrete_features is a mask of {len(self.discrete)} values, but the vectors have {F}.")
        if len(self.discrete) > F:
            raise ValueError(f"discrete_features speaks of {len(self.discrete)} features, but the vectors have {F}.")
        self.discrete = np.concatenate([self.discrete, np.zeros(F - len(self.discrete), bool)])
        known = [summary_of(unpack(x.summary)) for x in staged if x.summary is not None]
        if sum(x.m for x in known) == self.m:
            summary = reduce(Summary.merge, known)
        else:
            parts = self._run(Describe(F, self.discrete, self._slice(6 * 8)), 6 * 8 * F, "describing")
            summary = joined([summary_of(parts[i]) for i in sorted(parts)])
        return replace(summary, class_counts=self._counts)

    def _place(self, staged: Sequence[Staged]) -> None:
        """Give every block its place in the whole, in the order zipWithIndex would have."""
        widths = sorted({x.about["width"] for x in staged})
        if len(widths) > 1:
            raise ValueError(
                f"The vectors of column {self._reader.features!r} differ in length: {widths[0]} in one partition,"
                f" {widths[-1]} in another: make them all as long."
            )
        labels = Labels(f"Column {self._reader.label!r}")
        for x in staged:  # the distinct labels of a block stand for all of its rows
            values = np.array(x.about["labels"])
            labels.add_coded(values, np.arange(len(values)))
        m = sum(x.rows for x in staged)
        labels.n_rows = m
        self.classes, codes = labels.finish()
        first = np.cumsum([0] + [x.rows for x in staged])
        cut = np.cumsum([0] + [len(x.about["labels"]) for x in staged])
        self.m, self.n_classes, self.n_features = m, len(self.classes), widths[0]
        self._store.placed = [
            Placed(x.partition, x.seq, x.rows, x.checksum, int(a), codes[i:j].astype(np.int32))
            for x, a, i, j in zip(staged, first[:-1], cut[:-1], cut[1:], strict=True)
        ]
        nonzero = sum(x.about["nonzero"] for x in staged)
        some_sparse = any(x.about["sparse"] for x in staged)
        self._store.dense = not (some_sparse and nonzero < SPARSE_BELOW * m * self.n_features)
        self._counts = np.zeros(self.n_classes, np.int64)
        for x, at in zip(staged, self._store.placed, strict=True):
            np.add.at(self._counts, at.classes, np.array(x.about["counts"]))

    def fingerprint(self) -> bytes:
        return np.array([x.checksum for x in self._store.placed], np.int64).tobytes()

    # --- 2. the sample, and its rows ---

    def sample(self, quota: Array, seed: int) -> Sample:
        if len(quota) > 1:
            chosen = self._run(Choose(quota, seed), 20 * int(quota.sum()), "sampling")[0]
            sample = Sample(chosen["key"], chosen["row"], chosen["label"])
        else:
            sample = Sample.zero()
            for a, b in spans(self.m, 2**20):
                ids = np.arange(a, b)
                sample = sample.merge(Sample.of(ids, np.zeros(len(ids), np.int32), quota, seed), quota)
        order = np.argsort(sample.row)
        found = self._run(Fetch(sample.row[order]), 8 * self.n_features * len(order), "fetching the sample")
        parts = [found[i] for i in sorted(found)]
        label = np.empty(len(order), np.int32)
        label[order] = np.concatenate([x["label"] for x in parts])
        self._rows, self._queries = sample.row[order], frozen_rows([self._rows_of(x) for x in parts])
        self._place_of_query = np.argsort(order)
        self._sample = replace(sample, label=label)
        return self._sample

    def _rows_of(self, x: dict[str, Array]) -> Rows:
        if "X" in x:
            return x["X"]
        return csr_array((x["data"], x["indices"], x["indptr"]), shape=(len(x["at"]), self.n_features))

    # --- 3. neighbours ---

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        queries = self._queries[self._place_of_query]  # in the order of the sample
        size = search.size * (self.n_classes if search.per_class else 1) * 28
        parts = []
        for a, b in spans(len(sample.row), self._portion()):
            mine = Sample(sample.key[a:b], sample.row[a:b], sample.label[a:b])
            job = Nearest(mine, queries[a:b], difference, search, self.n_classes, self._slice(size))
            found = self._run(job, size * (b - a), "searching")
            parts += [found[i] for i in sorted(found)]
        return Neighbours(*(np.concatenate([x[name] for x in parts]) for name in ("d2", "key", "row", "label")))

    # --- 4. and 5. the tally ---

    def expect(self, batches: Sequence[Pairs]) -> None:
        self._batches = batches
        self._few = self._store.keep(np.unique(np.concatenate([batch.neighbour for batch in batches])))

    def _portions(self, difference: Difference, kappa: float) -> Iterator[tuple[Here, Callable[[Pairs], Pairs]]]:
        """The queries in portions that can travel, and of some pairs those whose query is in the portion."""
        for a, b in spans(len(self._rows), self._portion()):
            rows = self._rows[a:b]

            def mine(pairs: Pairs, first: int = int(rows[0]), last: int = int(rows[-1])) -> Pairs:
                here = (pairs.query >= first) & (pairs.query <= last)
                return Pairs(pairs.query[here], pairs.neighbour[here], pairs.c[here], pairs.hit[here])

            yield Here(rows, self._queries[a:b], difference, kappa, self.n_classes), mine

    def _portion(self) -> int:
        """How many queries travel at a time."""
        wide = 8 * self.n_features if self._store.dense else 12 * (1 + self._queries.nnz // len(self._rows))
        return max(1, QUERY_BYTES // wide)

    def tally(self, pairs: Pairs, difference: Difference, kappa: float) -> Tally:
        if id(pairs) not in self._tallies:
            # the sums of all batches in one pass where they are small, since a pass costs more than they do
            each = 8 * (2 * self.n_classes + 1) * (2 if difference.missing else 1)
            size, width = each * self.n_features, self._slice(each)
            together = [x for x in self._batches if size * len(self._batches) <= COLLECT_BYTES] or [pairs]
            answers = [
                self._run(Weigh(here, [mine(x) for x in together], width), size * len(together), "weighing")
                for here, mine in self._portions(difference, kappa)
            ]
            found = {i: Weigh.merge([x[i] for x in answers]) for i in answers[0]}
            n = len(spans(self.n_features, width))
            for t, batch in enumerate(together):
                parts = [tally_of(found[t * n + i]) for i in range(n)]
                self._tallies[id(batch)] = beside(parts, difference.missing)
        return self._tallies.pop(id(pairs))

    def collide(self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        found = self._collide(difference, kappa, watches, columns, floor=False)
        return [Joint(x["joint"], x["pairs"]) for x in found]

    def collide_floor(
        self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        return [x["joint"] for x in self._collide(difference, kappa, watches, columns, floor=True)]

    def _collide(
        self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array, floor: bool
    ) -> list[dict[str, Array]]:
        size = 16 * len(columns) * sum(len(watched) for _, watched in watches)
        answers = []
        for here, mine in self._portions(difference, kappa):
            job = Collide(here, [(mine(pairs), watched) for pairs, watched in watches], columns, floor)
            answers.append(self._run(job, size, "comparing features"))
        return [Collide.merge([x[t] for x in answers]) for t in range(len(watches))]

    # --- jobs ---

    def _slice(self, size: int) -> int:
        """How many features (or queries) a slice of answers has, at `size` bytes each from every task."""
        return max(1, min(SLICE, MERGE_BYTES // (size * self._store.tasks)))

    def _run(self, job: Job, size: int, what: str) -> dict[int, dict[str, Array]]:
        """Run a job; its answers (of about `size` bytes from each task) merged, by slice."""
        store = self._few if self._few is not None and isinstance(job, Weigh | Collide) else self._store
        with described(self._spark, self._say, what):
            at_hand = store.fetched(job) if isinstance(job, Fetch) else None
            if at_hand is not None:
                return merged(job, at_hand, len(store.placed))
            answers = store.answers(job)
            if size * store.tasks > COLLECT_BYTES and not isinstance(job, Fetch):
                return self._merged_on_the_way(answers, job)
            rows = answers.collect()
        return merged(job, [(row.task, row.slice, bytes(row.data)) for row in rows], len(store.placed))

    def _merged_on_the_way(self, answers: Any, job: Job) -> dict[int, dict[str, Array]]:
        """Slices are merged by the executors, each in one place, and reach the driver one at a time."""
        n = len(self._store.placed)
        merge = type(job).merge

        def run(table: Any) -> Any:
            return merged_table(table, merge)

        out: dict[int, dict[str, Array]] = {}
        seen: list[Array] = []
        for row in answers.groupBy("slice").applyInArrow(run, ANSWERS).toLocalIterator():
            arrays = unpack(bytes(row.data))
            if row.slice == SEEN:
                seen.append(arrays["seen"])
            else:
                out[row.slice] = arrays
        refuse_lost(seen, n)
        return out
