"""The main function of the package, `select`, and the functions that `belief.spark` shares with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from belief._utils.names import DefaultNames
from belief._utils.warnings import warn
from belief.data.columns import ColumnSelection, as_columns, find_columns
from belief.data.inputs import describe_origin, name_columns, open_input, resolve_label
from belief.data.labels import check_task, read_labels
from belief.data.roles import Roles
from belief.data.source import Stream
from belief.data.table import Table, open_table
from belief.engines.block import table_engine
from belief.engines.checkpoint import Checkpoint
from belief.engines.checks import check_resources, check_sizes, check_values
from belief.engines.designed import DesignedEngine
from belief.engines.resources import Resources
from belief.engines.stream import StreamEngine
from belief.engines.suspicious import describe_suspicious
from belief.method.algorithm import belief
from belief.method.arrays import Array
from belief.method.protocols import Engine, Storage
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import REGRESSION, Target
from belief.progress import Callback, Reporter
from belief.result.deferred import DeferredFields, Levels, Points
from belief.result.result import Result

DEFAULT_WORKING_MEMORY = 1024  # MiB


def select(
    X: Any,
    y: Any = None,
    n_features_to_select: int | float | str = 10,
    *,
    task: str = "auto",
    label: str | int | None = None,
    drop: Any = (),
    candidates: Any = (),
    given: Any = (),
    groups: Any = None,
    adjust_for: Any = None,
    sample_weight: Any = None,
    per_class: int | None = None,
    discrete_features: Any = "auto",
    feature_names: Sequence[str] | None = None,
    layer: str | None = None,
    n_neighbors: int | str = "auto",
    sample_size: int | float | str = "auto",
    sampling: str = "balanced",
    class_weight: str | Mapping[Any, float] = "balanced",
    batch_size: float = 0.25,
    neighborhood: str = "per_class",
    scale: str = "auto",
    redundancy: str | None = "agreement",
    theta: float | str = "auto",
    eta: float = 2.0,
    kappa: float = 0.8,
    copies: str = "auto",
    significance: str | None = "permutation",
    alpha: float = 0.05,
    rounds: int | str = "auto",
    stability: int = 0,
    random_state: Any = None,
    separator: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    working_memory: int = DEFAULT_WORKING_MEMORY,
    device: str = "auto",
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    restart: bool = False,
    staging: str = "auto",
) -> Result:
    """Select the most relevant features of a table, without redundant ones.

    Parameters
    ----------
    X : array, memory map, DataFrame, sparse matrix, list of blocks, lazy frame, path, list of paths or Spark DataFrame
        The table, of shape (n_rows, n_features). Missing values are NaN or null; sparse matrices must not contain any.
        Files (CSV, Parquet, Arrow, LIBSVM), streams of `belief.data.open_files`, polars LazyFrames, DuckDB relations,
        Arrow datasets and readers, dask DataFrames and generators of blocks are read in batches and need not fit into
        memory. Spark DataFrames are processed on the cluster; the features are the vectors in the column `features`, or
        all columns but the target.
    y : array of shape (n_rows,), str or int, default=None
        The target: classes (numbers, strings or categories) or numbers to predict. Or the name or index of the column
        of X that holds them.
    n_features_to_select : int, float or "auto", default=10
        The number of features to select, or their share of all features. "auto" selects all significant features
        that are not redundant.
    task : {"auto", "classification", "regression"}, default="auto"
        How to interpret the target. "auto": strings, categories, booleans and up to 50 different integers
        are classes; fractions and more than 50 different integers are numbers. `Result.task` has the outcome.
    label : str or int, default=None
        The name or index of the target column, instead of y.
    drop, candidates : names or indices of columns, default=()
        `drop`: columns of X to ignore. `candidates`: the only columns of X that may be selected. Columns without names
        keep their original numbers: x0, x2, ...
    given : names or indices of columns, default=()
        Features that are selected already. Other features that are redundant with the given ones get lower scores.
        `n_features_to_select` does not count the given features.
    groups : name or index of a column, or array of shape (n_rows,), default=None
        The group of each row (patient, household, block of time), if rows of a group are not independent. Neighbours
        come from other groups, and tests and standard errors treat each group as one observation. The column is not a
        feature.
    adjust_for : names or indices of columns, or array of shape (n_rows,) or (n_rows, n), default=None
        Columns to adjust for (batch, site, age). Rows with equal values in these columns form a stratum: neighbours
        come from the same stratum, and tests are stratified. Numeric columns with more than ten values are cut at their
        quintiles. The columns are not features.
    sample_weight : name or index of a column, or array of shape (n_rows,), default=None
        The weight of each row. It is used in all means, in the shares of the classes, in the tests, and in the order in
        which rows are sampled. A row with a weight of 0 is ignored. The column is not a feature.
    per_class : int, default=None
        The number of features to select for each class, instead of `n_features_to_select` in all.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, whose values are only compared for equality. "auto": string, category and boolean columns.
    feature_names : list of str, default=None
        The names of the columns of X, if X is an array or a sparse matrix.
    layer : str, default=None
        The layer of an AnnData table or file to use instead of its matrix X.
    n_neighbors : int or "auto", default="auto"
        The number of neighbours k per class; with a numeric target, 2·k in all. "auto": a third of the smallest class,
        but at least 10 and at most 20; more for small tables with a numeric target.
    sample_size : int, float, "auto" or "fixed", default="auto"
        The number of sampled rows, or their share of all rows. "auto" starts with 2,000 and grows until the selection
        has converged; "fixed" takes 2,000 rows or 1 %, whichever is larger. Neighbours are searched among all rows.
    sampling : {"balanced", "random", "proportional"}, default="balanced"
        How to sample rows: equally many from each class, at random, or from each class in proportion to its size.
    class_weight : {"balanced", "prior"} or dict, default="balanced"
        The weight of each class in the relevance: equal, its share of the rows (as in the paper), or as given.
    batch_size : float, default=0.25
        The share of the sample in one batch. The watch list, the features with the largest weights, is updated after
        each batch.
    neighborhood : {"per_class", "pooled"}, default="per_class"
        Whether to search k neighbours in every class, or k·|C| neighbours among all rows, where |C| is the number of
        classes.
    scale : {"auto", "standard", "sigma", "none"}, default="auto"
        How to scale differences. "standard": by the standard deviation, or by the range for columns with two values;
        "sigma": always by the standard deviation (as in the paper); "none": unscaled; "auto": "standard", or "none" for
        mostly zero data.
    redundancy : {"agreement", "mcr", None}, default="agreement"
        The redundancy measure: agreement, the paper's mCR, or none.
    theta : float, "auto" or "mean", default="auto"
        The weight θ of redundancy. For "agreement": a number from 0 to 1; "auto" is 1. For "mcr": "auto" and "mean"
        subtract the mean redundancy with the selected features; a number subtracts that multiple of the sum.
    eta : float, default=2.0
        The length η of the watch list, as a multiple of the number of features to select.
    kappa : float, default=0.8
        Collision rates below κ count as 0.
    copies : {"auto", "keep", "merge"}, default="auto"
        "merge" counts identical rows of a class once, for data in which rows were duplicated. "auto" does so, with a
        warning, if rows have copies that chance cannot explain.
    significance : {"permutation", None}, default="permutation"
        "permutation" tests whether each feature is relevant, by shuffles of up to 2,000 rows; None skips the tests.
    alpha : float, default=0.05
        Features with a q-value (false discovery rate) below alpha are significant.
    rounds : int or "auto", default="auto"
        The number of rounds of the significance test. Each round repeats the search without the weakest features of the
        round before. "auto" continues until 16 features remain, which finds interactions among many features; 1 is
        faster.
    stability : int, default=0
        The number of half-samples (random halves of the sampled rows) on which the selection is repeated, for
        `Result.stability`.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sample and of tie breaking. None draws a seed and stores it in `Result.seed`.
    separator : str, default=None
        The column separator of CSV files. None: a comma, or a tab for .tsv files.
    header : bool, default=True
        Whether the first line of a CSV file holds the column names. Otherwise the columns are named c0, c1, ...
    encoding : str, default=None
        The encoding of CSV files, such as "latin1". None: UTF-8, UTF-16 or UTF-32, as detected from the first bytes.
    n_jobs : int, default=None
        The number of threads; -1: all cores, -2: all but one. None uses the available cores, and respects joblib
        contexts and OMP_NUM_THREADS.
    verbose : int, default=0
        1 shows a progress bar on stderr.
    working_memory : int, default=1024
        The memory in MiB that may be used in addition to the data.
    device : str, default="auto"
        The device for dense data: "cpu", "cuda" (the first GPU), "cuda:1", or several, "cuda:0,1". "auto" uses a GPU if
        torch finds one and the data is large enough to benefit. The result does not depend on the device.
    callback : callable, default=None
        Called with a `belief.progress.Progress` during the run.
    checkpoint : path, default=None
        A folder for intermediate results. If a run was interrupted, the same call continues from them.
    restart : bool, default=False
        Whether to discard the contents of the checkpoint.
    staging : str, default="auto"
        Where Spark stages the rows: "memory", "disk", or a folder that every executor can reach, as an absolute path.
        "auto": a temporary folder if Spark runs on one machine; otherwise memory, or disk if memory is too small.

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
    settings = Settings(
        n_features_to_select=n_features_to_select,
        per_class=per_class,
        n_neighbors=n_neighbors,
        sample_size=sample_size,
        sampling=sampling,
        class_weight=class_weight,
        batch_size=batch_size,
        neighborhood=neighborhood,
        scale=scale,
        redundancy=redundancy,
        theta=theta,
        eta=eta,
        kappa=kappa,
        copies=copies,
        significance=significance,
        alpha=alpha,
        rounds=rounds,
        stability=stability,
        random_state=random_state,
    )
    check_resources(n_jobs, working_memory, verbose, device)
    check_task(task)
    y, label = resolve_label(y, label)
    columns = ColumnSelection(label, drop, candidates, discrete_features, task, separator, header, encoding)
    if is_spark_dataframe(X):
        has_no_effect = {
            "checkpoint": checkpoint is not None,
            "n_jobs": n_jobs is not None,
            "working_memory": working_memory != DEFAULT_WORKING_MEMORY,
            "device": device != "auto",
        }
        for name, is_given in has_no_effect.items():
            if is_given:
                raise ValueError(f"{name} has no effect because X is a Spark DataFrame. Omit {name}.")
        options = {
            "task": task,
            "discrete_features": discrete_features,
            "staging": staging,
            "verbose": verbose,
            "callback": callback,
            "given": list(as_columns(given, "given")),
            "roles": Roles(groups, adjust_for, sample_weight),
        }
        return _select_on_spark(X, y, columns, settings, options)
    if staging != "auto":
        raise ValueError(f"staging={staging!r} has no effect because X is not a Spark DataFrame. Omit staging.")
    if restart and checkpoint is None:
        raise ValueError("restart=True needs a checkpoint. Pass checkpoint=FOLDER, or omit restart.")
    storage = None if checkpoint is None else Checkpoint(checkpoint, restart)
    reporter = Reporter(callback, bar=verbose > 0)
    resources = Resources(n_jobs, working_memory * 2**20, reporter.rows, device, settings.resolve_sample_size)
    about: dict[str, Any] = describe_origin(X, y, label)
    given = name_columns(X, given, feature_names)
    roles = Roles(groups, adjust_for, sample_weight)
    if roles.exist:
        X, y, columns, roles = roles.take_from(X, y, columns)
    X, y, numbered = open_input(X, y, columns, feature_names, layer)
    engine, table = open_engine(X, y, discrete_features, resources, storage, task, numbered)
    if roles.exist:
        engine = DesignedEngine(engine, roles.open(X))
    with reporter, engine, closing(storage) if storage else nullcontext():
        result = run_engine(
            engine, settings, lambda: table.names, working_memory, reporter, storage, table, given, about
        )
    if result.notes:
        warn(" ".join(result.notes))
    return result


