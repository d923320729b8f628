"""Compare BELIEF with other feature selectors on public and synthetic data.

    BELIEF_DATA=folder python experiments/contest.py [--page]

On public data, each selector selects 10 and 50 features from the training rows in 3-fold cross-validation. The score is
the macro F1 of three classifiers on the test rows: a linear SVM, 5-NN and gradient boosting. On synthetic data, the
scores are the precision and the recall of the relevant features. Selectors use one thread, and a selection may take 30
seconds of CPU time. Each result is saved in contest.jsonl as soon as it is computed, so an interrupted run continues
where it stopped. At the end, the page docs/experiments/contest.md is written. With --page, nothing is computed, and the
page is written from the saved results.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import registry
from choices import Data, encoder_of
from common import HOME, Answers, data_home
from contest_selectors import SELECTORS, SLOW, SLOWEST, TREES, K, installed
from contest_tasks import (
    COLUMNS,
    KIND,
    LEAST,
    MADE_ROWS,
    PAIRED,
    PUBLIC,
    ROWS,
    SEEDS,
    found,
    pair_found,
    planted_truth,
    public,
)
from contest_worker import Worker
from made import Array

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "contest.md"
FOLDS, SIZES, SEED, LIMIT = 3, (10, 50), 0, 30
JUDGES = ("linear SVM", "5-NN", "gradient boosting")
# with the default min_samples_leaf=20, a tree hardly splits a set of 40 rows
BOOSTING = {"max_iter": 30, "max_leaf_nodes": 8, "min_samples_leaf": 5}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Judge:
    """The macro F1 of the classifiers on each fold of a data set, cached by the selected features."""

    def __init__(self, data: Data) -> None:
        from sklearn.model_selection import StratifiedKFold

        self.data = data  # without missing values, which some of the classifiers do not support
        self.folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(data.X, data.y))
        self._known: dict[tuple[int, ...], list[float]] = {}

    def marks(self, fold: int, chosen: list[int]) -> list[float]:
        """Return the F1 score of each classifier on a fold with these features, in the order of JUDGES."""
        key = (fold, *sorted(chosen))
        if key not in self._known:
            self._known[key] = self._judged(fold, np.sort(chosen))
        return self._known[key]

    def _judged(self, fold: int, chosen: Array) -> list[float]:
        from sklearn.metrics import f1_score

        (learn, judge), data = self.folds[fold], self.data
        encoder = encoder_of(data.discrete[chosen])
        X, Z = encoder.fit_transform(data.X[learn][:, chosen]), encoder.transform(data.X[judge][:, chosen])
        said = [model.fit(X, data.y[learn]).predict(Z) for model in models()]
        return [round(float(f1_score(data.y[judge], x, average="macro")), 5) for x in said]


def models() -> list[Any]:
    """Return the classifiers in the order of JUDGES."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    boosting = HistGradientBoostingClassifier(**BOOSTING, early_stopping=False, random_state=SEED)
    return [LinearSVC(random_state=SEED), KNeighborsClassifier(5), boosting]


# --- one result ------------------------------------------------------------------------------------------------------


def sizes_of(n_columns: int) -> list[int]:
    """Return the sizes of the selections, which must be smaller than the number of columns."""
    return [n for n in SIZES if n < n_columns]


def judged(worker: Worker, judge: Judge, name: str) -> dict[str, Any]:
    """Evaluate a selector on a public set.

    The result has the F1 scores by size, fold and classifier, the CPU seconds by size and fold, and the indices of the
    10 features that were selected in each fold. If a selection fails or exceeds the time limit, return the worker's
    answer, which has the error message or the limit.
    """
    answer: dict[str, Any] = {"f1": {}, "seconds": {}}
    for fold, (learn, _) in enumerate(judge.folds):
        part = judge.data._replace(X=judge.data.X[learn], y=judge.data.y[learn], relevant=None)
        for n, chosen in selections(worker, part, name):
            if "selected" not in chosen:
                return chosen
            answer["f1"].setdefault(str(n), []).append(judge.marks(fold, chosen["selected"][:n]))
            answer["seconds"].setdefault(str(n), []).append(round(chosen["seconds"], 4))
            if n == SIZES[0]:
                answer.setdefault("selected", []).append(" ".join(map(str, chosen["selected"][:n])))
    return answer


