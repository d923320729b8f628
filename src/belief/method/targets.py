"""What is to be explained, and what that makes of a pair of rows: how it is filed, and weighed.

The engines hold one number for each row, its target: the number of its class, or its rank. They know no more of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Tally
from belief.method.ranks import Ranks
from belief.method.relevance import influence_error, standard_error
from belief.method.settings import Settings

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = ("auto", CLASSIFICATION, REGRESSION)
QUANTILES = np.linspace(0.0, 1.0, 21)  # of a numeric target, to be told


class Target(Protocol):
    """The target of all rows, as the method sees it."""

    @property
    def task(self) -> str:
        """What it is for: "classification" or "regression"."""

    @property
    def names(self) -> Array:
        """What the classes are called; none are of numbers."""

    @property
    def counts(self) -> Array:
        """How many rows each class has; of numbers, how many are in the lower and the upper half."""

    @property
    def P(self) -> Array:
        """The share of the rows that each class has."""

    @property
    def quantiles(self) -> Array:
        """Of numbers, those below which 0, 5, ..., 100 % of the rows are; none are of classes."""

    @property
    def m(self) -> int:
        """The number of rows."""

    @property
    def n_groups(self) -> int:
        """The groups of which each gives neighbours, in a search by group."""

    @property
    def n_kinds(self) -> int:
        """The kinds of pairs."""

    @property
    def coupled(self) -> bool:
        """Whether kinds come in couples, far and near, so that what each query says is known."""

    def adapt(self, settings: Settings) -> Settings:
        """The settings as they apply to such a target."""

    def assign_kinds(self, query: Array, neighbour: Array) -> tuple[Array, Array | None]:
        """The kind of each pair, and its weight if pairs have one, from the targets of both rows."""

    def counted(self, targets: Array) -> Target:
        """The same of some rows only, which have these targets."""

    def weights(self, class_weight: Any, tally: Tally) -> Array:
        """v: what each couple of kinds counts, for all features or for each."""

    def error(self, tally: Tally, v: Array, w: Array) -> Array:
        """The standard error of w."""


@dataclass(frozen=True)
class Classes:
    """A class for each row: what the classes are called, and how many rows each has."""

    names: Array
    counts: Array

    task = CLASSIFICATION
    quantiles = np.zeros(0)

    @property
    def P(self) -> Array:
        return self.counts / self.counts.sum()

    @property
    def m(self) -> int:
        return int(self.counts.sum())

    @property
    def n_groups(self) -> int:
        return len(self.counts)

    @property
    def n_kinds(self) -> int:
        return 2 * len(self.counts)

    @property
    def coupled(self) -> bool:
        return True

    def adapt(self, settings: Settings) -> Settings:
        return settings

    def counted(self, targets: Array) -> Classes:
        return make_class_target(self.names, targets)

    def weights(self, class_weight: Any, tally: Tally) -> Array:
        """P(c) for "prior"; else 1/|C| or the mapping's, of the classes that have both hits and misses."""
        if class_weight == "prior":
            return self.P
        given = (
            np.ones(len(self.counts)) if class_weight == "balanced" else parse_class_weights(class_weight, self.names)
        )
        both = (tally.DC > 0) & (tally.EC > 0)
        v = np.where(both, given[:, None], 0.0)
        v = np.divide(v, v.sum(axis=0), out=np.zeros_like(v), where=v.sum(axis=0) > 0)
        return v[:, 0] if v.shape[1] == 1 else v

    def error(self, tally: Tally, v: Array, w: Array) -> Array:
        return standard_error(tally, v)

    def assign_kinds(self, query: Array, neighbour: Array) -> tuple[Array, None]:
        """2·c for a miss of a query of class c, 2·c + 1 for a hit."""
        return (2 * query + (query == neighbour)).astype(np.int64), None


@dataclass(frozen=True)
class Numeric:
    """A number for each of m rows, known by its rank t in [0, 1] (section 10 of the method).

    A pair is far to the degree τ = |t_q - t_r| and near to the degree 1 - τ. The neighbourhood is pooled, 2·k rows: as
    if the lower and the upper half of the numbers were two classes.
    """

    m: int
    quantiles: Array

    task = REGRESSION
    names = P = np.zeros(0)
    n_groups, n_kinds, coupled = 1, 2, True

    @property
    def counts(self) -> Array:
        return np.array([self.m - self.m // 2, self.m // 2])

    def counted(self, targets: Array) -> Numeric:
        return replace(self, m=len(targets))

    def adapt(self, settings: Settings) -> Settings:
        """There are no classes to sample or to search by, nor to weigh."""
        k = settings.resolve_n_neighbors_numeric(self.m)
        return replace(settings, n_neighbors=k, sampling="random", neighborhood="pooled", class_weight="balanced")

    def weights(self, class_weight: Any, tally: Tally) -> Array:
        return np.ones(1)

    def error(self, tally: Tally, v: Array, w: Array) -> Array:
        return influence_error(tally)

    def assign_kinds(self, query: Array, neighbour: Array) -> tuple[Array, Array]:
        return np.zeros(len(query), np.int64), np.abs(query - neighbour)


def parse_class_weights(class_weight: Mapping[Any, float], names: Array) -> Array:
    """The weights of the classes, from a mapping that names every one of them."""
    known = {str(name): float(weight) for name, weight in class_weight.items()}
    missing = [name for name in names.tolist() if str(name) not in known]
    if missing:
        raise ValueError(f"class_weight has no weight for the class {missing[0]!r}: name every class.")
    weights = np.array([known[str(name)] for name in names.tolist()])
    if not weights.sum() > 0:
        raise ValueError("class_weight gives no class a weight above 0.")
    return weights


def make_class_target(names: Array, labels: Array) -> Classes:
    """The classes of rows whose class is given by its number."""
    return Classes(names, np.bincount(labels, minlength=len(names)))


def rank_value_counts(values: Array, counts: Array) -> tuple[Numeric, Array]:
    """The target of rows of which `counts` have each of these numbers, and the ranks of the numbers."""
    ranks = Ranks.from_blocks(lambda: [np.repeat(values, counts)])
    return Numeric(ranks.m, ranks.quantiles(QUANTILES)), ranks.t(values)


def make_numeric_target(y: Array) -> tuple[Numeric, Array]:
    """The target of rows that have a number each, and the rank of each."""
    ranks = Ranks.from_blocks(lambda: [y])
    return Numeric(ranks.m, ranks.quantiles(QUANTILES)), ranks.t(y)
