"""A Spark DataFrame and its columns, or files that Spark reads, in; a Result out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.api import run_engine
from belief.data.columns import ColumnSelection
from belief.data.files import find_files
from belief.data.stream import check_csv_options
from belief.engines.spark.engine import frame_engine
from belief.engines.spark.files import read, session
from belief.engines.spark.frame import open_frame
from belief.method.settings import Settings
from belief.progress import Callback, Reporter
from belief.result.result import Result

DRIVER_MEMORY = 1024  # MiB of the driver that the joint collisions may take


def select_frame(
    df: Any,
    *,
    features: str | Sequence[str],
    label: str,
    settings: Settings,
    task: str = "auto",
    discrete_features: Any = "auto",
    staging: str = "auto",
    verbose: int = 0,
    callback: Callback | None = None,
) -> Result:
    """Select features of a Spark DataFrame, where it is.

    Parameters
    ----------
    df : a DataFrame of classic Spark or of Spark Connect
    features : a column of vectors, or the names of plain columns (numbers, booleans, strings; null is missing)
    label : the column that holds the class, or the number to be explained
    task : "classification", "regression", or "auto": what the label looks like
    discrete_features : mask, indices or names of the nominal features
    staging : where blocks of the rows are held: "memory", "disk" (Spark's), a folder that all executors reach, or
        "auto", which is a temporary folder where Spark runs on one machine, and memory elsewhere
    """
    given = open_frame(df, features, label, discrete_features, task)
    reporter = Reporter(callback, bar=verbose > 0)
    with reporter, frame_engine(given, staging, lambda what: reporter.rows(0, 0, what)) as engine:
        return run_engine(engine, settings, given.names, DRIVER_MEMORY, reporter)


def select_files(
    paths: Sequence[Path], columns: ColumnSelection, settings: Settings, master: str | None, verbose: int
) -> Result:
    """Select features of files that Spark reads; the order of the rows is the one Spark gives them."""
    kind, files = find_files(paths)
    if kind not in ("parquet", "csv", "libsvm"):
        raise ValueError(f"{paths[0]}: Spark reads Parquet, CSV and LIBSVM files: convert it, or do without Spark.")
    label = "label" if kind == "libsvm" else columns.label
    if label is None:
        raise ValueError("Say which column holds the class, with label='name'.")
    spark = session(master)
    PySparkException = import_optional("pyspark.errors", "spark").PySparkException
    try:
        df = read(spark, kind, files, columns)
        if kind == "csv":
            check_csv_options(df.columns, files[0], columns)
        features = "features" if kind == "libsvm" else columns.feature_names(df.columns, str(files[0]))
        return select_frame(
            df,
            features=features,
            label=str(label),
            settings=settings,
            task=columns.task,
            discrete_features=columns.discrete_features,
            verbose=verbose,
        )
    except PySparkException as error:
        raise ValueError(f"Spark: {str(error).splitlines()[0]}") from None
    finally:
        spark.stop()
