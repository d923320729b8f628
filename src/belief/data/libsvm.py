"""Reading of LIBSVM (svmlight) files in blocks, without holding the text of a whole file in memory.

A line has the form `label index:value index:value ... # comment`. A compiled parser reads each block and detects
invalid lines. For an invalid line, slower Python code then finds the cause for the error message.
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
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from belief._utils.validation import is_integer
from belief.kernels.libsvm import INDEX_DIGITS, parse_lines
from belief.method.arrays import Array

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BLOCK_BYTES = 2**25
_INT32_MAX = 2**31 - 1


def read_libsvm(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    block_bytes: int = BLOCK_BYTES,
    dtype: npt.DTypeLike = np.float32,
) -> Iterator[tuple[csr_array, Array]]:
    """Read LIBSVM files block by block; yield the rows and the labels of each block.

    The parameters and the blocks are as in `load_libsvm`. If `n_features` is None or `zero_based` is "auto", an
    additional first pass over the files determines them.
    """
    files = _check_arguments(paths, n_features, zero_based, block_bytes, dtype)
    return _read(files, n_features, zero_based, block_bytes, np.dtype(dtype))


def load_libsvm(
    paths: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    block_bytes: int = BLOCK_BYTES,
    dtype: npt.DTypeLike = np.float32,
) -> tuple[list[csr_array], Array]:
    r"""Load LIBSVM files into memory, as a list of blocks of rows and an array of labels.

    The files are read once, and no block is copied. All blocks have the same number of columns.

    Parameters
    ----------
    paths : str, path, or sequence of those
        Plain text, or compressed if the name ends in .gz, .bz2 or .xz. Several files are concatenated.
    n_features : int, optional
        The number of columns. None: determined by the largest index.
    zero_based : bool or "auto"
        True if the indices in the files start at 0, False if they start at 1. "auto": True if an index 0 occurs.
    block_bytes : int
        The approximate size of a block as text. Parsing a block needs 7 to 12 times as much memory.
    dtype : float32 or float64
        The type of the values. For float32, text is parsed as float64 and then rounded.

    Returns
    -------
    blocks : list of csr_array
        Rows with sorted indices and no duplicates. Explicit zeros in the file are stored. The indices are int32 if
        n_features < 2**31, else int64.
    y : array of float64
        The labels of the rows of all blocks.

    Raises
    ------
    ValueError
        If a line is invalid, with the file and the line number; or if a file has no rows.
    FileNotFoundError
        If one of the files does not exist. This is checked before any file is read.

    Examples
    --------
    >>> import belief, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "rows.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    ...     blocks, y = belief.data.load_libsvm([f"{folder}/rows.svm"])
    >>> blocks[0].toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    files = _check_arguments(paths, n_features, zero_based, block_bytes, dtype)
    limits = _Limits.of(n_features, zero_based, np.dtype(dtype))
    blocks = [block for file in files for block in _parse_file(file, block_bytes, limits)]
    low, high = min(block.low for block in blocks), max(block.high for block in blocks)
    base, width = _find_columns(n_features, zero_based, low, high, files)
    if n_features is not None and high - base >= n_features:
        # with an index 0, the largest index is beyond n_features: read again for an error that names the line
        deque(_read(files, n_features, True, block_bytes, np.dtype(dtype)), maxlen=0)
    return [block.csr(base, width) for block in blocks], np.concatenate([block.labels for block in blocks])


def find_shape(files: list[Path]) -> tuple[int, bool]:
    """Read LIBSVM files; return their number of columns, and whether their indices start at 0."""
    low, high = _scan(files, BLOCK_BYTES, _Limits.of(None, "auto", np.dtype(np.float64)))
    base, width = _find_columns(None, "auto", low, high, files)
    return width, base == 0


def _check_arguments(
    paths: Paths, n_features: object, zero_based: object, block_bytes: object, dtype: npt.DTypeLike
) -> list[Path]:
    """Return the paths as a list; raise an error if an option is invalid, or if a file does not exist."""
    files = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not files:
        raise ValueError("paths is empty. Pass at least one LIBSVM file.")
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"{file}: there is no such file or folder.")
    if n_features is not None and not (is_integer(n_features) and n_features > 0):  # type: ignore[operator]
        raise ValueError(f"n_features must be a positive integer or None; got {n_features!r}.")
    if not (isinstance(zero_based, bool) or (isinstance(zero_based, str) and zero_based == "auto")):
        raise ValueError(f"zero_based must be True, False or 'auto'; got {zero_based!r}.")
    if not (is_integer(block_bytes) and block_bytes > 0):  # type: ignore[operator]
        raise ValueError(f"block_bytes must be a positive integer; got {block_bytes!r}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
    return files


# --- blocks ---


class _Limits(NamedTuple):
    """The smallest and the largest valid index of a feature in the file, and the type of the values."""

    low: int  # the smallest valid index, as written in the file
    high: int  # the largest valid index, as written in the file
    n_features: int | None
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, n_features: int | None, zero_based: bool | str, dtype: np.dtype[Any]) -> _Limits:
        low = int(zero_based is False)
        last = 10**INDEX_DIGITS - 1 if n_features is None else n_features - (zero_based is True)
        return cls(low, last, n_features, dtype)


