"""Data sets made to measure: what there is to find in them is known."""

from pathlib import Path

from belief.datasets.sparse import SparseProblem, kddb_like, url_like

__all__ = ["CHURN", "SparseProblem", "kddb_like", "url_like"]

CHURN = Path(__file__).with_name("churn.csv")  # the bundled example: customers, and whether they left
