"""mRMR and ReliefF on Spark DataFrames, classic and Connect.

ReliefF is that of `belief.baselines.relief`, on the engine that BELIEF runs on. mRMR is the paper's DmRMR:

    stage ─► quantiles of a sample ─► blocks of codes, persisted ─► a pass for the class, and for each feature selected
    (input read once)                 (a byte for a cell)           (tables of counts, summed over the blocks)

The selection is that of `belief.baselines.mrmr`; here are only the counts that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from belief._utils.names import DefaultNames
from belief.baselines.base import checks
from belief.baselines.contingency import Count, Encode
from belief.baselines.information import information_of
from belief.baselines.mrmr import MRMR, as_codes, checked_settings, mrmr
from belief.baselines.relief import relieff
from belief.engines.spark.blocks import RowBlock
from belief.engines.spark.engine import ClusterEngine
from belief.engines.spark.executors import TableBlocks, frame_engine
from belief.engines.spark.frame import open_frame
from belief.engines.spark.wire import unpack
from belief.method.arrays import Array
from belief.method.relevance import sort_by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.summary import Summary

CUT_ROWS, CUT_BYTES = 10_000, 2**28  # of the sample whose quantiles are the cuts
TABLE_BYTES = 2**30  # of all contingency tables with one feature


@dataclass(frozen=True)
class FrameSelection(Selection):
    """The features in order of selection, the score of each, and what is known of all features."""

    weights: Array  # of every feature: of mRMR its mutual information with the class, in nats; W of ReliefF
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
        Where blocks of the rows are held; see :func:`belief.spark.frames.select_frame`.

    Returns
    -------
    FrameSelection

    Notes
    -----
    The cuts are the quantiles of a sample of 10,000 rows (fewer where there are more than 3,300 features); a table of
    no more rows is cut, and its features are selected, exactly as `belief.baselines.MRMR` does it. Vectors that are
    mostly sparse are not cut: a value is 0 or it is not, whatever `bins` and `discrete_features` say.

    Examples
    --------
    >>> import belief
    >>> df = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True)  # doctest: +SKIP
    >>> names = [name for name in df.columns if name != "left"]  # doctest: +SKIP
    >>> found = belief.baselines.mrmr_frame(df, features=names, label="left", n=3)  # doctest: +SKIP
    >>> found.selected_names  # doctest: +SKIP
    ['tenure_days', 'contract', 'support_calls']
    """
    settings = checked_settings(MRMR(n, form=form, bins=bins))
    given = open_frame(df, features, label, discrete_features)
    with CodedColumns(frame_engine(given, staging)) as columns:
        summary = columns.engine.describe()
        checks(settings, given.names)(summary, columns.engine.target)
        names = given.names or DefaultNames(columns.engine.n_features)
        columns.encode(summary, bins, names)
        relevance, constant = columns.relevance()
        count = settings.resolve_n_features(len(relevance))
        found = mrmr(np.where(constant, -np.inf, relevance), columns.redundancy_of, count, form)
    found = found.append_constants(constant, count)
    return FrameSelection(found.selected, found.scores, relevance, names)


def relieff_frame(
    df: Any,
    *,
    features: str | Sequence[str],
    label: str,
    n: int | float = 10,
    n_neighbors: int = 10,
    sample_size: int | float | str = 1.0,
    discrete_features: Any = "auto",
    staging: str = "auto",
    random_state: Any = None,
) -> FrameSelection:
    """Select features of a Spark DataFrame by ReliefF, where it is; as DiReliefF with a small fixed `sample_size`.

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
    n_neighbors : int, default=10
        k, the neighbours taken of every class.
    sample_size : int, float or "auto", default=1.0
        The rows that look for their neighbours, among all rows: a number, a share, or "auto".
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, of which only "equal or not" counts. "auto": strings, booleans, and what is nominal by its
        ML attributes.
    staging : str, default="auto"
        Where blocks of the rows are held; see :func:`belief.spark.frames.select_frame`.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sample and of ties.

    Returns
    -------
    FrameSelection

    See Also
    --------
    belief.baselines.ReliefF : the same on one machine, which gives the same weights.

    Examples
    --------
    >>> import belief
    >>> df = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True)  # doctest: +SKIP
    >>> names = [name for name in df.columns if name != "left"]  # doctest: +SKIP
    >>> found = belief.baselines.relieff_frame(df, features=names, label="left", n=3, random_state=0)  # doctest: +SKIP
    >>> found.selected_names  # doctest: +SKIP
    ['contract', 'tenure_months', 'tenure_days']
    """
    settings = Settings(
        n_features_to_select=n, n_neighbors=n_neighbors, sample_size=sample_size, random_state=random_state,
        redundancy=None,
    )  # fmt: skip
    given = open_frame(df, features, label, discrete_features)
    with frame_engine(given, staging) as engine:
        W, constant = relieff(engine, settings, checks(settings, given.names))
    count = settings.resolve_n_features(len(W))
    best = sort_by_weight(W, np.flatnonzero(~constant))[:count]
    found = Selection(best, W[best]).append_constants(constant, count)
    return FrameSelection(found.selected, found.scores, W, given.names or DefaultNames(len(W)))


