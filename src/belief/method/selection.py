"""Section 6 of the method: sequential forward selection by J (equation 8 of the paper).

All features take part, but on wide data the redundancy of most of them need never be known. Since 0 <= I_α <= 1 and
θ >= 0, J(X_i) <= w(X_i): a feature whose w is below the best J found cannot win. Where that rules out too few, a lower
bound of I_α, at half the price, rules out the rest. The result is the same as if all had been measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belief.method.partials import Array
from belief.method.redundancy import Redundancy

FEW, MANY = 64, 1024  # features worth measuring without bounding them first, and as many as are measured at a time


@dataclass(frozen=True)
class Selection:
    """The features in order of selection, and J of each when it was selected."""

    selected: Array
    scores: Array


def first_pool(order: Array, n_select: int, at_once: int) -> Array:
    """The features whose redundancy is measured to begin with: as many as an engine would rather measure at once."""
    return order[: max(FEW, 2 * n_select, at_once)]


def forward_selection(
    w: Array, order: Array, n_select: int, redundancy: Redundancy | None, theta: float | str
) -> Selection:
    """Select n_select of the features in `order` (by falling w): each time the largest J.

    J(X_i) = w(X_i) - θ·Σ_{X_j in S} I_α(X_j; X_i), with w normalised and θ = 1/|S| for "mean".
    """
    n_select = min(n_select, len(order))
    if redundancy is None:
        return Selection(order[:n_select], w[order[:n_select]])
    race = _Race(w, order, redundancy)
    scores: list[float] = []
    while len(scores) < n_select:
        weight = 1.0 / max(len(scores), 1) if theta == "mean" else float(theta)
        best = race.best(weight, n_select)
        scores.append(float(w[best] - weight * race.paid[best]))
        race.take(best)
    return Selection(np.array(race.selected, np.int64), np.array(scores))


class _Race:
    """The features that may still win: those of the pool, exactly known, and those outside, bounded."""

    def __init__(self, w: Array, order: Array, redundancy: Redundancy) -> None:
        self.w, self.redundancy = w, redundancy
        self.selected: list[int] = []
        self.inside = np.intersect1d(redundancy.pool, order)
        self.outside = np.setdiff1d(order, redundancy.pool)
        self.paid = np.zeros(len(w))  # Σ_{X_j in S} I_α(X_j; X_i): exact inside, a lower bound outside
        self.bounded: set[int] = set()  # the selected features whose lower bounds are in `paid`
        self.floors: dict[int, Array] = {}  # feature that may be next -> lower bounds of its I_α with self.outside

    def best(self, weight: float, n_select: int) -> int:
        """The feature with the largest J; ties go to the smaller index, to which both lists are sorted."""
        while True:
            J = np.round(self.w[self.inside] - weight * self.paid[self.inside], 10)
            ceiling = np.round(self.w[self.outside] - weight * self.paid[self.outside], 10)
            rivals = self.outside[ceiling >= J.max(initial=-np.inf)]
            if not len(rivals):
                return int(self.inside[np.argmax(J)])
            if len(rivals) > FEW and set(self.selected) - self.bounded:
                left = min(n_select - len(self.selected), FEW)
                self._bound(self.inside[np.argsort(-J, kind="stable")][:left])
            else:  # a few more than the rivals, which will soon be rivals too
                by_ceiling = self.outside[np.argsort(-ceiling, kind="stable")]
                self._admit(by_ceiling[: min(max(len(rivals), FEW), MANY)])

    def take(self, feature: int) -> None:
        self.selected.append(feature)
        self.paid[self.redundancy.pool] += self.redundancy.row(feature)
        if feature in self.floors:
            self.paid[self.outside] += self.floors.pop(feature)
            self.bounded.add(feature)
        self.inside = self.inside[self.inside != feature]

    def _admit(self, features: Array) -> None:
        """Move features from outside into the pool."""
        self.redundancy.extend(features)
        stay = ~np.isin(self.outside, features)
        self.outside = self.outside[stay]
        self.floors = {j: line[stay] for j, line in self.floors.items()}
        self.inside = np.union1d(self.inside, features)
        self.paid[features] = 0.0
        columns = self.redundancy.place[features]
        for j in self.selected:
            self.paid[features] += self.redundancy.row(j)[columns]

    def _bound(self, likely: Array) -> None:
        """Bound the redundancy of the outside with the selected features, and with those likely to be next."""
        wanted = (set(self.selected) - self.bounded) | set(likely.tolist())
        new = np.array(sorted(wanted - set(self.floors)), np.int64)
        for j, line in zip(new.tolist(), self.redundancy.floor(new, self.outside), strict=True):
            self.floors[j] = line
        for j in self.selected:
            if j in self.floors:
                self.paid[self.outside] += self.floors.pop(j)
                self.bounded.add(j)
