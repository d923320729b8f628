"""Copies of rows: detect neighbours that are copies, and merge identical rows of a class.

If rows were duplicated (oversampling), the nearest hits of a row are its copies. They are at distance 0 and carry no
information. With `copies="merge"`, the identical rows of a class are represented by the one with the smallest tie key.
The others are neither sampled nor neighbours, but the pass that describes the data still counts them. Identical rows of
different classes are not merged: they are misses at distance 0, and show that the features do not separate the classes.
"""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.sampling import TIES, row_keys

MIN_COPIED_SHARE = 0.1  # a warning is issued if at least this share of the hits of a class are copies
EXPECTED_COPIES = 0.5  # chance explains copies if at least this number of copies is expected by chance
COLUMN_STREAM = 2  # the stream of the keys of columns
MAX_COMPARED_ROWS = 512  # sampled rows of a class that are compared with one another
MIN_QUERIES = 50  # the share of copies is too uncertain for a class with fewer queries


def column_keys(columns: Array) -> Array:
    """Return a random key for each column, for hashing the values of a row."""
    return row_keys(0, COLUMN_STREAM, columns)


def select_representatives(hashes: Array, targets: Array, seed: int) -> Array:
    """Return a mask with one row of each set of rows with equal hash and target: the row with the smallest tie key."""
    tie = row_keys(seed, TIES, np.arange(len(hashes)))
    order = np.lexsort((tie, targets, hashes))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(hashes[order]) != 0) | (np.diff(targets[order]) != 0)
    mask = np.zeros(len(order), bool)
    mask[order[is_first]] = True
    return mask


def share_of_copied_hits(d2: Array, classes: Array) -> Array:
    """Return, for each class, the share of the hits of its queries that are copies of the query.

    `d2` are the squared distances to the neighbours of each class, (queries, |C|, k), infinite where there are fewer
    than k. `classes` are the classes of the queries.
    """
    hits = d2[np.arange(len(d2)), classes]
    n = d2.shape[1]
    copied, present = (np.bincount(classes, x.sum(axis=1), n) for x in (hits == 0.0, np.isfinite(hits)))
    return copied / np.maximum(present, 1)


def log_chance_equal(values: Array) -> float:
    """Return the log of the probability that two rows are equal in all columns, assuming independent columns.

    It is estimated from `values`, the rows of a random sample of a class, by comparing each row with the next.
    """
    a, b = values[1:], values[:-1]
    equal = ((a == b) | (np.isnan(a) & np.isnan(b))).sum(axis=0) / max(len(a), 1)
    with np.errstate(divide="ignore"):
        return float(np.log(equal).sum())
