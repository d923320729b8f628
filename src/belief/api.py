"""`select`: a table and its classes in, a Result out. The faces of the package all come through here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from belief.checkpoint import NO_CHECKPOINT, Checkpoint
from belief.cores import n_threads
from belief.data.files import Wanted, open_files
from belief.data.labels import encode_labels
from belief.data.source import SparseSource
from belief.data.stream import LibsvmStream, TableStream
from belief.data.table import Table, open_table, split_label
from belief.engines.local import LocalEngine
from belief.engines.sparse import SparseEngine
from belief.engines.stream import StreamEngine
from belief.method.algorithm import belief
from belief.method.partials import Array, Summary
from belief.method.settings import Settings, is_integer
from belief.progress import Callback, Reporter
from belief.result import Numbered, Result, result_of
from belief.warn import warn

WORKING_MEMORY = 1024  # MiB beside the data


def select(
    X: Any,
    y: Any = None,
    n_features_to_select: int | float = 10,
    *,
    label: str | None = None,
    discrete_features: Any = "auto",
    n_jobs: int | None = None,
    verbose: int = 0,
    working_memory: int = WORKING_MEMORY,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    staging: str = "auto",
    **settings: Any,
) -> Result:
    """Select features with BELIEF.

    Parameters
    ----------
    X : array, memory map, DataFrame or sparse matrix of shape (n_rows, n_features), or a list of those as blocks
        Missing values are NaN or null; a sparse matrix can have none. Or the path of a file (CSV, Parquet, Arrow,
        LIBSVM), a list of paths, or a stream of `belief.data.open_files`: files are never read whole. Or a Spark
        DataFrame, which is searched where it is: the vectors in its column `features`, or all columns but the label.
    y : array of shape (n_rows,)
        The class of each row: numbers, strings, categories.
    n_features_to_select : int or float, default=10
        How many features to select, or which share of them.
    label : str, default=None
        Instead of y: the column of X that holds the class.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, of which only "equal or not" counts. "auto": string, category and boolean columns.
    n_jobs : int, default=None
        Threads; -1: all cores, -2: all but one. None: the cores the process may use, or what a joblib context,
        OMP_NUM_THREADS or the share of a joblib worker allows.
    verbose : int, default=0
        1 shows a bar on stderr.
    working_memory : int, default=1024
        MiB that may be used beside the data.
    callback : callable, default=None
        Called with a `belief.progress.Progress` as the run goes on.
    checkpoint : path, default=None
        A folder in which neighbours and sums are noted after each batch: the same call continues from there.
    staging : str, default="auto"
        Of a Spark DataFrame, where its rows are held during the run: "memory", "disk", or the full path of a folder
        that every executor reaches; "auto": a temporary folder where Spark runs on one machine, and memory elsewhere.
    **settings
        The other settings of :class:`BeliefSelector`, by the same names: `n_neighbors`, `sample_size`, `batch_size`,
        `neighborhood`, `scale`, `redundancy`, `theta`, `eta`, `kappa`, `stratify`, `random_state`.

    Returns
    -------
    Result

    Examples
    --------
    >>> import belief, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 5))
    >>> X[:, 3] += 3 * y
    >>> belief.select(X, y, 1, random_state=0).selected
    array([3])
    """
    others = ("label", "discrete_features", "n_jobs", "verbose", "working_memory", "callback", "checkpoint", "staging")
    chosen = Settings.from_mapping({"n_features_to_select": n_features_to_select, **settings}, also=others)
    check_resources(n_jobs, working_memory, verbose)
    if is_spark(X):
        if checkpoint is not None:
            raise ValueError("checkpoint is for files and tables on one machine; on Spark the staged blocks are kept.")
        refuse_both(y, label)
        refuse_on_spark(n_jobs, working_memory)
        options = {"discrete_features": discrete_features, "staging": staging, "verbose": verbose, "callback": callback}
        return _select_spark(X, label or y, chosen, options)
    if staging != "auto":
        raise ValueError(f"staging is for Spark DataFrames; got {staging!r} with another table: leave it out.")
    notes = Checkpoint(checkpoint)
    reporter = Reporter(callback, bar=verbose > 0)
    options = {"n_jobs": n_jobs, "working_memory": working_memory * 2**20, "report": reporter.rows}
    X, y = take_label(X, y, label, discrete_features)
    if isinstance(X, TableStream | LibsvmStream):
        name = f"column {X.label!r}" if isinstance(X, TableStream) else "The first column"
        engine: AnyEngine = StreamEngine(X, name, notes, **options)
        names = X.names
    else:
        table = open_table(X, discrete_features)
        classes, labels = encode_labels(y, table.source.n_rows)
        engine = engine_for(table, labels, len(classes), options)
        engine.classes, names = classes, table.names
    with reporter, engine:
        return run(engine, chosen, names, working_memory, reporter, notes)


AnyEngine = LocalEngine | SparseEngine | StreamEngine


def run(
    engine: Any, settings: Settings, names: Sequence[str] | None, working_memory: int, reporter: Reporter,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Result:  # fmt: skip
    """Run the method on an engine that, once it has described its data, knows its classes too."""

    def check(summary: Summary) -> None:
        known = names or Numbered(engine.n_features)
        check_sizes(settings, summary, engine.n_features, working_memory)
        check_values(summary, known)

    outcome = belief(engine, settings, check, reporter.phase, checkpoint)
    known = names or Numbered(engine.n_features)
    return result_of(outcome, engine.classes, settings.as_dict(), known)


def is_spark(X: Any) -> bool:
    """Whether X is a Spark DataFrame, without importing Spark."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "sparkSession")


