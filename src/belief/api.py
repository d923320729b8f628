"""`select`: a table and its classes in, a Result out. The faces of the package all come through here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from belief._utils.names import DefaultNames
from belief.data.columns import ColumnSelection
from belief.data.inputs import open_input, resolve_label
from belief.data.labels import check_task, read_target
from belief.data.stream import LibsvmStream, TableStream
from belief.data.table import open_table
from belief.engines.checkpoint import Checkpoint
from belief.engines.checks import check_resources, check_sizes, check_values
from belief.engines.local import table_engine
from belief.engines.resources import Resources
from belief.engines.stream import StreamEngine
from belief.method.algorithm import belief
from belief.method.protocols import Engine, Notes
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.progress import Callback, Reporter
from belief.result.result import Result, build_result

WORKING_MEMORY = 1024  # MiB beside the data
Levels = Callable[[int], Mapping[float, str] | None]  # of a feature, what its codes stand for; None: nobody knows


def select(
    X: Any,
    y: Any = None,
    n_features_to_select: int | float | str = 10,
    *,
    task: str = "auto",
    label: str | int | None = None,
    drop: Any = (),
    keep: Any = (),
    discrete_features: Any = "auto",
    separator: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    working_memory: int = WORKING_MEMORY,
    device: str = "auto",
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    restart: bool = False,
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
        The class of each row, numbers, strings or categories; or the number to predict. Or the name or the number of
        the column of X that holds it.
    n_features_to_select : int, float or "auto", default=10
        How many features to select, which share of them, or "auto": as many as can be told from noise.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds classes or numbers. "auto": text, categories, booleans and whole numbers are classes, unless
        nearly every row has another; fractions are numbers. `Result.task` says which it was.
    label : str or int, default=None
        Instead of y: the column of X that holds the class or the number, by its name or its number from 0.
    drop, keep : names or numbers of columns, default=()
        Columns of X to leave out; columns to choose from, and no others. Where columns have no names, those that are
        left are called by the numbers they had: x0, x2, ...
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, of which only "equal or not" counts. "auto": string, category and boolean columns.
    separator : str, default=None
        What is between two columns of a CSV file; None: a comma, or a tab where the file's name ends in .tsv.
    header : bool, default=True
        Whether the first line of a CSV file holds the names; if not, the columns are called c0, c1, ...
    encoding : str, default=None
        Of the text of a CSV file, "latin1" for example; None: UTF-8, or what its first bytes say.
    n_jobs : int, default=None
        Threads; -1: all cores, -2: all but one. None: the cores the process may use, or what a joblib context,
        OMP_NUM_THREADS or the share of a joblib worker allows.
    verbose : int, default=0
        1 shows a bar on stderr.
    working_memory : int, default=1024
        MiB that may be used beside the data.
    device : str, default="auto"
        Where dense rows are searched: "cpu", "cuda" (the first GPU), "cuda:1", or several, "cuda:0,1". "auto": a GPU,
        if torch is installed and sees one and the search is long enough to be worth it. The result is the same.
    callback : callable, default=None
        Called with a `belief.progress.Progress` as the run goes on.
    checkpoint : path, default=None
        A folder in which neighbours and sums are noted after each batch: the same call continues from there.
    restart : bool, default=False
        Whether to forget what a checkpoint holds, and start anew.
    staging : str, default="auto"
        Of a Spark DataFrame, where its rows are held during the run: "memory", "disk", or the full path of a folder
        that every executor reaches; "auto": a temporary folder where Spark runs on one machine, and memory elsewhere.
    **settings
        The other settings of :class:`BeliefSelector`, by the same names: `n_neighbors`, `sample_size`, `sampling`,
        `class_weight`, `batch_size`, `neighborhood`, `scale`, `redundancy`, `theta`, `eta`, `kappa`, `copies`,
        `random_state`.
        `**belief.PAPER` are those of the paper.

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
    others = ("task", "label", "drop", "keep", "separator", "header", "encoding", "discrete_features", "n_jobs",
              "verbose", "working_memory", "device", "callback", "checkpoint", "restart", "staging")  # fmt: skip
    chosen = Settings.from_mapping({"n_features_to_select": n_features_to_select, **settings}, also=others)
    check_resources(n_jobs, working_memory, verbose, device)
    check_task(task)
    y, label = resolve_label(y, label)
    columns = ColumnSelection(label, drop, keep, discrete_features, task, separator, header, encoding)
    if is_spark(X):
        if checkpoint is not None:
            raise ValueError("checkpoint is for files and tables on one machine; on Spark the staged blocks are kept.")
        refuse_on_spark(n_jobs, working_memory, device)
        options = {
            "task": task,
            "discrete_features": discrete_features,
            "staging": staging,
            "verbose": verbose,
            "callback": callback,
        }
        return _select_spark(X, y, columns, chosen, options)
    if staging != "auto":
        raise ValueError(f"staging is for Spark DataFrames; got {staging!r} with another table: leave it out.")
    if restart and checkpoint is None:
        raise ValueError("restart=True is for a checkpoint, and there is none: name its folder, or leave it out.")
    notes = None if checkpoint is None else Checkpoint(checkpoint, restart)
    reporter = Reporter(callback, bar=verbose > 0)
    resources = Resources(n_jobs, working_memory * 2**20, reporter.rows, device, chosen.resolve_sample_size)
    X, y, numbered = open_input(X, y, columns)
    engine, names, levels = open_engine(X, y, discrete_features, resources, notes, task)
    names = names or numbered
    with reporter, engine:
        return run(engine, chosen, names, working_memory, reporter, notes, levels)


def open_engine(
    X: Any, y: Any, discrete_features: Any, resources: Resources, notes: Notes | None, task: str = "auto"
) -> tuple[Engine, list[str] | None, Levels]:
    """The engine for rows in memory or in files, the names of the features, and what the codes of one stand for."""
    if isinstance(X, TableStream | LibsvmStream):
        name = f"column {X.label!r}" if isinstance(X, TableStream) else "The first column"
        return StreamEngine(X, name, resources, notes, task), X.names, X.levels
    table = open_table(X, discrete_features)
    target, targets = read_target(y, table.source.n_rows, task)
    return table_engine(table.source, target, targets, table.discrete, resources), table.names, table.levels


def run(
    engine: Engine, settings: Settings, names: Sequence[str] | None, working_memory: int, reporter: Reporter,
    notes: Notes | None = None, levels: Levels = lambda j: None,
) -> Result:  # fmt: skip
    """Run the method on an engine."""

    def check(summary: Summary, target: Target) -> None:
        check_sizes(settings, summary, target, working_memory)
        check_values(summary, names or DefaultNames(engine.n_features))

    outcome = belief(engine, settings, check, reporter.phase, notes)
    outcome = replace(outcome, portraits=[each.named(levels(each.feature)) for each in outcome.portraits])
    return build_result(outcome, outcome.target.adapt(settings).as_dict(), names or DefaultNames(engine.n_features))


def is_spark(X: Any) -> bool:
    """Whether X is a Spark DataFrame, without importing Spark."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "sparkSession")


