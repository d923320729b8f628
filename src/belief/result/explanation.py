"""Explanations in words of why each feature was selected or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.text import escape_controls, format_html_table, format_percent, format_probability, format_table
from belief.method.arrays import Array

if TYPE_CHECKING:
    from belief.result.result import Result

TABLE_COLUMNS = (
    "rank",
    "feature",
    "relevance",
    "q_value",
    "unique_share",
    "score",
    "best_class",
    "frequency",
    "reason",
)
MIN_AGREEMENT = 0.2  # a smaller agreement is mentioned only if it is the reason why a feature was not selected


@dataclass(frozen=True)
class FeatureExplanation:
    """The explanation of why one feature was selected or not. Fields that were not measured are None.

    Attributes
    ----------
    feature, index
        The name and the index of the feature.
    rank
        The rank in the order of selection, from 1; None if the feature was not selected.
    relevance, error
        The relevance, where the most relevant feature has 1, and its standard error.
    p_value, q_value
        The p-value of the feature, and the q-value, which is corrected for multiple testing.
    is_significant
        Whether the q-value is below the setting `alpha`; True if the q-value is unknown.
    unique_share
        The share of the relevance that is not redundant with the features selected before.
    score
        For a selected feature, its score when it was selected; for other features, the score if selected next.
    redundant_with, agreement
        The selected feature with which this feature is most redundant, and the agreement of the two.
    p_univariate, p_neighbours
        The p-values of the univariate test and of the neighbour test, which also finds interactions.
    round
        The round of the neighbour test in which the evidence for the feature was strongest.
    partner
        The selected feature that interacts with this feature.
    best_class
        The class that the feature separates best from the others, if there are more than two classes.
    frequency
        The share of the half-samples in which the feature was selected; None without the setting `stability`.
    reason
        The explanation in words.
    """

    feature: str
    index: int
    rank: int | None
    relevance: float
    error: float | None
    p_value: float | None
    q_value: float | None
    is_significant: bool
    unique_share: float | None
    score: float | None
    redundant_with: str | None
    agreement: float | None
    p_univariate: float | None
    p_neighbours: float | None
    round: int | None
    partner: str | None
    best_class: str | None
    frequency: float | None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as a dictionary."""
        return asdict(self)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return format_table(list_fields(self))

    def _repr_html_(self) -> str:
        return Explanation([self])._repr_html_()

    def _format(self, name: str) -> str:
        value = getattr(self, name)
        if value is None:
            return "-"
        if name == "relevance" and self.error is not None:
            return f"{value:.3f} ± {self.error:.3f}"
        if name in ("p_value", "q_value", "p_univariate", "p_neighbours"):
            return format_probability(value)
        if name in ("unique_share", "frequency"):
            return format_percent(value)
        return f"{value:.3f}" if isinstance(value, float) else str(value)


class Explanation(list[FeatureExplanation]):
    """The explanations of several features, displayed as a table.

    Pass it to `pandas.DataFrame` or `polars.DataFrame` for a data frame with all columns.
    """

    def __getitem__(self, index: Any) -> Any:
        rows = super().__getitem__(index)
        return Explanation(rows) if isinstance(index, slice) else rows

    def __repr__(self) -> str:
        return format_table(list_rows(self))

    def _repr_html_(self) -> str:
        from belief.report.templating import render_explanation_table

        return render_explanation_table(self) or format_html_table(list_rows(self))


def list_rows(lines: Sequence[FeatureExplanation]) -> list[list[str]]:
    """Return explanations as a table of texts; the first row contains the headings."""
    known = [name for name in TABLE_COLUMNS if any(row[name] is not None for row in lines)]
    return [known] + [[escape_controls(row._format(name)) for name in known] for row in lines]


def list_fields(line: FeatureExplanation) -> list[list[str]]:
    """Return the names and values of all fields of an explanation as text."""
    return [[f.name, escape_controls(line._format(f.name))] for f in fields(line)]


def explain_features(result: Result, features: Sequence[int] | None = None) -> Explanation:
    """Return the explanations of these features.

    By default, explain the selected features in order of selection, then the others in `result.watched` by falling
    score.
    """
    if features is not None:
        return Explanation([explain_feature(result, int(j)) for j in features])
    selected = [explain_feature(result, int(j)) for j in result.selected]
    others = [explain_feature(result, int(j)) for j in result.watched if j not in result.selected]
    others.sort(key=lambda row: (-(row.score or 0.0), -row.relevance))
    return Explanation([*selected, *others])


