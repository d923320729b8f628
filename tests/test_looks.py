"""Tests of the report and the documentation site in a browser, including accessibility checks with axe-core.

axe-core comes with the wheel axe-playwright-python, which the extra `test` installs; BELIEF_AXE may name the file of
another version. The tests of the site are skipped unless `make docs` has built it.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_report import address, browser, column, result, visit  # noqa: F401  (fixtures)

SITE = Path(__file__).parents[1] / "build" / "site"
PAGES = ["index.html", "start.html", "gallery/index.html", "gallery/plot_05_together.html", "method.html",
         "api/generated/belief.plot.ranking.html", "api/generated/belief.select.html", "guide/result.html",
         "guide/settings.html", "guide/faq.html", "benchmarks.html", "reproduction.html",
         "experiments/contest.html"]  # fmt: skip
WIDTHS = [375, 1280]
CLIPPED = """[...document.querySelectorAll(".bd-article .pst-scrollable-table-container")]
    .filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText.slice(0, 60))"""


@pytest.fixture(scope="session")
def axe():
    """Return the source code of axe-core."""
    wheel = find_spec("axe_playwright_python")
    found = os.environ.get("BELIEF_AXE") or (wheel and Path(wheel.origin).with_name("axe.min.js"))
    if not found:
        pytest.skip("needs axe-core: pip install axe-playwright-python, or its file in BELIEF_AXE")
    return Path(found).read_text(encoding="utf-8")


def complaints(page, axe, **options):
    """Return the accessibility violations that axe finds on a page, each with the element that violates the rule."""
    page.evaluate(axe)
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{each['id']}: {node['target'][0]}" for each in found for node in each["nodes"]]


def test_axe_finds_violations(browser, axe):  # noqa: F811
    page = browser.new_page()
    page.set_content('<html lang="en"><title>x</title><main><h1>x</h1><img src="data:,"><p style="color: #ddd">faint')
    assert complaints(page, axe) == ["color-contrast: p", "image-alt: img"]
    page.close()


# --- the report ---


@pytest.mark.parametrize("width", [375, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_is_accessible(visit, axe, width, scheme):  # noqa: F811
    page = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert complaints(page, axe) == []


@pytest.mark.parametrize("kind", ["Python", "text"])
def test_copy_button(visit, result, kind):  # noqa: F811
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=f"Copy names as {kind}").focus()
    page.keyboard.press("Enter")
    page.locator(".copy output", has_text="Copied 6 names.").wait_for()
    page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), {id: 'paste'}))")
    page.locator("#paste").focus()
    page.keyboard.press("Control+V")
    pasted = page.locator("#paste").input_value()
    if kind == "Python":
        assert eval(pasted) == result.selected_names
    else:
        assert len(pasted.splitlines()) == 6


@pytest.mark.parametrize("width", [375, 1200])
def test_distribution_strips_are_aligned(visit, width):  # noqa: F811
    page = visit(viewport={"width": width, "height": 800})
    assert page.locator(".distribution").count() == 6
    one = page.locator(".distribution").first.locator(".strip svg")
    boxes = [one.nth(i).bounding_box() for i in range(one.count())]
    assert len({(round(b["x"]), round(b["width"])) for b in boxes}) == 1
    assert boxes[0]["width"] > 120
    assert boxes[0]["y"] < boxes[1]["y"]


def test_table_of_other_features_can_be_searched_and_sorted(visit):  # noqa: F811
    page = visit()
    page.locator("#others summary").click()
    assert len(column(page, 1, "others-table")) == 6
    page.locator("#others-table-search").fill("f1")
    found = page.locator("#others-table tbody tr:visible .name").all_inner_texts()
    assert found
    assert all(name.startswith("f1") for name in found)
    page.locator("#others-table-search").fill("")
    page.locator("#others-table th", has_text="relevance").get_by_role("button").click()
    shown = [float(text.partition(" ")[0]) for text in column(page, 2, "others-table")]
    assert shown == sorted(shown, reverse=True)


def test_print_without_controls(visit):  # noqa: F811
    page = visit()
    page.emulate_media(media="print")
    assert not page.locator(".copy").is_visible()
    assert page.locator(".distribution").first.is_visible()
    assert page.locator("#others-table tbody tr").last.is_visible()  # closed parts are printed too


# --- the site ---


@pytest.fixture(params=PAGES)
def place(request):
    if not (SITE / request.param).exists():
        pytest.skip("needs the site: make docs")
    return (SITE / request.param).as_uri()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_site_pages_fit_load_nothing_and_are_accessible(browser, place, axe, width, scheme):  # noqa: F811
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(place)
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert width < max(WIDTHS) or page.evaluate(CLIPPED) == []  # phones scroll wide tables
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    found = complaints(page, axe)
    context.close()
    assert found == []
