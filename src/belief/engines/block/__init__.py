"""One block of rows in one place: the engine for what it is stored in, and for the device that does the work."""

from __future__ import annotations

from collections.abc import Sequence
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

if TYPE_CHECKING:
    from belief.engines.block.sparse import SparseEngine


def block_engine(
    rows: Any,
    targets: Array,
    discrete: Array,
    resources: Resources,
    pool: Threads | None = None,
    counted: Array | None = None,
) -> DenseEngine | SparseEngine:
    """The engine for some rows.

    Parameters
    ----------
    rows : a source, a float array in C order, a CSR matrix, or a list of those, one after the other
    targets : the target of each row
    pool : the threads of another engine, if it is not to have its own
    counted : which rows are sampled and found, where not all are
    """
    source = _source(rows)
    if isinstance(source, SparseSource):
        if resources.device not in (None, "auto", "cpu"):
            warn(f"device={resources.device!r} is for dense rows: sparse ones are searched on the CPU.")
        with importing():
            from belief.engines.block.sparse import SparseEngine

        return SparseEngine(source, targets, discrete, resources, pool, counted)
    devices = resources.devices(source.n_rows, source.n_features)
    if not devices:
        return (SmallEngine if is_small(source) else DenseEngine)(source, targets, discrete, resources, pool, counted)
    from belief.engines.block.gpu import GpuEngine, GpusEngine  # torch comes with it

    if len(devices) == 1:
        return GpuEngine(source, targets, discrete, resources, pool, counted, device=devices[0])
    return GpusEngine(source, targets, discrete, resources, pool, counted, devices=devices)


def _source(rows: Any) -> Any:
    """Rows by id, whatever they came in."""
    if isinstance(rows, Sequence):
        parts = list(rows)
        return SparseSource(parts) if is_sparse(parts[0]) else _one(BlockSource([_source(x) for x in parts]), parts)
    if is_sparse(rows):
        return SparseSource([rows])
    return ArraySource(rows) if isinstance(rows, np.ndarray) else rows


def _one(blocks: BlockSource, parts: list[Any]) -> Any:
    return _source(parts[0]) if len(parts) == 1 else blocks
