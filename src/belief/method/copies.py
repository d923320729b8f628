"""Copies of rows: to see that neighbours are copies, and to let identical rows of a class count as one.

A row that was copied (oversampling) finds its copies as its nearest hits, at distance 0, and they say nothing. With
`copies="merge"` one row stands for all that are identical and of its class: the one with the smallest tie key. The
others are neither sampled nor neighbours; the pass that describes the data still sees all. Identical rows of different
classes stay apart: they are misses at distance 0, and say that the features do not tell the classes apart there.
"""

from __future__ import annotations

import numpy as np

from belief.method.arrays import Array
from belief.method.sampling import TIES, row_keys

COPIED = 0.1  # the share of the hits of a class that are copies from which on it is told
CHANCE = 0.5  # copies a row may be expected to have by chance before they are taken as natural
COLUMNS = 2  # the stream of the keys of the columns
LOOKED_AT = 512  # sampled rows of a class that are compared with one another
TOO_FEW = 50  # queries of a class say nothing of its copies


def column_keys(columns: Array) -> Array:
    """A key for each column, for the identity of rows."""
    return row_keys(0, COLUMNS, columns)


def select_representatives(identity: Array, targets: Array, seed: int) -> Array:
    """Which rows stand for all identical ones with the same target: a mask of those with the smallest tie keys."""
    tie = row_keys(seed, TIES, np.arange(len(identity)))
    order = np.lexsort((tie, targets, identity))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(identity[order]) != 0) | (np.diff(targets[order]) != 0)
    mask = np.zeros(len(order), bool)
    mask[order[new]] = True
    return mask


def share_of_copied_hits(d2: Array, classes: Array) -> Array:
    """Of each class, the share of the hits of its queries that are copies of the query.

    Parameters
    ----------
    d2 : array of shape (queries, |C|, k)
        Of the neighbours of each class, infinite where there are fewer.
    classes : array of int of shape (queries,)
        The class of each query.
    """
    hits = d2[np.arange(len(d2)), classes]
    n = d2.shape[1]
    copied, there = (np.bincount(classes, x.sum(axis=1), n) for x in (hits == 0.0, np.isfinite(hits)))
    return copied / np.maximum(there, 1)


def log_equal(values: Array) -> float:
    """The logarithm of the chance that two rows are equal in all of these columns, as if the columns were independent.

    `values` are those of some rows of a class drawn at random, each of which is compared with the next.
    """
    a, b = values[1:], values[:-1]
    equal = ((a == b) | (np.isnan(a) & np.isnan(b))).sum(axis=0) / max(len(a), 1)
    with np.errstate(divide="ignore"):
        return float(np.log(equal).sum())


def is_by_chance(log_equal: float, n_rows: int) -> bool:
    """Whether few values explain the copies that rows of a class of so many have."""
    return bool(n_rows * np.exp(log_equal) >= CHANCE)
