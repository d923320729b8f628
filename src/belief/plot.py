"""Pictures of a Result, or of a Comparison, on matplotlib axes, for notebooks and papers.

>>> import belief
>>> belief.plot.ranking(result)  # doctest: +SKIP

Each function draws on the axes it is given, or on new ones, and returns them. matplotlib is the extra `report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from belief.method.arrays import Array
from belief.progress import LABELS
from belief.report.canvas import (
    LEFT,
    LINES,
    MARK,
    RELEVANCE,
    SCORE,
    drawing,
    frames,
    heat,
    height,
    left_off,
    legend,
    quiet,
    say,
)
from belief.report.drawings import distribution, how_many
from belief.report.groups import LEVEL, groups_of
from belief.report.standings import comparison
from belief.report.words import NO_REDUNDANCY, NO_TIMINGS, ONE_BATCH, ONE_FEATURE, seconds, told_apart
from belief.result.explanation import FeatureExplanation
from belief.result.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "comparison",
    "distribution",
    "how_many",
    "ranking",
    "redundancy",
    "relevance_redundancy",
    "settling",
    "timings",
]

TOP = 30  # features in one picture
LETTERS = 28  # of a name


def ranking(result: Result, ax: Axes | None = None, *, top: int = TOP, letters: int = LETTERS) -> Axes:
    """Draw the relevance of each selected feature, two standard errors either way, and what is left of it, its score.

    A hollow bar: the feature cannot be told from noise.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    top : int, default=30
        The features shown, the first selected ones; the picture says when there are more.
    letters : int, default=28
        The length names are shortened to.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.ranking(result)
    """
    lines = result.explain()[: min(top, len(result.selected))]
    place = np.arange(len(lines))
    w, J, error = _column(lines, "relevance"), _column(lines, "score"), _column(lines, "error")
    with drawing(ax, height(len(lines))) as ax:
        drawn = _relevance_bars(ax, lines, place, w)
        if result.settings["redundancy"] is not None:
            drawn.append(ax.barh(place, J, height=0.24, color=SCORE, label="score"))
        if np.isfinite(error).any():
            drawn.append(
                ax.errorbar(w, place, xerr=2 * error, fmt="none", ecolor=MARK, capsize=2.5, label="± 2 standard errors")
            )
        if len(drawn) > 1:
            legend(ax, drawn)
        ax.axvline(0, color=LEFT, linewidth=0.8, zorder=0.5)
        ax.set_yticks(place, _ranked([(line["rank"], line["feature"]) for line in lines], letters))
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ends = np.nan_to_num(2 * error)
        ax.set_xlim(1.04 * min(0, J.min(), (w - ends).min()) - 0.02, 1.02 * max((w + ends).max(), 0.01))
        ax.set_xlabel("relevance")
        quiet(ax, grid="x")
        left_off(ax, len(lines), len(result.selected))
    return ax


def relevance_redundancy(result: Result, ax: Axes | None = None, *, top: int = TOP) -> Axes:
    """Draw relevance against what the features selected before leave of it, of the selected and of those left.

    The selected ones carry their rank. On the dashed line a feature has the score of the last one selected. Of a result
    of mCR it is drawn against what mCR subtracts, and the dashed line is a score of 0.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    top : int, default=30
        The selected features and the ones left that are shown; the picture says when there are more.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.relevance_redundancy(result)
    """
    lines, n = result.explain(), len(result.selected)
    taken, left = lines[:n][:top], lines[n:][:top]
    with drawing(ax, 4.4) as ax:
        if result.settings["redundancy"] is None:
            return say(ax, NO_REDUNDANCY)
        across = _across_keeps if result.settings["redundancy"] == "agreement" else _across_subtracted
        x = across(ax, result, [*taken, *left])
        y = _column([*taken, *left], "relevance")
        cut = len(taken)
        open_ = ax.scatter(x[cut:], y[cut:], s=34, facecolors="none", edgecolors=LEFT, label="left")
        full = ax.scatter(x[:cut], y[:cut], s=130, color=SCORE, linewidths=0, label="selected, by rank")
        for t in reversed(np.flatnonzero(np.isfinite(x[:cut])).tolist()):
            ax.annotate(str(t + 1), (x[t], y[t]), ha="center", va="center", fontsize=7.5, color="#ffffff")
        ax.set(ylabel="relevance", ylim=(-0.06, 1.08))
        quiet(ax, grid="both")
        legend(ax, [full, open_] if left else [full])
        left_off(ax, cut, n)
    return ax


def redundancy(
    result: Result, ax: Axes | None = None, *, top: int = TOP, letters: int = LETTERS, level: float = LEVEL
) -> Axes:
    """Draw how far the selected features agree, from 0 to 1, those of a group side by side and framed.

    Of a result of mCR it is how much each repeats each other, relative to all that were watched, without frames.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    top : int, default=30
        The features shown, the first selected ones; the picture says when there are more.
    letters : int, default=28
        The length names are shortened to.
    level : float, default=0.5
        Features that agree at this level or more, on average, are a group.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.redundancy(result)
    """
    n, agrees = min(top, len(result.selected)), result.settings["redundancy"] == "agreement"
    with drawing(ax, height(n, 0.24) + 0.8) as ax:
        if result.settings["redundancy"] is None or n == 1:
            return say(ax, NO_REDUNDANCY if n > 1 else ONE_FEATURE)
        groups = [[i for i in group if i < n] for group in groups_of(result.redundancy, level)]
        order = [i for group in groups for i in group]
        shown = result.redundancy[np.ix_(order, order)].T  # a line: what this feature repeats of each other
        heat(ax, shown)
        if agrees:
            frames(ax, [len(group) for group in groups])
        ax.set_yticks(range(n), _ranked([(i + 1, result.selected_names[i]) for i in order], letters))
        ax.set_xticks(
            range(n), [str(i + 1) for i in order], rotation=90 if n > 10 else 0, size="small" if n > 10 else None
        )
        ax.set_xlabel("agreement with the feature of this rank" if agrees else "repeats the feature of this rank (mCR)")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        left_off(ax, n, len(result.selected))
    return ax


def settling(result: Result, ax: Axes | None = None, *, top: int = TOP, letters: int = LETTERS) -> Axes:
    """Draw the places of the selected features among one another, by weight, after each batch.

    A hollow point: the feature was not among the largest weights (on the watch list) then.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    top : int, default=30
        The features shown, the first selected ones; the picture says when there are more.
    letters : int, default=28
        The length names are shortened to.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.settling(result)
    """
    n = min(top, len(result.selected))
    with drawing(ax, height(n)) as ax:
        if len(result.history) < 2:
            return say(ax, ONE_BATCH)
        place, listed = _places(result.history, result.selected[:n])
        batch = np.arange(1, len(place) + 1)
        small, behind = 5 if len(batch) <= 12 else 2.5, ax.figure.get_facecolor()
        for i in range(n):
            color, on = LINES[int(place[-1, i] - 1) % len(LINES)], listed[:, i]
            ax.plot(batch, place[:, i], "-", color=color, linewidth=1.8, solid_joinstyle="round")
            ax.plot(batch[on], place[on, i], "o", color=color, markersize=small)
            ax.plot(batch[~on], place[~on, i], "o", color=color, markersize=small, markerfacecolor=behind)
        ax.yaxis.tick_right()
        ax.set_yticks(place[-1], told_apart(result.selected_names[:n], letters))
        ax.set_ylim(n + 0.6, 0.4)
        ax.set_xlabel("after batch")
        ax.locator_params(axis="x", integer=True)
        quiet(ax, grid="x")
        left_off(ax, n, len(result.selected))
    return ax


def timings(result: Result, ax: Axes | None = None) -> Axes:
    """Draw the seconds each phase took.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.timings(result)
    """
    phases, took = list(result.timings), list(result.timings.values())
    with drawing(ax, height(len(phases))) as ax:
        if not phases:
            return say(ax, NO_TIMINGS)
        bars = ax.barh(range(len(phases)), took, height=0.62, color=RELEVANCE)
        ax.bar_label(bars, [seconds(s) for s in took], padding=4)
        ax.set_yticks(range(len(phases)), [LABELS.get(phase, phase) for phase in phases])
        ax.set(ylim=(len(phases) - 0.4, -0.6), xlim=(0, 1.18 * max(took)), xlabel="seconds")
        quiet(ax)
    return ax


def _ranked(features: Sequence[tuple[int, str]], letters: int) -> list[str]:
    """Names, each with its rank."""
    names = told_apart([name for _, name in features], letters)
    return [f"{name}\u2002{rank}" for name, (rank, _) in zip(names, features, strict=True)]


def _column(lines: Sequence[FeatureExplanation], key: str) -> Array:
    """One number of each line; NaN where it is not known."""
    return np.array([np.nan if line[key] is None else line[key] for line in lines], float)


def _relevance_bars(ax: Axes, lines: Sequence[FeatureExplanation], place: Array, w: Array) -> list[Any]:
    """Full bars of the features that can be told from noise, hollow ones of the others."""
    noise = np.array([not line.is_significant for line in lines])
    hollow = {"facecolor": "none", "edgecolor": LEFT, "linestyle": (0, (3, 2)), "label": "may be noise"}
    kinds: list[tuple[Array, dict[str, Any]]] = [(~noise, {"color": RELEVANCE, "label": "relevance"}), (noise, hollow)]
    return [ax.barh(place[which], w[which], height=0.72, **style) for which, style in kinds if which.any()]


def _across_keeps(ax: Axes, result: Result, lines: Sequence[FeatureExplanation]) -> Array:
    """The share of its relevance that each keeps, in per cent, and where the score is that of the last selected."""
    keeps, last = 100 * _column(lines, "unique_share"), float(result.scores[-1])
    if last > 0:
        y = np.linspace(last, 1.08, 200)
        ax.plot(100 * last / y, y, color=LEFT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
    ax.set(xlabel="the share of its relevance that it keeps, in %", xlim=(-4, 106))
    return keeps


def _across_subtracted(ax: Axes, result: Result, lines: Sequence[FeatureExplanation]) -> Array:
    """What mCR subtracts from each, and where nothing is left."""
    subtracted = _column(lines, "relevance") - _column(lines, "score")
    ax.axline((0, 0), slope=1, color=LEFT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
    ax.set(xlabel="what mCR subtracts from it", xlim=(-0.04, max(0.3, 1.08 * float(subtracted.max()))))
    return subtracted


def _places(history: Array, features: Array) -> tuple[Array, Array]:
    """The place of each feature among these after each batch, and whether it was listed; if not it comes last."""
    at = history[:, :, None] == features
    listed = at.any(axis=1)
    rank = np.where(listed, at.argmax(axis=1), history.shape[1])
    return rank.argsort(axis=1, kind="stable").argsort(axis=1) + 1, listed
