"""The content of the report, collected in one plain dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

import belief
from belief.method.arrays import Array
from belief.method.settings import Settings
from belief.progress import LABELS
from belief.report.distributions import STRIP_WIDTH, describe_distribution
from belief.report.findings import list_findings
from belief.report.text import clean, count, format_number
from belief.result.explanation import MIN_AGREEMENT, FeatureExplanation, is_worth_more
from belief.result.result import Result

if TYPE_CHECKING:
    from belief.comparison.curve import SizeCurve

MAX_ROWS = 1_000  # of a table; longer tables are cut
MAX_CLASSES = 20
GROUP_LEVEL = 0.5  # the minimum of the average redundancy in a group
# positions in Result.quantiles, and their names
QUANTILES = {0: "0 %", 1: "5 %", 5: "25 %", 10: "50 %", 15: "75 %", 19: "95 %", 20: "100 %"}
BOX = (1, 5, 10, 15, 19)  # the positions of the quantiles that a box plot shows


def collect_content(result: Result, title: str | None = None, curve: SizeCurve | None = None) -> dict[str, Any]:
    """Return everything that the page shows. Names contain no line breaks, but are not escaped yet."""
    lines = [clean_texts(line) for line in result.explain()]
    n = len(result.selected)
    selected, others = lines[:n], lines[n:]
    known = {line.index for line in lines}  # selected or watched; the other features follow, by rank
    rest = [j for j in np.argsort(result.ranking, kind="stable").tolist() if j not in known]
    others += [clean_texts(result.explain(j)) for j in rest[: max(0, MAX_ROWS - len(others))]]
    facts = {  # in the header of the page
        "Target": result.about.get("target"),
        "Data": result.about.get("source"),
        "Size": f"{count(result.n_rows, 'row')}, {count(len(result.weights), 'feature')}",
        "Task": _describe_task(result),
        "Date": result.about.get("date"),
    }
    shares = zip(result.classes, result.priors.tolist(), strict=True)
    classes = [{"name": clean(c), "share": P, "rows": round(P * result.n_rows)} for c, P in shares]
    target = None  # the distribution of a numeric target, as quantiles and positions in a bar
    if len(result.quantiles) and not len(result.classes):
        values = result.quantiles.tolist()
        low, high = values[BOX[0]], values[BOX[-1]]
        target = {
            "quantiles": [(share, format_number(values[i])) for i, share in QUANTILES.items()],
            "at": [round(STRIP_WIDTH * (values[i] - low) / ((high - low) or 1.0), 1) for i in BOX],
            "description": f"half of the values are from {format_number(values[5])} to {format_number(values[15])}",
        }
    definitions = {f.name: f for f in Settings.definitions()}
    settings = [
        {
            "name": name,
            "value": clean(value),
            "default": name in definitions and definitions[name].default == value,
            "doc": definitions[name].metadata["doc"] if name in definitions else "",
        }
        for name, value in result.settings.items()
    ]
    distributions = {each.feature: describe_distribution(result, each) for each in result.distributions}
    # bars and the error bars of the selected features fit into this range of relevance
    errors = [(line.relevance, 2 * (line.error or 0.0)) for line in selected]
    scores = [line.score for line in [*selected, *others] if line.score is not None]
    low, high = min(0.0, *scores, *(x - e for x, e in errors)), max(0.01, *(x + e for x, e in errors))

    def scale(x: float) -> float:
        return round(STRIP_WIDTH * min(max((x - low) / (high - low), 0.0), 1.0), 1)

    content: dict[str, Any] = {
        "title": clean(title) if title else "Features selected with BELIEF",
        "version": belief.__version__,
        "run": describe_run(result),
        "facts": [(name, clean(value)) for name, value in facts.items() if value],
        "classes": sorted(classes, key=lambda c: -c["share"])[:MAX_CLASSES],
        "settings": settings,
        "columns": table_columns(result, lines),
        "selected": selected[:MAX_ROWS],
        "n_selected": n,
        "others": others[:MAX_ROWS],
        "n_others": len(result.weights) - n,
        "scale": scale,
        "directions": {j: each["direction"] for j, each in distributions.items()},
        "alpha": result.settings["alpha"],
        "has_overlaps": bool((result.redundancy >= MIN_AGREEMENT).any()),
        "timings": [(LABELS.get(phase, phase), float(s)) for phase, s in result.timings.items()],
        "distributions": [*distributions.values()],
        "names_python": repr(result.selected_names),
        "names_text": "\n".join(_clean_names(result, result.selected)),
        "target": target,
        "half_samples": result.stability,
        "curve": curve,
        **collect_findings(result, lines),
    }
    content["pictures"] = _list_figures(result, content)
    return {**content, "sections": _list_sections(content)}


def collect_findings(result: Result, lines: Sequence[FeatureExplanation]) -> dict[str, Any]:
    """Return the findings, which are sentences about the result, and the values on which they are based."""
    n = len(result.selected)
    partners: dict[str, list[str]] = {}  # features that would be selected if they were not redundant, by partner
    for line in lines[n:]:
        is_lower = line.score is not None and line.score < line.relevance
        if line.is_significant and is_lower and is_worth_more(result, line):
            partners.setdefault(str(line.redundant_with), []).append(line.feature)
    groups: list[list[int]] = []  # of two or more redundant features, sorted by rank
    if result.rule.presentation.has_absolute_scale:
        groups = sorted(sorted(group) for group in group_redundant(result.redundancy) if len(group) > 1)
    stability = None  # how the batches changed the top features
    if len(result.history) > 1:
        n_top = min(n, result.history.shape[1])
        top = [set(batch[:n_top].tolist()) for batch in result.history]
        batch = len(top)  # after which the top features stayed the same
        while batch > 1 and top[batch - 2] == top[-1]:
            batch -= 1
        stability = {"n": n_top, "batch": batch, "changed": len(top[-1] - top[-2])}
    content: dict[str, Any] = {
        "measure": asdict(result.rule.presentation),
        "all_selected": lines[:n],
        "redundant_with": sorted(partners.items(), key=lambda item: -len(item[1])),
        "group_level": GROUP_LEVEL,
        "groups": [_clean_names(result, result.selected[group]) for group in groups],
        "stability": stability,
    }
    return {**content, "findings": list_findings(result, content)}


def table_columns(result: Result, lines: Sequence[FeatureExplanation]) -> list[str]:
    """Return the columns of the table of features; columns without values in this result are omitted."""
    known = [key for key in ("q_value", "unique_share") if any(line[key] is not None for line in lines)]
    return ["relevance", *known, *(["score"] if result.rule.presentation.name else [])]


def clean_texts(line: FeatureExplanation) -> FeatureExplanation:
    """Return an explanation whose texts contain no line breaks or control characters."""
    texts: dict[str, Any] = {name: clean(value) for name, value in vars(line).items() if isinstance(value, str)}
    return replace(line, **texts)


def describe_run(result: Result) -> dict[str, Any]:
    """Return the numbers and texts that describe the table, the sample and the search."""
    return {
        "rows": result.n_rows,
        "features": len(result.weights),
        "constant": len(result.constant),
        "classes": len(result.classes),
        "source": f"{count(result.n_rows, 'row')}, {_describe_task(result)}",
        "sample": result.sample_size,
        "sampling": result.settings["sampling"],
        "stop_reason": result.stop_reason,
        "neighbours": result.n_neighbors,
        "per_class": result.settings["neighborhood"] == "per_class",
        "batches": len(result.history),
        "pairs": int(result.n_pairs),
        "probe": result.probe,
        "seed": result.seed,
    }


def group_redundant(redundancy: Array, level: float = GROUP_LEVEL) -> list[list[int]]:
    """Divide features into groups whose average redundancy with each other is at least `level`.

    `redundancy[a, b]` is the redundancy of feature b with feature a. The groups are sorted so that adjacent groups are
    similar, and adjacent features within a group, too.
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


