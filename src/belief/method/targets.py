"""The target to be predicted, classes or a number, and how it determines the kind and the weight of a pair of rows.

Engines hold one number for each row: the index of its class, or its rank. They know nothing else about the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Tally
from belief.method.ranks import Ranks
from belief.method.relevance import influence_error, standard_error
from belief.method.settings import Settings

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = ("auto", CLASSIFICATION, REGRESSION)
QUANTILES = np.linspace(0.0, 1.0, 21)  # the quantiles of a numeric target that are displayed


@dataclass(frozen=True)
class Classes:
    """A target of classes. `shares` are the weighted shares of the classes if rows have weights."""

    names: Array
    counts: Array  # the number of rows of each class
    shares: Array | None = None

    task = CLASSIFICATION
    quantiles = np.zeros(0)
    coupled = True  # kind 2·c has the misses and kind 2·c + 1 the hits of class c, so engines compute error sums too

    @property
    def P(self) -> Array:
        """The share of each class."""
        return self.counts / self.counts.sum() if self.shares is None else self.shares

    @property
    def m(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def n_kinds(self) -> int:
        """The number of kinds of pairs: misses and hits of each class."""
        return 2 * len(self.counts)

    def adapt(self, settings: Settings) -> Settings:
        """Return the settings, with replacements for those that this target does not support."""
        return settings

    def counted(self, targets: Array) -> Classes:
        """Return a target of the same type for some of the rows, given the class index of each."""
        return make_class_target(self.names, targets)

    def weights(self, class_weight: Any, tally: Tally) -> Array:
        """Return v, the weights of the classes in the relevance, for all features or for each feature.

        They are P(c) for "prior", otherwise equal weights or the weights of the mapping. Except for "prior", classes
        without hits or without misses have a weight of 0, and the sum of the weights is 1.
        """
        if class_weight == "prior":
            return self.P
        if class_weight == "balanced":
            weights = np.ones(len(self.counts))
        else:
            weights = parse_class_weights(class_weight, self.names)
        has_both = (tally.DC > 0) & (tally.EC > 0)
        v = np.where(has_both, weights[:, None], 0.0)
        v = np.divide(v, v.sum(axis=0), out=np.zeros_like(v), where=v.sum(axis=0) > 0)
        return v[:, 0] if v.shape[1] == 1 else v

    def error(self, tally: Tally, v: Array, w: Array) -> Array:
        """Return the standard error of the relevance w, given the weights v of the classes."""
        return standard_error(tally, v) if len(tally.spread) == 2 else influence_error(tally, v)

    def assign_kinds(self, query: Array, neighbour: Array) -> tuple[Array, None]:
        """Return kind 2·c for each miss of a query of class c, and kind 2·c + 1 for each hit; no weights."""
        return (2 * query + (query == neighbour)).astype(np.int64), None


@dataclass(frozen=True)
class Numeric:
    """A target of numbers, each represented by its rank t in [0, 1] (section 10 of method.md).

    A pair is a miss to the degree τ = |t_q - t_r| and a hit to the degree 1 - τ. Neighbourhoods are pooled and have 2·k
    rows, as if the lower and the upper half of the numbers were two classes.
    """

    m: int
    quantiles: Array  # 0, 5, ..., 100 %

    task = REGRESSION
    names = P = np.zeros(0)
    n_kinds, coupled = 2, True

    @property
    def counts(self) -> Array:
        """The numbers of rows with a small and with a large target, which differ by at most one."""
        return np.array([self.m - self.m // 2, self.m // 2])

    def counted(self, targets: Array) -> Numeric:
        return replace(self, m=len(targets))

    def adapt(self, settings: Settings) -> Settings:
        """Return the settings, with replacements for those that refer to classes."""
        k = settings.resolve_n_neighbors_numeric(self.m)
        return replace(settings, n_neighbors=k, sampling="random", neighborhood="pooled", class_weight="balanced")

    def weights(self, class_weight: Any, tally: Tally) -> Array:
        return np.ones(1)

    def error(self, tally: Tally, v: Array, w: Array) -> Array:
        return influence_error(tally, v)

    def assign_kinds(self, query: Array, neighbour: Array) -> tuple[Array, Array]:
        return np.zeros(len(query), np.int64), np.abs(query - neighbour)


Target = Classes | Numeric


def parse_class_weights(class_weight: Mapping[Any, float], names: Array) -> Array:
    """Return the weight of each class, divided by the largest weight, from a mapping of class names to weights."""
    by_name = {str(name): float(weight) for name, weight in class_weight.items()}
    missing = [name for name in names.tolist() if str(name) not in by_name]
    if missing:
        raise ValueError(f"class_weight has no entry for class {missing[0]!r}. Add one for every class.")
    weights = np.array([by_name[str(name)] for name in names.tolist()])
    if not weights.max() > 0:
        raise ValueError("class_weight has no positive weight. Give at least one class a weight above 0.")
    return weights / weights.max()  # so that their sum is finite


def make_class_target(names: Array, labels: Array) -> Classes:
    """Return the target of classes, given their names and the class index of each row."""
    return Classes(names, np.bincount(labels, minlength=len(names)))


def make_numeric_target(y: Array, counts: Array | None = None) -> tuple[Numeric, Array]:
    """Return the target with the numbers y, and the rank of each; with `counts`, y[i] occurs counts[i] times."""
    ranks = Ranks.from_blocks(lambda: [y if counts is None else np.repeat(y, counts)])
    return Numeric(ranks.m, ranks.quantiles(QUANTILES)), ranks.t(y)
