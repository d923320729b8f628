"""How the text of a CSV file is laid out, in which encoding it is, and its first lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from belief.data.arrow import pyarrow

REPLACED = "\ufffd"  # what Python puts in place of bytes that are no text
LOOKED_AT = 4096  # bytes
MARKS = {  # that text may begin with; the longer ones first, since they begin with shorter ones
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class CsvForm:
    """How the text of a CSV file is laid out.

    Parameters
    ----------
    header : whether the first line has the names of the columns
    separator : what is between two columns; None: by the ending
    encoding : of the text; None: UTF-8, or what its first bytes say

    Examples
    --------
    >>> import belief
    >>> belief.data.CsvForm(header=False, separator=";")
    CsvForm(header=False, separator=';', encoding=None)
    """

    header: bool = True
    separator: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            check_encoding(self.encoding)

    def separator_of(self, path: Path) -> str:
        return self.separator or ("\t" if ".tsv" in (ending.lower() for ending in path.suffixes) else ",")


def check_encoding(name: str) -> None:
    """Refuse what is no encoding of text."""
    try:
        known = codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ValueError(f"encoding must be the name of one, 'latin1' or 'utf-16' for example; got {name!r}.")


def encoding_of(path: Path) -> str:
    """The encoding that the first bytes of a file speak for; bytes that no text in UTF-8 has are refused."""
    start = pyarrow().input_stream(str(path)).read(LOOKED_AT)
    for mark, name in MARKS.items():
        if start.startswith(mark):
            return name
    if 0 not in start:
        return "utf8"
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if max(even, odd) > len(start) / 4 > 4 * min(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    raise ValueError(
        f"{path}: has zero bytes in it, as no text has in UTF-8: if it is text, say in which encoding, with"
        " encoding='utf-16' for example."
    )


def first_lines(path: Path, separator: str, encoding: str, size: int = 1) -> Iterator[list[str]]:
    """The cells of the first lines of a CSV file that are not empty: so many as have `size` characters."""
    name = "utf-8-sig" if encoding == "utf8" else encoding
    with io.TextIOWrapper(pyarrow().input_stream(str(path)), name, errors="replace", newline="") as text:
        for cells in filter(None, csv.reader(text, delimiter=separator)):
            yield cells
            size -= sum(map(len, cells)) + len(cells)
            if size <= 0:
                break


def names_in(path: Path, separator: str, encoding: str) -> list[str]:
    """The cells of the first line of a CSV file."""
    cells = next(first_lines(path, separator, encoding), None)
    if cells is None:
        raise ValueError(f"{path}: the file is empty.")
    if any(REPLACED in cell for cell in cells):
        raise UnicodeDecodeError(encoding, b"", 0, 0, "a name")
    return cells
