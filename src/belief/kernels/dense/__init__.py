"""The kernels for dense rows: a block of numbers in, arrays out. No file, no thread, no class knows of another.

Rows come as `(X, rows, a)`: row i of the block is X[rows[i]], its first column X[.., a]. So an array in memory is read
where it lies, and a block gathered from elsewhere looks the same. A missing value is a NaN.
"""

from belief.kernels.dense.collisions import collisions, half_hits
from belief.kernels.dense.distance import Geometry, distances, embed, hashes, match
from belief.kernels.dense.summary import gather, levels, moments
from belief.kernels.dense.tally import tally
from belief.kernels.shapes import Reach, Sums

__all__ = [
    "Geometry",
    "Reach",
    "Sums",
    "collisions",
    "distances",
    "embed",
    "gather",
    "half_hits",
    "hashes",
    "levels",
    "match",
    "moments",
    "tally",
]
