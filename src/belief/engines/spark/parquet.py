"""Rows of a DataFrame that is Parquet files as they are, read by Python itself: Spark says which rows, and no more.

    Spark ──(file, row in it, label), filters and partitions respected──► pyarrow ──► batches as Spark would hand over

A row that Spark hands over is taken apart and put together again, value by value where it has many columns; pyarrow
decodes columns. So where a DataFrame is a bare scan of files that Python can open, only the places of the rows come
through the JVM.
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
ROW_BY_ROW = ("Project", "Filter", "Sample")  # steps of a plan that leave rows out, or columns, and change none
VECTOR = "vector"  # the type of a column of vectors, as pyspark.ml stores them
BATCH_ROWS = 2000


# --- on the driver ---


def is_bare_scan(df: Any, columns: Sequence[str]) -> bool:
    """Whether these columns (quoted) are in Parquet files that Python can open, unchanged; some rows may be left out.

    What is persisted is not looked for in files; Connect does not show its plans.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if not hasattr(df, "_jdf") or "_metadata" in df.columns:
        return False
    try:
        chosen = df.selectExpr(*columns)  # planned anew: it may have been persisted since
        return _reads_files(chosen._jdf.queryExecution().optimizedPlan(), chosen.columns)
    except (Py4JError, AttributeError, OSError):  # another Spark's plans, or files the driver does not reach
        return False


def _reads_files(plan: Any, names: Sequence[str]) -> bool:
    wanted = _attributes(plan)
    while _kind(plan) in ROW_BY_ROW:
        plan = plan.children().head()
    if _kind(plan) != "LogicalRelation" or _kind(plan.relation()) != "HadoopFsRelation":
        return False
    files = plan.relation()
    in_folders = set(files.partitionSchema().fieldNames())
    unchanged = wanted <= _attributes(plan) and not in_folders.intersection(names)
    return unchanged and files.fileFormat().getClass().getName() == PARQUET and _can_be_opened(files.location())


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _attributes(plan: Any) -> set[str]:
    """Its columns as Spark tells them apart, name#number: what is computed has a number of its own."""
    return set(plan.output().mkString("\0").split("\0"))


def _can_be_opened(location: Any) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    roots, files = location.rootPaths().mkString("\0").split("\0"), location.inputFiles()
    if not len(files) or any(urlparse(root).scheme != "file" for root in roots):
        return False
    try:
        parquet.read_schema(path_of(files[0]))
    except pa.ArrowInvalid:  # encrypted, say
        return False
    return True


def places(df: Any) -> list[Any]:
    """The columns that say where a row is."""
    about = df.metadataColumn("_metadata")
    return [about.getField("file_path").alias("file"), about.getField("row_index").alias("row")]


def path_of(url: str) -> str:
    """A file: URL as a path."""
    return unquote(urlparse(url).path)


# --- on the executors ---


@dataclass(frozen=True)
class FileRows:
    """Batches of places become batches of what is there, as Spark would hand it over, the label beside it."""

    names: Sequence[str]  # of the columns
    types: Sequence[Any]  # Arrow's, as they are wanted, or VECTOR

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        path, file = "", None
        for batch in batches:
            label, rows = batch.column("label"), np.asarray(batch.column("row"))
            for a, b, url in _runs(batch.column("file")):
                if url != path:
                    path, file = url, _File(path_of(url), self.names, self.types)
                for columns in file.rows(rows[a:b]):  # type: ignore[union-attr]
                    yield _with_label(columns, label, a)
                    a += len(next(iter(columns.values())))


def _runs(files: Any) -> Iterator[tuple[int, int, str]]:
    """From where to where rows are of the same file, and which."""
    coded = files.dictionary_encode()
    codes = np.asarray(coded.indices)
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1), len(codes)]
    for a, b in pairwise(edges):
        if a < b:
            yield int(a), int(b), coded.dictionary[int(codes[a])].as_py()


