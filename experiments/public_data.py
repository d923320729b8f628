"""Load public data sets from local copies of the published files. Nothing is downloaded."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from problems.small import list_redundant, make_single_groups

from belief._utils.optional import import_optional
from belief._utils.validation import did_you_mean, is_count
from belief.data.arrow import pyarrow
from belief.data.libsvm import load_libsvm, read_libsvm
from belief.method.arrays import Array

_PACKED = ("", ".gz", ".bz2", ".xz")
_KDDCUP_SYMBOLIC = (1, 2, 3, 6, 11, 20, 21)  # according to kddcup.names
_ECBDL14_NOMINAL = (*range(3, 21), *range(39, 93), *range(131, 151))  # letters and levels of the 23 positions
_ECBDL14_COLUMNS = 632
_ALL = slice(None)

Groups = tuple[tuple[int, ...], ...]
Read = tuple[Any, Array, Array]  # X, y and the mask of nominal features


@dataclass(frozen=True)
class Dataset:
    """A published data set.

    Attributes
    ----------
    X : array, list of arrays, list of csr_array, or pyarrow.Table
        The features: a pyarrow table for mixed columns (`X.to_pandas()` converts it), blocks of rows for large files.
        `belief.select` accepts all of them. Everything is in memory; limit large data sets such as ECBDL14 (65 million
        rows, 631 features) with `max_rows`.
    y : array
        The class of each row, as in the file.
    discrete : array of bool
        True for nominal features.
    relevant : tuple of tuples of int, or None
        Groups of relevant features; one feature of each group is sufficient. None if they are unknown.
    redundant : array, or None
        The features that are redundant with a relevant one. None if they are unknown.
    name : str
        The name passed to `load`.
    """

    X: Any
    y: Array
    discrete: Array
    relevant: Groups | None
    redundant: Array | None
    name: str


def load(name: str, home: str | os.PathLike[str] | None = None, *, max_rows: int | None = None) -> Dataset:
    """Load a data set by name from the files in a folder.

    Parameters
    ----------
    name : str
        One of `names()`. `epsilon`, `epsilon_test`, `url`, `kddb` and `kddb_test` are LIBSVM files, plain or
        compressed. `ECBDL14` is the file ECBDL14.arff or ECBDL14.csv, with the class in the last column, and
        `ECBDL14_test` is ECBDL14_test.arff or ECBDL14_test.csv. The other data sets are small, or parts of large ones.
    home : path, optional
        The folder with the files, or with the folders kais, large_slices, text, sparse and microarray. None: the
        folder that the environment variable BELIEF_DATA names.
    max_rows : int, optional
        The maximum number of rows to read.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If the file is not in the folder; the message names its source.
    """
    if name not in _ENTRIES:
        raise ValueError(
            f"There is no data set {name!r}{did_you_mean(name, names())}. The data sets are {', '.join(names())}."
        )
    if not (max_rows is None or is_count(max_rows)):
        raise ValueError(f"max_rows must be None or an integer of at least 1; got {max_rows!r}.")
    entry = _ENTRIES[name]
    X, y, discrete = entry.read(_find(entry, home), max_rows)
    redundant = None if entry.relevant is None else list_redundant(entry.relevant)
    return Dataset(X, y, discrete, entry.relevant, redundant, name)


def names() -> list[str]:
    """Return the names of the data sets that `load` can read."""
    return list(_ENTRIES)


class _Entry(NamedTuple):
    """The files of a data set, its source and reader, and its relevant features if they are known."""

    files: tuple[str, ...]  # alternatives: the first one that exists is read
    collection: str
    read: Callable[[Path, int | None], Read]
    relevant: Groups | None = None


def _find(entry: _Entry, home: str | os.PathLike[str] | None) -> Path:
    """Return the path of the file, plain or compressed, in its subfolder of the home folder or directly in it."""
    given = home or os.environ.get("BELIEF_DATA")
    if not given:
        raise ValueError("The folder of the data sets is unknown. Pass home, or set BELIEF_DATA.")
    for file in entry.files:
        for place in (Path(given, file), Path(given, Path(file).name)):
            for packed in _PACKED:
                if (found := place.with_name(place.name + packed)).is_file():
                    return found
    wanted = " or ".join(Path(file).name for file in entry.files)
    raise FileNotFoundError(
        f"There is no file {wanted} (plain, .gz, .bz2 or .xz) in {given}: it is {entry.collection}."
    )


# --- readers ---------------------------------------------------------------------------------------------------------


def _numbers(path: Path, max_rows: int | None, *, nominal: Any, first: bool = False) -> Read:
    """Read a CSV file of numbers, which has no header and has the class in the last column.

    With `first`, the file has a header, and the class is in the first column.
    """
    table = np.loadtxt(path, delimiter=",", skiprows=int(first), max_rows=max_rows, ndmin=2)
    X, y = (table[:, 1:], table[:, 0]) if first else (table[:, :-1], table[:, -1])
    return np.ascontiguousarray(X), y.astype(int), _mask(X.shape[1], nominal)


def _matlab(path: Path, max_rows: int | None) -> Read:
    """Read X and Y from a MATLAB file, and convert the counts in X to float32."""
    from scipy.io import loadmat

    file = loadmat(path, variable_names=["X", "Y"])
    X = file["X"][:max_rows].astype(np.float32)
    return X, file["Y"].ravel()[:max_rows].astype(int), _mask(X.shape[1])


def _sparse(path: Path, max_rows: int | None, *, n_features: int) -> Read:
    """Read a LIBSVM file as blocks of sparse rows."""
    if max_rows is None:
        X, y = load_libsvm(path, n_features=n_features, zero_based=False)
    else:
        X, y = _joined(_first(read_libsvm(path, n_features=n_features, zero_based=False), max_rows))
    return X, y.astype(int), _mask(n_features)


def _dense(path: Path, max_rows: int | None, *, n_features: int) -> Read:
    """Read a LIBSVM file as blocks of dense rows. This is used for epsilon, which has no value that is 0."""
    blocks = _first(read_libsvm(path, n_features=n_features, zero_based=False), max_rows)
    X, y = _joined((X.toarray(), y) for X, y in blocks)
    return X, y.astype(int), _mask(n_features)


def _joined(blocks: Iterator[tuple[Any, Array]]) -> tuple[list[Any], Array]:
    X, y = zip(*blocks, strict=True)
    return list(X), np.concatenate(y)


def _first(blocks: Iterator[tuple[Any, Array]], max_rows: int | None) -> Iterator[tuple[Any, Array]]:
    """Yield blocks until they have `max_rows` rows; later blocks are not read."""
    left = np.inf if max_rows is None else max_rows
    for X, y in blocks:
        yield (X, y) if len(y) <= left else (X[: int(left)], y[: int(left)])
        left -= len(y)
        if left <= 0:
            return


def _kddcup(path: Path, max_rows: int | None) -> Read:
    return _mixed(path, [f"c{j}" for j in range(42)], _KDDCUP_SYMBOLIC, max_rows)


def _ecbdl14(path: Path, max_rows: int | None) -> Read:
    """Read ECBDL14. The ARFF file declares the nominal columns; the CSV file has the same columns but no header."""
    if ".arff" not in path.suffixes:
        return _mixed(path, [f"c{j}" for j in range(_ECBDL14_COLUMNS)], _ECBDL14_NOMINAL, max_rows)
    columns, nominal, skip = _arff_header(path)
    return _mixed(path, columns, nominal, max_rows, skip=skip)


def _mixed(path: Path, columns: list[str], nominal: tuple[int, ...], max_rows: int | None, skip: int = 0) -> Read:
    """Read numeric and nominal columns, the class last, into an Arrow table; stop parsing after `max_rows` rows."""
    pa, csv = pyarrow(), import_optional("pyarrow.csv", "files")
    types = {name: pa.float64() for name in columns[:-1]} | {columns[j]: pa.string() for j in nominal}
    try:
        reader = csv.open_csv(
            path,
            read_options=csv.ReadOptions(column_names=columns, skip_rows=skip),
            parse_options=csv.ParseOptions(invalid_row_handler=_comment if skip else None),  # CSV has no comments
            convert_options=csv.ConvertOptions(column_types=types, null_values=["", "?"], strings_can_be_null=True),
        )
        table = pa.Table.from_batches(_enough(reader, max_rows), reader.schema)[:max_rows]
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: {len(columns)} columns were expected; {str(error).splitlines()[0]}") from None
    y = table.column(columns[-1]).to_numpy()
    return table.drop_columns([columns[-1]]), y, _mask(len(columns) - 1, nominal)


def _comment(row: Any) -> str:
    """Return what to do with a line that has a wrong number of columns: skip ARFF comments, else raise an error."""
    return "skip" if row.text.lstrip().startswith("%") else "error"


def _enough(batches: Any, max_rows: int | None) -> Iterator[Any]:
    """Yield batches until they have at least `max_rows` rows."""
    seen = 0
    for batch in batches:
        yield batch
        seen += batch.num_rows
        if max_rows is not None and seen >= max_rows:
            return


def _arff_header(path: Path) -> tuple[list[str], tuple[int, ...], int]:
    """Return the column names, the indices of the nominal features, and the number of lines before the data."""
    columns: list[str] = []
    nominal = []
    with io.TextIOWrapper(pyarrow().input_stream(str(path), compression="detect"), "utf-8") as lines:
        for number, line in enumerate(islice(lines, 100_000), 1):
            word, *rest = line.split(None, 1) or [""]
            if word.lower() == "@attribute" and rest:
                if rest[0].rstrip().endswith("}"):
                    nominal.append(len(columns))
                columns.append(rest[0].split()[0].strip("'\""))
            elif word.lower() == "@data":
                return columns, tuple(j for j in nominal if j < len(columns) - 1), number
    raise ValueError(f"{path} is not an ARFF file: it has no line @data.")


def _mask(n: int, nominal: Any = ()) -> Array:
    """Return a mask of n features that is True for the nominal ones, given as indices or a slice."""
    mask = np.zeros(n, bool)
    mask[nominal if isinstance(nominal, slice) else list(nominal)] = True
    return mask


# --- data sets ---------------------------------------------------------------------------------------------------


def _kais(file: str, relevant: Groups | None, nominal: Any = _ALL) -> _Entry:
    collection = "one of the synthetic sets of Bolón-Canedo et al. (Knowledge and Information Systems, 2013)"
    return _Entry((f"kais/{file}.csv",), collection, partial(_numbers, nominal=nominal), relevant)


def _microarray(name: str) -> _Entry:
    collection = "one of the discretised microarray sets that come with mRMR (Peng)"
    return _Entry((f"microarray/test_{name}_s3.csv",), collection, partial(_numbers, nominal=_ALL, first=True))


def _libsvm(file: str, read: Callable[..., Read], n_features: int) -> _Entry:
    collection = "in the LIBSVM data collection, binary classification"
    return _Entry((file,), collection, partial(read, n_features=n_features))


def _groups(n: int) -> Groups:
    """Return n groups of ten consecutive features."""
    return tuple(tuple(range(a, a + 10)) for a in range(0, 10 * n, 10))


_ECBDL14 = "part of the ECBDL'14 big data competition's set"
_UCI = "part of the UCI machine learning repository's set"
_ENTRIES = {
    "Corral": _kais("Corral", make_single_groups(4)),
    "Corral100": _kais("Corral100", make_single_groups(4)),
    "XOR100": _kais("XOR100", ((4,), (6,))),  # in the published file, the class is x4 xor x6
    "Parity3+3": _kais("Parity3+3", ((0, 3), (1, 4), (2, 5))),
    "Monk3": _kais("Monk3", ((1,), (3,), (4,))),
    "Led25n0": _kais("Led25n0", make_single_groups(7)),
    "Led25n10": _kais("Led25n10", make_single_groups(7)),
    "Led100n0": _kais("Led100n0", make_single_groups(7)),
    "Led100n10": _kais("Led100n10", make_single_groups(7)),
    "SD1": _kais("SD1", _groups(2), nominal=()),
    "SD2": _kais("SD2", _groups(4), nominal=()),
    "SD3": _kais("SD3", _groups(6), nominal=()),
    "Madelon": _kais("Madelon-UCI", None, nominal=()),  # the positions of the 20 relevant features are not published
    "covtype_10K": _Entry(("large_slices/covtype_10K.csv",), _UCI, partial(_numbers, nominal=slice(10, None))),
    "kddcup_10K": _Entry(("large_slices/kddcup_10K.csv",), _UCI, _kddcup),
    "ECBDL14_1K": _Entry(("large_slices/subSetROS_1K.csv",), _ECBDL14, _ecbdl14),
    "ECBDL14_test_1K": _Entry(  # numbers are in up to 15 bins, and letters are codes
        ("large_slices/ECBDL14-test-1K.data",), _ECBDL14, partial(_numbers, nominal=_ECBDL14_NOMINAL)
    ),
    "RELATHE": _Entry(("text/RELATHE.mat",), "in the collection of scikit-feature, text", _matlab),
    "a9a": _libsvm("sparse/a9a", _sparse, 123),
    "lung": _microarray("lung"),
    "colon": _microarray("colon"),
    "leukemia": _microarray("leukemia"),
    "lymphoma": _microarray("lymphoma"),
    "epsilon": _libsvm("epsilon_normalized", _dense, 2_000),
    "epsilon_test": _libsvm("epsilon_normalized.t", _dense, 2_000),
    "url": _libsvm("url_combined", _sparse, 3_231_961),
    "kddb": _libsvm("kddb", _sparse, 29_890_095),
    "kddb_test": _libsvm("kddb.t", _sparse, 29_890_095),
    "ECBDL14": _Entry(("ECBDL14.arff", "ECBDL14.csv"), _ECBDL14, _ecbdl14),
    "ECBDL14_test": _Entry(("ECBDL14_test.arff", "ECBDL14_test.csv"), _ECBDL14, _ecbdl14),
}
