"""Tables in files, batch by batch, through Arrow's readers of Parquet, of its own files, and of CSV.

None of them is ever read whole. The rows of several files follow one another, in the order the files are named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from belief._utils.optional import import_optional
from belief.data.arrow import is_text, pyarrow
from belief.data.complaints import NOT_UTF8, cures, explained
from belief.data.encoding import CsvForm, encoding_of, first_lines, names_in
from belief.data.finding import Unchanged, files_in, once, parquet_stamp, stamp
from belief.data.hints import layout_hint

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"]
CSV_BYTES = 2**23  # of text that are parsed at a time, more where a line is longer
MOST_CSV_BYTES = 2**30
ROWS_AT_ONCE = 64  # of a wide file, whose columns cost more than their rows
MANY = 10_000  # columns, of which Arrow should not try every type: that takes it 50 µs and some kilobytes each
BATCH_BYTES = 2**24  # of a batch of a Parquet file, decoded


class Tabular(Protocol):
    """Files of the same columns."""

    schema: Any
    first: Path

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns, batch by batch, in the order of the files."""


class DatasetFiles:
    """Parquet files, folders of them (partitioned or not), and Arrow files.

    Arrow's datasets find the files; they do not read them, since their scan runs up to a gigabyte ahead.
    """

    def __init__(self, paths: Sequence[Path], kind: str) -> None:
        dataset = import_optional("pyarrow.dataset", "files")
        self.first, self._read = paths[0], {"parquet": _read_parquet, "arrow": _read_arrow}[kind]
        self._kind = kind.capitalize()
        self._files: list[tuple[Path, dict[str, Any]]] = []  # and what the names of its folders say of each
        schemas = []
        for path in paths:
            with self._clear(path):
                part = dataset.dataset(
                    [str(file) for file in files_in(path)], format={"arrow": "ipc"}.get(kind, kind),
                    partitioning="hive" if path.is_dir() else None, partition_base_dir=str(path),
                )  # fmt: skip
            for fragment in part.get_fragments():
                with self._clear(fragment.path):
                    schemas.append((Path(fragment.path), fragment.physical_schema))
                self._files.append((Path(fragment.path), dataset.get_partition_keys(fragment.partition_expression)))
            schemas.append((path, part.schema))
        keys = dict(self._files)
        single = once(path for path, _ in self._files)
        self._files = [(path, keys[path]) for path in single]
        self._unchanged = Unchanged(single, parquet_stamp if kind == "parquet" else stamp)
        inside = [path for path, _ in self._files]
        refuse_other_columns([(path, sorted(schema.names)) for path, schema in schemas if path in inside])
        self.schema = self._unified(schemas)

    def _clear(self, path: Path | str) -> Any:
        return clear_errors(path, self._kind)

    def _unified(self, schemas: Sequence[tuple[Path, Any]]) -> Any:
        """One schema for all files: whole numbers in one and fractions in another are fractions."""
        pa = pyarrow()
        schema = schemas[0][1]
        for path, other in schemas[1:]:
            try:
                schema = pa.unify_schemas([schema, other], promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                odd = re.search(r"Field (.*) has incompatible types: (.*)", str(error))
                how = f"column {odd[1]!r} is {odd[2]}" if odd else str(error).splitlines()[0]
                raise ValueError(f"{path} and {self.first} differ in a column ({how}): convert one of them.") from None
        return schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        height = max(1, min(2**17, BATCH_BYTES // (4 * max(1, len(columns)))))
        kinds = [self.schema.field(name).type for name in columns]
        for path, keys in self._files:
            with self._clear(path), self._unchanged.reading(path):
                for batch in self._read(path, [name for name in columns if name not in keys], height):
                    found = [_column(batch, name, kind, keys) for name, kind in zip(columns, kinds, strict=True)]
                    yield pyarrow().record_batch(found, names=list(columns))


def _read_parquet(path: Path, columns: list[str], height: int) -> Iterator[Any]:
    parquet = import_optional("pyarrow.parquet", "files")
    with parquet.ParquetFile(path, buffer_size=2**16, pre_buffer=False) as file:  # a buffer before keeps what it read
        yield from file.iter_batches(height, columns=columns)


def _read_arrow(path: Path, columns: list[str], height: int) -> Iterator[Any]:
    ipc = import_optional("pyarrow.ipc", "files")
    with pyarrow().OSFile(str(path)) as file:
        fields = [ipc.open_file(file).schema.get_field_index(name) for name in columns]
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            yield from (batch.slice(a, height) for a in range(0, len(batch), height))


def _column(batch: Any, name: str, kind: Any, keys: dict[str, Any]) -> Any:
    """A column of a batch, or of its folder's name, as the type that all files have in common."""
    pa = pyarrow()
    if name in keys:
        return pa.repeat(pa.scalar(keys[name], kind), len(batch))
    column = batch.column(name)
    return column if column.type == kind or is_text(kind) else column.cast(kind)


class CsvFiles:
    """CSV and TSV files, plain or compressed. The first lines say which columns are numbers.

    Parameters
    ----------
    form : how the text is laid out
    label : the column that holds the class, which may be of any type
    text : columns to read as names
    numeric : whether the label is a number to predict
    """

    def __init__(
        self, paths: Sequence[Path], form: CsvForm, label: str | None, text: Sequence[str], numeric: bool = False
    ) -> None:
        self.first, self._paths, self._form, self._label = paths[0], paths, form, label
        self._numeric = numeric
        self._unchanged = Unchanged(paths)
        self._encodings = {path: form.encoding or encoding_of(path) for path in paths}
        self._names = self._names_of(paths[0])
        refuse_other_columns([(path, self._names_of(path)) for path in paths], self._hint(paths[0]))
        self._bytes = CSV_BYTES
        self._sample: dict[str, Any]  # the first rows of the columns that are text
        kinds = {f.name: self._kind(f.name, f.type, f.name in text) for f in self._inferred()}
        self._bytes = max(self._bytes, ROWS_AT_ONCE * sum(map(len, self._names)))
        self.schema = pyarrow().schema({**kinds, **self._after_a_gap(kinds)})

    def _names_of(self, path: Path) -> list[str]:
        with clear_errors(path, "CSV", encoding=self._encodings[path]):
            first = names_in(path, self._form.separator_of(path), self._encodings[path])
        return first if self._form.header else [f"c{j}" for j in range(len(first))]

    def _inferred(self) -> Iterator[Any]:
        """The columns with the types that the first rows have."""
        plain = self._plain_numbers() if len(self._names) > MANY else set()
        with clear_errors(self.first, "CSV", partial(self._what_is_wrong, self.first, {})):
            reader = self._open(self.first, {}, [name for name in self._names if name not in plain] or None)
            rows = next(iter(reader), None)
        found = {field.name: field for field in reader.schema}
        self._sample = {n: rows.column(n) for n, f in found.items() if rows is not None and is_text(f.type)}
        number = pyarrow().float64()
        return (found.get(name) or pyarrow().field(name, number) for name in self._names)

    def _plain_numbers(self) -> set[str]:
        """The columns that are surely numbers, but for the label, whose kind matters."""
        compute = import_optional("pyarrow.compute", "files")
        separator, encoding = self._form.separator_of(self.first), self._encodings[self.first]
        every, seen = pyarrow().array([True] * len(self._names)), 0
        for cells in islice(first_lines(self.first, separator, encoding, CSV_BYTES), int(self._form.header), None):
            if len(cells) != len(every):
                return set()
            number = compute.match_substring_regex(pyarrow().array(cells), r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")
            every, seen = compute.and_(every, number), seen + 1
        plain = {name for name, is_number in zip(self._names, every.to_pylist(), strict=True) if is_number and seen}
        return plain - {self._label}

    def _kind(self, name: str, kind: Any, text: bool) -> Any:
        """The type a column is read as: whole numbers may become fractions further down, so they are floats at once."""
        pa = pyarrow()
        if pa.types.is_binary(kind):
            raise ValueError(f"{self.first}: column {name!r} {NOT_UTF8}")
        if name == self._label:
            return pa.float64() if self._numeric and pa.types.is_integer(kind) else kind
        if text or is_text(kind):
            return pa.dictionary(pa.int32(), pa.string())
        return pa.float64() if pa.types.is_integer(kind) else kind

    def _after_a_gap(self, kinds: dict[str, Any]) -> dict[str, Any]:
        """The types of the columns that begin with a long gap, by their first values."""
        pa = pyarrow()
        unknown = [name for name, kind in kinds.items() if pa.types.is_null(kind)]
        found: dict[str, Any] = {}
        for batch in self._scan(dict.fromkeys(unknown, pa.string()), unknown) if unknown else ():
            for name in unknown:
                if name not in found and batch.column(name).null_count < len(batch):
                    found[name] = self._kind(name, _numbers_or_text(batch.column(name).drop_null()), False)
            if len(found) == len(unknown):
                break
        return found

    def refuse_mixed(self, columns: Sequence[str]) -> None:
        """Refuse a column of numbers that a few words have slipped into: as text, each number would be a name."""
        compute = import_optional("pyarrow.compute", "files")
        for name in (name for name in columns if name in self._sample):
            values = self._sample[name].unique().drop_null()
            number = compute.match_substring_regex(values, r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
            if 2 * compute.sum(number).as_py() > len(values):
                word = values.filter(compute.invert(number))[0].as_py()
                raise ValueError(f"{self.first}: column {name!r} holds numbers, but {word!r} too: {cures(name)}")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self._scan({name: self.schema.field(name).type for name in columns}, columns)

    def as_text(self, columns: Sequence[str]) -> Iterator[Any]:
        """The same as the text they are, where nothing is missing."""
        yield from self._scan(dict.fromkeys(columns, pyarrow().string()), columns, null_values=[])

    def _scan(self, kinds: dict[str, Any], columns: Sequence[str], **options: Any) -> Iterator[Any]:
        for path in self._paths:
            with (
                clear_errors(path, "CSV", partial(self._what_is_wrong, path, kinds), self._encodings[path]),
                self._unchanged.reading(path),
            ):
                yield from self._read(path, kinds, columns, **options)

    def _read(self, path: Path, kinds: dict[str, Any], columns: Sequence[str], **options: Any) -> Iterator[Any]:
        """The batches of a file; where a line is longer than what is read at a time, more is from there on."""
        given = 0
        while True:
            seen = 0
            try:
                for batch in self._open(path, kinds, columns, **options):
                    seen += len(batch)
                    if seen > given:
                        yield batch.slice(max(0, len(batch) - (seen - given)))
                        given = seen
                return
            except pyarrow().ArrowInvalid as error:
                self._lengthen(error)

    def _lengthen(self, error: Exception) -> None:
        """Take longer lines from now on, if that is what Arrow wants."""
        if not re.search("straddl|Empty CSV file or block", str(error)) or self._bytes >= MOST_CSV_BYTES:
            raise error
        self._bytes = min(8 * self._bytes, MOST_CSV_BYTES)

    def _open(
        self, path: Path, kinds: dict[str, Any], columns: Sequence[str] | None, threads: bool = True,
        null_values: Sequence[str] = MISSING,
    ) -> Any:  # fmt: skip
        with clear_errors(
            path, "CSV", partial(self._what_is_wrong, path, kinds) if threads else lambda: None, self._encodings[path]
        ):
            while True:
                try:
                    return self._opened(path, kinds, columns, threads, null_values)
                except pyarrow().ArrowInvalid as error:
                    self._lengthen(error)

    def _opened(
        self, path: Path, kinds: dict[str, Any], columns: Sequence[str] | None, threads: bool, missing: Sequence[str]
    ) -> Any:
        csv = import_optional("pyarrow.csv", "files")
        yes_or_no: dict[str, Any] = (
            {} if not kinds or pyarrow().bool_() in kinds.values() else {"true_values": [], "false_values": []}
        )
        wide = len(self._names) > MANY  # small pieces in great number: the system's memory has less waste
        return csv.open_csv(
            path,
            memory_pool=pyarrow().system_memory_pool() if wide else None,
            read_options=csv.ReadOptions(
                use_threads=threads, block_size=self._bytes, encoding=self._encodings[path], column_names=self._names,
                skip_rows_after_names=int(self._form.header),
            ),
            parse_options=csv.ParseOptions(delimiter=self._form.separator_of(path), newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=missing, strings_can_be_null=bool(missing), column_types=kinds, include_columns=columns,
                **yes_or_no,
            ),
        )  # fmt: skip

    def _what_is_wrong(self, path: Path, kinds: dict[str, Any]) -> str | None:
        """Which line is: Arrow knows when it reads without threads."""
        pa = pyarrow()
        try:
            for _ in self._open(path, kinds, list(kinds) or None, threads=False):
                pass
        except (pa.ArrowInvalid, ValueError) as error:
            said = explained(str(error), self._names, self._label)
            hint = self._hint(path) if said and said.startswith("line") and "columns" in said else ""
            return f"{said[:-1]}; {hint}" if said and hint else said
        return None

    def _hint(self, path: Path) -> str:
        """What would help, by the first line."""
        separator = self._form.separator_of(path)
        return layout_hint(names_in(path, separator, self._encodings[path]), separator)


def _numbers_or_text(values: Any) -> Any:
    pa = pyarrow()
    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.float64()


def refuse_other_columns(files: Sequence[tuple[Path, Sequence[str]]], hint: str = "") -> None:
    """Refuse files with other columns than the first, and columns of the same name, for which a hint may help."""
    first, names = files[0] if files else (None, [])
    twice, often = Counter(names).most_common(1)[0] if names else ("", 0)
    if often > 1:
        raise ValueError(f"{first} has more than one column named {twice!r}; {hint or 'rename them, or drop one.'}")
    for path, others in files:
        if list(others) != list(names):
            odd = next((n for n in [*others, *names] if (n in names) != (n in others)), "their order")
            raise ValueError(f"{path} and {first} do not have the same columns ({odd!r}).")


@contextmanager
def clear_errors(
    path: Path | str, kind: str, detail: Callable[[], str | None] = lambda: None, encoding: str = "utf8"
) -> Iterator[None]:
    """Arrow's errors, as one sentence that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        if encoding != "utf8":
            raise ValueError(f"{path}: is not text in {encoding} ({error.reason}): say in which it is.") from None
        raise ValueError(f"{path}: the line of names {NOT_UTF8}") from None
    except (pyarrow().ArrowException, OSError) as error:
        said = str(error).splitlines()[0].rsplit("': ", 1)[-1] if str(error) else type(error).__name__
        if "duplicate field names" in said:
            said = "it has more than one column of the same name; rename them, or drop one."
        raise ValueError(f"{path}: {detail() or f'cannot be read as {kind}: {said}'}") from None
