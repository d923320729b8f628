"""Make the tables for experiments/steps.py."""

from __future__ import annotations

import numpy as np
from common import Answers, as_data, publish, table
from made import IMBALANCED, RARE
from steps import DATA, MADE_SEEDS, PAGE, SIZES, STEPS

NOTABLE = 0.01  # smaller differences in F1 do not count as better or worse


def markdown(answers: Answers) -> str:
    """Return the tables by step and by data set, and the commits that computed the results."""
    files = f"{as_data('by step', by_step(answers))}, {as_data('by data set', by_data(answers))}"
    return f"All figures: {files}, with the steps numbered in their order.\n\n{answers.origin}"


def f1(answers: Answers, name: str, n: int, step: str) -> float | None:
    """Return the mean macro F1 of both classifiers; None if it is not computed yet."""
    marks = answers.answers.get(f"{name} | {n} | {step}")
    return None if marks is None else float(np.mean(marks))


def cells(answers: Answers) -> list[tuple[str, int]]:
    """Return the cells, pairs of a data set and a number of features, whose results are known for all steps."""
    every = [(name, n) for name in DATA for n in SIZES]
    return [cell for cell in every if all(f1(answers, *cell, step) is not None for step in STEPS)]


def by_step(answers: Answers) -> str:
    """Return the table of the mean F1 after each step, and of the gain over the step before."""
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
    """Return the mean gain over another step with its standard error, and the numbers of better and worse cells."""
    gains = [marks[cell] - before[cell] for cell in marks]
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    counts = [str(sum(sign * x > NOTABLE for x in gains)) for sign in (1, -1)]
    return [f"{np.mean(gains):+.3f} ± {error:.3f}", " / ".join(counts)]


def found(answers: Answers, rare: float, step: str) -> float:
    """Return the mean share of relevant features found in the synthetic tables with this share of the rare class."""
    keys = [f"{kind} | {rare} | seed={seed} | {step}" for kind in IMBALANCED for seed in MADE_SEEDS]
    return float(np.mean([answers.answers.get(key, np.nan) for key in keys]))


def by_data(answers: Answers) -> str:
    """Return the table of F1 for each data set and number of features, with a column for each step."""
    head = ["data, features", *(str(i) for i in range(len(STEPS)))]
    lines = [[f"{name}, {n}", *(f"{f1(answers, name, n, step):.3f}" for step in STEPS)] for name, n in cells(answers)]
    return table(head, lines)


def write(answers: Answers) -> None:
    """Print the tables, and write them into the page."""
    text = markdown(answers)
    print(text)
    publish(PAGE, "steps", text)
