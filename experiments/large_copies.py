"""What oversampling does to a selection: ECBDL14's training set has each row of its rare class some 49 times."""

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
    """How many of fifty features selected of ECBDL14-like matter, by method, for each of the tables."""
    found: dict[str, Any] = {}
    for X, y, problem in tables(n_rows):
        matter = np.concatenate(problem.relevant)
        for name, selected in selections(X, y, problem.discrete).items():
            found.setdefault(name, []).append(int(np.isin(selected, matter).sum()))
    return found


def tables(n_rows: int) -> Iterator[tuple[Array, Array, problems.DenseProblem]]:
    """Half of the rows are of the rare class, all different or copies of a few; then those few without the copies."""
    for copies in (1, COPIES):
        problem = problems.ecbdl14_like(n_rows, repeats=copies, seed=SEED)
        X, y = np.concatenate(problem.X), problem.y
        yield X, y, problem
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    yield X[first], y[first], problem


def selections(X: Array, y: Array, discrete: Array) -> dict[str, Array]:
    """What each method selects."""
    found = {"mRMR": MRMR(ASKED, discrete_features=discrete).fit(X, y).selected_}
    for k in K:
        for name, redundancy in (("BELIEF", None), ("BELIEF + mCR", "mcr")):
            settings = belief.PAPER | {"n_neighbors": k, "redundancy": redundancy}
            result = belief.select(X, y, ASKED, **settings, discrete_features=discrete, random_state=SEED)
            found[f"{name}, k = {k}"] = result.selected
    return found


def shown(found: dict[str, Any]) -> str:
    """The same as a table."""
    head = [f"of {ASKED} selected, relevant", *TABLES]
    return table(head, [[name, *map(str, counts)] for name, counts in found.items()])