def open_engine(
    X: Any,
    y: Any,
    discrete_features: Any,
    resources: Resources,
    storage: Storage | None,
    task: str = "auto",
    names: Sequence[str] | None = None,
) -> tuple[Engine, Table | Stream]:
    """Return an engine for X, and the table or stream that the engine reads.

    X is opened as a table, unless it is a stream already.
    """
    if isinstance(X, Stream):
        return StreamEngine(X, X.target_name, resources, storage, task), X
    table = open_table(X, discrete_features, names, leave_out=True)
    target, targets = read_labels(y, table.source.n_rows, task).target()
    return table_engine(table.source, target, targets, table.discrete, resources), table


def run_engine(
    engine: Engine,
    settings: Settings,
    names: Callable[[], Sequence[str] | None],
    working_memory: int,
    reporter: Reporter,
    storage: Storage | None = None,
    table: Table | Stream | None = None,
    given: Sequence[Any] = (),
    about: Mapping[str, Any] | None = None,
) -> Result:
    """Run the method on an engine, and return a Result with the names of the features.

    If `table` is passed, the Result also has notes on suspicious columns. `storage` keeps intermediate results.
    """
    described: list[Summary] = []

    def feature_names() -> Sequence[str]:
        return names() or DefaultNames(engine.n_features)  # a stream knows them only after its first pass

    def check(summary: Summary, target: Target) -> None:
        check_sizes(settings, summary, target, working_memory)
        check_values(summary, feature_names())
        described.append(summary)

    def find_given() -> Array:
        if not given:
            return np.zeros(0, np.int64)
        labels = None if table is None else table.labels
        found = find_columns(given, labels or feature_names(), "given", "the features of X")
        return np.array([*dict.fromkeys(found)], np.int64)

    found = belief(engine, settings, check, reporter.phase, storage, find_given)
    sample = None if table is None else engine.peek()
    if table is not None:
        found["notes"] = describe_suspicious(
            sample,
            described[0],
            found["weights"],
            table.discrete,
            table.declared,
            feature_names(),
            found["task"] == REGRESSION,
        )
        found["columns"] = table.labels
    selected = found["selected"]
    points = None if sample is None else Points.take(*sample, selected)
    discrete = selected[engine.discrete[selected]].tolist()
    of_levels: dict[int, Levels | None] = {j: None if table is None else table.levels(j) for j in discrete}
    deferred = DeferredFields(selected, found.pop("partners"), found.pop("sampled"), points, of_levels)
    found.update(dict.fromkeys(DeferredFields.names, deferred))
    left_out = [] if table is None else [*table.left_out]
    found["about"] = {**(about or {}), **({"left_out": left_out} if left_out else {})}
    return Result(**found | {"timings": reporter.timings()}, feature_names=feature_names())


