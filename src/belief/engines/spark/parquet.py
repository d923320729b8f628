"""Reading the rows of a DataFrame from its Parquet files with pyarrow; Spark only chooses the rows of each file.

If there are many columns, Spark sends rows value by value, while pyarrow decodes whole columns. So if the columns of a
DataFrame come unchanged from files that Python can open (a bare scan), only the positions and labels of the rows pass
through the JVM. Filters and partition folders are respected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from belief.method.arrays import Array

PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
ROW_STEPS = ("Project", "Filter", "Sample")  # plan nodes that drop rows or columns, but change no values
VECTOR = "vector"  # the type of a column of pyspark.ml vectors
BATCH_ROWS = 2000


# --- on the driver ---


def is_bare_scan(df: Any, columns: Sequence[str]) -> bool:
    """Return True if these quoted columns come unchanged from Parquet files that Python can open.

    Return False for persisted DataFrames, which are faster to read from memory, and on Spark Connect, which shows no
    plans.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if not hasattr(df, "_jdf") or "_metadata" in df.columns:
        return False
    try:
        selected = df.selectExpr(*columns)  # a new plan, because the DataFrame may have been persisted since
        plan = selected._jdf.queryExecution().optimizedPlan()
        attributes = _attribute_ids(plan)
        while _class_name(plan) in ROW_STEPS:
            plan = plan.children().head()
        if _class_name(plan) != "LogicalRelation" or _class_name(plan.relation()) != "HadoopFsRelation":
            return False
        files = plan.relation()
        partition_columns = set(files.partitionSchema().fieldNames())
        unchanged = attributes <= _attribute_ids(plan) and not partition_columns.intersection(selected.columns)
        return unchanged and files.fileFormat().getClass().getName() == PARQUET and _can_open(files.location())
    except (Py4JError, AttributeError, OSError):  # plans of another Spark version, or files the driver cannot read
        return False


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _attribute_ids(plan: Any) -> set[str]:
    """Return the output columns of a plan as name#id. A column that the plan computes has a new id."""
    return set(plan.output().mkString("\0").split("\0"))


def _can_open(location: Any) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    roots, files = location.rootPaths().mkString("\0").split("\0"), location.inputFiles()
    if not len(files) or any(urlparse(root).scheme != "file" for root in roots):
        return False
    try:
        parquet.read_schema(to_path(files[0]))
    except pa.ArrowInvalid:  # for example encrypted
        return False
    return True


def position_columns(df: Any) -> list[Any]:
    """Return two columns of a DataFrame: the file of each row, and the row's number in the file."""
    about = df.metadataColumn("_metadata")
    return [about.getField("file_path").alias("file"), about.getField("row_index").alias("row")]


def to_path(url: str) -> str:
    """Return the path in a URL that begins with "file:"."""
    return unquote(urlparse(url).path)


# --- on the executors ---


@dataclass(frozen=True)
class FileRows:
    """Converts batches of row positions to batches of rows, in the form in which Spark would send them."""

    names: Sequence[str]  # column names
    types: Sequence[Any]  # the Arrow types to convert to, or VECTOR

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        path, file = "", None
        for batch in batches:
            label, rows = batch.column("label"), np.asarray(batch.column("row"))
            urls = batch.column("file").dictionary_encode()
            codes = np.asarray(urls.indices)
            edges = [0, *(np.flatnonzero(np.diff(codes)) + 1), len(codes)]
            for a, b in pairwise(map(int, edges)):  # runs of rows from the same file
                if a == b:
                    continue
                url = urls.dictionary[int(codes[a])].as_py()
                if url != path:
                    path, file = url, _ParquetFile(to_path(url), self.names, self.types)
                for columns in file.read(rows[a:b]):  # type: ignore[union-attr]
                    n = len(next(iter(columns.values())))
                    yield pa.record_batch([*columns.values(), label.slice(a, n)], [*columns, "label"])
                    a += n


