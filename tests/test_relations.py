"""Lazy frames, relations, datasets, partitioned frames, readers and generators give the same result as the table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import belief
from belief.data import relations
from belief.data.columns import ColumnSelection
from belief.data.inputs import open_input
from belief.data.labels import Labels

M = 3000
rng = np.random.default_rng(3)
Y = rng.integers(0, 2, M)
FRAME = pd.DataFrame(rng.standard_normal((M, 6)), columns=[f"f{j}" for j in range(6)])
FRAME["f3"] += Y
FRAME["whole"] = rng.integers(0, 50, M) + 9 * Y
FRAME["text"] = np.array(["a", "b", "the left side of the road"])[(Y + rng.integers(0, 2, M)) % 3]
FRAME["class"] = np.where(Y, "yes", "no")
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)
SETTINGS = {"label": "class", "n_features_to_select": 3, "random_state": 0}
EXPECTED = belief.select(FRAME, **SETTINGS)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("relations") / "table.parquet"
    parquet.write_table(TABLE, path)
    return path


def duckdb_relation(file):
    return pytest.importorskip("duckdb").read_parquet(str(file))


def duckdb_result(file):
    return pytest.importorskip("duckdb").execute(f"select * from '{file}'")


def dataset_of_views(file):
    """Return a Dataset of an Arrow file by polars, which stores text as string views."""
    path = file.with_suffix(".arrow")
    pl.from_pandas(FRAME).write_ipc(path)
    return dataset.dataset(path, format="ipc")


def dask_frame(file):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(FRAME, npartitions=4)


def foreign_stream(file):
    """Return an object that only has the Arrow stream interface."""

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return TABLE.__arrow_c_stream__(requested_schema)

    return Stream()


READ_AGAIN = {
    "LazyFrame": lambda file: pl.from_pandas(FRAME).lazy(),
    "scanned file": pl.scan_parquet,
    "DuckDB relation": duckdb_relation,
    "Dataset": dataset.dataset,
    "Dataset of views": dataset_of_views,
    "ParquetFile": parquet.ParquetFile,
    "dask": dask_frame,
}
READ_ONCE = {
    "DuckDB result": duckdb_result,
    "RecordBatchReader": lambda file: TABLE.to_reader(max_chunksize=700),
    "Scanner": lambda file: dataset.dataset(file).scanner(),
    "Arrow stream": foreign_stream,
    "generator of DataFrames": lambda file: (FRAME[a : a + 900] for a in range(0, M, 900)),
    "iterator of polars frames": lambda file: iter([pl.from_pandas(FRAME[:10]), pl.from_pandas(FRAME[10:])]),
    "generator of batches": lambda file: (batch for batch in TABLE.to_batches(max_chunksize=1000)),
}


def check(result):
    np.testing.assert_array_equal(result.weights, EXPECTED.weights)
    assert result.selected_names == EXPECTED.selected_names
    assert list(result.feature_names) == list(EXPECTED.feature_names)
    assert result.classes.tolist() == ["no", "yes"]


def check_in_batches(relation):
    """Check that a relation can be read several times, in batches of 700 rows."""
    stream, _, _ = open_input(relation, None, ColumnSelection(label="class"))
    assert isinstance(stream.files, relations.Relation)
    stream.files.max_batch_rows = 700
    result = belief.select(stream, n_features_to_select=3, random_state=0, working_memory=16)
    np.testing.assert_allclose(result.weights, EXPECTED.weights, rtol=1e-12)
    for columns in (["f1"], ["text", "f0"]):
        batches = list(stream.files.batches(columns))
        assert [len(batch) for batch in batches] == [700] * 4 + [200]
        assert pa.Table.from_batches(batches).to_pydict() == FRAME[columns].to_dict("list")


@pytest.mark.slow
@pytest.mark.parametrize("kind", READ_AGAIN)
def test_tables_that_can_be_read_again(kind, file):
    check_in_batches(READ_AGAIN[kind](file))


@pytest.mark.slow
@pytest.mark.parametrize("kind", READ_ONCE)
def test_tables_that_can_be_read_once(kind, file):
    check(belief.select(READ_ONCE[kind](file), **SETTINGS))


@pytest.mark.slow
@pytest.mark.parametrize("kind", READ_ONCE)
def test_large_tables_that_can_be_read_once(kind, file, monkeypatch):
    monkeypatch.setattr(relations.spool, "__defaults__", (1000, 2**30))  # tables above 1000 bytes are copied to a file
    check_in_batches(READ_ONCE[kind](file))


def test_large_reader_is_copied_with_one_warning(monkeypatch):
    monkeypatch.setattr(relations.spool, "__defaults__", (1000, 10_000))
    with pytest.warns(UserWarning, match=r"X can be read only once .* copied to .*belief-") as told:
        result = belief.select(TABLE.to_reader(max_chunksize=100), **SETTINGS)
    assert len(told) == 1
    assert told[0].filename == __file__
    check(result)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LazyFrame", "Dataset", "DuckDB relation"])
def test_target_as_array(kind, file):
    X = READ_AGAIN[kind](file)
    check(belief.select(X, FRAME["class"].to_numpy(), n_features_to_select=3, random_state=0, drop=["class"]))
    for y in (Y[1:], np.append(Y, 0)):
        with pytest.raises(ValueError, match=f"X and y must have the same number of rows.*y has {len(y)}"):
            belief.select(X, y, drop=["class"])


def test_rows_in_another_order_raise(file):
    relation = duckdb_relation(file).order("random()")
    with pytest.raises(ValueError, match=r"The rows of X came in another order.*Sort X by a unique column"):
        list(read_twice(relation))


def read_twice(relation):
    stream, _, _ = open_input(relation, None, ColumnSelection(label="class"))
    yield from stream.first_pass(Labels())
    yield from stream.later_pass()


@pytest.mark.slow
def test_generator_of_arrays_and_sparse_matrices():
    from scipy.sparse import csr_array

    X = FRAME.iloc[:, :7].to_numpy()
    expected = belief.select(X, Y, 3, random_state=0)
    result = belief.select((X[a : a + 500] for a in range(0, M, 500)), Y, 3, random_state=0)
    np.testing.assert_array_equal(result.weights, expected.weights)
    sparse = np.where(X > 1, X, 0)
    expected = belief.select(csr_array(sparse), Y, 3, random_state=0)
    result = belief.select((csr_array(sparse[a : a + 500]) for a in range(0, M, 500)), Y, 3, random_state=0)
    np.testing.assert_array_equal(result.weights, expected.weights)


BAD = {
    "no target": (lambda: pl.LazyFrame({"a": [1, 2]}), {}, "X needs a target: pass y, or name the target column"),
    "no label": (lambda: pl.LazyFrame({"a": [1, 2]}), {"label": "b"}, "label: there is no column 'b' in X"),
    "no rows": (lambda: pl.LazyFrame({"a": [1.0], "b": [1]}).head(0), {"label": "b"}, "X has no rows"),
    "query fails": (lambda: pl.LazyFrame({"a": [1]}).select("b"), {"label": "b"}, "LazyFrame, could not be read: .*b"),
    "one name twice": (
        lambda: pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8())] * 2), []), {"label": "b"},
        "X has more than one column named 'a'",
    ),
    "other columns": (
        lambda: iter([pl.DataFrame({"a": [1], "b": [2]}), pl.DataFrame({"a": [1]})]), {"label": "b"},
        "blocks of X have different columns: one has a, the first has a, b",
    ),
    "other types": (
        lambda: iter([pl.DataFrame({"a": [1], "b": [2]}), pl.DataFrame({"a": ["x"], "b": [1]})]), {"label": "b"},
        "Column 'a' of X has different types in different blocks: int64",
    ),
    "no blocks": (lambda: iter([]), {"label": "b"}, "X is an iterator without blocks"),
    "no tables": (lambda: iter([1, 2]), {"label": "b"}, "yielded an int, but it must yield blocks of rows"),
    "not a column": (lambda: {"a": [1, "x"]}, {"label": "a"}, "its entry 'a' is not a column"),
    "other lengths": (lambda: {"a": [1, 2], "b": [1]}, {"label": "a"}, "different lengths: 'a' has 2, 'b' has 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_relations_raise(name):
    X, options, message = BAD[name]
    with pytest.raises(ValueError, match=message) as error:
        belief.select(X(), **options)
    assert "\n" not in str(error.value)


def test_lazy_frame_of_older_polars_raises(monkeypatch):
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    with pytest.raises(ValueError, match=r"LazyFrame, which needs polars 1\.34 or newer"):
        belief.select(pl.from_pandas(FRAME).lazy(), **SETTINGS)


def test_relation_of_a_closed_connection_raises():
    connection = pytest.importorskip("duckdb").connect()
    relation = connection.sql("select range as a, range % 2 as b from range(9)")
    connection.close()
    for target in ({"label": "b"}, {"y": np.arange(9) % 2}):
        with pytest.raises(ValueError, match=r"DuckDBPyRelation, could not be read: .*has already been closed"):
            belief.select(relation, **target)


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_categories_in_partitions(known):
    dd = pytest.importorskip("dask.dataframe")
    frame = FRAME.assign(
        kind=pd.Categorical(FRAME["text"]),
        size=pd.Categorical(rng.choice([1, 5, 20], M)),
        flag=pd.array(rng.random(M) < 0.5, "boolean"),
        gaps=FRAME["f1"].where(rng.random(M) < 0.9),
        **{"class": pd.Categorical(FRAME["class"])},
    ).sort_values("kind")  # so that partitions have different categories
    X = dd.from_pandas(frame, npartitions=5, sort=False)
    if not known:
        X = X.assign(kind=X["kind"].cat.as_unknown(), size=X["size"].cat.as_unknown())
    expected, result = belief.select(frame, **SETTINGS), belief.select(X, **SETTINGS)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-12)
    assert result.selected_names == expected.selected_names
    named, known_names = ({d.feature: sorted(d.levels) for d in r.distributions} for r in (result, expected))
    assert named == known_names


@pytest.mark.slow
def test_empty_partitions():
    dd = pytest.importorskip("dask.dataframe")
    X = dd.from_pandas(FRAME, npartitions=4)
    kept = X[X["f0"] > X["f0"].min().compute()]
    emptied = dd.concat([X[X["f0"] > 99], kept])
    expected = FRAME[FRAME["f0"] > FRAME["f0"].min()]
    np.testing.assert_array_equal(
        belief.select(emptied, **SETTINGS).weights, belief.select(expected, **SETTINGS).weights
    )


@pytest.mark.filterwarnings("ignore:.*defaulting to pandas")
def test_modin():
    modin = pytest.importorskip("modin.pandas", reason="Modin is not installed")
    check(belief.select(modin.DataFrame(FRAME), **SETTINGS))


def test_ibis():
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    connection = ibis.polars.connect()
    connection.create_table("rows", pl.from_pandas(FRAME))
    check(belief.select(connection.table("rows"), **SETTINGS))


@pytest.mark.filterwarnings("ignore")
def test_ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", object_store_memory=200 * 2**20)
    try:
        check(belief.select(ray.data.from_pandas([FRAME[:1000], FRAME[1000:]]), **SETTINGS))
    finally:
        ray.shutdown()
