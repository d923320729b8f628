"""The page: what there is to say, and pictures, become one file of HTML with its style and its script inside.

The HTML is in templates/: page.html is the frame, sections/ has a file for each section, macros.html what repeats, and
compact.html is the table for notebooks. Whatever a template prints is escaped.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from belief._utils.optional import import_optional
from belief._utils.text import format_percent, format_probability
from belief.report import words

if TYPE_CHECKING:
    from jinja2 import Environment


def page_of(said: dict[str, Any], pictures: dict[str, dict[str, str]]) -> str:
    """The whole page; `said` is of content_of, `pictures` of pictures_of."""
    return fill("page.html", {**said, "pictures": pictures})


def fill(template: str, said: dict[str, Any]) -> str:
    """One of the templates, with what there is to say."""
    return _environment().get_template(template).render(said)


@cache
def _environment() -> Environment:
    jinja2 = import_optional("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("belief.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"words": words, "format_probability": format_probability, "format_percent": format_percent}
    return environment
