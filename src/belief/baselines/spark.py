"""mRMR on Spark DataFrames, classic and Connect: the paper's DmRMR.

    stage ─► quantiles of a sample ─► blocks of codes, persisted ─► a pass for the class, and for each feature selected
    (input read once)                 (a byte for a cell)           (tables of counts, summed over the blocks)

The selection is that of `belief.baselines.mrmr`; here are only the counts that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import issparse

from belief.baselines.base import checks
from belief.baselines.information import information_of
from belief.baselines.mrmr import MRMR, as_codes, checked_settings, mrmr
from belief.engines.base import spans
from belief.engines.spark.blocks import Block, Placed
from belief.engines.spark.engine import SLICE, SparkEngine
from belief.engines.spark.frame import open_frame
from belief.engines.spark.merging import joined
from belief.engines.spark.store import ANSWERS, Files, Persisted, answered
from belief.engines.spark.tasks import Answer, Describe, Job, summary_of
from belief.engines.spark.wire import unpack
from belief.method.algorithm import constants_last
from belief.method.arrays import Array
from belief.method.selection import Selection
from belief.method.summary import Summary
from belief.result import Numbered

CUT_ROWS, CUT_BYTES = 10_000, 2**28  # of the sample whose quantiles are the cuts
TABLE_BYTES = 2**30  # of all contingency tables with one feature


@dataclass(frozen=True)
class FrameSelection(Selection):
    """The features in order of selection, the score of each, and what is known of all features."""

    weights: Array  # the mutual information of every feature with the class, in nats
    names: Sequence[str]

    @property
    def selected_names(self) -> list[str]:
        """The names of the selected features, in order of selection."""
        return [self.names[j] for j in self.selected]


def mrmr_frame(
    df: Any,
    *,
    features: str | Sequence[str],
    label: str,
    n: int | float = 10,
    form: str = "difference",
    bins: int | None = 10,
    discrete_features: Any = "auto",
    staging: str = "auto",
) -> FrameSelection:
    """Select features of a Spark DataFrame by mRMR, where it is.

    The input is read once; then there is one pass over its codes for the class and one for each feature selected but
    the last, which counts the contingency tables of that feature with all others. Given the codes, all mutual
    information is exact.

    Parameters
    ----------
    df : DataFrame
        Of classic Spark or of Spark Connect.
    features : str or list of str
        A column of vectors, or the names of plain columns (numbers, booleans, strings; null is missing).
    label : str
        The column that holds the class.
    n : int or float, default=10
        How many features to select, or which share of them.
    form : {"difference", "quotient"}, default="difference"
        Relevance less redundancy, or divided by it.
    bins : int or None, default=10
        Into how many bins of equal frequency a continuous feature is cut; None: every value is a level.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, whose values are their levels. "auto": strings, booleans, and what is nominal by its ML
        attributes.
    staging : str, default="auto"
        Where blocks of the rows are held; see :func:`belief.engines.spark.select_frame`.

    Returns
    -------
    FrameSelection

    Notes
    -----
    The cuts are the quantiles of a sample of 10,000 rows (fewer where there are more than 3,300 features); a table of
    no more rows is cut, and its features are selected, exactly as `belief.baselines.MRMR` does it. Vectors that are
    mostly sparse are not cut: a value is 0 or it is not, whatever `bins` and `discrete_features` say.
    """
    settings = checked_settings(MRMR(n, form=form, bins=bins))
    given = open_frame(df, features, label, discrete_features)
    columns = CodedColumns(df.sparkSession, given.df, given.reader, given.discrete, staging, lambda what: None)
    with columns:
        summary = columns.describe()
        checks(settings, given.names)(summary)
        names = given.names or Numbered(columns.n_features)
        columns.encode(summary, bins, names)
        relevance, constant = columns.relevance()
        count = settings.select_of(len(relevance))
        found = mrmr(np.where(constant, -np.inf, relevance), columns.redundancy_of, count, form)
    found = constants_last(found, constant, count)
    return FrameSelection(found.selected, found.scores, relevance, names)


class CodedColumns(SparkEngine):
    """The columns of a DataFrame as codes, and the mutual information between them; to be used as a context."""

    levels: Array

    def encode(self, summary: Summary, bins: int | None, names: Sequence[str]) -> None:
        """Put codes in the place of the values, in all blocks."""
        upto = self._cuts(summary, bins) if self._store.dense else None
        self.levels = np.full(self.n_features, 2) if upto is None else np.array([len(x) + 2 for x in upto])
        most = int(np.argmax(self.levels))
        if upto is not None and 8 * int(self.levels.sum()) * int(self.levels[most]) > TABLE_BYTES:
            raise ValueError(
                f"Feature {names[most]!r} has {self.levels[most] - 2} levels, too many for tables with all others: cut"
                " it into bins, or leave it out."
            )
        first = np.array([x.first for x in self._store.placed])
        self._store = Coded(self._store, Encode(upto, first))  # type: ignore[assignment]

    def _cuts(self, summary: Summary, bins: int | None) -> list[Array]:
        """Of each feature, the largest value of every level but the last; the levels themselves if it is discrete."""
        discrete = self.discrete
        if bins is None and not discrete.all():
            discrete = np.ones(self.n_features, bool)
            parts = self._run(Describe(self.n_features, discrete, self._slice(48)), 48 * self.n_features, "describing")
            summary = joined([summary_of(parts[i]) for i in sorted(parts)])
        upto = np.split(summary.levels.value, np.searchsorted(summary.levels.feature, np.arange(1, self.n_features)))
        if bins is not None and not discrete.all():
            n = min(self.m, CUT_ROWS, max(100, CUT_BYTES // (8 * self.n_features)))
            self.sample(np.array([n]), seed=0)
            for j in np.flatnonzero(~discrete):
                upto[j] = cuts(self._queries[:, j], bins)
        return upto

    def relevance(self) -> tuple[Array, Array]:
        """I of every feature with the class, and which features are constant."""
        tables = self._tables(None, self.n_classes)
        used = np.add.reduceat(tables.any(axis=1).astype(int), self._starts)
        return information_of(tables, self._starts), used < 2

    def redundancy_of(self, j: int) -> Array:
        """I of every feature with the j-th."""
        return information_of(self._tables(j, int(self.levels[j])), self._starts)

    @property
    def _starts(self) -> Array:
        return np.cumsum(self.levels) - self.levels

    def _tables(self, feature: int | None, n_target: int) -> Array:
        """The contingency tables of all features with one of them, or with the class, one below the other."""
        job = Count(feature, n_target, self.levels)
        found = self._run(job, 8 * int(self.levels.sum()) * n_target, "counting")
        return np.concatenate([found[i]["counts"] for i in sorted(found)])


def cuts(x: Array, bins: int) -> Array:
    """The largest value of every level but the last, so that a value on a cut belongs below it."""
    x = x[~np.isnan(x)]
    if not len(x):
        return x
    codes = as_codes(x, bins)
    largest = np.full(int(codes.max()) + 1, -np.inf)
    np.maximum.at(largest, codes, x)
    return largest[:-1]


# --- on the executors ---


@dataclass(frozen=True)
class Encode:
    """Blocks of codes (features x rows) from blocks of rows; of sparse rows, where they are not 0."""

    upto: Sequence[Array] | None  # None: sparse rows
    first: Array  # the first row of each block

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X = block.X
            codes = {"indptr": X.indptr, "indices": X.indices} if issparse(X) else {"codes": self._codes(X)}
            yield int(np.searchsorted(self.first, block.first)), {"label": block.labels, **codes}

    def _codes(self, X: Array) -> Array:
        assert self.upto is not None
        small = max(map(len, self.upto)) + 2 <= 256
        out = np.empty(X.shape[::-1], np.uint8 if small else np.int32)
        for j, upto in enumerate(self.upto):
            missing = np.isnan(X[:, j])
            out[j] = np.where(missing, len(upto) + 1, np.searchsorted(upto, X[:, j]))
        return out

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return answers[0]  # every slice is one block's


@dataclass(frozen=True)
class Count:
    """The contingency tables of all features with one of them, or with the class, by slices of features."""

    feature: int | None
    n_target: int
    levels: Array

    def run(self, blocks: Iterator[Block], n_jobs: int) -> Iterator[Answer]:
        start = np.concatenate([[0], np.cumsum(self.levels)])
        counts = np.zeros((start[-1], self.n_target), np.int64)
        rows = np.zeros(self.n_target, np.int64)
        sparse = False
        for block in blocks:
            sparse = "codes" not in block.X
            target = block.labels if self.feature is None else column(block.X, self.feature)
            rows += np.bincount(target, minlength=self.n_target)
            if sparse:
                count_present(block.X["indptr"], block.X["indices"], target, counts)
            else:
                count(block.X["codes"], start, target, counts)
        if sparse:
            counts[::2] = rows - counts[1::2]
        for i, (a, b) in enumerate(spans(len(self.levels), SLICE)):
            yield i, {"counts": counts[start[a] : start[b]]}

    @staticmethod
    def merge(answers: Sequence[dict[str, Array]]) -> dict[str, Any]:
        return {"counts": np.sum([x["counts"] for x in answers], axis=0)}


def column(codes: dict[str, Array], j: int) -> Array:
    """The codes of one feature in a block."""
    if "codes" in codes:
        return codes["codes"][j]
    indptr = codes["indptr"]
    present = np.zeros(len(indptr) - 1, np.uint8)
    present[np.searchsorted(indptr, np.flatnonzero(codes["indices"] == j), side="right") - 1] = 1
    return present


@njit(cache=True, nogil=True)
def count(codes: Array, start: Array, target: Array, counts: Array) -> None:
    """Add the rows of a block to the tables."""
    for j in range(len(codes)):
        for r in range(len(target)):
            counts[start[j] + codes[j, r], target[r]] += 1


@njit(cache=True, nogil=True)
def count_present(indptr: Array, indices: Array, target: Array, counts: Array) -> None:
    """The same of sparse rows, where a feature has two levels; only those that are not 0."""
    for r in range(len(target)):
        for p in range(indptr[r], indptr[r + 1]):
            counts[2 * np.int64(indices[p]) + 1, target[r]] += 1


class Coded:
    """Blocks of codes in a persisted DataFrame, computed again from the staged blocks if they are lost."""

    def __init__(self, store: Files | Persisted, job: Encode) -> None:
        from pyspark import StorageLevel

        self._store, self.placed, self.tasks = store, store.placed, store.tasks
        self._table = store.answers(job).where("slice >= 0").persist(StorageLevel.MEMORY_AND_DISK)

    def answers(self, job: Job) -> Any:
        placed = self.placed

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            return answered(job, coded_blocks(batches, placed))

        return self._table.mapInArrow(run, ANSWERS)

    def close(self) -> None:
        self._table.unpersist()
        self._store.close()


def coded_blocks(batches: Iterator[Any], placed: Sequence[Placed]) -> Iterator[tuple[int, Block]]:
    """The blocks of codes in the order Spark has them."""
    for batch in batches:
        for where, data in zip(batch.column(1), batch.column(2), strict=True):
            held = unpack(data.as_buffer())
            labels = held.pop("label")
            yield where.as_py(), Block(held, labels, placed[where.as_py()].first)
