"""What our own choices are worth: each setting against other values, all others as in the paper.

    BELIEF_DATA=folder python experiments/choices.py

`--quick` takes one seed and some of the data, and prints the tables instead of writing the page.

On problems whose truth is known: the share of it among the features selected. On real data: macro F1 of a logistic
regression and of a decision tree on the features selected, in 3-fold cross-validation. Every answer is kept in
choices.jsonl as it comes, so a run that was stopped goes on where it was. Writes the tables into
docs/experiments/choices.md, between its marks, and the figures beside it.
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
LEARN = 2000  # rows a classifier learns from, at most: the selection is judged here, not the classifier
WITHOUT = "no mCR"
GRID: dict[str, list[Any]] = {  # beside the paper's values, and ours where it has none
    "neighborhood": ["per_class", "pooled"],
    "scale": ["auto", "standard", "minmax", "none"],
    "theta": [WITHOUT, 0.1, 0.3, 1.0, "mean"],
    "kappa": [0.5, 0.7, 0.8, 0.9, 0.95],
    "eta": [1.0, 2.0, 4.0, 8.0],
    "n_neighbors": [1, 3, 5, 10, 20, 40],
    "sample_size": [50, 100, 250, 500, 1000, "auto", 1.0],
    "batch_size": [0.1, 0.25, 1.0],
}
DEFAULTS = {  # "auto": sigma, unless the data is mostly zeros; all rows up to 2,000, and then 1 % at least
    **{name: belief.PAPER.get(name, "per_class") for name in GRID}, "scale": "auto", "sample_size": "auto",
}  # fmt: skip
NOW = {"scale": {"standard": "sigma"}, "sample_size": {"auto": "fixed"}}  # what a value is called now
SECOND = "the second edition"
OF_MIXED = ("scale", "kappa")  # settings that nominal features know nothing of

Array = NDArray[Any]


class Data(NamedTuple):
    """A table of numbers, nominal values as codes; and its truth, where that is known."""

    X: Array
    y: Array
    discrete: Array
    relevant: tuple[tuple[int, ...], ...] | None = None


class Case(NamedTuple):
    """Where to get the data of a seed, how many features to select, and how to judge them."""

    make: partial[Data]
    select: int
    kind: str
    settings: tuple[str, ...] = tuple(GRID)


# --- data ------------------------------------------------------------------------------------------------------------


def made(maker: Callable[..., Any], seed: int, **options: Any) -> Data:
    """A problem of problems/, another for each seed."""
    p = maker(**options, seed=seed)
    return Data(np.vstack(p.X), p.y, p.discrete, p.relevant)


def madelon_any(seed: int, **options: Any) -> Data:
    """Madelon judged in another way: the five features that matter and the fifteen made of them count alike."""
    data = made(problems.madelon, seed, **options)
    return data._replace(relevant=tuple((j,) for j in range(20)))


def made_sparse(maker: Callable[..., Any], seed: int, **options: Any) -> Data:
    """A sparse problem as a dense table."""
    p = maker(**options, seed=seed)
    X = np.vstack([block.toarray() for block in p.X])
    return Data(X, p.y, np.zeros(X.shape[1], bool), tuple((int(j),) for j in p.informative))


def real(name: str, seed: int) -> Data:
    """A real data set, strings as codes, without the classes of fewer than five rows."""
    data = public_data.load(name)
    X = data.X if isinstance(data.X, np.ndarray) else coded(data.X, data.discrete)
    classes, counts = np.unique(data.y, return_counts=True)
    kept = np.isin(data.y, classes[counts >= 5])
    return Data(X[kept], np.unique(data.y[kept], return_inverse=True)[1], data.discrete)


def coded(table: Any, discrete: Array) -> Array:
    """An Arrow table as numbers."""
    columns = zip(table.columns, discrete, strict=True)
    return np.column_stack([np.unique(c.to_numpy(), return_inverse=True)[1] if d else c.to_numpy() for c, d in columns])


FEW = ("neighborhood", "scale", "theta", "kappa", "eta")  # for 50 features: what may depend on how many there are
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


# --- one answer ------------------------------------------------------------------------------------------------------


def selected(data: Data, n: int, setting: str, value: Any, seed: int) -> Array:
    """The features BELIEF selects with the paper's settings, one of them changed; or with the defaults."""
    if value == SECOND:
        return belief.select(data.X, data.y, n, discrete_features=data.discrete, random_state=seed).selected
    X, chosen = data.X, {setting: NOW.get(setting, {}).get(value, value)}
    if value == WITHOUT:
        chosen = {"redundancy": None}
    if value == "minmax":  # not a setting of ours: the table is brought to it before
        X, chosen = minmax(data), {"scale": "none"}
    if (setting, value) == ("scale", DEFAULTS["scale"]):
        chosen = {}
    settings = paper(data.X, data.discrete) | chosen
    return belief.select(X, data.y, n, discrete_features=data.discrete, random_state=seed, **settings).selected


