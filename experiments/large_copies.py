"""Measure how oversampling changes a selection, for experiments/large.py.

The training set of ECBDL14 contains each row of its rare class about 49 times, so the nearest neighbours of such a row
are its copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import problems
from common import table
from large_tasks import SEED
from numpy.typing import NDArray

import belief
from belief.baselines import MRMR

COPIES, ASKED, K = 49, 50, (10, 100)
TABLES = ("all rows different", f"the rare class {COPIES} times", "the same without the copies")

Array = NDArray[Any]


def relevant_found(n_rows: int) -> dict[str, Any]:
    """Return, by method, the number of relevant features among 50 selected, for each of the three tables."""
    found: dict[str, Any] = {}
    for X, y, problem in tables(n_rows):
        matter = np.concatenate(problem.relevant)
        for name, selected in selections(X, y, problem.discrete).items():
            found.setdefault(name, []).append(int(np.isin(selected, matter).sum()))
    return found


def tables(n_rows: int) -> Iterator[tuple[Array, Array, problems.DenseProblem]]:
    """Yield X, y and the problem of three tables like ECBDL14, in the order of TABLES.

    In the first two tables, half of the rows belong to the rare class. In the first, these rows are all different. In
    the second, they are copies of a few rows, about 49 of each. The third is the second without the copies.
    """
    for copies in (1, COPIES):
        problem = problems.ecbdl14_like(n_rows, repeats=copies, seed=SEED)
        X, y = np.concatenate(problem.X), problem.y
        yield X, y, problem
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    yield X[first], y[first], problem


def selections(X: Array, y: Array, discrete: Array) -> dict[str, Array]:
    """Return the features that each method selects."""
    found = {"mRMR": MRMR(ASKED, discrete_features=discrete).fit(X, y).selected_}
    for k in K:
        for name, redundancy in (("BELIEF", None), ("BELIEF + mCR", "mcr")):
            settings = belief.PAPER | {"n_neighbors": k, "redundancy": redundancy}
            result = belief.select(X, y, ASKED, **settings, discrete_features=discrete, random_state=SEED)
            found[f"{name}, k = {k}"] = result.selected
    return found


def shown(found: dict[str, Any]) -> str:
    """Return the numbers of `relevant_found` as a table in markdown."""
    head = [f"of {ASKED} selected, relevant", *TABLES]
    return table(head, [[name, *map(str, counts)] for name, counts in found.items()])
