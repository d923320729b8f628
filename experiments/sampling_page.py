"""Make the tables and figures for experiments/sampling.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from common import as_data, table

if TYPE_CHECKING:
    from sampling import Study

COLOURS = ("#1b6ca8", "#d1495b", "#2a9d55", "#8a5a9e")


def markdown(study: Study) -> str:
    """Return all tables, links to the figures, and the commits that computed the results."""
    note = f"Seed 0, and 0 to 2 for 100 rows against 1 %. {study.answers.origin}"
    figures = [f"![{text}](sampling-{file}.svg)" for file, text in titles(study).items()]
    files = [as_data(f"{n} features", against_rate(study, n)) for n in study.sizes]
    files.append(as_data("100 rows against 1 percent", over_reduced(study)))
    files.append(as_data("50 percent against 1 percent", gains(study)))
    return "\n\n".join([note, *figures, f"Tables (F1 · time of selection): {', '.join(files)}."])


def titles(study: Study) -> dict[str, str]:
    """Return the title of each figure by the name of its file; they correspond to figures 2 to 6 of the paper."""
    found = {}
    for i, n in enumerate(study.sizes):
        found[f"f1-{n}"] = f"Figure {2 + 2 * i}: F1 against the sampling rate, {n} features"
        found[f"time-{n}"] = f"Figure {3 + 2 * i}: time against the sampling rate, {n} features"
    return {**found, "few": "Figure 6: 100 rows sampled against 1 %, 10 features"}


def gains(study: Study) -> str:
    """Return the table of the gain in F1 from the smallest to the largest sample, with the relative runtimes."""
    low, high = study.rates[0], study.rates[-1]
    lines = []
    for n in study.sizes:
        for name in study.tasks:
            few, many, peer = study.belief(name, low, n), study.belief(name, high, n), study.mrmr(name, n)
            times = [f"{x['seconds'] / few['seconds']:.1f}" for x in (many, peer)]
            lines.append([name, str(n), f"{many['f1'] - few['f1']:+.3f}", *times])
    head = ["data", "features", f"F1 gained by {high:.0%} instead of {low:.0%}", "times as long"]
    return table([*head, f"time of mRMR, x that of {low:.0%}"], lines)


def against_rate(study: Study, n: int) -> str:
    """Return the table of F1 and runtime for each sampling rate, and for mRMR."""
    head = ["data", "rows", *(f"{rate:.0%}" for rate in study.rates), f"mRMR, {n}"]
    lines = []
    for name in study.tasks:
        answers = [study.belief(name, rate, n) for rate in study.rates]
        cells = [f"{x['f1']:.3f} · {x['seconds']:.1f} s" for x in answers]
        peer = study.mrmr(name, n)
        lines.append([name, f"{study.rows(name):,}", *cells, f"{peer['f1']:.3f} · {peer['seconds']:.1f} s"])
    return table(head, lines)


def over_reduced(study: Study) -> str:
    """Return the table of F1 for 100 rows, 1 % and 2,000 rows: the mean and the range over the seeds."""
    head = ["data", "1 % is", *samples(study)]
    lines = []
    for name in study.over_reduced:
        cells = [few_marks(study, name, sample) for sample in samples(study).values()]
        shown = [f"{np.mean(x):.3f} ({min(x):.3f} to {max(x):.3f})" for x in cells]
        lines.append([name, f"{round(0.01 * study.rows(name)):,} rows", *shown])
    return table(head, lines)


def samples(study: Study) -> dict[str, float]:
    """Return the three sample sizes of figure 6 by name: 100 rows, 1 % of the rows, and 2,000 rows.

    With its default settings, BELIEF begins with a sample of 2,000 rows.
    """
    return dict(study.answers.configuration["few"])


def few_marks(study: Study, name: str, sample: float) -> list[float]:
    """Return F1 for each seed, with ten features and a sample of this size."""
    return [study.few(name, sample, seed) for seed in study.answers.configuration["seeds"]]


# --- figures ---


def draw(study: Study, folder: Path) -> None:
    """Draw all figures as SVG files."""
    for n in study.sizes:
        curves(study, n, "f1", lambda answer: answer["f1"], folder)
        curves(study, n, "time", lambda answer: answer["seconds"], folder)
    bars(study, folder / "sampling-few.svg")


def figure(hash_salt: str) -> tuple[Any, Any]:
    """Return an empty figure and its axes; with the same salt, the same drawing gives an identical SVG file."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": hash_salt, "text.parse_math": False})
    from matplotlib.figure import Figure

    found = Figure(figsize=(7, 4), layout="constrained")
    return found, found.subplots()


def curves(study: Study, n: int, what: str, value: Callable[[dict[str, Any]], float], folder: Path) -> None:
    """Draw a line over the sampling rates for each data set, and a dashed horizontal line for mRMR on all rows."""
    found, axes = figure(f"sampling-{what}-{n}")
    at = range(len(study.rates))
    for name, colour in zip(study.tasks, COLOURS, strict=False):
        axes.plot(at, [value(study.belief(name, r, n)) for r in study.rates], "o-", color=colour, label=name)
        axes.axhline(value(study.mrmr(name, n)), color=colour, linestyle="--", linewidth=1)
    axes.plot([], [], "--", color="grey", label=f"mRMR, {n} features")
    axes.set_xticks(at, [f"{rate:.0%}" for rate in study.rates])
    axes.set_xlabel("sampled")
    axes.set_ylabel("F1" if what == "f1" else "seconds of selection")
    if what == "time":
        axes.set_yscale("log", subs=[2, 5])
        axes.yaxis.set(major_formatter="{x:g}", minor_formatter="{x:g}")  # plain numbers instead of powers of ten
    found.legend(loc="outside right center")
    found.savefig(folder / f"sampling-{what}-{n}.svg", metadata={"Date": None})


def bars(study: Study, path: Path) -> None:
    """Draw a bar for each data set and sample size, with the range over the seeds."""
    found, axes = figure("sampling-few")
    for i, ((label, sample), colour) in enumerate(zip(samples(study).items(), COLOURS, strict=False)):
        marks = [few_marks(study, name, sample) for name in study.over_reduced]
        middle = np.array([np.mean(x) for x in marks])
        spread = [middle - [min(x) for x in marks], [max(x) for x in marks] - middle]
        at = np.arange(len(marks)) + 0.28 * (i - 1)
        either = [list(side) for side in spread]  # matplotlib 3.9 mistakes an array with one value for a number
        axes.bar(at, middle, 0.26, yerr=either, label=label, color=colour, capsize=3)
    axes.set_xticks(range(len(study.over_reduced)), list(study.over_reduced))
    axes.set_ylabel("F1 with 10 features")
    found.legend(loc="outside right center")
    found.savefig(path, metadata={"Date": None})
