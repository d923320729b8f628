"""Data sets made to measure: what there is to find in them is known."""

from belief.datasets.sparse import SparseProblem, kddb_like, url_like

__all__ = ["SparseProblem", "kddb_like", "url_like"]
