"""Test BELIEF on numeric targets: relevant columns found, accuracy of models, p-values of noise, and speed.

    python experiments/regression.py

Each result is saved in regression.jsonl as soon as it is computed, so an interrupted run continues where it stopped.
The script prints the tables and writes them into docs/experiments/regression.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, as_data, publish, table
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.feature_selection import f_regression, mutual_info_regression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import belief
from belief.baselines import RReliefF

SEEDS = (0, 1, 2, 3, 4)
FOLD_SEEDS = (0, 1, 2)
NEIGHBOURS: dict[str, Callable[[int], int | str]] = {
    "auto": lambda m: "auto", "40": lambda m: 40, "m/8": lambda m: m // 8, "m/4": lambda m: m // 4,
}  # fmt: skip
CELLS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "regression.md"

Array = NDArray[Any]
Made = tuple[Array, Array, int]  # the table, the target, and the number of relevant columns, which come first


# --- synthetic tables whose first columns are relevant ---


def friedman(rng: np.random.Generator) -> Made:
    """Make Friedman's first problem: a sine of a product, a square and two linear terms, with noise."""
    X = rng.random((2000, 50))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.standard_normal(2000), 5


def product(rng: np.random.Generator) -> Made:
    """Make a table whose target is the product of two columns plus a third column, with noise."""
    X = rng.standard_normal((2000, 60))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(2000), 3


def weak(rng: np.random.Generator) -> Made:
    """Make a table whose target has ten linear terms, which explain less than half of its variance."""
    X = rng.standard_normal((2000, 100))
    return X, 0.3 * X[:, :10].sum(axis=1) + rng.standard_normal(2000), 10


def exponential(rng: np.random.Generator) -> Made:
    """Make the table of `product` with exp(y) as its target, so that a few rows cover nearly all of its range."""
    X, y, n = product(rng)
    return X, np.exp(y), n


def wide(rng: np.random.Generator) -> Made:
    """Make a table of 500 columns whose target is the sum of five columns, with noise."""
    X = rng.standard_normal((1000, 500))
    return X, X[:, :5].sum(axis=1) + rng.standard_normal(1000), 5


KINDS: dict[str, Callable[[np.random.Generator], Made]] = {
    "Friedman 1, 2,000 x 50": friedman,
    "product and a linear term, 2,000 x 60": product,
    "ten weak linear terms, 2,000 x 100": weak,
    "exp of the product, 2,000 x 60": exponential,
    "five linear terms, 1,000 x 500": wide,
}


# --- methods, and the relevant columns that they find ---


def with_belief(X: Array, y: Array, n: int | str, **settings: Any) -> Array:
    """Select features by BELIEF; settings that are not passed have their defaults."""
    return belief.select(X, y, n, task="regression", random_state=0, **settings).selected


def skrebate(X: Array, y: Array, n: int) -> Array:
    """Select features by ReliefF from scikit-rebate, which treats a target with many values as numeric.

    It uses only the first 500 rows, because it is slow.
    """
    from skrebate import ReliefF

    return ReliefF(n_neighbors=20).fit(X[:500], y[:500]).top_features_[:n]


METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "BELIEF": with_belief,
    "RReliefF (range)": lambda X, y, n: RReliefF(n, n_neighbors=40, random_state=0).fit(X, y).selected_,
    "F test": lambda X, y, n: np.argsort(-f_regression(X, y)[0])[:n],
    "mutual information": lambda X, y, n: np.argsort(-mutual_info_regression(X, y, random_state=0))[:n],
    "scikit-rebate, 500 rows": skrebate,
}


def found(method: str, kind: str, seed: int) -> float:
    """Return the share of the relevant columns that a method finds, if it selects as many columns as are relevant."""
    X, y, n = KINDS[kind](np.random.default_rng(seed))
    return float(np.mean(np.isin(np.arange(n), METHODS[method](X, y, n))))


# --- R² with the number of features chosen by "auto" ---


def diabetes() -> tuple[Array, Array]:
    """Return the diabetes data of scikit-learn."""
    return load_diabetes(return_X_y=True)


