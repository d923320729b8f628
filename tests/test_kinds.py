"""Every kind of X that the guide lists works, or raises the error message that the guide shows."""

import csv
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from scipy import sparse
from sklearn.datasets import load_iris

import belief
from belief import BeliefSelector

KINDS = Path(__file__).parents[1] / "docs" / "guide" / "data" / "kinds.csv"
M = 60
rng = np.random.default_rng(0)
Y = np.repeat([0, 1], M // 2)
X = rng.standard_normal((M, 4)).round(3)
X[:, 2] += 3 * Y
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])
LABELLED = FRAME.assign(y=Y)


def duckdb():
    """Return the module, whose default connection stays open; before DuckDB 1.5, relations do not keep theirs open."""
    return pytest.importorskip("duckdb")


def from_file(name, open_):
    """Return a function that writes files to a folder and opens the one with this name."""

    def make(folder):
        LABELLED.to_csv(folder / "table.csv", index=False)
        LABELLED.to_parquet(folder / "table.parquet", index=False)
        LABELLED[:30].to_parquet(folder / "head.parquet", index=False)
        LABELLED[30:].to_parquet(folder / "tail.parquet", index=False)
        np.save(folder / "X.npy", X)
        return open_(folder / name)

    return make


def memory_map(path):
    return np.load(path, mmap_mode="r")


def as_anndata():
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    obs = pd.DataFrame({"y": Y}, index=[f"cell{i}" for i in range(M)])
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=FRAME.columns))


WITH_Y = {
    "NumPy array": lambda folder: X,
    "memory map": from_file("X.npy", memory_map),
    "masked array": lambda folder: np.ma.array(X),
    "array of objects": lambda folder: X.astype(object),
    "list of lists": lambda folder: X.tolist(),
    "SciPy sparse matrix": lambda folder: sparse.csc_matrix(X),
    "torch tensor": lambda folder: pytest.importorskip("torch").tensor(X),
    "list of blocks": lambda folder: [X[:20], X[20:]],
    "xarray DataArray": lambda folder: pytest.importorskip("xarray").DataArray(X, dims=("row", "column")),
    "HDF5 dataset": lambda folder: pytest.importorskip("h5py").File(folder / "X.h5", "w").create_dataset("X", data=X),
    "Zarr array": lambda folder: pytest.importorskip("zarr").array(X),
    "dask array": lambda folder: pytest.importorskip("dask.array").from_array(X, chunks=(20, 4)),
    "path of an NPY file": from_file("X.npy", Path),
    "generator of arrays": lambda folder: (X[a : a + 20] for a in (0, 20, 40)),
    "generator of sparse matrices": lambda folder: (sparse.csr_array(X[a : a + 20]) for a in (0, 20, 40)),
}
WITH_LABEL = {
    "pandas DataFrame": lambda folder: LABELLED,
    "polars DataFrame": lambda folder: pl.from_pandas(LABELLED),
    "Arrow table": lambda folder: pa.Table.from_pandas(LABELLED),
    "Arrow record batch": lambda folder: pa.RecordBatch.from_pandas(LABELLED),
    "structured array": lambda folder: LABELLED.to_records(index=False),
    "dictionary of columns": lambda folder: LABELLED.to_dict("list"),
    "polars LazyFrame": lambda folder: pl.from_pandas(LABELLED).lazy(),
    "DuckDB relation": from_file("table.parquet", lambda path: duckdb().read_parquet(str(path))),
    "DuckDB result": from_file("table.parquet", lambda path: duckdb().execute(f"select * from '{path}'")),
    "Arrow dataset": from_file("table.parquet", dataset.dataset),
    "Arrow scanner": from_file("table.parquet", lambda path: dataset.dataset(path).scanner()),
    "Parquet file": from_file("table.parquet", parquet.ParquetFile),
    "record batch reader": lambda folder: pa.Table.from_pandas(LABELLED).to_reader(),
    "dask DataFrame": lambda folder: pytest.importorskip("dask.dataframe").from_pandas(LABELLED, npartitions=3),
    "AnnData table": lambda folder: as_anndata(),
    "path of an H5AD file": lambda folder: (as_anndata().write_h5ad(folder / "X.h5ad"), folder / "X.h5ad")[1],
    "generator of DataFrames": lambda folder: (LABELLED[a : a + 20] for a in (0, 20, 40)),
    "path of a CSV file": from_file("table.csv", str),
    "path of a Parquet file": from_file("table.parquet", Path),
    "list of paths": from_file("", lambda folder: [folder / "head.parquet", folder / "tail.parquet"]),
}
REFUSED = {
    "`None`": lambda folder: None,
    "a number": lambda folder: 3,
    "a set": lambda folder: {1, 2},
    "bytes": lambda folder: b"a,b",
    "a function": lambda folder: load_iris,
    "a class": lambda folder: pd.DataFrame,
    "an estimator": lambda folder: BeliefSelector(),
    "a Result": lambda folder: belief.select(X, Y, 1, random_state=0),
    "an open file": from_file("table.csv", Path.open),
    "a grouped DataFrame": lambda folder: LABELLED.groupby("y"),
    "a database cursor": lambda folder: sqlite3.connect(":memory:").execute("select 1"),
    "a text that is no path": lambda folder: "customers",
    "a pandas Series": lambda folder: FRAME["a"],
    "a polars Series": lambda folder: pl.Series([1.0, 2.0]),
    "an array of one dimension": lambda folder: X[:, 0],
    "an array of three dimensions": lambda folder: X.reshape(3, 20, 4),
    "an array of no dimension": lambda folder: np.array(3.0),
    "rows of different lengths": lambda folder: [[1, 2], [3]],
    "complex numbers": lambda folder: X + 1j,
    "a dictionary of numbers": lambda folder: {"a": 1, "b": 2},
    "a scikit-learn Bunch": lambda folder: load_iris(),
    "an iterator of numbers": lambda folder: iter([1, 2]),
    "a generator that was used up": lambda folder: iter([]),
}
with KINDS.open(newline="") as listed:
    TABLE = dict(list(csv.reader(listed))[1:])