def _select_spark(df: Any, label: Any, settings: Settings, options: dict[str, Any]) -> Result:
    """On Spark, a column named features is the vectors; if there is none, all columns but the label are features."""
    from belief.engines.spark import select_frame

    if not isinstance(label, str):
        raise ValueError("Of a Spark DataFrame, say which column holds the class, with label='name'.")
    features = "features" if "features" in df.columns else [name for name in df.columns if name != label]
    return select_frame(df, features=features, label=label, settings=settings, **options)


def refuse_both(y: Any, label: str | None) -> None:
    """Refuse the classes said twice."""
    if y is not None and label is not None:
        raise ValueError(f"Both y and label={label!r} are given: give one of them.")


def refuse_on_spark(n_jobs: int | None, working_memory: int) -> None:
    """Refuse what would be ignored."""
    for name, given in (("n_jobs", n_jobs is not None), ("working_memory", working_memory != WORKING_MEMORY)):
        if given:
            raise ValueError(f"{name} is for this machine, but Spark's executors have their own: leave it out.")


def refuse_beside_stream(y: Any, label: str | None, discrete_features: Any) -> None:
    """Refuse what would be ignored: a stream was told when it was opened."""
    auto = isinstance(discrete_features, str) and discrete_features == "auto"
    given = {"y": y is not None, "label": label is not None, "discrete_features": not auto}
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(f"{name} is given beside an opened stream, which knows its own: leave it out.")


def take_label(X: Any, y: Any, label: str | None, discrete_features: Any) -> tuple[Any, Any]:
    """Split the column `label` off a table, and open files."""
    if isinstance(X, TableStream | LibsvmStream):
        refuse_beside_stream(y, label, discrete_features)
        return X, None
    paths = [X] if isinstance(X, str | os.PathLike) else X
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        if y is not None:
            raise ValueError("y is given beside a file, whose classes are in it: name their column, with label='name'.")
        discrete = () if discrete_features is None else discrete_features
        discrete = [discrete] if isinstance(discrete, str) and discrete != "auto" else discrete
        opened = open_files([Path(p) for p in paths], Wanted(label, discrete=discrete))
        return opened if isinstance(opened, tuple) else (opened, None)
    if label is None:
        return X, y
    refuse_both(y, label)
    return split_label(X, label)


