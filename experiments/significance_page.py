"""Write the tables of docs/experiments/significance.md from the results of experiments/significance.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Answers, as_data, table
from made import Array
from significance import ALPHAS, key_of, seeds
from significance_tables import ASKED, AUTO, BORUTA, CALIBRATION, INTERACTIONS, POWER

MOST_BELOW = {0.05: 0.08, 0.001: 0.004}  # acceptable shares of irrelevant columns with p < 0.05 and p < 0.001
MOST_FALSE, LEAST_POWER = 0.10, 0.9  # largest acceptable `false_share` and smallest acceptable `ratio`


def found(answers: Answers, part: str, name: str) -> list[Any]:
    """Return the results of a table for all seeds that were computed."""
    keys = [key_of(part, name, seed) for seed in seeds(part, name.partition(" | ")[0])]
    return [answers.answers[key] for key in keys if key in answers.answers]


def shares(every: list[Any], kind: str) -> Array:
    """Return the shares of irrelevant columns with p < 0.05 and p < 0.001, over all seeds."""
    n, *below = np.sum([x[kind] for x in every], axis=0)
    return np.array(below) / max(n, 1)


def false_share(every: list[Any]) -> float:
    """Return the mean share of irrelevant columns among the columns with q < 0.05."""
    return float(np.mean([false / max(false + hits, 1) for false, hits, _ in (x["found"] for x in every)]))


def power(every: list[Any]) -> float | None:
    """Return the share of relevant columns with q < 0.05, or None if no column is relevant."""
    _, hits, relevant = np.sum([x["found"] for x in every], axis=0)
    return hits / relevant if relevant else None


def finds(every: list[Any]) -> float:
    """Return the share of tables in which an irrelevant column has q < 0.05."""
    return float(np.mean([x["found"][0] > 0 for x in every]))


def situations(answers: Answers) -> dict[str, list[Any]]:
    """Return the results of each situation (kind of table) in which irrelevant columns were tested."""
    both = [("calibration", name) for name in CALIBRATION] + [("interactions", name) for name in INTERACTIONS]
    return {name: every for part, name in both if (every := found(answers, part, name))}


def marked(value: float, limit: float, digits: int = 3) -> str:
    """Return a number as text, bold if it is above its limit."""
    shown = f"{value:.{digits}f}"
    return f"**{shown}**" if value > limit + 1e-9 else shown


def calibration(answers: Answers) -> str:
    """Return the table of small p-values and false discoveries among irrelevant columns."""
    head = ["situation", "seeds", *(f"{kind} p < {p}" for kind in ("neighbour", "combined") for p in MOST_BELOW)]
    lines = []
    for name, every in situations(answers).items():
        below = [
            marked(share, limit, 4 if limit < 0.01 else 3)
            for kind in ("neighbours", "combined")
            for share, limit in zip(shares(every, kind), MOST_BELOW.values(), strict=True)
        ]
        found = power(every)
        false = marked(false_share(every), MOST_FALSE, 2)
        lines.append(
            [name, str(len(every)), *below, false, f"{finds(every):.2f}", "" if found is None else f"{found:.2f}"]
        )
    return table([*head, "false share, q < 0.05", "tables with a false find", "relevant found"], lines)


def noise_alone(answers: Answers) -> float:
    """Return the share of the tables of pure noise in which a column has q < 0.05."""
    each = [x["found"][0] > 0 for every in situations(answers).values() if power(every) is None for x in every]
    return float(np.mean(each)) if each else 0.0


def ratio(answers: Answers, name: str) -> float:
    """Return the power of the combined test divided by that of the univariate test, or NaN if it is unknown."""
    here, univariate = np.mean(found(answers, "power", name) or [[np.nan, 1.0]], axis=0)
    return float(here / univariate) if univariate else 1.0


def compared(answers: Answers) -> str:
    """Return the table of the power of the combined test and of univariate tests."""
    lines = []
    for name in POWER:
        if every := found(answers, "power", name):
            value = ratio(answers, name)
            shown = f"{value:.2f}" if value >= LEAST_POWER - 1e-9 else f"**{value:.2f}**"
            lines.append([name, str(len(every)), *(f"{x:.3f}" for x in np.mean(every, axis=0)), shown])
    return table(["relevant columns", "seeds", "combined q < 0.05", "univariate q < 0.05", "ratio"], lines)


def interactions(answers: Answers) -> str:
    """Return the table of interactions found with q < 0.05."""
    lines = []
    for name in INTERACTIONS:
        if every := found(answers, "interactions", name):
            lines.append([name, str(len(every)), f"{power(every):.2f}", f"{false_share(every):.2f}"])
    return table(["interaction", "seeds", "relevant found", "false share"], lines)


def asked(answers: Answers) -> str:
    """Return the table of the shares of relevant columns in selections of as many columns as are relevant."""
    lines = []
    for name, (_, least) in ASKED.items():
        if every := found(answers, "asked", name):
            mean = float(np.mean(every))
            shown = f"{mean:.2f}" if mean >= least - 1e-9 else f"**{mean:.2f}**"
            lines.append([name, str(len(every)), shown, f"{least:.2f}"])
    return table(["problem, 5 % of the labels wrong", "seeds", "share", "target"], lines)


def automatic(answers: Answers) -> str:
    """Return the table of the numbers of relevant and other columns that "auto" selects."""
    lines = []
    for name in AUTO:
        for alpha in ALPHAS:
            if every := found(answers, "auto", f"{name} | alpha={alpha}"):
                (hits, false), univariate = np.mean(every, axis=0)
                cells = (f"{hits:.2f}", f"{false:.2f}", *(f"{x:.2f}" for x in univariate))
                lines.append([name, str(alpha), str(len(every)), *cells])
    head = ["problem", "alpha", "seeds", "relevant selected", "others selected"]
    return table([*head, "relevant with F test q < alpha", "others"], lines)


def boruta(answers: Answers) -> str:
    """Return the table of the columns that BELIEF and Boruta select, and their CPU time."""
    lines = []
    for name in BORUTA:
        if every := found(answers, "boruta", name):
            belief, other = (np.mean([x[way] for x in every], axis=0) for way in ("belief", "boruta"))
            cells = (f"{hits:.2f} and {false:.2f}" for hits, false, _ in (belief, other))
            lines.append([name, str(len(every)), *cells, f"{belief[2]:.1f}", f"{other[2]:.1f}"])
    head = ["problem", "seeds", "BELIEF: relevant and others", "Boruta: relevant and others"]
    return table([*head, "BELIEF, CPU s", "Boruta, CPU s"], lines)


def summary(answers: Answers) -> str:
    """Return the main results as a list."""
    every = situations(answers)
    outside = [
        [n for n, x in every.items() if max(shares(x, kind)[i] for kind in ("neighbours", "combined")) > limit + 1e-9]
        for i, limit in enumerate(MOST_BELOW.values())
    ]
    false = {name: false_share(x) for name, x in every.items()}
    too_false = [name for name, share in false.items() if share > MOST_FALSE + 1e-9]
    ratios = [x for name in POWER if not np.isnan(x := ratio(answers, name))]
    hits = [f'{power(x):.2f} in "{name}"' for name in INTERACTIONS if (x := found(answers, "interactions", name))]
    of_asked = [
        np.mean(x) >= least - 1e-9 for name, (_, least) in ASKED.items() if (x := found(answers, "asked", name))
    ]
    below = ", and the share with ".join(
        f"p < {p} is above {limit} in {named(names)}"
        for (p, limit), names in zip(MOST_BELOW.items(), outside, strict=True)
    )
    lines = [
        f"- **Calibration** was measured in {len(every)} situations. The share of noise columns with {below}. On"
        f" average, {np.mean(list(false.values())):.3f} of the columns with q < 0.05 are noise; this share is above"
        f" {MOST_FALSE} in {named(too_false)}. {100 * noise_alone(answers):.1f} % of the tables of pure noise have such"
        " a column.",
        f"- **Power** for weak effects is {np.mean(ratios):.2f} of that of the univariate test on average, and at least"
        f" {min(ratios):.2f}.",
        f"- **Interactions**: the share of relevant columns with q < 0.05 is {' and '.join(hits)}. If the number of"
        f" relevant columns is known, {sum(of_asked)} of {len(of_asked)} problems reach their goal.",
        f'- **"auto"** with alpha = {ALPHAS[0]} selects on average {"; ".join(selected(answers))}.',
    ]
    return "\n".join(lines)


def selected(answers: Answers) -> list[str]:
    """Return how many relevant and other columns "auto" selects, for each problem."""
    every = {name: found(answers, "auto", f"{name} | alpha={ALPHAS[0]}") for name in AUTO}
    means = {name: np.mean([ours for ours, _ in x], axis=0) for name, x in every.items() if x}
    return [f'{hits:.2f} relevant and {false:.2f} other columns of "{name}"' for name, (hits, false) in means.items()]


def named(names: list[str]) -> str:
    """Return the quoted names of situations, or "no situation"."""
    return "; ".join(f'"{name}"' for name in names) or "no situation"


def tables(answers: Answers) -> dict[str, str]:
    """Return the text of each part of the page, by the name in the comments <!-- name --> and <!-- /name -->."""
    return {
        "summary": summary(answers),
        "calibration": f"Every situation: {as_data('calibration', calibration(answers))}.",
        "power": f"Every kind of column: {as_data('power', compared(answers))}.",
        "interactions": f"Columns with q < 0.05: {as_data('interactions', interactions(answers))}.",
        "asked": f"If the number of columns to select is known: {as_data('asked', asked(answers))}.",
        "auto": f"All figures: {as_data('auto', automatic(answers))}, {as_data('Boruta', boruta(answers))}.",
        "origin": answers.origin,
    }
