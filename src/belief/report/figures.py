"""The figures of belief.plot as inline SVG in the colours of the page, for wide and for narrow screens."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from belief import plot
from belief.report import canvas
from belief.result.result import Result

if TYPE_CHECKING:
    from belief.comparison.curve import SizeCurve

# In the page, these colours are replaced by CSS variables, which differ between light and dark mode.
INK, GRID, PAPER = "#1d2329", "#c9d0d7", "#ffffff"
COLOURS = {
    INK: "ink",
    GRID: "line",
    PAPER: "paper",
    canvas.RELEVANCE: "relevance",
    canvas.MARK: "mark",
    canvas.SCORE: "score",
    canvas.MUTED: "muted",
    canvas.HEAT: "heat",
}
STYLE = {
    **canvas.SAFE,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlecolor": INK,
    "grid.color": GRID,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
}


@dataclass(frozen=True)
class Width:
    """The size of figures and texts for one kind of screen."""

    name: str
    inches: float
    font: float
    top: int
    max_name_length: int


WIDTHS = (Width("wide", 7.2, 9, plot.TOP, 30), Width("narrow", 3.7, 8.5, 16, 15))
PANEL = Width("panel", 3.7, 8.5, 8, 15)  # for figures that are side by side on wide screens


@dataclass(frozen=True)
class Picture:
    """A figure of the report: the function of belief.plot that draws it, its height, and its options."""

    draw: Callable[..., Any]
    height: Callable[[int], float]  # number of features in the figure -> inches
    options: tuple[str, ...] = ("top", "max_name_length")
    widths: tuple[Width, ...] = WIDTHS
    find_shown: Callable[[Result, int], list[int]] = lambda result, top: list(range(min(top, len(result.selected))))


PICTURES = {
    "redundancy": Picture(plot.redundancy, lambda n: canvas.figure_height(n, 0.22), find_shown=plot.find_overlapping),
    "by_class": Picture(plot.by_class, lambda n: canvas.figure_height(n, 0.24) + 0.5),
    "stability": Picture(plot.stability, canvas.figure_height),
    "convergence": Picture(plot.convergence, canvas.figure_height),
    "timings": Picture(plot.timings, lambda n: canvas.figure_height(6, 0.2), ()),
    "interactions": Picture(plot.interactions, lambda n: 2.7, ("max_name_length",), (PANEL,)),
}


def draw_figures(result: Result, names: list[str], curve: SizeCurve | None = None) -> dict[str, dict[str, str]]:
    """Draw the figures with these names; return a dictionary from names to dictionaries from widths to SVG."""
    pictures = dict(PICTURES)
    for t, pair in enumerate(result.pairs):
        draw = partial(plot.interaction, feature=pair.features[0])
        pictures[f"interaction-{t}"] = Picture(draw, lambda n: 2.7, ("max_name_length",), (PANEL,))
    if curve is not None:
        pictures["score_by_size"] = Picture(lambda result, ax: plot.score_by_size(curve, ax), lambda n: 2.9, ())
    return {
        name: {width.name: _draw_svg(result, name, pictures[name], width) for width in pictures[name].widths}
        for name in names
    }


def _draw_svg(result: Result, name: str, picture: Picture, width: Width) -> str:
    style, figures, file = canvas.matplotlib(".style"), canvas.matplotlib(".figure"), io.BytesIO()
    shown = len(picture.find_shown(result, width.top))
    salt = {"font.size": width.font, "svg.hashsalt": name}
    with canvas.LOCK, style.context(["default", STYLE, salt]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the browser may have glyphs that matplotlib lacks
        figure = figures.Figure(figsize=(width.inches, picture.height(shown)), layout="constrained")
        options = {option: getattr(width, option) for option in picture.options}
        picture.draw(result, ax=figure.add_subplot(), **options)
        figure.savefig(file, format="svg", metadata={"Date": None})
    return _inline(file.getvalue(), f"{name}-{width.name}")


def _inline(svg: bytes, prefix: str) -> str:
    """Convert an SVG file of matplotlib to SVG that can be part of a page.

    Namespaces and invisible parts are removed, ids become unique, and colours become CSS variables.
    """
    root = ElementTree.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg.decode()))
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
        node.attrib = {
            key.rpartition("}")[2]: _attribute(key, value, prefix)
            for key, value in node.attrib.items()
            if key != "id" or value in used
        }
        if node.tag != "text":  # white space is significant only in texts
            node.text = (node.text or "").strip()
        node.tail = None
    _prune(root)
    root.attrib = {"viewBox": root.attrib["viewBox"], "aria-hidden": "true"}
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, prefix: str) -> str:
    if key == "id":
        return f"{prefix}-{value}"
    if key.endswith("href") and value.startswith("#"):
        return f"#{prefix}-{value[1:]}"
    value = value.replace("url(#", f"url(#{prefix}-")
    if key == "style":
        value = re.sub(
            r"#[0-9a-f]{6}", lambda found: f"var(--{COLOURS[found[0]]})" if found[0] in COLOURS else found[0], value
        )
        value = re.sub(r"font-family:[^;]+; ", "", value)  # use the font of the page
    if key == "d":
        value = re.sub(r"\s*([A-Za-z])\s*", r"\1", value)
    return re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)


def _prune(node: ElementTree.Element) -> None:
    """Remove metadata, style sheets and invisible elements from an SVG node, in place."""
    for child in list(node):
        _prune(child)
        empty = child.tag in ("g", "defs") and not len(child)
        if empty or child.tag in ("metadata", "style") or child.get("style") == "fill: none":
            node.remove(child)
    if node.get("transform", "").startswith("rotate(-0 "):
        del node.attrib["transform"]
