"""Write the tables and the figures of experiments/choices.py, and a verdict on each setting.

The reference is BELIEF with the settings of the paper. In experiments/choices.py, one setting at a time is changed to
other values. The verdict says if the value in the reference should be kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from choices import CASES, DEFAULTS, GRID, PAGE, SECOND, SEEDS, key_of
from common import Answers, as_data, publish, table

NAMES = {"theta": "θ", "kappa": "κ", "eta": "η", "n_neighbors": "k"}
KINDS = {"planted": "share of the truth found", "real": "macro F1"}
NOTABLE = 0.01  # smaller differences are no reason to change a setting, even if they are significant


class Gain(NamedTuple):
    """The gain of a value over the reference: the mean over the data sets, its standard error, and each single gain."""

    mean: float
    error: float
    each: dict[str, float]


def found(answers: Answers, name: str, setting: str, value: Any) -> list[float]:
    """Return the saved results of a value on a data set, one for each seed."""
    keys = [key_of(name, setting, value, seed) for seed in SEEDS[CASES[name].kind]]
    return [answers.answers[key] for key in keys if key in answers.answers]


def reference(answers: Answers, name: str) -> list[float]:
    """Return the saved results of the reference on a data set, one for each seed."""
    return found(answers, name, "eta", DEFAULTS["eta"])


def gain(answers: Answers, setting: str, value: Any, kind: str) -> Gain:
    """Return the gain of a value over the reference, on the data sets of one kind."""
    each = {}
    for name in (n for n, case in CASES.items() if case.kind == kind):
        if there := found(answers, name, setting, value):
            each[name] = float(np.mean(there) - np.mean(reference(answers, name)))
    values = list(each.values())
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return Gain(float(np.mean(values)) if values else np.nan, error, each)


def sure(g: Gain) -> int:
    """Return 1 if a value is significantly better than the reference, -1 if it is significantly worse, and else 0.

    A difference is significant if it is larger than NOTABLE and larger than twice its standard error.
    """
    return int(np.sign(g.mean)) if abs(g.mean) > max(2 * g.error, NOTABLE) else 0


def verdict(answers: Answers, setting: str) -> str:
    """Return the verdict on a setting in words, by the rule that the page states."""
    better, worse, torn = [], [], []
    for value in others(setting):
        signs = {sure(gain(answers, setting, value, kind)) for kind in KINDS}
        bucket = torn if {1, -1} <= signs else better if 1 in signs else worse if -1 in signs else []
        bucket.append(str(value))
    said = (
        [f"significantly better: {', '.join(better)}"]
        if better
        else ["no value is significantly better on either kind of data"]
    )
    said += [f"significantly worse: {', '.join(worse)}"] if worse else []
    said += [f"better on one kind and worse on the other: {', '.join(torn)}"] if torn else []
    return f"**By the rule: {'look again' if better or torn else 'keep'}** ({'; '.join(said)})."


def others(setting: str) -> list[Any]:
    """Return the values of a setting, except the reference."""
    return [value for value in GRID[setting] if value != DEFAULTS[setting]]


def symbol(setting: str) -> str:
    """Return the symbol of a setting in the paper, or its name in this package."""
    return NAMES.get(setting, f"`{setting}`")


def markdown(answers: Answers) -> str:
    """Return the gain of the defaults, the verdicts, and tables of all values and data sets, in markdown."""
    verdicts = [[symbol(setting), str(DEFAULTS[setting]), verdict(answers, setting)] for setting in GRID]
    head = ["setting", "value", "truth found", "gain", "better / worse", "macro F1", "gain", "better / worse"]
    lines = [[symbol(setting), *line_of(answers, setting, value)] for setting in GRID for value in GRID[setting]]
    files = [as_data("verdicts", table(["setting", "reference", "verdict"], verdicts))]
    files.append(as_data("by setting", table(head, lines)))
    files += [as_data(f"by data set, {kind}".replace(",", ""), details(answers, kind)) for kind in KINDS]
    parts = [second_edition(answers), f"Tables: {', '.join(files)}.", answers.origin]
    return "\n\n".join(parts)


def second_edition(answers: Answers) -> str:
    """Return the table of the gain of the defaults over the reference."""
    gains = {kind: gain(answers, SECOND, SECOND, kind) for kind in KINDS}
    lines = [
        [what, str(len(gains[kind].each)), *compared(answers, SECOND, SECOND, kind)] for kind, what in KINDS.items()
    ]
    return table(["the defaults of the package", "data sets", "gain", "better / worse"], lines)


def line_of(answers: Answers, setting: str, value: Any) -> list[str]:
    """Return the line of a value: the mean score and the comparison with the reference, for each kind of data."""
    line = [f"**{value}**" if value == DEFAULTS[setting] else str(value)]
    for kind in KINDS:
        names = gain(answers, setting, others(setting)[0], kind).each  # data sets on which the setting was changed
        level = np.mean([np.mean(found(answers, name, setting, value)) for name in names])
        line += [f"{level:.3f}", *(["", ""] if value == DEFAULTS[setting] else compared(answers, setting, value, kind))]
    return line


def compared(answers: Answers, setting: str, value: Any, kind: str) -> list[str]:
    """Format the gain over the reference, and count the data sets with a gain or a loss above NOTABLE."""
    g = gain(answers, setting, value, kind)
    better, worse = (sum(sign * x > NOTABLE for x in g.each.values()) for sign in (1, -1))
    return [f"{g.mean:+.3f} ± {g.error:.3f}", f"{better} / {worse}"]


def details(answers: Answers, kind: str) -> str:
    """Return the table of all values on all data sets of a kind: mean and standard deviation over the seeds."""
    names = [n for n, case in CASES.items() if case.kind == kind and reference(answers, n)]
    lines = [["**the reference**", *(cell(reference(answers, n)) for n in names)]]
    lines.append([f"**{SECOND}**", *(cell(found(answers, n, SECOND, SECOND)) for n in names)])
    for setting in GRID:
        for value in others(setting):
            lines.append([f"{symbol(setting)} {value}", *(cell(found(answers, n, setting, value)) for n in names)])
    return table(["", *names], lines)


def cell(there: list[float]) -> str:
    """Format the mean and the standard deviation over the seeds."""
    return f"{np.mean(there):.2f} ± {np.std(there):.2f}" if there else "–"


def write(answers: Answers) -> None:
    """Write the tables into the page, and the figures into its folder."""
    publish(PAGE, "choices", markdown(answers))
    draw_gains(answers)
    draw_scale(answers)


def new_figure(name: str, size: tuple[float, float]) -> Any:
    """Return a figure whose SVG file is the same in every run if the data is the same."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "text.parse_math": False})
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def draw_gains(answers: Answers) -> None:
    """Draw the gain of each value of each setting over the reference, ± two standard errors."""
    figure = new_figure("gains", (11, 5.5))
    for axes, setting in zip(figure.subplots(2, 4, sharey=True).flat, GRID, strict=True):
        for kind, colour, aside in (("planted", "#1b6ca8", -0.12), ("real", "#d1495b", 0.12)):
            gains = [gain(answers, setting, value, kind) for value in GRID[setting]]
            at = np.arange(len(gains)) + aside
            errors = [2 * g.error for g in gains]
            axes.errorbar(at, [g.mean for g in gains], errors, fmt="o", ms=4, color=colour, label=KINDS[kind])
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(GRID[setting])), [str(v) for v in GRID[setting]], rotation=30)
        axes.set_title(f"{symbol(setting).strip('`')} (reference {DEFAULTS[setting]})", fontsize=10)
    figure.axes[0].legend(fontsize=8)
    figure.supylabel("gain over the reference, ± 2 standard errors")
    figure.savefig(PAGE.with_name("choices-gains.svg"), metadata={"Date": None})


def draw_scale(answers: Answers) -> None:
    """Draw the gain of each value of `scale` on each data set with continuous features."""
    figure = new_figure("scale", (9, 4.5))
    axes = figure.subplots()
    every = {v: {n: x for k in KINDS for n, x in gain(answers, "scale", v, k).each.items()} for v in others("scale")}
    names = list(every["none"])
    for i, (value, colour) in enumerate(zip(every, ("#1b6ca8", "#e0a030", "#d1495b"), strict=True)):
        axes.bar(
            np.arange(len(names)) + 0.27 * (i - 1), [every[value][n] for n in names], 0.25, color=colour, label=value
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel('gain over "auto"')
    axes.legend()
    figure.savefig(PAGE.with_name("choices-scale.svg"), metadata={"Date": None})
