"""The core of `compare`: cross-validation of selectors. In each fold, features are selected on the training rows only.

table ─► sample of rows ─► score all features, as the baseline
                        ─► time each selector on small parts ─► those that finish in time, the fastest first:
                           in each fold: select on the training rows ─► fit models ─► score on the test rows

BELIEF is timed and cross-validated before the others. The parts for timing grow until the total runtime can be
predicted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from belief._utils.lazy import importing
from belief._utils.validation import did_you_mean
from belief.comparison.comparison import OURS, Standing
from belief.comparison.scoring import score_features
from belief.comparison.selectors import SELECTORS, Part, Selector
from belief.method.arrays import Array
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION
from belief.progress import format_duration

FOLDS = 5
MIN_TRIAL_SECONDS = 0.5  # the total runtime can be predicted from a trial that takes longer than this
FIRST_TRIAL = (100, 25)  # rows and features
ALL_FEATURES_TRIAL = 10  # the time to score all features is predicted from 10 times as many as are selected
MAX_BASELINE_SHARE = 0.25  # share of the time limit for scoring all features; fewer folds are scored to stay within it
MAX_TRIALS_SHARE = 0.5  # share of the time limit after which trials do not grow any more
MARGIN = 0.3  # the time that is kept in reserve, as a share of the slowest fold, because the machine may get busy


class TooSlowError(Exception):
    """A selector would not finish within the time limit."""


def find_selectors(selectors: Sequence[str] | None) -> dict[str, Selector]:
    """Return the selectors with these names; None means all selectors."""
    names = list(SELECTORS) if selectors is None else [selectors] if isinstance(selectors, str) else list(selectors)
    for name in names:
        if name not in SELECTORS:
            near = did_you_mean(name, list(SELECTORS)) or f". Choose from {', '.join(map(repr, SELECTORS))}"
            raise ValueError(f"selectors: there is no selector {name!r}{near}.")
    if not names:
        raise ValueError("selectors is empty. Name at least one selector, or pass None to compare all selectors.")
    return {name: SELECTORS[name] for name in names}


def resolve_n_features(settings: Settings, whole: Part) -> int:
    """Return the number of features that each selector selects. For "auto", this is the number that BELIEF selects."""
    F = whole.X.shape[1]
    if settings.n_features_to_select == "auto":
        found = SELECTORS[OURS].choose(whole, "auto")
        return max(1, min(F - 1, len(found)))
    n = settings.resolve_n_features(F)
    if n >= F:
        raise ValueError(
            f"n_features_to_select={settings.n_features_to_select} selects all {F} features, so there is nothing to"
            " compare. Pass a smaller number."
        )
    return n


class Benchmark:
    """The cross-validation of selectors within a time limit."""

    def __init__(self, whole: Part, names: Sequence[str], n: int, deadline: float) -> None:
        self.whole, self.names, self.n, self.deadline = whole, names, n, deadline
        self.allowed = self.remaining
        self.scoring_seconds = 0.0  # the longest time to score a fold so far
        with importing():
            from sklearn.model_selection import KFold, StratifiedKFold
        kind = StratifiedKFold if whole.task == CLASSIFICATION else KFold
        shuffled = np.random.default_rng(whole.seed).permutation(len(whole.y))
        parts = [(shuffled[train], shuffled[test]) for train, test in kind(FOLDS).split(shuffled, whole.y[shuffled])]
        self.folds = [(whole.rows(train), whole.rows(test)) for train, test in parts]  # training and test part

    @property
    def remaining(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.perf_counter()

    def run(
        self, candidates: dict[str, Selector], report: Callable[[str], None]
    ) -> tuple[list[Standing], dict[str, str]]:
        """Cross-validate BELIEF, then the other selectors.

        Return the standings of the selectors that finished in time. For every other selector, return why it was
        skipped.
        """
        found: list[Standing] = []
        skipped: dict[str, str] = {}
        for names in ([name for name in candidates if (name == OURS) is ours] for ours in (True, False)):
            predicted = {}
            for name in names:
                report(f"timing {name}")
                try:
                    predicted[name] = self.predict_seconds(candidates[name])
                except (TooSlowError, ValueError) as error:
                    skipped[name] = str(error).rstrip(".")
            for name in sorted(predicted, key=lambda name: predicted[name]):
                report(f"comparing {name}")
                try:
                    found.append(self.measure(name, candidates[name], predicted[name]))
                except (TooSlowError, ValueError) as error:
                    skipped[name] = str(error).rstrip(".")
        return found, skipped

    def predict_seconds(self, selector: Selector) -> float:
        """Predict the seconds that all selections by a selector take, from trials on small parts of the table."""
        if self.whole.task not in selector.tasks:
            raise ValueError(f"does not support {self.whole.task}")
        if self.remaining <= 0:
            raise TooSlowError("was not tried, because no time was left")
        train = self.folds[0][0]
        m, F = train.X.shape
        size, before = FIRST_TRIAL, (0.0, 0.0)  # `before` is the work and the seconds of the last trial
        while True:
            rows, features = min(size[0], m), min(size[1], F)
            part = train.rows(np.arange(rows)).columns(features)
            n = min(self.n, features)
            try:
                took = _timed(selector, part, n)[1]
                if took > MIN_TRIAL_SECONDS:  # repeat a slow selection, because the first may include compilation
                    took = min(took, _timed(selector, part, n)[1])
            except ValueError:
                if (rows, features) == (m, F):
                    raise
                took = 0.0  # the part was too small for this selector
            done, whole = selector.work(rows, features), selector.work(m, F)
            is_late = self.remaining < (1 - MAX_TRIALS_SHARE) * self.allowed
            if before[0] and (took > MIN_TRIAL_SECONDS or done == whole or is_late):
                more = max(0.0, took - before[1]) / max(done - before[0], 1.0) * (whole - done)
                return (took + more) * (FOLDS + 1)
            size, before = (2 * size[0], 2 * size[1]), (done, took)

    def measure(self, name: str, selector: Selector, predicted: float) -> Standing:
        """Run a selector in each fold and on all rows; return its scores, runtime and selected features."""
        remaining, took, scores = self.remaining, [], []
        expected = predicted + FOLDS * self.scoring_seconds
        if expected > remaining:
            left = format_duration(max(0.0, remaining))
            raise TooSlowError(f"would take about {format_duration(expected)}, but only {left} are left")
        slowest = 0.0
        for train, test in self.folds:
            began = time.perf_counter()
            selected, seconds = _timed(selector, train, self.n)
            scores.append(score_features(train, test, selected))
            took.append(seconds)
            slowest = max(slowest, time.perf_counter() - began)
            self.scoring_seconds = max(self.scoring_seconds, time.perf_counter() - began - seconds)
            if slowest * (FOLDS - len(scores) + MARGIN) + max(took) > self.remaining:
                raise TooSlowError(
                    f"a fold took {format_duration(slowest)}, but only {format_duration(remaining)} were left"
                )
        by_fold, by_model = _summary(scores)
        names = [self.names[j] for j in selector.choose(self.whole, self.n)]
        return Standing(
            name,
            float(by_fold.mean()),
            float(by_fold.std(ddof=1)),
            by_fold.tolist(),
            by_model,
            float(np.median(took)),
            names,
        )

    def score_all_features(self) -> list[float]:
        """Return the score with all features in each fold.

        If there is little time, there are scores for some of the folds only, or an empty list.
        """
        F, start, allowed = self.whole.X.shape[1], time.perf_counter(), self.remaining
        few = min(F, ALL_FEATURES_TRIAL * self.n)
        if few < F:
            score_features(*self.folds[0], np.arange(few))
        if (time.perf_counter() - start) * F / few > self.remaining:
            return []
        scores: list[dict[str, float]] = []
        for train, test in self.folds:
            scores.append(score_features(train, test, np.arange(F)))
            each = (time.perf_counter() - start) / len(scores)
            if each * (len(scores) + 1) > MAX_BASELINE_SHARE * allowed:
                break
        return _summary(scores)[0].tolist()


def _timed(selector: Selector, part: Part, n: int) -> tuple[Array, float]:
    start = time.perf_counter()
    return selector.choose(part, n), time.perf_counter() - start


def _summary(scores: Sequence[dict[str, float]]) -> tuple[Array, dict[str, float]]:
    """Return the mean score of each fold, and the mean score of each model."""
    table = np.array([list(score.values()) for score in scores])
    return table.mean(axis=1), dict(zip(scores[0], table.mean(axis=0).tolist(), strict=True))
