"""Rows rounded to 8-bit integers, with a proven lower bound of their distances.

A row x is approximated by s·a, where a is a vector of integers from -127 to 127 and s = max|x_j| / 127. With the error
e = |x - s·a|,

    |q·r - s_q·s_r·(a_q·a_r)| <= |q|·e_r + e_q·(|r| + e_r),

and a_q·a_r is computed without error. So d² is at least |q|² + |r|² - 2·s_q·s_r·(a_q·a_r) minus twice this bound. The
exact distance of a row is not computed if its lower bound is above the distances of the nearest rows found so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belief.kernels.compiling import kernel
from belief.kernels.dense.distance import FAST
from belief.kernels.instructions import WORD, Instructions, block_candidates, lowest_bit
from belief.kernels.shapes import UNIT_ROUNDOFF
from belief.kernels.sparse import Csr, longest
from belief.method.arrays import Array

# The largest rounding error of the lower bound in float32, as a share of |q|² + |r|². The terms of the lower bound add
# up to less than 9·(|q|² + |r|²). Each term is rounded at most 8 times, and the points were rounded before.
ERROR = 96 * UNIT_ROUNDOFF
# The rounding error of `lost` in `round_row`, as a share of the norm of the row.
_LOST_ERROR = 2.0**-22
MAX_LENGTH = 40_000.0  # largest norm of an integer row, so that products stay below 2^31 for any number of columns


class RoundedRows(NamedTuple):
    """A tile of rows rounded to integers, packed into panels as `instructions.block_candidates` reads them."""

    packed: Array  # (panels, steps, lanes) uint32, four columns each
    terms: Array  # (4, rows) float32: scale, squared norm, error, norm plus error
    groups: Array  # byte offset of the limit of each panel's group among the limits of a query
    row: Array  # position of each row in its tile; -1 for padding


class RoundedQueries(NamedTuple):
    """Queries rounded to integers, padded with zeros to a multiple of `Instructions.queries`."""

    ints: Array  # (queries, 4 * steps) int8
    terms: Array  # (queries, 3) float32: twice the scale, twice the norm, twice the error
    shift: Array  # int32, the number that the offset of the rows adds to the products of a query
    norm: Array  # float64, the squared norm


@kernel(fastmath=FAST)
def round_row(x: Array, levels: int, ints: Array) -> tuple[float, float, float]:
    """Round a float32 row to integers in `ints`; return its scale, its norm, and a bound of the error's norm."""
    largest, square = np.float32(0.0), np.float32(0.0)
    for j in range(len(x)):
        largest = max(largest, abs(x[j]))
        square += x[j] * x[j]
    slack = np.float32(1.0 + (len(x) + 8) * UNIT_ROUNDOFF)  # rounding errors of the two sums
    length = np.sqrt(square) * slack
    scale = max(largest / np.float32(levels), length / np.float32(MAX_LENGTH), np.float32(1e-30))
    inverse, lost = np.float32(1.0) / scale, np.float32(0.0)
    for j in range(len(x)):
        v = np.floor(x[j] * inverse + np.float32(0.5))
        ints[j] = np.int8(v)
        d = x[j] - v * scale
        lost += d * d
    return scale, length, np.sqrt(lost) * slack + length * np.float32(_LOST_ERROR)


@kernel()
def round_queries(points: Array, offset: int, ints: Array, terms: Array, shift: Array) -> None:
    """Round queries, given as float32 points, to integers, and write the fields of `RoundedQueries` except `norm`."""
    for i in range(len(points)):
        scale, length, error = round_row(points[i], 127, ints[i])
        terms[i, 0], terms[i, 1], terms[i, 2] = 2.0 * scale, 2.0 * length, 2.0 * error
        total = 0
        for j in range(points.shape[1]):
            total += np.int64(ints[i, j])
        shift[i] = np.int32(offset * total)


@kernel()
def round_rows(points: Array, norm: Array, slots: Array, levels: int, offset: int, packed: Array, terms: Array) -> None:
    """Round rows, given as float32 points, to integers, and write row i to slot slots[i] of the panels.

    Also write the terms of the lower bounds of their distances, as in `RoundedRows`.
    """
    n, lanes = packed.shape[1], packed.shape[2]
    ints = np.zeros(WORD * n, np.int8)
    moved = np.empty(WORD * n, np.uint8)
    words = moved.view(np.uint32)
    for i in range(len(points)):
        scale, length, error = round_row(points[i], levels, ints)
        for j in range(len(moved)):
            moved[j] = np.uint8(np.int16(ints[j]) + np.int16(offset))
        panel, lane = slots[i] // lanes, slots[i] % lanes
        for s in range(n):
            packed[panel, s, lane] = words[s]
        at = slots[i]
        terms[0, at], terms[1, at] = scale, norm[i] * (1.0 - ERROR)
        terms[2, at], terms[3, at] = error, length + error


@kernel()
def round_sparse_row(
    rows: Csr, i: int, place: Array, factor: Array, levels: int, ints: Array
) -> tuple[float, float, float, float]:
    """Round row i, with each feature multiplied by its factor, to integers. Features with place[j] = -1 are left out.

    `ints` has one integer for each entry of the row, and must be 0 at first. Return the scale, the squared norm of the
    whole row, the norm of the features that are not left out, and a bound of the norm of the rounding error.
    """
    largest, square, norm = 0.0, 0.0, 0.0
    for p in range(rows.start[i], rows.start[i + 1]):
        v = np.float64(rows.value[p]) * factor[rows.column[p]]
        norm += v * v
        if place[rows.column[p]] >= 0:
            square += v * v
            largest = max(largest, abs(v))
    slack = 1.0 + 8 * UNIT_ROUNDOFF  # for the rounding of results to float32
    length = np.sqrt(square) * slack
    scale = np.float64(np.float32(max(largest / levels, length / MAX_LENGTH, 1e-30) * slack))
    lost = 0.0
    for p in range(rows.start[i], rows.start[i + 1]):
        if place[rows.column[p]] >= 0:
            v = np.float64(rows.value[p]) * factor[rows.column[p]]
            a = np.floor(v / scale + 0.5)
            ints[p - rows.start[i]] = np.int8(a)
            lost += (v - a * scale) ** 2
    return scale, norm, length, np.sqrt(lost) * slack + 1e-12 * length


