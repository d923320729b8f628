"""What a user's table becomes: a Source, the names of its features, and which of them are discrete.

Arrays are used where they lie. Of a DataFrame the numeric columns are used where they lie too, as far as their library
allows; strings, categories and booleans become codes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from belief.data.discrete import discrete_mask
from belief.data.objects import is_missing
from belief.data.source import ArraySource, BlockSource, ColumnSource, Source, SparseSource, is_sparse, longest_integer
from belief.data.suspects import warn_of_text
from belief.method.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Table:
    """Rows, names (None where the table had none), and which features are discrete."""

    source: Source | SparseSource
    names: list[str] | None
    discrete: Array
    books: Sequence[Mapping[Any, float]] = ()  # the code of each category of each feature, where there are any

    def levels(self, j: int) -> dict[float, str]:
        """What the codes of a feature stand for."""
        return {code: str(c) for c, code in (self.books[j].items() if len(self.books) else ())}


def open_table(X: Any, discrete_features: Any = "auto") -> Table:
    """Open an array, a memory map, a DataFrame, or a sequence of those as blocks of rows."""
    blocks = blocks_of(X)
    frames = [frame_of(block) for block in blocks]
    if any(is_sparse(block) for block in blocks):
        return _open_sparse(blocks, discrete_features)
    if all(frame is not None for frame in frames):
        opened = _open_frames(frames)  # type: ignore[arg-type]
    else:
        opened = _open_arrays([array_of(block) for block in blocks])
    sources, names, found, columns = opened
    declared = discrete_mask(discrete_features, names, len(found))
    discrete = found | declared
    for column, is_name in zip(columns, declared, strict=False):
        if column.discrete and not is_name:
            warn_of_text(column.name.capitalize(), column.book, sum(int((x == x).sum()) for x in column.blocks))
    for source in sources:
        _refuse_long_codes(source, discrete, names)
    return Table(sources[0] if len(sources) == 1 else BlockSource(sources), names, discrete, [c.book for c in columns])


def blocks_of(X: Any) -> Sequence[Any]:
    """The blocks of rows X consists of, without empty ones; X itself where it is one."""
    if not (isinstance(X, Sequence) and len(X) and all(_is_block(x) for x in X)):
        return [X]
    return [block for block in X if block.shape[0]] or X[:1]


def _refuse_long_codes(source: Source, discrete: Array, names: Sequence[str] | None) -> None:
    """Integers above 2^53 are not all different as floats, and a code must be."""
    for j in np.flatnonzero(discrete).tolist():
        longest = source.longest_integer(j)
        if longest > 2**53:
            name = f"column {names[j]!r}" if names is not None else f"column {j}"
            raise ValueError(f"{name} is discrete and holds integers as large as {longest}: make it strings.")


def _is_block(x: Any) -> bool:
    return getattr(x, "ndim", 0) == 2 or frame_of(x) is not None


def frame_of(X: Any) -> nw.DataFrame[Any] | None:
    """A DataFrame of any library, None where X is none."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = getattr(X, "column_names", None) or X.columns
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"X has more than one column named {twice!r}; rename them, or drop one.") from None
    return frame if isinstance(frame, nw.DataFrame) else None