def california() -> tuple[Array, Array]:
    """Make data like California housing: 5,000 districts, whose prices rise with the income and near the sea."""
    rng = np.random.default_rng(0)
    m = 5000
    income, age = rng.gamma(4.0, 1.0, m), rng.uniform(1, 52, m)
    rooms = 3 + 0.5 * income + rng.normal(0, 0.8, m)
    bedrooms, population = 0.2 * rooms + rng.normal(0, 0.05, m), rng.lognormal(7, 0.7, m)
    people = np.clip(rng.normal(3, 0.7, m), 1, None)
    north = rng.uniform(0, 1, m)
    east = np.clip(1 - north + rng.normal(0, 0.2, m), 0, 2)
    sea = np.exp(-3 * np.abs(east - (1 - north)))
    y = 0.4 * income + 1.5 * sea * (1 + 0.2 * income) + 0.004 * age - 0.25 * people + rng.normal(0, 0.4, m)
    return np.column_stack([income, age, rooms, bedrooms, population, people, north, east]), np.minimum(y, 5.0)


DATA = {"diabetes, 442 x 10": diabetes, "California-like, 5,000 x 8": california}
MODELS = {
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV()),
    "trees": lambda: ExtraTreesRegressor(100, min_samples_leaf=3, random_state=0),
}


def ways_of(data: str) -> list[str | None]:
    """Return the variants to compare on a data set: None uses all features, and the others are keys of NEIGHBOURS.

    A key stands for a number of neighbours: "m/8" is an eighth of the training rows. For the larger table, "m/8" and
    "m/4" are left out, because so many neighbours would include distant rows.
    """
    return [None, *NEIGHBOURS] if data.startswith("diabetes") else [None, "auto", "40"]


def worth(data: str, n_neighbors: str | None, seed: int) -> dict[str, float]:
    """Return the cross-validated R² of each model, and the mean number of features.

    BELIEF selects the features inside each fold, and chooses their number, too (n_features_to_select="auto").
    `n_neighbors` is a key of NEIGHBOURS, such as "m/8" for an eighth of the training rows. If it is None, nothing is
    selected, and the models use all features.
    """
    X, y = DATA[data]()
    sums = dict.fromkeys([*MODELS, "features"], 0.0)
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        S = np.arange(X.shape[1]) if n_neighbors is None else chosen(X[train], y[train], n_neighbors)
        for name, model in MODELS.items():
            sums[name] += model().fit(X[train][:, S], y[train]).score(X[test][:, S], y[test]) / 5
        sums["features"] += len(S) / 5
    return sums


def chosen(X: Array, y: Array, n_neighbors: str) -> Array:
    """Return the features that BELIEF selects if it also chooses their number; `n_neighbors` is a key of NEIGHBOURS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warns if no feature is significant
        return with_belief(X, y, "auto", n_neighbors=NEIGHBOURS[n_neighbors](len(X)))


def found_by_k(n_neighbors: str, kind: str, seed: int) -> float:
    """Return the share of the relevant columns that BELIEF finds in the first 400 rows.

    `n_neighbors` is a key of NEIGHBOURS, such as "m/8" for an eighth of these rows.
    """
    X, y, n = KINDS[kind](np.random.default_rng(seed))
    S = with_belief(X[:400], y[:400], n, n_neighbors=NEIGHBOURS[n_neighbors](400))
    return float(np.mean(np.isin(np.arange(n), S)))


# --- p-values of noise columns ---


def beside(rng: np.random.Generator, kind: str) -> Made:
    """Make a table of 1,000 rows in which all columns are noise except for the first few."""
    X = rng.standard_normal((1000, 60))
    if kind == "uniform, Friedman 1":
        X, y, n = friedman(rng)
        return X[:1000], y[:1000], n
    if kind == "yes and no":
        X = (X > 0).astype(float)
    if kind == "lognormal":
        X = np.exp(X)
    e = rng.standard_normal(1000)
    if kind == "20 copies of a strong one":
        X[:, 1:20] = X[:, :1] + 0.1 * X[:, 1:20]
        return X, X[:, 0] + 0.2 * e, 20
    if kind == "nothing":
        return X, e, 0
    return X, X[:, 0] * X[:, 1] + 2 * X[:, 2] + 0.1 * e, 3


NOISES = (
    "nothing",
    "product and linear",
    "uniform, Friedman 1",
    "yes and no",
    "lognormal",
    "20 copies of a strong one",
)


def noise(kind: str, seed: int) -> dict[str, float]:
    """Return statistics of the noise columns: shares of small p-values, and mean and standard deviation of z.

    z is the weight of a feature divided by its standard error.
    """
    X, y, n = beside(np.random.default_rng(seed), kind)
    got = belief.select(X, y, 5, task="regression", random_state=0, redundancy=None)
    z, p = (got.weights / got.se)[n:], got.p_value[n:]
    return {"z": z.mean(), "spread": z.std(), "p05": np.mean(p < 0.05), "p001": np.mean(p < 0.001)}


# --- speed ---


def speed(m: int, F: int) -> float:
    """Return the CPU time with a numeric target, divided by the CPU time with two classes, on one core.

    The two classes are the values above the median of the target and the others. Each time is the shortest of six runs.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, F)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3]
    took: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(6):  # the first run compiles the kernels
        for numeric in took:
            start = time.process_time()
            belief.select(X, y if numeric else y > np.median(y), 10, sample_size=2000, random_state=0, n_jobs=1)
            took[numeric].append(time.process_time() - start)
    return min(took[True]) / min(took[False])


