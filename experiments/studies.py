"""Test study designs on synthetic tables: calibration, confounded batches, weights, markers, and cost of stability.

    python experiments/studies.py
    python experiments/studies.py --only calibration batches --seeds 4

`--only` computes only some parts, and `--seeds` limits the number of seeds per part. Each result is saved in
studies.jsonl as soon as it is computed, so an interrupted run continues where it stopped. The script prints the tables
and writes them into docs/experiments/studies.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, as_data, publish, table
from made import Array
from scipy import stats
from threadpoolctl import threadpool_limits

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "studies.md"
SEEDS = {  # no setting was chosen with these seeds
    "calibration": range(6000, 6020), "batches": range(6000, 6010), "interactions": range(6000, 6010),
    "markers": range(6013, 6023), "stability": range(6000, 6001),
}  # fmt: skip
WITHOUT = 5  # number of seeds for which the calibration is repeated without the design
TYPES, SHARES = ("T", "B", "NK", "mast", "pDC", "ILC"), (0.4, 0.3, 0.24, 0.03, 0.02, 0.01)
N_MARKERS = 10
LARGE, REPEATS, HALVES = (200_000, 500), 8, 50

Rows = tuple[Array, Array, dict[str, Array]]  # the table, the target, and the design


# --- noise whose rows depend on each other ---------------------------------------------------------------------------


def grouped(rng: np.random.Generator, group: Array, spread: float = 0.5) -> Rows:
    """Return noise in groups: the rows of a group are similar to each other and have the same class."""
    n = int(group.max()) + 1
    X = rng.normal(size=(n, 60))[group] + spread * rng.normal(size=(len(group), 60))
    return X, rng.integers(0, 2, n)[group], {"groups": group}


def five_per_group(rng: np.random.Generator) -> Rows:
    """Return noise in 120 groups of five rows."""
    return grouped(rng, np.repeat(np.arange(120), 5))


def time_series(rng: np.random.Generator) -> Rows:
    """Return 1,000 rows of noise, in blocks of 50 rows, in which all columns have an autocorrelation of 0.9.

    The class is the sign of another series with the same autocorrelation.
    """
    steps = rng.normal(size=(1100, 61))
    for i in range(1, len(steps)):
        steps[i] = 0.9 * steps[i - 1] + np.sqrt(1.0 - 0.9**2) * steps[i]
    return steps[100:, :60], (steps[100:, 60] > 0).astype(int), {"groups": np.arange(1000) // 50}


def shifted_batches(rng: np.random.Generator) -> Rows:
    """Return noise in two batches, with different means in all columns and different shares of the classes.

    Class 1 has 30 % of the rows of the first batch, and 70 % of the rows of the second batch.
    """
    batch = rng.integers(0, 2, 800)
    y = (rng.random(800) < np.where(batch, 0.7, 0.3)).astype(int)
    return rng.normal(size=(800, 60)) + 0.8 * batch[:, None], y, {"adjust_for": batch}


def random_weights(rng: np.random.Generator) -> Rows:
    """Return noise with random row weights from 0.1 to 2."""
    return rng.normal(size=(800, 60)), rng.integers(0, 2, 800), {"sample_weight": rng.uniform(0.1, 2.0, 800)}


def weights_by_class(rng: np.random.Generator) -> Rows:
    """Return noise in which the rows of a rare class have lognormal weights, and all other rows the weight 1."""
    y = (rng.random(800) < 0.2).astype(int)
    return rng.normal(size=(800, 60)), y, {"sample_weight": np.where(y == 1, rng.lognormal(0.0, 1.2, 800), 1.0)}


def weighted_groups(rng: np.random.Generator) -> Rows:
    """Return noise in groups of five rows; all rows of a group have the same random weight."""
    X, y, design = five_per_group(rng)
    return X, y, {**design, "sample_weight": rng.uniform(0.1, 2.0, 120)[design["groups"]]}


CALIBRATION: dict[str, Callable[[np.random.Generator], Rows]] = {
    "groups of five rows that share the class": five_per_group,
    "groups of 1 to 11 rows that share the class": lambda rng: grouped(
        rng, np.repeat(np.arange(100), rng.integers(1, 12, 100))
    ),
    "groups of ten rows that share the class": lambda rng: grouped(rng, np.repeat(np.arange(100), 10)),
    "pairs of near copies": lambda rng: grouped(rng, np.repeat(np.arange(300), 2), 0.05),
    "autocorrelated rows, blocks of 50": time_series,
    "strata: batches that shift all columns, 70/30": shifted_batches,
    "weights at random": random_weights,
    "weights of one class only": weights_by_class,
    "groups of five rows with weights": weighted_groups,
}


def select(X: Array, y: Array, n: int, **settings: Any) -> belief.Result:
    """Select features on one core."""
    return belief.select(X, y, n, random_state=0, n_jobs=1, **settings)


def count_below(p: Array) -> list[int]:
    """Return two counts: the p-values that are not NaN, and the p-values below 0.05.

    The share of small p-values is computed later, from the sums of both counts over all seeds.
    """
    return [int((~np.isnan(p)).sum()), int((p < 0.05).sum())]


def calibration(name: str, seed: int) -> dict[str, Any]:
    """Return how many p-values of noise columns are below 0.05, for each kind of p-value.

    BELIEF is told the study design: the groups, batches or weights of the rows. For some seeds, the p-values of a fit
    without the design are counted as well.
    """
    X, y, design = CALIBRATION[name](np.random.default_rng(seed))
    result = select(X, y, 3, **design)
    tests = {x: count_below(getattr(result, x)) for x in ("p_value", "p_univariate", "p_neighbours")}
    if seed in SEEDS["calibration"][:WITHOUT]:
        tests["without"] = count_below(select(X, y, 3).p_value)
    return tests


# --- relevant columns found, and cost --------------------------------------------------------------------------------


def batches(seed: int) -> dict[str, Any]:
    """Return the share of shifted columns with p < 0.05, and how many of five relevant columns are selected.

    100 of 150 columns are shifted between two batches, and the batch is confounded with the class. The answer has the
    result without and with adjustment for the batch.
    """
    rng = np.random.default_rng(seed)
    batch = rng.integers(0, 2, 1000)
    y = (rng.random(1000) < np.where(batch, 0.7, 0.3)).astype(int)
    X = rng.normal(size=(1000, 150))
    X[:, :100] += 0.8 * batch[:, None]
    X[:, 145:] += 0.5 * y[:, None]
    answer = {}
    for name, design in (("without", {}), ("adjusted", {"adjust_for": batch})):
        result = select(X, y, 5, **design)
        answer[name] = [float((result.p_value[:100] < 0.05).mean()), int((result.selected >= 145).sum())]
    return answer


def interactions(seed: int) -> list[int]:
    """Return how many of two interacting columns are selected and significant, with and without row weights.

    In rows with small weights, the interaction is the opposite.
    """
    rng = np.random.default_rng(seed)
    X, is_light = rng.normal(size=(800, 60)), rng.random(800) < 0.5
    y = ((X[:, 0] * X[:, 1] > 0) ^ is_light).astype(int)
    weight = np.where(is_light, 0.02, 1.0) * rng.uniform(0.5, 1.5, 800)
    results = [select(X, y, 2, **design) for design in ({"sample_weight": weight}, {})]
    return [int((np.isin([0, 1], x.selected) & (x.q_value[:2] < 0.05)).sum()) for x in results]


def markers(seed: int) -> dict[str, list[int]]:
    """Return how many of the ten markers of each cell type are found, for three ways to select features."""
    rng = np.random.default_rng(seed)
    types = rng.choice(len(TYPES), 4000, p=SHARES)
    rate = rng.gamma(0.3, 1.0, 1000) * np.ones((4000, 1))
    for t in range(len(TYPES)):
        rate[np.ix_(types == t, _markers_of(t))] += 1.5
    X = np.log1p(rng.poisson(rate))
    of_types = select(X, types, 1, per_class=N_MARKERS)
    whole = select(X, types, N_MARKERS * len(TYPES)).selected
    ways = {"per_class=10": [of_types.selected[of_types.selected_for == t] for t in range(len(TYPES))]}
    ways["60 features for all types"] = [whole] * len(TYPES)
    ways["t test of each type against the others"] = [
        np.argsort(-stats.ttest_ind(X[types == t], X[types != t], equal_var=False).statistic)[:N_MARKERS]
        for t in range(len(TYPES))
    ]
    return {way: [int(np.isin(x, _markers_of(t)).sum()) for t, x in enumerate(found)] for way, found in ways.items()}


def _markers_of(t: int) -> Array:
    return np.arange(N_MARKERS * t, N_MARKERS * (t + 1))


def stability(_: int, shape: tuple[int, int] = LARGE) -> dict[str, list[float]]:
    """Return the minimum CPU seconds of a fit without and with half-samples, with and without significance tests."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape, np.float32)
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(shape[0]) > 0).astype(int)
    answer = {}
    for name, tests in (("with tests", "permutation"), ("without tests", None)):
        seconds: list[list[float]] = [[], []]
        for _ in range(REPEATS):  # alternate between both, because the load of the machine changes
            for n, kept in zip((0, HALVES), seconds, strict=True):
                start = time.process_time()
                select(X, y, 10, significance=tests, stability=n)
                kept.append(time.process_time() - start)
        answer[name] = [round(min(x), 3) for x in seconds]
    return answer


