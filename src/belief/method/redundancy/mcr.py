"""mCR, I_α (equation 7 of the paper), and the selection that subtracts it (equation 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Joint
from belief.method.redundancy.base import Evidence
from belief.method.redundancy.collisions import Collisions
from belief.method.relevance import normalise

NOTHING = 1e-13  # bits: what rounding makes of an I_α of 0


@dataclass(frozen=True)
class Payment:
    """J(X_i) = w(X_i) - θ·Σ_{X_j in S} I_α(X_j; X_i), with w normalised and θ = 1/|S| for "mean"."""

    theta: float | str
    start: ClassVar[float] = 0.0
    above_null: ClassVar[bool] = False
    ties_by_weight: ClassVar[bool] = False

    def normalise(self, w: Array, constant: Array) -> Array:
        return normalise(w, constant)

    def gather(self, gathered: Array, row: Array) -> Array:
        return gathered + row

    def score(self, w: Array, gathered: Array, n_selected: int) -> Array:
        weight = 1.0 / max(n_selected, 1) if self.theta in ("auto", "mean") else float(self.theta)
        return w - weight * gathered

    def score_next(self, w: float, repeated: Array) -> float:
        return float(self.score(np.array(w), repeated.sum(), len(repeated)))


class MCR:
    """I_α between features, measured when asked for.

    Only pairs of which one is watched are ever measured, and of those only the columns in `pool`: on wide data the
    selection needs few of them (see selection.py). `joint` and `pairs` have a line for each feature that was ever
    watched, and a column for each of the pool, which holds the watched ones first.
    """

    needs_collision_rates: ClassVar[bool] = True

    @staticmethod
    def rule(theta: float | str) -> Payment:
        return Payment(theta)

    @staticmethod
    def collisions(kappa: float) -> Collisions:
        return Collisions(kappa, by="hit")

    def __init__(self, evidence: Evidence, pool: Array) -> None:
        tally, batches = evidence.tally, evidence.batches
        n_features = evidence.n_features
        self.PC = tally.rates / np.maximum(tally.present, 1)
        # a batch is watched with the list made before it; a single batch with its own
        self.watches = list(zip(batches[1:] or batches, evidence.watch_lists, strict=False))
        self._evidence = evidence
        self.watched = np.unique(np.concatenate([watched for _, watched in self.watches]))
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
        for (_, watched), seen in zip(self.watches, self._evidence.joint(self.watches, new), strict=True):
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

    def measured(self, i: int) -> tuple[Array, Array]:
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
        joint, pairs = self.measured(i)
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
        if not span > max(1e-9 * max(abs(self.low), abs(self.high)), NOTHING):
            return np.zeros_like(I)
        return np.clip((I - self.low) / span, 0.0, 1.0)

    def row(self, feature: int, likely: Array) -> Array:
        """I_α(X_i; X_j) normalised, of the feature i with j in the pool; 0 for itself and what was never measured."""
        I, measured = self.raw(feature)
        out = np.where(measured, self._normalise(I), 0.0)
        out[self.place[feature]] = 0.0
        return out

    def between(self, features: Array) -> Array:
        """I_α normalised, of those that were measured; the larger of both ways."""
        self.extend(features)
        I = np.stack([self.row(j, features[:0])[self.place[features]] for j in features.tolist()])
        return np.maximum(I, I.T)

    def floor(self, features: Array, others: Array) -> Array:
        """Lower bounds of the normalised I_α of some features (lines) with features outside the pool (columns)."""
        joint, pairs = np.zeros((len(features), len(others))), np.zeros(len(features))
        mine = [np.isin(features, watched) for _, watched in self.watches]
        asked = [(batch, features[here]) for (batch, _), here in zip(self.watches, mine, strict=True)]
        for here, (batch, _), least in zip(mine, asked, self._evidence.joint_floor(asked, others), strict=True):
            joint[here] += least
            pairs[here] += len(batch)
        for line, i, n in zip(joint, features, pairs, strict=True):
            PC_ij = line / max(n, 1)
            line[:] = np.where(PC_ij > 0, self._normalise(self.I_alpha(i, PC_ij, others)), 0.0)
        return joint
