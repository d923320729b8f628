"""Collision rates of pairs of rows, and the joint sums of two features over such pairs.

See equation 9 of the paper and section 5 of method.md.

Two rows collide in a feature if their values are close. The collision rate cr measures how close they are; b is 1 if
they collide at all, else 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs

CR_MAX = 6.0  # ↑CR: collision rates fall to 0 at six standard deviations
Watch = tuple[Pairs, Array]  # pairs of rows, and the features (lines) of the joint sums over these pairs


@dataclass(frozen=True)
class Collisions:
    """Which collisions count, and how the collision rates of two features are multiplied in joint sums.

    Collision rates below `kappa` count as 0. With by="hit", joint[i, j] is the sum of (cr_i·b_j + b_i·cr_j)/2 over the
    pairs, where b is 1 if the rate is above 0 and 0 otherwise. With by="rate", it is the sum of e_i·e_j with e = 1 -
    cr, and the sums Σe and Σe² of each feature are returned too. e has the same correlations as cr, but its sums lose
    no digits if nearly all values of a feature are close to each other.
    """

    kappa: float
    by: str


def reach(difference: Difference, kappa: float) -> tuple[Array, Array]:
    """Return the reach of each feature (the largest difference of values that collide), and the slope of its cr.

    The collision rate of two values a and b is cr = 1 - slope·|a - b| if |a - b| <= reach, and 0 otherwise. This is
    1 - min(|a - b|/σ, 6)/6, set to 0 if it is below κ - 1e-9. Without the 1e-9, the rounding of σ would decide whether
    values at the threshold collide. Values of a discrete feature collide if they are equal.
    """
    sigma = difference.sigma
    is_numeric = ~difference.discrete & ~difference.constant
    slope = np.divide(1.0, CR_MAX * sigma, out=np.zeros_like(sigma), where=is_numeric)
    farthest = CR_MAX * sigma * min(1.0 - kappa + 1e-9, 1.0 - 1e-9)
    return np.where(is_numeric, farthest, 0.0), slope


class CollisionRates(NamedTuple):
    """The collision rates of some pairs (lines) in some features (columns)."""

    R: Array  # cr, or e = 1 - cr with by="rate"
    P: Array  # 1 if both values are present, otherwise 0; empty if no value is missing
    sums: Array  # ΣR and ΣR², (2, features)

    @classmethod
    def from_rates(cls, R: Array, P: Array) -> Self:
        return cls(R, P, sum_powers(R))


def sum_powers(R: Array) -> Array:
    """Return ΣR and ΣR² over the pairs, for each feature: (2, features)."""
    return np.stack([R.sum(axis=0), np.einsum("pf,pf->f", R, R)])


def joint_sums(rates: Collisions, i: CollisionRates, j: CollisionRates) -> Joint:
    """Return the joint sums of the features of i (lines) with the features of j (columns) over the same pairs."""
    missing = len(i.P) > 0
    if rates.by == "hit":
        B_i, B_j = ((x.R > 0.0).astype(float) for x in (i, j))  # b
        joint, lines, columns = (i.R.T @ B_j + B_i.T @ j.R) / 2, *np.zeros((2, 2, 0, 0))
    elif missing:
        joint = i.R.T @ j.R
        lines, columns = np.stack([i.R.T @ j.P, (i.R**2).T @ j.P]), np.stack([i.P.T @ j.R, i.P.T @ j.R**2])
    else:
        joint, lines, columns = i.R.T @ j.R, i.sums[:, :, None], j.sums[:, None, :]
    return Joint(joint, i.P.T @ j.P if missing else np.full(joint.shape, float(len(i.R))), lines, columns)


def empty_joint(rates: Collisions, n_lines: int, n_columns: int) -> Joint:
    """Return the joint sums over no pairs, which are all 0."""
    return joint_sums(
        rates, *(CollisionRates.from_rates(np.zeros((0, n)), np.zeros((0, n))) for n in (n_lines, n_columns))
    )


def joint_from_complement(rates: Collisions, n_pairs: int, i: Array, j: Array, cross: Array) -> Joint:
    """Return the joint sums of pairs of features from sums of complements, which are sparse if the data is sparse.

    The complements are e = 1 - cr and z = 1 - b, where b is 1 if cr > 0 and 0 otherwise. In a feature in which both
    rows of a pair have the value 0, both complements are 0. If `rates.by` is "hit", the joint sums follow from
    Σcr_i·b_j = n_pairs - Σe_i - Σz_j + Σe_i·z_j. If it is "rate", they are Σe_i·e_j.

    With "hit", i and j each hold two sums per feature, Σe and Σz, (2, features), and `cross` is Σ(e_i·z_j + z_i·e_j)/2.
    With "rate", they each hold Σe and Σe², and `cross` is Σe_i·e_j.
    """
    pairs = np.broadcast_to(float(n_pairs), cross.shape)
    if rates.by == "rate":
        return Joint(cross, pairs, i[:, :, None], j[:, None, :])
    joint = without_noise(n_pairs - i.sum(axis=0)[:, None] / 2 - j.sum(axis=0) / 2 + cross, n_pairs)
    return Joint(joint, pairs, np.zeros((2, 0, 0)), np.zeros((2, 0, 0)))


def without_noise(difference: Array, n_pairs: int) -> Array:
    """Set elements of `difference` that are only rounding error to 0.

    Each element was computed by subtracting sums over pairs from the number of pairs.
    """
    return np.where(difference < 1e-11 * n_pairs, 0.0, difference)


def joint_floor(products: Array, gap_i: Array, gap_j: Array) -> Array:
    """Return lower bounds of the joint sums Σ(cr_i·b_j + b_i·cr_j)/2 of features i and j over pairs of rows.

    cr is the collision rate of a pair in a feature, and b is 1 if cr > 0 and 0 otherwise. With h = (cr + b)/2, the
    joint sum is Σh_i·h_j - Σ(b_i - h_i)(b_j - h_j). `products` is the first of these sums, so the bound needs one
    matrix product, while the joint sums need two. By the Cauchy-Schwarz inequality, the second sum is at most
    √(gap_i·gap_j), where the gap of a feature is Σ(b - h)². Gaps are small: collision rates below κ count as 0, so b -
    h is at most (1 - κ)/2.
    """
    return np.maximum(products - np.sqrt(np.outer(gap_i, gap_j)), 0.0)