class _Block(NamedTuple):
    """A block of rows in CSR format, with indices as written in the file."""

    indptr: Array
    indices: Array
    values: Array
    labels: Array
    low: int  # the smallest index; in a block without indices, larger than any valid index
    high: int  # the largest index

    def csr(self, base: int, width: int) -> csr_array:
        if base:
            np.subtract(self.indices, base, out=self.indices)
        X = csr_array((self.values, self.indices, self.indptr), shape=(len(self.labels), width))
        X.has_canonical_format = True  # known here; SciPy would read the whole matrix to check it
        return X


def _read(
    files: list[Path], n_features: int | None, zero_based: bool | Literal["auto"], size: int, dtype: np.dtype[Any]
) -> Iterator[tuple[csr_array, Array]]:
    low = high = 0
    if n_features is None or zero_based == "auto":
        low, high = _scan(files, size, _Limits.of(n_features, zero_based, dtype))
    base, width = _find_columns(n_features, zero_based, low, high, files)
    for file in files:
        for block in _parse_file(file, size, _Limits.of(width, base == 0, dtype)):
            yield block.csr(base, width), block.labels


def _scan(files: list[Path], size: int, limits: _Limits) -> tuple[int, int]:
    """Return the smallest and the largest index in the files.

    If the number of columns is known, only the smallest index is needed, so stop at the first index 0.
    """
    low, high = 10**INDEX_DIGITS, -1
    for file in files:
        for block in _parse_file(file, size, limits):
            low, high = min(low, block.low), max(high, block.high)
            if low == 0 and limits.n_features is not None:
                return low, high
    return low, high


def _find_columns(
    n_features: int | None, zero_based: bool | Literal["auto"], low: int, high: int, files: list[Path]
) -> tuple[int, int]:
    """Return the index of the first column (0 or 1), and the number of columns.

    The smallest and the largest index that occur are `low` and `high`.
    """
    base = int(low > 0) if zero_based == "auto" else 1 - zero_based
    if n_features is None and high < base:
        raise ValueError(
            f"{files[0]}: no line has an index:value entry. Pass n_features, because the number of columns is unknown."
        )
    return base, high - base + 1 if n_features is None else n_features


def _chunks(file: Path, size: int) -> Iterator[bytes]:
    """Yield the text of a file in pieces of whole lines, of about `size` bytes each."""
    opener = _OPENERS.get(file.suffix.lower())
    with (opener or open)(file, "rb") as stream:
        parts: list[bytes] = []
        while True:
            try:
                text = stream.read(size)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                if opener is None:
                    raise
                raise ValueError(
                    f"{file}: the file is not a complete {file.suffix} file ({error}). Compress or download it again."
                ) from error
            if not text:
                break
            cut = text.rfind(b"\n") + 1
            if cut:
                yield b"".join([*parts, memoryview(text)[:cut]])
                parts = []
            parts.append(text[cut:])
        if any(parts):
            yield b"".join([*parts, b"\n"])


def _parse_file(file: Path, size: int, limits: _Limits) -> Iterator[_Block]:
    """Yield the blocks of a file; raise a ValueError at the first invalid line."""
    lines, found = 0, False
    for text in _chunks(file, size):
        block = _parse(text, limits)
        if isinstance(block, int):
            line = text[block : text.index(b"\n", block)]
            number = lines + text.count(b"\n", 0, block) + 1
            raise ValueError(f"{file}, line {number}: {_explain_invalid_line(line, limits)}.")
        if len(block.labels):
            found = True
            yield block
        lines += text.count(b"\n")
    if not found:
        raise ValueError(f"{file}: the file is empty. It has no line with a label.")


