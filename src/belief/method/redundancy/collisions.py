"""Section 5 of the method: collisions (equation 9 of the paper), and the sums over pairs that measures are made of.

Two rows collide in a feature where their values are near: cr is how near, b whether at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs

CR_MAX = 6.0  # ↑CR: collision rates fall to 0 at six standard deviations
Watch = tuple[Pairs, Array]  # some pairs, and the features whose collisions are compared with others' in them


@dataclass(frozen=True)
class Collisions:
    """Which collisions count: rates from κ on; and what a rate is multiplied with in joint sums.

    By "hit", joint[i, j] = Σ(cr_i·b_j + b_i·cr_j)/2 over the pairs; by "rate", Σcr_i·cr_j, with Σcr and Σcr² of both.
    """

    kappa: float
    by: str


def reach(difference: Difference, kappa: float) -> tuple[Array, Array]:
    """Cr = 1 - slope·|a - b| where |a - b| <= reach, else 0: both per feature.

    That is cr = 1 - min(|a - b|/σ, 6)/6, and 0 where cr < κ. The 1e-9 keeps rounding in σ from deciding a value that
    lies on the threshold. A discrete feature has |a - b| in {0, 1} and collides at 0.
    """
    sigma = difference.sigma
    plain = ~difference.discrete & ~difference.constant
    slope = np.divide(1.0, CR_MAX * sigma, out=np.zeros_like(sigma), where=plain)
    farthest = CR_MAX * sigma * min(1.0 - kappa + 1e-9, 1.0 - 1e-9)
    return np.where(plain, farthest, 0.0), slope


class CollisionRates(NamedTuple):
    """Of some pairs (lines) and features (columns): cr, presence where values are missing, and Σcr and Σcr²."""

    R: Array
    P: Array
    sums: Array  # (2, features)

    @classmethod
    def from_rates(cls, R: Array, P: Array) -> Self:
        return cls(R, P, sum_powers(R))


def sum_powers(R: Array) -> Array:
    """Σcr and Σcr² of each feature."""
    return np.stack([R.sum(axis=0), np.einsum("pf,pf->f", R, R)])


def joint_sums(rates: Collisions, i: CollisionRates, j: CollisionRates) -> Joint:
    """The joint sums of features i, the lines of the result, with features j, its columns, over the same pairs."""
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
    """The joint sums over no pairs."""
    return joint_sums(
        rates, *(CollisionRates.from_rates(np.zeros((0, n)), np.zeros((0, n))) for n in (n_lines, n_columns))
    )


def joint_from_complement(rates: Collisions, n_pairs: int, i: Array, j: Array, cross: Array) -> Joint:
    """The same from e = 1 - cr and z = 1 - b, which are 0 where both rows are.

    By "hit", Σcr_i·b_j = pairs - Σe_i - Σz_j + Σe_i·z_j; `i` and `j` hold Σe and Σz of each feature in two lines, and
    `cross` Σ(e_i·z_j + z_i·e_j)/2. By "rate", `i` and `j` hold Σe and Σe², and `cross` Σe_i·e_j: as good as those of
    cr, since e correlates as cr does.
    """
    pairs = np.broadcast_to(float(n_pairs), cross.shape)
    if rates.by == "rate":
        return Joint(cross, pairs, i[:, :, None], j[:, None, :])
    joint = without_noise(n_pairs - i.sum(axis=0)[:, None] / 2 - j.sum(axis=0) / 2 + cross, n_pairs)
    return Joint(joint, pairs, np.zeros((2, 0, 0)), np.zeros((2, 0, 0)))


def without_noise(left: Array, n_pairs: int) -> Array:
    """What is left when a complement is taken from the number of pairs; what should be 0 is, not the rounding."""
    return np.where(left < 1e-11 * n_pairs, 0.0, left)


def joint_floor(products: Array, gap_i: Array, gap_j: Array) -> Array:
    """A lower bound of joint[i, j] from Σh_i·h_j, with h = (cr + b)/2, and gap = Σ(b - h)².

    cr_i·b_j + b_i·cr_j = 2·h_i·h_j - 2·(b_i - h_i)(b_j - h_j), and by Cauchy and Schwarz the sum of the last products
    is at most √(gap_i·gap_j), which is small: b - h is at most (1 - κ)/2. So one product instead of two will do.
    """
    return np.maximum(products - np.sqrt(np.outer(gap_i, gap_j)), 0.0)