class CodedColumns:
    """The columns of a DataFrame as codes, and the mutual information between them; to be used as a context."""

    levels: Array  # how many each feature has

    def __init__(self, engine: ClusterEngine) -> None:
        self.engine = engine
        self._coded: TableBlocks | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        if self._coded is not None:
            with suppress(Exception) if error else nullcontext():  # what went wrong before is what is told
                self._coded.release()
        self.engine.__exit__(error, *about)

    def encode(self, summary: Summary, bins: int | None, names: Sequence[str]) -> None:
        """Put codes in the place of the values, in all blocks."""
        upto = self._cuts(summary, bins) if self.engine.layout.dense else None
        self.levels = np.full(len(names), 2) if upto is None else np.array([len(x) + 2 for x in upto])
        most = int(np.argmax(self.levels))
        if upto is not None and 8 * int(self.levels.sum()) * int(self.levels[most]) > TABLE_BYTES:
            raise ValueError(
                f"Feature {names[most]!r} has {self.levels[most] - 2} levels, too many for tables with all others: cut"
                " it into bins, or leave it out."
            )
        self._coded = coded(self.engine.staged, Encode(upto))

    def _cuts(self, summary: Summary, bins: int | None) -> list[Array]:
        """Of each feature, the largest value of every level but the last; the levels themselves if it is discrete."""
        F, discrete = self.engine.n_features, self.engine.discrete
        if bins is None and not discrete.all():
            discrete = np.ones(F, bool)
            summary = self.engine.describe_as(discrete)
        upto = np.split(summary.levels.value, np.searchsorted(summary.levels.feature, np.arange(1, F)))
        if bins is not None and not discrete.all():
            sample = self.engine.sample(np.array([min(summary.m, CUT_ROWS, max(100, CUT_BYTES // (8 * F)))]), seed=0)
            rows = self.engine.queries.rows(np.sort(sample.row))
            for j in np.flatnonzero(~discrete):
                upto[j] = cuts(rows[:, j], bins)
        return upto

    def relevance(self) -> tuple[Array, Array]:
        """I of every feature with the class, and which features are constant."""
        tables = self._tables(None, len(self.engine.target.counts))
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
        assert self._coded is not None, "encode first"
        found = self._coded.run(
            Count(feature, n_target, self.levels), 8 * int(self.levels.sum()) * n_target, "counting"
        )
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


def coded(staged: Any, job: Encode) -> TableBlocks:
    """Blocks of codes in a persisted DataFrame, computed again from the staged blocks if they are lost."""
    from pyspark import StorageLevel

    table = staged.answers(job).where("slice >= 0").persist(StorageLevel.MEMORY_AND_DISK)
    return TableBlocks(staged.runner, table, coded_blocks, len(staged), staged.tasks)


def coded_blocks(batches: Iterator[Any]) -> Iterator[RowBlock]:
    """The blocks of codes in the order Spark has them."""
    for batch in batches:
        for number, data in zip(batch.column("slice"), batch.column("data"), strict=True):
            held = unpack(data.as_buffer())
            yield RowBlock(number.as_py(), held, held.pop("targets"))
