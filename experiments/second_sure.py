"""Checks of experiments/second.py: how sure it is, how many features it takes, and how much it samples."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import problems
from checking import FRESH, MORE_SEEDS, SEEDS, Check, Found, Verdict, chosen, spread
from made import LARGE, NOISE, graded, noise
from second_found import by_r, planted_cells

import belief

# --- p-values ---

MANY_SEEDS = (*range(8), *range(FRESH[0], FRESH[0] + 8))  # of p < 0.001 there are few, so fewer would not tell


def p_values_of(kind: str, seed: int) -> list[int]:
    """How many features of noise there are, and how many have p < 0.05 and p < 0.001."""
    data = noise(kind, seed)
    p = np.delete(chosen(data, 10, seed).p_value, data.relevant)
    return [len(p), int((p < 0.05).sum()), int((p < 0.001).sum())]


def calibrated(found: Found) -> Verdict:
    """The shares of noise, of all seeds together."""
    n, few, fewer = np.sum(list(found.values()), axis=0)
    return f"{few / n:.3f}, {fewer / n:.4f}", bool(0.02 <= few / n <= 0.08 and fewer / n <= 0.004)


# --- the automatic number ---


def auto_on_noise(kind: str, seed: int) -> int:
    """How many features of noise alone."""
    return len(chosen(noise(kind, seed), "auto", seed).selected)


def auto_xor(seed: int) -> list[int]:
    """Which features, where the class is the XOR of the first two of 100."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1000, 100))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    return sorted(belief.select(X, y, "auto", random_state=seed).selected.tolist())


def exactly_two(found: Found) -> Verdict:
    """On every seed."""
    right = [x == [0, 1] for x in found.values()]
    return f"{sum(right)} of {len(right)} seeds", all(right)


def ten_and_little_noise(found: Found) -> Verdict:
    """All ten, and at most three of noise."""
    every = by_r(found, (1, 5, 10))
    told = [
        f"r = {r}: {spread(x[0] for x in seeds)} of ten, {spread(x[1] for x in seeds)} of noise"
        for r, seeds in every.items()
    ]
    return "; ".join(told), all(x[0] == 10 and x[1] <= 3 for seeds in every.values() for x in seeds)


def models() -> dict[str, Any]:
    """What judges the features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    return {"LR": LogisticRegression(max_iter=2000), "5-NN": KNeighborsClassifier(5), "SVM": LinearSVC()}


def auto_accuracy(name: str, seed: int) -> dict[str, Any]:
    """Accuracy in five folds with all features and with those of "auto", by classifier; and how many those are."""
    import sklearn.datasets
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    marks: dict[str, Any] = {"features": []}
    for a, b in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        some = belief.select(X[a], y[a], "auto", random_state=seed).selected
        marks["features"].append(len(some))
        for short, model in models().items():
            for which, columns in (("all", slice(None)), ("auto", some)):
                judged = make_pipeline(StandardScaler(), model).fit(X[a][:, columns], y[a])
                marks.setdefault(f"{short}, {which}", []).append(round(judged.score(X[b][:, columns], y[b]), 5))
    return marks


def hardly_worse(found: Found) -> Verdict:
    """With every classifier, in the mean of all folds and seeds."""
    every = {key: np.concatenate([marks[key] for marks in found.values()]) for key in next(iter(found.values()))}
    counts = every["features"].astype(int)
    means = {short: (every[f"{short}, all"].mean(), every[f"{short}, auto"].mean()) for short in models()}
    text = ", ".join(f"{short} {some:.3f} of {whole:.3f}" for short, (whole, some) in means.items())
    met = all(some >= whole - 0.015 for whole, some in means.values())
    return f"{counts.min()} to {counts.max()} features: {text}", met


# --- a sample that grows ---


def stop_of(result: belief.Result) -> dict[str, Any]:
    """Where the sample stopped, and why."""
    return {"sample": result.sample_size, "stopped": result.stop_reason}


def epsilon(seed: int) -> dict[str, Any]:
    """How many of fifty features of epsilon-like data matter."""
    problem = problems.epsilon_like(40_000, 2_000, seed=seed)
    result = belief.select(problem.X, problem.y, 50, random_state=seed)
    return stop_of(result) | {"relevant": int(np.isin(result.selected, np.concatenate(problem.relevant)).sum())}


def all_relevant(found: Found) -> Verdict:
    """Fifty of fifty."""
    told = [f"{x['relevant']} (sample {x['sample']:,}, {x['stopped']})" for x in found.values()]
    return ", ".join(told), all(x["relevant"] == 50 for x in found.values())


def strong(n: int, seed: int) -> dict[str, Any]:
    """Where the sample stops if n of twenty strong features are asked for."""
    return stop_of(chosen(graded(200_000, 500, seed), n, seed))


def at_once(found: Found) -> Verdict:
    """Without growing."""
    told = [f"{key}: {x['sample']:,} ({x['stopped']})" for key, x in found.items()]
    return ", ".join(told), all(x["sample"] == 2000 for x in found.values())


MOST = 32_000  # queries of the larger sample, so that it takes no longer than a minute


def eightfold(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Whether a sample eight times as large as the one it stopped at selects the same features."""
    data = LARGE[kind](100_000, 100, seed)
    result = chosen(data, n, seed)
    larger = chosen(data, n, seed, sample_size=min(8 * result.sample_size, max(MOST, 2 * result.sample_size)))
    missing = np.setdiff1d(larger.selected, result.selected)
    return stop_of(result) | {"larger": larger.sample_size, "changed": len(missing)}


