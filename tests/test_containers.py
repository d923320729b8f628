"""AnnData in memory and in files, arrays on disk, xarray, sparse columns of pandas, and names for arrays."""

import numpy as np
import pandas as pd
import pytest
from conftest import select_in_blocks
from scipy import sparse

import belief
from belief.data.columns import ColumnSelection
from belief.data.containers import ArrayStream
from belief.data.stream import open_files

M, F = 300, 12
rng = np.random.default_rng(9)
Y = rng.integers(0, 3, M)
TYPES = np.array(["B cell", "T cell", "monocyte"])[Y]
X = rng.poisson(0.4, (M, F)).astype(float)
X[:, 4] += 2 * Y
NAMES = [f"gene{j}" for j in range(F)]
SETTINGS = {"n_features_to_select": 3, "random_state": 0, "significance": None}
DENSE = belief.select(X, TYPES, **SETTINGS)
SPARSE = belief.select(sparse.csr_array(X), TYPES, **SETTINGS)


def check(result, expected, names=NAMES):
    np.testing.assert_array_equal(result.weights, expected.weights)
    assert list(result.feature_names) == list(names)
    assert result.selected.tolist() == expected.selected.tolist()


# --- names ---


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix, lambda X: [X[:100], X[100:]]])
def test_feature_names(form):
    result = belief.select(form(X), TYPES, **SETTINGS, feature_names=NAMES)
    check(result, DENSE if form is np.asarray or isinstance(form(X), list) else SPARSE)
    result = belief.select(
        form(X), TYPES, **SETTINGS, feature_names=np.array(NAMES), drop=["gene0"], candidates=NAMES[:6]
    )
    assert result.feature_names == NAMES[1:6]
    with_y = form(np.column_stack([X, Y]))
    result = belief.select(with_y, label="type", **SETTINGS, feature_names=[*NAMES, "type"])
    assert result.feature_names == NAMES
    assert result.selected_names[0] == "gene4"
    result = belief.select(form(X), TYPES, **SETTINGS, feature_names=NAMES, discrete_features=["gene4"])
    assert [d.discrete for d in result.distributions if d.feature == 4] in ([True], [])


@pytest.mark.parametrize(
    ("table", "names", "message"),
    [
        (X, NAMES[1:], "feature_names has 11 names, but X has 12 columns"),
        (X, "gene", "feature_names must be a list of names; got 'gene'"),
        (pd.DataFrame(X, columns=NAMES), NAMES, "feature_names has no effect because X is a table with column names"),
        (str(belief.datasets.CHURN), NAMES, "feature_names has no effect because X is a file"),
    ],
)
def test_feature_names_that_do_not_fit(table, names, message):
    with pytest.raises(ValueError, match=message):
        belief.select(table, "left" if isinstance(table, str) else TYPES, feature_names=names)


def test_sparse_columns_of_pandas():
    frame = pd.DataFrame(X, columns=NAMES).astype(pd.SparseDtype(float, 0))
    check(belief.select(frame, TYPES, **SETTINGS), SPARSE)
    check(belief.select(frame.assign(type=TYPES), label="type", **SETTINGS), SPARSE)
    result = belief.select(frame.assign(type=TYPES), label="type", **SETTINGS, drop=["gene1"])
    assert result.feature_names == [name for name in NAMES if name != "gene1"]


def test_dense_and_sparse_columns_of_pandas():
    frame = pd.DataFrame(X, columns=NAMES)
    mixed = frame.astype({name: pd.SparseDtype(float, 0) for name in NAMES[:5]})
    check(belief.select(mixed, TYPES, **SETTINGS), belief.select(frame, TYPES, **SETTINGS))


def test_xarray():
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(X, dims=("cell", "gene"), coords={"gene": NAMES})
    check(belief.select(array, TYPES, **SETTINGS), DENSE)
    check(belief.select(array.drop_vars("gene"), TYPES, **SETTINGS), DENSE, [f"x{j}" for j in range(F)])
    data = xarray.Dataset({name: ("cell", X[:, j]) for j, name in enumerate(NAMES)})
    check(belief.select(data, TYPES, **SETTINGS), DENSE)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        belief.select(array[:, 0], TYPES)