def selections(worker: Worker, part: Data, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each size and the worker's answer for it.

    A selector with `once` runs only for the largest size, because its n best features are the selection of size n.
    """
    sizes = sizes_of(part.X.shape[1])
    once = worker.ask(name, part, sizes[-1]) if SELECTORS[name].once else None
    for n in sizes:
        yield n, once or worker.ask(name, part, n)


def truth(worker: Worker, each: str, seed: int, name: str) -> dict[str, Any]:
    """Evaluate a selector on a synthetic set: it selects as many features as are relevant, not counting copies.

    Return precision, recall and CPU seconds; for the sets in PAIRED, also the share of the interacting pair that was
    selected. If the selection fails or exceeds the time limit, return the worker's answer.
    """
    data = planted_truth(each, seed)
    assert data.relevant is not None
    answer = worker.ask(name, data, len(data.relevant))
    if "selected" not in answer:
        return answer
    chosen = answer["selected"]
    pair = pair_found(data, chosen) if each in PAIRED else {}
    return {**found(data, chosen), **pair, "seconds": round(answer["seconds"], 4)}


# --- all results -----------------------------------------------------------------------------------------------------


def compute(answers: Answers, names: list[str], sets: list[str], seeds: tuple[int, ...]) -> None:
    """Compute the results that are not saved yet; slow selectors run last."""
    worker = Worker(LIMIT)
    judge = cache(lambda each: Judge(public(each)))  # a set is loaded only if a result is missing
    for name, each in sorted(product(names, sets), key=lambda cell: waits(*cell)):
        compute_one = partial(judged_set, judge) if each in PUBLIC else partial(truths, seeds)
        answers.get(f"{each} | {name}", partial(compute_one, worker, each, name))
    worker.close()


def waits(name: str, each: str) -> int:
    """Return the stage at which a selector runs on a set: 0 if the selector is fast.

    Slow selectors run on public sets at stage 1, and on synthetic sets at stage 2.
    """
    return (name in SLOW) * (1 + (each not in PUBLIC))


def judged_set(judge: Callable[[str], Judge], worker: Worker, each: str, name: str) -> dict[str, Any]:
    """Evaluate a selector on the public set with this name."""
    return judged(worker, judge(each), name)


def truths(seeds: tuple[int, ...], worker: Worker, each: str, name: str) -> dict[str, Any]:
    """Evaluate a selector on a synthetic set with each seed.

    If a selection fails or exceeds the time limit, return only the worker's answer and skip the remaining seeds.
    """
    by_seed = {}
    for seed in seeds:
        by_seed[str(seed)] = truth(worker, each, seed, name)
        if "recall" not in by_seed[str(seed)]:
            return by_seed[str(seed)]
    return by_seed


def configuration() -> dict[str, Any]:
    """Return the settings that the results depend on; saved results with other settings are discarded."""
    data = {"rows": ROWS, "columns": COLUMNS, "least": LEAST, "made rows": MADE_ROWS, "seeds": SEEDS}
    asked = {"boosting": BOOSTING, "folds": FOLDS, "sizes": SIZES, "seed": SEED, "limit": LIMIT}
    return {**data, **asked, "neighbours": K, "trees": TREES, "rfe": SLOWEST}


def at_hand() -> list[str]:
    """Return the names of the public sets that can be loaded, and report if some cannot."""
    if registry.installed():
        return list(PUBLIC)
    missing = f"{len(registry.MORE)} public sets are skipped. To include them, run: {registry.INSTALL}"
    print(missing, file=sys.stderr)
    return [name for name in PUBLIC if name not in registry.MORE]


def main(words: list[str]) -> None:
    """Compute the missing results unless --page is passed, and write the page."""
    from threadpoolctl import threadpool_limits

    if words not in ([], ["--page"]):
        raise SystemExit(__doc__)
    answers = Answers(ANSWERS, configuration())
    if not words:
        if data_home() is None:
            raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
        os.environ.update(dict.fromkeys(THREADS, "1"))  # inherited by the worker process
        warnings.simplefilter("ignore")  # about convergence of the SVM and about rare classes
        with threadpool_limits(1):
            compute(answers, installed(), [*at_hand(), *KIND], SEEDS)
    importlib.import_module("contest_page").write(answers)  # imported late because it imports this module


if __name__ == "__main__":
    main(sys.argv[1:])
