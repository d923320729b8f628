"""The distributions of the selected features as page and notebooks show them, and in which direction each goes."""

from __future__ import annotations

from typing import Any

from belief.method.distributions import FeatureDistribution
from belief.method.targets import CLASSIFICATION
from belief.report.words import clean, figure, percent_of
from belief.result.result import Result

APART = 0.08  # of the mean ranks of two groups, from where on it is said that one is higher
WIDTH = 200  # of a strip, in its own units
FIFTHS = ("lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth")


def portrait_of(result: Result, feature: int) -> FeatureDistribution | None:
    """What is known of the distribution of a feature."""
    return next((each for each in result.distributions if each.feature == feature), None)


def shown(result: Result, portrait: FeatureDistribution) -> dict[str, Any]:
    """One feature: its type, what is missing, in which direction it goes, and a strip for each group."""
    return {
        "feature": clean(result.feature_names[portrait.feature]),
        "rank": result.selected.tolist().index(portrait.feature) + 1,
        "type": "names" if portrait.discrete else "numbers",
        "missing": percent_of(portrait.missing),
        "direction": direction(result, portrait),
        "levels": [clean(level) for level in portrait.levels],
        "strips": _bars(result, portrait) if portrait.discrete else _boxes(result, portrait),
        "ends": [figure(x) for x in ends(portrait)],
    }


def group_names(result: Result, portrait: FeatureDistribution) -> list[str]:
    """What the groups are called: classes, or fifths of the numbers to predict."""
    names = [clean(c) for c in result.classes] if result.task == CLASSIFICATION else FIFTHS
    return [names[g] for g in portrait.groups]


def ends(portrait: FeatureDistribution) -> tuple[float, float]:
    """The smallest and the largest number of the strips."""
    if not portrait.quantiles:
        return 0.0, 1.0
    low, high = min(q[0] for q in portrait.quantiles), max(q[-1] for q in portrait.quantiles)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _boxes(result: Result, portrait: FeatureDistribution) -> list[dict[str, Any]]:
    """The middle half of each group as a box, its middle 90 % as a line, its median as a mark."""
    low, high = ends(portrait)
    return [
        {
            "group": name,
            "at": [round(WIDTH * (x - low) / (high - low), 1) for x in quantiles],
            "says": "{0}: median {3}, middle half {2} to {4}".format(name, *map(figure, quantiles)),
        }
        for name, quantiles in zip(group_names(result, portrait), portrait.quantiles, strict=True)
    ]


def _bars(result: Result, portrait: FeatureDistribution) -> list[dict[str, Any]]:
    """The shares of the names in each group, side by side."""
    strips = []
    for name, shares in zip(group_names(result, portrait), portrait.shares, strict=True):
        start, parts = 0.0, []
        for share in shares:
            parts.append((round(WIDTH * start, 1), round(WIDTH * share, 1)))
            start += share
        told = ", ".join(f"{clean(x)} {percent_of(s)}" for x, s in zip(portrait.levels, shares, strict=True))
        strips.append({"group": name, "parts": parts, "says": f"{name}: {told}"})
    return strips


# --- the direction ---


def direction(result: Result, portrait: FeatureDistribution) -> str:
    """In which direction a feature goes by itself, in words."""
    if portrait.discrete:
        return _more_frequent(result, portrait)
    if len(portrait.ranks) < 2:
        return ""
    ordered = result.task != CLASSIFICATION
    return _along(portrait.ranks) if ordered else _higher(group_names(result, portrait), portrait.ranks)


def _higher(names: list[str], ranks: list[float]) -> str:
    high, low = ranks.index(max(ranks)), ranks.index(min(ranks))
    if ranks[high] - ranks[low] < APART:
        return "no direction of its own"
    least = f", lowest in {names[low]}" if len(names) > 2 else ""
    return f"{'highest' if len(names) > 2 else 'higher'} in {names[high]}{least}"


def _along(ranks: list[float]) -> str:
    """Of fifths of the numbers to predict, by the first, the middle and the last."""
    first, middle, last = ranks[0], ranks[len(ranks) // 2], ranks[-1]
    if min(first, last) - middle > APART or middle - max(first, last) > APART:
        return f"{'lowest' if middle < first else 'highest'} where the target is in its middle"
    if abs(last - first) < APART:
        return "no direction of its own"
    return "rises with the target" if last > first else "falls as the target rises"


def _more_frequent(result: Result, portrait: FeatureDistribution) -> str:
    """The name whose shares differ most between two groups."""
    if len(portrait.shares) < 2 or not portrait.levels:
        return ""
    columns = list(zip(*portrait.shares, strict=True))
    apart = [max(column) - min(column) for column in columns]
    best = apart.index(max(apart))
    names, column = group_names(result, portrait), columns[best]
    if apart[best] < APART:
        return "no direction of its own"
    high, low = column.index(max(column)), column.index(min(column))
    return (
        f"{clean(portrait.levels[best])} is more frequent in {names[high]} ({percent_of(column[high])})"
        f" than in {names[low]} ({percent_of(column[low])})"
    )
