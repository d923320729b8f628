"""Tables in files, batch by batch: Parquet and Arrow through Arrow's datasets, CSV through its streaming reader.

None of them is ever read whole. The rows of several files follow one another, in the order the files are named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from belief.data.arrow import is_text, pyarrow

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"]
CSV_BYTES = 2**23  # of text that are parsed at a time
BATCH_BYTES = 2**25  # of a batch of a Parquet file, decoded


class Tabular(Protocol):
    """Files of the same columns."""

    schema: Any
    first: Path

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns, batch by batch, in the order of the files."""


class DatasetFiles:
    """Parquet files, folders of them (partitioned or not), and Arrow files."""

    def __init__(self, paths: Sequence[Path], kind: str) -> None:
        from pyarrow import dataset

        self.first, self._kind = paths[0], {"parquet": "parquet", "arrow": "ipc"}[kind]
        parts = []
        for path in paths:
            with self._clear(path):
                parts.append(dataset.dataset(path, format=self._kind, partitioning="hive"))
        files = [(Path(f.path), f.physical_schema) for part in parts for f in self._fragments(part)]
        refuse_other_columns([(path, schema.names) for path, schema in files])
        self.schema = self._unified(parts, files)
        self._parts = [part.replace_schema(self.schema) for part in parts]

    def _fragments(self, part: Any) -> Iterator[Any]:
        for fragment in part.get_fragments():
            with self._clear(fragment.path):
                _ = fragment.physical_schema
            yield fragment

    def _clear(self, path: Path | str) -> Any:
        return clear_errors(path, self._kind)

    def _unified(self, parts: Sequence[Any], files: Sequence[tuple[Path, Any]]) -> Any:
        """One schema for all files: whole numbers in one and fractions in another are fractions."""
        pa = pyarrow()
        try:
            return pa.unify_schemas([p.schema for p in parts] + [s for _, s in files], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ValueError(f"{self.first}: the files differ in a column: {str(error).splitlines()[0]}") from None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        from pyarrow import dataset

        # read as it is needed, one file at a time: what else is read ahead is memory
        options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1, "cache_metadata": False}
        if self._kind == "parquet":
            options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True, pre_buffer=False
            )
        height = max(1, min(2**17, BATCH_BYTES // (4 * max(1, len(columns)))))
        for part in self._parts:
            with self._clear(self.first):
                yield from part.to_batches(columns=list(columns), batch_size=height, **options)


class CsvFiles:
    """CSV and TSV files, plain or compressed. The first lines say which columns are numbers."""

    def __init__(self, paths: Sequence[Path], header: bool, label: str | None, text: Sequence[str]) -> None:
        self.first, self._paths, self._header = paths[0], paths, header
        reader = self._open(paths[0], None)
        found = list(reader.schema)
        self._names = [field.name for field in found] if header else [f"c{j}" for j in range(len(found))]
        self._sample: Any = next(iter(reader), None)  # its first rows
        refuse_other_columns([(path, self._names_of(path)) for path in paths])
        kinds = [
            field.type if n == label else self._kind(n, field.type, n in text)
            for n, field in zip(self._names, found, strict=True)
        ]
        self.schema = pyarrow().schema(zip(self._names, kinds, strict=True))

    def _names_of(self, path: Path) -> list[str]:
        names: list[str] = self._open(path, None).schema.names
        return names if self._header else [f"c{j}" for j in range(len(names))]

    def _kind(self, name: str, kind: Any, text: bool) -> Any:
        """The type a column is read as: whole numbers may become fractions further down, so they are floats at once."""
        pa = pyarrow()
        if pa.types.is_null(kind) and not text:
            kind = self._first_values(name)
        if text or is_text(kind):
            return pa.dictionary(pa.int32(), pa.string())
        return pa.float64() if pa.types.is_integer(kind) else kind

    def _first_values(self, name: str) -> Any:
        """The type of a column that begins with a long gap, by its first values."""
        pa = pyarrow()
        for batch in self._scan({name: pa.string()}, [name]):
            there = batch.column(0).drop_null()
            if len(there):
                try:
                    there.cast(pa.float64())
                except pa.ArrowInvalid:
                    return pa.string()
                return pa.float64()
        return pa.null()

    def refuse_mixed(self, columns: Sequence[str]) -> None:
        """Refuse a column of numbers that a few words have slipped into: as text, each number would be a name."""
        from pyarrow import compute

        sample = self._sample
        for name in columns if sample is not None else ():
            values = sample.column(self._names.index(name))
            if not is_text(values.type):
                continue
            values = values.unique().drop_null()
            number = compute.match_substring_regex(values, r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
            if 2 * compute.sum(number).as_py() > len(values):
                word = values.filter(compute.invert(number))[0].as_py()
                raise ValueError(
                    f"{self.first}: column {name!r} holds numbers, but {word!r} too: mend it, leave it empty if it is"
                    f" missing, or take the column as names with --discrete {name}."
                )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self._scan({name: self.schema.field(name).type for name in columns}, columns)

    def _scan(self, kinds: dict[str, Any], columns: Sequence[str]) -> Iterator[Any]:
        for path in self._paths:
            with clear_errors(path, "csv", partial(self._what_is_wrong, path, kinds)):
                yield from self._open(path, kinds, columns)

    def _open(
        self, path: Path, kinds: dict[str, Any] | None, columns: Sequence[str] | None = None, threads: bool = True
    ) -> Any:
        from pyarrow import csv

        named = {} if kinds is None else {"column_names": self._names, "skip_rows": int(self._header)}
        if kinds is None and not self._header:
            named = {"autogenerate_column_names": True}
        with clear_errors(path, "csv", lambda: self._what_is_wrong(path, kinds) if threads else None):
            return csv.open_csv(
                path,
                read_options=csv.ReadOptions(use_threads=threads, block_size=CSV_BYTES, **named),
                parse_options=csv.ParseOptions(delimiter="\t" if ".tsv" in _suffixes(path) else ","),
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
            return explained(str(error), self._names if kinds else None)
        return None


def _suffixes(path: Path) -> list[str]:
    return [ending.lower() for ending in path.suffixes]


def explained(said: str, names: Sequence[str] | None) -> str | None:
    """What Arrow says of a line, in words; None where it is about something else."""
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if ragged:
        return f"line {ragged[1]} has {ragged[3]} columns, the lines before it {ragged[2]}."
    odd = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid value '(.*)'", said)
    if odd is None:
        return None
    name = names[int(odd[1])] if names else f"number {odd[1]}"
    where = f"line {odd[2]}, " if odd[2] else ""
    what = "yes and no" if odd[3] == "bool" else "numbers"
    return (
        f"{where}column {name!r} has {odd[4]!r}, but {what} before: mend it, leave it empty if it is missing, or take"
        f" the column as names with --discrete {name}."
    )


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
    except (pyarrow().ArrowException, OSError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path}: {detail() or f'cannot be read as {kind}: {said}'}") from None
