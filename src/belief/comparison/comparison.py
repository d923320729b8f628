"""The result of `belief.compare`: the score, runtime and selected features of each selector."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.special import stdtr

from belief._utils.text import escape_controls, format_probability, format_table
from belief.method.arrays import Array
from belief.method.targets import CLASSIFICATION
from belief.progress import format_duration

OURS = "BELIEF"
ALL = "all features"
LEVEL = 0.05  # differences with a smaller p-value are significant
MAX_SHOWN_NAMES = 6  # names of selected features that are shown per selector


@dataclass(frozen=True)
class Standing:
    """The cross-validated score, the runtime and the selected features of one selector."""

    selector: str
    score: float
    spread: float
    by_fold: list[float]
    by_model: dict[str, float]
    seconds: float
    selected: list[str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of `belief.compare`, which is displayed as a table.

    Attributes
    ----------
    standings : list
        An entry for each selector, the best first, with the attributes `selector` (its name), `score` (macro F1 or R²),
        `spread` (the standard deviation of the score over the folds), `by_fold` and `by_model` (the scores by fold and
        by model), `seconds` (of one selection) and `selected` (the names of the features).
    all_features : list of float
        The baseline: the score with all features in each fold. If there was little time, it contains only some of the
        folds, or is empty.
    skipped : dict
        The selectors that were skipped, and why.
    task : str
        "classification" or "regression".
    n_rows, n_compared, n_features, n_selected, folds, seed : int
        The numbers of rows of the table, of rows used, of features, of selected features and of folds, and the seed.
    seconds : float
        The total runtime.

    See Also
    --------
    belief.plot.comparison : draw the comparison.

    Examples
    --------
    >>> import belief
    >>> found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4,
    ...                        selectors=["BELIEF", "F test"], random_state=0)
    >>> sorted(standing.selector for standing in found.standings)
    ['BELIEF', 'F test']
    >>> found.common.tolist()
    [[4, 3], [3, 4]]
    """

    standings: list[Standing]
    all_features: list[float]
    skipped: dict[str, str]
    task: str
    n_rows: int
    n_compared: int
    n_features: int
    n_selected: int
    folds: int
    seed: int
    seconds: float

    @property
    def measure(self) -> str:
        """The name of the score: "F1" or "R²"."""
        return "F1" if self.task == CLASSIFICATION else "R²"

    @property
    def full_measure(self) -> str:
        """The full name of the score."""
        return "macro F1" if self.task == CLASSIFICATION else self.measure

    @property
    def common(self) -> Array:
        """A matrix with the number of features that each two selectors have in common, in the order of `standings`."""
        sets = [set(standing.selected) for standing in self.standings]
        return np.array([[len(a & b) for b in sets] for a in sets])

    @property
    def jaccard(self) -> Array:
        """A matrix with the Jaccard similarity of the features of each two selectors, in the order of `standings`."""
        sizes = np.diag(self.common)
        return self.common / (sizes[:, None] + sizes - self.common)

    @property
    def behind(self) -> Array:
        """How far each selector is behind the best: the mean difference over the folds, its error, and a p-value.

        The error is the standard error of the mean difference, corrected for the rows that the training parts of the
        folds have in common (Nadeau and Bengio, 2003). The p-value is from a paired t test with this error.
        """
        return np.array([self.compare_with_best(s.by_fold) for s in self.standings])

    def compare_with_best(self, by_fold: Sequence[float]) -> tuple[float, float, float]:
        """Compare scores with those of the best selector in the same folds; return three values as in `behind`."""
        difference = np.subtract(self.standings[0].by_fold[: len(by_fold)], by_fold)
        mean, n = float(difference.mean()), len(difference)
        if n < 2:
            return mean, np.nan, np.nan
        error = float(difference.std(ddof=1) * np.sqrt(1 / n + 1 / (self.folds - 1)))
        if error == 0:
            return mean, 0.0, float(mean == 0)
        return mean, error, float(2 * stdtr(n - 1, -abs(mean) / error))

    @property
    def tied(self) -> list[str]:
        """The best selector, and the selectors that are not significantly different from it."""
        return [s.selector for s, (_, _, p) in zip(self.standings, self.behind, strict=True) if not p < LEVEL]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dictionary of plain JSON values."""
        return asdict(self) | {
            "measure": self.measure,
            "common": self.common.tolist(),
            "jaccard": self.jaccard.tolist(),
            "behind": self.behind.tolist(),
        }

    def to_json(self) -> str:
        """Return the comparison as JSON text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def __repr__(self) -> str:
        parts = [summarize(self), format_table(list_rows(self))]
        if len(self.standings) > 2:
            head = ["features in common", *(str(i) for i in range(1, len(self.standings) + 1))]
            numbered = enumerate(zip(self.standings, self.common, strict=True), 1)
            parts.append(format_table([head, *([f"{i} {s.selector}", *map(str, c)] for i, (s, c) in numbered)]))
        return "\n\n".join([*parts, *list_notes(self)])

    def _repr_html_(self) -> str:
        from belief.report.templating import render_comparison_table

        return render_comparison_table(self) or f"<pre>{escape(repr(self))}</pre>"