# --- all results -----------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[int], Any]] = {
    "batches": batches, "interactions": interactions, "markers": markers, "stability": stability,
}  # fmt: skip


def cells(part: str) -> dict[str, Callable[[int], Any]]:
    """Return the functions that compute the results of a part from a seed, by the start of each result's key."""
    if part == "calibration":
        return {f"{part} | {name}": partial(calibration, name) for name in CALIBRATION}
    return {part: PARTS[part]}


def compute(answers: Answers, parts: tuple[str, ...], n_seeds: int) -> None:
    """Compute the missing results of some parts for the first `n_seeds` seeds."""
    for part in parts:
        for seed in SEEDS[part][:n_seeds]:
            for name, what in cells(part).items():
                answers.get(f"{name} | seed={seed}", partial(what, seed))


def found(answers: Answers, name: str) -> list[Any]:
    """Return the results that are known, in the order of their seeds."""
    keys = (f"{name} | seed={seed}" for seed in SEEDS[name.split(" | ")[0]])
    return [answers.answers[key] for key in keys if key in answers.answers]


def table_of_calibration(answers: Answers) -> str:
    """Return the table of the shares of p-values of noise that are below 0.05."""
    lines = []
    for name in CALIBRATION:
        every = found(answers, f"calibration | {name}")
        if every:
            kinds = ("p_value", "p_univariate", "p_neighbours", "without")
            sums = [np.sum([x[kind] for x in every if kind in x], axis=0) for kind in kinds]
            lines.append([name, str(len(every)), *(f"{below / n:.3f}" for n, below in sums)])
    return table(["noise", "seeds", "p < .05", "univariate", "neighbours", "p < .05 without the design"], lines)


