"""The outcome of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belief.method.arrays import Array
from belief.method.distributions import FeatureDistribution
from belief.method.folds import Stability


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The fields of `belief.Result`, which documents them, without the names of the features."""

    weights: Array
    se: Array
    null_weight: Array
    p_value: Array
    q_value: Array
    p_neighbours: Array
    p_univariate: Array
    round: Array
    metric: Array
    selected: Array
    scores: Array
    relevance: Array
    marginal: Array
    n_pairs: int
    redundancy: Array
    watched: Array
    watched_redundancy: Array
    history: Array
    constant: Array
    given: Array
    selected_for: Array
    class_weights: Array
    class_errors: Array
    task: str
    classes: Array
    priors: Array
    quantiles: Array
    n_rows: int
    sample_size: int
    n_neighbors: int
    partner: Array
    partner_share: Array
    stability: Stability | None
    stop_reason: str
    seed: int
    distributions: list[FeatureDistribution]
    settings: dict[str, Any]
    timings: dict[str, float]
