"""Checks of experiments/second.py: what is found, among copies, in rare classes, in small problems and in covtype."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import problems
import public_data
from checking import FRESH, MORE_SEEDS, SEEDS, Check, Found, Verdict, chosen, spread
from made import IMBALANCED, RARE, Made, imbalanced
from redundancy import REPEATS, SELECT, planted

import belief

# --- planted redundancy ---


def shown(r: int, seed: int, n: int | str = SELECT) -> list[int]:
    """Of the features selected, how many of the ten are shown, how many are noise, and how many there are."""
    X, y, origin = planted(r, seed)
    found = origin[belief.select(X, y, n, random_state=seed).selected]
    return [len(set(found[found >= 0].tolist())), int((found < 0).sum()), len(found)]


def planted_cells(repeats: tuple[int, ...], n: int | str = SELECT) -> dict[str, Any]:
    """All r and seeds."""
    return {f"r={r} seed={seed}": partial(shown, r, seed, n) for r in repeats for seed in MORE_SEEDS}


def by_r(found: Found, repeats: tuple[int, ...]) -> dict[int, list[list[int]]]:
    """What `shown` gave for each seed."""
    return {r: [found[f"r={r} seed={seed}"] for seed in MORE_SEEDS] for r in repeats}


def distinct(found: Found) -> Verdict:
    """All ten are to be shown."""
    counts = {r: [x[0] for x in every] for r, every in by_r(found, REPEATS).items()}
    return "; ".join(f"r = {r}: {spread(x)}" for r, x in counts.items()), all(min(x) == 10 for x in counts.values())


def little_noise(found: Found) -> Verdict:
    """Fewer than half of the other ten are to be noise."""
    counts = {r: [x[1] for x in every] for r, every in by_r(found, REPEATS).items() if r >= 5}
    return "; ".join(f"r = {r}: {spread(x)}" for r, x in counts.items()), all(max(x) < 5 for x in counts.values())


# --- rare classes ---


def relevant_of(kind: str, rare: float, seed: int) -> dict[str, float]:
    """The share of the relevant features among as many as there are: with the defaults, as the paper, by F."""
    from sklearn.feature_selection import f_classif

    data = imbalanced(kind, rare, seed)
    n = len(data.relevant)
    ways = {
        "defaults": chosen(data, n, seed).selected,
        "PAPER": chosen(data, n, seed, **belief.PAPER).selected,
        "F test": np.argsort(-np.nan_to_num(f_classif(data.X, data.y)[0]), kind="stable")[:n],
    }
    return {way: float(np.isin(selected, data.relevant).mean()) for way, selected in ways.items()}


def enough_relevant(found: Found) -> Verdict:
    """The mean over the tables, beside the others', and by the share of the rare class."""
    means = {way: np.mean([x[way] for x in found.values()]) for way in ("defaults", "PAPER", "F test")}
    by_share = {rare: np.mean([x["defaults"] for key, x in found.items() if f"| {rare} |" in key]) for rare in RARE}
    shares = ", ".join(f"{rare:.0%}: {x:.2f}" for rare, x in by_share.items())
    text = ", ".join(f"{way} {x:.2f}" for way, x in means.items())
    return f"{text}; the defaults by the share of the rare class {shares}", bool(means["defaults"] >= 0.85)


def ecbdl14(n_rows: int, seed: int) -> dict[str, Any]:
    """Of fifty features selected of ECBDL14-like data with 2 % positive rows: how many matter, of how many groups."""
    problem = problems.ecbdl14_like(n_rows, positive=0.02, seed=seed)
    data = Made(np.concatenate(problem.X), problem.y, problem.discrete, np.concatenate(problem.relevant))
    result = chosen(data, 50, seed)
    ways = {
        "defaults": result.selected,
        "by weight": np.argsort(-result.weights, kind="stable")[:50],
        "PAPER": chosen(data, 50, seed, **belief.PAPER).selected,
    }
    group = {j: g for g, columns in enumerate(problem.relevant) for j in columns}
    shown = {way: [group[j] for j in x.tolist() if j in group] for way, x in ways.items()}
    counts = {way: [len(x), len(set(x))] for way, x in shown.items()}
    return counts | {"sample": result.sample_size, "stopped": result.stop_reason}


def fifty(found: Found) -> Verdict:
    """All fifty are to matter; beside it what the largest weights and the paper's settings give."""
    ways = {"": "defaults", "the largest weights ": "by weight", "PAPER ": "PAPER"}
    told = [
        f"{key}: " + ", ".join(f"{word}{x[way][0]} of {x[way][1]} groups" for word, way in ways.items())
        for key, x in found.items()
    ]
    return "; ".join(told), all(x["defaults"][0] == 50 for x in found.values())


# --- small problems ---

KAIS = {"Parity3+3": (3, 3), "XOR100": (2, 2), "Monk3": (3, 3), "SD1": (2, 2), "Corral100": (10, 3)}  # asked, wanted
SIZES = {
    "Corral": (4,), "Corral100": (4, 10), "XOR100": (2, 10), "Parity3+3": (3, 5), "Monk3": (3,), "Led25n0": (7, 10),
    "Led25n10": (7, 10), "Led100n0": (7, 10), "Led100n10": (7, 10), "SD1": (2, 20), "SD2": (4, 20), "SD3": (6, 20),
}  # fmt: skip


