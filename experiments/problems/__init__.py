"""Generate tables whose relevant features are known.

`small` generates small problems that were published as benchmarks. The other modules generate problems of any size:
`dense`, `ecbdl14` and `sparse` imitate the four large data sets of the BELIEF paper, and `cells` imitates single-cell
data.
"""

from problems.cells import single_cells
from problems.dense import DenseProblem, epsilon_like
from problems.ecbdl14 import ecbdl14_like
from problems.small import Problem, corral100, led, madelon, parity3plus3, sd, xor100
from problems.sparse import SparseProblem, kddb_like, url_like

__all__ = [
    "DenseProblem",
    "Problem",
    "SparseProblem",
    "corral100",
    "ecbdl14_like",
    "epsilon_like",
    "kddb_like",
    "led",
    "madelon",
    "parity3plus3",
    "sd",
    "single_cells",
    "url_like",
    "xor100",
]
