"""Tests of the HTML report: its content, that it loads no other files, and how a browser shows it."""

import dataclasses
import io
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from conftest import Terminal

import belief
from belief._utils.optional import install_command
from belief._utils.text import format_probability
from belief.report import render
from belief.report.content import collect_content
from belief.report.text import NO_REDUNDANCY, STOP_REASONS, clean

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.image import imread  # noqa: E402

pytestmark = pytest.mark.slow
NASTY = '</script><b>$x$&"'
SECTIONS = ["ranking", "others", "redundancy", "distributions", "run"]


def select(n=6, n_features=12, names=(), classes=("no", "yes"), **settings):
    rng = np.random.default_rng(2)
    label = rng.integers(0, len(classes), 200)
    X = rng.standard_normal((200, n_features))
    X[:, 0] += 2 * label
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(200)  # redundant with feature 0
    X[:, 2] += 1.2 * label
    table = pd.DataFrame(X, columns=[*names, *(f"f{j}" for j in range(len(names), n_features))])
    y = np.empty(200, object)
    y[:] = [classes[c] for c in label]
    return belief.select(table, y, n, random_state=0, **settings)


@pytest.fixture(scope="module")
def result():
    return select(names=(NASTY, "twin", "北京", "line\nbreak\uffff\x00"), classes=("<i>no</i>", "yes"))