def groups_found(name: str, n: int, seed: int, **settings: Any) -> int:
    """Of how many groups of relevant features some feature is selected."""
    data = public_data.load(name)
    result = belief.select(data.X, data.y, n, discrete_features=data.discrete, random_state=seed, **settings)
    assert data.relevant is not None
    return sum(not set(group).isdisjoint(result.selected.tolist()) for group in data.relevant)


def enough_groups(wanted: int, found: Found) -> Verdict:
    """So many on every seed."""
    return ", ".join(map(str, found.values())), min(found.values()) >= wanted


def both_editions(name: str, n: int) -> list[list[int]]:
    """Groups found by the defaults and by the paper's settings, for each seed."""
    return [[groups_found(name, n, seed, **settings) for seed in SEEDS] for settings in ({}, belief.PAPER)]


def nothing_lost(found: Found) -> Verdict:
    """The sum over the seeds is to be no less."""
    more = [key for key, (now, then) in found.items() if sum(now) > sum(then)]
    lost = {key: np.mean(both, axis=1) for key, both in found.items() if sum(both[0]) < sum(both[1])}
    words = "; ".join(f"{key}: {now:.3g} against {then:.3g}" for key, (now, then) in lost.items())
    return f"more in {len(more)} of {len(found)} cells, fewer in {len(lost)}: {words}", not lost


# --- covtype ---


def covtype(fold: int, **settings: Any) -> dict[str, Any]:
    """Macro F1 of a forest on the first 5 and 10 features; the marks are numbers, as the file has them."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import f1_score
    from sklearn.model_selection import StratifiedKFold

    data = public_data.load("covtype_10K")
    learn, judge = list(StratifiedKFold(3, shuffle=True, random_state=0).split(data.X, data.y))[fold]
    selected = belief.select(data.X[learn], data.y[learn], 10, random_state=fold, **settings).selected
    marks = []
    for first in (selected[:5], selected):
        forest = RandomForestClassifier(random_state=fold).fit(data.X[learn][:, first], data.y[learn])
        said = forest.predict(data.X[judge][:, first])
        marks.append(round(float(f1_score(data.y[judge], said, average="macro")), 4))
    return {"f1": marks, "selected": selected.tolist()}


def good_forest(found: Found) -> Verdict:
    """The mean over the folds."""
    means = {way: np.mean([found[f"{way}, fold {f}"]["f1"] for f in range(3)], axis=0) for way in ("defaults", "PAPER")}
    text = ", ".join(f"{way} {five:.2f} and {ten:.2f}" for way, (five, ten) in means.items())
    return text, bool(np.all(means["defaults"] >= (0.50, 0.57)))


def elevation(found: Found) -> Verdict:
    """The first column of the file."""
    ranks = [found[f"defaults, fold {f}"]["selected"].index(0) + 1 for f in range(3)]
    return f"rank {', '.join(map(str, ranks))}", max(ranks) <= 3


COVTYPE = {
    f"{way}, fold {f}": partial(covtype, f, **settings)
    for way, settings in (("defaults", {}), ("PAPER", belief.PAPER)) for f in range(3)
}  # fmt: skip
MADE = {
    f"{kind} | {rare} | seed={seed}": partial(relevant_of, kind, rare, seed)
    for kind in IMBALANCED for rare in RARE for seed in (0, 1, FRESH[0])
}  # fmt: skip
CHECKS = [
    Check("planted", "ten of ten distinct features among 20, on every seed", planted_cells(REPEATS), distinct),
    Check("planted", "of the other ten fewer than 5 are noise at r ≥ 5", planted_cells(REPEATS), little_noise),
    Check("rare", "at least 0.85 of the relevant features on 15 made tables", MADE, enough_relevant),
    Check(
        "rare",
        "ECBDL14-like, 2 % positive rows: 50 of 50 matter (there are 67, in 20 groups)",
        {f"{n:,} rows, seed {seed}": partial(ecbdl14, n, seed) for n, seed in ((40_000, 0), (40_000, 1), (160_000, 0))},
        fifty,
    ),
    *(
        Check(
            "kais",
            f"{name}, {n} asked, seeds 0 to 2: at least {wanted} found",
            {f"{name} {n} seed={seed}": partial(groups_found, name, n, seed) for seed in SEEDS},
            partial(enough_groups, wanted),
        )
        for name, (n, wanted) in KAIS.items()
    ),
    Check(
        "kais",
        "nothing is lost that the paper's settings find",
        {f"{name}, {n}": partial(both_editions, name, n) for name, sizes in SIZES.items() for n in sizes},
        nothing_lost,
    ),
    Check("covtype", "first 5 and 10: macro F1 of a forest at least 0.50 and 0.57", COVTYPE, good_forest),
    Check("covtype", "elevation is among the first three", COVTYPE, elevation),
]
