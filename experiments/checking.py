"""What the checks of experiments/second.py are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from made import Made

import belief

SEEDS = (0, 1, 2)
FRESH = (1000, 1001, 1002)  # seeds that nothing was tried on before
MORE_SEEDS = (0, 1, 2, 3, 4, *FRESH)

Found = dict[str, Any]  # what was measured, by the name of the cell
Verdict = tuple[str, bool]  # the same in words, and whether it is what was wanted


class Check(NamedTuple):
    """What is wanted, in which part of the table; the cells to compute, by name; and how to judge them."""

    part: str
    wanted: str
    cells: Mapping[str, Callable[[], Any]]
    judge: Callable[[Found], Verdict]


def chosen(data: Made, n: int | str, seed: int, **settings: Any) -> belief.Result:
    """What BELIEF finds in a made table; with the defaults if nothing else is said."""
    return belief.select(data.X, data.y, n, discrete_features=data.discrete, random_state=seed, **settings)


def spread(values: Iterable[float]) -> str:
    """The mean, and (minimum to maximum)."""
    known = list(values)
    return f"{np.mean(known):.3g} ({min(known):g}–{max(known):g})"