# --- arrays on disk ---


def hdf5(folder, X=X):
    h5py = pytest.importorskip("h5py")
    file = h5py.File(folder / "table.h5", "w")
    file["X"] = X
    file["y"] = Y
    return file["X"]


def zarr_array(folder, X=X):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(folder / "table.zarr"), shape=X.shape, chunks=(70, X.shape[1]), dtype=X.dtype)
    array[:] = X
    return array


def dask_array(folder, X=X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(80, X.shape[1]))


@pytest.mark.parametrize("open_array", [hdf5, zarr_array, dask_array])
def test_arrays_on_disk(open_array, tmp_path):
    array = open_array(tmp_path)
    stream = ArrayStream(array, NAMES, TYPES, "auto")
    stream.block_bytes = 5000
    assert len(list(stream.later_pass())) > 1
    for result in (belief.select(array, TYPES, **SETTINGS, feature_names=NAMES), select_in_blocks(stream, **SETTINGS)):
        np.testing.assert_allclose(result.weights, DENSE.weights, rtol=1e-12)
        assert result.feature_names == NAMES
    result = belief.select(array, TYPES, **SETTINGS, candidates=[4, 5, 7])
    assert result.feature_names == ["x4", "x5", "x7"]


def test_label_in_an_array_on_disk(tmp_path):
    array = hdf5(tmp_path, np.column_stack([X, Y]))
    result = belief.select(array, label=F, **SETTINGS)
    np.testing.assert_array_equal(result.weights, DENSE.weights)
    assert result.feature_names == [f"x{j}" for j in range(F)]
    result = belief.select(array.file["X"], array.file["y"], **SETTINGS, drop=[F])
    np.testing.assert_array_equal(result.weights, DENSE.weights)


def test_arrays_on_disk_that_do_not_fit(tmp_path):
    array = hdf5(tmp_path)
    with pytest.raises(ValueError, match="X and y must have the same number of rows; X has 300, y has 299"):
        belief.select(array, TYPES[1:])
    array.file["text"] = np.array([[b"a", b"b"]] * M)
    with pytest.raises(ValueError, match=r"X is an array on disk of the type .*, which is not numeric"):
        belief.select(array.file["text"], TYPES)
    with pytest.raises(ValueError, match=r"X must be a table: Expected 2D array, got 1D array|X is "):
        belief.select(array.file["y"], TYPES)


def test_npy_path(tmp_path):
    np.save(tmp_path / "X.npy", X)
    check(belief.select(tmp_path / "X.npy", TYPES, **SETTINGS, feature_names=NAMES), DENSE)
    np.save(tmp_path / "Xy.npy", np.column_stack([X, Y]))
    np.testing.assert_array_equal(belief.select(str(tmp_path / "Xy.npy"), F, **SETTINGS).weights, DENSE.weights)
    (tmp_path / "bad.npy").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"bad\.npy: the file is not a valid NPY file"):
        belief.select(tmp_path / "bad.npy", TYPES)
    with pytest.raises(FileNotFoundError, match=r"no\.npy: there is no such file"):
        belief.select(tmp_path / "no.npy", TYPES)


# --- AnnData ---