def summarize(found: Comparison) -> str:
    """Return one line that describes the table, the task and the models of a comparison."""
    rows = f"{found.n_rows:,} rows"
    rows += f" ({found.n_compared:,} compared)" if found.n_compared < found.n_rows else ""
    models = ", ".join(found.standings[0].by_model)
    return (
        f"{found.task}: {rows}, {found.n_features:,} features, {found.n_selected:,} selected; {found.full_measure} over"
        f" {found.folds} folds, the mean of {models}; {format_duration(found.seconds)};"
        f" seed {found.seed}"
    )


def list_rows(found: Comparison) -> list[list[str]]:
    """Return a table, as texts, of the selectors and the baseline; the first row contains the headings."""
    rows = [["selector", found.measure, "behind", "p", "seconds", "common", "selected"]]
    selectors = [s.selector for s in found.standings]
    common = found.common[selectors.index(OURS) if OURS in selectors else 0]  # with BELIEF, or else with the best
    for i, (s, c) in enumerate(zip(found.standings, common, strict=True)):
        behind = _format_difference(*found.behind[i]) if i else ["", ""]
        names = ", ".join(map(escape_controls, s.selected[:MAX_SHOWN_NAMES]))
        names += ", ..." if len(s.selected) > MAX_SHOWN_NAMES else ""
        in_common = f"{c} of {found.n_selected}"
        rows.append([s.selector, f"{s.score:.3f} ± {s.spread:.3f}", *behind, f"{s.seconds:.2f}", in_common, names])
    if found.all_features:
        mean, spread = np.mean(found.all_features), np.std(found.all_features, ddof=min(1, len(found.all_features) - 1))
        behind = _format_difference(*found.compare_with_best(found.all_features))
        rows.append([ALL, f"{mean:.3f} ± {spread:.3f}", *behind, "", "", f"all {found.n_features:,}"])
    return rows


def _format_difference(mean: float, error: float, p: float) -> list[str]:
    return [f"{mean:.3f} ± {error:.3f}", format_probability(p)] if error == error else [f"{mean:.3f}", "-"]


def list_notes(found: Comparison) -> list[str]:
    """Return sentences on the selectors that do not differ significantly from the best, and on skipped selectors."""
    tied, best, notes = found.tied[1:], found.standings[0].selector, []
    if len(found.standings) > 1:
        test = "paired t test over the folds, corrected for the rows that their training parts share"
        notes = [f"Not significantly different from {best} (p >= {LEVEL}): {', '.join(tied) or 'none'}. p: {test}."]
    if 0 < len(found.all_features) < found.folds:
        notes.append(f"All features were scored in {len(found.all_features)} of {found.folds} folds, to save time.")
    return notes + [f"Skipped: {name}: {reason}." for name, reason in found.skipped.items()]
