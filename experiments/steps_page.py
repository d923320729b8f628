"""The tables of experiments/steps.py."""

from __future__ import annotations

import numpy as np
from common import Answers, as_data, publish, table
from made import IMBALANCED, RARE
from steps import DATA, MADE_SEEDS, PAGE, SIZES, STEPS

NOTABLE = 0.01  # a smaller difference of F1 on one data set is not counted


def markdown(answers: Answers) -> str:
    """What each step is worth, and every data set."""
    files = f"{as_data('by step', by_step(answers))}, {as_data('by data set', by_data(answers))}"
    return f"All figures: {files}, with the steps numbered in their order.\n\n{answers.origin}"


def f1(answers: Answers, name: str, n: int, step: str) -> float | None:
    """Macro F1, the mean of both classifiers."""
    marks = answers.answers.get(f"{name} | {n} | {step}")
    return None if marks is None else float(np.mean(marks))


def cells(answers: Answers) -> list[tuple[str, int]]:
    """The data sets and numbers of features of which all steps are known."""
    every = [(name, n) for name in DATA for n in SIZES]
    return [cell for cell in every if all(f1(answers, *cell, step) is not None for step in STEPS)]


def by_step(answers: Answers) -> str:
    """The mean F1 of every step, and what it adds to the one before."""
    head = ["step", *(f"F1, {n} features" for n in SIZES), "both", "gain", "better / worse"]
    head += [f"found, {rare:.0%} rare" for rare in RARE]
    every = [{cell: f1(answers, *cell, step) or 0.0 for cell in cells(answers)} for step in STEPS]
    lines = []
    for i, (step, marks) in enumerate(zip(STEPS, every, strict=True)):
        means = [np.mean([x for (_, n), x in marks.items() if n == size]) for size in SIZES]
        lines.append([step, *(f"{x:.3f}" for x in (*means, np.mean(list(marks.values())))),
                      *(against(marks, every[i - 1]) if i else ["", ""]),
                      *(f"{found(answers, rare, step):.2f}" for rare in RARE)])  # fmt: skip
    lines.append(["all steps together", "", "", "", *against(every[-1], every[0]), *("" for _ in RARE)])
    return table(head, lines)


Marks = dict[tuple[str, int], float]


def against(marks: Marks, before: Marks) -> list[str]:
    """The gain over another step, its standard error, and in how many cells it is notable."""
    gains = [marks[cell] - before[cell] for cell in marks]
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    counts = [str(sum(sign * x > NOTABLE for x in gains)) for sign in (1, -1)]
    return [f"{np.mean(gains):+.3f} ± {error:.3f}", " / ".join(counts)]


def found(answers: Answers, rare: float, step: str) -> float:
    """The share of the relevant features of the made tables with such a rare class."""
    keys = [f"{kind} | {rare} | seed={seed} | {step}" for kind in IMBALANCED for seed in MADE_SEEDS]
    return float(np.mean([answers.answers.get(key, np.nan) for key in keys]))


def by_data(answers: Answers) -> str:
    """Every data set: the paper's settings, each step, the defaults."""
    head = ["data, features", *(str(i) for i in range(len(STEPS)))]
    lines = [[f"{name}, {n}", *(f"{f1(answers, name, n, step):.3f}" for step in STEPS)] for name, n in cells(answers)]
    return table(head, lines)


def write(answers: Answers) -> None:
    """The tables between the page's marks."""
    text = markdown(answers)
    print(text)
    publish(PAGE, "steps", text)
