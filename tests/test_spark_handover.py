"""Rows that pyarrow reads from Parquet files are the same as rows that Spark passes to Python."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_spark_engine import same, table, vectors

import belief
from belief.engines.spark.frame import open_frame
from belief.method.settings import Settings
from belief.spark.frames import select_frame

pytestmark = pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="Spark Connect does not show query plans")
N = 400
CHOSEN = {"n_features_to_select": 3, "random_state": 1, "scale": "standard", "sample_size": 150}


def selected(df, features):
    return select_frame(df, features=features, label="label", settings=Settings(**CHOSEN))


def mixed():
    """Return columns of all types, some with missing values."""
    X, y = table(N)
    rng = np.random.default_rng(2)
    columns = {f"x{j}": pa.array(X[:, j].astype([np.float32, np.float64][j % 2])) for j in range(8)}
    columns["with a.dot"] = pa.array(np.where(rng.random(N) < 0.2, None, X[:, 0]), pa.float64())
    columns["whole"] = pa.array(rng.integers(-5, 5, N))
    columns["Small"] = pa.array(rng.integers(-5, 5, N), pa.int8())
    columns["word"] = pa.array(np.where(rng.random(N) < 0.7, np.array(["a", "b", None])[y], "z"), pa.string())
    columns["yes"] = pa.array(y == rng.integers(0, 3, N))
    return {**columns, "label": pa.array(y)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write two tables of the same rows: "plain" has one column per feature, "array" has x0 to x7 in one array column.

    Each table is divided into partition folders, and each file into row groups.
    """
    home = tmp_path_factory.mktemp("a name%20 with ü")
    rows = pa.table(mixed())
    arrays = pa.array(list(np.column_stack([rows[f"x{j}"] for j in range(8)])), pa.list_(pa.float32()))
    for kind, whole in {"plain": rows, "array": pa.table({"features": arrays, "label": rows["label"]})}.items():
        for k in range(3):
            path = home / kind / f"part={k}" / "rows.parquet"
            path.parent.mkdir(parents=True)
            parquet.write_table(whole.slice(k * 150, 150), path, row_group_size=60)
    return home


@pytest.fixture
def plain(spark, folder):
    return spark.read.parquet(str(folder / "plain"))


NAMES = [name for name in mixed() if name != "label"]


def computed(df):
    """Return a DataFrame with the rows of `df`, in which Spark computes the column x0 (times 1).

    So pyarrow cannot read the rows from the files; Spark has to pass them to Python.
    """
    from pyspark.sql import functions

    return df.withColumn("x0", df.x0 * functions.lit(1.0).cast("float"))


READ = {
    "all of it": lambda df: df,
    "filtered": lambda df: df.filter("whole > -3"),
    "few of many": lambda df: df.filter("x0 > 1 or whole = 2"),
    "partitions": lambda df: df.filter("part > 0"),
    "a column computed": lambda df: df.withColumn("other", df.x0 * 2),
    "a sample": lambda df: df.sample(0.6, seed=4),
}
NOT_READ = {
    "computed": lambda df: df.withColumn("x0", df.x0 * 2),
    "renamed": lambda df: df.withColumnRenamed("x1", "y1").withColumnRenamed("x0", "x1").withColumnRenamed("y1", "x0"),
    "ordered": lambda df: df.orderBy("whole"),
    "joined": lambda df: df.join(df.select("whole").distinct(), "whole"),
    "a union": lambda df: df.union(df),
    "persisted": lambda df: df.filter("x1 < 7").persist(),
    "limited": lambda df: df.limit(300),
}


@pytest.mark.filterwarnings("ignore:The share of missing values:UserWarning")
@pytest.mark.parametrize("case", READ)
def test_file_rows_are_those_that_spark_hands_over(plain, case):
    df = READ[case](plain)
    assert open_frame(df, NAMES, "label", "auto").reader.files is not None
    got = selected(df, NAMES)
    df = computed(df)
    expected = selected(df, NAMES)
    assert open_frame(df, NAMES, "label", "auto").reader.files is None
    same(got, expected)
    assert got.weights.tolist() == expected.weights.tolist()  # bit for bit, because the blocks are the same


