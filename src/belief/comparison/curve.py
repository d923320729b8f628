"""`score_by_size`: the cross-validated score of models by the number of selected features."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from belief._utils.text import format_html_table, format_table
from belief._utils.threads import count_threads
from belief._utils.validation import is_count, is_real
from belief.comparison.benchmark import FOLDS, Benchmark
from belief.comparison.comparison import OURS
from belief.comparison.rows import sample_rows
from belief.comparison.scoring import score_features
from belief.comparison.selectors import SELECTORS
from belief.data.columns import ColumnSelection
from belief.data.inputs import open_input, resolve_label
from belief.data.labels import check_task
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION

N_SIZES = 12  # how many numbers of features are tried, spread evenly on a logarithmic scale


@dataclass(frozen=True, kw_only=True)
class SizeCurve:
    """The score of models by the number of selected features, which is displayed as a table.

    Attributes
    ----------
    sizes : list of int
        The numbers of features.
    scores, spread : list of float
        Macro F1 or R² on the test rows: the mean over folds and models, and the standard deviation over the folds.
    automatic : int
        The number of features that `n_features_to_select="auto"` selects.
    all_features : float or None
        The score with all features; None if there was no time left to compute it.
    n_features, folds, seed : int
        The number of all features, the number of folds, and the seed.
    task : str
        "classification" or "regression".
    seconds : float
        The total runtime.

    See Also
    --------
    belief.plot.score_by_size : draw the curve.

    Examples
    --------
    >>> import belief
    >>> curve = belief.score_by_size(str(belief.datasets.CHURN), label="left", max_features=4, random_state=0)
    >>> len(curve.sizes) == len(curve.scores)
    True
    """

    sizes: list[int]
    scores: list[float]
    spread: list[float]
    automatic: int
    all_features: float | None
    n_features: int
    folds: int
    seed: int
    task: str
    seconds: float

    @property
    def measure(self) -> str:
        """The name of the score: "macro F1" or "R²"."""
        return "macro F1" if self.task == CLASSIFICATION else "R²"

    def describe(self) -> str:
        """Return a sentence on the scores with the automatic number of features, with the best number, and with all."""
        at, best = self.sizes.index(self.automatic), int(np.argmax(self.scores))
        text = f"With {self.automatic:,} features, the number that 'auto' selects, models reach {self.measure}"
        text += f" {self.scores[at]:.3f} ± {self.spread[at]:.3f}"
        if best != at:
            text += f"; the best mean is {self.scores[best]:.3f}, with {self.sizes[best]:,} features"
        if self.all_features is not None:
            text += f"; all {self.n_features:,} features reach {self.all_features:.3f}"
        return f"{text}."

    def __repr__(self) -> str:
        return f"{self.describe()}\n\n{format_table(self._rows())}"

    def _repr_html_(self) -> str:
        return f"<p>{self.describe()}</p>{format_html_table(self._rows())}"

    def _rows(self) -> list[list[str]]:
        found = zip(self.sizes, self.scores, self.spread, strict=True)
        rows = [[f"{n:,}", f"{score:.3f} ± {spread:.3f}"] for n, score, spread in found]
        rows += [] if self.all_features is None else [[f"all {self.n_features:,}", f"{self.all_features:.3f}"]]
        return [["features", self.measure], *rows]


def score_by_size(
    X: Any,
    y: Any = None,
    max_features: int = 20,
    *,
    task: str = "auto",
    label: str | int | None = None,
    drop: Any = (),
    discrete_features: Any = "auto",
    seconds: float = 60.0,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> SizeCurve:
    """Score models by the number of selected features, to see how many suffice.

    In each fold of a 5-fold cross-validation, features are selected on the training rows, and the first 1, 2, 3, ... of
    them are scored as in :func:`belief.compare`.

    Parameters
    ----------
    X : array, memory map, DataFrame, sparse matrix, a list of such blocks, or the path of a file
        Any local input of :func:`belief.select`. Large tables are sampled as in :func:`belief.compare`.
    y : array of shape (n_rows,)
        The target, or the name or index of the target column of X.
    max_features : int, default=20
        The largest number of features to score, or the number that `n_features_to_select="auto"` selects if it is
        larger.
    task, label, drop, discrete_features
        The task and the columns, as in :func:`belief.select`.
    seconds : float, default=60.0
        The approximate time limit. If it is short, fewer different numbers of features are scored.
    n_jobs : int, default=None
        The number of threads, as in :func:`belief.select`.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sampled rows, the folds and the selections.

    Returns
    -------
    SizeCurve

    See Also
    --------
    belief.plot.score_by_size : draw the curve.

    Examples
    --------
    >>> import belief
    >>> curve = belief.score_by_size(str(belief.datasets.CHURN), label="left", max_features=6, random_state=0)
    >>> curve.automatic in curve.sizes
    True
    """
    start = time.perf_counter()
    check_task(task)
    for name, value, is_valid, allowed in (
        ("max_features", max_features, is_count, "an integer of at least 1"),
        ("seconds", seconds, lambda x: is_real(x) and x > 0, "a number above 0"),
    ):
        if not is_valid(value):
            raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    y, label = resolve_label(y, label)
    columns = ColumnSelection(label, drop=drop, discrete_features=discrete_features, task=task)
    opened, seed = open_input(X, y, columns), Settings(random_state=random_state).draw_seed()
    whole, names, _ = sample_rows(opened, discrete_features, task, seed, count_threads(n_jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # otherwise, warnings would be repeated in every fold
        automatic = max(1, len(SELECTORS[OURS].choose(whole, "auto")))
        n = min(len(names), max(max_features, automatic))
        benchmark = Benchmark(whole, names, n, start + seconds)
        all_features = benchmark.score_all_features()
        sizes = sorted({*np.geomspace(1, n, min(n, N_SIZES)).round().astype(int).tolist(), automatic})
        scores: list[dict[int, float]] = []  # by size, for each fold
        for train, test in benchmark.folds:
            began = time.perf_counter()
            selected = SELECTORS[OURS].choose(train, benchmark.n)
            models = {size: score_features(train, test, selected[:size]) for size in sizes}
            scores.append({size: float(np.mean([*score.values()])) for size, score in models.items()})
            left = FOLDS - len(scores)
            if left and (time.perf_counter() - began) * left > benchmark.remaining:
                sizes = sorted({*sizes[::2], automatic})  # if time is short, later folds have fewer sizes
    means = {size: np.array([fold[size] for fold in scores]) for size in scores[-1]}
    return SizeCurve(
        sizes=[*means],
        scores=[float(x.mean()) for x in means.values()],
        spread=[float(x.std(ddof=1)) for x in means.values()],
        automatic=automatic,
        all_features=float(np.mean(all_features)) if all_features else None,
        n_features=len(names),
        folds=FOLDS,
        seed=seed,
        task=whole.task,
        seconds=time.perf_counter() - start,
    )
