"""Rewrite links to files of the repository so that they work on the site, not only on a git host.

A link to code, such as growing.py#next_step, leads to this function on a page of the site that shows the file. A link
to an example leads to its page in the gallery. Only files with links to them get a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath, relpath
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

HOME = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?P<file>\.\./[^)#\s]+)(?:#(?P<place>\w+))?\)")
DEFINITION = re.compile(r"\s*(?:def|class) (\w+)\b")
EXAMPLES = "examples/gallery/"


def page_of(path: str) -> str:
    """Return the name of the site's page for a file: a gallery page for an example, otherwise a page with the code."""
    if path.startswith(EXAMPLES):
        return "gallery/" + PurePosixPath(path).stem.replace("README", "index")
    return f"source/{PurePosixPath(path).with_suffix('')}"


def file_of(found: re.Match[str], docname: str) -> str | None:
    """Return the path of the file that a link leads to, or None if the link leads to a page of the site."""
    path = normpath(join("docs", dirname(docname), found["file"]))
    return None if path.startswith("docs/") else path


def rewritten(text: str, docname: str) -> str:
    """Return the text of a page, with links to files of the repository replaced by links to pages of the site."""

    def link(found: re.Match[str]) -> str:
        path = file_of(found, docname)
        if path is None:
            return found[0]
        return f"](source:{relpath(page_of(path) + '.html', dirname(docname) or '.')}#{found['place'] or ''})"

    return LINK.sub(link, text)


def read(app: Any, docname: str, content: list[str]) -> None:
    """Rewrite the links of a page when Sphinx reads it, and record the files that it links to."""
    linked = {path for found in LINK.finditer(content[0]) if (path := file_of(found, docname))}
    shown = {path for path in linked if not path.startswith(EXAMPLES)}
    app.env.source_pages = getattr(app.env, "source_pages", set()) | shown
    content[0] = rewritten(content[0], docname)


def pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page with the code for each file to which pages of the site link."""
    for path in sorted(app.env.source_pages):
        yield page_of(path), {"title": path, "body": shown(path)}, "page.html"


def shown(path: str) -> str:
    """Return a file as HTML with highlighted code.

    Functions and classes have their names as anchors, and lines have L1, L2, ...
    """
    text = (HOME / path).read_text()
    lines = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()
    names: set[str] = set()
    for n, (line, source) in enumerate(zip(lines, text.splitlines(), strict=True), 1):
        definition = DEFINITION.match(source)
        anchor = ""
        if definition is not None and definition[1] not in names:
            names.add(definition[1])
            anchor = f'<span id="{definition[1]}"></span>'
        lines[n - 1] = f'<span id="L{n}">{anchor}{line}</span>'
    code = "\n".join(lines)
    return f'<h1>{escape(path)}</h1><div class="highlight source"><pre tabindex="0">{code}\n</pre></div>'


def setup(app: Any) -> dict[str, Any]:
    """Connect these functions to the events of Sphinx."""
    app.connect("source-read", read)
    app.connect("html-collect-pages", pages)
    return {"version": "1", "parallel_read_safe": False}
