"""All rows in one place: a block engine that knows the target of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from belief.engines.block import block_engine
from belief.engines.block.dense import DenseEngine
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.targets import Target, make_class_target

if TYPE_CHECKING:
    from belief.engines.block.sparse import SparseEngine


def table_engine(
    rows: Any, target: Target, targets: Array, discrete: Array, resources: Resources | None = None
) -> DenseEngine | SparseEngine:
    """The engine for all rows of a table.

    Parameters
    ----------
    rows : a source, an array, a CSR matrix, or a list of those, one after the other
    target, targets : what is to be explained; and the number of each row in it, such as that of its class
    discrete : which features are
    """
    engine = block_engine(rows, targets, discrete, resources or Resources())
    engine.target = target
    return engine


def local_engine(
    rows: Any, classes: Array, labels: Array, discrete: Array, resources: Resources | None = None
) -> DenseEngine | SparseEngine:
    """The engine for all rows of a table with classes, by what they are called, and the number of each row's class."""
    return table_engine(rows, make_class_target(classes, labels), labels, discrete, resources)
