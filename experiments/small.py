"""The paper's small problems (its tables 4 to 8): what each method selects, and what classifiers make of it.

    BELIEF_DATA=folder python experiments/small.py

The folder holds the published files, kais/*.csv; without it the problems are made anew by problems/, and the page
says so. Every answer is kept in small.jsonl as it comes, so a run that was stopped goes on where it was. Writes the
tables into docs/experiments/small.md, and the figure beside it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, as_data, data_home, publish, table
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from small_paper import PAPER, Figures
from small_tasks import APART, BINS, FOLDS, REPEATS, SEED, SLOW, TASKS, Array, counts, folds, problem, split, success
from threadpoolctl import threadpool_limits

import belief
from belief import BeliefSelector
from belief.baselines import MRMR, ReliefF

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "small.md"
FIGURE = PAGE.with_name("small-mcr.svg")
CLASSIFIERS, WAYS = ("NB", "DT", "LR"), ("inside", "once")
COUNTED_OTHERWISE = ("XOR-100", "Madelon")  # the paper looks for other columns than those that matter
DEFAULTS = "the defaults"
FIRST = "Madelon | columns 1-20"  # those the paper counts as relevant and redundant


# --- the methods ---


def with_belief(**settings: Any) -> Callable[[Array, Array, int, bool], Array]:
    """BELIEF with some settings, and the defaults otherwise."""

    def select(X: Array, y: Array, n: int, discrete: bool) -> Array:
        selector = BeliefSelector(n, **settings, random_state=SEED, discrete_features=np.full(X.shape[1], discrete))
        return selector.fit(X, y).selected_

    return select


def relieff(X: Array, y: Array, n: int, discrete: bool) -> Array:
    """ReliefF with ten neighbours."""
    return ReliefF(n, discrete_features=np.full(X.shape[1], discrete), random_state=SEED).fit(X, y).selected_


def mrmr(X: Array, y: Array, n: int, discrete: bool) -> Array:
    """MRMR by difference, in as many bins as the starred rows have."""
    return MRMR(n, bins=None if discrete else BINS).fit(X, y).selected_


AS_PAPER = {**belief.PAPER, "sample_size": 1.0, "batch_size": 1.0}  # all rows, in one batch
METHODS = {
    "BELIEF": with_belief(**AS_PAPER | {"redundancy": None}),
    "BELIEF + mCR": with_belief(**AS_PAPER),
    "mRMR": mrmr,
    "ReliefF": relieff,
}


def classifiers(discrete: bool) -> dict[str, Any]:
    """Naive Bayes, decision tree (as deep as MLlib's by default) and logistic regression."""
    return {
        "NB": CategoricalNB(min_categories=BINS) if discrete else GaussianNB(),
        "DT": DecisionTreeClassifier(max_depth=5, random_state=SEED),
        "LR": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


# --- one answer ---


def answer(name: str, starred: bool, method: str, n: int) -> dict[str, Any]:
    """What a method selects of all rows, and the accuracies when it selects inside each fold, or once before."""
    with warnings.catch_warnings(), threadpool_limits(1):  # so little data is not worth a thread
        warnings.simplefilter("ignore")  # classes with fewer rows than folds or neighbours, bins that coincide
        X, y, _, _, discrete = split(name, starred, -1)
        once = METHODS[method](X, y, n, discrete)
        found = counts(name, once)
        return {
            "selected": once.tolist(),
            "counts": found,
            "success": round(success(name, found), 4) + 0.0,
            "inside": accuracy(name, starred, lambda X, y: METHODS[method](X, y, n, discrete)),
            "once": accuracy(name, starred, lambda X, y: once),
        }


def by_defaults(name: str, starred: bool, n: int) -> dict[str, Any]:
    """What the defaults of the package select of all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y, _, _, discrete = split(name, starred, -1)
        found = with_belief()(X, y, n, discrete)
        return {"selected": found.tolist(), "counts": counts(name, found)}


def accuracy(name: str, starred: bool, select: Callable[[Array, Array], Array]) -> dict[str, float]:
    """The share of rows judged rightly, by classifier: the mean over the folds."""
    marks: dict[str, list[float]] = {}
    for fold in range(len(folds(name))):
        X, y, Z, truth, discrete = split(name, starred, fold)
        kept = select(X, y)
        for short, classifier in classifiers(discrete).items():
            marks.setdefault(short, []).append(classifier.fit(X[:, kept], y).score(Z[:, kept], truth))
    return {short: round(float(np.mean(x)), 4) for short, x in marks.items()}


# --- all of them ---


def grid(name: str) -> list[tuple[bool, str, int]]:
    """Starred or not, method and size: what a problem is asked."""
    stars = [False] if problem(name).discrete[0] else [False, True]
    return [(starred, method, n) for starred in stars for method in METHODS for n in TASKS[name].sizes]


def label(starred: bool, method: str) -> str:
    """A method as the paper writes it."""
    return f"{method} *" if starred else method


def compute(answers: Answers) -> None:
    """All answers; only those that are missing are computed."""
    for name in TASKS:
        for starred, method, n in grid(name):
            answers.get(key_of(name, starred, method, n), lambda: answer(name, starred, method, n))  # noqa: B023
            answers.get(key_of(name, starred, DEFAULTS, n), lambda: by_defaults(name, starred, n))  # noqa: B023
        split.cache_clear()
    answers.get(FIRST, lambda: accuracy("Madelon", False, lambda X, y: np.arange(20)))


def key_of(name: str, starred: bool, method: str, n: int) -> str:
    """The name of an answer in small.jsonl."""
    return f"{name} | {label(starred, method)} | {n}"


def configuration() -> dict[str, Any]:
    """All that the answers depend on."""
    return {
        "seed": SEED, "folds": FOLDS, "repeats": REPEATS, "slow": SLOW, "bins": BINS, "apart": APART,
        "data": "published" if data_home() else "made anew",
        "tasks": {name: [task.file, *task.sizes] for name, task in TASKS.items()},
    }  # fmt: skip


# --- the page ---


def markdown(answers: Answers) -> str:
    """All tables, and where they come from."""
    made = {"published": "the published files", "made anew": "generated with seed 0"}
    note = f"Data: {made[answers.configuration['data']]}. Seed {SEED}. {answers.origin}"
    figure = f"![mCR against plain BELIEF]({FIGURE.name})"
    files = [as_data(re.sub(r"[^\w-]+", " ", name).strip(), results(answers, name)) for name in TASKS]
    links = f"Tables: {', '.join(files)}; {as_data('the defaults', defaults_beside(answers))}."
    return "\n\n".join([note, agreement(answers), figure, links])


def defaults_beside(answers: Answers) -> str:
    """What the defaults of the package select, beside the paper's settings."""
    lines = []
    for name in TASKS:
        for starred, n in sorted({(starred, n) for starred, _, n in grid(name)}):
            ways = ("BELIEF", "BELIEF + mCR", DEFAULTS)
            found = [answers.answers[key_of(name, starred, way, n)]["counts"] for way in ways]
            lines.append([label(starred, name), str(n), *(", ".join(map(str, x)) for x in found)])
    return table(["relevant, redundant, irrelevant", "asked", "BELIEF", "BELIEF + mCR", DEFAULTS], lines)


def agreement(answers: Answers) -> str:
    """How near ours are to the paper's figures, in numbers."""
    same = [ours["counts"] == [x or 0 for x in theirs[:3]] for ours, theirs in both(answers, without=COUNTED_OTHERWISE)]
    inside, once = (np.mean(apart(answers, way)) for way in WAYS)
    return "\n".join([
        f"- The counts equal those of the paper in {sum(same)} of {len(same)} rows; rows of"
        f" {' and '.join(COUNTED_OTHERWISE)}, for which we define relevant features differently, are not counted.",
        f"- The {len(apart(answers, 'once'))} accuracies of the paper differ from ours by {once:.3f} on average if"
        f" features are selected once, from all rows, and by {inside:.3f} if they are selected inside each fold.",
        "- The paper counts columns 1-20 of Madelon as relevant or redundant. A tree on these columns has an accuracy"
        f" of {answers.answers[FIRST]['DT']:.2f}.",
    ])  # fmt: skip


def both(answers: Answers, without: tuple[str, ...] = ()) -> list[tuple[dict[str, Any], Figures]]:
    """Ours and the paper's, for each row that it prints."""
    return [
        (answers.answers[f"{name} | {method} | {n}"], figures)
        for name, printed in PAPER.items()
        if name not in without
        for (method, n), figures in printed.items()
    ]


def apart(answers: Answers, way: str) -> list[float]:
    """How far each accuracy that the paper prints is from ours."""
    return [
        abs(ours[way][short] - printed)
        for ours, theirs in both(answers)
        for short, printed in zip(CLASSIFIERS, theirs[4:], strict=True)
        if printed is not None
    ]


def results(answers: Answers, name: str) -> str:
    """The table of one problem."""
    head = ["method", "asked", "rel, red, irr", "paper", "success", "paper", "NB", "DT", "LR"]
    lines = []
    for starred, method, n in grid(name):
        ours = answers.answers[key_of(name, starred, method, n)]
        theirs = PAPER.get(name, {}).get((label(starred, method), n))
        lines.append([
            label(starred, method), str(n),
            ", ".join(map(str, ours["counts"])),
            ", ".join(map(dash, theirs[:3])) if theirs else "",
            f"{round(ours['success'], 2) + 0.0:.2f}", f"{theirs[3]:.2f}" if theirs else "",
            *(" · ".join(marks(ours, theirs, i, short)) for i, short in enumerate(CLASSIFIERS)),
        ])  # fmt: skip
    return table(head, lines)


def marks(ours: dict[str, Any], theirs: Figures | None, i: int, short: str) -> list[str]:
    """The accuracies of one classifier: ours inside the folds, ours once, the paper's."""
    printed = theirs[4 + i] if theirs else None
    return [f"{ours[way][short]:.2f}" for way in WAYS] + ([f"{printed:.2f}"] if printed else [])


def dash(x: int | None) -> str:
    """A number, or the paper's dash."""
    return "–" if x is None else str(x)


def gains(answers: Answers) -> dict[str, list[float | None]]:
    """By problem and size, what mCR gains: its best accuracy less that of plain BELIEF (inside, once, the paper's)."""
    found: dict[str, list[float | None]] = {}
    for name in TASKS:
        for n in TASKS[name].sizes:
            ours = [gain_of(best_of(answers, name, n, way)) for way in WAYS]
            found[f"{name}, {n}"] = [*ours, gain_of(best_printed(name, n))]
    return found


def best_of(answers: Answers, name: str, n: int, way: str) -> dict[str, float]:
    """The best accuracy of each method, over the classifiers and with or without discretisation."""
    best: dict[str, float] = {}
    for starred, method, size in grid(name):
        if size == n:
            mark = max(answers.answers[key_of(name, starred, method, n)][way].values())
            best[method] = max(mark, best.get(method, 0.0))
    return best


def best_printed(name: str, n: int) -> dict[str, float]:
    """The same of the paper's tables."""
    best: dict[str, float] = {}
    for (method, size), figures in PAPER.get(name, {}).items():
        if size == n:
            plain = method.removesuffix(" *")
            best[plain] = max(best.get(plain, 0.0), *(x for x in figures[4:] if x is not None))
    return best


def gain_of(best: dict[str, float]) -> float | None:
    """What mCR gains, or nothing where nothing is known."""
    return round(best["BELIEF + mCR"] - best["BELIEF"], 4) if best else None


def draw(answers: Answers) -> None:
    """The figure: bars of what mCR gains."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "small", "text.parse_math": False})
    from matplotlib.figure import Figure

    found = gains(answers)
    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots()
    ways = ("ours, selected inside each fold", "ours, selected once", "paper")
    for i, (way, colour) in enumerate(zip(ways, ("#1b6ca8", "#9cc4e4", "#d1495b"), strict=True)):
        bars = [(at, gain[i]) for at, gain in enumerate(found.values()) if gain[i] is not None]
        axes.barh([at + 0.27 * (i - 1) for at, _ in bars], [g for _, g in bars], 0.25, label=way, color=colour)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_ylabel("problem, features asked for")
    axes.set_xlabel("best accuracy of BELIEF + mCR, less that of BELIEF")
    axes.legend()
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    kept = Answers(ANSWERS, configuration())
    compute(kept)
    draw(kept)
    publish(PAGE, "small", markdown(kept))
    print(f"{PAGE} and {FIGURE} are written.")