def settled(found: Found) -> Verdict:
    """Of the runs that say so, 9 in 10 are to select the same."""
    same = [x["changed"] == 0 for x in found.values() if x["stopped"] == "converged"]
    every = [x["changed"] == 0 for x in found.values()]
    text = f'{sum(same)} of {len(same)} that said "converged"; {sum(every)} of {len(every)} whatever they said'
    return text, sum(same) >= 0.9 * len(same)


CHECKS = [
    *(
        Check(
            "calibration",
            f"noise, {kind}: p < 0.05 for 0.02 to 0.08, p < 0.001 for at most 0.004",
            {f"{kind} seed={seed}": partial(p_values_of, kind, seed) for seed in MANY_SEEDS},
            calibrated,
        )
        for kind in NOISE
    ),
    Check(
        "auto",
        "on noise 0 or 1 feature",
        {f"{kind} seed={x}": partial(auto_on_noise, kind, x) for kind in NOISE[:-1] for x in (0, 1, *FRESH[:2])},
        lambda found: (spread(found.values()), max(found.values()) <= 1),
    ),
    Check(
        "auto",
        "XOR of two among 100: exactly those two",
        {f"XOR seed={seed}": partial(auto_xor, seed) for seed in MORE_SEEDS},
        exactly_two,
    ),
    Check(
        "auto",
        "planted r = 1, 5, 10: all ten and at most three of noise",
        planted_cells((1, 5, 10), "auto"),
        ten_and_little_noise,
    ),
    *(
        Check(
            "auto",
            f"{name}: accuracy within 0.015 of all features",
            {f"{name} seed={seed}": partial(auto_accuracy, name, seed) for seed in seeds},
            hardly_worse,
        )
        for name, seeds in (("breast_cancer", SEEDS), ("wine", SEEDS), ("digits", SEEDS[:1]))
    ),
    Check(
        "growing",
        "epsilon-like, 40,000 x 2,000: 50 of 50 matter",
        {f"epsilon seed={seed}": partial(epsilon, seed) for seed in (0, FRESH[0])},
        all_relevant,
    ),
    Check(
        "growing",
        "200,000 x 500 with strong features: stops at 2,000",
        {f"{n} of 20, seed {seed}": partial(strong, n, seed) for n, seed in ((10, 0), (20, 0), (10, FRESH[0]))},
        at_once,
    ),
    Check(
        "growing",
        "what has settled is what a sample eight times as large selects, in 9 of 10 runs",
        {
            f"{kind} n={n} seed={seed}": partial(eightfold, kind, n, seed)
            for kind in LARGE
            for n, seed in ((5, 0), (20, FRESH[0]), *product((5, 10), (1, 2, *FRESH)))
        },
        settled,
    ),
]
