"""Columns as most models want them: numbers without gaps, and a column of 0 and 1 for each frequent name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from belief.method.arrays import Array

LEVELS = 10  # names of a feature that get a column of their own, the most frequent ones


@dataclass(frozen=True)
class Encoding:
    """How some features are encoded, as learnt from some rows.

    A number is standardised, and where it is missing the median; a nominal feature becomes a column for each of its
    most frequent names, missing being one of them.
    """

    features: Array
    median: Array
    mean: Array
    scale: Array
    levels: list[Array]  # of each feature; none of numbers

    @classmethod
    def of(cls, X: Array, discrete: Array, features: Array | None = None) -> Self:
        features = np.arange(X.shape[1]) if features is None else features
        X, discrete = X[:, features], discrete[features]
        median = np.array([np.median(x) if len(x := c[~np.isnan(c)]) else 0.0 for c in X.T])
        filled = np.where(np.isnan(X), median, X)
        scale = filled.std(axis=0)
        levels = [_frequent(c) if d else np.zeros(0) for c, d in zip(X.T, discrete, strict=True)]
        return cls(features, median, filled.mean(axis=0), np.where(scale > 0, scale, 1.0), levels)

    def __call__(self, X: Array) -> Array:
        """The columns of these rows."""
        columns = [self._columns(X[:, j], i) for i, j in enumerate(self.features)]
        return np.concatenate(columns, axis=1)

    def _columns(self, x: Array, i: int) -> Array:
        if len(self.levels[i]):
            return (without_gaps(x)[:, None] == self.levels[i]).astype(np.float64)
        return ((np.where(np.isnan(x), self.median[i], x) - self.mean[i]) / self.scale[i])[:, None]

    @property
    def owner(self) -> Array:
        """Which of the features each column is of, by its place among them."""
        return np.repeat(np.arange(len(self.features)), [max(1, len(x)) for x in self.levels])


def without_gaps(codes: Array) -> Array:
    """Codes of names, missing being one of them."""
    return np.where(np.isnan(codes), -1.0, codes)  # no name has this code


def _frequent(codes: Array) -> Array:
    values, counts = np.unique(without_gaps(codes), return_counts=True)
    return values[np.argsort(-counts, kind="stable")[:LEVELS]]
