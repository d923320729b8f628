"""The data of experiments/large.py and experiments/sampling.py: slices of real sets, look-alikes, and real files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import problems
import public_data
from common import data_home
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.model_selection import StratifiedKFold

SEED, FOLDS = 0, 3
TEST = 0.2  # of look-alikes and of real files without a test file
OWN, ROWS, DISTINCT = "its test file", "a fifth of the rows", "a fifth of the distinct rows"  # what judges a real set
FAR = 10**9  # test rows of ECBDL14-like are made from here on, so that none is a row to learn from

Array = NDArray[Any]
Rows = Any  # a dense array or a CSR matrix


@dataclass(frozen=True)
class Data:
    """Rows to learn from and rows to judge by; nominal values are codes."""

    X: Rows
    y: Array
    Z: Rows
    truth: Array
    discrete: Array


@dataclass(frozen=True)
class Task:
    """Where the rows come from, and what the paper calls the set they are like."""

    make: Callable[[int], Data]  # given the fold
    paper: str = ""
    folds: int = 1

    def describe(self) -> str:
        """All that the data depend on."""
        assert isinstance(self.make, partial)
        made = [*map(str, self.make.args), *(f"{name}={x}" for name, x in self.make.keywords.items())]
        return f"{self.make.func.__name__}({', '.join(made)}), folds {self.folds}"


# --- real data ---


def sliced(name: str, fold: int) -> Data:
    """A slice of a real set that fits into a file of the public collection, in stratified folds."""
    given = public_data.load(name, data_home())
    (X,), y = numbers(given), np.unique(given.y, return_inverse=True)[1]
    learn, judge = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(X, y))[fold]
    return Data(X[learn], y[learn], X[judge], y[judge], given.discrete)


def numbers(*given: public_data.Dataset) -> list[Rows]:
    """All features of some data sets as numbers, each set in one piece; strings as codes, the same in all sets."""
    if all(isinstance(x.X, list | np.ndarray) for x in given):
        return [one_piece(x.X) for x in given]
    columns = []
    for j, nominal in enumerate(given[0].discrete):
        column = np.concatenate([x.X.column(j).to_numpy() for x in given])
        columns.append(np.unique(column, return_inverse=True)[1] if nominal else column)
    return np.split(np.column_stack(columns), np.cumsum([len(x.y) for x in given])[:-1])


def one_piece(X: Any) -> Rows:
    """An array as it is, or all blocks."""
    if isinstance(X, np.ndarray):
        return X
    return vstack(X, format="csr") if issparse(X[0]) else np.concatenate(X)


def real(name: str, folder: str, max_rows: int | None, by: str, fold: int) -> Data:
    """The published files of a large set, judged by OWN, ROWS or DISTINCT."""
    given = public_data.load(name, folder, max_rows=max_rows)
    if by == OWN:
        test = public_data.load(f"{name}_test", folder, max_rows=max_rows)
        (X, Z), y, truth = numbers(given, test), given.y, test.y
    else:
        (X,), y = numbers(given), given.y
        judge = some_distinct(X) if by == DISTINCT else np.random.default_rng(SEED).random(len(y)) < TEST
        X, y, Z, truth = X[~judge], y[~judge], X[judge], y[judge]
    classes = np.union1d(y, truth)  # of few rows one side may have one class only
    return Data(X, np.searchsorted(classes, y), Z, np.searchsorted(classes, truth), given.discrete)


def some_distinct(X: Array) -> Array:
    """Which rows to hold out: about a fifth of the different ones, each with all its copies."""
    hashes = [blake2b(row.tobytes(), digest_size=8).digest() for row in X]
    return np.array([int.from_bytes(x) < TEST * 2**64 for x in hashes])


# --- look-alikes ---


def last_rows(X: Rows, y: Array, discrete: Array) -> Data:
    """The last rows to judge by, the others to learn from; they are in no order."""
    cut = len(y) - int(TEST * len(y))
    return Data(X[:cut], y[:cut].astype(int), X[cut:], y[cut:].astype(int), discrete)


def epsilon_like(n_rows: int, fold: int, **options: Any) -> Data:
    """Dense, a weak signal in many features."""
    p = problems.epsilon_like(n_rows, **options, seed=SEED)
    return last_rows(np.concatenate(p.X), p.y, p.discrete)


def ecbdl14_like(n_rows: int, repeats: int, fold: int, **options: Any) -> Data:
    """Oversampled to half of the rows to learn from; two in a hundred of those to judge by, as it was published."""
    n_test = int(TEST * n_rows)
    learn = problems.ecbdl14_like(n_rows - n_test, repeats=repeats, **options, seed=SEED)
    judge = problems.ecbdl14_like(FAR + n_test, positive=0.02, **options, seed=SEED)
    Z, truth = judge.make(FAR, FAR + n_test)
    return Data(np.concatenate(learn.X), learn.y.astype(int), Z, truth.astype(int), learn.discrete)


def sparse_like(maker: str, n_rows: int, n_features: int, fold: int) -> Data:
    """Sparse, like url or kddb."""
    p = getattr(problems, maker)(n_rows, n_features, seed=SEED)
    X = vstack(p.X, format="csr")
    return last_rows(X, p.y, np.zeros(n_features, bool))


def look_alikes(epsilon: int, ecbdl14: int, url: tuple[int, int], kddb: tuple[int, int]) -> dict[str, Task]:
    """The four of them, with so many rows (and features)."""
    return {
        "epsilon-like": Task(partial(epsilon_like, epsilon), "epsilon"),
        "ECBDL14-like": Task(partial(ecbdl14_like, ecbdl14, 49), "ECBDL14"),
        "url-like": Task(partial(sparse_like, "url_like", *url), "url"),
        "kddb-like": Task(partial(sparse_like, "kddb_like", *kddb), "kddb"),
    }


def slices() -> dict[str, Task]:
    """What the public collection has of the paper's and of two other large sets; none without it."""
    known = ("covtype_10K", "kddcup_10K", "ECBDL14_1K", "ECBDL14_test_1K") if data_home() else ()
    return {name: Task(partial(sliced, name), folds=FOLDS) for name in known}


def real_files(folder: str | None, max_rows: int | None) -> dict[str, Task]:
    """Those of the paper's four sets whose files are in the folder."""
    there = [name for name in ("epsilon", "ECBDL14", "url", "kddb") if folder and has(name, folder)]
    return {
        f"{name}, the real file": Task(partial(real, name, folder, max_rows, judged_by(name, str(folder))), name)
        for name in there
    }


def judged_by(name: str, folder: str) -> str:
    """A set's test file where the folder has it, or else a fifth of its rows.

    ECBDL14 was published oversampled: a copy of a row to learn from would be known before it is judged.
    """
    if f"{name}_test" in public_data.names() and has(f"{name}_test", folder):
        return OWN
    return DISTINCT if name == "ECBDL14" else ROWS


def has(name: str, folder: str) -> bool:
    """Whether the files of a set are in the folder."""
    try:
        public_data.load(name, folder, max_rows=1)
    except FileNotFoundError:
        return False
    return True