def test_the_guide_lists_all_kinds():
    assert set(TABLE) == {*WITH_Y, *WITH_LABEL, *REFUSED}
    assert len(TABLE) >= 40


@pytest.fixture(scope="module")
def expected():
    return belief.select(X, Y, 2, random_state=0)


@pytest.mark.parametrize("kind", WITH_Y | WITH_LABEL)
def test_works_and_gives_the_same_weights_bit_for_bit(kind, tmp_path, expected):
    if kind in WITH_Y:
        result = belief.select(WITH_Y[kind](tmp_path), Y, 2, random_state=0)
    else:
        result = belief.select(WITH_LABEL[kind](tmp_path), "y", 2, random_state=0)
        assert result.feature_names == list(FRAME)
    if "sparse" in kind:  # sparse rows are summed in another way
        np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-12)
    else:
        np.testing.assert_array_equal(result.weights, expected.weights)
    assert TABLE[kind] == "works"


@pytest.mark.parametrize("kind", REFUSED)
def test_is_refused_in_one_sentence(kind, tmp_path):
    thing = REFUSED[kind](tmp_path)
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        belief.select(thing, Y)
    if kind in ("an open file", "a database cursor"):
        thing.close()
    assert str(error.value).replace("`", "") == TABLE[kind].replace("`", "")
    assert "0D" not in str(error.value)


@pytest.mark.parametrize("y", [{1, 2}, {"a": 1}, iter(Y), pl.LazyFrame({"y": Y}), sorted, 3.5])
def test_wrong_kinds_of_y(y):
    with pytest.raises(ValueError, match=r"y is (a|an|the) .*Pass an array, a Series or a list"):
        belief.select(X, y)


@pytest.mark.parametrize("y", [pd.DataFrame({"y": Y}), pl.DataFrame({"y": Y}), pa.table({"y": Y})])
def test_y_as_a_table_of_one_column(y):
    assert belief.select(X, y, 1, random_state=0).selected.tolist() == [2]


def test_damaged_arrow_table_raises():
    offsets, letters = (pa.py_buffer(data) for data in (np.array([0, 5, 3, 9], np.int32).tobytes(), b"abcdefghi"))
    table = pa.table({"a": pa.StringArray.from_buffers(3, offsets, letters), "y": [0, 1, 0]})
    with pytest.raises(ValueError, match=r"X, an Arrow table, is damaged: .*offset.* Read or create it again"):
        belief.select(table, "y")


def test_given_by_position_in_a_mapping_raises():
    with pytest.raises(ValueError, match="given contains the position of a column, but X is a dict"):
        belief.select({"a": Y, "b": Y}, Y, given=[0])


def test_swapped():
    for table in (X, FRAME, pl.from_pandas(FRAME)):
        with pytest.raises(ValueError, match="X has one dimension and y has 4 columns: they look swapped"):
            belief.select(Y, table)
        with pytest.raises(ValueError, match="they look swapped"):
            BeliefSelector().fit(pd.Series(Y), table)


def test_columns_joined_by_commas():
    with pytest.raises(
        ValueError, match=r"drop: 'a, b' names 2 columns of X in one string.*drop=\['a', 'b'\].*--drop a b"
    ):
        belief.select(FRAME, Y, drop="a, b")


def test_estimator_in_place_of_a_result():
    selector = BeliefSelector(2, random_state=0).fit(X, Y)
    for function in (belief.plot.ranking, belief.plot.redundancy, belief.report.render):
        with pytest.raises(ValueError, match=r"must be a belief\.Result; got a BeliefSelector\. Pass its attribute"):
            function(selector)
        with pytest.raises(ValueError, match=r"got a int\. Pass the return value of belief.select"):
            function(3)


def test_classes_that_differ_in_white_space():
    with pytest.warns(UserWarning, match="y has the classes 'yes' and 'yes ', which differ only in white space"):
        result = belief.select(X, np.array(["yes", "yes ", "no"])[np.arange(M) % 3], 1, random_state=0)
    assert result.classes.tolist() == ["no", "yes", "yes "]


@pytest.mark.parametrize("kind", ["polars LazyFrame", "record batch reader", "generator of DataFrames"])
def test_estimators_need_tables_in_memory(kind, tmp_path):
    with pytest.raises(ValueError, match=r"Convert it to a DataFrame, or pass it to belief.select"):
        BeliefSelector(2).fit(WITH_LABEL[kind](tmp_path), Y)
