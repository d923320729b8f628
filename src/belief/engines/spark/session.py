"""Spark sessions: start one, read files, cancel jobs, and explain Spark's errors in one sentence."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from belief._utils.optional import import_optional
from belief.data.columns import ColumnSelection
from belief.data.readers import MISSING, CsvFiles
from belief.engines.spark.frame import quote
from belief.engines.spark.workers import explain_error

STAGING_BATCH_ROWS = 2000
MAX_COMPILED_COLUMNS = 100  # the default of spark.sql.codegen.maxFields
STOPPED = "The Spark session was stopped during the fit. Start a new one, and fit again."
MAX_SECONDS_TO_CANCEL = 30
OLDEST_SPARK = 3, 5


def import_pyspark(name: str) -> Any:
    """Import a module of PySpark; raise an ImportError if PySpark is too old."""
    module = import_optional(name, "spark")
    version = import_optional("pyspark", "spark").__version__
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_SPARK:
        oldest = ".".join(map(str, OLDEST_SPARK))
        raise ImportError(
            f"belief needs Spark {oldest} or newer, but PySpark {version} is installed. Use a newer Spark, or write the"
            " table to Parquet files and select from these."
        )
    return module


def start_session(master: str | None) -> Any:
    """Start a Spark session on a master.

    The master is, for example, local[2], spark://host:port, yarn or k8s://..., or sc://host:port for Spark Connect.
    """
    SparkSession = import_pyspark("pyspark.sql").SparkSession
    if master is None or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors use this environment too
    builder = SparkSession.builder.appName("belief")
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    return (builder.master(master) if master else builder).getOrCreate()


def read_files(spark: Any, kind: str, files: Sequence[Path], columns: ColumnSelection) -> Any:
    """Return Parquet, CSV or LIBSVM files as a DataFrame, with names, types and missing values as without Spark."""
    from pyspark.sql import functions

    paths = [str(file.absolute()) for file in files]
    if kind == "libsvm":
        return spark.read.format("libsvm").load(paths)
    if kind == "parquet":
        return spark.read.parquet(*paths)
    discrete = columns.discrete_features
    names = [] if isinstance(discrete, str) else [name for name in discrete if isinstance(name, str)]
    schema = CsvFiles(files, columns, names).schema
    options = {"header": columns.header, "sep": columns.separator_for(files[0]), "encoding": columns.encoding}
    rows = spark.read.csv(paths, escape='"', **options)
    types = {"double": "double", "int64": "long", "bool": "boolean"}
    converted = []
    for name, field in zip(rows.columns, schema, strict=True):
        text = functions.col(quote(name))
        present = functions.when(~text.isin(MISSING), text)
        converted.append(present.cast(types.get(str(field.type), "string")).alias(field.name))
    return rows.select(*converted)


def cancel_jobs(spark: Any, tag: str) -> None:
    """Cancel the jobs with a tag, and wait until their tasks have ended.

    Otherwise, they could still write to a folder that is about to be removed.
    """
    context = getattr(spark, "_sc", None)
    if context is None:
        spark.interruptTag(tag)
        return
    context.cancelJobsWithTag(tag)
    tracker, until = context._jsc.sc().statusTracker(), time.monotonic() + MAX_SECONDS_TO_CANCEL
    while time.monotonic() < until:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job.isDefined() for stage in job.get().stageIds()]
        if not any(stage.isDefined() and stage.get().numActiveTasks() > 0 for stage in stages):
            return
        time.sleep(0.05)


# session id -> (number of stagings that run, settings before the first of them)
_staging_sessions: dict[int, tuple[int, dict[str, str]]] = {}
_lock = Lock()


@contextmanager
def staging_settings(spark: Any, n_columns: int) -> Iterator[None]:
    """Change two settings of a session so that staging is faster, and restore them afterwards.

    Arrow batches get at most 2,000 rows. They then stay in the CPU cache, which is 10 % faster, and take less memory if
    rows are wide. With more than 100 columns, stages are not compiled, because compiling a thousand computed columns
    takes longer than computing them, and may exhaust the memory of the driver. Spark has the same limit, but it counts
    columns that are combined to one array as one column.

    Several threads may stage at the same time (CrossValidator's parallelism); the last one restores the settings.
    """
    batch_rows, compiling = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.codegen.wholeStage"
    session = id(spark)
    with _lock:
        n, before = _staging_sessions.get(
            session, (0, {name: spark.conf.get(name) for name in (batch_rows, compiling)})
        )
        _staging_sessions[session] = n + 1, before
        limit = int(before[batch_rows])
        spark.conf.set(batch_rows, str(min(STAGING_BATCH_ROWS, limit) if limit > 0 else STAGING_BATCH_ROWS))
        if n_columns > MAX_COMPILED_COLUMNS:
            spark.conf.set(compiling, "false")
    try:
        yield
    finally:
        with _lock:
            n = _staging_sessions.pop(session)[0] - 1
            if n:
                _staging_sessions[session] = n, before
            else:
                with suppress(Exception):  # fails if the session has been stopped
                    for name, value in before.items():
                        spark.conf.set(name, value)


@contextmanager
def clear_errors(spark: Any) -> Iterator[None]:
    """Replace the long messages of some errors of Spark jobs by one sentence.

    These are errors that this package raises on an executor, errors of the executors' Python environment, and errors of
    jobs that were ended from outside.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        message = str(error)
        ours = re.search(r"^ValueError: (.*)$", message, re.MULTILINE)
        if ours is not None and re.search(r'File "[^"]*[/\\]belief[/\\]', message):  # not raised by a user's function
            raise ValueError(ours[1]) from None
        explanation = explain_end(message) or (STOPPED if has_stopped(spark) else explain_error(spark, message))
        if explanation is None:
            raise
        raise RuntimeError(explanation) from None
    except AttributeError:  # raised by PySpark, whose context is None after a stop
        if not has_stopped(spark):
            raise
        raise RuntimeError(STOPPED) from None


def has_stopped(spark: Any) -> bool:
    """Return True if the session has been stopped. On Spark Connect, return False."""
    context = getattr(spark, "_sc", None)
    if context is None:
        return False
    java_context = context._jsc  # None after a stop
    if java_context is None:
        return True
    from py4j.protocol import Py4JError

    try:
        return java_context.sc().isStopped()
    except (Py4JError, OSError):  # the JVM has ended; the error that led here says more
        return False


def explain_end(message: str) -> str | None:
    """Return an explanation of the error if a job was ended from outside, such as by lost executors; otherwise None."""
    if re.search("OutOfMemoryError|ExecutorLostFailure|MetadataFetchFailed", message):
        return (
            "Spark lost executors during the fit, most likely because they ran out of memory. Increase"
            " spark.executor.memory or spark.executor.memoryOverhead, use fewer cores per executor, or pass"
            " staging='disk' (see docs/spark.md)."
        )
    if re.search("SparkContext (was|has been) (shut down|stopped)|stopped SparkContext", message, re.IGNORECASE):
        return STOPPED
    if re.search(r"cancelled|OPERATION_CANCELED|SESSION_CLOSED", message):
        return "The fit was stopped, because its Spark jobs were cancelled."
    return None
