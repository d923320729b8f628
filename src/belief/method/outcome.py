"""All that one run found, as the method names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from belief.method.arrays import Array
from belief.method.confidence import Null
from belief.method.difference import Difference
from belief.method.distributions import FeatureDistribution
from belief.method.partials import Tally
from belief.method.partners import Partners
from belief.method.redundancy.base import Measure
from belief.method.selection import Selection
from belief.method.targets import Target


@dataclass(frozen=True)
class Outcome:
    """What was found, and from what."""

    difference: Difference
    target: Target
    n_rows: int
    sample_size: int
    n_neighbors: int
    seed: int
    tally: Tally
    w: Array
    se: Array
    null: Null  # the weights that noise would have
    p: Array
    q: Array
    p_univariate: Array  # of each feature by itself
    relevance: Array  # the weights as scores
    selection: Selection
    watched: Array  # the features that came near
    history: Sequence[Array]  # the features of the largest w after each batch
    redundancy: Measure | None
    timings: dict[str, float] = field(default_factory=dict)
    partners: Partners = field(default_factory=Partners.none)
    portraits: list[FeatureDistribution] = field(default_factory=list)  # of the selected features
    stop_reason: str = "fixed"  # why the sample grew no more

    def repeated(self, features: Array) -> Array:
        """What some features repeat of each of the selected ones (lines); 0 where nothing was measured."""
        selected, constant = self.selection.selected, self.difference.constant
        out = np.zeros((len(selected), len(features)))
        if self.redundancy is not None:
            live = np.flatnonzero(~constant[features])
            self.redundancy.extend(features[live])
            for line, j in zip(out, selected.tolist(), strict=True):
                if not constant[j]:
                    line[live] = self.redundancy.row(j, features[:0])[self.redundancy.place[features[live]]]
        return out