def engine_for(table: Table, labels: Array, n_classes: int, options: dict[str, Any]) -> LocalEngine | SparseEngine:
    """The engine for what the table holds."""
    if isinstance(table.source, SparseSource):
        return SparseEngine(table.source.blocks, labels, n_classes, table.discrete, **options)
    return LocalEngine(table.source, labels, n_classes, table.discrete, **options)


def check_resources(n_jobs: Any, working_memory: Any, verbose: Any) -> None:
    """Refuse what is not a number of threads, of MiB, or a loudness."""
    if not isinstance(verbose, int) or verbose < 0:
        raise ValueError(f"verbose must be 0, 1 or more; got {verbose!r}.")
    n_threads(n_jobs)
    if not is_integer(working_memory) or working_memory < 16:
        raise ValueError(f"working_memory must be an integer of at least 16 (MiB); got {working_memory!r}.")


def check_sizes(settings: Settings, summary: Summary, F: int, working_memory: int) -> None:
    """Refuse, or warn of, settings that do not go with the size of the data."""
    m, n_classes = summary.m, len(summary.class_counts)
    if settings.select_of(F) > F:
        warn(
            f"n_features_to_select={settings.n_features_to_select} is more than the {F} features there are: all are"
            " selected, in order."
        )
    _check_joint(settings, F, working_memory)
    if settings.stratify and settings.sample_of(m) < n_classes:
        raise ValueError(
            f"sample_size={settings.sample_size!r} comes to {settings.sample_of(m)} of {m} rows, fewer than the"
            f" {n_classes} classes: with stratify=True at least one row of each is sampled; ask for more."
        )


def _check_joint(settings: Settings, F: int, working_memory: int) -> None:
    """The joint collisions of the watched features are held all at once: two numbers for each pair of them."""
    n = min(F, settings.select_of(F))
    watched = min(F, settings.watch_of(n))
    need = 16 * watched * max(watched, min(F, 2 * n)) / 2**20
    if settings.redundancy is not None and need > working_memory:
        raise ValueError(
            f"n_features_to_select={settings.n_features_to_select} with eta={settings.eta} watches {watched} features,"
            f" whose joint collisions take {need:.0f} MiB, more than working_memory={working_memory}: select fewer,"
            " lower eta, raise working_memory, or set redundancy=None."
        )


def check_values(summary: Summary, names: Sequence[str]) -> None:
    """Refuse, or warn of, values that cannot be used, by the name of the column."""
    infinite = np.flatnonzero(np.isinf(summary.minimum) | np.isinf(summary.maximum))
    if len(infinite):
        raise ValueError(
            f"Input X contains infinity, in column {names[infinite[0]]!r}{_and_more(infinite)}: replace infinities by a"
            " number, or by NaN to have them count as missing."
        )
    huge = np.flatnonzero(~np.isfinite(summary.m2))
    if len(huge):
        raise ValueError(
            f"Input X has values too large to square, in column {names[huge[0]]!r}{_and_more(huge)} (from"
            f" {summary.minimum[huge[0]]:g} to {summary.maximum[huge[0]]:g}): rescale it, or make such values NaN."
        )
    empty = np.flatnonzero(summary.count == 0)
    if len(empty) == len(names):
        raise ValueError("Every value of X is missing: there is nothing to select from.")
    if not np.any((summary.maximum > summary.minimum) & (summary.m2 > 0)):
        raise ValueError("Every feature of X is constant: there is nothing to tell the classes apart by.")
    if len(empty):
        warn(f"Column {names[empty[0]]!r}{_and_more(empty)} has no value at all: it counts as constant.")


def _and_more(columns: np.ndarray) -> str:
    return f" (and {len(columns) - 1} more)" if len(columns) > 1 else ""
