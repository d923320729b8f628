"""What the page says beside the ranking: all features, distributions, how many suffice, names to copy, the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from belief.report.portraits import WIDTH, shown
from belief.report.words import clean, count, figure
from belief.result.explanation import FeatureExplanation
from belief.result.result import Result

ROWS = 1_000  # of the table of all features
QUANTILES = {0: "0 %", 1: "5 %", 5: "25 %", 10: "50 %", 15: "75 %", 19: "95 %", 20: "100 %"}  # of those that are kept
BOX = (1, 5, 10, 15, 19)


def more_of(result: Result, taken: list[FeatureExplanation]) -> dict[str, Any]:
    """All of it."""
    names = [str(name) for name in result.selected_names]
    return {
        "portraits": [shown(result, each) for each in result.distributions],
        "everything": everything(result),
        "enough": enough(result, taken),
        "names_python": repr(names),
        "names_text": "\n".join(clean(name) for name in names),
        "target": target_of(result),
    }


def told_from(result: Result) -> str:
    """From what the features were selected, and for what."""
    rows = count(result.n_rows, "row")
    if len(result.classes):
        return f"{rows} in {count(len(result.classes), 'class', 'classes')}"
    ends = [figure(x) for x in result.quantiles[[0, -1]].tolist()]
    return f"{rows}, to predict a number from {ends[0]} to {ends[1]}"


def everything(result: Result) -> list[dict[str, Any]]:
    """A few numbers of every feature, also of those that were never watched; the most relevant first."""
    rank = {int(j): i for i, j in enumerate(result.selected, 1)}
    error = result.error_of_relevance
    order = np.lexsort((np.arange(len(result.weights)), -result.weights, -result.relevance))[:ROWS]
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


def enough(result: Result, taken: list[FeatureExplanation]) -> str:
    """How many of the selected can be told from noise, in a sentence."""
    if taken and taken[0].q_value is None:
        return "An older version did not find out how sure each of them is."
    told = sum(line.is_significant for line in taken)
    if told == len(taken):
        asked = result.settings["n_features_to_select"] != "auto" and told < len(result.weights)
        return f"All {told} can be told from noise{': more might be, if more were asked for' if asked else ''}."
    return f"{told} of {len(taken)} can be told from noise; the others add nothing that can."


def target_of(result: Result) -> dict[str, Any] | None:
    """Of a number to predict, how it is distributed."""
    if len(result.classes) or not len(result.quantiles):
        return None
    values = result.quantiles.tolist()
    low, high = values[BOX[0]], values[BOX[-1]]
    width = (high - low) or 1.0
    return {
        "quantiles": [(share, figure(values[i])) for i, share in QUANTILES.items()],
        "at": [round(WIDTH * (values[i] - low) / width, 1) for i in BOX],
        "says": f"half of the rows have {figure(values[5])} to {figure(values[15])}",
    }
