"""LIBSVM (svmlight) files, read in blocks: the text of a file is never in memory as a whole.

A line is `label index:value index:value ... # comment`. A compiled parser reads each block; it only knows whether a
line is right. A line that is not goes to a slow and careful one, which says what is wrong with it.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from belief._utils.validation import is_integer
from belief.kernels.libsvm import INDEX_DIGITS, parse_lines
from belief.method.arrays import Array

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_INT32_MAX = 2**31 - 1


def read_libsvm(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    block_bytes: int = 2**25,
    dtype: npt.DTypeLike = np.float32,
) -> Iterator[tuple[csr_array, Array]]:
    """Read LIBSVM files block by block, in order.

    Where `n_features` is None or `zero_based` is "auto", the files are read twice: the first pass finds out. Say both
    to read once; or use `load_libsvm`, which never needs the first pass.

    Parameters
    ----------
    paths : str, path, or sequence of those
        Plain text, or compressed where the name ends in .gz, .bz2 or .xz. Several files are read as if they were one.
    n_features : int, optional
        The number of columns; None: as many as the largest index needs.
    zero_based : bool or "auto"
        Whether the first column has index 0 or 1 in the files. "auto": 0 if an index 0 occurs anywhere, else 1.
    block_bytes : int
        About so much text makes a block; reading one takes 7 to 12 times as much memory.
    dtype : float32 or float64
        The type of the values. The text is rounded to float64 first.

    Yields
    ------
    X : csr_array of shape (rows of the block, n_features)
        Rows with sorted indices and no duplicates; a zero that the file has is stored. The indices are int32 if
        n_features < 2**31, else int64.
    y : array of float64
        The labels.

    Raises
    ------
    ValueError
        With the file and the number of the line, where a line is malformed; or for a file without rows.
    FileNotFoundError
        If one of the files does not exist; none is read then.
    """
    files = _files(paths)
    dtype = _check(n_features, zero_based, block_bytes, dtype)
    return _read(files, n_features, zero_based, block_bytes, dtype)


def load_libsvm(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    block_bytes: int = 2**25,
    dtype: npt.DTypeLike = np.float32,
) -> tuple[list[csr_array], Array]:
    r"""Read LIBSVM files into memory as blocks of rows, all of the same width, and the labels of all rows.

    The parameters are those of `read_libsvm`. The files are read once, and the matrix is never copied.

    Examples
    --------
    >>> import belief, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "rows.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    ...     blocks, y = belief.data.load_libsvm([f"{folder}/rows.svm"])
    >>> blocks[0].toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    files = _files(paths)
    dtype = _check(n_features, zero_based, block_bytes, dtype)
    rule = _Rule.of(n_features, zero_based, dtype)
    blocks = [block for file in files for block in _parsed(file, block_bytes, rule)]
    low, high = min(block.low for block in blocks), max(block.high for block in blocks)
    base = _base(zero_based, low)
    if n_features is not None and high - base >= n_features:  # known only now that index 0 has occurred: where is it?
        deque(_read(files, n_features, True, block_bytes, dtype), maxlen=0)
    width = _width(n_features, high, base, files)
    return [block.csr(base, width) for block in blocks], np.concatenate([block.labels for block in blocks])


def shape_of_libsvm(paths: Paths, block_bytes: int = 2**25) -> tuple[int, bool]:
    """Read LIBSVM files to see how many columns they have, and whether the first has index 0."""
    files = _files(paths)
    low, high = _scan(files, block_bytes, _Rule.of(None, "auto", np.dtype(np.float64)))
    base = _base("auto", low)
    return _width(None, high, base, files), base == 0


# --- arguments -------------------------------------------------------------------------------------------------------


def _files(paths: Paths) -> list[Path]:
    files = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not files:
        raise ValueError("paths is empty: name at least one LIBSVM file.")
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file.")
    return files


