"""Figures of a Result or a Comparison, drawn with matplotlib.

>>> import belief
>>> belief.plot.ranking(result)  # doctest: +SKIP

Each function draws on the axes that are passed, or on new axes, and returns the axes. matplotlib is installed by the
extra `report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.validation import check_result
from belief.comparison.comparison import OURS, Comparison
from belief.method.arrays import Array
from belief.method.relevance import WEAK
from belief.progress import LABELS
from belief.report.canvas import (
    FIFTHS,
    LINES,
    MARK,
    MARKERS,
    MUTED,
    RELEVANCE,
    SCORE,
    add_legend,
    draw_frames,
    draw_heat_map,
    drawing,
    figure_height,
    note_omitted,
    place_labels,
    remove_frame,
    write_sentence,
)
from belief.report.content import GROUP_LEVEL, group_redundant
from belief.report.distributions import FIFTHS as FIFTH_NAMES
from belief.report.distributions import describe_direction, find_distribution, group_names
from belief.report.text import (
    NO_CLASSES,
    NO_DISTRIBUTION,
    NO_INTERACTIONS,
    NO_PAIR,
    NO_REDUNDANCY,
    NO_STABILITY,
    NO_TIMINGS,
    ONE_BATCH,
    ONE_FEATURE,
    clean,
    format_percent_of,
    format_seconds,
    shorten,
    shorten_distinct,
)
from belief.result.explanation import MIN_AGREEMENT, FeatureExplanation
from belief.result.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from belief.comparison.curve import SizeCurve

__all__ = [
    "by_class",
    "comparison",
    "convergence",
    "distribution",
    "interaction",
    "interactions",
    "ranking",
    "redundancy",
    "relevance_redundancy",
    "score_by_size",
    "stability",
    "timings",
]

TOP = 30  # features in one figure
MAX_CLASS_COLUMNS = 10  # with more classes, the cells of the heat map contain no numbers
MAX_INTERACTIONS = 12  # lines in one figure
MAX_SPREAD_VALUES = 12
NAME_LENGTH = 28  # characters


def ranking(result: Result, ax: Axes | None = None, *, top: int = TOP, max_name_length: int = NAME_LENGTH) -> Axes:
    """Draw the relevance of each selected feature, ± two standard errors, and its score.

    Bars of features that are not significant are hollow. The dashed line marks the smallest relevance that a
    significant feature can have.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    top : int, default=30
        The number of features to show; the figure says if there are more.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.ranking(result)
    """
    check_result(result)
    lines = result.explain()[: min(top, len(result.selected))]
    place = np.arange(len(lines))
    w, J, error = _column(lines, "relevance"), _column(lines, "score"), _column(lines, "error")
    is_weak = np.array([not line.is_significant for line in lines])
    hollow = {"facecolor": "none", "edgecolor": MUTED, "linestyle": (0, (3, 2)), "label": "not significant"}
    kinds: list[tuple[Array, dict[str, Any]]] = [
        (~is_weak, {"color": RELEVANCE, "label": "relevance"}),
        (is_weak, hollow),
    ]
    with drawing(ax, figure_height(len(lines))) as ax:
        drawn: list[Any] = [ax.barh(place[k], w[k], height=0.72, **style) for k, style in kinds if k.any()]
        if result.rule.presentation.name:
            drawn.append(ax.barh(place, J, height=0.24, color=SCORE, label="score"))
        if np.isfinite(error).any():
            drawn.append(
                ax.errorbar(w, place, xerr=2 * error, fmt="none", ecolor=MARK, capsize=2.5, label="± 2 standard errors")
            )
        if result.settings["significance"] is not None:
            limit = f"significant (q < {result.settings['alpha']:g})"
            drawn.append(ax.axvline(WEAK, color=MARK, linewidth=0.9, linestyle=(0, (4, 3)), label=limit))
        if len(drawn) > 1:
            add_legend(ax, drawn)
        ax.axvline(0, color=MUTED, linewidth=0.8, zorder=0.5)
        ax.set_yticks(place, _ranked([(line["rank"], line["feature"]) for line in lines], max_name_length))
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ends = np.nan_to_num(2 * error)
        ax.set_xlim(1.04 * min(0, J.min(), (w - ends).min()) - 0.02, 1.02 * max((w + ends).max(), 0.01))
        ax.set_xlabel("relevance")
        remove_frame(ax, grid="x")
        note_omitted(ax, len(lines), len(result.selected))
    return ax


def relevance_redundancy(
    result: Result, ax: Axes | None = None, *, top: int = TOP, max_name_length: int = NAME_LENGTH
) -> Axes:
    """Draw relevance against unique share, for the selected features and the others in `result.watched`.

    Names that would overlap other names are left out. The dashed line marks the score of the last selected feature.
    With redundancy="mcr", the x axis is the mCR that is subtracted, and the dashed line marks a score of 0.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    top : int, default=30
        The number of selected features to show, and of others; the figure says if there are more.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.relevance_redundancy(result)
    """
    check_result(result)
    lines, n = result.explain(), len(result.selected)
    selected, others = lines[:n][:top], lines[n:][:top]
    measure = result.rule.presentation
    with drawing(ax, 4.4) as ax:
        if not measure.name:
            return write_sentence(ax, NO_REDUNDANCY)
        ax.set_xlabel(measure.relevance_axis)
        y, cut, last = _column([*selected, *others], "relevance"), len(selected), float(result.scores[-1])
        dashed: dict[str, Any] = {"color": MUTED, "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 0.5}
        if measure.has_unique_share:
            x = 100 * _column([*selected, *others], "unique_share")
            if last > 0:
                high = np.linspace(last, 1.08, 200)
                ax.plot(100 * last / high, high, **dashed)
            ax.set_xlim(-4, 106)
        else:
            x = y - _column([*selected, *others], "score")
            ax.axline((0, 0), slope=1, **dashed)
            ax.set_xlim(-0.04, max(0.3, 1.08 * float(x.max())))
        open_ = ax.scatter(x[cut:], y[cut:], s=26, facecolors="none", edgecolors=MUTED, label="not selected")
        full = ax.scatter(x[:cut], y[:cut], s=26, color=SCORE, linewidths=0, label="selected, with rank")
        ax.set(ylabel="relevance", ylim=(-0.06, 1.08))
        remove_frame(ax, grid="both")
        add_legend(ax, [full, open_] if others else [full])
        note_omitted(ax, cut, n)
        names = shorten_distinct([line.feature for line in [*selected, *others]], max_name_length)
        ranks = [f"{line.rank} " if line.rank else "" for line in [*selected, *others]]
        place_labels(ax, x, y, [rank + name for rank, name in zip(ranks, names, strict=True)])
    return ax


def redundancy(
    result: Result,
    ax: Axes | None = None,
    *,
    top: int = TOP,
    max_name_length: int = NAME_LENGTH,
    level: float = GROUP_LEVEL,
) -> Axes:
    """Draw the redundancy of the selected features as a heat map, from 0 to 1, with frames around redundant groups.

    A feature is shown if its redundancy with at least one other selected feature is 0.2 or more. If there is no such
    feature, all are shown. With redundancy="mcr", all are shown without frames, because mCR has no absolute scale: 0 is
    the smallest and 1 the largest value among the features of `result.watched`.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    top : int, default=30
        The number of features to show; the figure says if there are more.
    max_name_length : int, default=28
        Longer names are shortened to this length.
    level : float, default=0.5
        Features with at least this average redundancy form a group.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.redundancy(result)
    """
    check_result(result)
    n, measure = min(top, len(result.selected)), result.rule.presentation
    with drawing(ax, figure_height(len(find_overlapping(result, top)), 0.24) + 0.8) as ax:
        if not measure.name or n == 1:
            return write_sentence(ax, NO_REDUNDANCY if n > 1 else ONE_FEATURE)
        known = set(find_overlapping(result, n))
        groups = [[i for i in group if i in known] for group in group_redundant(result.redundancy, level)]
        order = [i for group in groups for i in group]
        values = result.redundancy[np.ix_(order, order)].T  # row i: the redundancy of feature i with the others
        draw_heat_map(ax, values, smallest=MIN_AGREEMENT if measure.has_absolute_scale else 0.0)
        if measure.has_absolute_scale:
            draw_frames(ax, [len(group) for group in groups])
        shown, is_tight = len(order), len(order) > 10
        ax.set_yticks(range(shown), _ranked([(i + 1, _names(result)[i]) for i in order], max_name_length))
        ranks, size = [str(i + 1) for i in order], "small" if is_tight else None
        ax.set_xticks(range(shown), ranks, rotation=90 if is_tight else 0, size=size)
        ax.set_xlabel(measure.redundancy_axis)
        if shown < n:
            ax.set_xlabel(f"{ax.get_xlabel()}\n(not shown: {n - shown} of {n}, not redundant)")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        note_omitted(ax, n, len(result.selected))
    return ax


def find_overlapping(result: Result, top: int = TOP) -> list[int]:
    """Return the ranks, from 0, of the selected features that are redundant with another selected feature.

    If there are no such features, return the ranks of all selected features.
    """
    n = min(top, len(result.selected))
    overlaps = result.redundancy[:n, :n] >= MIN_AGREEMENT
    np.fill_diagonal(overlaps, False)
    some = np.flatnonzero(overlaps.any(axis=0) | overlaps.any(axis=1)).tolist()
    return some if some and result.rule.presentation.has_absolute_scale else list(range(n))


def by_class(result: Result, ax: Axes | None = None, *, top: int = TOP, max_name_length: int = NAME_LENGTH) -> Axes:
    """Draw how well each selected feature separates each class from the others, as a share of the largest value.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    top : int, default=30
        The number of features to show; the figure says if there are more.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.by_class(result)
    """
    check_result(result)
    n, separations = min(top, len(result.selected)), result.separations
    with drawing(ax, figure_height(n, 0.26) + 0.8) as ax:
        if not separations.size:
            return write_sentence(ax, NO_CLASSES)
        shares = np.clip(separations.T[result.selected[:n]] / max(separations.max(), 1e-300), 0.0, 1.0)
        is_small = len(separations) <= MAX_CLASS_COLUMNS
        draw_heat_map(ax, shares, np.vectorize("{:.2f}".format)(shares) if is_small else None)
        ax.set_yticks(range(n), _ranked(list(enumerate(_names(result)[:n], 1)), max_name_length))
        classes = shorten_distinct([clean(c) for c in result.classes], 12)
        ax.set_xticks(range(len(classes)), classes, rotation=90 if len(classes) > 6 else 0)
        ax.set_xlabel("separation of each class from the others")
        remove_frame(ax)
        note_omitted(ax, n, len(result.selected))
    return ax


def stability(result: Result, ax: Axes | None = None, *, top: int = TOP, max_name_length: int = NAME_LENGTH) -> Axes:
    """Draw the share of the half-samples in which each feature is selected; selected features have filled bars.

    Parameters
    ----------
    result : Result
        A result with the setting `stability`.
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    top : int, default=30
        The number of features to show, the most frequent first.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> churn = str(belief.datasets.CHURN)
    >>> result = belief.select(churn, label="left", n_features_to_select=6, stability=20, random_state=0)
    >>> ax = belief.plot.stability(result)
    """
    check_result(result)
    found = result.stability
    frequency = np.zeros(len(result.ranking)) if found is None else found.frequency
    shown = np.lexsort((result.ranking, -frequency))[:top]
    shown = shown[(frequency[shown] > 0) | np.isin(shown, result.selected)]
    with drawing(ax, figure_height(len(shown))) as ax:
        if found is None:
            return write_sentence(ax, NO_STABILITY)
        kinds: list[tuple[Array, dict[str, Any]]] = [
            (np.isin(shown, result.selected), {"color": SCORE, "label": "selected"}),
            (~np.isin(shown, result.selected), {"color": "none", "edgecolor": MUTED, "label": "not selected"}),
        ]
        place = np.arange(len(shown))
        drawn = [ax.barh(place[k], frequency[shown][k], height=0.62, **style) for k, style in kinds if k.any()]
        ax.set_yticks(place, shorten_distinct([result.feature_names[j] for j in shown], max_name_length))
        ax.set(ylim=(len(shown) - 0.4, -0.6), xlim=(0, 1), xlabel="share of the half-samples")
        remove_frame(ax, grid="x")
        add_legend(ax, drawn)
    return ax


def convergence(result: Result, ax: Axes | None = None, *, top: int = TOP, max_name_length: int = NAME_LENGTH) -> Axes:
    """Draw the rank, by weight, of each selected feature after each batch.

    A hollow point means that the feature was not on the watch list (the largest weights) after that batch.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    top : int, default=30
        The number of features to show; the figure says if there are more.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.convergence(result)
    """
    check_result(result)
    n = min(top, len(result.selected))
    with drawing(ax, figure_height(n)) as ax:
        if len(result.history) < 2:
            return write_sentence(ax, ONE_BATCH)
        # the rank of each feature after each batch; features that were not on the watch list come last
        at = result.history[:, :, None] == result.selected[:n]
        listed = at.any(axis=1)
        rank = np.where(listed, at.argmax(axis=1), result.history.shape[1])
        place = rank.argsort(axis=1, kind="stable").argsort(axis=1) + 1
        batch = np.arange(1, len(place) + 1)
        small, behind = 5 if len(batch) <= 12 else 2.5, ax.figure.get_facecolor()
        for i in range(n):
            color, on = LINES[int(place[-1, i] - 1) % len(LINES)], listed[:, i]
            ax.plot(batch, place[:, i], "-", color=color, linewidth=1.8, solid_joinstyle="round")
            ax.plot(batch[on], place[on, i], "o", color=color, markersize=small)
            ax.plot(batch[~on], place[~on, i], "o", color=color, markersize=small, markerfacecolor=behind)
        ax.yaxis.tick_right()
        ax.set_yticks(place[-1], shorten_distinct(_names(result)[:n], max_name_length))
        ax.set_ylim(n + 0.6, 0.4)
        ax.set_xlabel("after batch")
        ax.locator_params(axis="x", integer=True)
        remove_frame(ax, grid="x")
        note_omitted(ax, n, len(result.selected))
    return ax


def timings(result: Result, ax: Axes | None = None) -> Axes:
    """Draw the runtime of each phase.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=6, random_state=0)
    >>> ax = belief.plot.timings(result)
    """
    check_result(result)
    phases, took = list(result.timings), list(result.timings.values())
    with drawing(ax, figure_height(len(phases))) as ax:
        if not phases:
            return write_sentence(ax, NO_TIMINGS)
        bars = ax.barh(range(len(phases)), took, height=0.62, color=RELEVANCE)
        ax.bar_label(bars, [format_seconds(s) for s in took], padding=4)
        ax.set_yticks(range(len(phases)), [LABELS.get(phase, phase) for phase in phases])
        ax.set(ylim=(len(phases) - 0.4, -0.6), xlim=(0, 1.18 * max(took)), xlabel="seconds")
        remove_frame(ax)
    return ax


def distribution(
    result: Result, feature: str | int, ax: Axes | None = None, *, max_name_length: int = NAME_LENGTH
) -> Axes:
    """Draw the distribution of a selected feature in each class, or in each fifth of a numeric target.

    Numeric features are drawn as box plots of the sampled rows: the box contains the middle half of the values, the
    line the middle 90 %, and the mark is the median. Nominal features are drawn as bars of the shares of their levels.

    Parameters
    ----------
    result : Result
    feature : str or int
        The name or the index of one of the first 100 selected features.
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=4, random_state=0)
    >>> ax = belief.plot.distribution(result, "support_calls")
    """
    check_result(result)
    line = result.explain(feature)
    found = find_distribution(result, line.index)
    with drawing(ax, figure_height(len(found.groups) if found else 2, 0.34)) as ax:
        if found is None:
            return write_sentence(ax, NO_DISTRIBUTION)
        place, drawn = np.arange(len(found.groups)), []
        if found.levels:
            start = np.zeros(len(place))
            for i, level in enumerate(found.levels):
                share = np.array([shares[i] for shares in found.shares])
                bars = ax.barh(place, share, left=start, height=0.6, color=LINES[i % len(LINES)])
                bars.set_label(shorten(level, max_name_length))
                drawn.append(bars)
                start = start + share
            ax.set_xlim(0, 1)
            add_legend(ax, drawn)
        for y, (low, left, middle, right, high) in enumerate(found.quantiles):
            ax.plot([low, high], [y, y], color=MUTED, linewidth=1.2, solid_capstyle="butt")
            ax.barh(y, right - left, left=left, height=0.5, color=RELEVANCE)
            ax.plot([middle, middle], [y - 0.25, y + 0.25], color=MARK, linewidth=2, solid_capstyle="butt")
        ax.set_yticks(place, [shorten(name, max_name_length) for name in group_names(result, found)])
        ax.set_ylim(len(place) - 0.4, -0.6)
        missing = f", {format_percent_of(found.missing)} missing" if found.missing else ""
        direction = describe_direction(result, found)
        ax.set_xlabel(f"{shorten(line.feature, max_name_length)}{missing}" + (f"\n{direction}" if direction else ""))
        remove_frame(ax, grid="x")
    return ax


def interactions(result: Result, ax: Axes | None = None, *, max_name_length: int = NAME_LENGTH) -> Axes:
    """Draw the features that interact, with a line between each feature and its partner.

    The width of the line shows the share of its weight that the feature would lose without its partner.

    Parameters
    ----------
    result : Result
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief, numpy as np
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (300, 4))
    >>> result = belief.select(X, (X[:, 0] * X[:, 1] > 0).astype(int), 2, random_state=0)
    >>> ax = belief.plot.interactions(result)
    """
    check_result(result)
    pairs = result.interactions[:MAX_INTERACTIONS]
    with drawing(ax, 3.6) as ax:
        if not pairs:
            return write_sentence(ax, NO_INTERACTIONS)
        features = list(dict.fromkeys(j for pair in pairs for j in pair[:2]))
        angle = {j: 2 * np.pi * t / len(features) for t, j in enumerate(features)}
        for i, j, share in pairs:
            ends = np.array([angle[i], angle[j]])
            ax.plot(np.cos(ends), np.sin(ends), color=RELEVANCE, linewidth=1 + 4 * min(share, 1.0), zorder=1)
        names = shorten_distinct([result.feature_names[j] for j in features], max_name_length)
        for j, name in zip(features, names, strict=True):
            x, y = np.cos(angle[j]), np.sin(angle[j])
            ax.plot(x, y, "o", color=SCORE, markersize=7, zorder=2)
            side = "center" if abs(x) < 0.3 else "left" if x > 0 else "right"
            ax.annotate(name, (x, y), (9 * x, 9 * y), textcoords="offset points", ha=side, va="center")
        ax.set(xlim=(-2.6, 2.6), ylim=(-1.35, 1.35))
        ax.set_axis_off()
    return ax


def interaction(
    result: Result, feature: str | int, ax: Axes | None = None, *, max_name_length: int = NAME_LENGTH
) -> Axes:
    """Draw a scatter plot of a feature and its interaction partner in up to 250 rows, coloured by the target.

    Points with equal categories or whole numbers are spread a little, so that they do not hide each other.

    Parameters
    ----------
    result : Result
    feature : str or int
        The name or the index of a feature in one of the first six pairs of interacting features.
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.
    max_name_length : int, default=28
        Longer names are shortened to this length.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief, numpy as np
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (300, 4))
    >>> result = belief.select(X, (X[:, 0] * X[:, 1] > 0).astype(int), 2, random_state=0)
    >>> ax = belief.plot.interaction(result, "x0")
    """
    check_result(result)
    index = result.explain(feature).index
    found = next((pair for pair in result.pairs if index in pair.features), None)
    with drawing(ax, 3.6) as ax:
        if found is None:
            return write_sentence(ax, NO_PAIR)
        (x, y), target = (_spread(np.array(line)) for line in found.values), np.array(found.target)
        names, colours = ([clean(c) for c in result.classes], LINES) if len(result.classes) else (FIFTH_NAMES, FIFTHS)
        group = target.astype(int) if len(result.classes) else np.minimum(5 * target, 4).astype(int)
        frequent = np.argsort(-np.bincount(group, minlength=len(names)), kind="stable")[: len(colours)]
        drawn = []
        for place, g in enumerate(sorted(frequent.tolist())):
            style: dict[str, Any] = {"color": colours[place], "marker": MARKERS[place], "alpha": 0.75, "linewidths": 0}
            drawn.append(ax.scatter(x[group == g], y[group == g], s=16, label=shorten(names[g], 12), **style))
        for axis, levels, j in zip((ax.xaxis, ax.yaxis), found.levels, found.features, strict=True):
            axis.set_label_text(shorten(result.feature_names[j], max_name_length))
            if levels:
                axis.set_ticks(range(len(levels)), [shorten(level, 12) for level in levels])
        remove_frame(ax, grid="both")
        add_legend(ax, drawn)
    return ax


def _spread(x: Array) -> Array:
    """Move the values of a feature with few distinct values a little, so that points do not hide each other.

    The movements are random, but the same in each call.
    """
    values = np.unique(x)
    if not 1 < len(values) <= MAX_SPREAD_VALUES:
        return x
    return x + np.diff(values).min() * np.random.default_rng(0).uniform(-0.3, 0.3, len(x))


def score_by_size(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw the score of models by the number of features, with the standard deviation over the folds.

    The dotted line marks the number that "auto" selects, the dashed line the score with all features.

    Parameters
    ----------
    curve : SizeCurve
        The return value of :func:`belief.score_by_size`.
    ax : matplotlib Axes, default=None
        The axes to draw on; None creates a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import belief
    >>> curve = belief.score_by_size(str(belief.datasets.CHURN), label="left", max_features=4, random_state=0)
    >>> ax = belief.plot.score_by_size(curve)
    """
    with drawing(ax, 3.4) as ax:
        scores, spread = np.array(curve.scores), np.array(curve.spread)
        drawn: list[Any] = [
            *ax.plot(curve.sizes, scores, "o-", color=SCORE, markersize=4, linewidth=1.4, label="mean over the folds"),
            ax.fill_between(curve.sizes, scores - spread, scores + spread, color=RELEVANCE, alpha=0.4, linewidth=0),
            ax.axvline(curve.automatic, color=MARK, linewidth=1.2, linestyle=":", label=f"auto: {curve.automatic}"),
        ]
        if curve.all_features is not None:
            label = f"all {curve.n_features:,} features"
            drawn.append(ax.axhline(curve.all_features, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2, label=label))
        ax.set(xlabel="features selected", ylabel=curve.measure)
        ax.locator_params(axis="x", integer=True)
        remove_frame(ax, grid="y")
        add_legend(ax, [each for each in drawn if not each.get_label().startswith("_")])
    return ax


