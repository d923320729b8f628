"""The redundancy measure mCR of the paper: I_α (equation 7), and the selection that subtracts it (equation 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from belief.method.arrays import Array
from belief.method.redundancy.agreement import UniqueShareRule
from belief.method.redundancy.base import Evidence, Measure, Presentation, Rule
from belief.method.redundancy.collisions import Collisions

I_ROUNDING = 1e-13  # bits: an I_α below this is the rounding of 0


@dataclass(frozen=True)
class SubtractionRule(Rule):
    """The selection rule of mCR: the score is the relevance minus the redundancy with the selected features.

    J(X_i) = w(X_i) - θ·Σ_{X_j in S} I_α(X_j; X_i), with w min-max normalised, S the selected features, and θ = 1/|S|
    for "mean".
    """

    theta: float | str
    least: ClassVar[float] = -np.inf
    presentation: ClassVar[Presentation] = Presentation(
        name="mCR",
        has_unique_share=False,
        has_absolute_scale=False,
        redundancy_title="Redundancy of the selected features",
        score_note="score: relevance minus mCR.",
        relevance_axis="mCR subtracted from the relevance",
        redundancy_axis="mCR with the feature of this rank",
        redundancy_caption=(
            "Each line shows the mCR of a feature with each of the others. The values are relative, from 0 for the"
            " least to 1 for the most redundant pair among the features with large weights: two independent features"
            " may have any value in between."
        ),
    )

    def accumulate(self, accumulated: Array, redundancy: Array) -> Array:
        return accumulated + redundancy

    def score(self, relevance: Array, accumulated: Array, n_selected: int) -> Array:
        weight = 1.0 / max(n_selected, 1) if self.theta in ("auto", "mean") else float(self.theta)
        return relevance - weight * accumulated

    def score_next(self, relevance: float, redundancy: Array) -> float:
        return float(self.score(np.array(relevance), redundancy.sum(), len(redundancy)))

    def growth_rule(self) -> UniqueShareRule:
        """Return the rule of the measure "agreement", because mCR has negative scores (see `Rule.growth_rule`)."""
        return UniqueShareRule(1.0)

    def describe_loss(self, feature: str, redundancy: float, relevance: float, score: float) -> str | None:
        lost = relevance - score
        return f"redundant with {feature!r} (mCR subtracts {lost:.2f} in all)" if lost > 0 else None


class MCR(Measure):
    """The redundancy mCR (I_α of the paper) between features, measured when it is needed.

    The features with the largest w after each batch are watched (section 5 of method.md): their redundancy with all
    features of the pool is measured. The pool starts with the features that the selection will most likely compare;
    others are added when the selection compares them. `joint` and `pairs` have a line for each feature that was ever
    watched, and a column for each feature of the pool.
    """

    doc: ClassVar[str] = "the paper's mCR"
    theta_doc: ClassVar[str] = "for mCR the mean over the selected features ('auto', 'mean') or a factor of the sum"
    needs_collision_rates: ClassVar[bool] = True

    @staticmethod
    def make_rule(theta: float | str) -> SubtractionRule:
        return SubtractionRule(theta)

    @staticmethod
    def collisions(kappa: float) -> Collisions:
        return Collisions(kappa, by="hit")

    @staticmethod
    def required_bytes(n_selected: int, n_watched: int, n_features: int) -> int:
        """Return the initial size of `joint` and `pairs` in bytes, if `n_watched` features are watched."""
        return 16 * n_watched * max(n_watched, min(n_features, 2 * n_selected))

    def __init__(self, evidence: Evidence, pool: Array) -> None:
        super().__init__(evidence, pool)
        tally, batches = evidence.tally, evidence.batches
        # PC, the mean collision rate of each feature over the pairs in which both values are present
        self.PC = tally.rates / np.maximum(tally.unweighted if tally.unweighted.size else tally.present, 1)
        # a batch uses the watch list made before it; a single batch uses its own
        self.watches = list(zip(batches[1:] or batches, evidence.watch_lists, strict=False))
        self.watched = np.unique(np.concatenate([watched for _, watched in self.watches]))
        self.line = np.full(evidence.n_features, -1, np.int32)  # feature -> its line
        self.line[self.watched] = np.arange(len(self.watched))
        self.joint, self.pairs = np.zeros((len(self.watched), 0)), np.zeros((len(self.watched), 0))
        self.extend(np.union1d(self.watched, pool))
        # the smallest and the largest I_α between two features that were watched in the last batch
        _, last = self.watches[-1]
        self.low, self.high = np.inf, -np.inf
        for i in last:
            I, measured = self.raw(i)
            others = self.column[last[last != i]]
            others = others[measured[others]]
            self.low = min(self.low, I[others].min(initial=np.inf))
            self.high = max(self.high, I[others].max(initial=-np.inf))

    def add_columns(self, new: Array) -> None:
        joint, pairs = np.zeros((len(self.watched), len(new))), np.zeros((len(self.watched), len(new)))
        for (_, watched), seen in zip(self.watches, self.evidence.joint(self.watches, new), strict=True):
            lines = self.line[watched]
            joint[lines] += seen.joint
            pairs[lines] += seen.pairs
            # joint sums are symmetric, so the sum of (i, j) also counts for (j, i) if j was watched in other batches
            others, at, _ = np.intersect1d(new, np.setdiff1d(self.watched, watched), return_indices=True)
            if len(others):
                cells = np.ix_(self.line[others], np.searchsorted(new, watched))
                joint[cells] += seen.joint[:, at].T
                pairs[cells] += seen.pairs[:, at].T
        self.joint, self.pairs = np.hstack([self.joint, joint]), np.hstack([self.pairs, pairs])

    def joint_with_pool(self, i: int) -> tuple[Array, Array]:
        """Return the joint collisions of feature i with each feature of the pool, and the number of pairs counted."""
        if self.line[i] >= 0:
            return self.joint[self.line[i]], self.pairs[self.line[i]]
        joint, pairs = np.zeros(len(self.pool)), np.zeros(len(self.pool))
        columns = self.column[self.watched]
        joint[columns], pairs[columns] = self.joint[:, self.column[i]], self.pairs[:, self.column[i]]
        return joint, pairs

    def I_alpha(self, i: int, PC_ij: Array, j: Array) -> Array:
        """Return the redundancy I_α of feature i with the features j (equation 7 of the paper).

        I_α(X_i; X_j) = PC(X_i)·log2(PC(X_i, X_j)/(PC(X_i)·PC(X_j))), where PC is a mean collision rate over pairs of
        rows. It is 0 where it is undefined.
        """
        product = self.PC[i] * self.PC[j]
        defined = (PC_ij > 0) & (product > 0)
        return self.PC[i] * np.log2(np.divide(PC_ij, product, out=np.ones_like(PC_ij), where=defined))

    def raw(self, i: int) -> tuple[Array, Array]:
        """Return I_α of feature i with each feature of the pool, and a mask of the measured features."""
        joint, pairs = self.joint_with_pool(i)
        return self.I_alpha(i, joint / np.maximum(pairs, 1), self.pool), pairs > 0

    def _normalise(self, I: Array) -> Array:
        """Scale I_α to [0, 1] by its extremes, clipping values beyond them.

        Return 0 if the extremes are equal or unknown.
        """
        span = self.high - self.low
        if not span > max(1e-9 * max(abs(self.low), abs(self.high)), I_ROUNDING):
            return np.zeros_like(I)
        return np.clip((I - self.low) / span, 0.0, 1.0)

    def row(self, feature: int, likely: Array) -> Array:
        """Return the normalised I_α of a feature with each feature of the pool.

        It is 0 for the feature itself, and for features with which it was never measured.
        """
        I, measured = self.raw(feature)
        out = np.where(measured, self._normalise(I), 0.0)
        out[self.column[feature]] = 0.0
        return out

    def matrix(self, features: Array) -> Array:
        """Return the larger of I_α(X_i; X_j) and I_α(X_j; X_i), normalised, for each pair of these features."""
        self.extend(features)
        I = np.stack([self.row(j, features[:0])[self.column[features]] for j in features.tolist()])
        return np.maximum(I, I.T)

    def lower_bounds(self, features: Array, others: Array) -> Array:
        joint, pairs = np.zeros((len(features), len(others))), np.zeros(len(features))
        is_watched = [np.isin(features, watched) for _, watched in self.watches]
        watches = [(batch, features[mask]) for (batch, _), mask in zip(self.watches, is_watched, strict=True)]
        floors = self.evidence.joint_floor(watches, others)
        for mask, (batch, _), floor in zip(is_watched, watches, floors, strict=True):
            joint[mask] += floor
            pairs[mask] += len(batch)
        for line, i, n in zip(joint, features, pairs, strict=True):
            PC_ij = line / max(n, 1)
            line[:] = np.where(PC_ij > 0, self._normalise(self.I_alpha(i, PC_ij, others)), 0.0)
        return joint
