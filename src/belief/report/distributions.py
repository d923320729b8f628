"""The distributions of the selected features for the report: box plots or bars, and their direction in words."""

from __future__ import annotations

from typing import Any

from belief.method.distributions import FeatureDistribution
from belief.method.targets import CLASSIFICATION
from belief.report.text import clean, format_number, format_percent_of
from belief.result.result import Result

MIN_DIFFERENCE = 0.08  # smaller differences between two groups, in mean ranks or in shares, are not a direction
STRIP_WIDTH = 200  # width of a box plot or bar, in units of the SVG
FIFTHS = ("lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth")
MIN_SPREAD_RATIO = 1.5  # of the interquartile ranges of two classes
NO_DIRECTION = "no univariate direction"
DIFFERS = "differs with the target, but not in one direction"


def find_distribution(result: Result, feature: int) -> FeatureDistribution | None:
    """Return the distribution of a feature; None if the result does not contain it."""
    return next((each for each in result.distributions if each.feature == feature), None)


def describe_distribution(result: Result, distribution: FeatureDistribution) -> dict[str, Any]:
    """Return what the report shows of a feature: type, missing values, direction, and a strip for each group.

    A strip is a box plot for numbers, and a bar for categories.
    """
    strips = _bars if distribution.levels else _boxes
    return {
        "feature": clean(result.feature_names[distribution.feature]),
        "rank": result.selected.tolist().index(distribution.feature) + 1,
        "type": "categories" if distribution.discrete else "two values" if distribution.levels else "numbers",
        "missing": format_percent_of(distribution.missing),
        "direction": describe_direction(result, distribution),
        "levels": [clean(level) for level in distribution.levels],
        "strips": strips(result, distribution),
        "ends": [format_number(x) for x in _value_range(distribution)],
    }


def group_names(result: Result, distribution: FeatureDistribution) -> list[str]:
    """Return the names of the groups of a distribution: classes, or fifths of a numeric target."""
    names = [clean(c) for c in result.classes] if result.task == CLASSIFICATION else FIFTHS
    return [names[g] for g in distribution.groups]


def _value_range(distribution: FeatureDistribution) -> tuple[float, float]:
    """Return the smallest and the largest value in the box plots of a feature."""
    if not distribution.quantiles:
        return 0.0, 1.0
    low, high = min(q[0] for q in distribution.quantiles), max(q[-1] for q in distribution.quantiles)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _boxes(result: Result, distribution: FeatureDistribution) -> list[dict[str, Any]]:
    """Return a box plot for each group, as the positions of the 5, 25, 50, 75 and 95 % quantiles."""
    low, high = _value_range(distribution)
    return [
        {
            "group": name,
            "at": [round(STRIP_WIDTH * (x - low) / (high - low), 1) for x in quantiles],
            "description": "{0}: median {3}, middle half {2} to {4}".format(name, *map(format_number, quantiles)),
        }
        for name, quantiles in zip(group_names(result, distribution), distribution.quantiles, strict=True)
    ]


def _bars(result: Result, distribution: FeatureDistribution) -> list[dict[str, Any]]:
    """Return a stacked bar for each group, with the shares of the levels."""
    strips = []
    for name, shares in zip(group_names(result, distribution), distribution.shares, strict=True):
        start, parts = 0.0, []
        for share in shares:
            parts.append((round(STRIP_WIDTH * start, 1), round(STRIP_WIDTH * share, 1)))
            start += share
        levels = zip(distribution.levels, shares, strict=True)
        listed = ", ".join(f"{clean(x)} {format_percent_of(s)}" for x, s in levels)
        strips.append({"group": name, "parts": parts, "description": f"{name}: {listed}"})
    return strips


# --- the direction ---


def describe_direction(result: Result, distribution: FeatureDistribution) -> str:
    """Describe in words how a feature by itself depends on the target, such as "rises with the target"."""
    if distribution.levels:
        found = _compare_shares(result, distribution)
    elif len(distribution.ranks) < 2:
        return ""
    elif result.task == CLASSIFICATION:
        found = _compare_classes(group_names(result, distribution), distribution)
    else:
        found = _compare_fifths(distribution.ranks)
    differs = bool(result.p_univariate[distribution.feature] < result.settings["alpha"])
    return found or (DIFFERS if differs else NO_DIRECTION)


def _compare_classes(names: list[str], distribution: FeatureDistribution) -> str:
    """Describe in which class the values are highest or, if mean ranks are similar, most spread out; "" if in none."""
    ranks, spread = distribution.ranks, [q[3] - q[1] for q in distribution.quantiles]
    high, low = ranks.index(max(ranks)), ranks.index(min(ranks))
    if ranks[high] - ranks[low] >= MIN_DIFFERENCE:
        lowest = f", lowest in {names[low]}" if len(names) > 2 else ""
        return f"{'highest' if len(names) > 2 else 'higher'} in {names[high]}{lowest}"
    wide, narrow = spread.index(max(spread)), spread.index(min(spread))
    if spread[wide] >= MIN_SPREAD_RATIO * spread[narrow]:
        return f"more spread out in {names[wide]} than in {names[narrow]}"
    return ""


def _compare_fifths(ranks: list[float]) -> str:
    """Describe how the mean rank changes from the lowest to the highest fifth of the target; "" if it does not."""
    first, middle, last = ranks[0], ranks[len(ranks) // 2], ranks[-1]
    if min(first, last) - middle > MIN_DIFFERENCE or middle - max(first, last) > MIN_DIFFERENCE:
        return f"{'lowest' if middle < first else 'highest'} for middle values of the target"
    if abs(last - first) < MIN_DIFFERENCE:
        return ""
    return "rises with the target" if last > first else "falls as the target rises"


def _compare_shares(result: Result, distribution: FeatureDistribution) -> str:
    """Describe the level whose share differs most between two groups; "" if no share differs."""
    if len(distribution.shares) < 2:
        return ""
    columns = list(zip(*distribution.shares, strict=True))
    differences = [max(column) - min(column) for column in columns]
    largest = differences.index(max(differences))
    if differences[largest] < MIN_DIFFERENCE:
        return ""
    names, column = group_names(result, distribution), columns[largest]
    high, low = column.index(max(column)), column.index(min(column))
    the = "" if result.task == CLASSIFICATION else "the "
    parts = [f"{format_percent_of(column[g])} of {the}{names[g]}" for g in (high, low)]
    return f"{clean(distribution.levels[largest])!r}: {', '.join(parts)}"
