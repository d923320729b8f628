"""The distributions of the selected features for the report: box plots or bars, and how the target depends on each."""

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
    strips: list[dict[str, Any]] = []
    names, (low, high) = group_names(result, distribution), (0.0, 1.0)
    if distribution.quantiles:  # box plots, as the positions of the 5, 25, 50, 75 and 95 % quantiles
        low, high = min(q[0] for q in distribution.quantiles), max(q[-1] for q in distribution.quantiles)
        low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
    for name, quantiles in zip(names if distribution.quantiles else [], distribution.quantiles, strict=True):
        at = [round(STRIP_WIDTH * (x - low) / (high - low), 1) for x in quantiles]
        description = "{0}: median {3}, middle half {2} to {4}".format(name, *map(format_number, quantiles))
        strips.append({"group": name, "at": at, "description": description})
    for name, shares in zip(names if distribution.shares else [], distribution.shares, strict=True):  # stacked bars
        start, parts = 0.0, []
        for share in shares:
            parts.append((round(STRIP_WIDTH * start, 1), round(STRIP_WIDTH * share, 1)))
            start += share
        levels = zip(distribution.levels, shares, strict=True)
        listed = ", ".join(f"{clean(x)} {format_percent_of(s)}" for x, s in levels)
        strips.append({"group": name, "parts": parts, "description": f"{name}: {listed}"})
    return {
        "feature": clean(result.feature_names[distribution.feature]),
        "rank": result.selected.tolist().index(distribution.feature) + 1,
        "type": "categories" if distribution.discrete else "two values" if distribution.levels else "numbers",
        "missing": format_percent_of(distribution.missing),
        "direction": describe_direction(result, distribution),
        "levels": [clean(level) for level in distribution.levels],
        "strips": strips,
        "ends": [format_number(low), format_number(high)],
    }


def group_names(result: Result, distribution: FeatureDistribution) -> list[str]:
    """Return the names of the groups of a distribution: classes, or fifths of a numeric target."""
    names = [clean(c) for c in result.classes] if result.task == CLASSIFICATION else FIFTHS
    return [names[g] for g in distribution.groups]


# --- the direction ---


def describe_direction(result: Result, distribution: FeatureDistribution) -> str:
    """Describe in words how a feature by itself depends on the target, such as "rises with the target"."""
    names, ranks, found = group_names(result, distribution), distribution.ranks, ""
    if distribution.levels:
        if len(distribution.shares) > 1:  # the level whose share differs most between two groups
            columns = list(zip(*distribution.shares, strict=True))
            differences = [max(column) - min(column) for column in columns]
            largest = differences.index(max(differences))
            column, the = columns[largest], "" if result.task == CLASSIFICATION else "the "
            high, low = column.index(max(column)), column.index(min(column))
            if differences[largest] >= MIN_DIFFERENCE:
                parts = [f"{format_percent_of(column[g])} of {the}{names[g]}" for g in (high, low)]
                found = f"{clean(distribution.levels[largest])!r}: {', '.join(parts)}"
    elif len(ranks) < 2:
        return ""
    elif result.task == CLASSIFICATION:
        spread = [q[3] - q[1] for q in distribution.quantiles]
        high, low = ranks.index(max(ranks)), ranks.index(min(ranks))
        wide, narrow = spread.index(max(spread)), spread.index(min(spread))
        if ranks[high] - ranks[low] >= MIN_DIFFERENCE:
            lowest = f", lowest in {names[low]}" if len(names) > 2 else ""
            found = f"{'highest' if len(names) > 2 else 'higher'} in {names[high]}{lowest}"
        elif spread[wide] >= MIN_SPREAD_RATIO * spread[narrow]:
            found = f"more spread out in {names[wide]} than in {names[narrow]}"
    else:  # from the lowest to the highest fifth of the target
        first, middle, last = ranks[0], ranks[len(ranks) // 2], ranks[-1]
        if min(first, last) - middle > MIN_DIFFERENCE or middle - max(first, last) > MIN_DIFFERENCE:
            found = f"{'lowest' if middle < first else 'highest'} for middle values of the target"
        elif abs(last - first) >= MIN_DIFFERENCE:
            found = "rises with the target" if last > first else "falls as the target rises"
    differs = bool(result.p_univariate[distribution.feature] < result.settings["alpha"])
    return found or (DIFFERS if differs else NO_DIRECTION)