def is_spark_dataframe(X: Any) -> bool:
    """Return True if X is a Spark DataFrame, without importing Spark."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "sparkSession")


def _select_on_spark(df: Any, y: Any, columns: ColumnSelection, settings: Settings, options: dict[str, Any]) -> Result:
    from belief.spark.frames import select_frame

    if y is not None or columns.label is None:
        raise ValueError(
            "The target must be a column of the Spark DataFrame. Name it with label='column', and do not pass y."
        )
    if not isinstance(columns.label, str):
        raise ValueError(
            f"The target column of a Spark DataFrame must be named, as in label='column'; got {columns.label!r}. If"
            " this is the number of features to select, pass it as n_features_to_select."
        )
    for name in {"separator", "header", "encoding"}.intersection(columns.changed_options()):
        raise ValueError(f"{name} has no effect because X is not a CSV file. Omit {name}.")
    has_vectors = "features" in df.columns
    named: list[str] = []
    for role, names in () if has_vectors else options["roles"].columns().items():
        found = [df.columns[j] for j in find_columns(names, df.columns, role)]
        options["roles"] = replace(options["roles"], **{role: found if role == "adjust_for" else found[0]})
        named += found
    columns = replace(columns, drop=(*columns.drop, *named)).with_names(df.columns)
    for name in {"drop", "candidates"}.intersection(columns.changed_options() if has_vectors else ()):
        raise ValueError(f"{name} has no effect because a column of X holds the features as vectors. Omit {name}.")
    features = "features" if has_vectors else columns.feature_names(df.columns, "X")
    result = select_frame(df, features=features, label=str(columns.label), settings=settings, **options)
    return replace(result, about=describe_origin(df, None, columns.label))
