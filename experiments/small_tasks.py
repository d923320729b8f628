"""The small problems of experiments/small.py: their data, the folds, and scores for the selected features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from common import data_home
from numpy.typing import NDArray
from problems import Problem, corral100, led, madelon, parity3plus3, sd, xor100
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

SEED, FOLDS, REPEATS, BINS = 0, 10, 3, 5
SLOW = {"Madelon": 1}  # repetitions of the folds; with 2,000 rows, three would take long, and one is precise enough
APART = 0.3  # smallest singular value of standardised columns, divided by √rows, that counts as a direction

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """A problem, its published file, and the numbers of features to select."""

    file: str
    make: Callable[[], Problem]
    sizes: tuple[int, int]
    truth: tuple[tuple[int, ...], ...] | None = None  # relevant groups in the file, if they differ from `make`


TASKS = {
    "Corral-100": Task("Corral100", corral100, (4, 10)),
    "XOR-100": Task("XOR100", xor100, (2, 10), truth=((4,), (6,))),  # in the file the class is x4 xor x6
    "Parity3+3": Task("Parity3+3", parity3plus3, (3, 5)),
    "SD1": Task("SD1", lambda: sd(2), (2, 20)),
    "SD2": Task("SD2", lambda: sd(4), (4, 20)),
    "SD3": Task("SD3", lambda: sd(6), (6, 20)),
    "Madelon": Task("Madelon-UCI", madelon, (5, 20)),
    "LED-25": Task("Led25n0", led, (7, 10)),
    "LED-100, 10 % noise": Task("Led100n10", lambda: led(92, 0.1), (7, 10)),
}


# --- the data ---


@cache
def problem(name: str) -> Problem:
    """Return the problem with its published rows, or as generated if BELIEF_DATA is not set."""
    known, home = TASKS[name].make(), data_home()
    if home is None:
        return known
    rows = np.loadtxt(home / "kais" / f"{TASKS[name].file}.csv", delimiter=",")
    X, y = rows[:, :-1], rows[:, -1].astype(int)
    truth = TASKS[name].truth or known.relevant
    return replace(known, X=X, y=y, discrete=np.full(X.shape[1], known.discrete[0]), relevant=truth)


@cache
def informative(name: str) -> frozenset[int]:
    """Return the informative columns of Madelon, whose positions in the published file are not documented.

    They are the columns that the other columns predict with an R² above 0.9.
    """
    X = problem(name).X
    inverse = np.linalg.inv(np.corrcoef(X, rowvar=False) + 1e-9 * np.eye(X.shape[1]))
    return frozenset(np.flatnonzero(1 - 1 / np.diag(inverse) > 0.9).tolist())


@cache
def split(name: str, starred: bool, fold: int) -> tuple[Array, Array, Array, Array, bool]:
    """Return training rows, their classes, test rows, their classes, and True if the columns are nominal.

    With fold -1, both parts have all rows. `starred` divides the columns into bins, whose edges are quantiles of the
    training rows.
    """
    p = problem(name)
    learn, judge = folds(name)[fold] if fold >= 0 else (np.arange(len(p.y)),) * 2
    X, Z = p.X[learn], p.X[judge]
    if starred:
        edges = np.quantile(X, np.arange(1, BINS) / BINS, axis=0, method="inverted_cdf")[:, None]
        X, Z = ((edges < x).sum(axis=0, dtype=float) for x in (X, Z))
    return X, p.y[learn], Z, p.y[judge], starred or bool(p.discrete[0])


@cache
def folds(name: str) -> list[tuple[Array, Array]]:
    """Return the training and test rows of repeated cross-validation with ten folds.

    The folds are stratified if at least one class has ten rows.
    """
    p = problem(name)
    kind = RepeatedStratifiedKFold if np.unique(p.y, return_counts=True)[1].max() >= FOLDS else RepeatedKFold
    cut = kind(n_splits=FOLDS, n_repeats=SLOW.get(name, REPEATS), random_state=SEED)
    return list(cut.split(p.X, p.y))


# --- scores of a selection ---


def counts(name: str, selected: Array) -> list[int]:
    """Return the numbers of relevant, redundant and irrelevant features among the selected ones.

    One feature of each group counts as relevant, and further features of the same group as redundant. The twenty
    informative columns of Madelon lie near five directions. For Madelon, the number of relevant features is the number
    of directions that the selected informative columns span.
    """
    p = problem(name)
    if name == "Madelon":
        inside = [j for j in selected.tolist() if j in informative(name)]
        relevant = directions(p.X[:, inside])
    else:
        group = {j: g for g, features in enumerate(p.relevant) for j in features}
        inside = [j for j in selected.tolist() if j in group]
        relevant = len({group[j] for j in inside})
    return [relevant, len(inside) - relevant, len(selected) - len(inside)]


def directions(X: Array) -> int:
    """Return the number of directions that these columns span, without directions of little variance."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(len(X))
    return int((np.linalg.svd(Z, compute_uv=False) > APART).sum()) if X.shape[1] else 0


def success(name: str, found: list[int]) -> float:
    """Return the success score of Bolón-Canedo et al. for the counts of relevant, redundant and irrelevant features.

    The score is the share of the relevant features that are selected, minus α times the share of the other features
    that are selected, with α = min(1/2, relevant/others). In the paper's formula, the second share has only the
    redundant features, but the paper's figures agree with the formula used here.
    """
    p = problem(name)
    relevant = len(p.relevant)
    others = p.X.shape[1] - relevant
    return found[0] / relevant - min(0.5, relevant / others) * (found[1] + found[2]) / others
