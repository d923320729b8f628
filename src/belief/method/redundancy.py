"""Section 5 of the method: collisions and mCR, I_α (equations 7 and 9 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from belief.method.difference import Difference
from belief.method.partials import Array, Joint, Pairs, Tally

CR_MAX = 6.0  # ↑CR: collision rates fall to 0 at six standard deviations


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


def joint_of(R_i: Array, B_i: Array, R_j: Array, B_j: Array) -> Array:
    """joint[i, j] = Σ(cr_i·b_j + b_i·cr_j)/2, with R and B the cr and b of each pair (lines) and feature (columns)."""
    return (R_i.T @ B_j + B_i.T @ R_j) / 2


def joint_from_complement(n_pairs: int, i: Array, j: Array, cross: Array) -> Array:
    """The same from e = 1 - cr and z = 1 - b, which are 0 where both rows are.

    Σcr_i·b_j = pairs - Σe_i - Σz_j + Σe_i·z_j; `i` and `j` hold Σe and Σz of each feature in two lines, and `cross`
    Σ(e_i·z_j + z_i·e_j)/2.
    """
    return without_noise(n_pairs - i.sum(axis=0)[:, None] / 2 - j.sum(axis=0) / 2 + cross, n_pairs)


def without_noise(left: Array, n_pairs: int) -> Array:
    """What is left when a complement is taken from the number of pairs; what should be 0 is, not the rounding."""
    return np.where(left < 1e-11 * n_pairs, 0.0, left)


def joint_floor(products: Array, gap_i: Array, gap_j: Array) -> Array:
    """A lower bound of joint[i, j] from Σh_i·h_j, with h = (cr + b)/2, and gap = Σ(b - h)².

    cr_i·b_j + b_i·cr_j = 2·h_i·h_j - 2·(b_i - h_i)(b_j - h_j), and by Cauchy and Schwarz the sum of the last products
    is at most √(gap_i·gap_j), which is small: b - h is at most (1 - κ)/2. So one product instead of two will do.
    """
    return np.maximum(products - np.sqrt(np.outer(gap_i, gap_j)), 0.0)


Watch = tuple[Pairs, Array]  # the pairs of a batch, and the features watched in it


@dataclass(frozen=True)
class Collide:
    """How to ask, of several watches at once, for the joint collisions of the watched features with other features."""

    measure: Callable[[Sequence[Watch], Array], list[Joint]]
    floor: Callable[[Sequence[Watch], Array], list[Array]]  # lower bounds of the same


class Redundancy:
    """I_α between features, measured when asked for.

    Only pairs of which one is watched are ever measured, and of those only the columns in `pool`: on wide data the
    selection needs few of them (see selection.py). `joint` and `pairs` have a line for each feature that was ever
    watched, and a column for each of the pool, which holds the watched ones first.
    """

    def __init__(self, tally: Tally, watches: Sequence[Watch], pool: Array, collide: Collide) -> None:
        n_features = len(tally.marginal)
        self.PC = tally.marginal / np.maximum(tally.pairs, 1)
        self.watches, self.collide = watches, collide
        self.watched = np.unique(np.concatenate([watched for _, watched in watches]))
        self.line = np.full(n_features, -1, np.int32)  # feature -> its line
        self.line[self.watched] = np.arange(len(self.watched))
        self.place = np.full(n_features, -1, np.int32)  # feature -> its column
        self.pool = np.zeros(0, np.int64)
        self.joint, self.pairs = np.zeros((len(self.watched), 0)), np.zeros((len(self.watched), 0))
        self.extend(np.union1d(self.watched, pool))
        self.low, self.high = self._extremes()

    def extend(self, features: Array) -> None:
        """Measure these features too."""
        new = np.sort(features[self.place[features] < 0])
        if not len(new):
            return
        self.place[new] = len(self.pool) + np.arange(len(new))
        self.pool = np.concatenate([self.pool, new])
        joint, pairs = np.zeros((len(self.watched), len(new))), np.zeros((len(self.watched), len(new)))
        for (_, watched), seen in zip(self.watches, self.collide.measure(self.watches, new), strict=True):
            lines = self.line[watched]
            joint[lines] += seen.joint
            pairs[lines] += seen.pairs
            self._mirror(watched, new, seen, joint, pairs)
        self.joint, self.pairs = np.hstack([self.joint, joint]), np.hstack([self.pairs, pairs])

    def _mirror(self, watched: Array, new: Array, seen: Joint, joint: Array, pairs: Array) -> None:
        """The joint is symmetric: a feature watched in other batches was measured with those watched in this one."""
        others = np.setdiff1d(self.watched, watched)
        at = np.searchsorted(new, others)
        here = at < len(new)
        here[here] = new[at[here]] == others[here]
        others, at = others[here], at[here]
        if len(others):
            cells = np.ix_(self.line[others], np.searchsorted(new, watched))
            joint[cells] += seen.joint[:, at].T
            pairs[cells] += seen.pairs[:, at].T

    def _measured(self, i: int) -> tuple[Array, Array]:
        """Joint collisions of feature i with the pool, and the pairs they were counted in."""
        if self.line[i] >= 0:
            return self.joint[self.line[i]], self.pairs[self.line[i]]
        joint, pairs = np.zeros(len(self.pool)), np.zeros(len(self.pool))
        columns = self.place[self.watched]
        joint[columns], pairs[columns] = self.joint[:, self.place[i]], self.pairs[:, self.place[i]]
        return joint, pairs

    def I_alpha(self, i: int, PC_ij: Array, j: Array) -> Array:
        """I_α(X_i; X_j) = PC(X_i)·log2(PC(X_i, X_j)/(PC(X_i)·PC(X_j))), and 0 where undefined."""
        product = self.PC[i] * self.PC[j]
        defined = (PC_ij > 0) & (product > 0)
        return self.PC[i] * np.log2(np.divide(PC_ij, product, out=np.ones_like(PC_ij), where=defined))

    def raw(self, i: int) -> tuple[Array, Array]:
        """I_α of feature i with the pool, and which were measured."""
        joint, pairs = self._measured(i)
        return self.I_alpha(i, joint / np.maximum(pairs, 1), self.pool), pairs > 0

    def _extremes(self) -> tuple[float, float]:
        """The least and the largest I_α between two features of the last watch list."""
        _, last = self.watches[-1]
        low, high = np.inf, -np.inf
        for i in last:
            I, measured = self.raw(i)
            others = self.place[last[last != i]]
            others = others[measured[others]]
            low, high = min(low, I[others].min(initial=np.inf)), max(high, I[others].max(initial=-np.inf))
        return low, high

    def _normalise(self, I: Array) -> Array:
        """Min-max, clipped to [0, 1]; 0 where the extremes are equal, or there was no pair to have any."""
        span = self.high - self.low
        if not span > 1e-9 * max(abs(self.low), abs(self.high)):
            return np.zeros_like(I)
        return np.clip((I - self.low) / span, 0.0, 1.0)

    def row(self, i: int) -> Array:
        """I_α(X_i; X_j) normalised, for j in the pool; 0 for itself and what was never measured."""
        I, measured = self.raw(i)
        out = np.where(measured, self._normalise(I), 0.0)
        out[self.place[i]] = 0.0
        return out

    def floor(self, features: Array, others: Array) -> Array:
        """Lower bounds of the normalised I_α of some features (lines) with features outside the pool (columns)."""
        joint, pairs = np.zeros((len(features), len(others))), np.zeros(len(features))
        mine = [np.isin(features, watched) for _, watched in self.watches]
        asked = [(batch, features[here]) for (batch, _), here in zip(self.watches, mine, strict=True)]
        for here, (batch, _), least in zip(mine, asked, self.collide.floor(asked, others), strict=True):
            joint[here] += least
            pairs[here] += len(batch)
        for line, i, n in zip(joint, features, pairs, strict=True):
            PC_ij = line / max(n, 1)
            line[:] = np.where(PC_ij > 0, self._normalise(self.I_alpha(i, PC_ij, others)), 0.0)
        return joint
