"""BELIEF against all that one would take instead: selectors x data x sizes x judges, selected inside cross-validation.

    BELIEF_DATA=folder python experiments/contest.py [--page]

On public data: macro F1 of a linear SVM, 5-NN and gradient boosting on 10 and 50 features, in 3-fold cross-validation,
the features selected from those rows of each fold that are learned from. On made data: which of the features that
matter are found. One thread; a selection may take 30 seconds of it. Every answer is kept in contest.jsonl as it comes,
so a run that was stopped goes on where it was; --page only writes the page, docs/experiments/contest.md, from those
there are.
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
BOOSTING = {"max_iter": 30, "max_leaf_nodes": 8, "min_samples_leaf": 5}  # with 20, its own, 40 rows are one leaf
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Judge:
    """Macro F1 of the classifiers on the folds of a data set; the same features are judged once."""

    def __init__(self, data: Data) -> None:
        from sklearn.model_selection import StratifiedKFold

        self.data = data  # no public set here has missing values
        self.folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(data.X, data.y))
        self._known: dict[tuple[int, ...], list[float]] = {}

    def marks(self, fold: int, chosen: list[int]) -> list[float]:
        """The F1 of every judge."""
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
    """The judges, in the order of their names."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    boosting = HistGradientBoostingClassifier(**BOOSTING, early_stopping=False, random_state=SEED)
    return [LinearSVC(random_state=SEED), KNeighborsClassifier(5), boosting]


# --- one answer ------------------------------------------------------------------------------------------------------


def sizes_of(n_columns: int) -> list[int]:
    """How many features are asked for: fewer than there are."""
    return [n for n in SIZES if n < n_columns]


def judged(worker: Worker, judge: Judge, name: str) -> dict[str, Any]:
    """A selector on a public set: by size, the F1 of each fold and judge, seconds, and what was selected of ten."""
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
    """What is selected for each size; where fewer are the first of more, it is asked for once."""
    sizes = sizes_of(part.X.shape[1])
    once = worker.ask(name, part, sizes[-1]) if SELECTORS[name].once else None
    for n in sizes:
        yield n, once or worker.ask(name, part, n)


def truth(worker: Worker, each: str, seed: int, name: str) -> dict[str, Any]:
    """A selector on a made set: of as many features as matter, those that do, and those that do only together."""
    data = planted_truth(each, seed)
    assert data.relevant is not None
    answer = worker.ask(name, data, len(data.relevant))
    if "selected" not in answer:
        return answer
    chosen = answer["selected"]
    pair = pair_found(data, chosen) if each in PAIRED else {}
    return {**found(data, chosen), **pair, "seconds": round(answer["seconds"], 4)}


# --- all answers -----------------------------------------------------------------------------------------------------


def compute(answers: Answers, names: list[str], sets: list[str], seeds: tuple[int, ...]) -> None:
    """All answers, those that take long last; only those that are missing are computed."""
    worker = Worker(LIMIT)
    judge = cache(lambda each: Judge(public(each)))  # made once, and only where an answer is missing
    for name, each in sorted(product(names, sets), key=lambda cell: waits(*cell)):  # else as they come
        compute_one = partial(judged_set, judge) if each in PUBLIC else partial(truths, seeds)
        answers.get(f"{each} | {name}", partial(compute_one, worker, each, name))
    worker.close()


def waits(name: str, each: str) -> int:
    """What comes first, 0, and what last: the slow on made sets."""
    return (name in SLOW) * (1 + (each not in PUBLIC))


def judged_set(judge: Callable[[str], Judge], worker: Worker, each: str, name: str) -> dict[str, Any]:
    """A selector on a public set of this name."""
    return judged(worker, judge(each), name)


def truths(seeds: tuple[int, ...], worker: Worker, each: str, name: str) -> dict[str, Any]:
    """A selector on all seeds of a made set; none is tried after one that did not end."""
    by_seed = {}
    for seed in seeds:
        by_seed[str(seed)] = truth(worker, each, seed, name)
        if "recall" not in by_seed[str(seed)]:
            return by_seed[str(seed)]
    return by_seed


def configuration() -> dict[str, Any]:
    """What the answers depend on, beside the code."""
    data = {"rows": ROWS, "columns": COLUMNS, "least": LEAST, "made rows": MADE_ROWS, "seeds": SEEDS}
    asked = {"boosting": BOOSTING, "folds": FOLDS, "sizes": SIZES, "seed": SEED, "limit": LIMIT}
    return {**data, **asked, "neighbours": K, "trees": TREES, "rfe": SLOWEST}


def at_hand() -> list[str]:
    """The public sets that can be read here; one line says which cannot."""
    if registry.installed():
        return list(PUBLIC)
    missing = f"{len(registry.MORE)} public sets are left out; to have them: {registry.INSTALL}"
    print(missing, file=sys.stderr)
    return [name for name in PUBLIC if name not in registry.MORE]


def main(words: list[str]) -> None:
    """Compute what is missing, and write the page."""
    from threadpoolctl import threadpool_limits

    if words not in ([], ["--page"]):
        raise SystemExit(__doc__)
    answers = Answers(ANSWERS, configuration())
    if not words:
        if data_home() is None:
            raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
        os.environ.update(dict.fromkeys(THREADS, "1"))  # of the process that selects
        warnings.simplefilter("ignore")  # few steps of the SVM, rare classes
        with threadpool_limits(1):
            compute(answers, installed(), [*at_hand(), *KIND], SEEDS)
    importlib.import_module("contest_page").write(answers)  # which imports this module


if __name__ == "__main__":
    main(sys.argv[1:])