def _check(n_features: object, zero_based: object, block_bytes: object, dtype: npt.DTypeLike) -> np.dtype[Any]:
    if n_features is not None and not (is_integer(n_features) and n_features > 0):  # type: ignore[operator]
        raise ValueError(f"n_features must be a positive integer or None; got {n_features!r}.")
    if not (isinstance(zero_based, bool) or (isinstance(zero_based, str) and zero_based == "auto")):
        raise ValueError(f"zero_based must be True, False or 'auto'; got {zero_based!r}.")
    if not (is_integer(block_bytes) and block_bytes > 0):  # type: ignore[operator]
        raise ValueError(f"block_bytes must be a positive integer; got {block_bytes!r}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
    return np.dtype(dtype)


# --- blocks ----------------------------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """What a line may hold, beside its syntax."""

    low: int  # the smallest and the largest index, as the file has them
    high: int
    n_features: int | None
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, n_features: int | None, zero_based: bool | str, dtype: np.dtype[Any]) -> _Rule:
        low = int(zero_based is False)
        last = 10**INDEX_DIGITS - 1 if n_features is None else n_features - (zero_based is True)
        return cls(low, last, n_features, dtype)


class _Block(NamedTuple):
    """A block of rows, with indices as the file has them."""

    indptr: Array
    indices: Array
    values: Array
    labels: Array
    low: int  # of the indices; what leaves both alone where there are none
    high: int

    def csr(self, base: int, width: int) -> csr_array:
        if base:
            np.subtract(self.indices, base, out=self.indices)
        X = csr_array((self.values, self.indices, self.indptr), shape=(len(self.labels), width))
        X.has_canonical_format = True  # which spares whoever asks a pass over the matrix
        return X


def _read(
    files: list[Path], n_features: int | None, zero_based: bool | Literal["auto"], size: int, dtype: np.dtype[Any]
) -> Iterator[tuple[csr_array, Array]]:
    low = high = 0
    if n_features is None or zero_based == "auto":
        low, high = _scan(files, size, _Rule.of(n_features, zero_based, dtype))
    base = _base(zero_based, low)
    width = _width(n_features, high, base, files)
    for file in files:
        for block in _parsed(file, size, _Rule.of(width, base == 0, dtype)):
            yield block.csr(base, width), block.labels


def _scan(files: list[Path], size: int, rule: _Rule) -> tuple[int, int]:
    """The least and the largest index; where the width is known, only as far as it takes to see an index 0."""
    low, high = 10**INDEX_DIGITS, -1
    for file in files:
        for block in _parsed(file, size, rule):
            low, high = min(low, block.low), max(high, block.high)
            if low == 0 and rule.n_features is not None:
                return low, high
    return low, high


def _base(zero_based: bool | Literal["auto"], low: int) -> int:
    return int(low > 0) if zero_based == "auto" else 1 - zero_based


def _width(n_features: int | None, high: int, base: int, files: list[Path]) -> int:
    if n_features is not None:
        return n_features
    if high < base:
        raise ValueError(f"{files[0]}: no line has an index:value; say n_features, the number of columns.")
    return high - base + 1


def _chunks(file: Path, size: int) -> Iterator[bytes]:
    """The text in pieces of about the size asked for, each of whole lines, with a line end after the last."""
    opener = _OPENERS.get(file.suffix.lower())
    with (opener or open)(file, "rb") as stream:
        parts: list[bytes] = []
        while text := _some(stream, size, file, compressed=opener is not None):
            cut = text.rfind(b"\n") + 1
            if cut:
                yield b"".join([*parts, memoryview(text)[:cut]])
                parts = []
            parts.append(text[cut:])
        if any(parts):
            yield b"".join([*parts, b"\n"])


def _some(stream: BinaryIO, size: int, file: Path, compressed: bool) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if not compressed:
            raise
        raise ValueError(f"{file}: is not a whole {file.suffix} file ({error}).") from error


def _parsed(file: Path, size: int, rule: _Rule) -> Iterator[_Block]:
    lines, found = 0, False
    for text in _chunks(file, size):
        block = _parse(text, rule)
        if isinstance(block, int):
            line = text[block : text.index(b"\n", block)]
            number = lines + text.count(b"\n", 0, block) + 1
            raise ValueError(f"{file}, line {number}: {_what_is_wrong(line, rule)}")
        if len(block.labels):
            found = True
            yield block
        lines += text.count(b"\n")
    if not found:
        raise ValueError(f"{file}: the file is empty: it has no line with a label.")


