"""Write the results of experiments/large.py as markdown, next to the paper's figures.

A cell is the combination of a data set, a number of features and a classifier. The judges are the classifiers, and
their marks are F1 scores. A way is a method with its settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from common import as_data, table
from large_copies import shown
from large_judges import JUDGES
from large_paper import ALL, MRMR, PAPER
from large_ways import PAPERS, Way

from belief.method.settings import PAPER as PAPERS_OWN
from belief.method.settings import Settings

MOSTLY = 0.9  # unweighted F1 is also shown if the largest class has at least this share of the test rows
OVERSAMPLED = "ECBDL14-like"

if TYPE_CHECKING:
    from large import Study


def markdown(study: Study) -> str:
    """Return the summary, the commits of the results, and all tables as markdown."""
    note = f"Seed {study.answers.configuration['seed']}. {study.answers.origin}"
    files = [as_data(name, results(study, name)) for name in study.tasks]
    mostly = [name for name in study.tasks if study.shape(name)["share"] >= MOSTLY]
    files += [as_data(f"{name} unweighted", results(study, name, "macro")) for name in mostly]
    files.append(as_data("the data sets", shapes(study)))
    files += [as_data("oversampling", shown(study.copies(name))) for name in mostly if name == OVERSAMPLED]
    return "\n\n".join([note, findings(study), f"Tables: {', '.join(files)}."])


def shapes(study: Study) -> str:
    """Return the table of the data sets."""
    head = ["data", "rows to learn from", "to judge by", "folds", "features", "sampled", "always the same class"]
    lines = []
    for name, task in study.tasks.items():
        shape = study.shape(name)
        always = f"{shape['always']['f1']:.3f} ({shape['share']:.1%} of the rows)"
        sampled = Settings(**PAPERS_OWN).resolve_sample_size(shape["rows"])
        counts = (shape["rows"], shape["test"], task.folds, shape["features"], sampled)
        lines.append([name, *(f"{x:,}" for x in counts), always])
    return table(head, lines)


def results(study: Study, name: str, kind: str = "f1") -> str:
    """Return the table of the F1 of all methods on a data set; `kind` is "f1" (weighted) or "macro"."""
    sizes, paper = study.sizes(name), study.tasks[name].paper
    head = ["method", *(f"{judge}, {n}" for judge in JUDGES for n in sizes)]
    every = {
        judge: cell(mark, [ALL[judge].get(paper)] if kind == "f1" else [])
        for judge, mark in study.marks(name, None, kind=kind).items()
    }
    lines = [["all features", *(every[judge] for judge in JUDGES for _ in sizes)]]
    for way in study.grid.ways():
        marks = {n: study.marks(name, way, n, kind) for n in sizes}
        cells = [
            cell(marks[n][judge], printed(study, name, judge, way, n) if kind == "f1" else [])
            for judge in JUDGES
            for n in sizes
        ]
        lines.append([str(way), *cells])
    return table(head, lines)


def cell(ours: float | None, theirs: list[float | None]) -> str:
    """Return our F1 and the paper's figures, if there are any, as text."""
    known = [f"{x:.4f}" for x in theirs if x is not None]
    return ("–" if ours is None else f"{ours:.3f}") + (f" · {' / '.join(known)}" if known else "")


def printed(study: Study, name: str, judge: str, way: Way, n: int) -> list[float | None]:
    """Return the paper's figures for a cell; for plain BELIEF, it has one figure per batch size."""
    paper, sizes = study.tasks[name].paper, PAPERS.sizes
    if paper not in MRMR[judge] or n not in sizes:
        return []
    at = sizes.index(n)
    if way.method == "mRMR":
        return [MRMR[judge][paper][at]]
    batches = study.grid.batches if way.batch is None else (way.batch,)
    pairs = [PAPER[judge][paper].get((way.k or 0, batch)) for batch in batches]
    return [pair[int(way.batch is None)][at] for pair in pairs if pair is not None]


