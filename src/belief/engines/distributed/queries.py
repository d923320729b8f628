"""Rows that have been fetched to the driver, by id: queries travel from there with a search."""

from __future__ import annotations

import numpy as np

from belief.engines.distributed.blocks import Matrix, stacked
from belief.engines.distributed.cluster import StagedBlocks
from belief.method.arrays import Array


class FetchedRows:
    """Some rows and their targets; those that are not there yet are fetched when they are asked for."""

    def __init__(self, staged: StagedBlocks) -> None:
        self._staged = staged
        self._ids = np.zeros(0, np.int64)  # rising
        self._X: Matrix = None
        self._targets = np.zeros(0, np.int32)

    def rows(self, ids: Array) -> Matrix:
        """These rows, in that order."""
        at = self._places(ids)
        return self._X[at]

    def has(self, ids: Array) -> bool:
        """Whether these rows are there."""
        return bool(np.isin(ids, self._ids).all())

    def targets(self, ids: Array) -> Array:
        """Their targets."""
        at = self._places(ids)
        return self._targets[at]

    def _places(self, ids: Array) -> Array:
        new = np.setdiff1d(ids, self._ids)
        if len(new):
            self._add(new)
        return np.searchsorted(self._ids, ids)

    def _add(self, new: Array) -> None:
        pieces = self._staged.fetch(new)
        X = [*([] if self._X is None else [self._X]), *(piece.X for piece in pieces)]
        every = np.concatenate([self._ids, new])
        order = np.argsort(every)
        self._ids = every[order]
        self._X = stacked(X)[order] if self._X is not None else stacked(X)
        self._targets = np.concatenate([self._targets, *(piece.targets for piece in pieces)])[order]