def _list_sections(content: dict[str, Any]) -> dict[str, str]:
    sections = {
        "ranking": "Ranking",
        "others": "Features not selected",
        "scores": "How many features suffice",
        "interactions": "Interactions",
        "redundancy": content["measure"]["redundancy_title"],
        "by_class": "Relevance by class",
        "stability": "Stability of the selection",
        "distributions": "Distributions",
        "run": "Data, settings and timings",
    }
    is_shown = {
        "others": content["n_others"] > 0,
        "scores": content["curve"] is not None,
        "interactions": any(name.startswith("interaction") for name in content["pictures"]),
        **{name: name in content["pictures"] for name in ("redundancy", "by_class", "stability")},
        "distributions": bool(content["distributions"]),
    }
    return {name: title for name, title in sections.items() if is_shown.get(name, True)}


def _list_figures(result: Result, content: dict[str, Any]) -> list[str]:
    measure = content["measure"]
    has_redundancy = content["has_overlaps"] if measure["has_absolute_scale"] else content["n_selected"] > 1
    is_shown = {
        "score_by_size": content["curve"] is not None,
        "interactions": len(result.pairs) > 1 or bool(result.interactions and not result.pairs),
        **{f"interaction-{t}": True for t in range(len(result.pairs))},
        "redundancy": bool(measure["name"]) and has_redundancy,
        "by_class": len(result.classes) > 2 and bool(result.separations.size),
        "stability": result.stability is not None,
        "convergence": content["stability"] is not None,
        "timings": bool(content["timings"]),
    }
    return [name for name, shown in is_shown.items() if shown]


def _clean_names(result: Result, features: Iterable[int]) -> list[str]:
    return [clean(result.feature_names[j]) for j in features]


def _describe_task(result: Result) -> str:
    """Describe the task in words, such as "classification into 2 classes"."""
    if len(result.classes):
        return f"classification into {count(len(result.classes), 'class', 'classes')}"
    low, high = (format_number(x) for x in result.quantiles[[0, -1]].tolist())
    return f"regression, target from {low} to {high}"
