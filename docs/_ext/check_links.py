"""Find broken links and anchors in the built site, and warnings in the output of gallery examples.

    python docs/_ext/check_links.py build/site

A link to a missing anchor is broken, too. Pages must not load resources from the network.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WARNING = re.compile(r"\w*Warning(?=: )")


class Page(HTMLParser):
    """The links, the loaded resources and the anchors of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"] or "")
        if tag in ("img", "script", "iframe") and given.get("src"):
            self.loaded.add(given["src"] or "")
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            self.loaded.add(given["href"] or "")


def broken(site: Path) -> list[str]:
    """Return the broken links, and the resources that a page would load from the network."""
    files = [path.resolve() for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    problems = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        problems += [f"{here} loads {url}" for url in page.loaded if urlsplit(url).netloc]
        problems += [f"{here}: {url}" for url in page.links | page.loaded if not is_valid(url, path, pages)]
    return problems


def is_valid(url: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Return True if the target of a link exists. External links are not checked, so they count as valid."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    anchor = unquote(parts.fragment)
    if target not in pages:
        return target.is_file()
    return not anchor or anchor in pages[target].anchors


def warned(site: Path) -> list[str]:
    """Return a message for each gallery page on which an example printed a warning."""
    pages = sorted(site.glob("gallery/*.html"))
    found = {page: WARNING.search(page.read_text(encoding="utf-8")) for page in pages}
    return [f"{page.relative_to(site)} has a {match[0]}" for page, match in found.items() if match]


if __name__ == "__main__":
    site = Path(sys.argv[1])
    found = broken(site) + warned(site)
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} problems", *found, sep="\n")
    sys.exit(bool(found))