class Reader(HTMLParser):
    """A page as a browser sees it: its elements, ids, links, and the text outside of style and script."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.links, self.words, self.within = [], [], [], [], None
        self.feed(page)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [v for k, v in given.items() if k in ("href", "src", "xlink:href", "action", "data", "srcset")]
        self.links += [f"#{i}" for v in given.values() for i in re.findall(r"url\(#([^)]+)\)", v or "")]
        self.within = tag

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        self.words += [data] if self.within not in ("style", "script") else []


def sections(page):
    return re.findall(r'<section id="(\w+)"', page)


# --- content ---


def test_render_shows_run_data_and_results(result):
    page = render(result, "A <title>")
    seen = Reader(page).text
    assert sections(page) == [s for s in SECTIONS if s != "redundancy"]  # no redundant features
    assert "A <title>" in seen
    assert "Size 200 rows, 12 features Task classification into 2 classes Date 20" in seen
    assert belief.__version__ in seen
    for line in result.explain():
        assert f"{line['relevance']:.3f} ± {line['error']:.3f}" in seen
        assert line["score"] is None or f" {line['score']:.3f} " in seen
        assert format_probability(line["q_value"]) in seen
    assert "All 200 rows were used." in seen
    assert "Reason for the sample size all rows" in seen
    assert "Sampling balanced equally many of each class" in seen
    assert "Neighbours 20 of each class" in seen
    for c, P in zip(result.classes, result.priors, strict=True):
        assert f"{c} {round(200 * P)} {100 * P:.1f} %" in seen
    for name, value in result.settings.items():
        assert f"{name} {value} " in seen


def test_collect_content_names_groups_and_redundant_features():
    result = select(2, names=(NASTY, "twin"))
    assert collect_content(result)["groups"] == []  # the twin was not selected
    (group,) = collect_content(select(12, names=(NASTY, "twin")))["groups"]
    assert set(group) == {NASTY, "twin"}
    ((kept, (left,)),) = collect_content(result)["redundant_with"]
    assert {kept, left} == {NASTY, "twin"}
    assert f"{left} was not selected because it is redundant with {kept} ." in Reader(render(result)).text
    all_selected = Reader(render(select(12, names=(NASTY, "twin")))).text
    assert "are redundant with each other (0.5 or more on average); one of them may suffice." in all_selected


def test_render_counts_features_that_are_not_significant(result):
    doubtful = sum(result.q_value[result.selected] >= 0.05)
    assert 1 < doubtful < 6
    said = f"{6 - doubtful} of 6 selected features are significant (q < 0.05), {doubtful} were selected only to reach"
    assert said in Reader(render(result)).text
    rng = np.random.default_rng(0)
    noise = belief.select(rng.standard_normal((100, 3)), rng.integers(0, 2, 100), 3, random_state=0)
    assert min(noise.q_value) >= 0.05
    seen = Reader(render(noise)).text
    assert "No selected feature is significant." in seen
    assert "is the most relevant feature" not in seen


@pytest.mark.parametrize("stopped", STOP_REASONS)
def test_render_explains_the_stop_reason(result, stopped):
    seen = Reader(render(dataclasses.replace(result, stop_reason=stopped, sample_size=150))).text
    assert f"150 of 200 rows were sampled: {STOP_REASONS[stopped]}." in seen
    assert f"Reason for the sample size {stopped} {STOP_REASONS[stopped]}" in seen


def test_render_escapes_names(result):
    seen = Reader(render(result))
    assert seen.text.count(NASTY) >= 5  # in the table, the text and the figures
    assert not {"b", "i"} & set(seen.tags)
    assert seen.tags.count("script") == 1
    assert "line break" in seen.text
    assert "北京" in seen.text


def test_render_does_not_interpret_braces_in_names():
    braces = ("{{ 7*7 }}", "{{ 7*'seven' }}", "{% include 'page.js' %}", "{# gone #}")
    odd = select(12, names=braces, classes=("no", "{{ 7*'class' }}"))
    assert {*braces} <= {*odd.selected_names}
    page, small = Reader(render(odd, "{{ 7*'title' }}")).text, Reader(odd._repr_html_()).text
    assert all(name in page and name in small for name in braces)
    assert page.count("{{ 7*'title' }}") == 2
    assert "{{ 7*'class' }}" in page
    assert not re.search("(seven|class|title){7}", page + small)


def test_render_loads_nothing_and_has_no_broken_links(result):
    page = render(result)
    seen = Reader(page)
    assert len(seen.ids) == len(set(seen.ids))
    assert {link for link in seen.links if not link.startswith("#")} == {"data:,"}
    assert {link[1:] for link in seen.links if link.startswith("#")} <= set(seen.ids)
    assert "://" not in page
    assert "@import" not in page


def test_render_is_deterministic(result):
    assert render(result) == render(belief.Result.from_dict(json.loads(json.dumps(result.to_dict()))))


# --- findings ---


def findings(result):
    """Return the sentences of the findings at the top of the page, by kind."""
    found = {}
    for each in collect_content(result)["findings"]:
        found.setdefault(each.kind, []).append("".join(each.parts))
    return found


def test_header_names_target_file_and_date(tmp_path):
    table = pd.read_csv(belief.datasets.CHURN)
    table["comment"] = [f"one of {i} long remarks on row {i}" for i in range(len(table))]
    table["visits"] = [[i] for i in range(len(table))]
    with pytest.warns(UserWarning, match="2 columns are left out"):
        result = belief.select(table, label="left", n_features_to_select=3, random_state=0)
    assert findings(result)["left out"] == ["comment and visits are not used: neither numbers nor categories."]
    facts = dict(collect_content(belief.select(str(belief.datasets.CHURN), "left", 3, random_state=0))["facts"])
    assert (facts["Target"], facts["Data"], facts["Size"]) == ("left", "churn.csv", "600 rows, 12 features")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts["Date"])
    series = belief.select(table.drop(columns=["left", "comment", "visits"]), table["left"], 3, random_state=0)
    assert dict(collect_content(series)["facts"])["Target"] == "left"


def test_findings_name_the_most_relevant_feature_even_if_others_are_given():
    result = belief.select(
        str(belief.datasets.CHURN), label="left", n_features_to_select=4, given=["shoe_size"], random_state=0
    )
    assert result.selected_names[0] == "shoe_size"
    assert findings(result)["selected"][0].startswith("support_calls is the most relevant feature")


def test_findings_name_interactions_once():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((400, 6)), columns=list("abcdef"))
    X["a"] = rng.choice(["low", "high"], 400)
    y = np.where((X["a"] == "low") ^ (X["b"] > 0), "no", "yes")
    result = belief.select(X, y, 2, random_state=0)
    (said,) = findings(result)["interaction"]
    assert re.fullmatch(
        r"(a and b|b and a) interact: each would lose at least \d+ % of its weight without the other\.", said
    )
    (pair,) = result.pairs
    assert {*pair.features} == {0, 1}
    x, b = (pair.values[pair.features.index(j)] for j in (0, 1))
    low = [pair.levels[pair.features.index(0)][int(code)] == "low" for code in x]
    yes = [bool(t) for t in pair.target]
    assert [not is_low ^ (value > 0) for is_low, value in zip(low, b, strict=True)] == yes
    page = render(result)
    assert "interactions" in sections(page)
    assert belief.Result.from_dict(json.loads(json.dumps(result.to_dict()))).pairs == result.pairs
    plain = result.to_dict()
    plain["pairs"][0]["values"][0].pop()
    with pytest.raises(ValueError, match="pairs is invalid"):
        belief.Result.from_dict(plain)


def test_findings_name_columns_to_look_at():
    table = pd.read_csv(belief.datasets.CHURN)
    table["id"] = np.random.default_rng(0).permutation(len(table))
    table["farewell"] = np.where(table["left"] == "yes", "sent", "no")
    table["fixed"] = 1.0
    table.loc[::2, "support_calls"] = np.nan
    table.loc[:11, "left"] = "paused"
    table.loc[:11, "farewell"] = "on hold"
    with pytest.warns(UserWarning, match="identifier"):
        found = findings(belief.select(table, label="left", n_features_to_select=6, random_state=0))
    assert "'id' looks like an identifier" in found["identifier"][0]
    assert "'farewell' determines the target" in found["leakage"][0]
    assert found["advice"][0].startswith("Leave columns out")
    assert found["left out"] == ["fixed is constant."]
    assert found["missing"] == ["support_calls (50 %) has many missing values."]
    assert found["small class"][0].startswith("paused (12) is a small class of fewer than 30 rows")


def test_ranking_has_the_limit_of_significance_and_directions(result):
    page = render(result)
    table = page.partition('id="selected-table"')[2].partition("</table>")[0]
    assert table.count('class="limit"') == table.count('class="whole"') == 6
    doubtful = sum(result.q_value[result.selected] >= 0.05)
    assert table.count('class="relevance weak"') == doubtful
    assert "higher in yes" in table
    assert "<title>twin: relevance" in table or "<title>&lt;/script&gt;" in table
    assert 'class="limit"' not in render(select(significance=None))


def test_sections_by_class_and_stability_are_shown_where_they_are_known(result):
    assert not {"by_class", "stability"} & {*sections(render(result))}  # only two classes
    studied = select(3, classes=("a", "b", "c"), stability=20)
    page = render(studied)
    assert {"by_class", "stability"} <= {*sections(page)}
    low, high = studied.stability.interval
    said = f"The stability index is {studied.stability.index:.2f} (95 % interval {low:.2f} to {high:.2f})"
    assert said in Reader(page).text
    often = sum(studied.stability.frequency[studied.selected] >= 0.8)
    assert findings(studied)["stability"][0].startswith(
        f"{often} of 3 selected features are also selected from at least 80 %"
    )


def test_render_shows_how_many_features_suffice(result):
    curve = belief.SizeCurve(
        sizes=[1, 2, 4], scores=[0.5, 0.8, 0.81], spread=[0.1, 0.02, 0.01], automatic=2, all_features=0.7,
        n_features=12, folds=5, seed=0, task="classification", seconds=1.0,
    )  # fmt: skip
    seen = Reader(render(result, curve=curve)).text
    assert (
        "With 2 features, the number that 'auto' selects, models reach macro F1 0.800 ± 0.020; the best mean is 0.810,"
        " with 4 features; all 12 features reach 0.700."
    ) in seen
    assert "scores" not in sections(render(result))


# --- every kind of result ---


def test_render_without_redundancy():
    page = render(select(redundancy=None))
    assert sections(page) == [s for s in SECTIONS if s != "redundancy"]
    assert NO_REDUNDANCY in Reader(page).text
    assert headings(page) == ["rank", "feature", "relevance", "q-value"]


def headings(page):
    return re.findall(r"<th [^>]*>([^<]+)</th>", page.partition('id="selected-table"')[2].partition("</thead>")[0])


def test_table_columns_depend_on_the_measure(result):
    assert headings(render(result)) == ["rank", "feature", "relevance", "q-value", "unique share", "score"]
    by_mcr = render(select(**belief.PAPER))
    assert headings(by_mcr) == ["rank", "feature", "relevance", "score"]  # the paper has no significance tests
    assert headings(render(select(redundancy="mcr"))) == ["rank", "feature", "relevance", "q-value", "score"]
    assert "<th>q-value</th><th>unique share</th><th>score</th>" in result._repr_html_()


def test_render_mcr_without_groups():
    page = render(select(**belief.PAPER))
    assert sections(page) == SECTIONS
    seen = Reader(page).text
    assert "The values are relative" in seen
    assert "agree" not in seen.partition("Settings")[0]


def test_render_one_batch_and_one_feature():
    page = render(select(1, batch_size=1.0))
    assert sections(page) == [s for s in SECTIONS if s != "redundancy"]
    assert "Ranking after each batch" not in Reader(page).text
    assert "is the most relevant feature; it is significant (q < 0.05)." in Reader(page).text


@pytest.mark.parametrize("classes", [(True, False), (0.5, 1e9), (np.datetime64("2026-01-02"), np.datetime64("NaT"))])
def test_render_names_classes_of_any_type(classes):
    odd = dataclasses.replace(select(2), classes=np.array(classes))
    seen = Reader(render(odd)).text
    for c, P in zip(odd.classes, odd.priors, strict=True):
        assert f"{c} {round(200 * P)} {100 * P:.1f} %" in seen


def test_render_constant_and_equally_relevant_features():
    table, y = pd.DataFrame({"a": np.tile([0.0, 1], 20), "k": 1.0}), np.tile([0, 1], 20)
    assert "constant" in Reader(render(belief.select(table, y, 2, random_state=0))).text
    table.loc[:1, "a"] = 1 - table["a"][:2]
    alike = belief.select(table.assign(k=table["a"]), y, 2, random_state=0, redundancy="mcr", significance=None)
    assert "All non-constant features are equally relevant." in Reader(render(alike)).text


@pytest.mark.slow
def test_render_limits_the_size_of_the_page():
    large = select(300, 1200, batch_size=0.5)
    page = render(large)
    assert len(page.encode()) < 1_000_000
    assert "(the first 16 of 300 selected features)" in page
    assert set(large.selected_names) <= set(Reader(page).text.split())


@pytest.mark.parametrize(("library", "n_errors"), [("matplotlib", 2), ("jinja2", 1)])
def test_render_without_an_optional_library(tmp_path, result, library, n_errors):
    (tmp_path / "result.json").write_text(json.dumps(result.to_dict()))
    program = (
        f"import sys, json; sys.modules[{library!r}] = None\n"
        "import belief, belief.plot, belief.report\n"
        f"result = belief.Result.from_dict(json.load(open({str(tmp_path / 'result.json')!r})))\n"
        "print(result._repr_html_())\n"
        "for draw in (belief.plot.ranking, belief.report.render):\n"
        "    try: draw(result)\n"
        "    except belief.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    line = f"Pictures and reports need {library}, which is not installed: {install_command('report', library)}.\n"
    table = done.stdout.removesuffix(n_errors * line)
    assert done.stdout.count(line) == n_errors
    assert table == "None\n" if library == "jinja2" else "&lt;/script&gt;&lt;b&gt;$x$&amp;" in table
    assert "<b>$x$" not in table


def test_render_result_table_is_short():
    seen = Reader(select(30, 40)._repr_html_())
    assert seen.tags.count("tr") == 21 + 11  # 20 selected and 10 other features, and two headings
    assert "and 10 more features" in seen.text


def test_notebook_table_has_findings_and_sorts(browser):
    result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=4, random_state=0)
    html = result._repr_html_()
    assert "tenure_months" in Reader(html).text
    assert "is the most relevant feature; all 4 selected features are significant (q < 0.05)." in Reader(html).text
    page = browser.new_page()
    page.set_content(html + result.explain()._repr_html_())
    names = page.locator("table").first.locator("tbody td:nth-child(2)")
    assert names.all_inner_texts() == result.selected_names
    page.locator("table").first.locator("th", has_text="feature").click()
    assert names.all_inner_texts() == sorted(result.selected_names)
    page.close()


def test_repr_is_a_table(result, monkeypatch):
    assert repr(result).startswith("belief.Result: 6 of 12 features selected\n\nrank  feature")
    assert len(repr(select(30, 40)).splitlines()) == 2 + 21 + 1
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdout", Terminal())
    shown = repr(result)
    monkeypatch.undo()
    assert max(map(len, shown.splitlines())) <= 100 < max(map(len, repr(result).splitlines()))


# --- in a browser ---

QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright to see the page in a browser")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs Chromium or Chrome to see the page in a browser")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory, result):
    path = tmp_path_factory.mktemp("report") / "page.html"
    path.write_text(render(result), "utf-8")
    return path.as_uri()


@pytest.fixture
def visit(browser, address):
    """Yield a function that opens the page with some settings of the browser, then check for errors and requests."""
    contexts, complaints, requests = [], [], []

    def visit(**settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(requests) == {address}


def column(page, n, table="selected-table"):
    return page.locator(f"#{table} tbody tr:visible td:nth-child({n})").all_inner_texts()


@pytest.mark.parametrize("width", [375, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_the_screen_and_figures_have_its_colours(visit, width, scheme):
    page = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = page.locator("figure svg:visible")
    assert shown.count() == 2
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 380) == (scheme == "light")
    fills = shown.first.locator("text").evaluate_all("all => all.map(t => getComputedStyle(t).fill)")
    assert set(fills) == {ink}
    sizes = shown.locator("text").evaluate_all("all => all.map(t => t.getBoundingClientRect().height)")
    assert min(sizes) > 8  # pixels, so that the text is legible


@pytest.mark.parametrize(("width", "height"), [(1280, 4_400), (375, 5_600)])
def test_page_for_eight_features_is_short(browser, width, height):
    """The page is at most half as long as an earlier version, in which all parts were open.

    The earlier version listed the features four times. Its length was 8,823 pixels on a screen 1,280 pixels wide, and
    11,337 pixels on one 375 pixels wide.
    """
    result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=8, random_state=0)
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_content(render(result))
    assert page.evaluate("document.documentElement.scrollHeight") < height
    page.close()


def test_clicking_a_heading_sorts_the_table(visit, result):
    page = visit()
    heading = page.locator("#selected-table th", has_text="relevance")
    heading.get_by_role("button").click()
    falling = [f"{w:.3f}" for w in np.sort(result.relevance[result.selected])[::-1]]
    assert [cell.split(" ± ")[0] for cell in column(page, 3)] == falling
    assert heading.get_attribute("aria-sort") == "descending"
    heading.get_by_role("button").click()
    assert [cell.split(" ± ")[0] for cell in column(page, 3)] == falling[::-1]
    assert heading.get_attribute("aria-sort") == "ascending"


def test_keyboard_sorts_the_table(visit, result):
    page = visit()
    page.get_by_role("button", name="feature").first.focus()
    page.keyboard.press("Enter")
    names = [name.strip() for name in page.locator("#selected-table tbody .name").all_inner_texts()]
    assert set(names) == {clean(name).strip() for name in result.selected_names}
    numbered = [name for name in names if re.fullmatch(r"f\d+", name)]
    assert numbered == sorted(numbered, key=lambda name: int(name[1:]))
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#selected-table th[aria-sort]").inner_text() == "relevance"


def test_search_finds_parts_of_names(visit):
    page = visit()
    page.get_by_label("Search").first.fill("</SCRIPT><b>$x")
    found = column(page, 2)
    assert found
    assert all(NASTY in text for text in found)
    assert page.locator(".search output").first.inner_text() == f"{len(found)} of 6"
    page.get_by_label("Search").first.fill("nothing is called this")
    assert column(page, 2) == []
    page.get_by_label("Search").first.fill("")
    assert len(column(page, 2)) == 6


def test_page_without_javascript(visit):
    page = visit(java_script_enabled=False)
    assert len(column(page, 2)) == 6
    assert page.locator("figure svg:visible").count() == 0
    page.locator("summary", has_text="Timings").click()
    assert page.locator("figure svg:visible").count() == 1
    assert page.locator("input").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_wide_table_shows_scroll_shadows(visit, scheme):
    """A shadow marks each side on which the table continues, whether or not the browser shows scroll bars."""
    page = visit(viewport={"width": 375, "height": 800}, color_scheme=scheme)
    box = page.locator(".box", has=page.locator("#selected-table"))
    hidden = box.evaluate("box => box.scrollWidth - box.clientWidth")
    assert hidden > 10

    def edges():
        """Return whether the left and the right edge of the table have another brightness than the background."""
        pixels = imread(io.BytesIO(box.screenshot()))[80:, :, :3].mean(axis=2)
        paper = np.median(pixels)
        return [abs(float(np.median(pixels[:, at])) - paper) > 0.05 for at in (slice(2, 5), slice(-5, -2))]

    assert edges() == [False, True]
    box.evaluate("box => { box.scrollLeft = 1e6 }")
    assert edges() == [True, False]
    box.evaluate(f"box => {{ box.scrollLeft = {hidden // 2} }}")
    assert edges() == [True, True]


def test_render_in_threads(result):
    before, expected = dict(matplotlib.rcParams), render(result)
    with ThreadPoolExecutor(4) as pool:
        pages = list(pool.map(lambda _: render(result), range(8)))
    assert set(pages) == {expected}
    assert dict(matplotlib.rcParams) == before
