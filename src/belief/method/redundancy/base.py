"""The interface of a redundancy measure.

A `Measure` computes how redundant features are with each other, from sums over pairs of rows. Its `Rule` turns weights
into relevance, reduces the score of a feature by its redundancy, decides when a selection ends, and contains the texts
of results, plots and reports that describe the measure. A new measure needs a file like `mcr.py` and a line in
`__init__.py`; nothing else in the package knows the measures by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Joint, Pairs, Tally
from belief.method.redundancy.collisions import Collisions, Watch


@dataclass(frozen=True)
class Evidence:
    """The data from which redundancy is measured: sums, pairs, and functions that compute more sums."""

    n_features: int
    tally: Tally
    batches: Sequence[Pairs]
    all_pairs: Pairs  # the pairs of all batches
    watch_lists: Sequence[Array]  # the features with the largest w after each batch
    joint: Callable[[Sequence[Watch], Array], list[Joint]]
    joint_floor: Callable[[Sequence[Watch], Array], list[Array]]  # lower bounds of the joint sums


@dataclass(frozen=True, kw_only=True)
class Presentation:
    """How results, plots and reports name and explain a redundancy measure.

    The texts are plain text, without HTML. Empty texts are not displayed.
    """

    name: str  # "agreement", "mCR": for labels and sentences
    has_unique_share: bool  # whether the score is relevance times unique share, so that this share can be shown
    has_absolute_scale: bool  # whether values mean the same in every table, so that a threshold can group features
    redundancy_title: str = ""  # title of the report's section on the selected features' redundancy
    score_note: str = ""  # how the score is computed, below the table of features
    relevance_axis: str = ""  # x axis of relevance against redundancy
    redundancy_axis: str = ""  # x axis of the heat map of the selected features
    redundancy_caption: str = ""  # caption of that heat map


@dataclass(frozen=True)
class Rule:
    """A selection rule: how relevance and redundancy give the score of a feature.

    This base class is the rule without redundancy (`redundancy=None`): the score J is the relevance. The scores of
    other rules must not rise when redundancy grows.
    """

    initial: ClassVar[float] = 0.0  # the accumulated redundancy of a feature before anything is selected
    least: ClassVar[float] = 0.0  # the smallest possible score; -inf if scores have no lower limit
    ties_by_weight: ClassVar[bool] = False  # whether ties go to the larger w; otherwise, they go to the smaller index
    # features with a redundancy above this can replace each other, and "auto" selects only one of them; or None
    max_redundancy: ClassVar[float | None] = None
    presentation: ClassVar[Presentation] = Presentation(name="", has_unique_share=False, has_absolute_scale=False)

    def relevance_scale(self, w: Array) -> tuple[float, float]:
        """Return the weight with a relevance of 0, and its difference from the weight with a relevance of 1.

        `w` are the weights of the non-constant features.
        """
        return (float(w.min()), float(np.ptp(w))) if len(w) else (np.inf, 0.0)

    def normalise(self, w: Array, constant: Array) -> Array:
        """Return the relevance of every feature, in [0, 1]; constant features have 0.

        In this base class, the weights of the other features are scaled to this range. If these weights are equal, all
        features have 0.
        """
        out = np.zeros_like(w)
        live = w[~constant]
        low, width = self.relevance_scale(live)
        if len(live) and width > 1e-9 * np.abs(live).max():
            out[~constant] = (live - low) / width
        return out

    def accumulate(self, accumulated: Array, redundancy: Array) -> Array:
        """Return the accumulated redundancy of features, updated after another feature has been selected.

        `redundancy` is the redundancy of each feature with the newly selected one.
        """
        return accumulated

    def score(self, relevance: Array, accumulated: Array, n_selected: int) -> Array:
        """Return the scores J of features, given their relevance and accumulated redundancy.

        `n_selected` features are selected already.
        """
        return relevance

    def score_next(self, relevance: float, redundancy: Array) -> float:
        """Return the score J of one feature, given its redundancy with each selected feature."""
        return float(relevance)

    def growth_rule(self) -> Rule:
        """Return the rule for the simulated selections that decide whether the sample grows.

        Its scores must not be negative, because they are summed up.
        """
        return self

    def describe_loss(self, feature: str, redundancy: float, relevance: float, score: float) -> str | None:
        """Return a text that says why redundancy lowers the score of a feature, such as "redundant with 'x' (0.98)".

        Return None if the score is hardly lower. `redundancy` is the redundancy with `feature`, the name of the
        selected feature with which the described feature is most redundant. `relevance` and `score` are the relevance
        and the score J of the described feature.
        """
        return None


class Measure:
    """A redundancy measure, which holds the redundancy of the features in a pool.

    The selection adds features to the pool when it needs their redundancy. This base class manages the pool.
    """

    doc: ClassVar[str]  # for the documentation of settings: a phrase that names the measure
    theta_doc: ClassVar[str]  # for the documentation of settings: a phrase that says what theta means for the measure
    needs_collision_rates: ClassVar[bool] = False  # whether it needs Σ cr of every feature over all pairs

    def __init__(self, evidence: Evidence, pool: Array) -> None:
        """Start with an empty pool. Subclasses then add the features of `pool` and measure their redundancy."""
        self.evidence = evidence
        self.pool = np.zeros(0, np.int64)
        self.column = np.full(evidence.n_features, -1, np.int32)  # feature -> its column in the pool, -1 outside

    @staticmethod
    def make_rule(theta: float | str) -> Rule:
        """Return the selection rule for θ, the weight of redundancy.

        Raise a ValueError if the measure does not allow this θ.
        """
        raise NotImplementedError

    @staticmethod
    def collisions(kappa: float) -> Collisions:
        """Return the settings of collision rates and joint sums for this measure; rates below κ count as 0."""
        raise NotImplementedError

    @staticmethod
    def required_bytes(n_selected: int, n_watched: int, n_features: int) -> int:
        """Return the least memory that the measure needs, in bytes; 0 if it can work in portions."""
        return 0

    def extend(self, features: Array) -> None:
        """Add features to the pool."""
        new = np.sort(features[self.column[features] < 0])
        if len(new):
            self.column[new] = len(self.pool) + np.arange(len(new))
            self.pool = np.concatenate([self.pool, new])
            self.add_columns(new)

    def add_columns(self, new: Array) -> None:
        """Measure the redundancy of features that have just been added to the pool."""
        raise NotImplementedError

    def row(self, feature: int, likely: Array) -> Array:
        """Return the redundancy of a feature with each feature of the pool.

        `likely` are the features whose redundancy may be requested next; it is measured in the same pass.
        """
        raise NotImplementedError

    def matrix(self, features: Array) -> Array:
        """Return the redundancy of these features with each other, (features, features)."""
        raise NotImplementedError

    def lower_bounds(self, features: Array, others: Array) -> Array | None:
        """Return lower bounds of the redundancy of `features` (lines) with `others` (columns).

        Return None if the measure has no bound that is cheap to compute.
        """
        return None
