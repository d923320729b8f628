"""Inner products of rows rounded to int16, with a proven error bound, in a third of the time of float32 products.

The columns of a row are cut into runs of `RUN` columns. A run x is approximated by s·a, where s is its scale and a is a
vector of integers. These are at most 32,766, and the norm of a is at most about 46,000, so inner products fit into 32
bits. Let ρ be the largest relative error |x - s·a|/|x| of a run. Then

    |q·r - Σ s_q·s_r·(a_q·a_r)| <= (2ρ + ρ²)·|q|·|r|

where the sum is over the runs.
"""

from __future__ import annotations

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.distance import FAST
from belief.kernels.instructions import WordInstructions, block_products
from belief.kernels.shapes import UNIT_ROUNDOFF
from belief.method.arrays import Array

RUN = 256  # columns of a run
COLUMNS = 2  # columns in a word of 32 bits
MAX_VALUE, MAX_NORM = np.float32(32_766), np.float32(46_000)
LEAST = np.float32(1e-30)  # runs of smaller values become 0, because the squares of these values underflow
LEAST_SQUARED = np.float32(1e-15)  # the squares of smaller values may underflow
_SLACK = np.float32(1 + (RUN + 8) * UNIT_ROUNDOFF)  # rounding errors of a sum over a run
_ROUNDINGS = 24  # number of float32 roundings, not counting the sum over the runs


def error_of_products(rho: float, n_runs: int) -> float:
    """Return the largest error of d², as a share of the sum of the two squared norms."""
    return 2 * rho + rho**2 + (n_runs + _ROUNDINGS) * UNIT_ROUNDOFF


@kernel(fastmath=FAST)
def _round_run(x: Array, ints: Array) -> tuple[float, float]:
    """Round at most `RUN` columns of a row to integers; return their scale, and a bound of their relative error."""
    largest, square = np.float32(0.0), np.float32(0.0)
    for j in range(len(x)):
        largest = max(largest, abs(x[j]))
        square += x[j] * x[j]
    if largest < LEAST:
        ints[:] = 0
        return np.float32(0.0), np.float32(0.0)
    norm = np.sqrt(square) * _SLACK if largest > LEAST_SQUARED else largest * np.sqrt(np.float32(len(x)))
    scale = max(largest / MAX_VALUE, norm / MAX_NORM)
    inverse, lost, kept = np.float32(1.0) / scale, np.float32(0.0), np.float32(0.0)
    for j in range(len(x)):  # in units of the scale, so that nothing overflows or underflows
        u = x[j] * inverse
        v = np.floor(u + np.float32(0.5))
        ints[j] = np.int16(v)
        lost += (u - v) * (u - v)
        kept += v * v
    error = np.sqrt(lost) * _SLACK
    return scale, error / (np.sqrt(kept) / _SLACK - error) + np.float32(4 * UNIT_ROUNDOFF)


@kernel()
def round_words(points: Array, first: int, ints: Array, scale: Array) -> float:
    """Round float32 points, and write them to `ints`, (rows, columns) int16, from row `first` on.

    Each row is rounded in runs of `RUN` columns, which have separate scales, written to `scale`, (runs, rows) float32.
    Return the largest relative error of a run, which is the norm of its rounding error divided by its norm.
    """
    worst, width = 0.0, points.shape[1]
    for i in range(len(points)):
        line = ints[first + i]
        for a in range(0, width, RUN):
            b = min(a + RUN, width)
            scale[a // RUN, first + i], rho = _round_run(points[i, a:b], line[a:b])
            worst = max(worst, rho)
        if width % COLUMNS:
            line[width] = 0
    return worst


@kernel()
def pack_words(words: Array, first: int, last: int, steps: int, packed: Array) -> None:
    """Copy the rows from `first` to `last` of `words`, (rows, steps) int32, to panels, (panels, steps, lanes).

    `first` must be the first row of a panel.
    """
    lanes = packed.shape[2]
    for start in range(first, last, lanes):
        panel = packed[start // lanes]
        for a in range(0, steps, RUN):  # this number of steps of a panel stays in the CPU cache
            for i in range(start, min(start + lanes, last)):
                for s in range(a, min(a + RUN, steps)):
                    panel[s, i - start] = words[i, s]


@kernel()
def multiply_words(
    kind: WordInstructions, ints: Array, packed: Array, query_scale: Array, row_scale: Array, width: int,
    queries: tuple[int, int], rows: tuple[int, int], is_first: bool, product: Array,
) -> None:  # fmt: skip
    """Add the inner products of a block of queries and a block of rows, over some of the columns, to `product`.

    Sums are computed in smaller blocks that fit into registers, of kind.queries queries and kind.panels panels of rows.

    Parameters
    ----------
    ints, query_scale : the queries as in `round_words`, padded to a multiple of kind.queries
    packed, row_scale : the rows in panels, padded to a multiple of kind.panels, and their scales
    width : the number of columns
    queries, rows : the blocks (start, stop); each start is a multiple of the size of the smaller blocks
    is_first : whether these are the first columns, so that `product` is overwritten
    product : (queries, rows) float32
    """
    lanes, height, across = kind.lanes, kind.queries, kind.panels * kind.lanes
    sums = np.empty((height, across), np.int32)
    if is_first:
        for q in range(queries[0], queries[1]):
            product[q, rows[0] : rows[1]] = 0.0
    for t in range((width + RUN - 1) // RUN):
        a = t * (RUN // COLUMNS)
        steps = min(RUN, width - t * RUN + COLUMNS - 1) // COLUMNS
        for r in range(rows[0], rows[1], across):
            stop = min(r + across, rows[1])
            for q in range(queries[0], queries[1], height):
                block_products(  # type: ignore[call-arg]
                    kind, packed[r // lanes, a].ctypes.data, packed.strides[0], ints[q, COLUMNS * a :].ctypes.data,
                    ints.strides[0], steps, sums.ctypes.data, sums.strides[0],
                )  # fmt: skip
                for i in range(min(height, queries[1] - q)):
                    out, line, s = product[q + i, r:stop], sums[i], query_scale[t, q + i]
                    scale = row_scale[t, r:stop]
                    for j in range(stop - r):
                        out[j] += s * (scale[j] * np.float32(line[j]))
