"""Constants, argument types and formulas that the kernels for numba, numpy and torch have in common."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.redundancy.collisions import reach

TIE_MARGIN = 1e-8  # distances equal to 9 digits are ties, so bounds are relaxed by this share to keep all ties
UNIT_ROUNDOFF = 2.0**-24  # the unit roundoff of float32, the type of the products


class Reach(NamedTuple):
    """The parameters of the collision rate cr of each feature.

    cr is 1 - slope·|a - b| if |a - b| is at most `reach`, and 0 otherwise.
    """

    reach: Array
    slope: Array
    discrete: Array


class Sums(NamedTuple):
    """Output arrays for sums over pairs. Arrays that are not needed are empty."""

    total: Array  # (kinds, features): Σ|a - b| in the unit of the feature
    absent: Array  # (kinds, features): pairs with a missing value; empty if there are none
    rates: Array  # (features): Σ cr
    spread: Array  # (2 or 7, groups, features): Σδ and Σδ², or sums of products if pairs have weights
    queries: Array  # (1 or 3, groups, features): the number of queries with misses and hits, or sums of products


def reaches(difference: Difference, kappa: float, columns: slice | Array) -> Reach:
    """Return the parameters of the collision rates of these features."""
    farthest, slope = reach(difference, kappa)
    return Reach(farthest[columns], slope[columns], difference.discrete[columns])


def cut_between_queries(pairs: Pairs, part_size: int) -> list[slice]:
    """Cut the pairs into parts of about `part_size` pairs, without dividing the pairs of a query."""
    if len(pairs) <= part_size:
        return [slice(0, len(pairs))] if len(pairs) else []
    ends = np.append(pairs.starts, len(pairs))
    cuts = ends[np.searchsorted(ends, np.arange(0, len(pairs) + part_size, part_size)).clip(max=len(ends) - 1)]
    return [slice(int(a), int(b)) for a, b in pairwise(np.unique(cuts))]


# --- formulas for numpy and torch; `xp` is one of the two modules ---


def _power_of_ten(n: int) -> float:
    """Return 10^n by repeated squaring, with the same bits as in compiled code, even above 10^22."""
    out, base = 1.0, 10.0
    while n:
        out, base, n = (out * base if n & 1 else out), base * base, n >> 1
    return out


POWERS_OF_TEN = np.array([_power_of_ten(n) for n in range(309)])


def round9(x: Any, powers: Any, xp: Any) -> Any:
    """Round to 9 significant digits, so that equal distances summed in another order compare equal.

    `powers` is POWERS_OF_TEN as an array of the module `xp`. `belief.kernels.nearest.round9` does the same for numbers.
    """
    is_finite = (x > 0) & xp.isfinite(x)
    exponent = xp.floor(xp.log10(xp.where(is_finite, x, 1.0)))
    digits = xp.asarray(xp.clip(8 - exponent, None, 300), dtype=xp.int64)
    power = powers[xp.abs(digits)]
    rounded = xp.where(digits >= 0, xp.round(x * power) / power, xp.round(x / power) * power)
    return xp.where(is_finite, rounded, xp.where(x > 0, x, 0.0))


def query_statistics(
    a: Any, b: Any, t: Any, u: Any, weighted: bool, xp: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the terms that each query adds to `Sums.spread`, and those that it adds to `Sums.queries`.

    Parameters
    ----------
    a, b : sums of the differences of each query from its misses and from its hits
    t, u : the number of misses and of hits, or the sums of their weights
    """
    if weighted:
        return (a * a, a * b, b * b, a * t, a * u, b * t, b * u), (t * t, t * u, u * u)
    both = (t > 0) & (u > 0)
    delta = xp.where(both, a / xp.where(both, t, 1.0) - b / xp.where(both, u, 1.0), 0.0)
    return (delta, delta * delta), (xp.asarray(both, dtype=xp.float64),)
