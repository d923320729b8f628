"""Sequential forward selection by the score J (equation 8 of the paper; section 6 of method.md).

In wide data, the redundancy of most features need not be measured. Redundancy never raises a score, so the score of a
feature is at most its relevance: a feature whose relevance is below the best score found so far cannot be next. If too
many features remain, lower bounds of their redundancy, at half the cost, exclude others. The selection is the same as
if all redundancies had been measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from belief.method.arrays import Array
from belief.method.redundancy.base import Measure, Rule
from belief.method.relevance import round_for_ties
from belief.method.significance import Eligibility, LeastScores

MIN_POOL = 16  # at the start, measure this number of features, or twice the number to select if that is larger
FEW_FEATURES = 64  # up to this number of features are measured without computing bounds first
MANY_FEATURES = 1024  # at most this number of features are measured at a time


@dataclass(frozen=True)
class Selection:
    """The selected features in order of selection, and the score J that each had when it was selected."""

    selected: Array
    scores: Array

    def insert_constants(self, constant: Array, place: int) -> Selection:
        """Insert constant features, with a score of 0, at a position of the selection."""
        return Selection(np.insert(self.selected, place, constant), np.insert(self.scores, place, constant * 0.0))

    def append_constants(self, constant: Array, n_select: int) -> Selection:
        """Fill the selection up to n_select features with constant ones, in the order of their indices."""
        return self.insert_constants(constant[: max(0, n_select - len(self.selected))], len(self.selected))


def initial_pool(order: Array, n_select: int, columns_at_once: int) -> Array:
    """Return the first features of `order`, whose redundancy is measured before the selection starts."""
    return order[: max(MIN_POOL, 2 * n_select, columns_at_once)]


def forward_selection(
    relevance: Array,
    w: Array,
    order: Array,
    n_select: int,
    measure: Measure,
    rule: Rule,
    given: Array,
    eligibility: Eligibility | None = None,
    at_once: int = FEW_FEATURES,
) -> Selection:
    """Select the given features, and then n_select others, each time the one with the largest score J.

    `relevance` are the normalised weights, and `order` the features to select from, by falling relevance. With some
    rules, the weights w break ties. `eligibility` excludes features during the selection, which ends when all are
    excluded. The first step measures the redundancy of `at_once` features; this number doubles at each step, up to
    FEW_FEATURES.
    """
    state = _State(relevance, w, order, measure, rule, eligibility, at_once)
    scores = state.start_with(given)
    n_select = min(n_select, len(state.remaining())) + len(given)
    while len(scores) < n_select:
        if state.is_decided():
            rest = state.remaining()[: n_select - len(scores)]
            return Selection(np.concatenate([state.selected, rest]).astype(np.int64), np.r_[scores, state.score(rest)])
        best, score = state.find_best(n_select)
        if score == -np.inf and scores:
            break
        scores.append(score)
        state.select(best, state.likely_next(n_select))
    return Selection(np.array(state.selected, np.int64), np.array(scores))


def select_per_class(
    relevance: Array,
    least: Sequence[LeastScores],
    w: Array,
    order: Array,
    n: int,
    measure: Measure,
    rule: Rule,
    given: Array,
    at_once: int = FEW_FEATURES,
) -> tuple[Selection, Array]:
    """Select n features for each class, in n rounds.

    In each round the classes take turns, and each selects the feature with the largest score for this class. Scores are
    reduced by the redundancy with all selected features, whichever class they were selected for. A class gets fewer
    than n features if no remaining feature separates it from the other classes.

    `relevance` are the normalised weights for each class, (classes, F). `least` are the lower limits of the scores for
    each class; it may be empty. Return the selection, and the class for which each feature was selected; -1 for given
    features.
    """
    state = _State(relevance[0], w, order, measure, rule, None, at_once, least)
    scores = state.start_with(given)
    classes = [-1] * len(given)
    for _ in range(n):
        for c, relevance_of_class in enumerate(relevance):
            state.relevance, state.least = relevance_of_class, least[c] if least else None
            if len(state.remaining()) and not state.is_decided():
                best, score = state.find_best(len(scores) + 1)
                state.select(best, state.best_of(relevance))
                scores.append(score)
                classes.append(c)
    return Selection(np.array(state.selected, np.int64), np.array(scores)), np.array(classes, np.int64)


class _State:
    """The state of a forward selection: the features that can still be selected, and bounds of their scores.

    The redundancy measure keeps a pool of the features whose redundancy it has measured. Scores of these features are
    exact; scores of features outside the pool are upper bounds.
    """

    def __init__(
        self,
        relevance: Array,
        w: Array,
        order: Array,
        measure: Measure,
        rule: Rule,
        eligibility: Eligibility | None,
        at_once: int,
        least: Sequence[LeastScores] = (),
    ) -> None:
        self.at_once, self.least = at_once, least[0] if least else None
        self.relevance, self.measure, self.rule, self.eligibility = relevance, measure, rule, eligibility
        # the largest redundancy of each feature with a selected feature
        self.max_redundancy = np.zeros(len(relevance) if eligibility or least else 0)
        self.tie_weights = round_for_ties(w)
        self.selected: list[int] = []
        is_inside = measure.column[order] >= 0
        self.inside, self.outside = np.sort(order[is_inside]), np.sort(order[~is_inside])
        self.accumulated = np.full(len(relevance), rule.initial)  # exact for features inside, a bound for those outside
        self.bounded: set[int] = set()  # the selected features whose lower bounds have been accumulated
        self.bounds: dict[int, Array] = {}  # likely next feature -> lower bounds of its redundancy with those outside

    def start_with(self, given: Array) -> list[float]:
        """Select the given features first; return the score J of each."""
        scores = []
        for j in given.tolist():
            if j in self.outside:
                self._admit(np.array([j]))
            elif self.measure.column[j] < 0:
                self.measure.extend(np.array([j]))
            scores.append(float(self.score(np.array([j]))[0]))
            self.select(j, given)
        return scores

    def is_decided(self) -> bool:
        """Return True if all remaining features have the smallest possible score, so that only ties are left."""
        if self.eligibility is not None:
            return False
        features = (x for x in (self.inside, self.outside) if len(x))
        return all((np.round(self.score(x), 10) <= self.rule.least).all() for x in features)

    def remaining(self) -> Array:
        """Return the features that are not selected yet, in the order in which ties are resolved."""
        rest = np.concatenate([self.inside, self.outside])
        weight = self.tie_weights[rest] if self.rule.ties_by_weight else np.zeros(len(rest))
        return rest[np.lexsort((rest, -weight))]

    def score(self, features: Array) -> Array:
        """Return the score J of features whose redundancy is measured, and an upper bound of it for other features."""
        J = self.rule.score(self.relevance[features], self.accumulated[features], len(self.selected))
        if self.eligibility is not None and self.selected:
            J = np.where(self.eligibility.mask(features, self.max_redundancy[features]), J, -np.inf)
        if self.least is not None:
            J = np.maximum(J, self.least.of(features, self.max_redundancy[features]))
        return J

    def _accumulate(self, features: Array, redundancy: Array) -> None:
        self.accumulated[features] = self.rule.accumulate(self.accumulated[features], redundancy)
        if len(self.max_redundancy):
            self.max_redundancy[features] = np.maximum(self.max_redundancy[features], redundancy)

    def likely_next(self, n_select: int) -> Array:
        J = np.round(self.score(self.inside), 10)
        return self.inside[np.argsort(-J, kind="stable")][: min(n_select - len(self.selected), FEW_FEATURES)]

    def best_of(self, relevance: Array) -> Array:
        """Return, for each class, the feature of the pool with the largest score, without repetitions.

        `relevance` has one line per class.
        """
        J = self.rule.score(relevance[:, self.inside], self.accumulated[self.inside], len(self.selected))
        return np.unique(self.inside[J.argmax(axis=1)]) if len(self.inside) else self.inside

    def find_best(self, n_select: int) -> tuple[int, float]:
        """Return the feature with the largest score J, and this score.

        The features with the largest upper bounds are measured first, until the largest exact score is above all other
        bounds. Ties go to the larger weight if the rule is `ties_by_weight`, and then to the smaller index.
        """
        while True:
            exact = self.score(self.inside)
            J, rivals = np.round(exact, 10), self.outside
            if len(self.outside):
                upper = np.round(self.score(self.outside), 10)
                rivals = self.outside[(upper >= J.max(initial=-np.inf)) & (upper > -np.inf)]
            if not len(rivals):
                best = np.flatnonzero(J.max() == J)
                if self.rule.ties_by_weight:
                    w = self.tie_weights[self.inside[best]]
                    best = best[w == w.max()]
                return int(self.inside[best[0]]), float(exact[best[0]])
            is_worth_bounding = len(rivals) > FEW_FEATURES and set(self.selected) - self.bounded
            if is_worth_bounding and self._bound(self.likely_next(n_select)):
                continue
            # also measure some features that will soon be rivals
            by_bound = self.outside[np.argsort(-upper, kind="stable")]
            self._admit(by_bound[: min(max(len(rivals), self.at_once), MANY_FEATURES)])
            self.at_once = max(self.at_once, min(2 * self.at_once, FEW_FEATURES))

    def select(self, feature: int, likely: Array) -> None:
        """Add a feature to the selection and update the redundancy of the others.

        `likely` are the features that may be selected next; measuring their redundancy at the same time saves work.
        """
        self.selected.append(feature)
        self._accumulate(self.measure.pool, self.measure.row(feature, likely))
        if feature in self.bounds:
            self._accumulate(self.outside, self.bounds.pop(feature))
            self.bounded.add(feature)
        self.inside = self.inside[self.inside != feature]

    def _admit(self, features: Array) -> None:
        """Add features to the pool, and measure their redundancy with the selected features."""
        self.measure.extend(features)
        stays = ~np.isin(self.outside, features)
        self.outside = self.outside[stays]
        self.bounds = {j: line[stays] for j, line in self.bounds.items()}
        self.inside = np.union1d(self.inside, features)
        self.accumulated[features] = self.rule.initial
        columns = self.measure.column[features]
        for j in self.selected:
            self._accumulate(features, self.measure.row(j, features[:0])[columns])

    def _bound(self, likely: Array) -> bool:
        """Compute lower bounds of redundancy for the features outside the pool; return False if the measure has none.

        The bounds are for the redundancy with each selected feature, and with each feature in `likely`, because these
        features are likely to be selected next.
        """
        to_bound = (set(self.selected) - self.bounded) | set(likely.tolist())
        new = np.array(sorted(to_bound - set(self.bounds)), np.int64)
        bounds = self.measure.lower_bounds(new, self.outside)
        if bounds is None:
            return False
        self.bounds.update(zip(new.tolist(), bounds, strict=True))
        for j in self.selected:
            if j in self.bounds:
                self._accumulate(self.outside, self.bounds.pop(j))
                self.bounded.add(j)
        return True
