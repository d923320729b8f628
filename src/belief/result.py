"""What a run found, as plain arrays and numbers, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from belief.explain import Explanation, explained
from belief.method.arrays import Array
from belief.method.outcome import Outcome
from belief.method.portraits import Portrait
from belief.method.redundancy import MEASURES
from belief.method.redundancy.base import Rule
from belief.method.relevance import above_noise, z_of
from belief.method.settings import Settings, did_you_mean
from belief.method.targets import CLASSIFICATION
from belief.older import filled, modern
from belief.records import array, from_plain, kept, to_plain


class Numbered(Sequence[str]):
    """The names x0, x1, ... of features that came without: made when asked for, since there may be millions."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self._n))]
        if not -self._n <= i < self._n:
            raise IndexError(i)
        return f"x{int(i) % self._n}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Numbered({self._n})"


def _classes(classes: Array) -> list[Any]:
    return [c if isinstance(c, str | int | float) else str(c) for c in classes.tolist()]


def _names_in(names: Any, values: Mapping[str, Any]) -> Sequence[str]:
    return Numbered(len(values["weights"])) if names is None else names


def _names(names: Sequence[str]) -> Sequence[str] | None:
    return None if isinstance(names, Numbered) else names


def _settings_in(saved: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by today's names; one that has none stays as it is, since it tells what was done."""
    defaults = Settings().as_dict()
    now, strange = modern(saved, defaults)
    return {**filled(now, defaults), **{name: saved[name] for name in strange}}


def _portraits_in(saved: list[dict[str, Any]], values: Mapping[str, Any]) -> list[Portrait]:
    return [Portrait(**each) for each in saved]


def _portraits(portraits: list[Portrait]) -> list[dict[str, Any]]:
    return [dict(vars(each)) for each in portraits]


def _unknown(values: Mapping[str, Any]) -> Array:
    """Of every feature, where an older version did not find out."""
    return np.full(len(values["weights"]), np.nan)


def _neighbours(values: Mapping[str, Any]) -> int:
    """K, as older versions took it."""
    k, pooled = values["settings"]["n_neighbors"], values["settings"]["neighborhood"] == "pooled"
    return int(k) * (len(values["classes"]) if pooled else 1)


def _stopped(values: Mapping[str, Any]) -> str:
    """Older versions never let the sample grow."""
    return "all rows" if values["sample_size"] == values["n_rows"] else "as asked for"


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """The outcome of one run of BELIEF.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        w, the relevance of each feature as the method sums it.
    se : ndarray of shape (n_features,)
        The standard error of each weight.
    noise : ndarray of shape (n_features,)
        The weight that noise would have in each feature's place.
    p_value, q_value : ndarray of shape (n_features,)
        The chance that noise has such a weight; and, of the features with no larger p-value, the share that is noise
        (Benjamini and Hochberg).
    alone_p : ndarray of shape (n_features,)
        The p-value of each feature by itself: of a one-way F test, or a χ² test of levels by classes where it is
        discrete (on sparse data the F test too). NaN for constant features, and where there are too many classes.
    selected : ndarray of int
        The selected features, in order of selection.
    scores : ndarray
        J of each of them when it was selected: what redundancy leaves of its relevance.
    relevance : ndarray of shape (n_features,)
        w, above that of noise, as a share of the largest, and 0 below; without agreement, from 0 for the least relevant
        feature to 1 for the most.
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
    stopped : str
        Why the sample grew no more: "settled", a larger one would select the same; "level", it would find little more;
        "limit", it would take too long; "all rows", there are no more; "as asked for".
    portraits : list
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
    <belief.Result: 4 of 12 features selected: support_calls, contract, tenure_days, monthly_fee>
    >>> print(result.explain("tenure_months")[0]["why"])
    left: repeats 'tenure_days' at 0.98: keeps 2 % of its relevance
    >>> belief.Result.from_dict(result.to_dict()).selected_names == result.selected_names
    True
    """

    weights: Array = array(float)
    se: Array = array(float, since=2, older=_unknown)
    noise: Array = array(float, since=2, older=lambda values: np.zeros(len(values["weights"])))
    p_value: Array = array(float, since=2, older=_unknown)
    q_value: Array = array(float, since=2, older=_unknown)
    alone_p: Array = array(float, since=2, older=_unknown)
    selected: Array = array(np.int64)
    scores: Array = array(float)
    relevance: Array = array(float)
    marginal: Array = array(float)
    n_pairs: int = kept()
    redundancy: Array = array(float, ("selected", "selected"))
    watched: Array = array(np.int64)
    watched_redundancy: Array = array(float, ("selected", "watched"))
    history: Array = array(np.int64)
    constant: Array = array(np.int64)
    task: str = kept(since=2, older=lambda values: CLASSIFICATION)
    classes: Array = array(write=_classes)
    priors: Array = array(float)
    quantiles: Array = array(float, since=2, older=lambda values: np.zeros(0))
    n_rows: int = kept()
    sample_size: int = kept()
    n_neighbors: int = kept(since=2, older=_neighbours)
    partner: Array = array(np.int64, since=2, older=lambda values: np.full(len(values["selected"]), -1))
    partner_share: Array = array(float, since=2, older=lambda values: np.zeros(len(values["selected"])))
    stopped: str = kept(since=2, older=_stopped)
    seed: int = kept()
    settings: dict[str, Any] = kept(read=_settings_in)
    feature_names: Sequence[str] = kept(read=_names_in, write=_names)
    timings: dict[str, float] = kept(default_factory=dict)
    portraits: list[Portrait] = kept(read=_portraits_in, write=_portraits, default_factory=list)

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
            be next; `repeats`, the selected feature it repeats most, and their `agreement`; `alone_p`, its p-value
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
        if not -n <= feature < n:
            raise ValueError(f"There is no feature {feature}: there are {n}, from 0 on.")
        return int(feature) % n

    @property
    def z(self) -> Array:
        """The weights in standard errors."""
        return z_of(self.weights, self.se)

    @property
    def error_of_relevance(self) -> Array:
        """The standard error of the relevance."""
        live = np.setdiff1d(np.arange(len(self.weights)), self.constant)
        if self.settings["redundancy"] == "agreement":
            top = above_noise(self.weights, self.noise)[live].max(initial=0.0)
        else:
            top = np.ptp(self.weights[live]) if len(live) else 0.0
        return self.se / top if top > 0 else np.zeros_like(self.se)

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
        first = ", ".join(self.selected_names[:5]) + (", ..." if len(self.selected) > 5 else "")
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
        p_value=outcome.p,
        q_value=outcome.q,
        alone_p=outcome.alone_p,
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
        stopped=outcome.stopped,
        seed=outcome.seed,
        settings=settings,
        feature_names=names,
        timings=outcome.timings,
        portraits=outcome.portraits,
    )
