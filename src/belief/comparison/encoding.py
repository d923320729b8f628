"""Encoding of features for scikit-learn: numbers are imputed and standardised, frequent levels one-hot encoded.

Levels are sorted by frequency, while scikit-learn's OneHotEncoder sorts them by value. The order matters, because the
results of forests and linear solvers depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from belief.method.arrays import Array

MAX_LEVELS = 10  # levels of a feature that are encoded, the most frequent ones


@dataclass(frozen=True)
class Encoding:
    """An encoding of features for scikit-learn, fitted to training rows.

    Missing numbers are replaced by the median, and numbers are standardised. A nominal feature is replaced by a column
    of zeros and ones for each of its most frequent levels, where missing values count as a level.
    """

    features: Array
    median: Array
    mean: Array
    scale: Array
    levels: list[Array]  # per feature; empty for numbers

    @classmethod
    def of(cls, X: Array, discrete: Array, features: Array | None = None) -> Self:
        features = np.arange(X.shape[1]) if features is None else features
        X, discrete = X[:, features], discrete[features]
        median = np.array([np.median(x) if len(x := c[~np.isnan(c)]) else 0.0 for c in X.T])
        filled = np.where(np.isnan(X), median, X)
        scale = filled.std(axis=0)
        levels = [np.zeros(0)] * len(features)
        for j in np.flatnonzero(discrete).tolist():
            values, counts = np.unique(code_missing(X[:, j]), return_counts=True)
            levels[j] = values[np.argsort(-counts, kind="stable")[:MAX_LEVELS]]
        return cls(features, median, filled.mean(axis=0), np.where(scale > 0, scale, 1.0), levels)

    def __call__(self, X: Array) -> Array:
        """Encode rows; return the encoded columns."""
        columns = []
        for i, x in enumerate(X[:, self.features].T):
            if len(self.levels[i]):
                columns.append((code_missing(x)[:, None] == self.levels[i]).astype(np.float64))
            else:
                filled = np.where(np.isnan(x), self.median[i], x)
                columns.append(((filled - self.mean[i]) / self.scale[i])[:, None])
        return np.concatenate(columns, axis=1)

    @property
    def feature(self) -> Array:
        """For each encoded column, the position of its feature."""
        return np.repeat(np.arange(len(self.features)), [max(1, len(x)) for x in self.levels])


def code_missing(codes: Array) -> Array:
    """Replace missing values by the code -1, which is not the code of any level."""
    return np.where(np.isnan(codes), -1.0, codes)
