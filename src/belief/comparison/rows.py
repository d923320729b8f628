"""What a user has becomes a table in memory, of as many rows as a minute allows.

Of a larger table the rows with the smallest keys are taken: any rows, the same for the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from belief._utils.names import DefaultNames
from belief.baselines.base import checks, values_of
from belief.data.arrow import Batch
from belief.data.inputs import OpenedInput
from belief.data.labels import Labels, read_numbers, read_target
from belief.data.source import ArraySource, SparseSource, is_sparse
from belief.data.stream import LibsvmStream, Stream, TableStream
from belief.data.table import open_table
from belief.engines.block.dense import DenseEngine
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.sampling import SAMPLE, row_keys
from belief.method.settings import Settings
from belief.method.targets import REGRESSION, Target, make_class_target

MOST_ROWS, MOST_CELLS = 3_000, 1_500_000  # that are compared on; more would take longer than a minute
FEWEST_ROWS = 300  # of a wide table, however wide
WIDEST = 100_000  # features
LEAST = 5  # rows of two classes, one for each fold


@dataclass(frozen=True)
class Rows:
    """Rows in memory: numbers, codes of names, NaN; the class of each, by number, or the number to predict."""

    X: Array
    y: Array
    discrete: Array
    names: list[str]
    task: str
    n_rows: int  # of the whole table


def rows_of(taken: OpenedInput, discrete_features: Any, task: str, seed: int) -> Rows:
    """Some rows of a table or of files that were opened, all of them where there are few."""
    X, y, numbered = taken
    if isinstance(X, TableStream | LibsvmStream):
        values, y, discrete, target, n_rows = _from_stream(X, task, seed)
        names = X.names
    else:
        table = open_table(X, discrete_features)
        n_rows, F = table.source.n_rows, table.source.n_features
        target, codes = read_target(y, n_rows, task)
        ids = chosen(np.arange(n_rows), most_rows(F), seed)
        y = (read_numbers(y, n_rows) if target.task == REGRESSION else codes)[ids]
        values, discrete, names = _values(table.source, ids), table.discrete, table.names
    names = list(names or numbered or DefaultNames(values.shape[1]))
    found = Rows(values, _present(y, target.task), discrete, names, target.task, n_rows)
    _check(found)
    return found


def most_rows(F: int) -> int:
    """How many rows of so many features are compared on."""
    if F > WIDEST:
        raise ValueError(
            f"compare is for at most {WIDEST:,} features, and X has {F:,}: most other selectors would not end; keep"
            " fewer with keep or drop, or use belief.select, which takes them all."
        )
    return max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // F))


def chosen(ids: Array, most: int, seed: int) -> Array:
    """Those of the rows with the smallest keys, in their order."""
    if len(ids) <= most:
        return ids
    keys = row_keys(seed, SAMPLE, ids)
    return np.sort(ids[np.argpartition(keys, most)[:most]])


def _values(source: Any, ids: Array) -> Array:
    """Some rows, as float64."""
    if isinstance(source, SparseSource):
        starts = np.cumsum([0, *(block.shape[0] for block in source.blocks)])
        inside = [ids[(ids >= a) & (ids < b)] - a for a, b in pairwise(starts)]
        return np.vstack([X[at].toarray() for X, at in zip(source.blocks, inside, strict=True)]).astype(np.float64)
    return values_of(source, ids)


def _from_stream(stream: Any, task: str, seed: int) -> tuple[Array, Array, Array, Target, int]:
    """Some rows of files, read once and never held whole."""
    labels = Labels(f"column {stream.label!r}" if isinstance(stream, TableStream) else "The first column", task)
    kept, ids = _few_rows(stream, labels, seed)
    if not labels.n_rows:
        raise ValueError("The files have no rows.")
    target, codes = labels.target()
    y = labels.to_numbers() if target.task == REGRESSION else codes
    return kept, y[ids], stream.discrete, target, labels.n_rows


def _few_rows(stream: Stream, labels: Labels, seed: int) -> tuple[Array, Array]:
    """The rows with the smallest keys, and their numbers."""
    kept, ids, first = np.zeros((0, 0)), np.zeros(0, np.int64), 0
    for block in stream.first_pass(labels):
        X = block.whole(map) if isinstance(block, Batch) else block
        here = np.arange(first, first + X.shape[0])
        first += X.shape[0]
        stay = chosen(np.concatenate([ids, here]), most_rows(X.shape[1]), seed)
        new = X[stay[np.isin(stay, here)] - here[0]]
        new = new.toarray() if is_sparse(new) else new
        old = kept[np.isin(ids, stay)] if len(ids) else np.zeros((0, X.shape[1]))
        kept, ids = np.vstack([old, new.astype(np.float64)]), stay
    return kept, ids


def _present(y: Array, task: str) -> Array:
    """Classes numbered from 0 without those of which no row was taken."""
    return y if task == REGRESSION else np.unique(y, return_inverse=True)[1]


def _check(rows: Rows) -> None:
    """Refuse what no selector can use, and what cannot be cut into folds."""
    y = rows.y if rows.task != REGRESSION else np.arange(len(rows.y)) % 2
    target = make_class_target(np.arange(y.max() + 1), y)
    if np.sum(target.counts >= LEAST) < 2:
        what = "rows of at least two classes" if rows.task != REGRESSION else "rows of either half"
        raise ValueError(f"compare needs {LEAST} {what}, one for each fold: there are too few.")
    with DenseEngine(ArraySource(rows.X), y, rows.discrete, Resources()) as engine:
        checks(Settings(n_features_to_select=1, redundancy=None), rows.names)(engine.describe(), target)
