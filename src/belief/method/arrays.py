"""The type of all arrays, and numbers in the place of ids."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FEATURES = "features"
FeatureArray = Annotated[Array, FEATURES]  # the last axis runs over the features
FEW_OF = 16  # ids are sorted where there are so many times as many rows, and ticked off where there are fewer


def compact_ids(ids: Array) -> tuple[Array, int]:
    """The ids as numbers below n: themselves, unless they are few of very many."""
    n = int(ids.max(initial=-1)) + 1
    if n <= FEW_OF * len(ids):
        return ids, n
    known, place = np.unique(ids, return_inverse=True)
    return place, len(known)


def unique_ids(ids: Array) -> tuple[Array, Array]:
    """The ids that there are, by rising number, and the place of each of the given ones among them."""
    n = int(ids.max(initial=-1)) + 1
    if n > FEW_OF * len(ids):
        return np.unique(ids, return_inverse=True)
    there = np.zeros(n, bool)
    there[ids] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[ids]


def lexsort_pairs(first: Array, second: Array, n: int) -> Array:
    """The order by the first numbers, and where those are the same by the second, all of them below n; stable."""
    if n <= 2**16:  # numpy sorts these digit by digit, in a fraction of the time
        return np.lexsort((second.astype(np.uint16), first.astype(np.uint16)))
    return np.argsort(first * np.int64(n) + second, kind="stable")
