"""Two more pictures of `belief.plot`: how a feature is distributed, and how many features suffice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from belief.method.arrays import Array
from belief.method.distributions import FeatureDistribution
from belief.report.canvas import LEFT, LINES, MARK, RELEVANCE, SCORE, drawing, height, left_off, legend, quiet, say
from belief.report.portraits import direction, group_names, portrait_of
from belief.report.words import NO_PORTRAIT, percent_of, short
from belief.result.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TWENTIETH = 1.645  # standard deviations of noise, which one feature of noise in twenty exceeds
TOP = 100  # features of the curve


def distribution(result: Result, feature: str | int, ax: Axes | None = None, *, letters: int = 28) -> Axes:
    """Draw how a selected feature is distributed in each class, or in each fifth of a numeric target.

    Of numbers, a box holds the middle half of the sampled rows of a class, its line the middle 90 %, its mark is the
    median; of names, bars show how frequent each is.

    Parameters
    ----------
    result : Result
    feature : str or int
        The name or the index of one of the selected features, the first 100 of them.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    letters : int, default=28
        The length names are shortened to.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=4, random_state=0)
    >>> ax = belief.plot.distribution(result, "support_calls")
    """
    line = result.explain(feature)
    portrait = portrait_of(result, line.index)
    with drawing(ax, height(len(portrait.groups) if portrait else 2, 0.34)) as ax:
        if portrait is None:
            return say(ax, NO_PORTRAIT)
        (_draw_names if portrait.discrete else _draw_numbers)(ax, portrait, letters)
        place = np.arange(len(portrait.groups))
        ax.set_yticks(place, [short(name, letters) for name in group_names(result, portrait)])
        ax.set_ylim(len(place) - 0.4, -0.6)
        missing = f", {percent_of(portrait.missing)} missing" if portrait.missing else ""
        says = direction(result, portrait)
        ax.set_xlabel(f"{short(line.feature, letters)}{missing}" + (f"\n{says}" if says else ""))
        quiet(ax, grid="x")
    return ax


def _draw_numbers(ax: Axes, portrait: FeatureDistribution, letters: int) -> None:
    for place, (low, left, middle, right, high) in enumerate(portrait.quantiles):
        ax.plot([low, high], [place, place], color=LEFT, linewidth=1.2, solid_capstyle="butt")
        ax.barh(place, right - left, left=left, height=0.5, color=RELEVANCE)
        ax.plot([middle, middle], [place - 0.25, place + 0.25], color=MARK, linewidth=2, solid_capstyle="butt")


def _draw_names(ax: Axes, portrait: FeatureDistribution, letters: int) -> None:
    start, drawn = np.zeros(len(portrait.shares)), []
    for i, level in enumerate(portrait.levels):
        share = np.array([shares[i] for shares in portrait.shares])
        bars = ax.barh(np.arange(len(share)), share, left=start, height=0.6, color=LINES[i % len(LINES)])
        bars.set_label(short(level, letters))
        drawn.append(bars)
        start = start + share
    ax.set_xlim(0, 1)
    legend(ax, drawn)


def how_many(result: Result, ax: Axes | None = None, *, top: int = TOP) -> Axes:
    """Draw what each further feature adds: its score, two standard errors either way, and the relevance it keeps.

    Noise exceeds the dashed line in one case of twenty: below it a feature adds nothing that can be told from noise.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    top : int, default=100
        The features shown, the first selected ones; the picture says when there are more.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=8, random_state=0)
    >>> ax = belief.plot.how_many(result)
    """
    n = min(top, len(result.selected))
    number, features, score = np.arange(1, n + 1), result.selected[:n], result.scores[:n]
    keeps, line = kept_of(result)[:n], noise_line(result)[:n]
    error = result.error_of_relevance[features] * np.nan_to_num(keeps, nan=1.0)
    with drawing(ax, 3.6) as ax:
        drawn: list[Any] = []
        if result.settings["redundancy"] == "agreement":
            drawn += ax.plot(
                number, keeps, "o", color=LEFT, markersize=3.5, markerfacecolor="none", label="unique share"
            )
        drawn += ax.plot(number, score, "o-", color=SCORE, markersize=4, linewidth=1.4, label="score")
        if np.isfinite(error).any():
            drawn.append(ax.errorbar(number, score, yerr=2 * error, fmt="none", ecolor=RELEVANCE, zorder=0.9,
                                     label="± 2 standard errors"))  # fmt: skip
            drawn += ax.plot(number, line, color=MARK, linestyle=(0, (4, 3)), linewidth=1.2, label="noise")
        ax.set(xlabel="features selected", ylabel="score", xlim=(0.5, n + 0.5))
        ax.locator_params(axis="x", integer=True)
        quiet(ax, grid="y")
        legend(ax, drawn)
        left_off(ax, n, len(result.selected))
    return ax


def kept_of(result: Result) -> Array:
    """The share of its relevance that each selected feature keeps; NaN where there is none to keep."""
    relevance = result.relevance[result.selected]
    unknown = np.full(len(relevance), np.nan)
    return np.divide(result.scores, relevance, out=unknown, where=relevance > 0)


def noise_line(result: Result) -> Array:
    """The score that noise in each selected feature's place exceeds in one case of twenty, if it repeats as much."""
    spread = np.where(result.noise_spread > 0, result.noise_spread, np.nan)  # of older results nobody knows it
    line = result.relevance_of(result.noise + TWENTIETH * spread)[result.selected]
    return line * np.nan_to_num(kept_of(result), nan=1.0) if result.settings["redundancy"] == "agreement" else line
