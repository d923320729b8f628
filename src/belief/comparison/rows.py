"""Reading of a sample of the table into memory, for `compare`.

Each row of a large table gets a random key, which depends on the seed, and the rows with the smallest keys are used.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from belief._utils.names import DefaultNames
from belief.baselines.base import make_data_check, read_values
from belief.comparison.selectors import Part
from belief.data.arrow import Batch
from belief.data.inputs import OpenedInput
from belief.data.labels import Labels, read_labels
from belief.data.source import ArraySource, SparseSource, Stream, is_sparse
from belief.data.table import open_table
from belief.engines.block.dense import DenseEngine
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.sampling import SAMPLE, row_keys
from belief.method.settings import Settings
from belief.method.targets import REGRESSION, Target, make_class_target

MAX_ROWS, MAX_CELLS = 3_000, 1_500_000  # of the sample; more would take longer than a minute
MIN_ROWS = 300  # of the sample, even if a wide table then has more than MAX_CELLS
MAX_FEATURES = 100_000
MIN_CLASS_ROWS = 5  # at least two classes need this many rows, one for each fold


def sample_rows(
    opened: OpenedInput, discrete_features: Any, task: str, seed: int, n_jobs: int | None = 1
) -> tuple[Part, list[str], int]:
    """Return a sample of the rows of a table or stream, the names of the features, and the number of all rows.

    If the table is small, the sample contains all rows.
    """
    X, y, numbered = opened
    if isinstance(X, Stream):
        values, y, discrete, target, n_rows = _read_stream(X, task, seed)
        names = X.names
    else:
        table = open_table(X, discrete_features, numbered, leave_out=True)
        n_rows, F = table.source.n_rows, table.source.n_features
        labels = read_labels(y, n_rows, task)
        target, codes = labels.target()
        ids = choose_rows(np.arange(n_rows), count_rows(F), seed)
        y = (labels.to_numbers() if target.task == REGRESSION else codes)[ids]
        values, discrete, names = _read_values(table.source, ids), table.discrete, table.names
    names = list(names or DefaultNames(values.shape[1]))
    # The classes are numbered again, because the sample may not contain rows of every class.
    y = y if target.task == REGRESSION else np.unique(y, return_inverse=True)[1]
    found = Part(values, y, discrete, target.task, seed, n_jobs)
    _check(found, names)
    return found, names, n_rows


def count_rows(F: int) -> int:
    """Return the number of rows to sample from a table with F features."""
    if F > MAX_FEATURES:
        raise ValueError(
            f"compare is for at most {MAX_FEATURES:,} features, and X has {F:,}: most other selectors would not"
            " finish. Restrict the features with candidates or drop, or use belief.select."
        )
    return max(MIN_ROWS, min(MAX_ROWS, MAX_CELLS // F))


def choose_rows(ids: Array, n_rows: int, seed: int) -> Array:
    """Return the ids of the n_rows rows with the smallest random keys, in ascending order."""
    if len(ids) <= n_rows:
        return ids
    keys = row_keys(seed, SAMPLE, ids)
    return np.sort(ids[np.argpartition(keys, n_rows)[:n_rows]])


def _read_values(source: Any, ids: Array) -> Array:
    if isinstance(source, SparseSource):
        starts = np.cumsum([0, *(block.shape[0] for block in source.blocks)])
        inside = [ids[(ids >= a) & (ids < b)] - a for a, b in pairwise(starts)]
        return np.vstack([X[at].toarray() for X, at in zip(source.blocks, inside, strict=True)]).astype(np.float64)
    return read_values(source, ids)


def _read_stream(stream: Stream, task: str, seed: int) -> tuple[Array, Array, Array, Target, int]:
    """Sample rows of files in one pass; return X, y, the discrete features, the Target and the number of all rows."""
    labels = Labels(stream.target_name, task)
    kept, ids, first = np.zeros((0, 0)), np.zeros(0, np.int64), 0
    for block in stream.first_pass(labels):
        X = block.whole(map) if isinstance(block, Batch) else block
        here = np.arange(first, first + X.shape[0])
        first += X.shape[0]
        stay = choose_rows(np.concatenate([ids, here]), count_rows(X.shape[1]), seed)
        new = X[stay[np.isin(stay, here)] - here[0]]
        new = new.toarray() if is_sparse(new) else new
        old = kept[np.isin(ids, stay)] if len(ids) else np.zeros((0, X.shape[1]))
        kept, ids = np.vstack([old, new.astype(np.float64)]), stay
    if not labels.n_rows:
        raise ValueError("The files have no rows.")
    target, codes = labels.target()
    y = labels.to_numbers() if target.task == REGRESSION else codes
    return kept, y[ids], stream.discrete, target, labels.n_rows


def _check(rows: Part, names: list[str]) -> None:
    """Raise an error if no selector can use the rows, or if there are too few for the folds."""
    y = rows.y if rows.task != REGRESSION else np.arange(len(rows.y)) % 2
    target = make_class_target(np.arange(y.max() + 1), y)
    if np.sum(target.counts >= MIN_CLASS_ROWS) < 2:
        if rows.task == REGRESSION:
            raise ValueError(f"compare needs at least {2 * MIN_CLASS_ROWS} rows, two for each fold; got {len(y)}.")
        raise ValueError(
            f"compare needs at least two classes with {MIN_CLASS_ROWS} rows each, because they must have a row in each"
            " fold."
        )
    with DenseEngine(ArraySource(rows.X), y, rows.discrete, Resources()) as engine:
        make_data_check(Settings(n_features_to_select=1, redundancy=None), names)(engine.describe(), target)
