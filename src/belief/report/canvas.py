"""What the pictures share: matplotlib, the colours, and pieces that are drawn in more than one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from belief._utils.optional import import_optional
from belief.method.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# dark and light enough to be told apart on white and on black
RELEVANCE, MARK, SCORE, LEFT, HEAT = "#8fb8dc", "#cc6a1f", "#17487a", "#7f8a96", "#17528c"
LINES = ("#2f78bd", "#cc6a1f", "#2f8f5b", "#a4559a", "#b08a1e", "#c2474a", "#2d8f96", "#75706a")

NARROW = 5.0  # inches

# a $ in a name is no mathematics, and text in an SVG stays text
SAFE = {"text.parse_math": False, "text.usetex": False, "svg.fonttype": "none"}


def height(rows: int, each: float = 0.26) -> float:
    """The inches that so many lines of text need."""
    return 1.1 + each * max(rows, 2)


def matplotlib(module: str = "") -> Any:
    """The library or a module of it, or an error that says how to get it."""
    return import_optional(f"matplotlib{module}", "report")


@contextmanager
def drawing(ax: Axes | None, inches: float) -> Iterator[Axes]:
    """The axes to draw on, new ones where there are none, with names taken as they are."""
    with _safe():
        if ax is None:
            _, ax = matplotlib(".pyplot").subplots(figsize=(7.2, inches), layout="constrained")
        yield ax
        _without_mathematics(ax)


def _without_mathematics(ax: Axes) -> None:
    """Take names as they are also where axes that were given had their texts before SAFE was."""
    for axis in (ax.xaxis, ax.yaxis):
        named = isinstance(axis.get_major_locator(), matplotlib(".ticker").FixedLocator)
        for text in [axis.label, *(axis.get_ticklabels() if named else [])]:
            text.set_parse_math(False)


@contextmanager
def _safe() -> Iterator[None]:
    """Have SAFE for a while, and change no other setting back.

    `rc_context` would: a notebook's backend, which the first figure loads, makes matplotlib interactive for good.
    """
    settings = matplotlib().rcParams
    before = {name: settings[name] for name in SAFE}
    settings.update(SAFE)
    try:
        yield
    finally:
        settings.update(before)


def heat(ax: Axes, values: Array, texts: Array | None = None) -> None:
    """Cells of one colour, more or less transparent, to suit any background.

    Where there is room, each has its number, but for those on the diagonal; or the text that is given for it.
    """
    colors = matplotlib(".colors")
    rgb = colors.to_rgb(HEAT)
    colours = colors.LinearSegmentedColormap.from_list("heat", [(*rgb, 0.0), (*rgb, 1.0)], N=20)
    edges = np.arange(len(values) + 1) - 0.5
    cells = ax.pcolormesh(edges, edges, values, cmap=colours, vmin=0, vmax=1, clip_on=False)
    ax.invert_yaxis()
    if len(values) > 10 and texts is None:
        scale = ax.figure.colorbar(cells, ax=ax, shrink=0.5, aspect=18, pad=0.03, ticks=[0, 0.5, 1])
        scale.outline.set_visible(False)
        scale.ax.tick_params(length=0)
        return
    for (y, x), value in np.ndenumerate(values):
        if x != y or texts is not None:
            style: dict[str, Any] = {"color": "#ffffff"} if value > 0.68 else {}
            text = f"{value:.2f}" if texts is None else str(texts[y, x])
            ax.text(x, y, text, ha="center", va="center", fontsize="small", **style)


def frames(ax: Axes, sizes: Sequence[int]) -> None:
    """A frame around each group of two and more, along the diagonal."""
    rectangle, start = matplotlib(".patches").Rectangle, -0.5
    for size in sizes:
        if size > 1:
            ax.add_patch(
                rectangle((start, start), size, size, fill=False, edgecolor=MARK, linewidth=1.6, clip_on=False)
            )
        start += size


def quiet(ax: Axes, grid: str | None = None) -> None:
    """No frame; a light grid."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, linewidth=0.6, alpha=0.5)  # type: ignore[arg-type]


def legend(ax: Axes, drawn: Sequence[Any]) -> None:
    """What is what, in a line above, in two where the picture is narrow; it may reach back above the names."""
    columns = 4 if ax.figure.bbox.width > NARROW * ax.figure.dpi else 2
    ax.legend(
        handles=drawn, loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, frameon=False, borderpad=0.2,
        borderaxespad=0.2, handlelength=1, handletextpad=0.5, columnspacing=1.2, scatterpoints=1,
    )  # fmt: skip


def left_off(ax: Axes, shown: int, there: int) -> None:
    """Say that there are more features than are shown."""
    if shown < there:
        ax.set_xlabel(f"{ax.get_xlabel()}\n(the first {shown} of {there:,} selected features)")


def say(ax: Axes, sentence: str) -> Axes:
    """A sentence where there is nothing to draw."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, textwrap.fill(sentence, 44), ha="center", va="center", transform=ax.transAxes)
    return ax
