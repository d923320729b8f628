"""Writing of some columns of the input files to a new file, with unchanged values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from belief._utils.optional import import_optional
from belief.data.arrow import pyarrow
from belief.data.readers import MISSING, CsvFiles, TableReader

# For each type, the texts that survive a conversion to this type and back: no leading zeros, and not too many digits.
LOSSLESS_PATTERNS = {
    "bool": "^(true|false|True|False|TRUE|FALSE)$",
    "int64": r"^(-?[1-9]\d{0,17}|0)$",
    "double": r"^-?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$",
}


def _compute() -> Any:
    return import_optional("pyarrow.compute", "files")


def csv_lines(files: CsvFiles, columns: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of a new CSV file with these columns of the input files. The first line has the column names."""
    yield _format_lines(pyarrow().record_batch([[name] for name in columns], names=list(columns)))
    for batch in files.text_batches(columns):
        yield _format_lines(batch)


def _format_lines(batch: Any) -> bytes:
    """Return the rows of a batch of text as CSV lines, with quotes only where they are needed."""
    compute = _compute()
    cells = []
    for column in batch.columns:
        quoted = compute.binary_join_element_wise('"', compute.replace_substring(column, '"', '""'), '"', "")
        needs_quotes = compute.match_substring_regex(column, '[",\r\n]')
        if batch.num_columns == 1:
            # Without quotes, the line of an empty cell would be empty, and readers skip empty lines.
            needs_quotes = compute.or_(needs_quotes, compute.equal(column, ""))
        cells.append(compute.if_else(needs_quotes, quoted, column))
    lines = compute.binary_join_element_wise(*cells, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines).encode()


def typed_batches(files: TableReader, columns: Sequence[str]) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the Arrow batches of these columns of the input files.

    Columns of CSV files get types from which their text can be restored; columns of other files keep their types.
    """
    if not isinstance(files, CsvFiles):
        schema = pyarrow().schema([files.schema.field(name) for name in columns])
        return schema, (batch.cast(schema) for batch in files.batches(columns))
    schema = pyarrow().schema(_find_lossless_types(files.text_batches(columns), columns))
    return schema, (_cast_text(batch, schema) for batch in files.text_batches(columns))


def _find_lossless_types(batches: Iterable[Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return, for each column of text, the narrowest type from which its text can be restored."""
    pa, compute = pyarrow(), _compute()
    possible = {name: [*LOSSLESS_PATTERNS] for name in columns}
    for batch in batches:
        for name, types in possible.items():
            text = _without_missing(batch.column(name)).drop_null()
            types[:] = [
                t
                for t in types
                if compute.all(compute.match_substring_regex(text, LOSSLESS_PATTERNS[t])).as_py() is not False
            ]
    return {name: pa.type_for_alias([*types, "string"][0]) for name, types in possible.items()}


def _without_missing(text: Any) -> Any:
    """Replace the words for missing values, such as NA, by null."""
    pa, compute = pyarrow(), _compute()
    return compute.if_else(compute.is_in(text, pa.array(MISSING)), pa.scalar(None, pa.string()), text)


def _cast_text(batch: Any, schema: Any) -> Any:
    """Convert a batch of text to a schema. In text columns, only empty cells become null."""
    pa, compute = pyarrow(), _compute()
    columns = []
    for text, kind in zip(batch.columns, schema.types, strict=True):
        if kind == pa.string():
            columns.append(compute.if_else(compute.equal(text, ""), pa.scalar(None, pa.string()), text))
        else:
            columns.append(_without_missing(text).cast(kind))
    return pa.record_batch(columns, schema=schema)
