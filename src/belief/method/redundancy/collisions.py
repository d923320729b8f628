"""Section 5 of the method: collisions (equation 9 of the paper), and the sums over pairs that measures are made of.

Two rows collide in a feature where their values are near: cr is how near, b whether at all.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def joint_sums(rates: Collisions, R: Array, B: Array, P: Array, i: Array, j: Array) -> Joint:
    """The joint sums of features i with features j over some pairs.

    Parameters
    ----------
    R, B, P : (pairs, features)
        cr, b and presence; without B by "rate", and without P where no value is missing.
    i, j : the columns that are lines of the result, and those that are its columns
    """
    R_i, R_j = R[:, i], pick(R, j)
    by_hit = rates.by == "hit"
    joint = (R_i.T @ pick(B, j) + B[:, i].T @ R_j) / 2 if by_hit else R_i.T @ R_j
    nothing = np.zeros((2, 0, 0))
    if not len(P):
        pairs = np.full(joint.shape, float(len(R)))
        lines = nothing if by_hit else np.stack([R_i.sum(axis=0), (R_i**2).sum(axis=0)])[:, :, None]
        columns = nothing if by_hit else np.stack([R_j.sum(axis=0), (R_j**2).sum(axis=0)])[:, None, :]
        return Joint(joint, pairs, lines, columns)
    P_i, P_j = P[:, i], pick(P, j)
    lines = nothing if by_hit else np.stack([R_i.T @ P_j, (R_i**2).T @ P_j])
    columns = nothing if by_hit else np.stack([P_i.T @ R_j, P_i.T @ R_j**2])
    return Joint(joint, P_i.T @ P_j, lines, columns)


def no_joint(rates: Collisions, n_lines: int, n_columns: int) -> Joint:
    """The joint sums over no pairs."""
    nothing = np.zeros((0, n_lines + n_columns))
    lines, columns = np.arange(n_lines), n_lines + np.arange(n_columns)
    return joint_sums(rates, nothing, nothing, np.zeros((0, 0)), lines, columns)


def pick(X: Array, columns: Array) -> Array:
    """Some columns, and where that is all of them in order, the array itself."""
    return X if len(columns) == X.shape[1] and np.all(columns[1:] > columns[:-1]) else X[:, columns]


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
