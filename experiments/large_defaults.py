"""Compare the defaults with the paper's settings on large problems, without Spark.

    BELIEF_DATA=folder python experiments/large_defaults.py

On slices of real data sets, the script measures the F1 of scikit-learn's linear SVM and decision tree, with the
features that experiments/large.py selected and with those that the defaults select. On look-alikes (synthetic data with
the shape of the paper's data sets, smaller than in large.py), the script counts how many of the selected features are
relevant, also for different sample sizes.

Each result is saved in large_defaults.jsonl as soon as it is computed, so an interrupted run continues where it
stopped. The tables go into docs/experiments/large.md and sampling.md.
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import problems
from common import HOME, Answers, as_data, data_home, paper, publish, table
from large import published
from large_judges import marks_of
from large_tasks import SEED, Array, Data, slices
from large_ways import Way
from scipy.sparse import vstack

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
FOLDER = HOME / "docs" / "experiments"
KEPT = {"mRMR": Way("mRMR"), "the paper's settings": Way("BELIEF + mCR", 10, 0.25)}  # selected by large.py
DEFAULTS = "the defaults"
SIZES, ROWS, COLUMNS = (10, 50, 100), 10_000, 20_000
SAMPLES = (250, 1000, 4000, "auto")


# --- slices ---


def f1_of(name: str, way: str, n: int) -> list[float]:
    """Return the weighted F1 of both classifiers, then the macro F1 of both, as means over the folds."""
    study = published()
    folds = range(study.tasks[name].folds)
    return np.round(
        np.mean([marks(study.data(name, f), chosen(study, name, f, way, n)) for f in folds], axis=0), 4
    ).tolist()


def chosen(study: Any, name: str, fold: int, way: str, n: int) -> Array:
    """Return the features that large.py selected, or those that the defaults select."""
    if way in KEPT:
        return study.selected(name, fold, KEPT[way], n)
    data = study.data(name, fold)
    return belief.select(data.X, data.y, n, discrete_features=data.discrete, random_state=SEED).selected


def marks(data: Data, selected: Array) -> list[float]:
    """Return the weighted F1 of a linear SVM and a decision tree, then the macro F1 of both.

    Nominal values are integer codes, and the classifiers use them as numbers.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    found = []
    for model in (LinearSVC(random_state=SEED), DecisionTreeClassifier(max_depth=5, random_state=SEED)):
        judged = make_pipeline(StandardScaler(), model).fit(data.X[:, selected], data.y)
        found.append(marks_of(data.truth, judged.predict(data.Z[:, selected])))
    return [mark[kind] for kind in ("f1", "macro") for mark in found]


# --- look-alikes ---


@cache
def look_alike(name: str) -> tuple[Any, Array, Array, Array]:
    """Return X, y, the mask of nominal features, and the indices of the relevant features of a look-alike."""
    if name.startswith(("url", "kddb")):
        sparse = getattr(problems, f"{name[:-5]}_like")(ROWS, COLUMNS, seed=SEED)
        return vstack(sparse.X, format="csr"), sparse.y, np.zeros(COLUMNS, bool), sparse.informative
    problem = {
        "epsilon-like": partial(problems.epsilon_like, ROWS),
        "ECBDL14-like": partial(problems.ecbdl14_like, ROWS),
        "ECBDL14-like, the rare class 49 times": partial(problems.ecbdl14_like, ROWS, repeats=49),
        "ECBDL14-like, 2 % positive": partial(problems.ecbdl14_like, ROWS, positive=0.02),
    }[name](seed=SEED)
    return np.concatenate(problem.X), problem.y, problem.discrete, np.concatenate(problem.relevant)


LOOK_ALIKES = (
    "epsilon-like", "ECBDL14-like", "ECBDL14-like, the rare class 49 times", "ECBDL14-like, 2 % positive", "url-like",
    "kddb-like",
)  # fmt: skip
SAMPLED = LOOK_ALIKES[:2]


def relevant(name: str, way: str, n: int, sample: int | str | None = None) -> dict[str, int]:
    """Return how many of the selected features are relevant, and how many rows were sampled."""
    X, y, discrete, matter = look_alike(name)
    settings = {} if way == DEFAULTS else paper(X, discrete)
    if sample is not None:
        # "auto" does not exist in the paper; its settings use "fixed" instead
        settings["sample_size"] = "fixed" if way != DEFAULTS and sample == "auto" else sample
    result = belief.select(X, y, n, **settings, discrete_features=discrete, random_state=SEED)
    return {"relevant": int(np.isin(result.selected, matter).sum()), "sample": result.sample_size}