def make_adata(form=sparse.csr_matrix):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    adata = anndata.AnnData(form(X), obs=pd.DataFrame({"cell_type": pd.Categorical(TYPES)}, index=map(str, range(M))))
    adata.var_names = NAMES
    adata.layers["log"] = form(np.log1p(X))
    adata.layers["dense"] = X.copy()
    return adata


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_anndata(form):
    adata, expected = make_adata(form), DENSE if form is np.array else SPARSE
    check(belief.select(adata, label="cell_type", **SETTINGS), expected)
    check(belief.select(adata, TYPES, **SETTINGS), expected)
    check(belief.select(adata, "cell_type", **SETTINGS, layer="dense"), DENSE)
    log = belief.select(form(np.log1p(X)), TYPES, **SETTINGS)
    check(belief.select(adata, label="cell_type", **SETTINGS, layer="log"), log)
    result = belief.select(adata[:, 3:8], label="cell_type", **SETTINGS, drop=["gene3"])
    assert list(result.feature_names) == NAMES[4:8]


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Writing zarr v2", "ignore:The matrix is stored by columns")
def test_files_of_anndata(form, ending, tmp_path):
    adata, expected = make_adata(form), DENSE if form is np.array else SPARSE
    path = tmp_path / f"cells.{ending}"
    adata.write_h5ad(path) if ending == "h5ad" else adata.write_zarr(path)
    stream = open_files([path], ColumnSelection(label="cell_type"))
    stream.block_bytes, stream.block_rows = 5000, 64
    for result in (
        belief.select(path, label="cell_type", **SETTINGS),
        belief.select(path, TYPES, **SETTINGS),
        select_in_blocks(stream, **SETTINGS),
    ):
        np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-12)
        assert result.feature_names == NAMES
    stream = open_files([path], ColumnSelection(label="cell_type", candidates=["gene4", "gene2"]), layer="log")
    assert isinstance(stream, ArrayStream)
    assert stream.names == ["gene2", "gene4"]
    stream.block_bytes, stream.block_rows = 5000, 64
    blocks = list(stream.later_pass())
    assert len(blocks) > 1 or ending == "zarr"  # the only chunk of the Zarr array has all rows
    assert sparse.issparse(blocks[0]) == (form is not np.array)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_backed_anndata_and_the_command_line(tmp_path, capsys):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    from belief.cli import main

    make_adata().write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    check(belief.select(adata, label="cell_type", **SETTINGS), SPARSE)
    command = ["select", str(tmp_path / "cells.h5ad"), "--label", "cell_type", "--top", "3", "--seed", "0", "--quiet"]
    assert main(command) == 0
    assert "gene4" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_errors_of_anndata(tmp_path):
    adata = make_adata()
    for options, message in (
        ({"label": "celltype"}, r"label: there is no 'celltype' in X.obs \(did you mean 'cell_type'\?\)"),
        ({"label": "cell_type", "layer": "lag"}, r"layer: there is no 'lag' in the layers of X"),
        ({"label": "cell_type", "drop": ["gene99"]}, "drop: there is no column 'gene99'"),
        ({"label": "cell_type", "feature_names": NAMES}, "feature_names has no effect because X is an AnnData"),
    ):
        with pytest.raises(ValueError, match=message):
            belief.select(adata, **options)
        adata.write_h5ad(tmp_path / "cells.h5ad")
        if "feature_names" not in options:
            with pytest.raises(ValueError, match=message.partition(" in ")[0]):
                belief.select(tmp_path / "cells.h5ad", **options)
    with pytest.raises(ValueError, match="layer='log' has no effect because X is not an AnnData table"):
        belief.select(X, TYPES, layer="log")
    (tmp_path / "bad.h5ad").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"bad.h5ad: not a valid AnnData file"):
        belief.select(tmp_path / "bad.h5ad", label="cell_type")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_write_to_anndata(tmp_path):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    adata = make_adata()
    result = belief.select(adata, label="cell_type", drop=["gene0"], **SETTINGS | {"significance": "permutation"})
    result.write_to(adata)
    assert adata.var_names[adata.var["belief_selected"]].tolist() == sorted(result.selected_names)
    assert adata.var["belief_rank"].isna().tolist() == [True] + [False] * (F - 1)
    assert adata.var.loc[result.selected_names, "belief_rank"].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(adata.var["belief_relevance"][1:], result.relevance)
    np.testing.assert_array_equal(adata.var["belief_q_value"][1:], result.q_value)
    assert adata.uns["belief"]["seed"] == 0
    adata.write_h5ad(tmp_path / "out.h5ad")
    read = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert read.uns["belief"]["settings"]["n_features_to_select"] == 3
    assert read[:, read.var["belief_selected"]].n_vars == 3
    with pytest.raises(ValueError, match="The AnnData table has no variable 'gene5'"):
        result.write_to(adata[:, :5].copy())
    with pytest.raises(ValueError, match="write_to needs an AnnData table; got a DataFrame"):
        result.write_to(adata.var)
