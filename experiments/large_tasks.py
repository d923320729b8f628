"""Make or load the data of experiments/large.py and experiments/sampling.py.

There are slices of real data sets, look-alikes (synthetic data with the shape of the paper's data sets), and the
published files of the paper's data sets.
"""

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
TEST = 0.2  # the share of test rows in look-alikes and in real files without a test file
OWN, ROWS, DISTINCT = "its test file", "a fifth of the rows", "a fifth of the distinct rows"  # test rows of real data
FAR = 10**9  # number of the first test row of ECBDL14-like, so that no training row has the same number

Array = NDArray[Any]
Rows = Any  # a dense array or a CSR matrix


@dataclass(frozen=True)
class Data:
    """Training rows (X, y), test rows (Z, truth) and the mask of nominal features, whose values are integer codes."""

    X: Rows
    y: Array
    Z: Rows
    truth: Array
    discrete: Array


@dataclass(frozen=True)
class Task:
    """How to make a data set, and its number of folds.

    `paper` is the paper's name of the data set that this one is or resembles, if there is one.
    """

    make: Callable[[int], Data]  # takes the number of the fold
    paper: str = ""
    folds: int = 1

    def describe(self) -> str:
        """Return everything that the data depends on, as text."""
        assert isinstance(self.make, partial)
        made = [*map(str, self.make.args), *(f"{name}={x}" for name, x in self.make.keywords.items())]
        return f"{self.make.func.__name__}({', '.join(made)}), folds {self.folds}"


# --- real data ---


def sliced(name: str, fold: int) -> Data:
    """Load a slice of a real data set, and return the training and test rows of one stratified fold."""
    given = public_data.load(name, data_home())
    (X,), y = numbers(given), np.unique(given.y, return_inverse=True)[1]
    learn, judge = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(X, y))[fold]
    return Data(X[learn], y[learn], X[judge], y[judge], given.discrete)


def numbers(*given: public_data.Dataset) -> list[Rows]:
    """Return the features of each data set as one array of numbers; a string has the same code in all data sets."""
    if all(isinstance(x.X, list | np.ndarray) for x in given):
        return [one_piece(x.X) for x in given]
    columns = []
    for j, nominal in enumerate(given[0].discrete):
        column = np.concatenate([x.X.column(j).to_numpy() for x in given])
        columns.append(np.unique(column, return_inverse=True)[1] if nominal else column)
    return np.split(np.column_stack(columns), np.cumsum([len(x.y) for x in given])[:-1])


def one_piece(X: Any) -> Rows:
    """Return an array unchanged, or join a list of blocks."""
    if isinstance(X, np.ndarray):
        return X
    return vstack(X, format="csr") if issparse(X[0]) else np.concatenate(X)


def real(name: str, folder: str, max_rows: int | None, by: str, fold: int) -> Data:
    """Load the published files of a large data set; `by` names the test rows: OWN, ROWS or DISTINCT."""
    given = public_data.load(name, folder, max_rows=max_rows)
    if by == OWN:
        test = public_data.load(f"{name}_test", folder, max_rows=max_rows)
        (X, Z), y, truth = numbers(given, test), given.y, test.y
    else:
        (X,), y = numbers(given), given.y
        judge = some_distinct(X) if by == DISTINCT else np.random.default_rng(SEED).random(len(y)) < TEST
        X, y, Z, truth = X[~judge], y[~judge], X[judge], y[judge]
    classes = np.union1d(y, truth)  # with few rows, the training or the test rows may have only one class
    return Data(X, np.searchsorted(classes, y), Z, np.searchsorted(classes, truth), given.discrete)


def some_distinct(X: Array) -> Array:
    """Return the mask of the test rows: about a fifth of the distinct rows, each with all its copies."""
    hashes = [blake2b(row.tobytes(), digest_size=8).digest() for row in X]
    return np.array([int.from_bytes(x) < TEST * 2**64 for x in hashes])


# --- look-alikes ---


def last_rows(X: Rows, y: Array, discrete: Array) -> Data:
    """Take the last rows as test rows and the others as training rows; look-alikes have rows in random order."""
    cut = len(y) - int(TEST * len(y))
    return Data(X[:cut], y[:cut].astype(int), X[cut:], y[cut:].astype(int), discrete)


def epsilon_like(n_rows: int, fold: int, **options: Any) -> Data:
    """Make dense data with a weak signal in many features."""
    p = problems.epsilon_like(n_rows, **options, seed=SEED)
    return last_rows(np.concatenate(p.X), p.y, p.discrete)


def ecbdl14_like(n_rows: int, repeats: int, fold: int, **options: Any) -> Data:
    """Make data like ECBDL14.

    As in the published data, copies increase the share of the rare class to half of the training rows, but the share
    is 2 % of the test rows.
    """
    n_test = int(TEST * n_rows)
    learn = problems.ecbdl14_like(n_rows - n_test, repeats=repeats, **options, seed=SEED)
    judge = problems.ecbdl14_like(FAR + n_test, positive=0.02, **options, seed=SEED)
    Z, truth = judge.make(FAR, FAR + n_test)
    return Data(np.concatenate(learn.X), learn.y.astype(int), Z, truth.astype(int), learn.discrete)


def sparse_like(maker: str, n_rows: int, n_features: int, fold: int) -> Data:
    """Make sparse data like url or kddb."""
    p = getattr(problems, maker)(n_rows, n_features, seed=SEED)
    X = vstack(p.X, format="csr")
    return last_rows(X, p.y, np.zeros(n_features, bool))


def look_alikes(epsilon: int, ecbdl14: int, url: tuple[int, int], kddb: tuple[int, int]) -> dict[str, Task]:
    """Return all look-alikes with these numbers of rows, and of features for url and kddb."""
    return {
        "epsilon-like": Task(partial(epsilon_like, epsilon), "epsilon"),
        "ECBDL14-like": Task(partial(ecbdl14_like, ecbdl14, 49), "ECBDL14"),
        "url-like": Task(partial(sparse_like, "url_like", *url), "url"),
        "kddb-like": Task(partial(sparse_like, "kddb_like", *kddb), "kddb"),
    }


def slices() -> dict[str, Task]:
    """Return slices of ECBDL14 and of two large data sets that the paper does not use. Empty without BELIEF_DATA."""
    known = ("covtype_10K", "kddcup_10K", "ECBDL14_1K", "ECBDL14_test_1K") if data_home() else ()
    return {name: Task(partial(sliced, name), folds=FOLDS) for name in known}


def real_files(folder: str | None, max_rows: int | None) -> dict[str, Task]:
    """Return those of the paper's four data sets whose files are in the folder."""
    there = [name for name in ("epsilon", "ECBDL14", "url", "kddb") if folder and has(name, folder)]
    return {
        f"{name}, the real file": Task(partial(real, name, folder, max_rows, judged_by(name, str(folder))), name)
        for name in there
    }


def judged_by(name: str, folder: str) -> str:
    """Return which test rows to use: those of the test file, if the folder has it, or else a fifth of the rows.

    ECBDL14 was published with many copies of some rows. It is split by distinct rows, because otherwise test rows
    would be copies of training rows.
    """
    if f"{name}_test" in public_data.names() and has(f"{name}_test", folder):
        return OWN
    return DISTINCT if name == "ECBDL14" else ROWS


def has(name: str, folder: str) -> bool:
    """Return True if the files of a data set are in the folder."""
    try:
        public_data.load(name, folder, max_rows=1)
    except FileNotFoundError:
        return False
    return True
