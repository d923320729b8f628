"""Checks that every link within the site leads to a page, and to a place on it: `python check_links.py build/site`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, what it loads, and the places on it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"] or "")
        if tag in ("img", "script", "iframe") and given.get("src"):
            self.loaded.add(given["src"] or "")
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            self.loaded.add(given["href"] or "")


def broken(site: Path) -> list[str]:
    """What is wrong: links that lead nowhere, and things that a page would load from the net."""
    files = [path.resolve() for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    wrong = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        wrong += [f"{here} loads {url}" for url in page.loaded if urlsplit(url).netloc]
        wrong += [f"{here}: {url}" for url in page.links | page.loaded if not leads(url, path, pages)]
    return wrong


def leads(url: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Whether a link from a page leads somewhere; what is elsewhere in the world is taken to be there."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return True
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    place = unquote(parts.fragment)
    if there not in pages:
        return there.is_file()
    return not place or place in pages[there].places


if __name__ == "__main__":
    site = Path(sys.argv[1])
    found = broken(site)
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} broken links", *found, sep="\n")
    sys.exit(bool(found))
