"""Streams: files or relations that are read several times, block by block, and never held in memory as a whole."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from belief._utils.lazy import importing
from belief._utils.validation import is_integer
from belief.data.arrow import (
    Batch,
    TableEncoder,
    check_target_type,
    describe_unusable,
    hash_values,
    is_dictionary,
    is_number,
    is_text,
    pyarrow,
    target_values,
)
from belief.data.columns import PANDAS_INDEX, ColumnSelection, find_columns, parse_discrete_features
from belief.data.containers import ANNDATA_ENDINGS, ArrayStream, open_anndata_file
from belief.data.diagnostics import MAX_FREE_TEXT_ROWS, is_free_text, suggest_csv_options, warn_of_left_out
from belief.data.files import ChangeDetector, find_files
from belief.data.labels import Labels, as_array
from belief.data.readers import ColumnarFiles, CsvFiles
from belief.data.relations import Relation
from belief.data.source import Stream, prefetch
from belief.data.table import check_memory_for_sums, find_labels
from belief.method.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_HASHED_COLUMNS = 16  # columns that `RowOrder` hashes
NUMPY_ERRORS = (
    *(ValueError, OSError, EOFError, TypeError, AttributeError, KeyError, RuntimeError, NotImplementedError),
    *(SyntaxError, TokenError, OverflowError, BadZipFile, zlib.error, lzma.LZMAError),
)  # errors that reading a damaged file may raise


class TableStream(Stream):
    """A stream of CSV, Parquet or Arrow files, or of a `Relation`.

    Parameters
    ----------
    files : the reader of the files, or the relation
    label : the name of the target column; None if the target is passed as y
    names : the names of the feature columns
    declared : the mask of the features that the user declared discrete
    y : the target of each row, if `label` is None
    """

    names: list[str]

    def __init__(
        self,
        files: CsvFiles | ColumnarFiles | Relation,
        label: str | None,
        names: Sequence[str],
        declared: Array,
        y: Any = None,
    ) -> None:
        self.files, self.label, self._y = files, label, y
        if isinstance(files, CsvFiles):
            files.check_no_mixed_columns([n for n, discrete in zip(names, declared, strict=True) if not discrete])
        if label is not None:
            self.target_name = f"column {label!r}"
            check_target_type(files.schema.field(label), str(files.first))
        kinds = {name: files.schema.field(name).type for name in names}
        # the columns of groups, strata and weights: their values, after the first pass, and their names
        self.also: dict[Any, Array] = {}
        self._also: dict[Any, str] = {}
        self._weight: str | None = None
        self._order: RowOrder | None = None
        self._unusable = {name: reason for name, kind in kinds.items() if (reason := describe_unusable(kind))}
        self._all = dict(zip(names, declared.tolist(), strict=True))
        self._use_columns()

    def read_also(self, columns: Mapping[str, Sequence[Any]], weight: Any = None) -> None:
        """Also read the columns of groups, strata and weights in the first pass, and drop rows with a weight of 0."""
        known, source = self.files.schema.names, str(self.files.first)
        for role, names in columns.items():
            self._also |= {name: known[j] for name in names for j in find_columns([name], known, role, source)}
        found = set(self._also.values())
        self._weight = None if weight is None else self._also[weight]
        if self._weight is not None:
            kind = self.files.schema.field(self._weight).type
            if not (is_number(kind) or pyarrow().types.is_boolean(kind)):
                raise ValueError(
                    f"sample_weight must hold numbers, but column {self._weight!r} of {source} holds other values."
                )
        self._all = {name: declared for name, declared in self._all.items() if name not in found}
        self._use_columns()

    def _use_columns(self) -> None:
        """Restrict the features to columns of numbers or categories."""
        used = {name: declared for name, declared in self._all.items() if name not in self._unusable}
        self.names, self.declared, self.left_out = list(used), np.array([*used.values()], bool), [*self._unusable]
        if isinstance(self.files, Relation):
            self.labels = find_labels(self.files.labels, self.names)
            self._order = RowOrder(self.names)
        self._columns = TableEncoder([self.files.schema.field(name) for name in used], str(self.files.first))
        self._columns.declare_discrete(self.declared)
        self.discrete = self._columns.discrete

    def _leave_out_columns(self, batch: Any) -> None:
        """Detect columns of free text by their values in the first batch; warn of all columns that are left out."""
        for name, is_declared in self._all.items():
            if not is_declared and is_text(self.files.schema.field(name).type):
                column = batch.column(name)[:MAX_FREE_TEXT_ROWS]
                if len(column.unique()) > len(column) // 2 and is_free_text(column.to_pylist()):
                    self._unusable[name] = "free text"
        warn_of_left_out(self._unusable, len(self._all), str(self.files.first))
        self._use_columns()

    def first_pass(self, labels: Labels) -> Iterator[Any]:
        n_rows = 0
        parts: dict[str, list[Array]] = {name: [] for name in self._also.values()}
        if self.label is None:
            labels.add(self._y)
        else:
            labels.is_categorical |= is_dictionary(self.files.schema.field(self.label).type)
        columns = dict.fromkeys([*self._all, *([] if self.label is None else [self.label]), *parts])
        for batch in self._batches([*columns], first_time=True):
            n_rows += len(batch)
            for name, values in parts.items():
                values.append(as_array(batch.column(name)))
            if self.label is not None:
                labels.add_encoded(*target_values(batch.column(self.label), self.label, labels.n_rows))
            elif n_rows > labels.n_rows:
                break
            yield Batch(self._columns, batch.select(self.names))
        if not n_rows:
            raise ValueError(f"{self.files.first} has no rows.")
        labels.check_n_rows(n_rows, " or more" * (n_rows > labels.n_rows))
        self._columns.warn_of_numbers_as_text(self.declared)
        self.also = {given: np.concatenate(parts[name]) for given, name in self._also.items()}

    def _batches(self, columns: Sequence[str], first_time: bool) -> Iterator[Any]:
        """Drop rows with a weight of 0, and yield the batches that are not empty."""
        first = 0
        weight = self._weight
        if weight is not None:
            columns = [*dict.fromkeys([*columns, weight])]
        for batch in prefetch(self.files.batches(columns)):
            if weight is not None:
                compute = pyarrow().compute
                is_used = compute.not_equal(batch.column(weight).cast("float64", safe=False), 0.0)
                batch = batch.filter(compute.fill_null(is_used, True))  # a missing weight raises an error later
            if len(batch):
                if first_time and not first:
                    self._leave_out_columns(batch)
                if self._order is not None:
                    self._order.check(batch, first, first_time)
                first += len(batch)
                yield batch

    def levels(self, j: int) -> dict[float, str]:
        return self._columns.levels(j)

    def later_pass(self) -> Iterator[Any]:
        return (Batch(self._columns, batch.select(self.names)) for batch in self._batches(self.names, first_time=False))


class RowOrder:
    """Detects rows that are in a different order when a table is read again, by hashes of the rows.

    A database may return the rows of a query in a different order each time. Then rows and targets would not match.
    """

    def __init__(self, names: Sequence[str]) -> None:
        step = max(1, len(names) // MAX_HASHED_COLUMNS)
        self._names = names[::step][:MAX_HASHED_COLUMNS]
        self._hashes: list[Array] = []
        self._known = np.zeros(0, np.uint32)

    def check(self, batch: Any, first: int, first_time: bool) -> None:
        """Store hashes of the rows of a batch in the first pass; raise a ValueError if they differ in a later pass."""
        hashes = np.zeros(len(batch), np.uint64)
        for name in self._names:
            hashes = (hashes ^ hash_values(batch.column(name))) * np.uint64(0x9E3779B97F4A7C15)
        found = (hashes >> np.uint64(32)).astype(np.uint32)
        if first_time:
            self._hashes = [*(self._hashes if first else []), found]
            return
        if self._hashes:
            self._known, self._hashes = np.concatenate(self._hashes), []
        if not np.array_equal(found, self._known[first : first + len(found)]):
            raise ValueError(
                "The rows of X came in another order, or with other values, when X was read again. Sort X by a unique"
                " column, or collect it into a table or a file first."
            )


class LibsvmStream(Stream):
    """A stream of LIBSVM files. The first pass reads the files twice, to find the number of columns first."""

    target_name = "The first column"

    def __init__(self, paths: Sequence[Path], discrete_features: Any) -> None:
        self._paths, self._given = list(paths), discrete_features
        self._changes = ChangeDetector(self._paths)
        self._shape: dict[str, Any] = {}
        self.discrete = self.declared = np.zeros(0, bool)

    def first_pass(self, labels: Labels) -> Iterator[csr_array]:
        with importing():
            from belief.data.libsvm import find_shape  # imports Numba and SciPy

        with self._changes.reading(*self._paths):
            n_features, zero_based = find_shape(self._paths)
        check_memory_for_sums(n_features)
        self._shape = {"n_features": n_features, "zero_based": zero_based, "dtype": np.float64}
        self.discrete = self.declared = parse_discrete_features(self._given, None, n_features)
        for X, y in self._blocks():
            labels.add(y)
            yield X

    def later_pass(self) -> Iterator[csr_array]:
        return (X for X, _ in self._blocks())

    def _blocks(self) -> Iterator[tuple[csr_array, Array]]:
        from belief.data.libsvm import read_libsvm

        with self._changes.reading(*self._paths):
            yield from prefetch(read_libsvm(self._paths, **self._shape))


def open_relation_stream(table: Relation, y: Any, columns: ColumnSelection) -> TableStream:
    """Return a stream of a relation. The target is the column `columns.label`, or y if there is no label."""
    names = table.schema.names
    if columns.label is None and y is None:
        raise ValueError("X needs a target: pass y, or name the target column with label='name'.")
    columns = columns.with_names(names)
    features = columns.feature_names(names, "X")
    declared = parse_discrete_features(columns.discrete_features, features, len(features))
    return TableStream(table, columns.label, features, declared, y)  # type: ignore[arg-type]


def open_files(
    paths: Sequence[Path], columns: ColumnSelection, layer: str | None = None
) -> TableStream | LibsvmStream | ArrayStream | tuple[list[Array], Array]:
    """Open CSV, Parquet, Arrow, LIBSVM or NPZ files, all of the same format, or one AnnData file.

    Parameters
    ----------
    paths : list of Path
        Files, or folders of files. Their rows are concatenated in the given order.
    columns : ColumnSelection
        The target column, the features, and the CSV options.
    layer : str, default=None
        The layer of an AnnData file to use instead of its matrix X.

    Returns
    -------
    stream, or tuple of (blocks, y)
        A stream, to be passed to `belief.select` as `X`. NPZ files are read into memory instead, and returned as a list
        of arrays and the target.

    Examples
    --------
    >>> import belief
    >>> stream = belief.data.open_files([belief.datasets.CHURN], belief.data.ColumnSelection(label="left"))
    >>> belief.select(stream, n_features_to_select=2, random_state=0).selected_names
    ['support_calls', 'contract']
    """
    if any(path.suffix in ANNDATA_ENDINGS for path in paths):
        if len(paths) > 1:
            raise ValueError(f"{paths[0]} is an AnnData file, which must be passed alone; got {len(paths)} files.")
        return open_anndata_file(paths[0], columns, layer)
    if layer is not None:
        raise ValueError(f"layer={layer!r} has no effect because {paths[0]} is not an AnnData file. Omit layer.")
    kind, files = find_files(paths)
    if kind == "npy":
        raise ValueError(f"{paths[0]}: an NPY file has no target. Pass a single file to belief.select, with y.")
    if kind in ("libsvm", "npz"):
        for option in ("drop", "candidates"):
            if given := getattr(columns, option):
                raise ValueError(
                    f"{option} applies only to CSV, Parquet and Arrow files, whose columns have names; got"
                    f" {list(given)}. Omit {option}, or convert the files."
                )
        if kind == "libsvm":
            return LibsvmStream(files, columns.discrete_features)
        return _read_npz(files, "y" if columns.label is None else str(columns.label))
    if columns.label is None:
        raise ValueError("The files need a target column. Name it with label='name'.")
    pyarrow()
    if any(map(is_integer, (columns.label, *columns.drop, *columns.candidates))):
        columns = columns.with_names(list_columns(files, columns), str(files[0]))
    table: CsvFiles | ColumnarFiles
    if kind == "csv":
        discrete = columns.discrete_features  # read as text, so that large integers are not rounded
        text = [] if isinstance(discrete, str) else list(discrete)
        if not all(isinstance(x, str) for x in text):
            names = columns.feature_names(CsvFiles(files, columns, []).schema.names, str(files[0]))
            mask = parse_discrete_features(discrete, names, len(names))
            text = [name for name, is_discrete in zip(names, mask, strict=True) if is_discrete]
        table = CsvFiles(files, columns, text)
        check_csv_options(table.schema.names, files[0], columns)
    else:
        table = ColumnarFiles(files, kind)
    names = columns.feature_names(table.schema.names, str(table.first))
    declared = parse_discrete_features(columns.discrete_features, names, len(names))
    return TableStream(table, str(columns.label), names, declared)


def check_csv_options(names: Sequence[str], file: Path, columns: ColumnSelection) -> None:
    """Raise a ValueError if there is no target column because a CSV option, such as the separator, seems wrong."""
    if columns.label not in names and (hint := suggest_csv_options(names, columns.separator_for(file))):
        raise ValueError(f"label: there is no column {columns.label!r} in {file}. {hint}")


def list_columns(paths: Sequence[Path], columns: ColumnSelection) -> list[str]:
    """Return the names of the columns of CSV, Parquet or Arrow files."""
    kind, files = find_files(paths)
    table: CsvFiles | ColumnarFiles = CsvFiles(files, columns, []) if kind == "csv" else ColumnarFiles(files, kind)
    return [name for name in table.schema.names if not PANDAS_INDEX.fullmatch(name)]


def _read_npz(paths: Sequence[Path], label: str) -> tuple[list[Array], Array]:
    X, y = [], []
    for path in paths:
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                missing = [name for name in ("X", label) if name not in file.files]
                available = ", ".join(file.files)
                arrays = {} if missing else {name: file[name] for name in ("X", label)}
                if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                    raise ValueError("an entry is not an array")
        except NUMPY_ERRORS:
            raise ValueError(
                f"{path}: the file is not a valid NPZ file of plain arrays. Write it with np.savez."
            ) from None
        if missing:
            raise ValueError(
                f"{path}: there is no array {missing[0]!r}. The file contains {available}. Name the array of the target"
                " with label='name'."
            )
        if arrays["X"].ndim != 2:
            raise ValueError(f"{path}: the array X must be two-dimensional; got the shape {arrays['X'].shape}.")
        X.append(arrays["X"])
        y.append(arrays[label])
    return X, np.concatenate(y)
