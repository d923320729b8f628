"""Opening of tables that are not in memory, or that narwhals does not support.

These are lazy frames, database relations, datasets, partitioned frames, readers and generators. A table that can be
read several times becomes a `Relation`, which is read again in each pass over the rows. A table that can be read only
once is kept in memory if it is small, and otherwise copied to a temporary file.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import narwhals as nw

from belief._utils.optional import import_optional
from belief._utils.warnings import warn
from belief.data.arrow import pyarrow
from belief.data.kinds import check_arrow, describe_kind
from belief.data.source import is_sparse
from belief.data.table import as_frame, check_unique_names

ReadBatches = Callable[[list[str], int], Iterable[Any]]  # (columns, rows per batch) -> batches


class Relation:
    """A table that is not in memory and can be read several times, as Arrow batches.

    Parameters
    ----------
    schema : the Arrow schema
    read : a function that returns batches of some columns, with about the given number of rows per batch
    labels : the column labels of a table whose labels need not be strings
    """

    first: str = "X"  # the name of the table in error messages
    max_batch_rows, batch_bytes = 2**17, 2**24  # the size of a batch

    def __init__(self, schema: Any, read: ReadBatches, labels: Sequence[Any] = ()) -> None:
        check_unique_names(schema.names)
        self.schema, self._read, self.labels = schema, read, labels

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow batches of these columns; all but the last have the same number of rows."""
        schema = pyarrow().schema([self.schema.field(name) for name in columns])
        n_rows = max(1, min(self.max_batch_rows, self.batch_bytes // (8 * max(1, len(columns)))))
        pa = pyarrow()
        waiting: list[Any] = []
        try:
            for batch in self._read(list(columns), n_rows):
                check_arrow(batch, "X")
                waiting.append(batch if batch.schema.equals(schema) else _cast(batch, schema))
                if (n_waiting := sum(map(len, waiting))) < n_rows:
                    continue
                table = pa.Table.from_batches(waiting, schema)
                for a in range(0, n_waiting - n_rows + 1, n_rows):
                    yield _as_batch(table.slice(a, n_rows))
                waiting = table.slice(n_waiting - n_waiting % n_rows).to_batches()
            if sum(map(len, waiting)):
                yield _as_batch(pa.Table.from_batches(waiting, schema))
        except (ValueError, MemoryError):
            raise
        except Exception as error:  # each library raises its own errors
            raise ValueError(f"X could not be read: {' '.join(str(error).split())}") from error


def _as_batch(table: Any) -> Any:
    """Return a table as one batch. The chunks of a categorical column get a common dictionary."""
    return table.unify_dictionaries().combine_chunks().to_batches()[0]


def _cast(batch: Any, schema: Any) -> Any:
    """Convert a batch to the types of a schema, for example from int32 to int64, or from string to large_string."""
    pa = pyarrow()
    if batch.schema.names != schema.names:
        raise ValueError(
            f"The blocks of X have different columns: one has {', '.join(batch.schema.names)}, the first has"
            f" {', '.join(schema.names)}. Pass blocks of rows of one table."
        )
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ValueError(
                f"Column {field.name!r} of X has different types in different blocks: {field.type} in the first,"
                f" {column.type} in another. Convert them to one type."
            ) from None
    return pa.record_batch(columns, schema=schema)


def open_relation(X: Any) -> Any:
    """Open a table that is lazy, partitioned or not supported by narwhals, as a Relation or as a table in memory.

    Other objects are returned unchanged.
    """
    if type(X).__module__.partition(".")[0] == "xarray" and isinstance(X, Mapping):
        return _table_of_columns({name: variable.values for name, variable in X.items()})
    if isinstance(X, Mapping) and not is_sparse(X):  # SciPy's sparse matrices in DOK format are dictionaries, too
        return _table_of_columns(X)
    if getattr(getattr(X, "dtype", None), "names", None):  # a structured array, whose fields are columns
        return _table_of_columns({name: X[name] for name in X.dtype.names})
    open_ = _find_opener(X)
    if open_ is None:
        return X
    pyarrow()
    try:
        return open_(X)
    except (ValueError, MemoryError, OSError):
        raise
    except Exception as error:  # each library raises its own errors
        raise ValueError(f"X, a {type(X).__name__}, could not be read: {' '.join(str(error).split())}") from error


def check_is_eager(X: Any) -> None:
    """Raise a ValueError if X is not in memory, such as a lazy frame. Estimators accept only tables in memory."""
    if (isinstance(X, Mapping) and not is_sparse(X)) or _find_opener(X) is not None:
        raise ValueError(
            f"fit accepts arrays, DataFrames and sparse matrices, but X is {describe_kind(X)}. Convert it to a"
            " DataFrame, or pass it to belief.select."
        )


def _find_opener(X: Any) -> Callable[[Any], Any] | None:
    """Return the function that opens X; None for tables in memory and for objects that are not tables."""
    library, kind = type(X).__module__.partition(".")[0], type(X).__name__
    if isinstance(X, type) or library == "numpy":
        return None
    if library == "pyarrow":
        found = {
            "ParquetFile": lambda file: Relation(
                file.schema_arrow, lambda columns, n_rows: file.iter_batches(n_rows, columns=columns)
            ),
            "RecordBatch": lambda batch: pyarrow().Table.from_batches([batch]),
            "RecordBatchReader": spool,
            "Scanner": lambda scanner: spool(scanner.to_reader()),
        }
        return found.get(kind) or (open_dataset if hasattr(X, "get_fragments") else None)
    if kind == "DuckDBPyConnection":  # returned by DuckDB's `execute`
        return _spool_duckdb_result
    if hasattr(X, "to_pyarrow_dataset"):  # a Delta table
        return lambda table: open_dataset(table.to_pyarrow_dataset())
    if library == "ray" and hasattr(X, "iter_batches"):
        return _open_ray
    if as_frame(X) is not None:
        return None
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        implementation = frame.implementation
        if implementation.is_polars():
            return _open_polars
        if implementation.is_dask():
            return _open_dask
        if implementation.is_duckdb() or implementation.is_ibis():
            return _open_narwhals
        return None
    if isinstance(frame, nw.Series):
        return None
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _import_arrow
    return _spool_blocks if isinstance(X, Iterator) and not hasattr(X, "read") else None


# --- tables that can be read again ---


def open_dataset(data: Any) -> Relation:
    """Return an Arrow dataset as a Relation, which reads only one batch ahead to save memory."""
    dataset = import_optional("pyarrow.dataset", "files")
    options = {"batch_readahead": 1, "fragment_readahead": 1}  # the default is to read more ahead
    if isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
        options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(
            pre_buffer=False,  # the buffers would be kept in memory until the end
            page_checksum_verification=True,
        )
    return Relation(data.schema, lambda columns, n_rows: data.to_batches(columns=columns, batch_size=n_rows, **options))


def _open_polars(frame: Any) -> Any:
    if not hasattr(frame, "collect_batches"):
        raise ValueError(
            "X is a polars LazyFrame, which needs polars 1.34 or newer to be read in batches. Update polars, or pass"
            " X.collect()."
        )

    def read(columns: list[str], n_rows: int) -> Iterator[Any]:
        for part in frame.select(columns).collect_batches(chunk_size=n_rows):
            yield from part.to_arrow().to_batches()

    return Relation(frame.head(0).collect().to_arrow().schema, read)


def _open_narwhals(X: Any) -> Relation:
    """Return a lazy frame of DuckDB or Ibis as a Relation.

    narwhals selects columns; DuckDB or Ibis exports Arrow data.
    """
    frame, schema = nw.from_native(X), _read_natively(X.limit(0), 1).schema
    return Relation(schema, lambda columns, n_rows: _read_natively(frame.select(columns).to_native(), n_rows))


def _read_natively(X: Any, n_rows: int) -> Any:
    options = {"to_arrow_reader": "batch_size", "fetch_arrow_reader": "batch_size", "to_pyarrow_batches": "chunk_size"}
    for name, option in options.items():  # methods of DuckDB, of DuckDB before 1.5, and of Ibis
        if hasattr(X, name):
            return getattr(X, name)(**{option: n_rows})
    return pyarrow().RecordBatchReader.from_stream(X)


def _open_ray(data: Any) -> Relation:
    def read(columns: list[str], n_rows: int) -> Iterator[Any]:
        for table in data.select_columns(columns).iter_batches(batch_size=n_rows, batch_format="pyarrow"):
            yield from table.to_batches()

    return Relation(next(iter(data.limit(1).iter_batches(batch_format="pyarrow"))).schema, read)


def _open_dask(frame: Any) -> Relation:
    """Return a dask DataFrame as a Relation, which computes one partition after the other."""
    pa = pyarrow()

    def convert(part: Any) -> Any:
        return pa.Table.from_pandas(part, preserve_index=False)

    names = [str(name) for name in frame.columns]

    def read(columns: list[str], n_rows: int) -> Iterator[Any]:
        parts = frame.iloc[:, [names.index(name) for name in columns]].partitions
        for i in range(frame.npartitions):
            yield from convert(parts[i].compute()).to_batches()

    tables = (convert(frame.partitions[i].compute()) for i in range(frame.npartitions))
    return Relation(next((table for table in tables if len(table)), convert(frame._meta)).schema, read, frame.columns)


# --- tables that can be read once ---


def _import_arrow(X: Any) -> Any:
    pa = pyarrow()
    try:
        if not hasattr(X, "__arrow_c_stream__"):
            return pa.Table.from_batches([pa.record_batch(X)])
        reader = pa.RecordBatchReader.from_stream(X)
    except (TypeError, ValueError, pa.ArrowException):  # an array or a stream of arrays, not of record batches
        return X
    return spool(reader)


def _spool_duckdb_result(X: Any) -> Any:
    with warnings.catch_warnings():  # newer versions of DuckDB warn that relations should be used instead
        warnings.simplefilter("ignore")
        read = getattr(X, "to_arrow_reader", None) or X.fetch_record_batch
        return spool(read(Relation.max_batch_rows))


def _spool_blocks(blocks: Iterator[Any]) -> Any:
    """Read all blocks of rows: return arrays and sparse matrices as a list, and DataFrames as `spool` does."""
    first = next(blocks, None)
    if first is None:
        raise ValueError("X is an iterator without blocks. Pass a new generator if this one was consumed before.")
    if is_sparse(first) or (getattr(first, "ndim", 0) == 2 and as_frame(first) is None):
        return [first, *blocks]
    schema = _batches_of(first)[0].schema

    def batches() -> Iterator[Any]:
        for batch in chain.from_iterable(map(_batches_of, chain([first], blocks))):
            yield batch if batch.schema.equals(schema) else _cast(batch, schema)

    return spool(pyarrow().RecordBatchReader.from_batches(schema, batches()))


def _batches_of(block: Any) -> list[Any]:
    """Convert a block of rows to Arrow batches."""
    pa = pyarrow()
    block = open_relation(block) if isinstance(block, Mapping | pa.RecordBatch) else block
    frame = as_frame(block)
    if frame is None:
        raise ValueError(
            f"X is an iterator that yielded {describe_kind(block)}, but it must yield blocks of rows: DataFrames, Arrow"
            " batches, arrays or sparse matrices."
        )
    table = frame.to_arrow()
    return table.to_batches() or [pa.record_batch([pa.array([], f.type) for f in table.schema], schema=table.schema)]


def spool(reader: Any, max_kept_bytes: int = 2**28, warned_bytes: int = 2**30) -> Any:
    """Return a table of all rows of a reader; if they are too large, copy them to a file and return a Relation.

    The file has Arrow's stream format, which allows different dictionaries in different batches. It is deleted when the
    Relation is garbage collected.

    Parameters
    ----------
    reader : an Arrow RecordBatchReader
    max_kept_bytes : the largest size that is kept in memory
    warned_bytes : larger files cause a warning
    """
    ipc, schema = import_optional("pyarrow.ipc", "files"), reader.schema
    kept, n_bytes = [], 0
    for batch in reader:
        kept.append(check_arrow(batch, "X"))
        n_bytes += batch.nbytes
        if n_bytes > max_kept_bytes:
            break
    else:
        return pyarrow().Table.from_batches(kept, schema)

    def read(columns: list[str], n_rows: int) -> Iterator[Any]:
        fields = [schema.get_field_index(name) for name in columns]
        with pyarrow().OSFile(str(path)) as file:
            for batch in ipc.open_stream(file, options=ipc.IpcReadOptions(included_fields=fields)):
                part = batch.select(columns)
                yield from (part.slice(a, n_rows) for a in range(0, len(part), n_rows))

    relation, n_bytes = Relation(schema, read), 0
    folder = tempfile.mkdtemp(prefix="belief-")
    weakref.finalize(relation, shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, "rows.arrows")
    removed = (kept.pop(0) for _ in range(len(kept)))  # frees the memory of each batch when it has been written
    try:
        with pyarrow().OSFile(str(path), "wb") as file, ipc.new_stream(file, schema) as writer:
            for batch in chain(removed, (check_arrow(batch, "X") for batch in reader)):
                writer.write_batch(batch)
                n_bytes += batch.nbytes
                if n_bytes - batch.nbytes <= warned_bytes < n_bytes:
                    warn(
                        f"X can be read only once and is larger than {warned_bytes / 1e9:.0f} GB, so it is copied to"
                        f" {folder}. Pass a path, a pyarrow Dataset or a polars LazyFrame to avoid the copy, or set"
                        " TMPDIR to a folder on another disk."
                    )
    except OSError as error:
        raise OSError(f"X can be read only once, but could not be copied to {folder}: {error}") from None
    return relation


def _table_of_columns(columns: Mapping[Any, Any]) -> Any:
    """Convert a dictionary of columns to an Arrow table."""
    pa = pyarrow()
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[str(name)] = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise ValueError(
                f"X is a dictionary, but its entry {name!r} is not a column ({' '.join(str(error).split())[:80]}). Pass"
                " columns of equal length that contain either numbers or text."
            ) from None
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        short = ", ".join(f"{name!r} has {n}" for name, n in [*lengths.items()][:4])
        raise ValueError(f"X is a dictionary of columns of different lengths: {short}. Pass columns of equal length.")
    return pa.table(arrays)
