"""Readers of Parquet, Arrow and CSV files, batch by batch with pyarrow; no file is held in memory as a whole."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from belief._utils.optional import import_optional
from belief.data.arrow import is_text, pyarrow
from belief.data.columns import ColumnSelection
from belief.data.diagnostics import NOT_UTF8, explain_csv_error, shorten, suggest_csv_options, suggest_fix
from belief.data.files import ChangeDetector, drop_duplicates, file_stamp, list_files, parquet_stamp

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"]
MIN_ROWS_PER_BLOCK = 64  # for wide CSV files, because each column of a block adds overhead
MAX_INFERRED_COLUMNS = 10_000  # Arrow infers the types of more columns too slowly: about 50 µs and some kB per column
REPLACEMENT = "\ufffd"  # Python's substitute for bytes that cannot be decoded
INSPECTED_BYTES = 4096
BYTE_ORDER_MARKS = {  # UTF-32 first, since its little-endian mark starts with the mark of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class ColumnarFiles:
    """A reader of Parquet files, folders of Parquet files (partitioned or not), and Arrow files.

    `pyarrow.dataset` finds the files, but is not used to read them, because its scans may read a gigabyte ahead.
    """

    max_batch_rows, batch_bytes = 2**17, 2**24  # the size of a decoded batch

    def __init__(self, paths: Sequence[Path], kind: str) -> None:
        dataset = import_optional("pyarrow.dataset", "files")
        self.first, self._read = paths[0], {"parquet": _read_parquet, "arrow": _read_arrow}[kind]
        self._kind = kind.capitalize()
        # the columns of each file that come from the names of its folders
        partition_keys: dict[Path, dict[str, Any]] = {}
        found: list[Path] = []
        schemas = []
        for path in paths:
            with rephrase_errors(path, self._kind):
                part = dataset.dataset(
                    [str(file) for file in list_files(path)],
                    format={"arrow": "ipc"}.get(kind, kind),
                    partitioning="hive" if path.is_dir() else None,
                    partition_base_dir=str(path),
                )
            for fragment in part.get_fragments():
                file = Path(fragment.path)
                with rephrase_errors(file, self._kind):
                    schemas.append((file, fragment.physical_schema))
                partition_keys[file] = dataset.get_partition_keys(fragment.partition_expression)
                found.append(file)
            schemas.append((path, part.schema))
        files = drop_duplicates(found)
        self._files = [(file, partition_keys[file]) for file in files]
        self._changes = ChangeDetector(files, parquet_stamp if kind == "parquet" else file_stamp)
        check_same_columns([(path, sorted(schema.names)) for path, schema in schemas if path in files])
        pa = pyarrow()
        self.schema = schemas[0][1]
        for path, other in schemas[1:]:
            try:  # a column of integers in some files and floats in others gets floats
                self.schema = pa.unify_schemas([self.schema, other], promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                odd = re.search(r"Field (.*) has incompatible types: (.*)", str(error))
                problem = f"column {odd[1]!r} is {odd[2]}" if odd else str(error).splitlines()[0]
                raise ValueError(
                    f"{path} and {self.first} have different column types: {problem}. Convert one of the files."
                ) from None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow batches of these columns, in the order of the files."""
        n_rows = max(1, min(self.max_batch_rows, self.batch_bytes // (4 * max(1, len(columns)))))
        pa = pyarrow()
        types = [self.schema.field(name).type for name in columns]
        for path, keys in self._files:
            with rephrase_errors(path, self._kind), self._changes.reading(path):
                for batch in self._read(path, [name for name in columns if name not in keys], n_rows):
                    batch.validate(full=True)  # offsets or indices of a damaged file may point outside its buffers
                    arrays = []
                    for name, kind in zip(columns, types, strict=True):
                        if name in keys:
                            arrays.append(pa.repeat(pa.scalar(keys[name], kind), len(batch)))
                        else:
                            column = batch.column(name)
                            arrays.append(column if column.type == kind or is_text(kind) else column.cast(kind))
                    yield pa.record_batch(arrays, names=list(columns))


def _read_parquet(path: Path, columns: list[str], n_rows: int) -> Iterator[Any]:
    parquet = import_optional("pyarrow.parquet", "files")
    # pre_buffer=True would keep all buffers in memory until the file is closed
    with parquet.ParquetFile(path, buffer_size=2**16, pre_buffer=False, page_checksum_verification=True) as file:
        yield from file.iter_batches(n_rows, columns=columns)


def _read_arrow(path: Path, columns: list[str], n_rows: int) -> Iterator[Any]:
    ipc = import_optional("pyarrow.ipc", "files")
    with pyarrow().OSFile(str(path)) as file:
        fields = [ipc.open_file(file).schema.get_field_index(name) for name in columns]
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            yield from (batch.slice(a, n_rows) for a in range(0, len(batch), n_rows))


class CsvFiles:
    """A reader of CSV and TSV files, plain or compressed. The types of columns are inferred from the first rows.

    Parameters
    ----------
    paths : the files
    columns : the selection of columns, which also holds the separator, header and encoding options
    text : names of columns to read as text
    """

    block_bytes = 2**23  # the size of the blocks of text that are parsed; increased if a line is longer
    max_block_bytes = 2**30

    def __init__(self, paths: Sequence[Path], columns: ColumnSelection, text: Sequence[str]) -> None:
        self.first, self._paths, self._columns = paths[0], paths, columns
        self._changes = ChangeDetector(paths)
        self._encodings = {}
        for path in paths:
            with rephrase_errors(path, "CSV"):  # errors of damaged compressed files
                self._encodings[path] = columns.encoding or detect_encoding(path)
        self._names = self._read_names(paths[0])
        check_same_columns([(path, self._read_names(path)) for path in paths], self._suggestion(paths[0]))
        numeric = self._find_numeric_columns() if len(self._names) > MAX_INFERRED_COLUMNS else set()
        with rephrase_errors(self.first, "CSV", partial(self._diagnose, self.first, {})):
            reader = self._open(self.first, {}, [name for name in self._names if name not in numeric] or None)
            rows = next(iter(reader), None)
        # the first rows of the text columns
        self._sample = {f.name: rows.column(f.name) for f in reader.schema if rows is not None and is_text(f.type)}
        kinds = {name: pyarrow().float64() for name in self._names} | {f.name: f.type for f in reader.schema}
        types = {name: self._column_type(name, kinds[name], name in text) for name in self._names}
        self.block_bytes = max(self.block_bytes, MIN_ROWS_PER_BLOCK * sum(map(len, self._names)))
        self.schema = pyarrow().schema({**types, **self._types_after_gaps(types)})

    def _read_names(self, path: Path) -> list[str]:
        with rephrase_errors(path, "CSV", encoding=self._encodings[path]):
            first = read_header(path, self._columns.separator_for(path), self._encodings[path])
        return first if self._columns.header else [f"c{j}" for j in range(len(first))]

    def _find_numeric_columns(self) -> set[str]:
        """Return the columns with only numbers in the first lines; Arrow need not infer their types.

        The target column is excluded, because it must keep the type that Arrow infers.
        """
        compute = import_optional("pyarrow.compute", "files")
        separator, encoding = self._columns.separator_for(self.first), self._encodings[self.first]
        numeric, n_lines = pyarrow().array([True] * len(self._names)), 0
        lines = islice(
            read_first_lines(self.first, separator, encoding, self.block_bytes), int(self._columns.header), None
        )
        while True:
            try:
                cells = next(lines, None)
            except csv.Error:  # a cell is too long for Python's parser
                return set()
            if cells is None:
                break
            if len(cells) != len(numeric):
                return set()
            number = compute.match_substring_regex(pyarrow().array(cells), r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")
            numeric, n_lines = compute.and_(numeric, number), n_lines + 1
        found = {name for name, is_numeric in zip(self._names, numeric.to_pylist(), strict=True) if is_numeric}
        return found - {self._columns.label} if n_lines else set()

    def _column_type(self, name: str, kind: Any, text: bool) -> Any:
        """Return the Arrow type with which a column is read.

        Integer features are read as floats, because later rows may contain fractions.
        """
        pa = pyarrow()
        if pa.types.is_binary(kind):
            raise ValueError(f"{self.first}: column {name!r} {NOT_UTF8}")
        if name == self._columns.label:
            return pa.float64() if self._columns.task == "regression" and pa.types.is_integer(kind) else kind
        if text or is_text(kind):
            return pa.dictionary(pa.int32(), pa.string())
        return pa.float64() if pa.types.is_integer(kind) else kind

    def _types_after_gaps(self, types: dict[str, Any]) -> dict[str, Any]:
        """Infer the types of columns without values in the first rows, from their first values in later rows."""
        pa = pyarrow()
        unknown = [name for name, kind in types.items() if pa.types.is_null(kind)]
        found: dict[str, Any] = {}
        for batch in self._scan(dict.fromkeys(unknown, pa.string()), unknown) if unknown else ():
            for name in unknown:
                if name not in found and batch.column(name).null_count < len(batch):
                    kind = pa.float64()
                    try:
                        batch.column(name).drop_null().cast(kind)
                    except pa.ArrowInvalid:
                        kind = pa.string()
                    found[name] = self._column_type(name, kind, False)
            if len(found) == len(unknown):
                break
        return found

    def check_no_mixed_columns(self, columns: Sequence[str]) -> None:
        """Raise a ValueError if a column contains mostly numbers and some text.

        Otherwise, it would be read as text, and each number would become a category.
        """
        compute = import_optional("pyarrow.compute", "files")
        for name in (name for name in columns if name in self._sample):
            values = self._sample[name].unique().drop_null()
            number = compute.match_substring_regex(values, r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
            if 2 * compute.sum(number).as_py() > len(values):
                text = values.filter(compute.invert(number))[0].as_py()
                raise ValueError(
                    f"{self.first}: column {name!r} contains numbers, but also {shorten(text)!r}. {suggest_fix(name)}"
                )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self._scan({name: self.schema.field(name).type for name in columns}, columns)

    def text_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches of these columns as unparsed text; words for missing values, such as NA, remain text."""
        yield from self._scan(dict.fromkeys(columns, pyarrow().string()), columns, null_values=[])

    def _scan(self, types: dict[str, Any], columns: Sequence[str], **options: Any) -> Iterator[Any]:
        for path in self._paths:
            diagnose = partial(self._diagnose, path, types)
            with rephrase_errors(path, "CSV", diagnose, self._encodings[path]), self._changes.reading(path):
                yield from self._read(path, types, columns, **options)

    def _read(self, path: Path, types: dict[str, Any], columns: Sequence[str], **options: Any) -> Iterator[Any]:
        """Yield the batches of a file. If a line is longer than a block, continue with larger blocks."""
        n_yielded = 0
        while True:
            n_read = 0
            try:
                for batch in self._open(path, types, columns, **options):
                    n_read += len(batch)
                    if n_read > n_yielded:
                        yield batch.slice(max(0, len(batch) - (n_read - n_yielded)))
                        n_yielded = n_read
                return
            except pyarrow().ArrowInvalid as error:
                self._enlarge_blocks(error)

    def _enlarge_blocks(self, error: Exception) -> None:
        """Increase the block size if an Arrow error was caused by a line longer than a block; reraise other errors."""
        if not re.search("straddl|Empty CSV file or block", str(error)) or self.block_bytes >= self.max_block_bytes:
            raise error
        self.block_bytes = min(8 * self.block_bytes, self.max_block_bytes)

    def _open(
        self,
        path: Path,
        types: dict[str, Any],
        columns: Sequence[str] | None,
        threads: bool = True,
        null_values: Sequence[str] = MISSING,
    ) -> Any:
        """Open a file with Arrow's streaming reader, which infers the types of columns that are not in `types`."""
        arrow_csv = import_optional("pyarrow.csv", "files")
        convert_options = arrow_csv.ConvertOptions(
            null_values=null_values,
            strings_can_be_null=bool(null_values),
            column_types=types,
            include_columns=columns,
        )
        if types and pyarrow().bool_() not in types.values():
            convert_options.true_values = convert_options.false_values = []
        # Wide files need many small allocations; with the system's allocator they cause less fragmentation.
        is_wide = len(self._names) > MAX_INFERRED_COLUMNS
        parse_options = arrow_csv.ParseOptions(delimiter=self._columns.separator_for(path), newlines_in_values=True)
        pool = pyarrow().system_memory_pool() if is_wide else None
        diagnose = partial(self._diagnose, path, types) if threads else lambda: None
        with rephrase_errors(path, "CSV", diagnose, self._encodings[path]):
            while True:
                read_options = arrow_csv.ReadOptions(
                    use_threads=threads,
                    block_size=self.block_bytes,
                    encoding=self._encodings[path],
                    column_names=self._names,
                    skip_rows=count_leading_empty_lines(path, self._encodings[path]),
                    skip_rows_after_names=int(self._columns.header),
                )
                try:
                    return arrow_csv.open_csv(path, read_options, parse_options, convert_options, pool)
                except pyarrow().ArrowInvalid as error:
                    self._enlarge_blocks(error)

    def _diagnose(self, path: Path, types: dict[str, Any]) -> str | None:
        """Return a message for what is wrong with a file, or None if reading the file raises no error.

        The file is read again without threads, because only then do Arrow's errors contain line numbers.
        """
        try:
            for _ in self._open(path, types, list(types) or None, threads=False):
                pass
        except (pyarrow().ArrowInvalid, ValueError) as error:
            problem = explain_csv_error(str(error), self._names, str(self._columns.label))
            is_ragged = problem and problem.startswith("line") and "columns" in problem
            return f"{problem} {self._suggestion(path) or 'Correct the line.'}" if is_ragged else problem
        return None

    def _suggestion(self, path: Path) -> str:
        """Return a sentence that suggests another CSV option if the header looks wrong; otherwise an empty string."""
        separator = self._columns.separator_for(path)
        return suggest_csv_options(read_header(path, separator, self._encodings[path]), separator)


def detect_encoding(path: Path) -> str:
    """Return the encoding of a text file, detected from its first bytes: UTF-8, UTF-16 or UTF-32."""
    start = pyarrow().input_stream(str(path)).read(INSPECTED_BYTES)
    for mark, name in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return name
    if 0 not in start:
        return "utf8"
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if max(even, odd) > len(start) / 4 > 4 * min(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    raise ValueError(
        f"{path}: contains zero bytes, so it is not UTF-8 text. If it is text, pass its encoding, such as"
        " encoding='utf-16'."
    )


def _open_text(path: Path, encoding: str, newline: str | None) -> io.TextIOWrapper:
    name = "utf-8-sig" if encoding == "utf8" else encoding
    stream = pyarrow().input_stream(str(path))
    return io.TextIOWrapper(stream, name, errors="replace", newline=newline)


def count_leading_empty_lines(path: Path, encoding: str) -> int:
    """Return the number of empty lines at the start of a CSV file."""
    with _open_text(path, encoding, newline=None) as text:
        return sum(1 for _ in takewhile("\n".__eq__, text))


def read_first_lines(path: Path, separator: str, encoding: str, n_characters: int = 1) -> Iterator[list[str]]:
    """Yield the cells of each non-empty line of a CSV file. Stop when at least `n_characters` have been read."""
    with _open_text(path, encoding, newline="") as text:
        for cells in filter(None, csv.reader(text, delimiter=separator)):
            yield cells
            n_characters -= sum(map(len, cells)) + len(cells)
            if n_characters <= 0:
                break


def read_header(path: Path, separator: str, encoding: str) -> list[str]:
    """Return the cells of the first line of a CSV file."""
    try:
        cells = next(read_first_lines(path, separator, encoding), None)
    except csv.Error:
        raise ValueError(
            f"{path}: a column name has more than {csv.field_size_limit():,} characters, perhaps because a quote is not"
            " closed. Correct the first line, or pass another separator or encoding."
        ) from None
    if cells is None:
        raise ValueError(f"{path}: the file is empty.")
    if any(REPLACEMENT in cell for cell in cells):
        raise UnicodeDecodeError(encoding, b"", 0, 0, "in a column name")
    return cells


def check_same_columns(files: Sequence[tuple[Path, Sequence[str]]], suggestion: str = "") -> None:
    """Raise a ValueError if the files have different columns, or if the first file has duplicate column names."""
    first, names = files[0] if files else (None, [])
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        fix = suggestion or "Rename the columns, or delete one of them."
        raise ValueError(f"{first} has more than one column named {name!r}. {fix}")
    for path, others in files:
        if list(others) != list(names):
            problem = next(
                (repr(n) for n in [*others, *names] if (n in names) != (n in others)), "the order of columns"
            )
            raise ValueError(
                f"{path} and {first} have different columns: they differ in {problem}. Pass files of the same columns."
            )


@contextmanager
def rephrase_errors(
    path: Path, kind: str, diagnose: Callable[[], str | None] = lambda: None, encoding: str = "utf8"
) -> Iterator[None]:
    """Convert errors of Arrow within this context to a ValueError with a message of one line that names the file.

    After an error, `diagnose` is called. It returns a better message than Arrow's, or None.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        if encoding != "utf8":
            raise ValueError(
                f"{path}: the file is not valid {encoding} ({error.reason}). Pass another encoding."
            ) from None
        raise ValueError(f"{path}: the line of column names {NOT_UTF8}") from None
    except (pyarrow().ArrowException, OSError) as error:
        message = str(error).splitlines()[0].rsplit("': ", 1)[-1] if str(error) else type(error).__name__
        if "duplicate field names" in message:
            message = "it has several columns with the same name. Rename the columns, or delete one of them."
        raise ValueError(f"{path}: {diagnose() or f'cannot be read as {kind}: {message}'}") from None
