"""`compare`: the same contest for every selector, with selection inside the folds of a cross-validation.

table ─► some rows ─► a trial of each selector ─► those that end in time, ours and then the quickest first:
                      of each fold: select from the training rows ─► judges learn ─► score on the rows held back

The trial is grown until it says how long the whole would take.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from belief._utils.lazy import importing
from belief._utils.text import print_message
from belief._utils.threads import count_threads
from belief._utils.validation import did_you_mean, is_real
from belief.api import is_spark_dataframe
from belief.comparison.comparison import OURS, Comparison, Standing
from belief.comparison.entrants import ENTRANTS, Entrant, Part
from belief.comparison.judging import judged
from belief.comparison.rows import Rows, rows_of
from belief.data.columns import ColumnSelection
from belief.data.inputs import open_input, resolve_label
from belief.data.labels import check_task
from belief.engines.checks import check_resources
from belief.method.arrays import Array
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION
from belief.progress import format_duration

FOLDS = 5
LONG_ENOUGH = 0.5  # seconds of a trial from which the time of the whole can be told
FIRST_TRIAL = (100, 25)  # rows and features
TEN_TIMES = 10  # as many features as are selected say how long judging all would take
PATIENCE = 1.5  # times its share of the time, before a selector that has begun is given up


class TooSlowError(Exception):
    """A selector would not end in time."""


def compare(
    X: Any,
    y: Any = None,
    n_features_to_select: int | float | str = 10,
    *,
    task: str = "auto",
    label: str | int | None = None,
    drop: Any = (),
    keep: Any = (),
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

    Each selects features from four fifths of the rows; three models that see only these learn from the same rows, and
    are judged on the last fifth, by macro F1 or by R²: a linear one (SVM, ridge), five nearest neighbours, and boosted
    trees. That is done for each fifth. A selector that would take too long is left out, and named with the reason.

    Parameters
    ----------
    X : array, memory map, DataFrame, sparse matrix, a list of those as blocks, or the path of a file
        As :func:`belief.select` takes it on one machine. Of a large table 3,000 rows are compared on, drawn at random,
        or fewer where there are more than 500 features, down to 300.
    y : array of shape (n_rows,)
        The class of each row, or the number to predict; or the name or the number of the column of X that holds it.
    n_features_to_select : int, float or "auto", default=10
        How many features each is to select, or which share of them; "auto": as many as BELIEF can tell from noise.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds classes or numbers, as in :func:`belief.select`.
    label, drop, keep, discrete_features, separator, header, encoding
        What to read of X, as in :func:`belief.select`.
    selectors : list of str, default=None
        Which to compare. None: "BELIEF", "BELIEF (paper)" (with `belief.PAPER`), "ReliefF" (RReliefF of numbers),
        "mRMR" (of classes), "F test", "mutual information", "random forest" and "L1 model" (a linear SVM, or the
        lasso).
    seconds : float, default=60.0
        How long it may take, roughly.
    n_jobs : int, default=None
        Threads, as in :func:`belief.select`.
    verbose : int, default=0
        1 says on stderr which selector is at work.
    random_state : int, RandomState, Generator or None, default=None
        The seed of rows, folds and selectors; None draws one, which `Comparison.seed` tells. Which selectors end in
        time depends on the machine; what each selects, and its score, does not.

    Returns
    -------
    Comparison

    Notes
    -----
    scikit-learn's selectors and the judges are given numbers without gaps: a missing one is the median, and a nominal
    feature becomes a column for each of its ten most frequent names, of which the best counts (of a forest, all). The
    seconds of a selection are the median over the folds, so that what is compiled once does not count. Score and spread
    are of one table, and of one seed: small differences mean nothing.

    See Also
    --------
    belief.plot.comparison : what it found as a picture.

    Examples
    --------
    >>> import belief
    >>> found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4,
    ...                        selectors=["BELIEF", "mRMR"], random_state=0)
    >>> found.standings[0].score > found.everything - 0.05  # four of twelve columns do nearly as well as all
    True
    """
    start = time.perf_counter()
    settings = Settings(n_features_to_select=n_features_to_select, random_state=random_state)
    check_resources(n_jobs, 1024, verbose)
    check_task(task)
    entrants = entrants_of(selectors)
    if not (is_real(seconds) and seconds > 0):
        raise ValueError(f"seconds must be a number above 0; got {seconds!r}.")
    if is_spark_dataframe(X):
        raise ValueError("compare is for tables on one machine; of a Spark DataFrame pass X.sample(...).toPandas().")
    y, label = resolve_label(y, label)
    columns, seed = (
        ColumnSelection(label, drop, keep, discrete_features, task, separator, header, encoding),
        settings.draw_seed(),
    )
    rows = rows_of(open_input(X, y, columns), discrete_features, task, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of every fold again
        whole = Part(rows.X, rows.y, rows.discrete, rows.task, seed, count_threads(n_jobs))
        contest = Contest(whole, rows.names, _how_many(settings, whole), start + seconds)
        found, left_out = contest.run(entrants, print_message if verbose else lambda said: None)
        everything = contest.everything() if found else None
    if not found:
        raise ValueError(f"No selector ends within seconds={seconds:g}: {_first(left_out)}; allow more.")
    if everything is None:
        left_out["all features"] = "judging them would take too long"
    return _comparison(rows, contest, found, everything, left_out, time.perf_counter() - start)


def entrants_of(selectors: Sequence[str] | None) -> dict[str, Entrant]:
    """The selectors of these names, or the usual ones."""
    names = list(ENTRANTS) if selectors is None else [selectors] if isinstance(selectors, str) else list(selectors)
    for name in names:
        if name not in ENTRANTS:
            near = did_you_mean(name, list(ENTRANTS)) or f": there are {', '.join(map(repr, ENTRANTS))}"
            raise ValueError(f"selectors: there is no selector {name!r}{near}.")
    if not names:
        raise ValueError("selectors names none: name some, or leave it out.")
    return {name: ENTRANTS[name] for name in names}


def _how_many(settings: Settings, whole: Part) -> int:
    F = whole.X.shape[1]
    if settings.n_features_to_select == "auto":
        found = ENTRANTS[OURS].choose(whole, "auto")
        return max(1, min(F - 1, len(found)))
    n = settings.resolve_n_features(F)
    if n >= F:
        raise ValueError(
            f"n_features_to_select={settings.n_features_to_select} leaves nothing to choose among {F} features: ask for"
            " fewer."
        )
    return n


def _first(left_out: dict[str, str]) -> str:
    name, why = next(iter(left_out.items()))
    return f"{name}, for one, {why}"


def _comparison(
    rows: Rows, contest: Contest, found: Iterable[Standing], everything: float | None, left_out: dict[str, str],
    took: float,
) -> Comparison:  # fmt: skip
    return Comparison(
        standings=sorted(found, key=lambda s: -s.score),
        everything=everything,
        left_out=left_out,
        task=rows.task,
        n_rows=rows.n_rows,
        n_compared=len(rows.y),
        n_features=rows.X.shape[1],
        n_selected=contest.n,
        folds=FOLDS,
        seed=contest.whole.seed,
        seconds=took,
    )


class Contest:
    """The folds, the clock, and what is done with each selector."""

    def __init__(self, whole: Part, names: Sequence[str], n: int, deadline: float) -> None:
        self.whole, self.names, self.n, self.deadline = whole, names, n, deadline
        self.folds = list(_folds(whole))

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.deadline - time.perf_counter()

    def run(self, entrants: dict[str, Entrant], tell: Callable[[str], None]) -> tuple[list[Standing], dict[str, str]]:
        """Those that ended in time, and why the others did not."""
        found, left_out, expected = [], {}, {}
        for name, entrant in entrants.items():
            tell(f"trying {name}")
            try:
                expected[name] = self.expected(entrant)
            except ValueError as error:
                left_out[name] = str(error).rstrip(".")
        for name in sorted(expected, key=lambda name: (name != OURS, expected[name])):
            tell(f"comparing {name}")
            try:
                found.append(self.standing(name, entrants[name], expected[name]))
            except (TooSlowError, ValueError) as error:
                left_out[name] = str(error).rstrip(".")
        return found, left_out

    def expected(self, entrant: Entrant) -> float:
        """The seconds of all selections, from a trial on as few rows and features as tell."""
        if self.whole.task not in entrant.tasks:
            raise ValueError(f"is not for {self.whole.task}")
        train = self.folds[0][0]
        m, F = train.X.shape
        size, before = FIRST_TRIAL, (0.0, 0.0)  # the work and the seconds of the last trial
        while True:
            rows, features = min(size[0], m), min(size[1], F)
            took = self._trial(entrant, train.rows(np.arange(rows)).columns(features))
            done, whole = entrant.work(rows, features), entrant.work(m, F)
            if before[0] and (took > LONG_ENOUGH or done == whole):
                more = max(0.0, took - before[1]) / max(done - before[0], 1.0) * (whole - done)  # what grows, grows on
                return (took + more) * (FOLDS + 1)
            size, before = (2 * size[0], 2 * size[1]), (done, took)

    def _trial(self, entrant: Entrant, part: Part) -> float:
        """The seconds of one selection; twice where it took long, for what is compiled is compiled once."""
        n = min(self.n, part.X.shape[1])
        try:
            took = _timed(entrant, part, n)[1]
            return took if took <= LONG_ENOUGH else min(took, _timed(entrant, part, n)[1])
        except ValueError:
            if part.X.shape == self.folds[0][0].X.shape:
                raise
            return 0.0  # a few rows or columns may be of no use; more are

    def standing(self, name: str, entrant: Entrant, expected: float) -> Standing:
        """Select from each fold and judge, and select from all rows."""
        left, began, took, marks = self.left, time.perf_counter(), [], []
        if expected > PATIENCE * left:
            raise TooSlowError(
                f"would take about {format_duration(expected)}, and {format_duration(max(0.0, left))} are left"
            )
        for train, test in self.folds:
            selected, seconds = _timed(entrant, train, self.n)
            took.append(seconds)
            marks.append(judged(train, test, selected))
            whole = (time.perf_counter() - began) / len(marks) * (FOLDS + 1)
            if whole > PATIENCE * max(left, 0.0) and len(marks) < FOLDS:
                raise TooSlowError(
                    f"a fold took {format_duration(whole / (FOLDS + 1))}, and {format_duration(left)} were left"
                )
        by_fold, by_judge = _summary(marks)
        names = [self.names[j] for j in entrant.choose(self.whole, self.n)]
        return Standing(
            name, float(by_fold.mean()), float(by_fold.std(ddof=1)), by_fold.tolist(), by_judge, float(np.median(took)),
            names,
        )  # fmt: skip

    def everything(self) -> float | None:
        """The score of all features, where there is time for it."""
        F = self.whole.X.shape[1]
        few = min(F, TEN_TIMES * self.n)
        start = time.perf_counter()
        first = judged(*self.folds[0], np.arange(few)) if self.left > 0 else {}
        if (time.perf_counter() - start) * F / few * FOLDS > self.left:
            return None
        marks = [first] if few == F else []
        marks += [judged(train, test, np.arange(F)) for train, test in self.folds[len(marks) :]]
        return float(_summary(marks)[0].mean())


def _folds(whole: Part) -> Iterator[tuple[Part, Part]]:
    """The rows to learn from, in any order, and those held back."""
    with importing():
        from sklearn.model_selection import KFold, StratifiedKFold
    kind = StratifiedKFold if whole.task == CLASSIFICATION else KFold
    shuffled = np.random.default_rng(whole.seed).permutation(len(whole.y))
    for train, test in kind(FOLDS).split(shuffled, whole.y[shuffled]):
        yield whole.rows(shuffled[train]), whole.rows(shuffled[test])


def _timed(entrant: Entrant, part: Part, n: int) -> tuple[Array, float]:
    start = time.perf_counter()
    return entrant.choose(part, n), time.perf_counter() - start


def _summary(marks: Sequence[dict[str, float]]) -> tuple[Array, dict[str, float]]:
    """The mean of the judges in each fold, and the mean over the folds of each judge."""
    table = np.array([list(mark.values()) for mark in marks])
    return table.mean(axis=1), dict(zip(marks[0], table.mean(axis=0).tolist(), strict=True))
