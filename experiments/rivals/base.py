"""ReliefF for schemes that need the values of the table as well as its weights."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Tags

from belief.baselines.base import read_values, require_dense
from belief.baselines.relief import ReliefF
from belief.data.source import Source
from belief.data.table import Table
from belief.method.arrays import Array
from belief.method.settings import Settings


class DenseReliefF(ReliefF):
    """ReliefF of dense tables only."""

    def _weights(self, table: Table, labels: Array, settings: Settings) -> tuple[Array, Array]:
        self._rows_of(table)
        return super()._weights(table, labels, settings)

    def _rows_of(self, table: Table) -> Source:
        return require_dense(table, type(self).__name__)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def centred(source: Source) -> Array:
    """Return all rows with each column's mean subtracted and missing values replaced by the mean."""
    X = read_values(source)
    present = ~np.isnan(X)
    mean = np.sum(X, axis=0, where=present) / np.maximum(present.sum(axis=0), 1)
    return np.where(present, X - mean, 0.0)
