"""Measure the effect of each setting: it is changed alone, and all other settings are those of the paper.

    BELIEF_DATA=folder python experiments/choices.py

BELIEF with the settings of the paper is called the reference. With `--quick`, only one seed and some of the data sets
are used, and the tables are printed instead of written.

On synthetic data, the score is the share of the groups of relevant features from which at least one feature is
selected. On real data, it is the macro F1 of a logistic regression and a decision tree with the selected features, in
3-fold cross-validation. Each result is saved in choices.jsonl as soon as it is computed, so an interrupted run
continues where it stopped. The tables are written into docs/experiments/choices.md, and the figures into its folder.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import problems
import public_data
from common import HOME, Answers, data_home, paper
from numpy.typing import NDArray

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "choices.md"
SEEDS = {"planted": (0, 1, 2, 3, 4), "real": (0, 1, 2)}
FOLDS = 3
LEARN = 2000  # the most rows to train a classifier on; the experiment evaluates the selection, not the classifier
WITHOUT = "no mCR"
GRID: dict[str, list[Any]] = {  # the values of each setting, including the reference
    "neighborhood": ["per_class", "pooled"],
    "scale": ["auto", "standard", "minmax", "none"],
    "theta": [WITHOUT, 0.1, 0.3, 1.0, "mean"],
    "kappa": [0.5, 0.7, 0.8, 0.9, 0.95],
    "eta": [1.0, 2.0, 4.0, 8.0],
    "n_neighbors": [1, 3, 5, 10, 20, 40],
    "sample_size": [50, 100, 250, 500, 1000, "auto", 1.0],
    "batch_size": [0.1, 0.25, 1.0],
}
# The reference: the values of the paper, or ours where it has none. Here, scale="auto" means "sigma", or "none" if the
# data is mostly zeros. sample_size="auto" means 2,000 rows or 1 %, whichever is larger, or all rows of smaller tables.
DEFAULTS = {
    **{name: belief.PAPER.get(name, "per_class") for name in GRID}, "scale": "auto", "sample_size": "auto",
}  # fmt: skip
NOW = {"scale": {"standard": "sigma"}, "sample_size": {"auto": "fixed"}}  # present names of renamed values
SECOND = "the second edition"  # stands for the defaults of this package in the results
OF_MIXED = ("scale", "kappa")  # settings without effect on nominal features

Array = NDArray[Any]


class Data(NamedTuple):
    """A numeric table, the classes, a mask of the nominal features, and the groups of relevant features, if known.

    The values of nominal features are codes. The features of a group are interchangeable.
    """

    X: Array
    y: Array
    discrete: Array
    relevant: tuple[tuple[int, ...], ...] | None = None


class Case(NamedTuple):
    """A data set, the number of features to select, its kind ("planted" or "real"), and the settings to change."""

    make: partial[Data]
    select: int
    kind: str
    settings: tuple[str, ...] = tuple(GRID)


# --- data ------------------------------------------------------------------------------------------------------------


def made(maker: Callable[..., Any], seed: int, **options: Any) -> Data:
    """Return a problem of `problems`, which differs for each seed."""
    p = maker(**options, seed=seed)
    return Data(np.vstack(p.X), p.y, p.discrete, p.relevant)


def madelon_any(seed: int, **options: Any) -> Data:
    """Return Madelon with 20 relevant features: the five original ones and their 15 linear combinations."""
    data = made(problems.madelon, seed, **options)
    return data._replace(relevant=tuple((j,) for j in range(20)))


def made_sparse(maker: Callable[..., Any], seed: int, **options: Any) -> Data:
    """Return a sparse problem of `problems` as a dense table."""
    p = maker(**options, seed=seed)
    X = np.vstack([block.toarray() for block in p.X])
    return Data(X, p.y, np.zeros(X.shape[1], bool), tuple((int(j),) for j in p.informative))


def real(name: str, seed: int) -> Data:
    """Return a real data set with strings as codes, and without classes of fewer than five rows."""
    data = public_data.load(name)
    X = data.X if isinstance(data.X, np.ndarray) else coded(data.X, data.discrete)
    classes, counts = np.unique(data.y, return_counts=True)
    kept = np.isin(data.y, classes[counts >= 5])
    return Data(X[kept], np.unique(data.y[kept], return_inverse=True)[1], data.discrete)


def coded(table: Any, discrete: Array) -> Array:
    """Return an Arrow table as an array; values of nominal columns become codes."""
    columns = zip(table.columns, discrete, strict=True)
    return np.column_stack([np.unique(c.to_numpy(), return_inverse=True)[1] if d else c.to_numpy() for c, d in columns])


# settings that are also varied with 50 features, because their effect may depend on the number of selected features
FEW = ("neighborhood", "scale", "theta", "kappa", "eta")
CASES: dict[str, Case] = {
    "Corral-100": Case(partial(made, problems.corral100, n_rows=100), 10, "planted"),
    "XOR-100": Case(partial(made, problems.xor100, n_rows=200), 10, "planted"),
    "Parity3+3": Case(partial(made, problems.parity3plus3, n_rows=64), 3, "planted"),
    "LED-100": Case(partial(made, problems.led, n_irrelevant=92, noise=0.1, n_rows=100), 10, "planted"),
    "SD2": Case(partial(made, problems.sd, n_groups=4), 10, "planted"),
    "Madelon, the 5": Case(partial(made, problems.madelon, n_rows=1000), 10, "planted"),
    "Madelon, any of 20": Case(partial(madelon_any, n_rows=1000), 20, "planted"),
    "epsilon-like": Case(
        partial(made, problems.epsilon_like, n_rows=3000, n_features=200, n_informative=20, n_redundant=40),
        20,
        "planted",
    ),
    "ECBDL14-like": Case(partial(made, problems.ecbdl14_like, n_rows=3000), 20, "planted"),
    "url-like": Case(partial(made_sparse, problems.url_like, n_rows=1500, n_features=2000), 40, "planted"),
    **{
        name: Case(partial(real, name), 10, "real")
        for name in ("covtype_10K", "kddcup_10K", "ECBDL14_1K", "RELATHE", "colon", "leukemia", "lung", "lymphoma")
    },
    **{f"{name}, 50": Case(partial(real, name), 50, "real", FEW) for name in ("ECBDL14_1K", "RELATHE", "lymphoma")},
}
QUICK = ("Corral-100", "Parity3+3", "SD2", "ECBDL14-like", "ECBDL14_1K", "lung")


# --- one result ------------------------------------------------------------------------------------------------------


def selected(data: Data, n: int, setting: str, value: Any, seed: int) -> Array:
    """Return the features that BELIEF selects with the settings of the paper, except that `setting` is `value`.

    If `value` is the constant SECOND, all settings have the defaults of this package instead.
    """
    if value == SECOND:
        return belief.select(data.X, data.y, n, discrete_features=data.discrete, random_state=seed).selected
    X, chosen = data.X, {setting: NOW.get(setting, {}).get(value, value)}
    if value == WITHOUT:
        chosen = {"redundancy": None}
    if value == "minmax":  # not a value of `scale`, so the table is scaled here
        X, chosen = minmax(data), {"scale": "none"}
    if (setting, value) == ("scale", DEFAULTS["scale"]):
        chosen = {}
    settings = paper(data.X, data.discrete) | chosen
    return belief.select(X, data.y, n, discrete_features=data.discrete, random_state=seed, **settings).selected


def minmax(data: Data) -> Array:
    """Return the table with continuous features divided by their range."""
    span = np.ptp(data.X, axis=0)
    return np.asarray(data.X / np.where(data.discrete | (span == 0), 1, span))


def recall(data: Data, chosen: Array) -> float:
    """Return the share of the groups of relevant features from which at least one feature is chosen."""
    assert data.relevant is not None
    found = set(chosen.tolist())
    return round(float(np.mean([not found.isdisjoint(group) for group in data.relevant])), 6)


def macro_f1(data: Data, select: Callable[[Data], Array], seed: int) -> float:
    """Return the mean macro F1 of both classifiers in cross-validation; features are selected inside each fold."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.model_selection import StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier
    from threadpoolctl import threadpool_limits

    scores = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y):
        chosen = select(data._replace(X=data.X[train], y=data.y[train]))
        encoder, few = encoder_of(data.discrete[chosen]), train[:LEARN]  # the order of the rows is arbitrary
        X = encoder.fit_transform(data.X[few][:, chosen])
        Z = encoder.transform(data.X[test][:, chosen])
        with threadpool_limits(1):  # threads would slow down such small models
            for model in (LogisticRegression(max_iter=200), DecisionTreeClassifier(random_state=seed)):
                scores.append(f1_score(data.y[test], model.fit(X, data.y[few]).predict(Z), average="macro"))
    return round(float(np.mean(scores)), 6)