@kernel()
def round_sparse_queries(
    rows: Csr,
    first: int,
    place: Array,
    factor: Array,
    offset: int,
    ints: Array,
    terms: Array,
    shift: Array,
    norm: Array,
) -> None:
    """Round sparse queries, from row `first` on, to integers, and write the fields of `RoundedQueries`.

    Feature j of a query is multiplied by factor[j] and becomes column place[j]. Features with a place of -1 are left
    out.
    """
    some = np.zeros(longest(rows), np.int8)
    for i in range(len(norm)):
        scale, norm[i], length, error = round_sparse_row(rows, first + i, place, factor, 127, some)
        terms[i, 0], terms[i, 1], terms[i, 2] = 2.0 * scale, 2.0 * length, 2.0 * error
        total, start = 0, rows.start[first + i]
        for p in range(start, rows.start[first + i + 1]):
            if place[rows.column[p]] >= 0:
                ints[i, place[rows.column[p]]] = some[p - start]
                total += np.int64(some[p - start])
        shift[i] = np.int32(offset * total)


@kernel()
def round_sparse_rows(
    rows: Csr, ids: Array, place: Array, factor: Array, slots: Array, levels: int, offset: int, packed: Array,
    terms: Array, norm: Array,
) -> None:  # fmt: skip
    """Round sparse rows, and write the row with the id ids[i] to slot slots[i] of `packed`.

    Also write the terms of the lower bounds of their distances, as in `RoundedRows`, and their squared norms. The other
    arguments are as in `round_sparse_queries`.
    """
    lanes = packed.shape[2] // WORD
    some = np.zeros(longest(rows), np.int8)
    for i in range(len(ids)):
        scale, norm[i], length, error = round_sparse_row(rows, ids[i], place, factor, levels, some)
        panel, lane, start = slots[i] // lanes, slots[i] % lanes, rows.start[ids[i]]
        for p in range(start, rows.start[ids[i] + 1]):
            j = place[rows.column[p]]
            if j >= 0:
                packed[panel, j // WORD, WORD * lane + j % WORD] = np.uint8(
                    np.int16(some[p - start]) + np.int16(offset)
                )
        at = slots[i]
        terms[0, at], terms[1, at] = scale, norm[i] * (1.0 - ERROR)
        terms[2, at], terms[3, at] = error, length + error


@kernel()
def compare(
    kind: Instructions, rows: RoundedRows, queries: RoundedQueries, limits: Array, columns: int, candidates: Array
) -> None:
    """Set a bit in `candidates` for each query and each row that may be its neighbour.

    Parameters
    ----------
    limits : (queries, groups) float32; a row is excluded if its lower bound of d² - |q|² is above the limit
    columns : the number of panels (rows that are stored together) in a batch; all queries are compared with a batch
        while it is in the CPU cache
    candidates : (queries, panels) uint16, with one bit per row of a panel
    """
    packed, terms = rows.packed, rows.terms
    n_panels, steps, lanes = packed.shape
    width, columns = queries.ints.shape[1], max(columns // kind.panels, 1) * kind.panels
    for first in range(0, n_panels, columns):
        for q in range(0, len(queries.ints), kind.queries):
            for p in range(first, min(first + columns, n_panels), kind.panels):
                block_candidates(  # type: ignore[call-arg]
                    kind, packed[p].ctypes.data, steps * lanes * 4, queries.ints[q].ctypes.data, width, steps,
                    terms[0, p * lanes :].ctypes.data, terms.shape[1] * 4, queries.terms[q].ctypes.data,
                    queries.shift[q:].ctypes.data, limits[q].ctypes.data, limits.shape[1] * 4,
                    rows.groups[p:].ctypes.data, candidates[q, p:].ctypes.data, candidates.shape[1] * 2,
                )  # fmt: skip


@kernel()
def collect(
    candidates: Array, lanes: int, row: Array, ids: Array, own: Array, most: int, start: int, found_query: Array,
    found_row: Array, crowded: Array,
) -> tuple[int, int]:  # fmt: skip
    """List the candidates whose bits `compare` has set, for the queries from `start` on, except each query itself.

    Parameters
    ----------
    row : the row of each slot; -1 for padding
    ids, own : the ids of the rows, and the ids of the queries
    most : queries with more candidates are marked in `crowded` instead
    found_query, found_row : the output, longer than `most`: the query and the row of each candidate

    Returns
    -------
    the number of candidates in the output, and the query to continue with, since the output may fill up
    """
    count = 0
    for q in range(start, len(own)):
        if count + most > len(found_query):
            return count, q
        first = count
        for p in range(candidates.shape[1]):
            bits = np.int64(candidates[q, p])
            while bits != 0:
                r = row[p * lanes + lowest_bit(bits)]
                bits &= bits - 1
                if r < 0 or ids[r] == own[q]:
                    continue
                if count - first < most:
                    found_query[count], found_row[count] = q, r
                count += 1
            if count - first > most:
                break
        if count - first > most:
            count = first
            crowded[q] = True
    return count, len(own)
