"""Data sets made to measure: what there is to find in them is known."""

from pathlib import Path

from belief.datasets.small import Problem, corral100, led, madelon, parity3plus3, sd, xor100
from belief.datasets.sparse import SparseProblem, kddb_like, url_like

__all__ = [
    "CHURN",
    "Problem",
    "SparseProblem",
    "corral100",
    "kddb_like",
    "led",
    "madelon",
    "parity3plus3",
    "sd",
    "url_like",
    "xor100",
]

CHURN = Path(__file__).with_name("churn.csv")  # the bundled example: customers, and whether they left