SIZES = ((5000, 500), (20_000, 200), (100_000, 100))


# --- all results ---


def cells() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the key of each result in regression.jsonl, and a function that computes it."""
    for kind in KINDS:
        for seed in SEEDS:
            for method in METHODS:
                yield f"found | {method} | {kind} | {seed}", partial(found, method, kind, seed)
            for k in NEIGHBOURS:
                yield f"by k | {k} | {kind} | {seed}", partial(found_by_k, k, kind, seed)
    for data in DATA:
        for seed in FOLD_SEEDS:
            for way in ways_of(data):
                yield f"worth | {way} | {data} | {seed}", partial(worth, data, way, seed)
    for kind in NOISES:
        for seed in SEEDS:
            yield f"noise | {kind} | {seed}", partial(noise, kind, seed)
    for m, F in SIZES:
        yield f"speed | {m} x {F}", partial(speed, m, F)


def compute() -> Answers:
    """Compute the missing results, and return all of them."""
    kept = Answers(CELLS, {"seeds": SEEDS, "folds": FOLD_SEEDS})
    for name, answer in cells():
        kept.get(name, answer)
    return kept


def mean(kept: Answers, start: str, part: str | None = None) -> float:
    """Return the mean of the results whose keys begin with `start`; `part` is the entry to average in dictionaries."""
    those = [x if part is None else x[part] for name, x in kept.answers.items() if name.startswith(start)]
    return float(np.mean(those))


def table_of(kept: Answers, what: str, ways: Any, kinds: Any) -> str:
    """Return a table with a line for each variant (`ways`) and a column for each kind: means over the seeds."""
    lines = [[way, *(f"{mean(kept, f'{what} | {way} | {kind} | '):.2f}" for kind in kinds)] for way in ways]
    for line, way in zip(lines, ways, strict=True):
        line.append(f"{np.mean([mean(kept, f'{what} | {way} | {kind} | ') for kind in kinds]):.3f}")
    return table(["", *kinds, "mean"], lines)


def table_of_worth(kept: Answers) -> str:
    """Return the table of R² by data set and variant."""
    lines = []
    for data in DATA:
        for way in ways_of(data):
            start = f"worth | {way} | {data} | "
            said = "all features" if way is None else f"automatic number, k = {way}"
            lines.append([data, said, f"{mean(kept, start, 'features'):.1f}"])
            lines[-1] += [f"{mean(kept, start, model):.3f}" for model in MODELS]
    return table(["data", "which", "features", *(f"R², {model}" for model in MODELS)], lines)


def table_of_noise(kept: Answers) -> str:
    """Return the table of the statistics of noise columns, by the kind of table."""
    names = ("z", "spread", "p05", "p001")
    lines = [[kind, *(f"{mean(kept, f'noise | {kind} | ', name):.3f}" for name in names)] for kind in NOISES]
    return table(["noise beside", "mean of raw z", "its spread", "p < 0.05", "p < 0.001"], lines)


def page(kept: Answers) -> dict[str, str]:
    """Return the text of each part of the page, by the name of the part."""
    speeds = [[f"{m:,} x {F}", f"{kept.answers[f'speed | {m} x {F}']:.2f}"] for m, F in SIZES]
    return {
        "found": table_of(kept, "found", METHODS, KINDS),
        "by-k": f"Other numbers of neighbours: {as_data('by k', table_of(kept, 'by k', NEIGHBOURS, KINDS))}.",
        "worth": f"R² by data and model: {as_data('worth', table_of_worth(kept))}.",
        "noise": f"By kind of noise: {as_data('noise', table_of_noise(kept))}.",
        "speed": f"By size: {as_data('speed', table(['rows x columns', 'times as long as two classes'], speeds))}.\n\n"
        f"{kept.origin}",
    }


if __name__ == "__main__":
    for mark, text in page(compute()).items():
        print(f"\n{text}")
        publish(PAGE, mark, text)