def minmax(data: Data) -> Array:
    """The table with its continuous features from 0 to 1."""
    span = np.ptp(data.X, axis=0)
    return np.asarray(data.X / np.where(data.discrete | (span == 0), 1, span))


def recall(data: Data, chosen: Array) -> float:
    """The share of the groups of relevant features of which one was selected."""
    assert data.relevant is not None
    found = set(chosen.tolist())
    return round(float(np.mean([not found.isdisjoint(group) for group in data.relevant])), 6)


def macro_f1(data: Data, select: Callable[[Data], Array], seed: int) -> float:
    """Macro F1 in cross-validation, the mean of both classifiers; features are selected within each fold."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.model_selection import StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier
    from threadpoolctl import threadpool_limits

    scores = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y):
        chosen = select(data._replace(X=data.X[train], y=data.y[train]))
        encoder, few = encoder_of(data.discrete[chosen]), train[:LEARN]  # the rows of a file are in no order
        X = encoder.fit_transform(data.X[few][:, chosen])
        Z = encoder.transform(data.X[test][:, chosen])
        with threadpool_limits(1):  # for so little work threads cost more than they save
            for model in (LogisticRegression(max_iter=200), DecisionTreeClassifier(random_state=seed)):
                scores.append(f1_score(data.y[test], model.fit(X, data.y[few]).predict(Z), average="macro"))
    return round(float(np.mean(scores)), 6)


def encoder_of(discrete: Array) -> Any:
    """Continuous features standardised, nominal ones as indicators."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    nominal = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((StandardScaler(), ~discrete), (nominal, discrete))


def score(case: Case, data: Data, setting: str, value: Any, seed: int) -> float:
    """How good the features are that one setting selects."""
    if case.kind == "planted":
        return recall(data, selected(data, case.select, setting, value, seed))
    return macro_f1(data, lambda part: selected(part, case.select, setting, value, seed), seed)


# --- all answers -----------------------------------------------------------------------------------------------------


def asked(name: str, data: Data) -> Iterator[tuple[str, Any]]:
    """The settings and values to try on data: the paper's once, and the defaults."""
    yield "neighborhood", DEFAULTS["neighborhood"]
    for setting in CASES[name].settings:
        if not (setting in OF_MIXED and data.discrete.all()):
            yield from ((setting, value) for value in GRID[setting] if value != DEFAULTS[setting])
    yield SECOND, SECOND


def key_of(name: str, setting: str, value: Any, seed: int) -> str:
    """The name of an answer in choices.jsonl."""
    what = "defaults" if value == DEFAULTS.get(setting) else SECOND if value == SECOND else f"{setting}={value}"
    return f"{name} | {what} | seed={seed}"


def compute(answers: Answers, names: tuple[str, ...], n_seeds: int | None = None) -> None:
    """All answers; only those that are missing are computed."""
    for name in names:
        case = CASES[name]
        for seed in SEEDS[case.kind][:n_seeds]:
            data = case.make(seed)
            for setting, value in asked(name, data):
                answers.get(key_of(name, setting, value, seed), partial(score, case, data, setting, value, seed))


def configuration() -> dict[str, Any]:
    """What the answers depend on, beside the code."""
    cases = {name: [case.make.keywords, case.select] for name, case in CASES.items()}
    return {"folds": FOLDS, "learn": LEARN, "defaults": DEFAULTS, "cases": cases}


if __name__ == "__main__":
    import choices_page

    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
    warnings.simplefilter("ignore")  # of scikit-learn: few steps, rare classes; of belief: fewer rows than neighbours
    kept = Answers(ANSWERS, configuration())
    if "--quick" in sys.argv[1:]:
        compute(kept, QUICK, 1)
        print(choices_page.markdown(kept))
    else:
        compute(kept, tuple(CASES))
        choices_page.write(kept)
        print(f"{PAGE} and its figures are written.")