def _parse(text: bytes, limits: _Limits) -> _Block | int:
    """Return the rows in a piece of text; if a line is invalid, return the position of the first such line."""
    max_rows, max_entries = text.count(b"\n"), text.count(b":")
    labels, starts = np.empty(max_rows), np.empty(max_rows, np.int64)
    indptr = np.empty(max_rows + 1, np.int32 if max_entries <= _INT32_MAX else np.int64)
    indices, values = np.empty(max_entries, np.int64), np.empty(max_entries)
    # Positions of the rare numbers that the compiled parser cannot parse. Unused pages of this array take no memory.
    slow = np.empty((max_entries + max_rows, 3), np.int64)
    n_rows, n, n_slow, low, high, ascending, bad = parse_lines(
        np.frombuffer(text, np.uint8), labels, starts, indptr, indices, values, slow
    )
    if bad >= 0:
        return int(bad)
    labels, indptr, indices, values = labels[:n_rows], indptr[: n_rows + 1], indices[:n], values[:n]
    for k, a, b in map(np.ndarray.tolist, slow[:n_slow]):
        (values if k >= 0 else labels)[k if k >= 0 else -1 - k] = float(text[a:b])
    with np.errstate(over="ignore"):  # infinite values are detected below
        values = values.astype(limits.dtype, copy=False)
    indices = indices.astype(np.int32 if high <= _INT32_MAX else np.int64)

    wrong = np.zeros(0, np.int64)  # positions of invalid entries
    if not ascending:
        X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, high + 1))
        X.sort_indices()
        indices, values = X.indices, X.data
        duplicates = np.flatnonzero(indices[1:] == indices[:-1]) + 1
        wrong = duplicates[~np.isin(duplicates, indptr)]  # a row may begin with the last index of the row before
    if low < limits.low or high > limits.high:
        wrong = np.flatnonzero((indices < limits.low) | (indices > limits.high))
    elif n_slow or limits.dtype == np.float32:
        wrong = np.r_[wrong, np.flatnonzero(~np.isfinite(values))]
    rows = np.r_[np.searchsorted(indptr, wrong, side="right") - 1, np.flatnonzero(~np.isfinite(labels))]
    return int(starts[rows.min()]) if len(rows) else _Block(indptr, indices, values, labels, int(low), int(high))


# --- explanations of invalid lines ---

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan(\(.*\))?|inf(inity)?|na|null|none|\?)?", re.IGNORECASE)


def _explain_invalid_line(line: bytes, limits: _Limits) -> str:
    """Describe, for the error message, what is wrong with a line that the compiled parser has rejected."""
    label, *entries = line.partition(b"#")[0].split()
    if not _NUMBER.fullmatch(label) or not np.isfinite(float(label)):
        return f"{_quoted(label)} is not a valid label. Labels must be finite numbers"
    seen = set()
    for entry in entries:
        if entry.startswith(b"qid:"):
            continue
        index, colon, value = entry.partition(b":")
        if not colon or not re.fullmatch(rb"-?[0-9]+", index):
            return f"{_quoted(entry)} is not of the form index:value"
        if wrong := _wrong_entry(int(index[:4000]), value, limits):
            return f"{_quoted(entry)} {wrong}"
        if index.startswith(b"-") or len(index) > 18:
            return f"{_quoted(entry)} has an invalid index. Indices are numbers of up to 18 digits"
        if int(index) in seen:
            return f"index {int(index)} occurs twice, but must occur only once in a line"
        seen.add(int(index))
    return f"{_quoted(line)} is not of the form label index:value index:value ..."


def _wrong_entry(index: int, value: bytes, limits: _Limits) -> str | None:
    if index < 0:
        return f"has a negative index, but indices start at {limits.low}"
    if index < limits.low:
        return f"has index {index}, but indices start at {limits.low}. Pass zero_based=True if they start at 0"
    if index > limits.high and limits.n_features is not None:
        return f"has an index beyond n_features={limits.n_features}. The largest allowed index is {limits.high}"
    if index > limits.high:
        return f"has an index that is too large. The largest allowed index is {limits.high}"
    if _NOT_FINITE.fullmatch(value):
        return "has a missing or infinite value, but sparse data must be finite. Remove the entry or the line"
    if not _NUMBER.fullmatch(value):
        return "is not of the form index:value with a number as the value"
    with np.errstate(over="ignore"):
        if not np.isfinite(limits.dtype.type(float(value))):
            fix = ". Pass dtype=np.float64" if np.isfinite(float(value)) else ""
            return f"has a value that is too large for {limits.dtype.name}{fix}"
    return None


def _quoted(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
