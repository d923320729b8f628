"""Warnings about columns that a user should check: identifiers, codes for missing values, and copies of the target.

Up to 5,000 rows, spread over the table, are examined. These checks never change the result of the run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from belief._utils.names import DefaultNames
from belief._utils.text import escape_controls
from belief.method.arrays import Array
from belief.method.summary import Summary

MAX_ROWS, MAX_CELLS = 5_000, 2**22
MAX_WIDTH = 2**16  # sparse tables with more features are not examined
MIN_ROWS = 50  # in fewer rows, all values may differ by chance, and a feature may determine the target by chance
CODES = (-9, -99, -999, -9999, -99999)  # common codes for missing values, if all other values are at least 0
NEARLY_ALL = 0.9  # the smallest share of distinct values in an identifier
MIN_REPEATS = 10  # unordered numbers look like an identifier only if chance would repeat at least this many of them
IDENTIFIER_NAME = re.compile(r"(^|[\W_])(id|uuid|guid|key)$", re.I)
N_COPY_CANDIDATES = 30  # the features with the largest weights
MIN_CONTINUOUS_ROWS = 200  # in fewer rows, a genuine continuous feature may separate the classes
MAX_LEVELS_PER_ROW = 0.1  # a feature with more distinct values per row may determine the classes by chance
COPY_CORRELATION = 0.999
MAX_NAMED = 20  # columns named in one warning


@dataclass
class RowSample:
    """Rows spread evenly over a table. They are collected while the table is read block by block."""

    parts: list[Array] = field(default_factory=list)
    ids: list[Array] = field(default_factory=list)
    n_rows: int = 0
    step: int = 1

    def add(self, X: Array, first: int) -> None:
        """Add every `step`-th row of a block. The block begins at row `first` of the table."""
        rows = np.arange(-first % self.step, len(X), self.step)
        self.parts.append(X[rows])
        self.ids.append(rows + first)
        self.n_rows += len(rows)
        while self.n_rows > limit_rows(X.shape[1]):
            self.step *= 2
            keep = [ids % self.step == 0 for ids in self.ids]
            self.parts = [part[kept] for part, kept in zip(self.parts, keep, strict=True)]
            self.ids = [ids[kept] for ids, kept in zip(self.ids, keep, strict=True)]
            self.n_rows = sum(map(len, self.ids))


def limit_rows(n_features: int) -> int:
    """Return how many rows to examine, given the number of features."""
    return max(MIN_ROWS + 1, min(MAX_ROWS, MAX_CELLS // n_features))


def spread_rows(n_rows: int, n_features: int) -> Array:
    """Return the numbers of the rows to examine, evenly spread over n_rows."""
    if n_rows <= limit_rows(n_features):
        return np.arange(n_rows)
    return np.unique(np.linspace(0, n_rows - 1, limit_rows(n_features)).astype(np.int64))


def describe_suspicious(
    sample: tuple[Array, Array] | None,
    summary: Summary,
    weights: Array,
    discrete: Array,
    declared: Array,
    names: Sequence[str],
    is_regression: bool,
) -> list[str]:
    """Return sentences for a warning: one for each kind of problem, and one with advice.

    Parameters
    ----------
    sample : some rows, and the target of each: its class number, or its rank
    weights : the weight of each feature
    discrete : mask of the discrete features
    declared : mask of the features that the user declared to be discrete
    names : the names of the features
    is_regression : whether the targets are ranks
    """
    if sample is None:
        return []
    X, targets = sample
    identifiers = _find_identifiers(X, summary, discrete, declared, names)
    coded: dict[int, list[int]] = {}  # for each code, the columns in which it is repeated and the only negative value
    for code in CODES:
        for j in np.flatnonzero(~discrete & (summary.minimum == code) & (summary.maximum > 0)).tolist():
            x = X[:, j]
            if np.sum(x == code) > 1 and not np.any((x < 0) & (x != code)):
                coded.setdefault(code, []).append(j)
    best = np.argsort(-weights, kind="stable")[:N_COPY_CANDIDATES]
    candidates = np.array([j for j in sorted(best.tolist()) if j not in identifiers], np.int64)
    copies: list[int] = []
    if len(X) > MIN_ROWS and is_regression:
        copies = [j for j in candidates.tolist() if _is_monotone(X[:, j], targets)]
    elif len(X) > MIN_ROWS:
        copies = candidates[_determine_class(X[:, candidates], targets)].tolist()
    found = []
    if identifiers:
        found.append(f"{_list(identifiers, names)} {_verb(identifiers, 'look')} like an identifier, with a different"
                     " value in nearly every row.")  # fmt: skip
    for code, columns in coded.items():
        found.append(f"{_list(columns, names)} {_verb(columns, 'contain')} {code} and no other negative value, like a"
                     " code for missing values.")  # fmt: skip
    if copies:
        found.append(f"{_list(copies, names)} {_verb(copies, 'determine')} the target, like a copy of it.")
    drop: list[Any] = [*identifiers, *copies]
    shown = [j if isinstance(names, DefaultNames) else names[j] for j in drop[:MAX_NAMED]]
    advice = [f"Leave columns out with drop={shown}"] * bool(drop) + ["Replace such codes by NaN"] * bool(coded)
    return [*found, f"{', and '.join([advice[0], *(a[0].lower() + a[1:] for a in advice[1:])])}."] if found else []


def _list(columns: Sequence[int], names: Sequence[str]) -> str:
    shown = ", ".join(repr(escape_controls(names[j])) for j in columns[:MAX_NAMED])
    more = f" and {len(columns) - MAX_NAMED} more" if len(columns) > MAX_NAMED else ""
    return f"{'Columns' if len(columns) > 1 else 'Column'} {shown}{more}"


def _verb(columns: Sequence[int], verb: str) -> str:
    return verb if len(columns) > 1 else f"{verb}s"


def _find_identifiers(X: Array, summary: Summary, discrete: Array, declared: Array, names: Sequence[str]) -> list[int]:
    """Return the columns that look like identifiers.

    These are text columns in which nearly all values differ, and columns of whole numbers that look like row numbers.
    """
    n_levels = np.bincount(summary.levels.feature, minlength=len(discrete))
    found = discrete & ~declared & (summary.count > MIN_ROWS) & (n_levels > NEARLY_ALL * summary.count)
    with np.errstate(invalid="ignore"):
        head = X[: MIN_ROWS + 1]
        whole = ~discrete & (head == np.floor(head)).all(axis=0)
    for j in np.flatnonzero(whole).tolist():
        x = X[:, j]
        if np.isfinite(x).all() and (x == np.floor(x)).all():
            found[j] = _numbers_rows(x, summary.maximum[j] - summary.minimum[j] + 1, summary.m, names[j])
    return np.flatnonzero(found).tolist()


def _numbers_rows(x: Array, width: float, n_rows: int, name: str) -> bool:
    """Return True if whole numbers look like row numbers: nearly all differ, and chance does not explain this."""
    n, n_distinct = len(x), len(np.unique(x))
    if n_distinct < NEARLY_ALL * n:
        return False
    if IDENTIFIER_NAME.search(name):
        return True
    if n <= MIN_ROWS:
        return False
    steps = np.diff(x)
    if n_distinct == n and (np.all(steps > 0) or np.all(steps < 0)):
        return True
    expected_repeats = n * n / (2 * width)
    return bool(width <= 2 * n_rows and expected_repeats >= MIN_REPEATS and n - n_distinct < 0.1 * expected_repeats)


def _determine_class(X: Array, classes: Array) -> Array:
    """Return a mask of the columns that determine the class.

    Such a column has no missing values, and each of its values occurs in a single class. If it has many distinct
    values, the values of each class must also form an interval.
    """
    n, n_classes = len(X), np.count_nonzero(np.bincount(classes))
    out = np.zeros(X.shape[1], bool)
    if np.count_nonzero(np.bincount(classes) > 1) < 2:
        return out
    left = np.flatnonzero(~np.isnan(X).any(axis=0))
    first_rows = slice(0, max(MIN_ROWS, int(2 * MAX_LEVELS_PER_ROW * n)))
    for rows in (first_rows, slice(None)):  # most columns already fail on the first rows, which are faster to check
        columns = np.ascontiguousarray(X.T[left, rows])
        order = np.argsort(columns, axis=1)
        values, sorted_classes = np.take_along_axis(columns, order, axis=1), classes[rows][order]
        is_step, is_change = (x[:, 1:] != x[:, :-1] for x in (values, sorted_classes))
        n_values = 1 + np.count_nonzero(is_step, axis=1)
        are_intervals = np.count_nonzero(is_change, axis=1) < n_classes
        is_enough = (n_values <= MAX_LEVELS_PER_ROW * n) | (are_intervals & (n >= MIN_CONTINUOUS_ROWS))
        left = left[is_enough & ~(is_change & ~is_step).any(axis=1)]
    out[left] = True
    return out


def _is_monotone(x: Array, ranks: Array) -> bool:
    """Return True if the order of a feature is nearly the same as the order of the target."""
    if np.isnan(x).any() or x.min() == x.max() or ranks.min() == ranks.max():
        return False
    values, order = np.unique(x, return_inverse=True)
    if len(values) < MIN_ROWS // 2:
        return False
    centres = np.cumsum(np.bincount(order)) - np.bincount(order) / 2
    return bool(abs(np.corrcoef(centres[order], ranks)[0, 1]) > COPY_CORRELATION)
