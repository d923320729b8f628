"""Tables with named axes (AnnData, xarray, pandas DataFrames of sparse columns), and two-dimensional arrays on disk.

AnnData stores the features in `X` or in a layer, their names in `var_names`, and the target in `obs`. AnnData files
and arrays of HDF5 and Zarr are read in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from belief._utils.optional import import_optional
from belief._utils.validation import did_you_mean
from belief._utils.warnings import warn
from belief.data.columns import ColumnSelection, find_columns, parse_discrete_features
from belief.data.files import ChangeDetector
from belief.data.labels import Labels
from belief.data.source import Stream, as_float, as_read_only, as_slice, is_sparse, prefetch
from belief.data.table import as_canonical_csr, as_valid_csr, check_memory_for_sums, check_shape
from belief.method.arrays import Array

ANNDATA_ENDINGS = (".h5ad", ".zarr")


@dataclass(frozen=True)
class Unwrapped:
    """The contents of a container: the values X, the column names, and the target y.

    X is a sparse matrix, or an array in memory or on disk.
    """

    X: Any
    names: list[str] | None
    y: Any = None
    file: Path | None = None


def _take_columns(X: Any, positions: Array) -> Any:
    if is_on_disk(X):
        return ColumnsOnDisk(X, positions)
    return (as_valid_csr(X) if is_sparse(X) else np.asarray(X))[:, positions]


class ColumnsOnDisk:
    """Some columns of an array on disk."""

    def __init__(self, X: Any, positions: Array) -> None:
        self._X, self._positions = X, as_slice(positions)
        self.shape, self.dtype = (X.shape[0], len(positions)), X.dtype
        self.width = X.shape[1]  # columns that are read, because only whole rows can be read
        self.is_sparse, self.chunks = hasattr(X, "format"), getattr(X, "chunks", None)

    def __getitem__(self, rows: Any) -> Any:
        return self._X[rows][:, self._positions]


def is_anndata(X: Any) -> bool:
    """Return True if X is an AnnData table, without importing anndata."""
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "var_names")


def is_on_disk(X: Any) -> bool:
    """Return True if X is a two-dimensional array of h5py, Zarr, dask or an AnnData file."""
    library = type(X).__module__.partition(".")[0]
    if isinstance(X, np.ndarray) or is_sparse(X):  # includes views of AnnData, whose classes belong to anndata
        return False
    is_array = library in ("h5py", "zarr", "anndata", "dask") and hasattr(X, "shape") and hasattr(X, "dtype")
    return isinstance(X, ColumnsOnDisk) or (is_array and len(X.shape) == 2 and not hasattr(X, "columns"))


def unwrap(X: Any, label: Any, layer: str | None) -> Unwrapped | None:
    """Return the contents of a container such as AnnData; None if X is not a container."""
    if is_anndata(X):
        rows = X.X if layer is None else _choose(X.layers, layer, "layer", "the layers of X")
        if rows is None:
            raise ValueError("The AnnData table has no matrix X. Name one of its layers with layer='name'.")
        file = Path(X.filename) if getattr(X, "isbacked", False) else None
        y = None if label is None else _choose(X.obs, label, "label", "X.obs")
        return Unwrapped(_as_rows(rows), [str(name) for name in X.var_names], y, file)
    if layer is not None:
        raise ValueError(f"layer={layer!r} has no effect because X is not an AnnData table or file. Omit layer.")
    library, kind = type(X).__module__.partition(".")[0], type(X).__name__
    if library == "xarray" and kind == "DataArray":
        check_shape(X.shape)
        names = X.coords[X.dims[1]].values.tolist() if X.dims[1] in X.coords else None
        return Unwrapped(X.values, None if names is None else [str(name) for name in names])
    if _is_pandas_frame(X) and any(_is_sparse_series(X.dtypes)):
        target = find_columns([] if label is None else [label], list(X.columns), "label")
        features = [j for j in range(X.shape[1]) if j not in target]
        every = list(X.dtypes)
        dtypes = [every[j] for j in features]
        if all(_is_sparse_series(dtypes)) and all(dtype.fill_value == 0 for dtype in dtypes):
            found: Any = X.iloc[:, target[0]] if target else None
            y = found.sparse.to_dense() if hasattr(found, "sparse") else found
            sparse = X.iloc[:, features] if target else X
            return Unwrapped(sparse.sparse.to_coo().tocsr(), [str(X.columns[j]) for j in features], y)
    return Unwrapped(X, None) if is_on_disk(X) else None


def _is_pandas_frame(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns") and hasattr(X, "iloc")


def _is_sparse_series(dtypes: Any) -> list[bool]:
    return [type(dtype).__name__ == "SparseDtype" for dtype in dtypes]


def as_dense_columns(X: Any) -> Any:
    """Convert the sparse columns of a pandas DataFrame to dense columns; return other objects unchanged."""
    if not _is_pandas_frame(X):
        return X
    sparse = [j for j, is_sparse in enumerate(_is_sparse_series(X.dtypes)) if is_sparse]
    return X.astype({X.columns[j]: X.dtypes.iloc[j].subtype for j in sparse}) if sparse else X


# --- AnnData ---


def _choose(mapping: Any, name: Any, option: str, source: str) -> Any:
    known = [str(key) for key in mapping.keys()]  # noqa: SIM118 - a group of HDF5, or a DataFrame
    if name not in known:
        some = f", which has {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}" if known else ", which is empty"
        raise ValueError(f"{option}: there is no {name!r} in {source}{did_you_mean(name, known) or some}.")
    return mapping[name]


def _as_rows(X: Any) -> Any:
    """Return a matrix whose rows can be read in blocks.

    A matrix on disk that is stored by columns (CSC) is read into memory, because its rows are scattered in the file.
    """
    if getattr(X, "format", None) == "csc" and hasattr(X, "to_memory"):
        warn(
            "The matrix is stored by columns (CSC), so it is read into memory as a whole. Store it by rows (CSR) to"
            " read it in blocks."
        )
        return X.to_memory().tocsr()
    return X


def open_anndata_file(path: Path, columns: ColumnSelection, layer: str | None, y: Any = None) -> ArrayStream:
    """Return a stream of an AnnData file (.h5ad) or Zarr store. The matrix stays on disk."""
    io = import_optional("anndata.io", "anndata")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder.")
    try:
        if path.suffix == ".zarr":
            root = import_optional("zarr", "anndata").open_group(str(path), mode="r")
        else:
            root = import_optional("h5py", "anndata").File(path, "r")
        obs, var = io.read_elem(root["obs"]), io.read_elem(root["var"])
    except (OSError, KeyError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{path}: not a valid AnnData file ({problem}). Write it again.") from None
    group = root["X"] if layer is None else _choose(root["layers"], layer, "layer", f"the layers of {path}")
    X = _as_rows(io.sparse_dataset(group) if hasattr(group, "keys") else group)
    if columns.label is None and y is None:
        raise ValueError(f"{path}: there is no target. Name a column of obs with label='name', or pass y.")
    target = y if columns.label is None else _choose(obs, columns.label, "label", f"the obs of {path}")
    unwrapped = Unwrapped(X, [str(name) for name in var.index], target, path)
    return stream_rows(unwrapped, target, columns)


# --- arrays on disk ---


def stream_rows(table: Unwrapped, y: Any, columns: ColumnSelection) -> ArrayStream:
    """Return a stream of an array on disk or of a sparse matrix. The target is y, or a column of the array."""
    X, names = table.X, table.names
    known: Sequence[Any] = range(X.shape[1]) if names is None else names
    label = columns.label if table.y is None else None
    if label is not None:
        (j,) = find_columns([label], known, "label")
        blocks = ArrayStream(_take_columns(X, np.array([j])), None, None, "auto").later_pass()
        y = np.concatenate([(block.toarray() if is_sparse(block) else block)[:, 0] for block in blocks])
    if columns.drop or columns.candidates or label is not None:
        positions = np.array(replace(columns, label=label).feature_positions(known))
        X, names = _take_columns(X, positions), [f"x{j}" if names is None else names[j] for j in positions]
    return ArrayStream(X, names, y, columns.discrete_features, table.file)


class ArrayStream(Stream):
    """Blocks of rows of a two-dimensional array on disk, dense or sparse.

    Parameters
    ----------
    X : an array or a sparse matrix; its slices of rows must be arrays or CSR matrices
    names : the names of the features; None if they have no names
    y : the target of each row
    discrete_features : the features to treat as discrete
    file : the file of X, which must not change between passes
    """

    block_bytes = 2**24  # the size of a block of a dense array
    block_rows = 2**13  # the rows of a block of a sparse matrix

    def __init__(
        self, X: Any, names: list[str] | None, y: Any, discrete_features: Any, file: Path | None = None
    ) -> None:
        check_shape(tuple(X.shape))
        check_memory_for_sums(int(X.shape[1]))
        self._X, self.names, self._y = X, names, y
        dtype = np.dtype(X.dtype)
        if dtype.kind not in "biuf":
            raise ValueError(f"X is an array on disk of the type {dtype}, which is not numeric. Convert it to numbers.")
        self.declared = parse_discrete_features(discrete_features, names, int(X.shape[1]))
        self.discrete = self.declared | (dtype.kind == "b")
        self._file = [file] if file is not None and file.is_file() else []
        self._changes = ChangeDetector(self._file)

    def first_pass(self, labels: Labels) -> Iterator[Any]:
        labels.add(self._y)
        labels.check_n_rows(self._X.shape[0])
        yield from self.later_pass()

    def later_pass(self) -> Iterator[Any]:
        with self._changes.reading(*self._file):
            yield from prefetch(self._blocks())

    def _blocks(self) -> Iterator[Any]:
        X, chunks = self._X, getattr(self._X, "chunks", None)
        height = np.ravel(chunks[0])[0] if chunks else 1  # rows of a chunk, which can only be read as a whole
        n_rows = max(1, self.block_bytes // (np.dtype(X.dtype).itemsize * getattr(X, "width", X.shape[1])))
        if getattr(X, "is_sparse", hasattr(X, "format")):
            n_rows = self.block_rows
        n_rows = int(max(height, n_rows // height * height))
        for a in range(0, X.shape[0], n_rows):
            block = X[a : a + n_rows]
            block = block.compute() if hasattr(block, "compute") else block  # dask
            yield (
                as_canonical_csr(as_valid_csr(block)) if is_sparse(block) else as_read_only(as_float(np.asarray(block)))
            )
