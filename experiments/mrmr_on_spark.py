"""mRMR for DataFrames of classic Spark and Spark Connect. The BELIEF paper calls this distributed version DmRMR.

The rows are staged on the executors, and their values are replaced by codes: one byte per cell, or four if a feature
needs more than 256 codes. Continuous features are binned at the quantiles of a sample. Then one pass computes the
contingency tables of all features with the target, and one pass for each selected feature computes its contingency
tables with the other features. `belief.baselines.mrmr` selects the features.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit
from pyspark import StorageLevel, cloudpickle
from scipy.sparse import issparse
from scipy.special import xlogy

from belief._utils.names import DefaultNames
from belief.baselines.base import make_data_check
from belief.baselines.mrmr import MRMR, encode_levels, mrmr, validate_settings
from belief.engines.block.threads import spans
from belief.engines.spark.blocks import RowBlock
from belief.engines.spark.engine import ClusterEngine
from belief.engines.spark.executors import TableBlocks, frame_engine
from belief.engines.spark.frame import open_frame
from belief.engines.spark.jobs import Answer, Job
from belief.engines.spark.wire import unpack
from belief.method.arrays import Array
from belief.method.selection import Selection
from belief.method.summary import Summary

CUT_ROWS, CUT_BYTES = 10_000, 2**28  # maximum size of the sample from which the quantiles are computed
TABLE_BYTES = 2**30  # maximum size of the contingency tables of one feature with all features

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import the experiments


@dataclass(frozen=True)
class FrameSelection(Selection):
    """The selected features in order of selection, with their scores, and the weights of all features."""

    weights: Array  # the mutual information of each feature with the target, in nats
    names: Sequence[str]

    @property
    def selected_names(self) -> list[str]:
        """Names of the selected features, in order of selection."""
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
    """Select features of a Spark DataFrame by mRMR.

    The DataFrame is read once and encoded. A pass over the codes computes the relevance of all features. Another pass
    for each selected feature, except the last, computes its redundancy with all others from contingency tables. The
    mutual information of the codes is exact.

    Parameters
    ----------
    df : DataFrame
        A DataFrame of classic Spark or Spark Connect.
    features : str or list of str
        A column of vectors, or the names of plain columns (numbers, booleans or strings). Null is a missing value.
    label : str
        The name of the target column.
    n : int or float, default=10
        The number or share of features to select.
    form : {"difference", "quotient"}, default="difference"
        Relevance minus redundancy, or relevance divided by redundancy.
    bins : int or None, default=10
        The number of equal-frequency bins of a continuous feature. None: every distinct value is a level.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, which are not binned. "auto": strings, booleans, and features that the ML attributes of
        the column declare as nominal.
    staging : str, default="auto"
        Where the rows are held during the run, as in :func:`belief.spark.frames.select_frame`.

    Returns
    -------
    FrameSelection

    Notes
    -----
    The bins are separated by quantiles of a sample of 10,000 rows (fewer with more than 3,300 features). If the
    sample contains all rows, the selection is exactly that of `belief.baselines.MRMR`. If vectors are sparse, and less
    than a quarter of their values are non-zero, features are not binned: a value is encoded as zero or non-zero,
    regardless of `bins` and `discrete_features`.
    """
    settings = validate_settings(MRMR(n, form=form, bins=bins))
    frame = open_frame(df, features, label, discrete_features)
    with CodedColumns(frame_engine(frame, staging)) as columns:
        summary = columns.engine.describe()
        make_data_check(settings, frame.names)(summary, columns.engine.target)
        names = frame.names or DefaultNames(columns.engine.n_features)
        columns.encode(summary, bins, names)
        relevance, constant = columns.relevance()
        count = settings.resolve_n_features(len(relevance))
        found = mrmr(np.where(constant, -np.inf, relevance), columns.redundancy_of, count, form)
    found = found.append_constants(np.flatnonzero(constant), count)
    return FrameSelection(found.selected, found.scores, relevance, names)


class CodedColumns:
    """A context manager that holds the columns of a DataFrame as codes, and computes mutual information from them."""

    levels: Array  # the number of codes of each feature; in dense data, one of them marks missing values

    def __init__(self, engine: ClusterEngine) -> None:
        self.engine = engine
        self._coded: TableBlocks | None = None

    def __enter__(self) -> Self:
        self.engine.__enter__()
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        if self._coded is not None:
            with suppress(Exception) if error else nullcontext():  # a second error must not hide the first
                self._coded.release()
        self.engine.__exit__(error, *about)

    def encode(self, summary: Summary, bins: int | None, names: Sequence[str]) -> None:
        """Replace the values in all blocks by codes."""
        upto = self._compute_cuts(summary, bins) if self.engine.layout.dense else None
        self.levels = np.full(len(names), 2) if upto is None else np.array([len(x) + 2 for x in upto])
        widest = int(np.argmax(self.levels))
        if upto is not None and 8 * int(self.levels.sum()) * int(self.levels[widest]) > TABLE_BYTES:
            raise ValueError(
                f"Feature {names[widest]!r} has {self.levels[widest] - 2} levels, too many for contingency tables with"
                " all other features. Bin it, or drop it."
            )
        self._coded = persist_codes(self.engine.staged, Encode(upto))

    def _compute_cuts(self, summary: Summary, bins: int | None) -> list[Array]:
        """Return the sorted values that separate the levels of each feature.

        The code of a value is the number of these values that are smaller. For a continuous feature, they are the
        largest values of all bins but the last; for a discrete feature, they are all its values.
        """
        F, discrete = self.engine.n_features, self.engine.discrete
        if bins is None and not discrete.all():
            discrete = np.ones(F, bool)
            summary = self.engine.describe_as(discrete)
        upto = np.split(summary.levels.value, np.searchsorted(summary.levels.feature, np.arange(1, F)))
        if bins is not None and not discrete.all():
            sample = self.engine.sample(np.array([min(summary.m, CUT_ROWS, max(100, CUT_BYTES // (8 * F)))]), seed=0)
            rows = self.engine.queries.rows(np.sort(sample.row))
            for j in np.flatnonzero(~discrete):
                upto[j] = compute_cuts(rows[:, j], bins)
        return upto

    def relevance(self) -> tuple[Array, Array]:
        """Return the mutual information of every feature with the target, and the mask of constant features."""
        tables = self._tables(None, len(self.engine.target.counts))
        used = np.add.reduceat(tables.any(axis=1).astype(int), self._starts)
        return information_of_tables(tables, self._starts), used < 2

    def redundancy_of(self, j: int) -> Array:
        """Return the mutual information of every feature with feature j."""
        return information_of_tables(self._tables(j, int(self.levels[j])), self._starts)

    @property
    def _starts(self) -> Array:
        return np.cumsum(self.levels) - self.levels

    def _tables(self, feature: int | None, n_target: int) -> Array:
        """Return the stacked contingency tables of all features with one feature, or with the target (None)."""
        assert self._coded is not None, "encode first"
        found = self._coded.run(
            Count(feature, n_target, self.levels), 8 * int(self.levels.sum()) * n_target, "counting"
        )
        return np.concatenate([found[i]["counts"] for i in sorted(found)])


def compute_cuts(x: Array, bins: int) -> Array:
    """Return the cuts between the levels of a column: the largest value of every level but the last.

    A value that is equal to a cut belongs to the level below the cut.
    """
    x = x[~np.isnan(x)]
    if not len(x):
        return x
    codes = encode_levels(x, bins)
    largest = np.full(int(codes.max()) + 1, -np.inf)
    np.maximum.at(largest, codes, x)
    return largest[:-1]


def persist_codes(staged: Any, job: Encode) -> TableBlocks:
    """Encode the staged blocks, and return the blocks of codes in a persisted DataFrame.

    If Spark loses a block of codes, it is computed again from the staged block.
    """
    table = staged.answers(job).where("slice >= 0").persist(StorageLevel.MEMORY_AND_DISK)
    return TableBlocks(staged.runner, table, decode_codes, len(staged), staged.tasks)


def decode_codes(batches: Iterator[Any]) -> Iterator[RowBlock]:
    """Decode blocks of codes from Arrow batches."""
    for batch in batches:
        for number, data in zip(batch.column("slice"), batch.column("data"), strict=True):
            arrays = unpack(data.as_buffer())
            yield RowBlock(number.as_py(), arrays, arrays.pop("targets"))


# --- jobs on the workers ---


@dataclass(frozen=True)
class Encode(Job):
    """A job that converts blocks of rows to codes (features x rows), or sparse blocks to the positions of non-zeros."""

    upto: Sequence[Array] | None  # the values that separate the levels of each feature; None: sparse rows

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X = block.X
            codes = {"indptr": X.indptr, "indices": X.indices} if issparse(X) else {"codes": self._codes(X)}
            yield block.number, {"targets": block.targets, **codes}

    def _codes(self, X: Array) -> Array:
        assert self.upto is not None
        small = max(map(len, self.upto)) + 2 <= 256
        out = np.empty(X.shape[::-1], np.uint8 if small else np.int32)
        for j, upto in enumerate(self.upto):
            missing = np.isnan(X[:, j])
            out[j] = np.where(missing, len(upto) + 1, np.searchsorted(upto, X[:, j]))
        return out


@dataclass(frozen=True)
class Count(Job):
    """A job that counts the contingency tables of all features with one feature or the class, in slices of features."""

    feature: int | None
    n_target: int
    levels: Array

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        start = np.concatenate([[0], np.cumsum(self.levels)])
        counts = np.zeros((start[-1], self.n_target), np.int64)
        rows = np.zeros(self.n_target, np.int64)
        sparse = False
        for block in blocks:
            sparse = "codes" not in block.X
            target = block.targets if self.feature is None else column(block.X, self.feature)
            rows += np.bincount(target, minlength=self.n_target)
            if sparse:
                count_present(block.X["indptr"], block.X["indices"], target, counts)
            else:
                count(block.X["codes"], start, target, counts)
        if sparse:
            counts[::2] = rows - counts[1::2]
        for i, (a, b) in enumerate(spans(len(self.levels), ClusterEngine.max_slice_features)):
            yield i, {"counts": counts[start[a] : start[b]]}

    @classmethod
    def merge(cls, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"counts": np.sum([x["counts"] for x in answers], axis=0)}


def column(codes: dict[str, Array], j: int) -> Array:
    """Return the codes of one feature for the rows of a block."""
    if "codes" in codes:
        return codes["codes"][j]
    indptr = codes["indptr"]
    present = np.zeros(len(indptr) - 1, np.uint8)
    present[np.searchsorted(indptr, np.flatnonzero(codes["indices"] == j), side="right") - 1] = 1
    return present


@njit(nogil=True)
def count(codes: Array, start: Array, target: Array, counts: Array) -> None:
    """Add the rows of a dense block to the stacked contingency tables, in place."""
    for j in range(len(codes)):
        for r in range(len(target)):
            counts[start[j] + codes[j, r], target[r]] += 1


@njit(nogil=True)
def count_present(indptr: Array, indices: Array, target: Array, counts: Array) -> None:
    """Add the non-zeros of a sparse block to the tables, in place. Every feature has two levels: zero and non-zero."""
    for r in range(len(target)):
        for p in range(indptr[r], indptr[r + 1]):
            counts[2 * np.int64(indices[p]) + 1, target[r]] += 1


def information_of_tables(tables: Array, starts: Array) -> Array:
    """Return the mutual information, in nats, of each of the stacked contingency tables, which begin at `starts`."""
    of_target = tables[: starts[1] if len(starts) > 1 else None].sum(axis=0)
    of_level = tables.sum(axis=1)
    m = of_target.sum()
    joint = np.add.reduceat(xlogy(tables, tables).sum(axis=1), starts)
    own = np.add.reduceat(xlogy(of_level, of_level), starts)
    return np.maximum(0.0, np.log(m) + (joint - own - xlogy(of_target, of_target).sum()) / m)
