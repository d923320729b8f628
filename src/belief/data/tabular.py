"""Tables in files, batch by batch, through Arrow's readers of Parquet, of its own files, and of CSV.

None of them is ever read whole. The rows of several files follow one another, in the order the files are named.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from belief.data.arrow import is_text, pyarrow
from belief.extras import import_optional

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"]
CSV_BYTES = 2**23  # of text that are parsed at a time
BATCH_BYTES = 2**24  # of a batch of a Parquet file, decoded
NOT_UTF8 = "is not text in UTF-8: convert the file first (iconv -f latin1 -t utf-8, say)."


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
                    path, format={"arrow": "ipc"}.get(kind, kind), partitioning="hive" if path.is_dir() else None
                )
            for fragment in part.get_fragments():
                with self._clear(fragment.path):
                    schemas.append((Path(fragment.path), fragment.physical_schema))
                self._files.append((Path(fragment.path), dataset.get_partition_keys(fragment.partition_expression)))
            schemas.append((path, part.schema))
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
            with self._clear(path):
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
        self._header = form.header
        reader = self._open(paths[0], None)
        with clear_errors(self.first, "CSV"):
            found = list(reader.schema)
            self._names = [field.name for field in found] if form.header else [f"c{j}" for j in range(len(found))]
        self._sample: Any = next(iter(reader), None)  # its first rows
        refuse_other_columns([(path, self._names_of(path)) for path in paths])
        kinds = {n: self._kind(n, f.type, n in text) for n, f in zip(self._names, found, strict=True)}
        self.schema = pyarrow().schema({**kinds, **self._after_a_gap(kinds)})

    def _names_of(self, path: Path) -> list[str]:
        names: list[str] = self._open(path, None).schema.names
        return names if self._header else [f"c{j}" for j in range(len(names))]

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
        sample = self._sample
        for name in columns if sample is not None else ():
            values = sample.column(self._names.index(name))
            if not is_text(values.type):
                continue
            values = values.unique().drop_null()
            number = compute.match_substring_regex(values, r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
            if 2 * compute.sum(number).as_py() > len(values):
                word = values.filter(compute.invert(number))[0].as_py()
                raise ValueError(f"{self.first}: column {name!r} holds numbers, but {word!r} too: {_cures(name)}")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self._scan({name: self.schema.field(name).type for name in columns}, columns)

    def _scan(self, kinds: dict[str, Any], columns: Sequence[str]) -> Iterator[Any]:
        for path in self._paths:
            with clear_errors(path, "CSV", partial(self._what_is_wrong, path, kinds)):
                yield from self._open(path, kinds, columns)

    def _open(
        self, path: Path, kinds: dict[str, Any] | None, columns: Sequence[str] | None = None, threads: bool = True
    ) -> Any:
        csv = import_optional("pyarrow.csv", "files")
        named = {} if kinds is None else {"column_names": self._names, "skip_rows": int(self._header)}
        if kinds is None and not self._header:
            named = {"autogenerate_column_names": True}
        with clear_errors(path, "CSV", lambda: self._what_is_wrong(path, kinds) if threads else None):
            return csv.open_csv(
                path,
                read_options=csv.ReadOptions(use_threads=threads, block_size=CSV_BYTES, **named),
                parse_options=csv.ParseOptions(delimiter=self._form.separator_of(path)),
                convert_options=csv.ConvertOptions(
                    null_values=MISSING, strings_can_be_null=True, column_types=kinds, include_columns=columns
                ),
            )

    def _what_is_wrong(self, path: Path, kinds: dict[str, Any] | None) -> str | None:
        """Which line is: Arrow knows when it reads without threads."""
        pa = pyarrow()
        try:
            for _ in self._open(path, kinds, list(kinds) if kinds else None, threads=False):
                pass
        except (pa.ArrowInvalid, ValueError) as error:
            return explained(str(error), self._names if kinds else None, self._label)
        return None


@dataclass(frozen=True)
class CsvForm:
    """How the text of a CSV file is laid out: its first line, and what is between two columns (None: by the ending).

    Examples
    --------
    >>> import belief
    >>> belief.data.CsvForm(header=False, separator=";")
    CsvForm(header=False, separator=';')
    """

    header: bool = True
    separator: str | None = None

    def separator_of(self, path: Path) -> str:
        return self.separator or ("\t" if ".tsv" in (ending.lower() for ending in path.suffixes) else ",")


def _numbers_or_text(values: Any) -> Any:
    pa = pyarrow()
    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.float64()


def _cures(name: str) -> str:
    return f"mend it, leave it empty if it is missing, or take the column as names with discrete_features={[name]!r}."


def explained(said: str, names: Sequence[str] | None, label: str | None = None) -> str | None:
    """What Arrow says of a line, in words; None where it is about something else."""
    if "Empty CSV file" in said:
        return "the file is empty."
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if ragged:
        return f"line {ragged[1]} has {ragged[3]} columns, the lines before it {ragged[2]}."
    odd = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid (\w+)", said)
    if odd is None:
        return None
    name = names[int(odd[1])] if names else f"number {odd[1]}"
    where = f"line {odd[2]}, " if odd[2] else ""
    if odd[4] == "UTF8":
        return f"{where}column {name!r} {NOT_UTF8}"
    value = said[said.index("invalid value '") + 15 :].rsplit("'", 1)[0]
    what = "yes and no" if odd[3] == "bool" else "numbers"
    whole = ", or say task='regression'" if odd[3].startswith("int") and _is_number(value) else ""
    cures = f"mend it{whole}." if name == label else _cures(name)
    return f"{where}column {name!r} has {value!r}, but {what} before: {cures}"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def refuse_other_columns(files: Sequence[tuple[Path, Sequence[str]]]) -> None:
    """Refuse files with other columns than the first, and columns of the same name."""
    first, names = files[0] if files else (None, [])
    twice, often = Counter(names).most_common(1)[0] if names else ("", 0)
    if often > 1:
        raise ValueError(f"{first} has more than one column named {twice!r}; rename them, or drop one.")
    for path, others in files:
        if list(others) != list(names):
            odd = next((n for n in [*others, *names] if (n in names) != (n in others)), "their order")
            raise ValueError(f"{path} and {first} do not have the same columns ({odd!r}).")


@contextmanager
def clear_errors(path: Path | str, kind: str, detail: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """Arrow's errors, as one sentence that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the line of names {NOT_UTF8}") from None
    except (pyarrow().ArrowException, OSError) as error:
        said = str(error).splitlines()[0].rsplit("': ", 1)[-1] if str(error) else type(error).__name__
        if "duplicate field names" in said:
            said = "it has more than one column of the same name; rename them, or drop one."
        raise ValueError(f"{path}: {detail() or f'cannot be read as {kind}: {said}'}") from None
