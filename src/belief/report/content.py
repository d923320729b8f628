"""The content of the report as one plain dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

import numpy as np

import belief
from belief.method.arrays import Array
from belief.method.settings import Settings
from belief.progress import LABELS
from belief.report.distributions import STRIP_WIDTH, describe_distribution
from belief.report.text import clean, count, format_number
from belief.result.explanation import FeatureExplanation, is_worth_more
from belief.result.result import Result

MAX_ROWS = 1_000  # longer tables are cut
MAX_CLASSES = 20
GROUP_LEVEL = 0.5  # features that agree at least this much form a group
QUANTILES = {0: "0 %", 1: "5 %", 5: "25 %", 10: "50 %", 15: "75 %", 19: "95 %", 20: "100 %"}  # of Result.quantiles
BOX = (1, 5, 10, 15, 19)  # the quantiles that a box plot shows


def collect_content(result: Result, title: str | None = None) -> dict[str, Any]:
    """Collect everything the page shows: names are clean but not escaped, numbers are not formatted."""
    lines = [clean_texts(line) for line in result.explain()]
    n = len(result.selected)
    selected, others = lines[:n], lines[n:]
    redundant = [line for line in others if _is_redundant(result, line)]
    content: dict[str, Any] = {
        "title": clean(title) if title else "Features selected with BELIEF",
        "version": belief.__version__,
        "run": describe_run(result),
        "notes": [clean(note) for note in result.notes],
        "classes": _largest_classes(result),
        "settings": _list_settings(result.settings),
        "measure": asdict(result.rule.presentation),
        "columns": table_columns(result, lines),
        "selected": selected[:MAX_ROWS],
        "n_selected": n,
        "n_not_significant": sum(not line.is_significant for line in selected),
        "others": others[:MAX_ROWS],
        "n_others": len(others),
        "redundant": redundant,
        "redundant_with": _group_by_partner(redundant),
        "alpha": result.settings["alpha"],
        "group_level": GROUP_LEVEL,
        "groups": _list_groups(result),
        "stability": _describe_stability(result),
        "timings": [(LABELS.get(phase, phase), float(s)) for phase, s in result.timings.items()],
        "distributions": [describe_distribution(result, each) for each in result.distributions],
        "all_features": _list_all_features(result),
        "sufficient": _describe_sufficient(result, selected),
        "names_python": repr(result.selected_names),
        "names_text": "\n".join(_clean_names(result, result.selected)),
        "target": _describe_target(result),
    }
    return {**content, "pictures": _list_figures(content), "sections": _list_sections(content)}


def table_columns(result: Result, lines: Sequence[FeatureExplanation]) -> list[str]:
    """Return the columns of explain() that have values in this result."""
    known = [key for key in ("q_value", "unique_share") if any(line[key] is not None for line in lines)]
    return ["relevance", *known, *(["score"] if result.rule.presentation.name else [])]


def clean_texts(line: FeatureExplanation) -> FeatureExplanation:
    """Put every text of an explanation on one line."""
    texts: dict[str, Any] = {name: clean(value) for name, value in vars(line).items() if isinstance(value, str)}
    return replace(line, **texts)


def describe_run(result: Result) -> dict[str, Any]:
    """Describe the table, the sample and the search."""
    return {
        "rows": result.n_rows,
        "features": len(result.weights),
        "constant": len(result.constant),
        "classes": len(result.classes),
        "source": _describe_source(result),
        "sample": result.sample_size,
        "sampling": result.settings["sampling"],
        "stop_reason": result.stop_reason,
        "neighbours": result.n_neighbors,
        "per_class": result.settings["neighborhood"] == "per_class",
        "batches": len(result.history),
        "pairs": int(result.n_pairs),
        "seed": result.seed,
    }


def group_redundant(redundancy: Array, level: float = GROUP_LEVEL) -> list[list[int]]:
    """Group features whose average redundancy, in both directions, is at least `level`.

    Parameters
    ----------
    redundancy : the redundancy of feature b with feature a, at [a, b]

    Returns
    -------
    list of lists of int
        The groups, ordered such that neighbours are similar.
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    n = len(redundancy)
    if n < 2:
        return [[i] for i in range(n)]
    distance = 1.0 - (redundancy + redundancy.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), "average", optimal_ordering=n <= 500)
    label = hierarchy.fcluster(tree, 1.0 - level, "distance")
    return [list(group) for _, group in groupby(hierarchy.leaves_list(tree).tolist(), key=lambda i: label[i])]


def _is_redundant(result: Result, line: FeatureExplanation) -> bool:
    """Return True if only its redundancy kept a feature from being selected."""
    if line.score is None or not line.is_significant:
        return False
    return is_worth_more(result, line) and line.score < line.relevance


def _group_by_partner(lines: Sequence[FeatureExplanation]) -> list[tuple[str, list[str]]]:
    """Group features by the selected feature they are most redundant with; the longest list first."""
    partners: dict[str, list[str]] = {}
    for line in lines:
        partners.setdefault(str(line.redundant_with), []).append(line.feature)
    return sorted(partners.items(), key=lambda item: -len(item[1]))