def table_of_batches(answers: Answers) -> str:
    """Return the table of the columns found with and without adjustment for the batch."""
    every = found(answers, "batches")
    lines = []
    for name, said in (("without", "no adjustment"), ("adjusted", "`adjust_for`")):
        shifted, relevant = zip(*(x[name] for x in every), strict=True)
        lines.append([said, str(len(every)), f"{np.mean(shifted):.3f}", f"{np.mean(relevant):.1f} of 5"])
    return table(["", "seeds", "shifted columns with p < .05", "relevant columns selected"], lines)


def table_of_interactions(answers: Answers) -> str:
    """Return the table of the interacting columns found, with and without weights."""
    weighted, plain = np.mean(found(answers, "interactions"), axis=0)
    n = str(len(found(answers, "interactions")))
    head = ["", "seeds", "selected and significant"]
    return table(head, [["`sample_weight`", n, f"{weighted:.1f} of 2"], ["no weights", n, f"{plain:.1f} of 2"]])


def table_of_markers(answers: Answers) -> str:
    """Return the table of the markers found for each cell type: the smallest number of all seeds."""
    every = found(answers, "markers")
    head = ["", "seeds", *(f"{name}, {100 * share:.0f} %" for name, share in zip(TYPES, SHARES, strict=True))]
    return table(head, [[way, str(len(every)), *map(str, np.min([x[way] for x in every], axis=0))] for way in every[0]])


def table_of_stability(answers: Answers) -> str:
    """Return the table of the CPU time of a fit without and with half-samples."""
    lines = []
    for name, (plain, with_halves) in found(answers, "stability")[0].items():
        lines.append([name, f"{plain:.2f}", f"{with_halves:.2f}", f"{100 * (with_halves / plain - 1):.0f} %"])
    return table(["fit", "CPU s", f"with `stability={HALVES}`", "more"], lines)


TABLES = {
    "calibration": table_of_calibration, "batches": table_of_batches, "interactions": table_of_interactions,
    "markers": table_of_markers, "stability": table_of_stability,
}  # fmt: skip
FILES = ("calibration", "markers")  # parts whose tables are only linked from the page


def tables(answers: Answers) -> dict[str, str]:
    """Return the table of each part that has results; for some parts, a link to the table."""
    known = {part: any(key.startswith(part) for key in answers.answers) for part in TABLES}
    made = {part: make(answers) for part, make in TABLES.items() if known[part]}
    return {part: f"All figures: {as_data(part, text)}." if part in FILES else text for part, text in made.items()}


def configuration() -> dict[str, Any]:
    """Return the configuration that is saved with the results; if it changes, all results are computed again."""
    return {"first seed": 6000}


def main() -> None:
    """Compute the missing results, print the tables, and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SEEDS, default=tuple(SEEDS), metavar="PART")
    parser.add_argument("--seeds", type=int, default=20, help="maximum number of seeds per part")
    options = parser.parse_args()
    answers = Answers(ANSWERS, configuration())
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tables of noise, which are intended here
        compute(answers, options.only, options.seeds)
    for part, text in tables(answers).items():
        print(text, end="\n\n")
        publish(PAGE, part, text)


if __name__ == "__main__":
    main()
