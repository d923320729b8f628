"""Select features of a Spark DataFrame, or of files that Spark reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.api import run_engine
from belief.data.columns import ColumnSelection
from belief.data.files import find_files
from belief.data.stream import check_csv_options
from belief.engines.spark.executors import frame_engine
from belief.engines.spark.frame import open_frame
from belief.engines.spark.session import read_files, start_session
from belief.method.settings import Settings
from belief.progress import Callback, Reporter
from belief.result.result import Result

JOINT_MEMORY_MB = 1024  # memory of the driver for joint collisions


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
    given: Sequence[Any] = (),
) -> Result:
    """Select features of a Spark DataFrame; the rows stay on the executors.

    Parameters
    ----------
    df : a DataFrame of classic Spark or Spark Connect
    features : a column of vectors, or the names of plain columns (numbers, booleans, strings, dates or times; null is
        missing)
    label : the target column
    task : "classification", "regression", or "auto" to infer the task from the label
    discrete_features : mask, indices or names of the nominal features
    staging : where the rows are held during the fit: "memory", "disk", a folder that all executors can read, or "auto":
        a temporary folder if Spark runs on one machine, otherwise memory, or disk if executors have little
    """
    frame = open_frame(df, features, label, discrete_features, task)
    reporter = Reporter(callback, bar=verbose > 0)
    with reporter, frame_engine(frame, staging, lambda what: reporter.rows(0, 0, what)) as engine:
        return run_engine(engine, settings, lambda: frame.names, JOINT_MEMORY_MB, reporter, given=given)


def select_files(
    paths: Sequence[Path],
    columns: ColumnSelection,
    settings: Settings,
    master: str | None,
    verbose: int,
    given: Sequence[Any] = (),
) -> Result:
    """Select features of files that Spark reads, in the order in which Spark reads their rows."""
    kind, files = find_files(paths)
    if kind not in ("parquet", "csv", "libsvm"):
        raise ValueError(
            f"{paths[0]} is not a Parquet, CSV or LIBSVM file, the formats that Spark reads. Convert it, or use the"
            " local engine."
        )
    label = "label" if kind == "libsvm" else columns.label
    if label is None:
        raise ValueError("The target column is missing. Name it with label='column'.")
    spark = start_session(master)
    PySparkException = import_optional("pyspark.errors", "spark").PySparkException
    try:
        df = read_files(spark, kind, files, columns)
        if kind == "csv":
            check_csv_options(df.columns, files[0], columns)
        return select_frame(
            df,
            features="features" if kind == "libsvm" else columns.feature_names(df.columns, str(files[0])),
            label=str(label),
            settings=settings,
            task=columns.task,
            discrete_features=columns.discrete_features,
            verbose=verbose,
            given=given,
        )
    except PySparkException as error:
        raise ValueError(f"Spark: {str(error).splitlines()[0]}") from None
    finally:
        spark.stop()