def explain_feature(result: Result, j: int) -> FeatureExplanation:
    """Return the explanation of the feature with index j."""
    place = np.flatnonzero(result.selected == j)
    rank = int(place[0]) + 1 if len(place) else None
    redundancy = _redundancy_with_selected(result, j, rank)
    relevance, score = float(result.relevance[j]), None
    if rank:
        score = float(result.scores[rank - 1])
    elif redundancy is not None:  # the score if the feature were selected next
        has_measure = result.settings["redundancy"] is not None
        score = float(result.rule.score_next(result.relevance[j], redundancy)) if has_measure else relevance
    has_unique_share = result.rule.presentation.has_unique_share and not len(result.selected_for)
    best_class = None
    if len(result.classes) > 2 and j not in result.constant:
        c = int(result.selected_for[rank - 1]) if rank and len(result.selected_for) else -1
        best_class = str(result.classes[c if c >= 0 else int(result.separations[:, j].argmax())])
    most = int(np.argmax(redundancy)) if redundancy is not None and redundancy.max(initial=0.0) > 0 else None
    partner = int(result.partner[rank - 1]) if rank else -1
    values: dict[str, Any] = {
        "feature": result.feature_names[j],
        "index": j,
        "rank": rank,
        "relevance": relevance,
        "error": _none_if_nan(result.error_of_relevance[j]),
        "p_value": _none_if_nan(result.p_value[j]),
        "q_value": _none_if_nan(result.q_value[j]),
        "is_significant": bool(result.significant[j]) or not np.isfinite(result.q_value[j]),
        "unique_share": score / relevance if has_unique_share and score is not None and relevance > 0 else None,
        "score": score,
        "redundant_with": None if most is None else result.feature_names[result.selected[most]],
        "agreement": None if redundancy is None else float(redundancy[most]) if most is not None else 0.0,
        "p_univariate": _none_if_nan(result.p_univariate[j]),
        "p_neighbours": _none_if_nan(result.p_neighbours[j]),
        "round": int(result.round[j]) or None,
        "partner": result.feature_names[partner] if partner >= 0 else None,
        "best_class": best_class,
        "frequency": None if result.stability is None else float(result.stability.frequency[j]),
    }
    row = FeatureExplanation(**values)
    if j in result.constant and j not in result.given:
        reason = "selected only to reach the requested number; constant" if rank else "not selected: constant"
    else:
        reason = _why_selected(result, row) if rank else f"not selected: {_why_not_selected(result, row)}"
    return replace(row, reason=reason)


def _none_if_nan(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def _redundancy_with_selected(result: Result, j: int, rank: int | None) -> Array | None:
    """Return the redundancy of feature j with each feature selected before it; None if it was not measured."""
    if result.settings["redundancy"] is None:
        return np.zeros(0)
    if rank is not None:
        return result.redundancy[: rank - 1, rank - 1]
    column = np.flatnonzero(result.watched == j)
    return result.watched_redundancy[:, int(column[0])] if len(column) else None


def is_worth_more(result: Result, row: FeatureExplanation) -> bool:
    """Return True if the relevance of a feature is above the lowest score of the selected features."""
    return bool(row.relevance > result.scores[len(result.given) :].min(initial=np.inf))


def _why_selected(result: Result, row: FeatureExplanation) -> str:
    assert row.rank is not None
    if row.index in result.given:
        return "given"
    if len(result.selected_for):
        redundant, name = _redundant(result, row), result.classes.tolist()[result.selected_for[row.rank - 1]]
        weak = "" if row.is_significant else f"; {_not_significant(result, row)}"
        return f"selected for class {name!r}" + (f", although {redundant}" if redundant else "") + weak
    if not row.is_significant:
        return f"selected only to reach the requested number; {_not_significant(result, row)}"
    if row.rank == 1 and row.relevance <= 0:
        return "selected only to reach the requested number; no feature is relevant" + _interaction(result, row)
    reason = "selected: the most relevant feature" if row.rank == 1 else "selected: highest remaining relevance"
    redundant = _redundant(result, row) if row.rank != 1 else None
    return reason + (f", although {redundant}" if redundant else "") + _interaction(result, row)


def _why_not_selected(result: Result, row: FeatureExplanation) -> str:
    if len(result.selected_for):
        return _redundant(result, row) or f"other features separate class {row.best_class!r} better"
    if not row.is_significant:
        return _not_significant(result, row)
    if result.settings["n_features_to_select"] == "auto":
        return _redundant(result, row, 0) or "not significant beyond the selected features"
    if is_worth_more(result, row):
        return _redundant(result, row, 0) or "redundant with the selected features"
    redundant = _redundant(result, row)
    return "less relevant than the selected features" + (f", and {redundant}" if redundant else "")


def _not_significant(result: Result, row: FeatureExplanation) -> str:
    if row.p_value is None or row.q_value is None:
        return "not significant"
    p = f"p = {format_probability(row.p_value)}"
    if row.p_value < result.settings["alpha"]:
        p += f", q = {format_probability(row.q_value)} after correction for multiple testing"
    return f"not significant ({p})"


def _redundant(result: Result, row: FeatureExplanation, at_least: float = MIN_AGREEMENT) -> str | None:
    """Describe, in words, the redundancy of a feature with a selected feature; None if it hardly lowers the score."""
    if row.redundant_with is None or row.score is None or row.agreement is None:
        return None
    if result.rule.presentation.has_absolute_scale and row.agreement < at_least:
        return None
    return result.rule.describe_loss(row.redundant_with, row.agreement, row.relevance, row.score)


def _interaction(result: Result, row: FeatureExplanation) -> str:
    """Describe the interaction partner of a feature, with the feature's univariate p-value if it is not significant."""
    weak = row.p_univariate is not None and row.p_univariate >= result.settings["alpha"]
    if row.partner is None and not weak:
        return ""
    partner = "other features" if row.partner is None else repr(row.partner)
    alone = f" (univariate p = {format_probability(row.p_univariate)})" if weak and row.p_univariate is not None else ""
    return f"; interacts with {partner}{alone}"