def _parse(text: bytes, rule: _Rule) -> _Block | int:
    """The rows of a piece of text, or where in it a line begins that has something wrong."""
    most_rows, most = text.count(b"\n"), text.count(b":")
    labels, starts = np.empty(most_rows), np.empty(most_rows, np.int64)
    indptr = np.empty(most_rows + 1, np.int32 if most <= _INT32_MAX else np.int64)
    indices, values = np.empty(most, np.int64), np.empty(most)
    slow = np.empty((most + most_rows, 3), np.int64)  # rarely used; memory not written to is not taken
    n_rows, n, n_slow, low, high, ascending, bad = parse_lines(
        np.frombuffer(text, np.uint8), labels, starts, indptr, indices, values, slow
    )
    if bad >= 0:
        return int(bad)
    labels, indptr, indices, values = labels[:n_rows], indptr[: n_rows + 1], indices[:n], values[:n]
    for k, a, b in map(np.ndarray.tolist, slow[:n_slow]):
        (values if k >= 0 else labels)[k if k >= 0 else -1 - k] = float(text[a:b])
    with np.errstate(over="ignore"):  # it is found below
        values = values.astype(rule.dtype, copy=False)
    indices = indices.astype(np.int32 if high <= _INT32_MAX else np.int64)

    wrong = np.zeros(0, np.int64)  # the entries
    if not ascending:
        indices, values, wrong = _in_order(indptr, indices, values, high)
    if low < rule.low or high > rule.high:
        wrong = np.flatnonzero((indices < rule.low) | (indices > rule.high))
    elif n_slow or rule.dtype == np.float32:
        wrong = np.r_[wrong, np.flatnonzero(~np.isfinite(values))]
    rows = np.r_[np.searchsorted(indptr, wrong, side="right") - 1, np.flatnonzero(~np.isfinite(labels))]
    return int(starts[rows.min()]) if len(rows) else _Block(indptr, indices, values, labels, int(low), int(high))


def _in_order(indptr: Array, indices: Array, values: Array, high: int) -> tuple[Array, Array, Array]:
    """The entries with each row's indices sorted, and those of them that repeat the one before."""
    X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, high + 1))
    X.sort_indices()
    again = np.flatnonzero(X.indices[1:] == X.indices[:-1]) + 1
    return X.indices, X.data, again[~np.isin(again, indptr)]


# --- what is wrong ---------------------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan(\(.*\))?|inf(inity)?|na|null|none|\?)?", re.IGNORECASE)


def _what_is_wrong(line: bytes, rule: _Rule) -> str:
    """Say what the compiled parser found wrong with a line."""
    label, *entries = line.partition(b"#")[0].split()
    if not _NUMBER.fullmatch(label) or not np.isfinite(float(label)):
        return f"{_quoted(label)} is not a label, which must be a finite number"
    seen = set()
    for entry in entries:
        if entry.startswith(b"qid:"):
            continue
        index, colon, value = entry.partition(b":")
        if not colon or not re.fullmatch(rb"-?[0-9]+", index):
            return f"{_quoted(entry)} is not index:value"
        if wrong := _wrong_index(int(index[:4000]), rule) or _wrong_value(value, rule):
            return f"{_quoted(entry)} {wrong}"
        if index.startswith(b"-") or len(index) > 18:
            return f"{_quoted(entry)} has an index that is not a number of up to 18 digits"
        if int(index) in seen:
            return f"index {int(index)} occurs twice; it may occur once in a line"
        seen.add(int(index))
    return f"{_quoted(line)} is not a label and index:value entries"


def _wrong_index(index: int, rule: _Rule) -> str | None:
    if index < 0:
        return f"has a negative index; indices begin at {rule.low}"
    if index < rule.low:
        return f"has index {index}, but indices begin at {rule.low} (zero_based=False)"
    if index > rule.high and rule.n_features is not None:
        return f"has an index beyond n_features={rule.n_features}: the largest allowed is {rule.high}"
    if index > rule.high:
        return f"has an index that is too large: the largest allowed is {rule.high}"
    return None


def _wrong_value(value: bytes, rule: _Rule) -> str | None:
    if _NOT_FINITE.fullmatch(value):
        return "has no finite value: missing and infinite values are not allowed in a sparse matrix"
    if not _NUMBER.fullmatch(value):
        return "is not index:value, where the value is a number"
    with np.errstate(over="ignore"):
        if not np.isfinite(rule.dtype.type(float(value))):
            more = "; read it with dtype=np.float64" if np.isfinite(float(value)) else ""
            return f"has a value that is too large for {rule.dtype.name}{more}"
    return None


def _quoted(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