def _select_spark(df: Any, y: Any, columns: ColumnSelection, settings: Settings, options: dict[str, Any]) -> Result:
    """On Spark, a column named features is the vectors; if there is none, all columns but the label are features."""
    from belief.spark.frames import select_frame

    if y is not None or columns.label is None:
        raise ValueError("Of a Spark DataFrame, say which column holds the class, with label='name'.")
    for name in {"separator", "header", "encoding"}.intersection(columns.changed_options()):
        raise ValueError(f"{name} is for CSV files, but X is a Spark DataFrame: leave it out.")
    vectors, columns = "features" in df.columns, columns.with_names(df.columns)
    for name in {"drop", "keep"}.intersection(columns.changed_options() if vectors else ()):
        raise ValueError(f"{name} is for columns with names, but the features of X are vectors: leave it out.")
    features = "features" if vectors else columns.feature_names(df.columns, "X")
    return select_frame(df, features=features, label=str(columns.label), settings=settings, **options)


def refuse_on_spark(n_jobs: int | None, working_memory: int, device: str = "auto") -> None:
    """Refuse what would be ignored."""
    given = {
        "n_jobs": n_jobs is not None,
        "working_memory": working_memory != WORKING_MEMORY,
        "device": device != "auto",
    }
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name} is for this machine, but Spark's executors have their own: leave it out.")
