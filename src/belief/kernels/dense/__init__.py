"""Compiled kernels for dense rows. They import only each other, `kernels.compiling`, `kernels.shapes` and `method`.

Kernels receive rows as `(X, rows, a)`: the values of row i start at X[rows[i], a]. So arrays in memory are not copied,
and blocks of gathered rows have the same form. Missing values are NaN.
"""

from belief.kernels.dense.distance import Geometry, add_matches, distances, embed, hash_bits
from belief.kernels.dense.summary import add_identities, gather, levels, moments
from belief.kernels.dense.tally import arrange, collisions, half_hits, tally
from belief.kernels.shapes import Reach, Sums

__all__ = [
    "Geometry",
    "Reach",
    "Sums",
    "add_identities",
    "add_matches",
    "arrange",
    "collisions",
    "distances",
    "embed",
    "gather",
    "half_hits",
    "hash_bits",
    "levels",
    "moments",
    "tally",
]
