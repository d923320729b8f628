"""Detection of the encoding of CSV files, and reading of their first lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from belief._utils.optional import import_optional

REPLACEMENT = "\ufffd"  # Python's substitute for bytes that cannot be decoded
INSPECTED_BYTES = 4096
BYTE_ORDER_MARKS = {  # UTF-32 first, since its little-endian mark starts with the mark of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def detect_encoding(path: Path) -> str:
    """Return the encoding of a text file, detected from its first bytes: UTF-8, UTF-16 or UTF-32."""
    start = import_optional("pyarrow", "files").input_stream(str(path)).read(INSPECTED_BYTES)
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
    stream = import_optional("pyarrow", "files").input_stream(str(path))
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
