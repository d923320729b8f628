"""The page: what there is to say, and pictures, become one file of HTML with its style and its script inside."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import Any

from belief.report.markup import text
from belief.report.sections import TITLES, lead, points, sections_of


def page_of(said: dict[str, Any], pictures: dict[str, dict[str, str]]) -> str:
    """The whole page; `said` is of content_of, `pictures` of pictures_of."""
    sections = sections_of(said, pictures)
    return Template(_part("html")).substitute(
        title=text(said["title"]),
        version=text(said["version"]),
        style=_part("css"),
        script=_part("js"),
        lead=lead(said),
        points="".join(f"<li>{point}</li>" for point in points(said)),
        links="\n".join(f'<a href="#{name}">{TITLES[name]}</a>' for name in sections),
        sections="\n".join(_section(name, body) for name, body in sections.items()),
    )


def _part(ending: str) -> str:
    return files("belief.report").joinpath(f"page.{ending}").read_text("utf-8")


def _section(name: str, body: str) -> str:
    title = f'<h2 id="{name}-title">{TITLES[name]}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{title}\n{body}\n</section>'