def encoder_of(discrete: Array) -> Any:
    """Return a transformer that standardises continuous features and one-hot encodes nominal ones."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    nominal = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((StandardScaler(), ~discrete), (nominal, discrete))


def score(case: Case, data: Data, setting: str, value: Any, seed: int) -> float:
    """Return the recall (synthetic data) or macro F1 (real data) of the features selected with one setting changed."""
    if case.kind == "planted":
        return recall(data, selected(data, case.select, setting, value, seed))
    return macro_f1(data, lambda part: selected(part, case.select, setting, value, seed), seed)


# --- all results -----------------------------------------------------------------------------------------------------


def asked(name: str, data: Data) -> Iterator[tuple[str, Any]]:
    """Yield the settings and values to measure on a data set.

    The first pair stands for the reference (the settings of the paper), and the last for the defaults of this package.
    """
    yield "neighborhood", DEFAULTS["neighborhood"]
    for setting in CASES[name].settings:
        if not (setting in OF_MIXED and data.discrete.all()):
            yield from ((setting, value) for value in GRID[setting] if value != DEFAULTS[setting])
    yield SECOND, SECOND


def key_of(name: str, setting: str, value: Any, seed: int) -> str:
    """Return the key of a result in choices.jsonl.

    In keys, "defaults" stands for the settings of the paper, and "the second edition" for the defaults of this package.
    """
    what = "defaults" if value == DEFAULTS.get(setting) else SECOND if value == SECOND else f"{setting}={value}"
    return f"{name} | {what} | seed={seed}"


def compute(answers: Answers, names: tuple[str, ...], n_seeds: int | None = None) -> None:
    """Compute the results that are not saved yet."""
    for name in names:
        case = CASES[name]
        for seed in SEEDS[case.kind][:n_seeds]:
            data = case.make(seed)
            for setting, value in asked(name, data):
                answers.get(key_of(name, setting, value, seed), partial(score, case, data, setting, value, seed))


def configuration() -> dict[str, Any]:
    """Return the settings that the results depend on; saved results with other settings are discarded."""
    cases = {name: [case.make.keywords, case.select] for name, case in CASES.items()}
    return {"folds": FOLDS, "learn": LEARN, "defaults": DEFAULTS, "cases": cases}


if __name__ == "__main__":
    import choices_page

    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
    warnings.simplefilter("ignore")  # about convergence, rare classes, or too few rows for k neighbours
    kept = Answers(ANSWERS, configuration())
    if "--quick" in sys.argv[1:]:
        compute(kept, QUICK, 1)
        print(choices_page.markdown(kept))
    else:
        compute(kept, tuple(CASES))
        choices_page.write(kept)
        print(f"{PAGE} and its figures are written.")
