"""Write the report of the bundled example, and take screenshots of it.

    python docs/_ext/pictures.py

This command updates the screenshots in docs/pictures. They are kept in the repository, because making them needs
playwright and Chromium. The report itself is written when the site is built; the screenshot on the landing page links
to it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import belief

PICTURES = Path(__file__).parents[1] / "pictures"
VIEWS = {  # file name: ((width, height), colour scheme)
    "report.png": ((1000, 900), "light"),
    "report-dark.png": ((1000, 900), "dark"),
    "report-phone.png": ((390, 844), "dark"),
}


def example_report() -> str:
    """Return the report of the bundled example as HTML."""
    result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select="auto", random_state=0)
    return belief.report.render(result)


def write_report(app: Any, error: Exception | None) -> None:
    """Write the report to the folder of the built site."""
    if error is None and app.builder.format == "html":
        Path(app.outdir, "report.html").write_text(example_report(), encoding="utf-8")


def photograph(page_file: Path) -> None:
    """Take all screenshots of a page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, ((width, height), scheme) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(page_file.as_uri())
            page.screenshot(path=PICTURES / name)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.html")
        file.write_text(example_report(), encoding="utf-8")
        photograph(file)
