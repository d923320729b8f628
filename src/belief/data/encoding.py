"""In which encoding the text of a file is."""

from __future__ import annotations

import codecs
from pathlib import Path

from belief.data.arrow import pyarrow

LOOKED_AT = 4096  # bytes
MARKS = {  # that text may begin with; the longer ones first, since they begin with shorter ones
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


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
