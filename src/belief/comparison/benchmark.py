"""`compare`: cross-validate selectors, with selection inside the folds.

table ─► sample of rows ─► score all features, as the baseline
                        ─► time each selector on small parts ─► those that finish in time, the fastest first:
                           in each fold: select on the training rows ─► fit models ─► score on the test rows

BELIEF is timed and cross-validated before the others. The parts for timing grow until the total runtime can be
predicted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from belief._utils.lazy import importing
from belief._utils.text import print_message
from belief._utils.threads import count_threads
from belief._utils.validation import did_you_mean, is_real
from belief.api import is_spark_dataframe
from belief.comparison.comparison import OURS, Comparison, Standing
from belief.comparison.rows import sample_rows
from belief.comparison.scoring import score_features
from belief.comparison.selectors import SELECTORS, Part, Selector
from belief.data.columns import ColumnSelection
from belief.data.inputs import open_input, resolve_label
from belief.data.labels import check_task
from belief.engines.checks import check_resources
from belief.method.arrays import Array
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION
from belief.progress import format_duration

FOLDS = 5
MIN_TRIAL_SECONDS = 0.5  # a trial that takes longer is enough to predict the total runtime
FIRST_TRIAL = (100, 25)  # rows and features
ALL_FEATURES_TRIAL = 10  # times as many features as are selected predict the time to score all
MAX_BASELINE_SHARE = 0.25  # of the time for scoring all features; otherwise in fewer folds
MAX_TRIALS_SHARE = 0.5  # of the time, after which trials do not grow any more
MARGIN = 0.3  # of the slowest fold: the next one may be slower on a busy machine, and a selection from all rows is


class TooSlowError(Exception):
    """A selector would not finish in time."""


def compare(
    X: Any,
    y: Any = None,
    n_features_to_select: int | float | str = 10,
    *,
    task: str = "auto",
    label: str | int | None = None,
    drop: Any = (),
    candidates: Any = (),
    discrete_features: Any = "auto",
    separator: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    selectors: Sequence[str] | None = None,
    seconds: float = 60.0,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = None,
) -> Comparison:
    """Compare selectors on a table of your own, in about a minute.

    In each fold of a 5-fold cross-validation, every selector selects features on the training rows. Three models are
    then fitted to these features and scored on the test rows by macro F1 or R²: a linear model (SVM or ridge), five
    nearest neighbours, and gradient boosting. Selectors that would take too long are skipped, with the reason.

    Parameters
    ----------
    X : array, memory map, DataFrame, sparse matrix, a list of those as blocks, or the path of a file
        Any local input of :func:`belief.select`. Large tables are sampled to 3,000 rows, or fewer (at least 300) with
        more than 500 features.
    y : array of shape (n_rows,)
        The target, or the name or number of the target column of X.
    n_features_to_select : int, float or "auto", default=10
        The number or share of features to select; "auto" uses the number of features that BELIEF finds significant.
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of target, as in :func:`belief.select`.
    label, drop, candidates, discrete_features, separator, header, encoding
        The columns to read, as in :func:`belief.select`.
    selectors : list of str, default=None
        The selectors to compare. None: "BELIEF", "BELIEF (paper)" (with `belief.PAPER`), "ReliefF" (RReliefF for
        regression), "mRMR" (classification only), "F test", "mutual information", "random forest" and "L1 model" (a
        linear SVM, or the lasso).
    seconds : float, default=60.0
        The approximate time limit.
    n_jobs : int, default=None
        Threads, as in :func:`belief.select`.
    verbose : int, default=0
        1 prints the selector at work on stderr.
    random_state : int, RandomState, Generator or None, default=None
        The seed for rows, folds and selectors; None draws one, stored in `Comparison.seed`. Which selectors finish in
        time depends on the machine; their selections and scores do not.

    Returns
    -------
    Comparison

    Notes
    -----
    For scikit-learn's selectors and the models, missing numbers are replaced by the median, and a nominal feature is
    one-hot encoded with its ten most frequent levels; its score is the best of these columns (or the sum, for forests).
    The runtime is the median over the folds, so that one-time compilation does not count. The scores depend on the
    table and the seed: do not rely on small differences.

    See Also
    --------
    belief.plot.comparison : draw the comparison.

    Examples
    --------
    >>> import belief
    >>> found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4,
    ...                        selectors=["BELIEF", "mRMR"], random_state=0)
    >>> found.standings[0].score > max(found.all_features) - 0.05  # four of twelve columns are nearly as good as all
    True
    """
    start = time.perf_counter()
    settings = Settings(n_features_to_select=n_features_to_select, random_state=random_state)
    check_resources(n_jobs, 1024, verbose)
    check_task(task)
    taking_part = find_selectors(selectors)
    if not (is_real(seconds) and seconds > 0):
        raise ValueError(f"seconds must be a number above 0; got {seconds!r}.")
    if is_spark_dataframe(X):
        raise ValueError("Spark DataFrames are not supported. Pass X.sample(...).toPandas().")
    y, label = resolve_label(y, label)
    columns = ColumnSelection(label, drop, candidates, discrete_features, task, separator, header, encoding)
    opened, seed = open_input(X, y, columns), settings.draw_seed()
    whole, names, n_rows = sample_rows(opened, discrete_features, task, seed, count_threads(n_jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every fold would repeat them
        benchmark = Benchmark(whole, names, _resolve_n_features(settings, whole), start + seconds)
        report = print_message if verbose else lambda message: None
        report("scoring all features")
        all_features = benchmark.score_all_features()
        found, skipped = benchmark.run(taking_part, report)
    if not found:
        reason = " ".join(next(iter(skipped.items())))
        raise ValueError(f"No selector finishes within seconds={seconds:g}: {reason}. Allow more time.")
    if not all_features:
        skipped["all features"] = "scoring them would take too long"
    return Comparison(
        standings=sorted(found, key=lambda s: -s.score),
        all_features=all_features,
        skipped=skipped,
        task=whole.task,
        n_rows=n_rows,
        n_compared=len(whole.y),
        n_features=len(names),
        n_selected=benchmark.n,
        folds=FOLDS,
        seed=seed,
        seconds=time.perf_counter() - start,
    )


def find_selectors(selectors: Sequence[str] | None) -> dict[str, Selector]:
    """Return the named selectors; by default all."""
    names = list(SELECTORS) if selectors is None else [selectors] if isinstance(selectors, str) else list(selectors)
    for name in names:
        if name not in SELECTORS:
            near = did_you_mean(name, list(SELECTORS)) or f": there are {', '.join(map(repr, SELECTORS))}"
            raise ValueError(f"selectors: there is no selector {name!r}{near}.")
    if not names:
        raise ValueError("selectors is empty: name at least one, or pass None to compare all.")
    return {name: SELECTORS[name] for name in names}


def _resolve_n_features(settings: Settings, whole: Part) -> int:
    F = whole.X.shape[1]
    if settings.n_features_to_select == "auto":
        found = SELECTORS[OURS].choose(whole, "auto")
        return max(1, min(F - 1, len(found)))
    n = settings.resolve_n_features(F)
    if n >= F:
        raise ValueError(
            f"n_features_to_select={settings.n_features_to_select} leaves nothing to select from {F} features: select"
            " fewer."
        )
    return n


class Benchmark:
    """Cross-validation of selectors within a time limit."""

    def __init__(self, whole: Part, names: Sequence[str], n: int, deadline: float) -> None:
        self.whole, self.names, self.n, self.deadline = whole, names, n, deadline
        self.allowed = self.remaining
        self.scoring_seconds = 0.0  # to score a fold, the longest so far
        self.folds = list(_folds(whole))

    @property
    def remaining(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.perf_counter()

    def run(
        self, candidates: dict[str, Selector], report: Callable[[str], None]
    ) -> tuple[list[Standing], dict[str, str]]:
        """Return the standings of the selectors that finished, and why the others did not: BELIEF, then the others."""
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
        """Predict the seconds of all selections, from trials on small parts of the table."""
        if self.whole.task not in selector.tasks:
            raise ValueError(f"does not support {self.whole.task}")
        if self.remaining <= 0:
            raise TooSlowError("was not tried, because no time was left")
        train = self.folds[0][0]
        m, F = train.X.shape
        size, before = FIRST_TRIAL, (0.0, 0.0)  # work and seconds of the last trial
        while True:
            rows, features = min(size[0], m), min(size[1], F)
            took = self._trial(selector, train.rows(np.arange(rows)).columns(features))
            done, whole = selector.work(rows, features), selector.work(m, F)
            is_late = self.remaining < (1 - MAX_TRIALS_SHARE) * self.allowed
            if before[0] and (took > MIN_TRIAL_SECONDS or done == whole or is_late):
                more = max(0.0, took - before[1]) / max(done - before[0], 1.0) * (whole - done)
                return (took + more) * (FOLDS + 1)
            size, before = (2 * size[0], 2 * size[1]), (done, took)

    def _trial(self, selector: Selector, part: Part) -> float:
        """Time a selection; a slow one twice, because the first may have compiled code."""
        n = min(self.n, part.X.shape[1])
        try:
            took = _timed(selector, part, n)[1]
            return took if took <= MIN_TRIAL_SECONDS else min(took, _timed(selector, part, n)[1])
        except ValueError:
            if part.X.shape == self.folds[0][0].X.shape:
                raise
            return 0.0  # too few rows or columns may be unusable

    def measure(self, name: str, selector: Selector, predicted: float) -> Standing:
        """Select and score in each fold, and select from all rows."""
        remaining, took, scores = self.remaining, [], []
        expected = predicted + FOLDS * self.scoring_seconds
        if expected > remaining:
            raise TooSlowError(
                f"would take about {format_duration(expected)}, and {format_duration(max(0.0, remaining))} are left"
            )
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
                    f"a fold took {format_duration(slowest)}, and {format_duration(remaining)} were left"
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
        """Return the score with all features in each fold, in fewer folds if there is little time, or in none."""
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


def _folds(whole: Part) -> Iterator[tuple[Part, Part]]:
    """Split the rows into training and test parts, in random order."""
    with importing():
        from sklearn.model_selection import KFold, StratifiedKFold
    kind = StratifiedKFold if whole.task == CLASSIFICATION else KFold
    shuffled = np.random.default_rng(whole.seed).permutation(len(whole.y))
    for train, test in kind(FOLDS).split(shuffled, whole.y[shuffled]):
        yield whole.rows(shuffled[train]), whole.rows(shuffled[test])


def _timed(selector: Selector, part: Part, n: int) -> tuple[Array, float]:
    start = time.perf_counter()
    return selector.choose(part, n), time.perf_counter() - start


def _summary(scores: Sequence[dict[str, float]]) -> tuple[Array, dict[str, float]]:
    """Return the mean score of each fold, and the mean score of each model."""
    table = np.array([list(score.values()) for score in scores])
    return table.mean(axis=1), dict(zip(scores[0], table.mean(axis=0).tolist(), strict=True))