def refuse_shape(shape: tuple[int, ...]) -> None:
    """The words are those scikit-learn's users know."""
    if len(shape) != 2:
        raise ValueError(
            f"X must be a table: Expected 2D array, got {len(shape)}D array instead. Reshape your data: a single"
            " feature is X.reshape(-1, 1), a single row X.reshape(1, -1)."
        )
    if shape[0] == 0:
        raise ValueError(
            f"X has no rows: Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required."
        )
    if shape[1] == 0:
        raise ValueError(
            f"X has no columns: Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )


# --- sparse matrices ---


def _open_sparse(blocks: Sequence[Any], discrete_features: Any) -> Table:
    for i, X in enumerate(blocks):
        if not is_sparse(X):
            raise ValueError(
                f"The blocks of X differ: some are sparse matrices, but block {i} is a {type(X).__name__}."
            )
        refuse_shape((1, *X.shape[1:]))
        refuse_width(X.shape[1], blocks[0].shape[1], i)
    F = blocks[0].shape[1]
    refuse_too_wide(F)
    refuse_shape((sum(X.shape[0] for X in blocks), F))
    discrete = np.full(F, all(X.dtype.kind == "b" for X in blocks))
    discrete |= discrete_mask(discrete_features, None, F)
    if discrete.any() and max(longest_integer(X.tocsr().data) for X in blocks) > 2**53:
        raise ValueError("X has discrete columns and integers above 2^53, which floats cannot tell apart.")
    return Table(SparseSource([_canonical(X) for X in blocks]), None, discrete)


def refuse_too_wide(F: int) -> None:
    """Refuse more features than the sums for them could be held of: a slip in an index can make billions."""
    need = 8 * F * 16  # for two classes
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > have:
        raise ValueError(
            f"X has {F:,} features, for which the sums alone would take {need / 1e9:.0f} GB, more than the"
            f" {have / 1e9:.0f} GB of this machine: is there an index by mistake?"
        )


def _canonical(X: Any) -> csr_array:
    """CSR with sorted indices, no duplicates and floats; as it is where it is that already, and never changed."""
    from scipy.sparse import csr_array

    X = csr_array(X)  # of a CSR matrix: the same arrays
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has the type {X.dtype}.")
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}.") from None
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return X


# --- arrays ---


def array_of(X: Any) -> Array:
    """An array, or what can become one, as numbers or as objects."""
    if hasattr(X, "collect") and not hasattr(X, "__array__"):
        raise ValueError("X is a lazy table: call its .collect() first.")
    if np.ma.isMaskedArray(X):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        given, X = X, np.asarray(X) if not isinstance(X, np.memmap) else X
    except ValueError:
        raise ValueError("X is not a table: its rows have different lengths.") from None
    if X.dtype.kind in "US" and not hasattr(given, "dtype"):
        X = np.asarray(given, object)  # numbers in a list beside strings are still numbers
    refuse_shape(X.shape)
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has the type {X.dtype}.")
    if X.dtype.kind not in "biufOUS":
        raise ValueError(f"X has the type {X.dtype}, which is neither numbers nor strings; convert it first.")
    if X.dtype == np.longdouble:
        X = X.astype(np.float64)
    return X


def refuse_width(width: int, first: int, i: int) -> None:
    """Refuse a block with another number of columns than the first."""
    if width != first:
        raise ValueError(f"The blocks of X differ: block 0 has {first} columns, block {i} has {width}.")


def _open_arrays(arrays: list[Array]) -> Opened:
    width = arrays[0].shape[1]
    for i, X in enumerate(arrays):
        refuse_width(X.shape[1], width, i)
    if any(X.dtype.kind in "OUS" for X in arrays):
        coded = [_Column(f"column {j}", [_from_objects(X[:, j], f"column {j}") for X in arrays]) for j in range(width)]
        return _columns(coded, len(arrays)), None, np.array([c.discrete for c in coded]), coded
    discrete = np.full(width, all(X.dtype.kind == "b" for X in arrays))
    return [ArraySource(X) for X in arrays], None, discrete, []


# --- DataFrames ---


def _open_frames(frames: list[nw.DataFrame[Any]]) -> Opened:
    names = [str(name) for name in frames[0].columns]
    refuse_shape((sum(len(f) for f in frames), len(names)))
    for i, frame in enumerate(frames):
        mine = [str(name) for name in frame.columns]
        if mine != names:
            odd = next((n for n in [*mine, *names] if (n in mine) != (n in names)), "their order")
            raise ValueError(f"The blocks of X differ: block {i} and block 0 do not agree on the columns ({odd!r}).")
    whole = [_one_array(frame) for frame in frames]
    if all(X is not None for X in whole):
        return [ArraySource(X) for X in whole], names, np.zeros(len(names), bool), []  # type: ignore[arg-type]
    columns = [
        _Column(f"column {name!r}", [_from_series(frame[:, j]) for frame in frames]) for j, name in enumerate(names)
    ]
    return _columns(columns, len(frames)), names, np.array([c.discrete for c in columns]), columns


def _one_array(frame: nw.DataFrame[Any]) -> Array | None:
    """The array behind a DataFrame, where it is one; None where its columns are held apart."""
    dtypes = set(frame.schema.values())
    if len(dtypes) > 1 or not dtypes <= {nw.Float32(), nw.Float64()}:
        return None
    few = frame[:2]  # to see whether it would be a copy, without making one
    if not np.shares_memory(few.to_numpy()[:, 0], few[:, 0].to_numpy()):
        return None
    return frame.to_numpy()


