"""Sessions, and files as DataFrames."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.data.columns import ColumnSelection
from belief.data.readers import MISSING, CsvFiles
from belief.engines.spark.frame import quoted


def session(master: str | None) -> Any:
    """A session on a master: local[2], spark://host:port, yarn, k8s://..., or sc://host:port for Spark Connect."""
    SparkSession = import_optional("pyspark.sql", "spark").SparkSession
    if master is None or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the executors may be of another environment
    builder = SparkSession.builder.appName("belief")
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in quiet.items():
        builder = builder.config(name, value)
    return (builder.master(master) if master else builder).getOrCreate()


def read(spark: Any, kind: str, files: Sequence[Path], columns: ColumnSelection) -> Any:
    """The files as a DataFrame."""
    places = [str(file.absolute()) for file in files]
    if kind == "libsvm":
        return spark.read.format("libsvm").load(places)
    return spark.read.parquet(*places) if kind == "parquet" else read_csv(spark, places, files, columns)


def read_csv(spark: Any, places: list[str], files: Sequence[Path], columns: ColumnSelection) -> Any:
    """CSV files by the rules of the other engine: the same names and types, and the same words for "missing"."""
    from pyspark.sql import functions

    discrete = columns.discrete_features
    names = [] if isinstance(discrete, str) else [name for name in discrete if isinstance(name, str)]
    plain = CsvFiles(files, columns, names)
    form = {"header": columns.header, "sep": columns.separator_for(files[0]), "encoding": columns.encoding}
    rows = spark.read.csv(places, escape='"', **form)
    chosen = []
    for name, field in zip(rows.columns, plain.schema, strict=True):
        text = functions.col(quoted(name))
        there = functions.when(~text.isin(MISSING), text)
        types = {"double": "double", "int64": "long", "bool": "boolean"}
        chosen.append(there.cast(types.get(str(field.type), "string")).alias(field.name))
    return rows.select(*chosen)