def findings(study: Study) -> str:
    """Return the summary of the results: a table of means and a list of comparisons."""
    cells = [(name, n, judge) for name in study.tasks for n in study.sizes(name) for judge in JUDGES]
    ways = study.grid.ways()
    usual = [[Way("mRMR")], [Way("BELIEF", ways[-1].k)], [Way("BELIEF + mCR", ways[-1].k, study.grid.batches[0])]]
    every = [[way for way in ways if way.method == group[0].method] for group in usual]
    lines = ["The table has the mean F1 on each data set, with one setting of each method.", ""]
    lines += [by_data(study, cells, usual), ""]
    lines += [versus(study, cells, usual[i], usual[j]) for i, j in ((1, 0), (2, 0), (2, 1))]
    counted = ", ".join(f"{group[0].method} {len(group)}" for group in every)
    best_ones = [[versus(study, cells, every[i], every[j])[2:]] for i, j in ((1, 0), (2, 0), (2, 1))]
    lines.append("- The same comparison for the best setting of each method, chosen on the test rows (numbers of"
                 f" settings: {counted}), is in"
                 f" {as_data('the best settings', table(['comparison'], best_ones))}.")  # fmt: skip
    lines.append(by_setting(study, cells))
    same = [study.on_spark(name)["same"] for name in study.tasks]
    lines.append(f"- All runs used the local engine. The Spark engine selects the same 10 features on {sum(same)}"
                 f" of {len(same)} data sets.")  # fmt: skip
    return "\n".join(lines)


Cell = tuple[str, int, str]  # data, features, classifier


def best(study: Study, cell: Cell, ways: list[Way]) -> float:
    """Return the best F1 of some ways (methods with settings) in a cell (data set, number of features, classifier)."""
    name, n, judge = cell
    return max(study.marks(name, way, n)[judge] or 0.0 for way in ways)


def best_printed(study: Study, cell: Cell, ways: list[Way]) -> float | None:
    """Return the paper's best F1 of some ways (methods with settings) in a cell, or None if the paper has none.

    A cell is a data set, a number of features and a classifier. If there is only one way, its first known figure is
    returned, not its best: for plain BELIEF, the paper has several figures, one per batch size. Figures of 0 are
    ignored, because they are probably missing runs.
    """
    name, n, judge = cell
    known = [x for way in ways for x in printed(study, name, judge, way, n) if x]
    return max(known[:1] if len(ways) == 1 else known, default=None)


def by_data(study: Study, cells: list[Cell], usual: list[list[Way]]) -> str:
    """Return the table of the mean F1 of one setting of each method, by data set.

    The paper's means only include cells with figures for all methods.
    """
    lines = []
    for name in study.tasks:
        mine = [x for x in cells if x[0] == name]
        theirs = [[best_printed(study, x, ways) for ways in usual] for x in mine]
        whole = [row for row in theirs if None not in row]
        means = [float(np.mean([best(study, x, ways) for x in mine])) for ways in usual]
        printed_means = [np.mean([row[i] for row in whole]) if whole else None for i in range(len(usual))]
        lines.append([name, *(cell(x, [y]) for x, y in zip(means, printed_means, strict=True))])
    return table(["data", *(str(ways[0]) for ways in usual)], lines)


def versus(study: Study, cells: list[Cell], one: list[Way], other: list[Way]) -> str:
    """Return a line that says how often one method is at least as good as another, here and in the paper."""
    ours = [best(study, cell, one) - best(study, cell, other) for cell in cells]
    both = [(best_printed(study, cell, one), best_printed(study, cell, other)) for cell in cells]
    theirs = [a - b for a, b in both if a is not None and b is not None]
    names = [f"*{ways[0]}*" if len(ways) == 1 else f"*{ways[0].method}*" for ways in (one, other)]
    text = (f"- {names[0]} is at least as good as {names[1]} in {sum(x >= 0 for x in ours)} of {len(ours)} cells; the"
            f" mean difference is {np.mean(ours):+.3f}")  # fmt: skip
    if theirs:
        text += f". In the paper: {sum(x >= 0 for x in theirs)} of {len(theirs)} cells, {np.mean(theirs):+.3f}"
    return text + "."


def by_setting(study: Study, cells: list[Cell]) -> str:
    """Return a line with the mean F1 of BELIEF + mCR for each k and for each batch size."""

    def average(k: int, batch: float) -> float:
        marks = (study.marks(name, Way("BELIEF + mCR", k, batch), n)[judge] for name, n, judge in cells)
        return float(np.mean([x for x in marks if x is not None]))

    grid = {(k, batch): average(k, batch) for k in study.grid.k for batch in study.grid.batches}
    by_k = ", ".join(f"{np.mean([grid[k, b] for b in study.grid.batches]):.3f} with k = {k}" for k in study.grid.k)
    by_batch = ", ".join(
        f"{np.mean([grid[k, b] for k in study.grid.k]):.3f} with batches of {b}" for b in study.grid.batches
    )
    return f"- Mean F1 of BELIEF + mCR over all cells: {by_k}; {by_batch}."
