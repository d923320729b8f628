"""Measure the gain of each step from the paper's settings to the defaults; each step keeps the changes before it.

    BELIEF_DATA=folder python experiments/steps.py

On public data, the score is the macro F1 of a linear SVM and of 5-NN with 10 and 50 features, which are selected inside
each fold. On 15 synthetic tables, most of them with a rare class, the score is the share of the relevant features that
are selected. Each result is saved in steps.jsonl as soon as it is computed, so an interrupted run continues where it
stopped. The script writes the tables into docs/reproduction.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import public_data
from choices import Data, encoder_of
from choices import real as published
from common import HOME, Answers, data_home, paper
from made import IMBALANCED, RARE, Array, imbalanced

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "reproduction.md"
SEED, SIZES, LEARN, MADE_SEEDS = 0, (10, 50), 2000, (0,)
STEPS: dict[str, dict[str, Any]] = {  # each step keeps the changes of the steps before it
    "the paper's settings": {},
    "20 neighbours where classes are large enough": {"n_neighbors": "auto"},
    "two-valued columns in units of their range": {"scale": "auto"},
    "equal class weights": {"class_weight": "balanced"},
    "balanced sampling": {"sampling": "balanced"},
    "agreement": {"redundancy": "agreement", "theta": "auto"},
    "significance, and neighbours by the features that matter": {"significance": "permutation", "copies": "auto"},
    "a growing sample: the defaults": {"sample_size": "auto"},
}
LAST = list(STEPS)[-1]


# --- data ------------------------------------------------------------------------------------------------------------


def bundled(name: str) -> Data:
    """Load a data set of scikit-learn; all its features are numeric."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Data(X, y, np.zeros(X.shape[1], bool))


def as_numbers(name: str) -> Data:
    """Load a public data set as a dense table in which all features are numeric, including binary indicators."""
    given = public_data.load(name)
    X = given.X if isinstance(given.X, np.ndarray) else np.vstack([block.toarray() for block in given.X])
    return Data(X, np.unique(given.y, return_inverse=True)[1], np.zeros(X.shape[1], bool))


DATA: dict[str, tuple[Callable[[], Data], int]] = {  # the data set, and the number of folds
    "wine": (partial(bundled, "wine"), 5),
    "breast cancer": (partial(bundled, "breast_cancer"), 5),
    **{name: (partial(published, name, SEED), 5) for name in ("lung", "colon", "lymphoma", "SD1", "SD2", "SD3")},
    "digits": (partial(bundled, "digits"), 3),
    **{name: (partial(published, name, SEED), 3) for name in ("ECBDL14_1K", "ECBDL14_test_1K", "kddcup_10K")},
    "covtype_10K": (partial(as_numbers, "covtype_10K"), 3),
    **{name: (partial(published, name, SEED), 3) for name in ("Madelon", "leukemia", "RELATHE")},
    "a9a": (partial(as_numbers, "a9a"), 3),
}


# --- one result ------------------------------------------------------------------------------------------------------


def selected(data: Data, n: int, step: str, seed: int) -> Array:
    """Return the features that BELIEF selects with the settings after a step."""
    settings = settings_of(data, step)
    return belief.select(data.X, data.y, n, discrete_features=data.discrete, random_state=seed, **settings).selected


def settings_of(data: Data, step: str) -> dict[str, Any]:
    """Return the paper's settings with the changes of all steps up to this one."""
    settings = paper(data.X, data.discrete)
    for name, added in STEPS.items():
        settings |= added
        if name == step:
            return settings
    raise KeyError(step)


class Judge:
    """Cross-validation of both classifiers on a data set, with a cache for features that were already scored."""

    def __init__(self, data: Data, folds: int) -> None:
        from sklearn.model_selection import StratifiedKFold

        self.data = data
        self.folds = list(StratifiedKFold(folds, shuffle=True, random_state=SEED).split(data.X, data.y))
        self._known: dict[tuple[int, ...], list[float]] = {}

    def marks(self, select: Callable[[Data], Array]) -> list[float]:
        """Return the macro F1 of each classifier, as the mean over the folds; `select` gets the training rows."""
        every = []
        for fold, (learn, _) in enumerate(self.folds):
            chosen = np.sort(select(self.data._replace(X=self.data.X[learn], y=self.data.y[learn])))
            key = (fold, *chosen.tolist())
            if key not in self._known:
                self._known[key] = self._judged(fold, chosen)
            every.append(self._known[key])
        return np.round(np.mean(every, axis=0), 5).tolist()

    def _judged(self, fold: int, chosen: Array) -> list[float]:
        from sklearn.metrics import f1_score
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.svm import LinearSVC

        (learn, judge), data = self.folds[fold], self.data
        # The files are not sorted, so the first rows are a fair sample.
        few, encoder = learn[:LEARN], encoder_of(data.discrete[chosen])
        X, Z = encoder.fit_transform(data.X[few][:, chosen]), encoder.transform(data.X[judge][:, chosen])
        models = (LinearSVC(random_state=SEED), KNeighborsClassifier(5))
        return [f1_score(data.y[judge], m.fit(X, data.y[few]).predict(Z), average="macro") for m in models]


def relevant_found(kind: str, rare: float, seed: int, step: str) -> float:
    """Return the share of relevant features that are selected from a synthetic table.

    The number of selected features is the number of relevant ones.
    """
    made = imbalanced(kind, rare, seed)
    chosen = selected(Data(made.X, made.y, made.discrete), len(made.relevant), step, seed)
    return float(np.isin(chosen, made.relevant).mean())


# --- all results -----------------------------------------------------------------------------------------------------


def sizes_of(n_columns: int) -> list[int]:
    """Return the numbers of features to select, which must be smaller than the number of columns."""
    return [n for n in SIZES if n < n_columns]


def compute(answers: Answers) -> None:
    """Compute the missing results."""
    for kind, rare, seed, step in made_cells():
        answers.get(f"{kind} | {rare} | seed={seed} | {step}", partial(relevant_found, kind, rare, seed, step))
    for name, (make, folds) in DATA.items():
        data = make()
        judge = Judge(data, folds)
        for n in sizes_of(data.X.shape[1]):
            for step in STEPS:
                select = partial(selected, n=n, step=step, seed=SEED)
                answers.get(f"{name} | {n} | {step}", lambda: judge.marks(select))  # noqa: B023


def made_cells() -> list[tuple[str, float, int, str]]:
    """Return all combinations of a synthetic table (kind, share of the rare class, seed) and a step."""
    return [(kind, rare, x, step) for kind in IMBALANCED for rare in RARE for x in MADE_SEEDS for step in STEPS]


def configuration() -> dict[str, Any]:
    """Return the constants on which the results depend; if they change, all results are computed again."""
    return {"seed": SEED, "learn": LEARN, "steps": STEPS, "folds": {name: folds for name, (_, folds) in DATA.items()}}


def main(words: list[str]) -> None:
    """Compute the missing results, and write the tables into the page."""
    import steps_page

    if words:
        raise SystemExit(__doc__)
    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
    warnings.simplefilter("ignore")  # about SVMs that do not converge, and classes with few rows
    answers = Answers(ANSWERS, configuration())
    compute(answers)
    steps_page.write(answers)


if __name__ == "__main__":
    main(sys.argv[1:])
