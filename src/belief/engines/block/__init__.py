"""Engines for rows that this machine can read by index: one engine for each storage format and device.

Threads, tiles and memory belong here; the numbers are computed in `belief.kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.lazy import importing
from belief._utils.warnings import warn
from belief.data.source import ArraySource, BlockSource, SparseSource, is_sparse
from belief.engines.block.dense import DenseEngine
from belief.engines.block.small import SmallEngine, is_small
from belief.engines.block.threads import Threads
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.summary import Summary
from belief.method.targets import Target, make_class_target

if TYPE_CHECKING:
    from belief.engines.block.sparse import NonZeros, SparseEngine


def table_engine(
    rows: Any, target: Target, targets: Array, discrete: Array, resources: Resources | None = None
) -> DenseEngine | SparseEngine:
    """Return the engine for a whole table with a target.

    Parameters
    ----------
    rows : a source, an array, a CSR matrix, or a list of these, which are consecutive parts of the table
    target : the target
    targets : the target of each row as a number, such as the index of its class
    discrete : mask of the discrete features
    """
    engine = block_engine(rows, targets, discrete, resources or Resources())
    engine.target = target
    return engine


def local_engine(
    rows: Any, classes: Array, labels: Array, discrete: Array, resources: Resources | None = None
) -> DenseEngine | SparseEngine:
    """Return the engine for a whole table whose rows have the classes `classes[labels]`."""
    return table_engine(rows, make_class_target(classes, labels), labels, discrete, resources)


def block_engine(
    rows: Any,
    targets: Array,
    discrete: Array,
    resources: Resources,
    pool: Threads | None = None,
    counted: Array | None = None,
) -> DenseEngine | SparseEngine:
    """Return the engine for a block of rows. It depends on the format and size of the block, and on the device.

    Parameters
    ----------
    rows : a source, a float array in C order, a CSR matrix, or a list of these, which are consecutive parts of the
        block
    targets : the target of each row as a number
    pool : threads of another engine to share; None: the engine starts its own
    counted : mask of the rows that may be sampled or found as neighbours; None: all rows
    """
    source = _as_source(rows)
    if isinstance(source, SparseSource):
        if resources.torch_devices or resources.device not in (None, "auto", "cpu"):
            warn(f"device={resources.device!r} is ignored for sparse data, which is searched on the CPU.")
        with importing():
            from belief.engines.block.sparse import SparseEngine

        return SparseEngine(source, targets, discrete, resources, pool, counted)
    devices = resources.choose_devices(source.n_rows, source.n_features)
    if not devices:
        engine = SmallEngine if is_small(source, resources) else DenseEngine
        return engine(source, targets, discrete, resources, pool, counted)
    from belief.engines.block.gpu import GpuEngine, MultiGpuEngine  # imports torch

    if len(devices) == 1:
        return GpuEngine(source, targets, discrete, resources, pool, counted, device=devices[0])
    return MultiGpuEngine(source, targets, discrete, resources, pool, counted, devices=devices)


def _as_source(rows: Any) -> Any:
    """Wrap an array, a CSR matrix, or a list of these in a Source, the interface from which engines read rows."""
    if isinstance(rows, Sequence):
        parts = list(rows)
        if is_sparse(parts[0]):
            return SparseSource(parts)
        return _as_source(parts[0]) if len(parts) == 1 else BlockSource([_as_source(x) for x in parts])
    if is_sparse(rows):
        return SparseSource([rows])
    return ArraySource(rows) if isinstance(rows, np.ndarray) else rows


class Describer:
    """An accumulator that makes the summary of a table from its blocks of rows, dense or sparse.

    It is used for tables that are read block by block, before the targets of all rows are known.
    """

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
        groups = np.full(len(X), -1, np.int32) if groups is None else groups
        engine = block_engine(X, groups, discrete, self._resources, self._pool)
        with engine if self._pool is None else nullcontext():
            part = engine.describe()
        self._dense = part if self._dense is None else self._dense.merge(part)

    def summary(self) -> Summary:
        """Return the summary of all blocks added."""
        if self._sparse is not None:
            return self._sparse.summary()
        assert self._dense is not None, "no block was added"
        return self._dense
