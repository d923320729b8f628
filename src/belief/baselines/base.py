"""What the baselines share as scikit-learn selectors: the attributes they set, and which columns they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from belief.checks import check_sizes, check_values
from belief.columns import ColumnSelector
from belief.method.algorithm import constants_last
from belief.method.arrays import Array
from belief.method.relevance import by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target
from belief.saved import Numbered


def checks(settings: Settings, names: Sequence[str] | None) -> Callable[[Summary, Target], None]:
    """What refuses, or warns of, data that cannot be used, once it has been described."""

    def check(summary: Summary, target: Target) -> None:
        check_sizes(settings, summary, target, working_memory=0)  # asked of redundancy=None only, which needs none
        check_values(summary, names or Numbered(len(summary.mean)))

    return check


class Baseline(ColumnSelector):
    """A selector whose constant features come after all others."""

    def _rank(self, X: Any, y: Any, weights: Array, found: Selection, constant: Array, n: int) -> None:
        found = constants_last(found, constant, n)
        left = np.setdiff1d(np.arange(len(weights)), found.selected)
        order = [found.selected, by_weight(weights, left[~constant[left]]), left[constant[left]]]
        ranking = np.empty(len(weights), np.int64)
        ranking[np.concatenate(order)] = np.arange(1, len(weights) + 1)
        self._keep(X, y, weights, found.selected, found.scores, ranking)
