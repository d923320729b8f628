"""All rows in one place: a block engine that knows the target of the whole."""

from __future__ import annotations

from typing import Any

from belief.engines.block import block_engine
from belief.engines.block.dense import DenseEngine
from belief.engines.block.sparse import SparseEngine
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.targets import classes_of


def local_engine(
    rows: Any, classes: Array, labels: Array, discrete: Array, resources: Resources | None = None
) -> DenseEngine | SparseEngine:
    """The engine for all rows of a table.

    Parameters
    ----------
    rows : a source, an array, a CSR matrix, or a list of those, one after the other
    classes : what the classes are called
    labels : the class of each row, as a number from 0
    discrete : which features are
    """
    engine = block_engine(rows, labels, discrete, resources or Resources())
    engine.target = classes_of(classes, labels)
    return engine
