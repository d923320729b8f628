"""One more picture of `belief.plot`: how selectors compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from belief.comparison.comparison import OURS, Comparison
from belief.report.canvas import LEFT, MARK, SCORE, drawing, heat, height, legend, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def comparison(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the score of each selector with its spread over the folds, and how far any two agree on the features.

    The dashed line is the score with all features. On the right, a cell has the number of features that two selectors
    have in common, and is the darker the larger a share that is of those that either has (Jaccard). Lines and columns
    are in the order of the scores.

    Parameters
    ----------
    found : Comparison
        What :func:`belief.compare` found.
    ax : matplotlib Axes, default=None
        Where to draw: the scores on its left half, and on its right half, on new axes, how far they agree. None makes a
        new figure.

    Returns
    -------
    matplotlib Axes
        Those with the scores.

    Examples
    --------
    >>> import belief
    >>> from matplotlib import pyplot as plt
    >>> found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4,
    ...                        selectors=["BELIEF", "F test"], random_state=0)
    >>> ax = belief.plot.comparison(found)
    """
    lines, place = found.standings, np.arange(len(found.standings))
    with drawing(ax, height(len(lines), 0.36)) as ax:
        _draw_scores(ax, found)
        ax.set_yticks(place, [f"{s.selector}\u2002{i}" for i, s in enumerate(lines, 1)])
        ax.set_ylim(len(lines) - 0.5, -0.5)
        ax.set_xlabel(found.full_measure)
        quiet(ax, grid="x")
        if len(lines) > 1:
            _draw_agreement(_beside(ax), found)
    return ax


def _draw_scores(ax: Axes, found: Comparison) -> None:
    for i, s in enumerate(found.standings):
        color = SCORE if s.selector.startswith(OURS) else LEFT
        ax.errorbar(s.score, i, xerr=s.spread, fmt="o", color=color, capsize=2.5)
    if found.everything is not None:
        what = f"all {found.n_features:,} features"
        line = ax.axvline(found.everything, color=MARK, linestyle=(0, (4, 3)), linewidth=1.2, label=what)
        legend(ax, [line])


def _draw_agreement(ax: Axes, found: Comparison) -> None:
    heat(ax, found.jaccard, found.common.astype(str))
    ax.set_xticks(range(len(found.standings)), [str(i) for i in range(1, len(found.standings) + 1)])
    ax.set_yticks([])
    ax.set_xlabel(f"features in common, of {found.n_selected:,}")
    quiet(ax)


def _beside(ax: Axes) -> Axes:
    """New axes on the right half of the room that these have."""
    spec, figure = ax.get_subplotspec(), ax.figure
    if spec is not None:
        halves = spec.subgridspec(1, 2, width_ratios=(5, 4))
        ax.set_subplotspec(halves[0])
        right = figure.add_subplot(halves[1])
    else:
        x, y, width, tall = ax.get_position().bounds
        ax.set_position((x, y, 0.52 * width, tall))
        right = figure.add_axes((x + 0.56 * width, y, 0.44 * width, tall))
    figure.sca(ax)  # whoever draws on goes on here
    return right
