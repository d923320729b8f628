"""Pictures of a Result on matplotlib axes, for notebooks and papers.

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
    PAID,
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
from belief.report.groups import LEVEL, groups_of
from belief.report.words import NO_REDUNDANCY, NO_TIMINGS, ONE_BATCH, ONE_FEATURE, seconds, short
from belief.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ranking", "redundancy", "relevance_redundancy", "settling", "timings"]

TOP = 30  # features in one picture
LETTERS = 28  # of a name


def ranking(result: Result, ax: Axes | None = None, *, top: int = TOP, letters: int = LETTERS) -> Axes:
    """Draw what each selected feature is worth: its relevance, less the redundancy it paid, is its score.

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
    """
    lines = result.explain()[: min(top, len(result.selected))]
    place = np.arange(len(lines))
    w, J = (np.array([line[key] for line in lines]) for key in ("relevance", "score"))
    with drawing(ax, height(len(lines))) as ax:
        drawn: list[Any] = [ax.barh(place, w, height=0.72, color=RELEVANCE, label="relevance")]
        if result.settings["redundancy"] is not None:
            drawn.append(ax.barh(place, w - J, left=J, height=0.2, color=PAID, label="paid"))
            drawn.append(ax.scatter(J, place, s=26, color=SCORE, linewidths=0, zorder=3, label="score"))
            ax.axvline(0, color=LEFT, linewidth=0.8, zorder=0.5)
            legend(ax, drawn)
        ax.set_yticks(place, [_ranked(line["rank"], line["feature"], letters) for line in lines])
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ax.set_xlim(1.04 * min(0, J.min()) - 0.02, 1.02 * max(w.max(), 0.01))
        ax.set_xlabel("relevance" if len(drawn) == 1 else "relevance less paid = score")
        quiet(ax, grid="x")
        left_off(ax, len(lines), len(result.selected))
    return ax


def relevance_redundancy(result: Result, ax: Axes | None = None, *, top: int = TOP) -> Axes:
    """Draw relevance against the redundancy paid, of the selected features (by rank) and of the watched ones left.

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
    """
    lines, n = result.explain(), len(result.selected)
    taken, left = lines[:n], lines[n:]
    with drawing(ax, 4.4) as ax:
        if result.settings["redundancy"] is None:
            return say(ax, NO_REDUNDANCY)
        open_ = ax.scatter(*_points(left[:top]), s=34, facecolors="none", edgecolors=LEFT, label="left")
        full = ax.scatter(*_points(taken[:top]), s=130, color=SCORE, linewidths=0, label="selected, by rank")
        for line in reversed(taken[:top]):
            ax.annotate(
                str(line["rank"]), (line["paid"], line["relevance"]), ha="center", va="center", fontsize=7.5,
                color="#ffffff",
            )  # fmt: skip
        ax.axline((0, 0), slope=1, color=LEFT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
        ax.set(xlabel="redundancy paid, or to be paid", ylabel="relevance", ylim=(-0.06, 1.08))
        ax.set_xlim(-0.04, max(0.3, 1.08 * max(line["paid"] for line in taken[:top] + left[:top])))
        quiet(ax, grid="both")
        legend(ax, [full, open_] if left else [full])
        left_off(ax, min(n, top), n)
    return ax


def redundancy(
    result: Result, ax: Axes | None = None, *, top: int = TOP, letters: int = LETTERS, level: float = LEVEL
) -> Axes:
    """Draw how much the selected features repeat one another, those of a group side by side and framed.

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
        Features that repeat one another at this level or more, on average, are a group.

    Returns
    -------
    matplotlib Axes
    """
    n = min(top, len(result.selected))
    with drawing(ax, height(n, 0.24) + 0.8) as ax:
        if result.settings["redundancy"] is None or n == 1:
            return say(ax, NO_REDUNDANCY if n > 1 else ONE_FEATURE)
        groups = [[i for i in group if i < n] for group in groups_of(result.redundancy, level)]
        order = [i for group in groups for i in group]
        shown = result.redundancy[np.ix_(order, order)].T  # a line: what this feature repeats of each other
        heat(ax, shown)
        frames(ax, [len(group) for group in groups])
        names = [_ranked(i + 1, result.selected_names[i], letters) for i in order]
        ax.set_yticks(range(n), names)
        ax.set_xticks(
            range(n), [str(i + 1) for i in order], rotation=90 if n > 10 else 0, size="small" if n > 10 else None
        )
        ax.set_xlabel("repeats the feature of this rank")
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
        names = [short(result.feature_names[j], letters) for j in result.selected[:n]]
        ax.yaxis.tick_right()
        ax.set_yticks(place[-1], names)
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


def _ranked(rank: int, name: str, letters: int) -> str:
    return f"{short(name, letters)}\u2002{rank}"


def _points(lines: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    return [line["paid"] for line in lines], [line["relevance"] for line in lines]


def _places(history: Array, features: Array) -> tuple[Array, Array]:
    """The place of each feature among these after each batch, and whether it was listed; if not it comes last."""
    at = history[:, :, None] == features
    listed = at.any(axis=1)
    rank = np.where(listed, at.argmax(axis=1), history.shape[1])
    return rank.argsort(axis=1, kind="stable").argsort(axis=1) + 1, listed
