"""What a comparison found: how good, how fast, and how alike the selections are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from belief._utils.text import escape_controls, format_html_table, format_table
from belief.method.arrays import Array
from belief.method.targets import CLASSIFICATION
from belief.progress import format_duration

OURS = "BELIEF"
NAMES = 6  # of features in a line of text


@dataclass(frozen=True)
class Standing:
    """How one selector did.

    Attributes
    ----------
    selector : str
    score : float
        Macro F1, or R², on rows that were neither selected nor learnt from: the mean over folds and judges.
    spread : float
        Its standard deviation over the folds.
    by_fold : list of float
        The score of each fold.
    judges : dict
        The mean over the folds, by judge.
    seconds : float
        The time of one selection, the median over the folds.
    selected : list of str
        The features selected from all rows that were compared on, the best first.
    """

    selector: str
    score: float
    spread: float
    by_fold: list[float]
    judges: dict[str, float]
    seconds: float
    selected: list[str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What `belief.compare` found. Printed it is a table; in a notebook it shows itself as one.

    Attributes
    ----------
    standings : list
        A line for each selector, the best first: `selector`, `score` (macro F1, or R²), its `spread` over the folds,
        the score `by_fold` and by each of the `judges`, the `seconds` of one selection, and the names `selected`.
    everything : float or None
        The score with all features; None where there was no time left for it.
    left_out : dict
        The selectors that took no part, and why.
    task : str
        "classification" or "regression".
    n_rows, n_compared, n_features, n_selected, folds, seed : int
        The rows of the table, those that were compared on, the features, how many were selected, the folds of the
        cross-validation, and the seed.
    seconds : float
        How long it took in all.

    See Also
    --------
    belief.plot.comparison : the same as a picture.

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
    everything: float | None
    left_out: dict[str, str]
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
        """What `score` is: "F1" or "R²"."""
        return "F1" if self.task == CLASSIFICATION else "R²"

    @property
    def full_measure(self) -> str:
        """The same, where there is room."""
        return "macro F1" if self.task == CLASSIFICATION else self.measure

    @property
    def common(self) -> Array:
        """How many features each two selectors have in common, in the order of the standings."""
        sets = [set(standing.selected) for standing in self.standings]
        return np.array([[len(a & b) for b in sets] for a in sets])

    @property
    def jaccard(self) -> Array:
        """The features that each two selectors have in common, as a share of those that either has."""
        sizes = np.diag(self.common)
        return np.asarray(self.common / (sizes[:, None] + sizes - self.common))

    @property
    def level(self) -> list[str]:
        """The selectors that are behind the best by less than the spread, over the folds, of the difference."""
        behind = [np.subtract(self.standings[0].by_fold, s.by_fold) for s in self.standings]
        return [s.selector for s, d in zip(self.standings, behind, strict=True) if d.mean() <= d.std(ddof=1)]

    def table(self) -> list[dict[str, Any]]:
        """A dictionary for each selector, the best first, to be given to pandas.DataFrame or polars.DataFrame."""
        return [asdict(s) | {"common": int(c)} for s, c in zip(self.standings, self._with_ours(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return asdict(self) | {
            "measure": self.measure,
            "common": self.common.tolist(),
            "jaccard": self.jaccard.tolist(),
        }

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        parts = [self._about(), format_table(self._lines()), self._in_common(), *self._notes()]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        best = self.standings[0]
        return (
            f"<belief.Comparison: {len(self.standings)} selectors, {self.n_selected} of {self.n_features} features;"
            f" {best.selector} has the best {self.measure}, {best.score:.3f} ± {best.spread:.3f}>"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"<p>{escape(self._about())}</p>{format_html_table(self._lines())}{notes}"

    # --- in words ---

    def _with_ours(self) -> Array:
        """How many features each has in common with the reference, ours where it took part, or else the best."""
        names = [s.selector for s in self.standings]
        return self.common[names.index(OURS) if OURS in names else 0]

    def _about(self) -> str:
        rows = f"{self.n_rows:,} rows"
        rows += f" ({self.n_compared:,} compared on)" if self.n_compared < self.n_rows else ""
        return (
            f"{self.task}: {rows}, {self.n_features:,} features, {self.n_selected:,} selected; {self.full_measure} over"
            f" {self.folds} folds, the mean of {', '.join(self.standings[0].judges)}; {format_duration(self.seconds)};"
            f" seed {self.seed}"
        )

    def _lines(self) -> list[list[str]]:
        head = ["selector", self.measure, "seconds", "common", "selected"]
        return [head] + [
            [s.selector, f"{s.score:.3f} ± {s.spread:.3f}", f"{s.seconds:.2f}", f"{c} of {self.n_selected}", named(s)]
            for s, c in zip(self.standings, self._with_ours(), strict=True)
        ]

    def _in_common(self) -> str:
        """The features in common of each two, as a small table."""
        if len(self.standings) < 3:
            return ""
        head = ["features in common", *(str(i) for i in range(1, len(self.standings) + 1))]
        numbered = enumerate(zip(self.standings, self.common, strict=True), 1)
        lines = [[f"{i} {s.selector}", *map(str, c)] for i, (s, c) in numbered]
        return format_table([head, *lines])

    def _notes(self) -> list[str]:
        level, best = self.level, self.standings[0]
        notes = [f"{best.selector} is ahead of all others by more than the folds differ."] * (len(self.standings) > 1)
        if len(level) > 1:
            notes = [f"Hardly told apart, for the folds differ by more than they do: {', '.join(level)}."]
        if self.everything is not None:
            notes.append(f"With all {self.n_features:,} features: {self.everything:.3f}.")
        return notes + [f"Left out: {name}: {why}." for name, why in self.left_out.items()]


def named(standing: Standing) -> str:
    """The first of the features that were selected, as a terminal may have them."""
    more = ", ..." if len(standing.selected) > NAMES else ""
    return ", ".join(map(escape_controls, standing.selected[:NAMES])) + more
