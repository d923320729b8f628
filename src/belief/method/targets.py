"""What is to be explained, and what that makes of a pair of rows: how it is filed, and weighed.

The engines hold one number for each row, its target: the number of its class. They know no more of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from belief.method.arrays import Array


class Target(Protocol):
    """The target of all rows, as the method sees it."""

    @property
    def names(self) -> Array:
        """What the classes are called."""

    @property
    def counts(self) -> Array:
        """How many rows each has."""

    @property
    def P(self) -> Array:
        """Its share of the rows."""

    @property
    def n_groups(self) -> int:
        """The groups of which each gives neighbours, in a search by group."""

    @property
    def n_kinds(self) -> int:
        """The kinds of pairs."""

    def file(self, query: Array, neighbour: Array) -> tuple[Array, Array | None]:
        """The kind of each pair, and its weight if pairs have one, from the targets of both rows."""


@dataclass(frozen=True)
class Classes:
    """A class for each row: what the classes are called, and how many rows each has."""

    names: Array
    counts: Array

    @property
    def P(self) -> Array:
        return self.counts / self.counts.sum()

    @property
    def n_groups(self) -> int:
        return len(self.counts)

    @property
    def n_kinds(self) -> int:
        return 2 * len(self.counts)

    def file(self, query: Array, neighbour: Array) -> tuple[Array, None]:
        """2·c for a miss of a query of class c, 2·c + 1 for a hit."""
        return (2 * query + (query == neighbour)).astype(np.int64), None


def classes_of(names: Array, labels: Array) -> Classes:
    """The classes of rows whose class is given by its number."""
    return Classes(names, np.bincount(labels, minlength=len(names)))
