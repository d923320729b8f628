"""Code that the baselines share: validation of the data, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from belief._utils.names import DefaultNames
from belief.data.source import Source, SparseSource
from belief.data.table import Table
from belief.engines.checks import check_sizes, check_values
from belief.method.arrays import Array
from belief.method.relevance import sort_by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.selector import ColumnSelector


def make_data_check(settings: Settings, names: Sequence[str] | None) -> Callable[[Summary, Target], None]:
    """Return a function that checks the summary of the data and the target; it raises errors and issues warnings."""

    def check(summary: Summary, target: Target) -> None:
        check_sizes(settings, summary, target, working_memory=0)  # without redundancy, no memory needs to be checked
        check_values(summary, names or DefaultNames(len(summary.mean)))

    return check


def require_dense(table: Table, selector: str) -> Source:
    """Return the source of the rows of a dense table; raise an error for sparse data."""
    if isinstance(table.source, SparseSource):
        raise ValueError(
            f"Sparse data was passed for X, but {selector} needs a dense table: pass X.toarray(), or use"
            " belief.BeliefSelector, which supports sparse matrices."
        )
    return table.source


def read_values(source: Source, ids: Array | None = None) -> Array:
    """Return rows of a source (by default all) as float64, with NaN for missing values and codes for categories."""
    X, at, a = source.rows(np.arange(source.n_rows) if ids is None else ids, 0, source.n_features)
    return np.array(X[at, a : a + source.n_features], np.float64)


class Baseline(ColumnSelector):
    """Base class of the baselines. Constant features are ranked last."""

    def _rank(self, X: Any, y: Any, weights: Array, found: Selection, constant: Array, n: int) -> None:
        found = found.append_constants(np.flatnonzero(constant), n)
        others = np.setdiff1d(np.arange(len(weights)), found.selected)
        order = [found.selected, sort_by_weight(weights, others[~constant[others]]), others[constant[others]]]
        ranking = np.empty(len(weights), np.int64)
        ranking[np.concatenate(order)] = np.arange(1, len(weights) + 1)
        self._set_fitted(X, y, weights, found.selected, ranking)
        self.selection_scores_ = found.scores
