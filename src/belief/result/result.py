"""The result of a run: arrays, numbers and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from belief._utils.names import DefaultNames
from belief._utils.validation import did_you_mean, is_integer
from belief.method.arrays import Array
from belief.method.distributions import PARTS, FeatureDistribution
from belief.method.folds import Stability
from belief.method.redundancy import make_rule
from belief.method.redundancy.base import Rule
from belief.method.relevance import largest_excess, z_of
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION, REGRESSION
from belief.result.deferred import DeferredFields, FeaturePair
from belief.result.explanation import Explanation, FeatureExplanation, explain_feature, explain_features
from belief.result.serialization import (
    PlainValues,
    array_field,
    choice_field,
    from_plain,
    integer_field,
    plain_field,
    read_seconds,
    to_plain,
)

STOP_REASONS = ("converged", "equivalent", "limit", "all rows", "fixed")
MAX_SHOWN = 20  # features in the repr
PER_FEATURE, PER_SELECTED = ("weights",), ("selected",)  # fields of these lengths


def _read_task(task: Any, values: PlainValues) -> str:
    known = {CLASSIFICATION: values["classes"], REGRESSION: values["quantiles"]}
    if not known[task]:
        raise ValueError(task)
    return str(task)


def _read_distributions(value: list[dict[str, Any]], values: PlainValues) -> list[FeatureDistribution]:
    n_groups = len(values["classes"]) if values["task"] != REGRESSION else PARTS
    return [FeatureDistribution.read(each, len(values["weights"]), n_groups) for each in value]


def _read_pairs(value: list[dict[str, Any]], values: PlainValues) -> list[FeaturePair]:
    return [FeaturePair.read(each, len(values["weights"])) for each in value]


def _read_settings(value: dict[str, Any], values: PlainValues) -> dict[str, Any]:
    if set(value) != set(Settings().as_dict()):
        raise ValueError("unknown or missing settings")
    Settings(**value)
    return dict(value)


def _read_stability(value: dict[str, Any] | None, values: PlainValues) -> Stability | None:
    if value is None:
        return None
    frequency, sets = np.array(value["frequency"], float), value["interchangeable"]
    if len(frequency) != len(values["weights"]) or not ((frequency >= 0) & (frequency <= 1)).all():
        raise ValueError("expected one share per feature")
    if not all(0 <= int(j) < len(frequency) for each in sets for j in each):
        raise ValueError("expected features")
    low, high = map(float, value["interval"])
    return Stability(frequency, float(value["index"]), (low, high), [[int(j) for j in each] for each in sets])


def _write_stability(x: Stability | None) -> dict[str, Any] | None:
    return None if x is None else vars(x) | {"frequency": x.frequency.tolist(), "interval": list(x.interval)}


def _read_names(names: Any, values: PlainValues) -> Sequence[str]:
    n_features = len(values["weights"])
    if names is None:
        return DefaultNames(n_features)
    if not isinstance(names, list | tuple) or len(names) != n_features or not all(isinstance(n, str) for n in names):
        raise ValueError(f"expected {n_features} names")
    return names


def _read_notes(notes: Any, values: PlainValues) -> list[str]:
    if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
        raise ValueError("expected texts")
    return [*notes]


def _read_counts(value: dict[str, Any], values: PlainValues) -> dict[str, int]:
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value.values()):
        raise ValueError("expected whole numbers of at least 0")
    return {str(name): n for name, n in value.items()}


def _write_records(records: list[Any]) -> list[dict[str, Any]]:
    return [dict(vars(each)) for each in records]


def _read_about(value: dict[str, Any], values: PlainValues) -> dict[str, Any]:
    texts = [*value.get("left_out", []), *(text for name, text in value.items() if name != "left_out")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("expected texts")
    return dict(value)


def _read_columns(columns: Any, values: PlainValues) -> list[Any] | None:
    if columns is None:
        return None
    if not isinstance(columns, list) or len(columns) != len(values["weights"]):
        raise ValueError("expected one label per feature")
    return [tuple(label) if isinstance(label, list) else label for label in columns]


def _write_columns(columns: list[Any] | None) -> list[Any] | None:
    def plain(label: Any) -> Any:
        if isinstance(label, tuple):
            return [plain(part) for part in label]
        label = label.item() if isinstance(label, np.generic) else label
        return label if isinstance(label, str | int | float) else str(label)

    return None if columns is None else [plain(label) for label in columns]


def _make_read_only(values: dict[str, Any]) -> dict[str, Any]:
    for value in values.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return values


@dataclass(frozen=True, eq=False)
class ClassRanking:
    """How well each feature separates one class from the others.

    Attributes
    ----------
    weight, error : ndarray of shape (n_features,)
        The weight of each feature, computed only from the queries of this class, and its standard error.
    separation : ndarray of shape (n_features,)
        How well each feature separates this class from the others: its mean difference between rows of this class and
        of the others, minus its mean difference within classes.
    separation_error : ndarray of shape (n_features,)
        The standard error of the separation. NaN unless `per_class`, `stability`, `groups` or `sample_weight` is set.
    rank : ndarray of int of shape (n_features,)
        The rank of each feature from 1, by its separation minus its null weight (the weight it would have if
        unrelated to the target).
    """

    weight: Array
    error: Array
    separation: Array
    separation_error: Array
    rank: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """The result of a feature selection with BELIEF.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        The relevance weight w of each feature.
    se : ndarray of shape (n_features,)
        The standard error of each weight.
    null_weight : ndarray of shape (n_features,)
        The weight that each feature would have if it were irrelevant.
    p_value, q_value : ndarray of shape (n_features,)
        The p-value of each feature, which combines the two tests below, and the q-value: the smallest false discovery
        rate at which the feature is significant (Benjamini-Hochberg). NaN with `significance=None`.
    p_neighbours : ndarray of shape (n_features,)
        The p-value of the neighbour test, which compares the weight with weights after shuffles of the rows, and also
        finds interactions. NaN for features that the univariate test has found already, or that were not tested.
    p_univariate : ndarray of shape (n_features,)
        The p-value of the univariate test: a one-way F test, or a χ² test for discrete features; with a numeric target,
        a test of ranks. NaN for constant features, and if there are too many classes.
    round : ndarray of int of shape (n_features,)
        The round of the neighbour test in which the evidence for the feature was strongest; 0 without this test.
    metric : ndarray of int
        The features that determine the distances in the search for neighbours: the strongest significant features, and
        the features left after the last round of the neighbour test. Empty if all features determine the distances.
    probe : dict
        The size of the neighbour test: the numbers of rows, queries, neighbours of each class, features, shuffles and
        rounds. The test of a large table uses only a part of its rows and features. Empty if there was no test.
    selected : ndarray of int
        The indices of the selected features, in order of selection.
    scores : ndarray of shape (n_selected,)
        The score J of each selected feature: its relevance after the redundancy penalty.
    relevance : ndarray of shape (n_features,)
        The relevance of each feature; 1 for the most relevant one. For a significant feature, the difference between
        its weight and its null weight, divided by the largest such difference, and at least 0.05. For other features,
        at most 0.05, depending on the p-value. With `significance=None`, the weight divided by the largest
        weight; or, with mCR or without redundancy, the weight after scaling all weights to the range from 0 to 1.
    marginal : ndarray of shape (n_features,) or (0,)
        The sum Σ cr of the collision rates of each feature over all pairs of neighbours. Only for mCR; otherwise empty.
    n_pairs : int
        The number of pairs of neighbours.
    redundancy : ndarray of shape (n_selected, n_selected)
        `redundancy[a, b]` is the redundancy of the b-th selected feature with the a-th: agreement or normalised I_α; 0
        if it was not measured.
    watched : ndarray of int
        The features with the largest weights, η times as many as were selected.
    watched_redundancy : ndarray of shape (n_selected, n_watched)
        The redundancy of the watched features with the selected ones.
    history : ndarray of int of shape (n_batches, n_watched)
        The features with the largest weights after each batch, best first, padded with -1.
    constant : ndarray of int
        The constant features.
    given : ndarray of int
        The features that were passed as `given`; they come first in `selected`.
    selected_for : ndarray of int of shape (n_selected,) or (0,)
        The index of the class for which each feature was selected, -1 for given features; empty without `per_class`.
    class_weights, class_errors : ndarray of shape (n_classes, n_features)
        The weights computed only from the queries of each class, and their standard errors; see `by_class`.
    separations : ndarray of shape (n_classes, n_features)
        How well each feature separates each class from the others.
    separation_errors : ndarray of shape (n_classes, n_features) or (0, n_features)
        The standard errors of the separations, if they are known.
    task : str
        "classification" or "regression".
    classes, priors : ndarray
        The sorted classes and their shares of the rows; empty for regression.
    quantiles : ndarray
        The 0, 5, 10, ..., 100 % quantiles of a numeric target; empty for classification.
    n_rows, sample_size : int
        The number of rows in the data and in the sample.
    n_neighbors : int
        The number of neighbours per class, or in all for `neighborhood="pooled"` and regression.
    partner, partner_share : ndarray of shape (n_selected,)
        The interaction partner of each selected feature (-1 for none), and the share of its weight that the feature
        would lose without the partner, which is at least half. Partners are selected features.
    stability : Stability or None
        How the selection varies over half-samples; None with `stability=0`.
    stop_reason : str
        Why the sample stopped growing. "converged": a larger sample would select the same features. "equivalent": a
        larger sample would select features of about the same value. "limit": a larger sample would take too long. "all
        rows": the sample contains all rows. "fixed": the size was set with `sample_size`.
    seed : int
        The seed of the run; the same seed gives the same result.
    distributions : list
        The distributions of the first 100 selected features within each class, or each fifth of a numeric target, in
        the sampled rows. `belief.plot.distribution` and the report draw them.
    settings : dict
        The settings of the run.
    feature_names : sequence of str
        The feature names; x0, x1, ... if the data had none.
    timings : dict
        The seconds spent in each phase, which add up to the runtime.
    notes : list of str
        Notes on suspicious columns: identifiers, codes for missing values, copies of the target.
    pairs : list
        The values of interacting features in up to 250 rows. `belief.plot.interaction` and the report draw them.
    about : dict
        The name of the target, the file and the date of the run, as far as they are known, and the columns that were
        left out.
    columns : list or None
        The original column labels of a DataFrame; None if all of them are strings. `feature_names` contains them as
        strings.

    Examples
    --------
    >>> import belief, pandas as pd
    >>> table = pd.read_csv(belief.datasets.CHURN)
    >>> result = belief.select(table, label="left", n_features_to_select=4, random_state=0)
    >>> print(result.explain()[:2])
    rank  feature        relevance      q_value  unique_share  score  reason
    1     support_calls  1.000 ± 0.098  < 1e-16  100 %         1.000  selected: the most relevant feature
    2     contract       0.721 ± 0.091  3.8e-09  100 %         0.721  selected: highest remaining relevance
    >>> result.explain("tenure_months").reason
    "not selected: redundant with 'tenure_days' (0.98)"
    >>> belief.Result.from_dict(result.to_dict()).selected_names == result.selected_names
    True
    """

    weights: Array = array_field(float)
    se: Array = array_field(float, PER_FEATURE, allow_nan=True)
    null_weight: Array = array_field(float, PER_FEATURE)
    p_value: Array = array_field(float, PER_FEATURE, allow_nan=True)
    q_value: Array = array_field(float, PER_FEATURE, allow_nan=True)
    p_neighbours: Array = array_field(float, PER_FEATURE, allow_nan=True)
    p_univariate: Array = array_field(float, PER_FEATURE, allow_nan=True)
    round: Array = array_field(np.int64, PER_FEATURE)
    metric: Array = array_field(np.int64, index_into="weights")
    probe: dict[str, int] = plain_field(read=_read_counts)
    selected: Array = array_field(np.int64, index_into="weights")
    scores: Array = array_field(float, PER_SELECTED)
    relevance: Array = array_field(float, PER_FEATURE)
    marginal: Array = array_field(float, PER_FEATURE, allow_empty=True)
    n_pairs: int = integer_field(0)
    redundancy: Array = array_field(float, ("selected", "selected"))
    watched: Array = array_field(np.int64, index_into="weights")
    watched_redundancy: Array = array_field(float, ("selected", "watched"))
    history: Array = array_field(np.int64, (None, None), index_into="weights", minimum=-1)
    constant: Array = array_field(np.int64, index_into="weights")
    given: Array = array_field(np.int64, index_into="weights")
    selected_for: Array = array_field(np.int64, PER_SELECTED, allow_empty=True)
    class_weights: Array = array_field(float, ("classes", "weights"), allow_empty=True)
    class_errors: Array = array_field(float, ("classes", "weights"), allow_empty=True)
    separations: Array = array_field(float, ("classes", "weights"), allow_empty=True)
    separation_errors: Array = array_field(float, ("classes", "weights"), allow_empty=True)
    task: str = plain_field(read=_read_task)
    classes: Array = array_field(
        write=lambda x: [c if isinstance(c, str | int | float) else str(c) for c in x.tolist()]
    )
    priors: Array = array_field(float, ("classes",))
    quantiles: Array = array_field(float)
    n_rows: int = integer_field(1)
    sample_size: int = integer_field(1)
    n_neighbors: int = integer_field(0)
    partner: Array = array_field(np.int64, PER_SELECTED, index_into="weights", minimum=-1)
    partner_share: Array = array_field(float, PER_SELECTED)
    stability: Stability | None = plain_field(read=_read_stability, write=_write_stability)
    stop_reason: str = choice_field(STOP_REASONS)
    seed: int = integer_field()
    distributions: list[FeatureDistribution] = plain_field(read=_read_distributions, write=_write_records)
    settings: dict[str, Any] = plain_field(read=_read_settings)
    feature_names: Sequence[str] = plain_field(
        read=_read_names, write=lambda names: None if isinstance(names, DefaultNames) else names
    )
    timings: dict[str, float] = plain_field(read=read_seconds, checked=False, default_factory=dict)
    notes: list[str] = plain_field(read=_read_notes, default_factory=list)
    pairs: list[FeaturePair] = plain_field(read=_read_pairs, write=_write_records, default_factory=list)
    about: dict[str, Any] = plain_field(read=_read_about, default_factory=dict)
    columns: list[Any] | None = plain_field(read=_read_columns, write=_write_columns, default=None)

    def __post_init__(self) -> None:
        deferred = self.partner
        if isinstance(deferred, DeferredFields):
            for name in DeferredFields.names:
                del self.__dict__[name]  # so that __getattr__ is called
            self.__dict__["_deferred"] = deferred
            if deferred.is_large:
                self._compute_deferred_fields(deferred)
        _make_read_only(vars(self))

    def _compute_deferred_fields(self, deferred: DeferredFields) -> None:
        self.__dict__.update(_make_read_only(deferred.compute()))
        points = deferred.points
        pairs = [] if points is None else points.collect_pairs(self.interactions, deferred.levels)
        self.__dict__["pairs"] = pairs
        self.__dict__.pop("_deferred", None)  # another thread may have computed them, too

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            deferred = self.__dict__.get("_deferred")
            if deferred is not None and name in DeferredFields.names:
                self._compute_deferred_fields(deferred)
            if name in self.__dict__:
                return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def selected_names(self) -> list[Any]:
        """The names of the selected features, in order of selection. For a DataFrame, they are its column labels."""
        return [(self.columns or self.feature_names)[j] for j in self.selected]

    @property
    def ranking(self) -> Array:
        """The rank of every feature from 1: selected features in order of selection, then the others by relevance."""
        rest = np.setdiff1d(np.arange(len(self.weights)), self.selected)
        keys = rest, -self.weights[rest], -self.relevance[rest], np.isin(rest, self.constant)
        rest = rest[np.lexsort(keys)]
        rank = np.empty(len(self.weights), np.int64)
        rank[np.concatenate([self.selected, rest])] = np.arange(1, len(rank) + 1)
        return rank

    @property
    def by_class(self) -> dict[Any, ClassRanking]:
        """A dictionary with the `ClassRanking` of the features for each class; empty for a numeric target."""
        out = {}
        errors = self.separation_errors if self.separation_errors.size else np.full_like(self.separations, np.nan)
        parts = self.class_weights, self.class_errors, self.separations, errors
        for name, w, se, separation, error in zip(self.classes.tolist(), *parts, strict=True):
            rank = np.empty(len(w), np.int64)
            rank[np.argsort(self.null_weight - separation, kind="stable")] = np.arange(1, len(w) + 1)
            out[name] = ClassRanking(w, se, separation, error, rank)
        return out

    @overload
    def explain(self, feature: None = None) -> Explanation: ...
    @overload
    def explain(self, feature: str | int) -> FeatureExplanation: ...
    def explain(self, feature: str | int | None = None) -> Explanation | FeatureExplanation:
        """Explain why features were selected or not.

        Parameters
        ----------
        feature : str or int, default=None
            The name or the index of a feature; None explains the selected features and the others in `watched`.

        Returns
        -------
        Explanation or FeatureExplanation
            For one feature, an object with the attributes `feature`, `index`, `rank`, `relevance`, `error`, `p_value`,
            `q_value`, `is_significant`, `unique_share`, `score`, `redundant_with`, `agreement`, `p_univariate`,
            `p_neighbours`, `round`, `partner`, `best_class`, `frequency` and `reason`.
            Otherwise a list of such objects, which is displayed as a table; pass it to `pandas.DataFrame` or
            `polars.DataFrame` for a data frame.
        """
        return explain_features(self) if feature is None else explain_feature(self, self._find_index(feature))

    def _find_index(self, feature: str | int) -> int:
        n = len(self.weights)
        if self.columns is not None and feature in self.columns:
            return self.columns.index(feature)
        if isinstance(feature, str):
            if feature not in self.feature_names:
                raise ValueError(f"There is no feature {feature!r}{did_you_mean(feature, list(self.feature_names))}.")
            return list(self.feature_names).index(feature)
        if not is_integer(feature):
            raise ValueError(f"feature must be the name or the index of a feature; got {feature!r:.60}.")
        if not -n <= feature < n:
            raise ValueError(f"There is no feature {feature}: the data has {n} features, numbered from 0.")
        return int(feature) % n

    @property
    def z(self) -> Array:
        """The z-score of each feature: its weight divided by the standard error."""
        return z_of(self.weights, self.se)

    @property
    def significant(self) -> Array:
        """The mask of the significant features, whose q-value is below the setting `alpha`."""
        return self.q_value < self.settings["alpha"]

    @property
    def interactions(self) -> list[tuple[int, int, float]]:
        """The interactions of significant features, as tuples (feature, partner, share of the weight).

        The feature would lose this share of its weight without the partner.
        """
        known = self.significant[self.selected] | ~np.isfinite(self.q_value[self.selected])
        found = zip(self.selected, self.partner, self.partner_share, known, strict=True)
        return [(int(i), int(j), float(share)) for i, j, share, is_known in found if j >= 0 and is_known]

    @property
    def unit_of_relevance(self) -> float:
        """The weight that corresponds to a relevance of 1; 0 if no feature is relevant."""
        if self.settings["significance"] is None:
            return self.rule.relevance_scale(np.delete(self.weights, self.constant))[1]
        return largest_excess(self.weights - self.null_weight, self.significant)

    @property
    def error_of_relevance(self) -> Array:
        """The standard error of the relevance."""
        unit = self.unit_of_relevance
        return self.se / unit if unit > 0 else np.zeros_like(self.se)

    @property
    def rule(self) -> Rule:
        """The selection rule, which computes scores from relevance and redundancy."""
        return make_rule(self.settings["redundancy"], self.settings["theta"])

    def write_to(self, adata: Any, key: str = "belief") -> None:
        """Write the result into an AnnData table.

        This adds the columns `{key}_rank`, `{key}_relevance`, `{key}_q_value` and `{key}_selected` to `adata.var`, and
        stores the settings and the seed in `adata.uns[key]`. Genes that were not used have no rank and are not
        selected.

        Parameters
        ----------
        adata : AnnData
            A table whose `var_names` contain the names of the features.
        key : str, default="belief"
            The prefix of the columns, and the entry of `uns`.
        """
        if not hasattr(adata, "var") or not hasattr(adata, "uns"):
            raise ValueError(
                f"write_to needs an AnnData table; got a {type(adata).__name__}. Pass the table from which the features"
                " were selected."
            )
        names, features = [str(name) for name in adata.var_names], list(self.feature_names)
        known = {name: j for j, name in enumerate(names)}
        unknown = [name for name in features if name not in known]
        if names != features and (unknown or len(known) < len(names)):
            problem = f"no variable {unknown[0]!r}" if unknown else "several variables with the same name"
            raise ValueError(
                f"The AnnData table has {problem}. Pass the table from which the features were selected, with unique"
                " var_names."
            )
        positions = np.arange(len(names)) if names == features else np.array([known[name] for name in features])
        columns = {
            "rank": (self.ranking.astype(float), np.nan),
            "relevance": (self.relevance, np.nan),
            "q_value": (self.q_value, np.nan),
            "selected": (np.isin(np.arange(len(features)), self.selected), False),
        }
        for name, (values, rest) in columns.items():
            column = np.full(len(names), rest)
            column[positions] = values
            adata.var[f"{key}_{name}"] = column
        settings = {name: value for name, value in self.settings.items() if value is not None}
        for name, value in settings.items():
            if isinstance(value, dict):  # the keys of dictionaries in AnnData files must be strings
                settings[name] = {str(k): v for k, v in value.items()}
        facts = {name: getattr(self, name) for name in ("task", "seed", "n_rows", "sample_size")}
        adata.uns[key] = {"settings": settings, **facts}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain JSON values."""
        return to_plain(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Create a result from the output of `to_dict`.

        Raises a ValueError if the values were edited, or were written by a version with another format.
        """
        return from_plain(cls, plain)

    def __repr__(self) -> str:
        n = len(self.selected)
        lines = explain_features(self, self.selected[:MAX_SHOWN].tolist())
        more = f"\n... and {n - MAX_SHOWN:,} more" if n > MAX_SHOWN else ""
        return f"belief.Result: {n:,} of {len(self.weights):,} features selected\n\n{lines}{more}"

    def _repr_html_(self) -> str | None:
        from belief.report.templating import render_result_table

        return render_result_table(self)
