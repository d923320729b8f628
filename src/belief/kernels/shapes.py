"""What the kernels for dense rows are told, and where they add up: the same for those of numba and for plain numpy."""

from __future__ import annotations

from typing import NamedTuple

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.redundancy.collisions import reach

TIE_MARGIN = 1e-8  # distances that agree to 9 digits are ties, so what lies this close is a candidate too
UNIT_ROUNDOFF = 2.0**-24  # of float32, the type of the products


class Reach(NamedTuple):
    """When two values collide (|a - b| <= reach) and how fast the rate falls (cr = 1 - slope·|a - b|)."""

    reach: Array
    slope: Array
    discrete: Array


class Sums(NamedTuple):
    """Where sums over pairs are added up; those nobody asks for are empty."""

    total: Array  # (kinds, features): Σ|a - b| in the feature's own unit
    absent: Array  # (kinds, features): the pairs with a missing value; empty where there are none
    rates: Array  # (features): Σ cr
    spread: Array  # (2 or 7, couples, features): Σδ and Σδ², or the products of weighted sums
    queries: Array  # (1 or 3, couples, features): the queries that have a δ, or the products of weights


def reaches(difference: Difference, kappa: float, columns: slice | Array) -> Reach:
    """The reach of some features, as the kernels want it."""
    farthest, slope = reach(difference, kappa)
    return Reach(farthest[columns], slope[columns], difference.discrete[columns])
