"""What a run found, as plain arrays and numbers, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from belief._utils.terminal import shown
from belief._utils.validation import did_you_mean, is_integer
from belief.method.arrays import Array
from belief.method.confidence import Null, luck
from belief.method.distributions import FeatureDistribution
from belief.method.outcome import Outcome
from belief.method.redundancy import MEASURES
from belief.method.redundancy.base import Rule
from belief.method.relevance import z_of
from belief.method.targets import CLASSIFICATION
from belief.result import fields as saved
from belief.result.explanation import Explanation, explained
from belief.result.serialization import array, from_plain, kept, seconds, to_plain, whole, word

STOPPED = ("converged", "equivalent", "limit", "all rows", "fixed")  # why a sample grew no more
EACH, TAKEN = ("weights",), ("selected",)  # as long as these


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """The outcome of one run of BELIEF.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        w, the relevance of each feature as the method sums it.
    se : ndarray of shape (n_features,)
        The standard error of each weight.
    noise, noise_spread : ndarray of shape (n_features,)
        The weight that noise would have in each feature's place, in the mean, and its standard deviation.
    p_value, q_value : ndarray of shape (n_features,)
        The chance that noise has such a weight; and, of the features with no larger p-value, the share that is noise
        (Benjamini and Hochberg).
    p_univariate : ndarray of shape (n_features,)
        The p-value of each feature by itself: of a one-way F test, or a χ² test of levels by classes where it is
        discrete. NaN for constant features, and where there are too many classes.
    selected : ndarray of int
        The selected features, in order of selection.
    scores : ndarray
        J of each of them when it was selected: what redundancy leaves of its relevance.
    relevance : ndarray of shape (n_features,)
        w, above what noise may well have, as a share of the largest, 0 below; without agreement, from 0 for the least
        relevant feature to 1 for the most.
    marginal : ndarray of shape (n_features,) or (0,)
        Σ cr: how much the feature collides over all pairs of neighbours, where mCR asked for it.
    n_pairs : int
        The pairs of neighbours looked at.
    redundancy : ndarray of shape (n_selected, n_selected)
        [a, b] is what the b-th selected feature repeats of the a-th: their agreement, or I_α normalised; zeros where
        nothing was measured.
    watched : ndarray of int
        The features with the largest weights, η times as many as were selected.
    watched_redundancy : ndarray of shape (n_selected, n_watched)
        The same between the selected and the watched features.
    history : ndarray of int of shape (n_batches, n_watched)
        The features of the largest weights after each batch, best first: how the ranking settled. -1: no more.
    constant : ndarray of int
        The constant features, which come last.
    task : str
        "classification" or "regression": what the target was taken for.
    classes, priors : ndarray
        The classes in order, and their shares of the rows; empty where the target is a number.
    quantiles : ndarray
        Of a numeric target, the values that 0, 5, 10, ..., 100 % of the rows do not exceed; else empty.
    n_rows, sample_size, n_neighbors, seed : int
        The rows of the data, how many of them were sampled, the neighbours looked for of each class (or in all), and
        the seed: the same seed gives the same result.
    partner, partner_share : ndarray of shape (n_selected,)
        The selected feature without which (and without what repeats it) each selected one would lose at least half of
        its weight, -1 for none; and the share it would lose.
    stop_reason : str
        Why the sample stopped growing: "converged", a larger sample would select the same features; "equivalent", it
        would find features of about the same value; "limit", it would take too long; "all rows", every row is in the
        sample; "fixed", `sample_size` was given.
    distributions : list
        How the selected features, the first 100 of them, are distributed in the sampled rows of each class, or of each
        fifth of a numeric target: for `belief.plot.distribution` and the report. Empty in results of older versions.
    settings : dict
        The settings of the run.
    feature_names : sequence of str
        x0, x1, ... where the table had none.
    timings : dict
        Seconds by phase.

    Examples
    --------
    >>> import belief, pandas as pd
    >>> table = pd.read_csv(belief.datasets.CHURN)
    >>> result = belief.select(table, label="left", n_features_to_select=4, random_state=0)
    >>> result
    <belief.Result: 4 of 12 features selected: support_calls, contract, monthly_fee, tenure_days>
    >>> print(result.explain("tenure_months")[0]["reason"])
    left: repeats 'tenure_days' at 0.98: keeps 2 % of its relevance
    >>> belief.Result.from_dict(result.to_dict()).selected_names == result.selected_names
    True
    """

    weights: Array = array(float)
    se: Array = array(float, EACH, gaps=True, since=2, older=saved.unknown)
    noise: Array = array(float, EACH, since=2, older=lambda values: np.zeros(len(values["weights"])))
    noise_spread: Array = array(float, EACH, since=2, older=lambda values: np.zeros(len(values["weights"])))
    p_value: Array = array(float, EACH, gaps=True, since=2, older=saved.unknown)
    q_value: Array = array(float, EACH, gaps=True, since=2, older=saved.unknown)
    p_univariate: Array = array(float, EACH, gaps=True, since=2, older=saved.unknown)
    selected: Array = array(np.int64, of="weights")
    scores: Array = array(float, TAKEN)
    relevance: Array = array(float, EACH)
    marginal: Array = array(float, EACH, optional=True)
    n_pairs: int = whole(0)
    redundancy: Array = array(float, ("selected", "selected"))
    watched: Array = array(np.int64, of="weights")
    watched_redundancy: Array = array(float, ("selected", "watched"))
    history: Array = array(np.int64, (None, None), of="weights", least=-1)
    constant: Array = array(np.int64, of="weights")
    task: str = kept(read=saved.task_in, since=2, older=lambda values: CLASSIFICATION)
    classes: Array = array(write=saved.plain_classes)
    priors: Array = array(float, ("classes",))
    quantiles: Array = array(float, since=2, older=lambda values: np.zeros(0))
    n_rows: int = whole(1)
    sample_size: int = whole(1)
    n_neighbors: int = whole(0, since=2, older=saved.neighbours)
    partner: Array = array(
        np.int64, TAKEN, of="weights", least=-1, since=2, older=lambda values: np.full(len(values["selected"]), -1)
    )
    partner_share: Array = array(float, TAKEN, since=2, older=lambda values: np.zeros(len(values["selected"])))
    stop_reason: str = word(STOPPED, since=2, older=saved.stopped)
    seed: int = whole()
    distributions: list[FeatureDistribution] = kept(
        read=saved.portraits_in, write=saved.plain_portraits, since=2, older=lambda values: []
    )
    settings: dict[str, Any] = kept(read=saved.settings_in)
    feature_names: Sequence[str] = kept(read=saved.names_in, write=saved.plain_names)
    timings: dict[str, float] = kept(read=seconds, default_factory=dict)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def selected_names(self) -> list[str]:
        """The names of the selected features, in order of selection."""
        return [self.feature_names[j] for j in self.selected]

    @property
    def ranking(self) -> Array:
        """The rank of every feature from 1: the selected in their order, then the others by falling weight."""
        rest = np.setdiff1d(np.arange(len(self.weights)), self.selected)
        rest = rest[np.lexsort((rest, -self.weights[rest], np.isin(rest, self.constant)))]
        rank = np.empty(len(self.weights), np.int64)
        rank[np.concatenate([self.selected, rest])] = np.arange(1, len(rank) + 1)
        return rank

    def explain(self, feature: str | int | None = None) -> Explanation:
        """Say why features were taken or left.

        Parameters
        ----------
        feature : str or int, default=None
            The name or the index of one feature; None: all that were selected, and those that came near.

        Returns
        -------
        Explanation
            A list of dictionaries, one a feature, that prints as a table. `feature`, `index`, `rank` (None: left);
            `relevance` and its standard `error`; `p_value` and `q_value`, how likely noise is to do as well; `keeps`,
            the share of its relevance that nothing selected before repeats; `score`, what it was selected by, or would
            be next; `repeats`, the selected feature it repeats most, and their `agreement`; `p_univariate`, its p-value
            by itself; `partner`, the selected feature without which it would lose most of its weight; and `why`. What
            was not measured is None. Give it to pandas.DataFrame or polars.DataFrame for one of those.
        """
        return explained(self, None if feature is None else np.array([self._index(feature)]))

    def _index(self, feature: str | int) -> int:
        """Where a feature is, by its name or its index."""
        n = len(self.weights)
        if isinstance(feature, str):
            if feature not in self.feature_names:
                raise ValueError(f"There is no feature {feature!r}{did_you_mean(feature, list(self.feature_names))}.")
            return list(self.feature_names).index(feature)
        if not is_integer(feature):
            raise ValueError(f"feature must be the name or the index of one feature; got {feature!r:.60}.")
        if not -n <= feature < n:
            raise ValueError(f"There is no feature {feature}: there are {n}, from 0 on.")
        return int(feature) % n

    @property
    def z(self) -> Array:
        """The weights in standard errors."""
        return z_of(self.weights, self.se)

    @property
    def _null(self) -> Null:
        """The weights of noise."""
        return Null(self.noise, self.noise_spread, luck(self.p_univariate))

    @property
    def unit_of_relevance(self) -> float:
        """What a relevance of 1 is in weights; 0 where no feature is relevant."""
        live = np.setdiff1d(np.arange(len(self.weights)), self.constant)
        if self.settings["redundancy"] == "agreement":
            return float(self._null.left_of(self.weights)[live].max(initial=0.0))
        return float(np.ptp(self.weights[live])) if len(live) else 0.0

    def relevance_of(self, weights: Array) -> Array:
        """The relevance that other weights in the features' places would have; NaN where no feature is relevant."""
        unit = self.unit_of_relevance or np.nan
        if self.settings["redundancy"] == "agreement":
            return np.asarray(self._null.left_of(weights) / unit)
        return np.asarray((weights - np.delete(self.weights, self.constant).min(initial=np.inf)) / unit)

    @property
    def error_of_relevance(self) -> Array:
        """The standard error of the relevance."""
        unit = self.unit_of_relevance
        return self.se / unit if unit > 0 else np.zeros_like(self.se)

    @property
    def rule(self) -> Rule:
        """What redundancy leaves of a score."""
        return MEASURES[self.settings["redundancy"]].rule(self.settings["theta"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return to_plain(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Make a result of what `to_dict` gave, here or in an older version.

        What an older version did not know is filled in, and its settings get the names they have now. What cannot be
        read, a result of a newer version for one, raises a ValueError.
        """
        return from_plain(cls, given)

    def __repr__(self) -> str:
        first = ", ".join(map(shown, self.selected_names[:5])) + (", ..." if len(self.selected) > 5 else "")
        return f"<belief.Result: {len(self.selected)} of {len(self.weights)} features selected: {first}>"

    def _repr_html_(self) -> str | None:
        from belief.report.compact import compact

        return compact(self)


def result_of(outcome: Outcome, settings: dict[str, Any], names: Sequence[str]) -> Result:
    """Turn what the method found into a Result."""
    selected, watched = outcome.selection.selected, outcome.watched
    partner, share = np.full(len(selected), -1), np.zeros(len(selected))
    at = np.searchsorted(selected, outcome.partners.features, sorter=np.argsort(selected))
    at = np.argsort(selected)[at]
    partner[at], share[at] = outcome.partners.partner, outcome.partners.share
    return Result(
        weights=outcome.w,
        se=outcome.se,
        noise=outcome.null.mean,
        noise_spread=outcome.null.spread,
        p_value=outcome.p,
        q_value=outcome.q,
        p_univariate=outcome.p_univariate,
        selected=selected,
        scores=outcome.selection.scores,
        relevance=outcome.relevance,
        marginal=outcome.tally.rates,
        n_pairs=outcome.tally.n_pairs,
        redundancy=outcome.repeated(selected),
        watched=watched,
        watched_redundancy=outcome.repeated(watched),
        history=np.array(list(zip_longest(*outcome.history, fillvalue=-1)), np.int64).T,
        constant=np.flatnonzero(outcome.difference.constant),
        task=outcome.target.task,
        classes=outcome.target.names,
        priors=outcome.target.P,
        quantiles=outcome.target.quantiles,
        n_rows=outcome.n_rows,
        sample_size=outcome.sample_size,
        n_neighbors=outcome.n_neighbors,
        partner=partner,
        partner_share=share,
        stop_reason=outcome.stop_reason,
        seed=outcome.seed,
        settings=settings,
        feature_names=names,
        timings=outcome.timings,
        distributions=outcome.portraits,
    )