Coded = tuple[Array, list[Any] | None]  # codes (-1: missing) with their categories, or numbers (NaN: missing) and None


class _Column:
    """One feature over all blocks, with one code for each category in all of them."""

    def __init__(self, name: str, blocks: Sequence[Coded]) -> None:
        self.name = name
        self.discrete = any(categories is not None for _, categories in blocks)
        if self.discrete:
            blocks = [_nothing(x, known) for x, known in blocks]
            if any(categories is None for _, categories in blocks):
                raise ValueError(f"{name} holds numbers in one block of X and categories in another; make them alike.")
        every = sorted({c for _, known in blocks for c in known or ()}, key=str)
        self.book = {c: float(i) for i, c in enumerate(every)}
        self.blocks = [_recode(codes, categories, self.book) for codes, categories in blocks]


Opened = tuple[list[Source], list[str] | None, Array, list[_Column]]  # which are discrete, and columns held apart


def _nothing(values: Array, categories: list[Any] | None) -> Coded:
    """A block of a discrete column in which everything is missing came as numbers, and is none."""
    if categories is None and np.isnan(values).all():
        return np.full(len(values), -1), []
    return values, categories


def _recode(values: Array, categories: list[Any] | None, book: dict[Any, float]) -> Array:
    if categories is None:
        return values
    few = np.array([book[c] for c in categories] + [np.nan], np.float32 if len(book) < 2**24 else np.float64)
    return few[values]  # -1 is the last: missing


def _columns(columns: Sequence[_Column], n_blocks: int) -> list[Source]:
    return [ColumnSource([column.blocks[i] for column in columns]) for i in range(n_blocks)]


def _from_series(series: nw.Series[Any]) -> Coded:
    dtype, name = series.dtype, f"column {series.name!r}"
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        return _factorise(series)
    if isinstance(dtype, nw.Boolean):
        return series.cast(nw.Int64).fill_null(-1).to_numpy(), [False, True]
    if dtype.is_numeric():
        if not series.null_count() and not dtype.is_decimal():
            return series.to_numpy(), None
        return series.cast(nw.Float64).to_numpy(), None
    if isinstance(dtype, nw.Unknown) and series.null_count() == len(series):
        return np.full(len(series), np.nan), None
    if isinstance(dtype, nw.Object):
        return _from_objects(series.to_numpy(), name)
    raise ValueError(f"{name} has the type {dtype}, which is neither numbers nor strings; convert it, or drop it.")


def _factorise(series: nw.Series[Any]) -> Coded:
    known = series.drop_nulls().unique().to_list()
    if not known:
        return np.full(len(series), -1), []
    native = series.to_native()
    if hasattr(native, "factorize"):  # pandas
        codes, categories = native.factorize()
        return codes, list(categories)
    codes = series.cast(nw.String).replace_strict(
        [str(c) for c in known], list(range(len(known))), return_dtype=nw.Int64
    )
    return codes.fill_null(-1).to_numpy(), known


def _from_objects(values: Array, name: str) -> Coded:
    """A column of Python objects: all numbers, or all strings; None and NaN are missing."""
    missing = is_missing(values)
    there = values[~missing]
    if len(there) and all(isinstance(v, bool | np.bool_) for v in there):
        codes = np.full(len(values), -1)
        codes[~missing] = there.astype(int)
        return codes, [False, True]
    if all(isinstance(v, str | bytes) for v in there):
        codes = np.full(len(values), -1)
        categories, codes[~missing] = np.unique(there.astype(str), return_inverse=True)
        return codes, categories.tolist()
    try:
        out = np.full(len(values), np.nan)
        if any(isinstance(v, str | bytes) for v in there):
            raise TypeError
        out[~missing] = there.astype(np.float64)
    except (TypeError, ValueError):
        kinds = sorted({type(v).__name__ for v in there})
        raise ValueError(
            f"{name} of X is neither all strings nor all numbers (argument must be a string or a number): it holds"
            f" {', '.join(kinds)}; convert it, or drop it."
        ) from None
    return out, None
