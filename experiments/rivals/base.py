"""A base class for schemes that extend ReliefF and read the values of the table themselves."""

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
    """ReliefF for dense tables only. Sparse data raises an error."""

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
    """Return all rows, with missing values replaced by the mean of the column, and the mean subtracted."""
    X = read_values(source)
    present = ~np.isnan(X)
    mean = np.sum(X, axis=0, where=present) / np.maximum(present.sum(axis=0), 1)
    return np.where(present, X - mean, 0.0)
