"""Selection of features from a Spark DataFrame, or from files that Spark reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from belief._utils.optional import import_optional
from belief.api import run_engine
from belief.data.columns import ColumnSelection
from belief.data.files import find_files
from belief.data.roles import ROLES, Roles, check_is_not_target, make_design
from belief.data.stream import check_csv_options
from belief.engines.designed import DesignedEngine
from belief.engines.spark.executors import frame_engine
from belief.engines.spark.frame import find_columns, is_mask, open_frame, quote
from belief.engines.spark.session import read_files, start_session
from belief.method.design import Design
from belief.method.protocols import Engine
from belief.method.settings import Settings
from belief.progress import Callback, Reporter
from belief.result.result import Result

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
NESTED = ("array", "map", "struct", "vector", "matrix", "binary")
MAX_EXACT = 2.0**53  # larger integers are not exact as float64
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
    roles: Roles | None = None,
) -> Result:
    """Select features of a Spark DataFrame. The rows stay on the executors.

    Parameters
    ----------
    df : a DataFrame of classic Spark or Spark Connect
    features : a column of vectors, or the names of plain columns (numbers, booleans, strings, dates or times; null is
        missing)
    label : the target column
    task : "classification", "regression", or "auto" to infer the task from the label
    discrete_features : mask, indices or names of the nominal features
    staging : where the rows are held during the fit: "memory", "disk", or a folder that all executors can read; "auto"
        chooses a temporary folder if Spark runs on one machine, and otherwise memory, or disk if memory is short
    """
    also, named = [], {}  # type: list[str], dict[str, list[Any]]
    if roles is not None and roles.exist:
        df, named = check_roles(df, features, label, roles)
        also = list(dict.fromkeys(name for each in named.values() for name in each))
        if is_mask(discrete_features):
            discrete_features = [*discrete_features, *[False] * len(also)]
    frame = open_frame(df, [*features, *also] if also else features, label, discrete_features, task)
    spec, names = replace(frame.spec, roles=len(also)), frame.names
    names = names if names is None else names[: len(names) - len(also)]
    reporter = Reporter(callback, bar=verbose > 0)
    with reporter, frame_engine(replace(frame, spec=spec), staging, lambda what: reporter.rows(0, 0, what)) as cluster:
        cluster.report = reporter.rows

        def read_design() -> Design:
            columns = dict(zip(also, cluster.roles, strict=True))
            exact = [(role, name) for role in ("groups", "adjust_for") for name in named.get(role, ())]
            for role, name in exact:
                if columns[name].dtype.kind == "f" and np.nanmax(np.abs(columns[name]), initial=0.0) >= MAX_EXACT:
                    raise ValueError(
                        f"{role}: column {name!r} holds integers of 2^53 or more, which are not exact as floats. Cast"
                        " it to string."
                    )
            found = {role: [columns[name] for name in each] for role, each in named.items()}
            return make_design(Roles().with_values(found))

        engine: Engine = DesignedEngine(cluster, read_design) if also else cluster
        return run_engine(engine, settings, lambda: names, JOINT_MEMORY_MB, reporter, given=given)


def check_roles(df: Any, features: str | Sequence[str], label: str, roles: Roles) -> tuple[Any, dict[str, list[Any]]]:
    """Return the DataFrame without rows of weight 0, and the names of the columns of groups, strata and weights.

    Raise a ValueError if these columns do not exist or cannot be used.
    """
    if isinstance(features, str):
        raise ValueError(
            "groups, adjust_for and sample_weight need plain feature columns. Pass the names of the features as"
            " inputCols."
        )
    named = {role: find_columns(df, names) for role, names in roles.columns().items()}
    for role in ROLES:
        if getattr(roles, role) is not None and role not in named:
            raise ValueError(
                f"{role} must name a column of the DataFrame; got a {type(getattr(roles, role)).__name__}."
            )
    for role, names in named.items():
        check_is_not_target(names, label, role)
        for name in names:
            kind = df.schema[name].dataType.simpleString()
            if role == "sample_weight" and not kind.startswith(NUMBERS):
                raise ValueError(
                    f"sample_weight must hold numbers, but column {name!r} is of type {kind}. Cast it to double."
                )
            if kind.startswith(NESTED):
                raise ValueError(f"{role}: column {name!r} is of type {kind}. Name a column of numbers, text or dates.")
        for name in {*names} & {*find_columns(df, list(features))}:
            raise ValueError(f"Column {name!r} is a feature, and also given as {role}. Remove it from the features.")
    if "sample_weight" in named:
        weight = quote(named["sample_weight"][0])
        df = df.filter(f"{weight} IS NULL OR {weight} != 0")
    return df, named


def select_files(
    paths: Sequence[Path],
    columns: ColumnSelection,
    settings: Settings,
    master: str | None,
    verbose: int,
    given: Sequence[Any] = (),
    roles: Roles | None = None,
) -> Result:
    """Select features from files that Spark reads. Rows are numbered in the order in which Spark reads them."""
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
        if roles is not None:
            columns = replace(columns, drop=(*columns.drop, *(x for each in roles.columns().values() for x in each)))
        return select_frame(
            df,
            features="features" if kind == "libsvm" else columns.feature_names(df.columns, str(files[0])),
            label=str(label),
            settings=settings,
            task=columns.task,
            discrete_features=columns.discrete_features,
            verbose=verbose,
            given=given,
            roles=roles,
        )
    except PySparkException as error:
        raise ValueError(f"Spark: {str(error).splitlines()[0]}") from None
    finally:
        spark.stop()
