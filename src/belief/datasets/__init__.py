"""Data sets made to measure, whose truth is known, and loaders for the real ones where a user has them."""

from pathlib import Path
from typing import TYPE_CHECKING

from belief._utils.lazy import lazily

if TYPE_CHECKING:
    from belief.datasets.dense import DenseProblem, epsilon_like
    from belief.datasets.ecbdl14 import ecbdl14_like
    from belief.datasets.loaders import Dataset, load, names
    from belief.datasets.small import Problem, corral100, led, madelon, parity3plus3, sd, xor100
    from belief.datasets.sparse import SparseProblem, kddb_like, url_like

CHURN = Path(__file__).with_name("churn.csv")  # the bundled example: customers, and whether they left

_HOMES = {
    "dense": ("DenseProblem", "epsilon_like"),
    "ecbdl14": ("ecbdl14_like",),
    "loaders": ("Dataset", "load", "names"),
    "small": ("Problem", "corral100", "led", "madelon", "parity3plus3", "sd", "xor100"),
    "sparse": ("SparseProblem", "kddb_like", "url_like"),
}

__all__ = [
    "CHURN",
    "Dataset",
    "DenseProblem",
    "Problem",
    "SparseProblem",
    "corral100",
    "ecbdl14_like",
    "epsilon_like",
    "kddb_like",
    "led",
    "load",
    "madelon",
    "names",
    "parity3plus3",
    "sd",
    "url_like",
    "xor100",
]

__getattr__ = lazily(__name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names})
