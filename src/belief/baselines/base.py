"""What the baselines share as scikit-learn selectors: the attributes they set, and which columns they keep."""

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


def checks(settings: Settings, names: Sequence[str] | None) -> Callable[[Summary, Target], None]:
    """What refuses, or warns of, data that cannot be used, once it has been described."""

    def check(summary: Summary, target: Target) -> None:
        check_sizes(settings, summary, target, working_memory=0)  # asked of redundancy=None only, which needs none
        check_values(summary, names or DefaultNames(len(summary.mean)))

    return check


def dense_source(table: Table, of: str) -> Source:
    """The rows of a table that must be dense, for a selector of this name."""
    if isinstance(table.source, SparseSource):
        raise ValueError(
            f"Sparse data was passed for X, but {of} needs a dense table: pass X.toarray(), or select with"
            " belief.BeliefSelector, which takes sparse matrices."
        )
    return table.source


def values_of(source: Source, ids: Array | None = None) -> Array:
    """The values of all rows, or of some, as a new array of float64; a missing one is a NaN, a category its code."""
    X, at, a = source.rows(np.arange(source.n_rows) if ids is None else ids, 0, source.n_features)
    return np.array(X[at, a : a + source.n_features], np.float64)


class Baseline(ColumnSelector):
    """A selector whose constant features come after all others."""

    def _rank(self, X: Any, y: Any, weights: Array, found: Selection, constant: Array, n: int) -> None:
        found = found.append_constants(constant, n)
        left = np.setdiff1d(np.arange(len(weights)), found.selected)
        order = [found.selected, sort_by_weight(weights, left[~constant[left]]), left[constant[left]]]
        ranking = np.empty(len(weights), np.int64)
        ranking[np.concatenate(order)] = np.arange(1, len(weights) + 1)
        self._set_fitted(X, y, weights, found.selected, ranking)
        self.selection_scores_ = found.scores
