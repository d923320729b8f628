"""Made tables of any size, shaped like the paper's four large data sets, whose informative features are known."""

from problems.dense import DenseProblem, epsilon_like
from problems.ecbdl14 import ecbdl14_like
from problems.sparse import SparseProblem, kddb_like, url_like

__all__ = ["DenseProblem", "SparseProblem", "ecbdl14_like", "epsilon_like", "kddb_like", "url_like"]
