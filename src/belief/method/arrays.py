"""The array type, and functions for arrays of integer ids."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FEATURES = "features"
FeatureArray = Annotated[Array, FEATURES]  # the last axis runs over the features
MAX_SPARSITY = 16  # ids below this many times their number are looked up in a table; larger ids are sorted


def compact_ids(ids: Array) -> tuple[Array, int]:
    """Return ids renumbered to lie below a small n, and n. If the ids are small already, they are not changed."""
    n = int(ids.max(initial=-1)) + 1
    if n <= MAX_SPARSITY * len(ids):
        return ids, n
    known, place = np.unique(ids, return_inverse=True)
    return place, len(known)


def unique_ids(ids: Array) -> tuple[Array, Array]:
    """Return the sorted unique ids, and the index of each id among them; a faster `np.unique`."""
    n = int(ids.max(initial=-1)) + 1
    if n > MAX_SPARSITY * len(ids):
        return np.unique(ids, return_inverse=True)
    is_present = np.zeros(n, bool)
    is_present[ids] = True
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[ids]


def is_first_of_run(x: Array) -> Array:
    """Return a mask of the entries of x that differ from the entry before; the first is always True."""
    new = np.ones(len(x), bool)
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return new


def run_lengths(starts: Array, n: int) -> Array:
    """Return the length of each run, if an array of n values is divided into runs that begin at `starts`."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = n - starts[-1:]
    return lengths


def lexsort_pairs(first: Array, second: Array, n: int) -> Array:
    """Return the indices that sort by `first` and then by `second`, as `np.lexsort`; both hold integers below n."""
    if n <= 2**16:  # numpy has a radix sort for these
        return np.lexsort((second.astype(np.uint16), first.astype(np.uint16)))
    return np.argsort(first * np.int64(n) + second, kind="stable")
