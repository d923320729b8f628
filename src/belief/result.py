"""What a run found, as plain arrays and numbers, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from belief.method.algorithm import Outcome
from belief.method.arrays import Array
from belief.method.settings import Settings
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """The outcome of one run of BELIEF.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        w, the relevance of each feature as the method sums it.
    selected : ndarray of int
        The selected features, in order of selection.
    scores : ndarray
        J of each of them when it was selected: relevance less the redundancy it paid.
    relevance : ndarray of shape (n_features,)
        w normalised to [0, 1] over the features that are not constant.
    marginal : ndarray of shape (n_features,)
        Σ cr: how much the feature collides over all pairs of neighbours.
    n_pairs : int
        The pairs of neighbours looked at.
    redundancy : ndarray of shape (n_selected, n_selected)
        I_α normalised: [a, b] is what the b-th selected feature repeats of the a-th; zeros without mCR.
    watched : ndarray of int
        The features on the last watch list, whose redundancy was measured.
    watched_redundancy : ndarray of shape (n_selected, n_watched)
        The same between the selected and the watched features.
    history : ndarray of int of shape (n_batches, n_watched)
        The features of the largest weights after each batch, best first: how the ranking settled. -1: no more.
    constant : ndarray of int
        The constant features, which come last.
    classes, priors : ndarray
        The classes in order, and their shares of the rows.
    n_rows, sample_size, seed : int
        The rows of the data, how many of them were sampled, and the seed: the same seed gives the same result.
    settings : dict
        The settings of the run.
    feature_names : sequence of str
        x0, x1, ... where the table had none.
    timings : dict
        Seconds by phase.
    """

    weights: Array = array(float)
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
    classes: Array = array(write=_classes)
    priors: Array = array(float)
    n_rows: int = kept()
    sample_size: int = kept()
    seed: int = kept()
    settings: dict[str, Any] = kept(read=_settings_in)
    feature_names: Sequence[str] = kept(read=_names_in, write=_names)
    timings: dict[str, float] = kept(default_factory=dict)

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

    def explain(self) -> Explanation:
        """Say of every selected and every watched feature why it was taken or left.

        Returns
        -------
        Explanation
            A list of dictionaries, one a feature, that prints as a table: `feature`, `index`, `rank` (None: left),
            `relevance`, `paid` (the redundancy it paid when it was selected, or would pay now), `score` (their
            difference), `repeats` (the selected feature it repeats most), `at` (how much), and `why`. Give it to
            pandas.DataFrame or polars.DataFrame for one of those.
        """
        left = self.watched[~np.isin(self.watched, self.selected)]
        return Explanation([self._taken(t) for t in range(len(self.selected))] + [self._left(j) for j in left])

    def _line(self, j: int, rank: int | None, paid: float, repeated: Array, why: str) -> dict[str, Any]:
        most = int(np.argmax(repeated)) if len(repeated) and repeated.max() > 0 else None
        repeats = None if most is None else self.feature_names[self.selected[most]]
        at = 0.0 if most is None else float(repeated[most])
        return {
            "feature": self.feature_names[j],
            "index": int(j),
            "rank": rank,
            "relevance": float(self.relevance[j]),
            "paid": float(paid),
            "score": float(self.relevance[j] - paid),
            "repeats": repeats,
            "at": at,
            "why": why.format(repeats=f"repeats {repeats!r} at {at:.2f}"),
        }

    def _taken(self, t: int) -> dict[str, Any]:
        j = self.selected[t]
        paid = self.relevance[j] - self.scores[t]
        if j in self.constant:
            why = "taken: constant, and nothing else was left"
        elif t == 0:
            why = "taken: the most relevant"
        elif paid > 0:
            why = "taken: the best left, though it {repeats}"
        else:
            why = "taken: the best left"
        return self._line(j, t + 1, paid, self.redundancy[:t, t], why)

    def _left(self, j: int) -> dict[str, Any]:
        repeated = self.watched_redundancy[:, int(np.flatnonzero(self.watched == j)[0])]
        theta = self.settings["theta"]
        paid = float(repeated.mean() if theta == "mean" else theta * repeated.sum())
        # more relevant than one that was taken: only what it repeats can have kept it out
        kept_out = paid > 0 and self.relevance[j] > self.relevance[self.selected].min()
        if kept_out:
            why = "left: {repeats}"
        elif paid > 0:
            why = "left: not relevant enough, and {repeats}"
        else:
            why = "left: not relevant enough"
        return self._line(j, None, paid, repeated, why)

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


class Explanation(list[dict[str, Any]]):
    """A table of a few lines, as a list of dictionaries that prints well."""

    def __str__(self) -> str:
        head = ["rank", "feature", "relevance", "paid", "score", "why"]
        lines = [head] + [[_cell(line[name]) for name in head] for line in self]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        return "\n".join("  ".join(x.ljust(w) for x, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def result_of(outcome: Outcome, settings: dict[str, Any], names: Sequence[str]) -> Result:
    """Turn what the method found into a Result."""
    selected, watched, mcr = outcome.selection.selected, outcome.watched, outcome.redundancy
    known = selected[~outcome.difference.constant[selected]] if mcr is not None else selected[:0]
    among, beside = np.zeros((len(selected), len(selected))), np.zeros((len(selected), len(watched)))
    for a, j in enumerate(known):
        row = mcr.row(j, selected[:0])  # type: ignore[union-attr]
        among[a, : len(known)] = row[mcr.place[known]]  # type: ignore[union-attr]
        beside[a] = row[mcr.place[watched]]  # type: ignore[union-attr]
    return Result(
        weights=outcome.w,
        selected=selected,
        scores=outcome.selection.scores,
        relevance=outcome.relevance,
        marginal=outcome.tally.rates,
        n_pairs=outcome.tally.n_pairs,
        redundancy=among,
        watched=watched,
        watched_redundancy=beside,
        history=np.array(list(zip_longest(*outcome.history, fillvalue=-1)), np.int64).T,
        constant=np.flatnonzero(outcome.difference.constant),
        classes=outcome.target.names,
        priors=outcome.target.P,
        n_rows=outcome.n_rows,
        sample_size=outcome.sample_size,
        seed=outcome.seed,
        settings=settings,
        feature_names=names,
        timings=outcome.timings,
    )
