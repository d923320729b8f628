"""Summaries of tables that are read block by block, before the targets of all rows are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.lazy import importing
from belief.data.source import is_sparse
from belief.engines.block import block_engine
from belief.engines.block.threads import Threads
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.summary import Summary

if TYPE_CHECKING:
    from belief.engines.block.sparse import NonZeros


class Describer:
    """An accumulator that makes the summary of a table from its blocks of rows, dense or sparse."""

    def __init__(self, resources: Resources, pool: Threads | None = None) -> None:
        self._resources, self._pool = resources, pool
        self._dense: Summary | None = None
        self._sparse: NonZeros | None = None

    def add(self, X: Any, discrete: Array, first: int | None = None, groups: Array | None = None) -> None:
        """Add a block of rows to the summary.

        Parameters
        ----------
        first : the number of the block's first row; None: the block follows the previous one
        groups : the group of each row, numbered from 0, with the same numbers in all blocks; None: unknown, and the
            summary has no sums by group
        """
        if is_sparse(X):
            with importing():
                from belief.engines.block.sparse import NonZeros, as_csr

            self._sparse = self._sparse or NonZeros(discrete)
            self._sparse.add(as_csr(X), first, groups)
            return
        part = self._describe(X, discrete, np.full(len(X), -1, np.int32) if groups is None else groups)
        self._dense = part if self._dense is None else self._dense.merge(part)

    def _describe(self, X: Array, discrete: Array, groups: Array) -> Summary:
        engine = block_engine(X, groups, discrete, self._resources, self._pool)
        if self._pool is not None:
            return engine.describe()
        with engine:
            return engine.describe()

    def summary(self) -> Summary:
        """Return the summary of all blocks added."""
        if self._sparse is not None:
            return self._sparse.summary()
        assert self._dense is not None, "no block was added"
        return self._dense