def comparison(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the score of each selector, and the number of features that each two selectors have in common.

    The dashed line is the score with all features. On the right, each cell shows the number of features that two
    selectors have in common, and its colour the Jaccard similarity of their selections. Rows and columns are sorted by
    score.

    Parameters
    ----------
    found : Comparison
        The return value of :func:`belief.compare`.
    ax : matplotlib Axes, default=None
        The axes to draw on. They shrink to their left half and show the scores; new axes in the right half show the
        features in common. None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes with the scores.

    Examples
    --------
    >>> import belief
    >>> found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4,
    ...                        selectors=["BELIEF", "F test"], random_state=0)
    >>> ax = belief.plot.comparison(found)
    """
    lines, place = found.standings, np.arange(len(found.standings))
    with drawing(ax, figure_height(len(lines), 0.36)) as ax:
        for i, s in enumerate(lines):
            color = SCORE if s.selector.startswith(OURS) else MUTED
            ax.errorbar(s.score, i, xerr=s.spread, fmt="o", color=color, capsize=2.5)
        if found.all_features:
            style: dict[str, Any] = {"color": MARK, "linestyle": (0, (4, 3)), "linewidth": 1.2}
            mean, label = float(np.mean(found.all_features)), f"all {found.n_features:,} features"
            add_legend(ax, [ax.axvline(mean, label=label, **style)])
        ax.set_yticks(place, [f"{s.selector}\u2002{i}" for i, s in enumerate(lines, 1)])
        ax.set_ylim(len(lines) - 0.5, -0.5)
        ax.set_xlabel(found.full_measure)
        remove_frame(ax, grid="x")
        if len(lines) > 1:
            right = _axes_on_the_right(ax)
            draw_heat_map(right, found.jaccard, found.common.astype(str))
            right.set_xticks(place, [str(i + 1) for i in place])
            right.set_yticks([])
            right.set_xlabel(f"features in common, of {found.n_selected:,}")
            remove_frame(right)
    return ax


def _axes_on_the_right(ax: Axes) -> Axes:
    """Shrink axes to the left half of their space; return new axes in the right half."""
    spec, figure = ax.get_subplotspec(), ax.figure
    if spec is not None:
        halves = spec.subgridspec(1, 2, width_ratios=(5, 4))
        ax.set_subplotspec(halves[0])
        right = figure.add_subplot(halves[1])
    else:
        x, y, width, tall = ax.get_position().bounds
        ax.set_position((x, y, 0.52 * width, tall))
        right = figure.add_axes((x + 0.56 * width, y, 0.44 * width, tall))
    figure.sca(ax)  # the axes of the user remain the current axes
    return right


def _ranked(features: Sequence[tuple[int, str]], max_name_length: int) -> list[str]:
    """Return shortened names followed by their ranks."""
    names = shorten_distinct([name for _, name in features], max_name_length)
    return [f"{name}\u2002{rank}" for name, (rank, _) in zip(names, features, strict=True)]


def _names(result: Result) -> list[str]:
    return [result.feature_names[j] for j in result.selected]


def _column(lines: Sequence[FeatureExplanation], key: str) -> Array:
    """Return one field of all explanations as floats, with NaN for unknown values."""
    return np.array([np.nan if line[key] is None else line[key] for line in lines], float)