# --- all answers ---

WAYS = ("the paper's settings", DEFAULTS)


def sizes_of(name: str) -> list[int]:
    """Return the numbers of features to select that are smaller than the number of features of a slice."""
    return [n for n in SIZES if n < published().shape(name)["features"]]


def cells() -> dict[str, Any]:
    """Return the function that computes each result, by the key of the result in large_defaults.jsonl."""
    asked: dict[str, Any] = {}
    for name in slices():
        asked |= {
            f"{name} | {way} | {n}": partial(f1_of, name, way, n) for n in sizes_of(name) for way in (*KEPT, DEFAULTS)
        }
    for name in LOOK_ALIKES:
        asked |= {f"{name} | {way} | {n}": partial(relevant, name, way, n) for way in WAYS for n in SIZES[:2]}
        if name in SAMPLED:
            asked |= {f"{name} | {way} | {SIZES[2]} | sample {x}": partial(relevant, name, way, SIZES[2], x)
                      for way in WAYS for x in SAMPLES}  # fmt: skip
    return asked


def on_slices(answers: Answers) -> str:
    """Return the table of weighted and macro F1 on the slices, as means over both classifiers."""
    lines = []
    for name in slices():
        for n in sizes_of(name):
            means = [
                np.mean(np.reshape(answers.answers[f"{name} | {way} | {n}"], (2, 2)), axis=1)
                for way in (*KEPT, DEFAULTS)
            ]
            lines.append([name, str(n), *(f"{weighted:.3f} · {macro:.3f}" for weighted, macro in means)])
    return table(["F1, weighted · plain mean", "features", *KEPT, DEFAULTS], lines)


def cell(answers: Answers, key: str) -> str:
    """Return the number of relevant features and the number of sampled rows as text, or a dash if they are unknown."""
    found = answers.answers.get(key)
    return "–" if found is None else f"{found['relevant']} ({found['sample']:,})"


def on_look_alikes(answers: Answers) -> str:
    """Return a table: how many of 10 and of 50 selected features are relevant.

    The data is synthetic, with the shape of the paper's data sets (look-alikes).
    """
    lines = []
    for name in LOOK_ALIKES:
        lines.append([name, *(cell(answers, f"{name} | {way} | {n}") for n in SIZES[:2] for way in WAYS)])
    return table(["features that matter (rows sampled)", *(f"of {n}, {way}" for n in SIZES[:2] for way in WAYS)], lines)


def by_sample(answers: Answers) -> str:
    """Return the table of the numbers of relevant features among 100 selected, by sample size."""
    lines = []
    for name in SAMPLED:
        for way in WAYS:
            keys = [f"{name} | {way} | {SIZES[2]} | sample {x}" for x in SAMPLES]
            lines.append([name, way, *(cell(answers, key) for key in keys)])
    return table(["of 100, matter (rows sampled)", "settings", *map(str, SAMPLES)], lines)


def configuration() -> dict[str, Any]:
    """Return the settings that the results depend on; if they change, all results are discarded."""
    return {"seed": SEED, "rows": ROWS, "columns": COLUMNS}


def tables(answers: Answers) -> dict[str, str]:
    """Return the text of each page that goes between the comments <!-- defaults --> and <!-- /defaults -->."""
    slices = as_data("the defaults on slices", on_slices(answers))
    look_alikes = as_data("the defaults on look-alikes", on_look_alikes(answers))
    return {
        "large.md": f"Relevant features: {look_alikes}; F1 on the slices: {slices}. {answers.origin}",
        "sampling.md": f"All figures: {as_data('the defaults', by_sample(answers))}. {answers.origin}",
    }


def write(answers: Answers) -> None:
    """Write the tables into the pages."""
    for page, text in tables(answers).items():
        publish(FOLDER / page, "defaults", text)


if __name__ == "__main__":
    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
    warnings.simplefilter("ignore")  # the SVM may not converge, and a class may have fewer rows than n_neighbors
    kept = Answers(ANSWERS, configuration())
    for key, compute in cells().items():
        kept.get(key, compute)
    write(kept)
