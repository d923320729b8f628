"""Parts that all figures share: access to matplotlib, colours, axes, legends and heat maps."""

from __future__ import annotations

import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.optional import import_optional
from belief.method.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# These colours are readable on light and dark backgrounds.
RELEVANCE, MARK, SCORE, MUTED, HEAT = "#8fb8dc", "#cc6a1f", "#17487a", "#7f8a96", "#17528c"
# Colours of classes and levels. Together with MARKERS, they are distinguishable with any colour vision (Okabe and Ito).
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b08a1e", "#56b4e9", "#8c6bb1", "#75706a")
MARKERS = "osD^vP<>"
FIFTHS = ("#2166ac", "#67a9cf", "#999999", "#ef8a62", "#b2182b")  # fifths of a numeric target, from low to high

LABEL_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
LABEL_DISTANCES = (6, 12, 20)  # points
NARROW = 5.0  # inches; narrower figures have legends of two columns
LOCK = threading.RLock()  # held while matplotlib's settings are changed, because all threads share them

# A $ in a name does not start a formula, and text in an SVG remains text.
SAFE = {"text.parse_math": False, "text.usetex": False, "svg.fonttype": "none"}


def figure_height(rows: int, each: float = 0.26) -> float:
    """Return the height, in inches, of a figure with this number of rows of bars or cells."""
    return 1.1 + each * max(rows, 2)


def matplotlib(module: str = "") -> Any:
    """Import matplotlib or one of its modules; if it is not installed, raise an error with the install command."""
    return import_optional(f"matplotlib{module}", "report")


@contextmanager
def drawing(ax: Axes | None, inches: float) -> Iterator[Axes]:
    """Yield `ax`, or new axes if `ax` is None. Names are drawn literally, even if they contain a $."""
    settings = matplotlib().rcParams
    with LOCK:
        # matplotlib's `rc_context` is no alternative: it would also reset the interactive mode, which the backend of a
        # notebook turns on when the first figure is created
        before = {name: settings[name] for name in SAFE}
        settings.update(SAFE)
        try:
            if ax is None:
                _, ax = matplotlib(".pyplot").subplots(figsize=(7.2, inches), layout="constrained")
            yield ax
            for axis in (ax.xaxis, ax.yaxis):  # the texts of axes of the user were created without these settings
                named = isinstance(axis.get_major_locator(), matplotlib(".ticker").FixedLocator)
                for text in [axis.label, *(axis.get_ticklabels() if named else [])]:
                    text.set_parse_math(False)
        finally:
            settings.update(before)


def draw_heat_map(ax: Axes, values: Array, texts: Array | None = None, smallest: float = 0.0) -> None:
    """Draw a heat map in one colour of varying transparency, so that it suits any background.

    Each cell shows its entry of `texts`. Without `texts`, the cells of a heat map of up to ten rows show their values,
    except the diagonal and values below `smallest`; a larger heat map has a colour bar instead.
    """
    colors = matplotlib(".colors")
    rgb = colors.to_rgb(HEAT)
    colour_map = colors.LinearSegmentedColormap.from_list("heat", [(*rgb, 0.0), (*rgb, 1.0)], N=20)
    rows, columns = (np.arange(n + 1) - 0.5 for n in values.shape)
    cells = ax.pcolormesh(columns, rows, values, cmap=colour_map, vmin=0, vmax=1, clip_on=False)
    ax.invert_yaxis()
    if len(values) > 10 and texts is None:
        scale = ax.figure.colorbar(cells, ax=ax, shrink=0.5, aspect=18, pad=0.03, ticks=[0, 0.5, 1])
        scale.outline.set_visible(False)
        scale.ax.tick_params(length=0)
        return
    for (y, x), value in np.ndenumerate(values):
        if (x != y and value >= smallest) or texts is not None:
            style: dict[str, Any] = {"color": "#ffffff"} if value > 0.68 else {}
            text = f"{value:.2f}" if texts is None else str(texts[y, x])
            ax.text(x, y, text, ha="center", va="center", fontsize="small", **style)


def draw_frames(ax: Axes, sizes: Sequence[int]) -> None:
    """Draw frames along the diagonal of a heat map around groups of these sizes; groups of one get no frame."""
    rectangle, start = matplotlib(".patches").Rectangle, -0.5
    for size in sizes:
        if size > 1:
            ax.add_patch(
                rectangle((start, start), size, size, fill=False, edgecolor=MARK, linewidth=1.6, clip_on=False)
            )
        start += size


def remove_frame(ax: Axes, grid: str | None = None) -> None:
    """Remove the frame and the ticks; draw light grid lines for the axes in `grid`, which may be "both"."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, linewidth=0.6, alpha=0.5)  # type: ignore[arg-type]


def add_legend(ax: Axes, drawn: Sequence[Any]) -> None:
    """Add a legend above the axes, with four columns, or two if the figure is narrow."""
    columns = 4 if ax.figure.bbox.width > NARROW * ax.figure.dpi else 2
    ax.legend(
        handles=drawn,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=columns,
        frameon=False,
        borderpad=0.2,
        borderaxespad=0.2,
        handlelength=1,
        handletextpad=0.5,
        columnspacing=1.2,
        scatterpoints=1,
    )


def place_labels(ax: Axes, x: Array, y: Array, texts: Sequence[str]) -> None:
    """Write texts next to points so that the texts do not overlap. Texts for which there is no room are left out."""
    boxes = matplotlib(".transforms").Bbox
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # matplotlib warns again when the figure is drawn
        ax.figure.figure.draw_without_rendering()  # computes the layout, and so the final positions of the points
        points, half = ax.transData.transform(np.column_stack([x, y])), ax.figure.dpi / 16
        taken = [boxes.from_extents(*(point - half), *(point + half)) for point in points if np.isfinite(point).all()]
        frame = ax.get_window_extent()
        for at, text in zip(zip(x, y, strict=True), texts, strict=True):
            for r, (right, up) in product(LABEL_DISTANCES, LABEL_SIDES) if np.isfinite(at).all() else ():
                ha, va = ("center", "left", "right")[right], ("center", "bottom", "top")[up]
                sides: dict[str, Any] = {"ha": ha, "va": va, "textcoords": "offset points", "fontsize": "small"}
                label = ax.annotate(text, at, (r * right, r * up), **sides)
                label.set_in_layout(False)  # otherwise, the layout would make room for the label and move the axes
                box = label.get_window_extent()
                is_inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
                if is_inside and not box.count_overlaps(taken):
                    taken.append(box)
                    break
                label.remove()


def note_omitted(ax: Axes, shown: int, total: int) -> None:
    """If not all features are shown, state this in the label of the x axis."""
    if shown < total:
        ax.set_xlabel(f"{ax.get_xlabel()}\n(the first {shown} of {total:,} selected features)")


def write_sentence(ax: Axes, sentence: str) -> Axes:
    """Write a sentence in the middle of axes that have nothing else to show."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, textwrap.fill(sentence, 44), ha="center", va="center", transform=ax.transAxes)
    return ax