def _with_label(columns: dict[str, Any], label: Any, a: int) -> Any:
    import pyarrow as pa

    n = len(next(iter(columns.values())))
    return pa.record_batch([*columns.values(), label.slice(a, n)], [*columns, "label"])


class _File:
    """A Parquet file, read forwards, a piece of a row group at a time."""

    def __init__(self, path: str, names: Sequence[str], types: Sequence[Any]) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(path, memory_map=True)
        self._names, self._types = [_found(name, self._file.schema_arrow.names) for name in names], types
        about = self._file.metadata
        self._edges = np.cumsum([0] + [about.row_group(g).num_rows for g in range(about.num_row_groups)])
        self._first, self._end, self._size = 0, 0, 0  # of the piece, and where its row group ends
        self._piece: dict[str, Any] = {}
        self._pieces: Iterator[Any] = iter(())

    def rows(self, rows: Array) -> Iterator[dict[str, Any]]:
        """Some rows by their numbers, in that order, in pieces."""
        import pyarrow as pa

        edges = [0, *(np.flatnonzero(np.diff(rows) < 0) + 1), len(rows)]
        for rising in (rows[a:b] for a, b in pairwise(edges)):
            a = 0
            while a < len(rising):
                self._reach(int(rising[a]))
                b = int(np.searchsorted(rising, self._first + self._size))
                at = rising[a:b] - self._first
                all_of_them = at[-1] - at[0] == b - a - 1
                yield {
                    name: x.slice(at[0], b - a) if all_of_them else x.take(pa.array(at))
                    for name, x in self._piece.items()
                }
                a = b

    def _reach(self, row: int) -> None:
        """Go on to the piece that has a row."""
        if not self._first <= row < self._end:
            group = int(np.searchsorted(self._edges, row, side="right")) - 1
            self._first, self._end, self._size = int(self._edges[group]), int(self._edges[group + 1]), 0
            names = [name for name in self._names if name is not None]
            self._pieces = self._file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names, use_threads=False)
        while row >= self._first + self._size:
            batch = next(self._pieces)
            self._first, self._size = self._first + self._size, len(batch)
            self._piece = _as_handed_over(batch, self._names, self._types)


def _found(name: str, there: Sequence[str]) -> str | None:
    """What a column is called in a file: names may differ in case; None where it is not there, as of an older file."""
    same = [x for x in there if x == name] or [x for x in there if x.lower() == name.lower()]
    return same[0] if same else None


def _as_handed_over(batch: Any, names: Sequence[str | None], types: Sequence[Any]) -> dict[str, Any]:
    """The columns as a Reader wants them: vectors in two, an array as one of those, plain ones numbered."""
    import pyarrow as pa

    given = [pa.nulls(len(batch)) if name is None else batch.column(name) for name in names]
    if types[0] == VECTOR:
        return vector_columns(given[0])
    columns = [_cast(x, kind) for x, kind in zip(given, types, strict=True)]
    if pa.types.is_list(types[0]):
        return {"size": pa.nulls(len(batch), pa.int32()), "values": columns[0]}
    return {f"f{j}": x for j, x in enumerate(columns)}


def _cast(column: Any, kind: Any) -> Any:
    return column if column.type == kind else column.cast(kind, safe=False)


def vector_columns(column: Any) -> dict[str, Any]:
    """Vectors as pyspark.ml stores them: of a dense one its values, of a sparse one after them their places."""
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
    is_value[_spans(end - k, k)] = False
    out[is_value], out[~is_value] = np.asarray(values.flatten()), np.asarray(fields["indices"].flatten())
    return {"size": size, "values": pa.ListArray.from_arrays(pa.array(np.append(0, end), pa.int32()), pa.array(out))}


def _spans(starts: Array, lengths: Array) -> Array:
    """The numbers starts[i], starts[i] + 1, ... of each i, as many as it has."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
