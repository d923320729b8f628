"""Files read by Spark: what `belief select --engine spark` runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belief.data.files import Wanted, chosen_names, find_files
from belief.data.tabular import MISSING, CsvFiles
from belief.engines.spark.frame import quoted
from belief.frames import select_frame
from belief.method.settings import Settings
from belief.result import Result


def session(master: str | None) -> Any:
    """A session on a master: local[2], spark://host:port, yarn, k8s://..., or sc://host:port for Spark Connect."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ValueError("--engine spark needs PySpark: pip install 'belief-fs[spark]'.") from None
    if master is None or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the executors may be of another environment
    builder = SparkSession.builder.appName("belief")
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in quiet.items():
        builder = builder.config(name, value)
    return (builder.master(master) if master else builder).getOrCreate()


def select_files(paths: Sequence[Path], wanted: Wanted, settings: Settings, master: str | None, verbose: int) -> Result:
    """Select features of files that Spark reads; the order of the rows is the one Spark gives them."""
    kind, files = find_files(paths)
    if kind not in ("parquet", "csv", "libsvm"):
        raise ValueError(f"{paths[0]}: --engine spark reads Parquet, CSV and LIBSVM files; use --engine local.")
    label = "label" if kind == "libsvm" else wanted.label
    if label is None:
        raise ValueError("Say which column holds the class, with --label NAME.")
    spark = session(master)
    from pyspark.errors import PySparkException

    try:
        df = read(spark, kind, files, wanted)
        features = "features" if kind == "libsvm" else chosen_names(df.columns, str(files[0]), wanted)
        discrete = wanted.discrete or "auto"
        return select_frame(
            df, features=features, label=label, settings=settings, discrete_features=discrete, verbose=verbose
        )
    except PySparkException as error:
        raise ValueError(f"Spark: {str(error).splitlines()[0]}") from None
    finally:
        spark.stop()


def read(spark: Any, kind: str, files: Sequence[Path], wanted: Wanted) -> Any:
    """The files as a DataFrame."""
    places = [str(file.absolute()) for file in files]
    if kind == "libsvm":
        return spark.read.format("libsvm").load(places)
    return spark.read.parquet(*places) if kind == "parquet" else read_csv(spark, places, files, wanted)


def read_csv(spark: Any, places: list[str], files: Sequence[Path], wanted: Wanted) -> Any:
    """CSV files by the rules of the other engine: the same names and types, and the same words for "missing"."""
    from pyspark.sql import functions

    names = [name for name in wanted.discrete if isinstance(name, str)]
    plain = CsvFiles(files, wanted.csv, wanted.label, names)
    rows = spark.read.csv(places, header=wanted.csv.header, sep=wanted.csv.separator_of(files[0]), escape='"')
    chosen = []
    for name, field in zip(rows.columns, plain.schema, strict=True):
        text = functions.col(quoted(name))
        there = functions.when(~text.isin(MISSING), text)
        types = {"double": "double", "int64": "long", "bool": "boolean"}
        chosen.append(there.cast(types.get(str(field.type), "string")).alias(field.name))
    return rows.select(*chosen)
