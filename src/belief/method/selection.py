"""Section 6 of the method: sequential forward selection by J (equation 8 of the paper).

All features take part, but on wide data the redundancy of most of them need never be known. Redundancy never raises a
score, so J(X_i) <= w(X_i): a feature whose w is below the best J found cannot win. Where that rules out too few, a
lower bound of the redundancy, at half the price, rules out the rest. The result is the same as if all had been
measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belief.method.arrays import Array
from belief.method.confidence import Eligibility
from belief.method.redundancy.base import Measure, Rule
from belief.method.relevance import comparable

AT_FIRST = 16  # features measured to begin with, or twice as many as are asked for if that is more
FEW, MANY = 64, 1024  # features worth measuring without bounding them first, and as many as are measured at a time


@dataclass(frozen=True)
class Selection:
    """The features in order of selection, and J of each when it was selected."""

    selected: Array
    scores: Array


def first_pool(order: Array, n_select: int, columns_at_once: int) -> Array:
    """The features whose redundancy is measured to begin with: as many as an engine would rather measure at once."""
    return order[: max(AT_FIRST, 2 * n_select, columns_at_once)]


def forward_selection(
    w: Array, order: Array, n_select: int, measure: Measure, rule: Rule, weights: Array | None = None,
    stands: Eligibility | None = None,
) -> Selection:  # fmt: skip
    """Select n_select of the features in `order` (by falling w): each time the largest J, by the rule.

    `w` are the weights as scores; `weights` as they are, by which ties may go; `stands` says which features may still
    be selected, and ends the selection where none may.
    """
    n_select = min(n_select, len(order))
    race = _Race(w, order, measure, rule, weights, stands)
    scores: list[float] = []
    while len(scores) < n_select:
        best, score = race.best(n_select)
        if score == -np.inf and scores:
            break
        scores.append(score)
        race.take(best, n_select)
    return Selection(np.array(race.selected, np.int64), np.array(scores))


class _Race:
    """The features that may still win: those of the pool, exactly known, and those outside, bounded."""

    def __init__(
        self, w: Array, order: Array, measure: Measure, rule: Rule, weights: Array | None, stands: Eligibility | None
    ) -> None:
        self.w, self.measure, self.rule, self.stands = w, measure, rule, stands
        self.most = np.zeros(len(w) if stands else 0)  # the largest redundancy with a selected feature
        self.weights = w if weights is None else comparable(weights)
        self.selected: list[int] = []
        self.inside = np.intersect1d(measure.pool, order)
        self.outside = np.setdiff1d(order, measure.pool)
        self.gathered = np.full(len(w), rule.start)  # redundancy with the selected: exact inside, a bound outside
        self.bounded: set[int] = set()  # the selected features whose lower bounds have been gathered
        self.floors: dict[int, Array] = {}  # feature that may be next -> lower bounds of its redundancy with outside

    def _score(self, features: Array) -> Array:
        J = self.rule.score(self.w[features], self.gathered[features], len(self.selected))
        if self.stands is not None and self.selected:
            J = np.where(self.stands.of(features, self.most[features]), J, -np.inf)
        return J

    def _gather(self, features: Array, row: Array) -> None:
        self.gathered[features] = self.rule.gather(self.gathered[features], row)
        if self.stands is not None:
            self.most[features] = np.maximum(self.most[features], row)

    def _likely(self, n_select: int) -> Array:
        """The features that may be selected next."""
        J = np.round(self._score(self.inside), 10)
        return self.inside[np.argsort(-J, kind="stable")][: min(n_select - len(self.selected), FEW)]

    def best(self, n_select: int) -> tuple[int, float]:
        """The feature with the largest J, and J; both lists are sorted by index, to the smaller of which ties go."""
        while True:
            exact = self._score(self.inside)
            J, ceiling = np.round(exact, 10), np.round(self._score(self.outside), 10)
            rivals = self.outside[(ceiling >= J.max(initial=-np.inf)) & (ceiling > -np.inf)]
            if not len(rivals):
                at = self._first(J)
                return int(self.inside[at]), float(exact[at])
            if len(rivals) > FEW and set(self.selected) - self.bounded and self._bound(self._likely(n_select)):
                continue
            # a few more than the rivals, which will soon be rivals too
            by_ceiling = self.outside[np.argsort(-ceiling, kind="stable")]
            self._admit(by_ceiling[: min(max(len(rivals), FEW), MANY)])

    def _first(self, J: Array) -> int:
        """Where the largest J is among those inside; a tie goes to the larger w, if the rule says so."""
        best = np.flatnonzero(J.max() == J)
        if self.rule.ties_by_weight:
            w = self.weights[self.inside[best]]
            best = best[w == w.max()]
        return int(best[0])

    def take(self, feature: int, n_select: int) -> None:
        """Select a feature: what repeats it gathers that."""
        self.selected.append(feature)
        self._gather(self.measure.pool, self.measure.row(feature, self._likely(n_select)))
        if feature in self.floors:
            self._gather(self.outside, self.floors.pop(feature))
            self.bounded.add(feature)
        self.inside = self.inside[self.inside != feature]

    def _admit(self, features: Array) -> None:
        """Move features from outside into the pool."""
        self.measure.extend(features)
        stay = ~np.isin(self.outside, features)
        self.outside = self.outside[stay]
        self.floors = {j: line[stay] for j, line in self.floors.items()}
        self.inside = np.union1d(self.inside, features)
        self.gathered[features] = self.rule.start
        columns = self.measure.place[features]
        for j in self.selected:
            self._gather(features, self.measure.row(j, features[:0])[columns])

    def _bound(self, likely: Array) -> bool:
        """Bound the redundancy of the outside with the selected features, and with those likely to be next."""
        wanted = (set(self.selected) - self.bounded) | set(likely.tolist())
        new = np.array(sorted(wanted - set(self.floors)), np.int64)
        floors = self.measure.floor(new, self.outside)
        if floors is None:
            return False
        self.floors.update(zip(new.tolist(), floors, strict=True))
        for j in self.selected:
            if j in self.floors:
                self._gather(self.outside, self.floors.pop(j))
                self.bounded.add(j)
        return True