@pytest.mark.parametrize("case", NOT_READ)
def test_is_bare_scan_is_false_for_computed_rows(plain, case):
    df = NOT_READ[case](plain)
    assert open_frame(df, NAMES, "label", "auto").reader.files is None
    df.unpersist()


def test_is_bare_scan_is_false_for_partition_columns(plain):
    assert open_frame(plain, ["x0", "part"], "label", "auto").reader.files is None
    assert open_frame(plain, ["x0", "x1"], "part", "auto").reader.files is not None  # labels come from Spark
    df = plain.select("x0", "x1", "part", "label")
    assert belief.select(df, label="part", **CHOSEN).classes.tolist() == [0, 1, 2]


def test_file_rows_with_arrays_and_vectors(spark, folder, tmp_path):
    df = spark.read.parquet(str(folder / "array"))
    rows = parquet.read_table(folder / "array", columns=["features", "label"])
    X, y = np.array(rows["features"].to_pylist(), np.float32), rows["label"].to_numpy()
    expected = belief.select(X, y, **CHOSEN)
    assert open_frame(df, "features", "label", "auto").reader.files is not None
    same(selected(df, "features"), expected)
    for name, dense in (("dense", np.ones(N, bool)), ("mixed", np.arange(N) % 3 > 0)):
        vectors(spark, X.astype(float), y, dense).coalesce(1).write.parquet(str(tmp_path / name))
        stored = spark.read.parquet(str(tmp_path / name))
        assert open_frame(stored, "features", "label", "auto").reader.files is not None
        same(selected(stored, "features"), expected)


@pytest.mark.parametrize("kinds", [["float"], ["double"], ["float", "double"]])
def test_open_frame_combines_float_columns_to_an_array(spark, kinds):
    X, y = table(N)
    X = X.astype(np.float32).astype(float)
    X[5:9, 3] = np.nan
    rows = [(*(None if np.isnan(v) else v for v in x.tolist()), int(c)) for x, c in zip(X, y, strict=True)]
    names = [f"x{j}" for j in range(8)]
    schema = ", ".join(f"{name} {kinds[j % len(kinds)]}" for j, name in enumerate(names))
    df = spark.createDataFrame(rows, f"{schema}, label int")
    assert open_frame(df, names, "label", "auto").df.columns == ["size", "values", "label"]
    same(selected(df, names), belief.select(X, y, **CHOSEN))


def test_a_column_missing_in_some_files_is_null_there(spark, tmp_path):
    X, y = table(N)
    whole = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "label": y})
    parquet.write_table(whole.slice(0, 200).drop_columns(["x2"]), tmp_path / "a.parquet")
    parquet.write_table(whole.slice(200), tmp_path / "b.parquet")
    df = spark.read.option("mergeSchema", True).parquet(str(tmp_path))
    assert open_frame(df, ["x0", "x1", "x2"], "label", "auto").reader.files is not None
    got = selected(df, ["x0", "x1", "x2"])
    same(got, selected(computed(df), ["x0", "x1", "x2"]))


@pytest.mark.parametrize("n", [100, 101])
def test_many_computed_columns_are_not_compiled_as_one_stage(spark, n):
    """Compiling more than 100 columns takes longer than computing them. The settings of the session are restored."""
    setting = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(setting)
    columns = [f"sin(id * {j + 1} + {n}) AS c{j}" for j in range(n)]
    df = spark.range(0, 60, 1, 1).selectExpr(*columns, "id % 2 AS label")
    X = np.sin(n + np.outer(np.arange(60), np.arange(n) + 1))
    expected = belief.select(X, np.arange(60) % 2, **CHOSEN)
    assert selected(df, df.columns[:-1]).selected.tolist() == expected.selected.tolist()
    assert spark.conf.get(setting) == before
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    queries = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [queries.apply(i).physicalPlanDescription() for i in range(queries.size())]
    compiled = {"* Project" in plan for plan in plans if f"+ {n})" in plan}  # a star marks compiled steps of a plan
    assert compiled == {n == 100}