class _ParquetFile:
    """A Parquet file that is read forwards, piece by piece. Each piece is a part of one row group."""

    def __init__(self, path: str, names: Sequence[str], types: Sequence[Any]) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(path, memory_map=True, page_checksum_verification=True)
        # the spelling of each name in the file, which may differ in case; None if the file has no such column
        exact, lower = set(self._file.schema_arrow.names), {x.lower(): x for x in self._file.schema_arrow.names[::-1]}
        self._names = [name if name in exact else lower.get(name.lower()) for name in names]
        self._types = types
        about = self._file.metadata
        self._edges = np.cumsum([0] + [about.row_group(g).num_rows for g in range(about.num_row_groups)])
        self._first, self._size = 0, 0  # the current piece
        self._group_end = 0
        self._piece: dict[str, Any] = {}
        self._pieces: Iterator[Any] = iter(())

    def read(self, rows: Array) -> Iterator[dict[str, Any]]:
        """Yield the columns of the rows with these numbers in several pieces, in the order of the numbers."""
        import pyarrow as pa

        edges = [0, *(np.flatnonzero(np.diff(rows) < 0) + 1), len(rows)]
        for ascending in (rows[a:b] for a, b in pairwise(edges)):
            a = 0
            while a < len(ascending):
                self._advance(int(ascending[a]))
                b = int(np.searchsorted(ascending, self._first + self._size))
                positions = ascending[a:b] - self._first
                is_range = positions[-1] - positions[0] == b - a - 1
                yield {
                    name: x.slice(positions[0], b - a) if is_range else x.take(pa.array(positions))
                    for name, x in self._piece.items()
                }
                a = b

    def _advance(self, row: int) -> None:
        """Read forwards until the current piece contains this row. To go back, begin the row group again."""
        if not self._first <= row < self._group_end:
            group = int(np.searchsorted(self._edges, row, side="right")) - 1
            self._first, self._group_end, self._size = int(self._edges[group]), int(self._edges[group + 1]), 0
            names = [name for name in self._names if name is not None]
            self._pieces = self._file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names, use_threads=False)
        while row >= self._first + self._size:
            batch = next(self._pieces)
            self._first, self._size = self._first + self._size, len(batch)
            self._piece = _convert_batch(batch, self._names, self._types)


def _convert_batch(batch: Any, names: Sequence[str | None], types: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of a batch by name, as `Reader` expects them.

    A column of vectors or arrays becomes the two columns "size" and "values". Plain columns become "f0", "f1", ....
    """
    import pyarrow as pa

    columns = [pa.nulls(len(batch)) if name is None else batch.column(name) for name in names]
    if types[0] == VECTOR:
        return split_vectors(columns[0])
    columns = [x if x.type == kind else x.cast(kind, safe=False) for x, kind in zip(columns, types, strict=True)]
    if pa.types.is_list(types[0]):
        return {"size": pa.nulls(len(batch), pa.int32()), "values": columns[0]}
    return {f"f{j}": x for j, x in enumerate(columns)}


def split_vectors(column: Any) -> dict[str, Any]:
    """Convert vectors from the storage format of pyspark.ml to the columns `size` and `values` (see `Reader`).

    For sparse vectors, `values` has the values followed by their indices.
    """
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return {"size": column.cast(pa.int32()), "values": column.cast(pa.list_(pa.float64()))}
    fields = dict(zip([f.name for f in column.type], column.flatten(), strict=True))
    size, values = fields["size"], fields["values"]
    if size.null_count == len(size) or values.null_count:
        return {"size": size, "values": values}
    n, k = (np.asarray(x.value_lengths().fill_null(0)) for x in (values, fields["indices"]))
    end = np.cumsum(n + k)
    out = np.empty(int(end[-1]))
    is_value = np.ones(len(out), bool)
    before = np.cumsum(k) - k
    is_value[np.repeat(end - k - before, k) + np.arange(int(k.sum()))] = False  # the last k numbers of each vector
    out[is_value], out[~is_value] = np.asarray(values.flatten()), np.asarray(fields["indices"].flatten())
    return {"size": size, "values": pa.ListArray.from_arrays(pa.array(np.append(0, end), pa.int32()), pa.array(out))}