def _list_sections(content: dict[str, Any]) -> dict[str, str]:
    """Return the sections of the page and their titles; those on redundancy only if it was measured."""
    measure = content["measure"]
    sections = {
        "ranking": "Ranking",
        "scores": "How many features suffice",
        "distributions": "Distributions",
        "relevance": measure["relevance_title"],
        "redundancy": measure["redundancy_title"],
        "others": "Features not selected",
        "all": "All features",
        "convergence": "Stability of the ranking",
        "run": "Data and settings",
        "timings": "Timings",
    }
    return {name: title for name, title in sections.items() if title}


def _list_figures(content: dict[str, Any]) -> list[str]:
    """Return the names of the figures that have something to show."""
    measured = bool(content["measure"]["name"])
    is_shown = {
        "ranking": True,
        "scores": content["n_selected"] > 1,
        "relevance_redundancy": measured,
        "redundancy": measured and content["n_selected"] > 1,
        "convergence": content["stability"] is not None,
        "timings": bool(content["timings"]),
    }
    return [name for name, shown in is_shown.items() if shown]


def _largest_classes(result: Result) -> list[dict[str, Any]]:
    shares = zip(result.classes, result.priors.tolist(), strict=True)
    classes = [{"name": clean(c), "share": P, "rows": round(P * result.n_rows)} for c, P in shares]
    return sorted(classes, key=lambda c: -c["share"])[:MAX_CLASSES]


def _list_settings(settings: dict[str, Any]) -> list[dict[str, Any]]:
    known = {f.name: f for f in Settings.definitions()}
    return [
        {
            "name": name,
            "value": clean(value),
            "default": name in known and known[name].default == value,
            "doc": known[name].metadata["doc"] if name in known else "",
        }
        for name, value in settings.items()
    ]


def _list_groups(result: Result) -> list[list[str]]:
    """Return the groups of two or more redundant features, ordered by rank."""
    if not result.rule.presentation.has_absolute_scale:
        return []
    groups = sorted(sorted(group) for group in group_redundant(result.redundancy) if len(group) > 1)
    return [_clean_names(result, result.selected[group]) for group in groups]


def _describe_stability(result: Result) -> dict[str, int] | None:
    """Find the batch after which the top features, as many as were selected, stayed the same."""
    if len(result.history) < 2:
        return None
    n = min(len(result.selected), result.history.shape[1])
    top = [set(batch[:n].tolist()) for batch in result.history]
    batch = len(top)
    while batch > 1 and top[batch - 2] == top[-1]:
        batch -= 1
    return {"n": n, "batch": batch, "changed": len(top[-1] - top[-2])}


def _clean_names(result: Result, features: Iterable[int]) -> list[str]:
    return [clean(result.feature_names[j]) for j in features]


def _describe_source(result: Result) -> str:
    """Describe the rows and the target, as "200 rows in 2 classes"."""
    rows = count(result.n_rows, "row")
    if len(result.classes):
        return f"{rows} in {count(len(result.classes), 'class', 'classes')}"
    low, high = (format_number(x) for x in result.quantiles[[0, -1]].tolist())
    return f"{rows} with a numeric target from {low} to {high}"


def _list_all_features(result: Result) -> list[dict[str, Any]]:
    """List the most relevant features, including those that were not watched."""
    rank = {int(j): i for i, j in enumerate(result.selected, 1)}
    error = result.error_of_relevance
    order = np.lexsort((np.arange(len(result.weights)), -result.weights, -result.relevance))[:MAX_ROWS]
    return [
        {
            "feature": clean(result.feature_names[j]),
            "rank": rank.get(j),
            "relevance": float(result.relevance[j]),
            "error": float(error[j]) if np.isfinite(error[j]) else None,
            "q_value": float(result.q_value[j]) if np.isfinite(result.q_value[j]) else None,
        }
        for j in order.tolist()
    ]


def _describe_sufficient(result: Result, selected: Sequence[FeatureExplanation]) -> str:
    """Say in a sentence how many of the selected features are significant."""
    if selected and selected[0].q_value is None:
        return "The significance of the features was not computed."
    significant = sum(line.is_significant for line in selected)
    if significant < len(selected):
        return f"{significant} of {len(selected)} selected features are significant."
    limited = result.settings["n_features_to_select"] != "auto" and significant < len(result.weights)
    return f"All {significant} selected features are significant{'; select more to find others' if limited else ''}."


def _describe_target(result: Result) -> dict[str, Any] | None:
    """Describe the distribution of a numeric target."""
    if len(result.classes) or not len(result.quantiles):
        return None
    values = result.quantiles.tolist()
    low, high = values[BOX[0]], values[BOX[-1]]
    width = (high - low) or 1.0
    return {
        "quantiles": [(share, format_number(values[i])) for i, share in QUANTILES.items()],
        "at": [round(STRIP_WIDTH * (values[i] - low) / width, 1) for i in BOX],
        "description": f"half of the rows have {format_number(values[5])} to {format_number(values[15])}",
    }
