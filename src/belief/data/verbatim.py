"""Columns of files as they were read: text stays text, and types stay types.

The search turns columns into numbers. What is written for others comes from the files once more: of CSV as text, or as
types that say all that the text says; of Parquet and Arrow as the columns are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from belief._utils.optional import import_optional
from belief.data.arrow import pyarrow
from belief.data.tabular import MISSING, CsvFiles, Tabular

# What text may look like to be a number and nothing else: no zeros before it, no more digits than the type keeps.
FORMS = {
    "bool": "^(true|false|True|False|TRUE|FALSE)$",
    "int64": r"^(-?[1-9]\d{0,17}|0)$",
    "double": r"^-?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$",
}


def text_of(files: CsvFiles, columns: Sequence[str]) -> Iterator[bytes]:
    """Columns of CSV files as CSV, with a line of names first."""
    yield _lines(pyarrow().record_batch([[name] for name in columns], names=list(columns)))
    for batch in files.as_text(columns):
        yield _lines(batch)


def _lines(batch: Any) -> bytes:
    """The rows of a batch of text as lines; quotes stand where they must."""
    compute = import_optional("pyarrow.compute", "files")
    cells = []
    for column in batch.columns:
        quoted = compute.binary_join_element_wise('"', compute.replace_substring(column, '"', '""'), '"', "")
        must = compute.match_substring_regex(column, '[",\r\n]')
        if batch.num_columns == 1:
            must = compute.or_(must, compute.equal(column, ""))  # or there would be no row
        cells.append(compute.if_else(must, quoted, column))
    lines = compute.binary_join_element_wise(*cells, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines).encode()


def typed(files: Tabular, columns: Sequence[str]) -> tuple[Any, Iterator[Any]]:
    """Columns as batches of Arrow, and their schema."""
    schema = pyarrow().schema
    if not isinstance(files, CsvFiles):
        kinds = schema([files.schema.field(name) for name in columns])
        return kinds, (batch.cast(kinds) for batch in files.batches(columns))
    found = schema(_kinds(files.as_text(columns), columns))
    return found, (_cast(batch, found) for batch in files.as_text(columns))


def _kinds(batches: Iterable[Any], columns: Sequence[str]) -> dict[str, Any]:
    """The narrowest type that says all that each column's text says."""
    pa, compute = pyarrow(), import_optional("pyarrow.compute", "files")
    possible = {name: [*FORMS] for name in columns}
    for batch in batches:
        for name, kinds in possible.items():
            text = _present(batch.column(name)).drop_null()
            kinds[:] = [
                k for k in kinds if compute.all(compute.match_substring_regex(text, FORMS[k])).as_py() is not False
            ]
    return {name: pa.type_for_alias([*kinds, "string"][0]) for name, kinds in possible.items()}


def _present(text: Any) -> Any:
    """The text, where it is no word for "missing"."""
    pa, compute = pyarrow(), import_optional("pyarrow.compute", "files")
    return compute.if_else(compute.is_in(text, pa.array(MISSING)), pa.scalar(None, pa.string()), text)


def _cast(batch: Any, schema: Any) -> Any:
    """A batch of text as these types; in a column of text a cell is missing where it is empty alone."""
    pa, compute = pyarrow(), import_optional("pyarrow.compute", "files")
    columns = []
    for text, kind in zip(batch.columns, schema.types, strict=True):
        if kind == pa.string():
            columns.append(compute.if_else(compute.equal(text, ""), pa.scalar(None, pa.string()), text))
        else:
            columns.append(_present(text).cast(kind))
    return pa.record_batch(columns, schema=schema)
