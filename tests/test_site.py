"""Tests of the documentation site that do not need to build it, unlike `make docs`.

The reference lists all public names, the examples run, and links that work on a git host also work on the site.
"""

import ast
import doctest
import inspect
import re
import runpy
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_public import PUBLIC

import belief

pytestmark = pytest.mark.slow
HOME = Path(__file__).parents[1]
DOCS = HOME / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
import check_links  # noqa: E402
import inventories  # noqa: E402
import source_pages  # noqa: E402
import versions  # noqa: E402

GALLERY = sorted((HOME / "examples" / "gallery").glob("plot_*.py"))
ON_SPARK = ("belief.spark.BeliefSelector", "belief.spark.BeliefSelectorModel")
CONSTANTS = ("belief.PAPER", "belief.__version__", "belief.datasets.CHURN")
MODULES = {name for name in PUBLIC if name != "belief"}
NAMES = sorted({f"{module}.{name}" for module in PUBLIC for name in PUBLIC[module]} - MODULES)


def found(name):
    module, _, last = name.rpartition(".")
    there = belief
    for part in module.split(".")[1:]:
        there = getattr(there, part)
    return getattr(there, last)


# --- the API reference ---


def test_the_reference_has_every_public_name_and_no_other():
    listed = re.findall(r"^   (belief\.[\w.]+)$", (DOCS / "api" / "index.rst").read_text(), re.M)
    described = re.findall(r"^\.\. py:data:: (\S+)$", (DOCS / "api" / "constants.rst").read_text(), re.M)
    assert sorted([*listed, *described]) == NAMES
    assert sorted(described) == sorted(CONSTANTS)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CONSTANTS])
def test_every_public_name_has_an_example(name):
    doc = inspect.getdoc(found(name))
    examples = doctest.DocTestParser().get_examples(doc)
    assert "Examples\n--------" in doc
    assert len(examples) > 1
    assert (name in ON_SPARK) == any(doctest.SKIP in e.options for e in examples)  # other examples run as doctests


def test_the_examples_of_the_constants_run():
    assert doctest.testfile(str(DOCS / "api" / "constants.rst"), module_relative=False) == (0, 8)


@pytest.mark.parametrize("name", ON_SPARK)
def test_the_examples_on_spark_run(name, spark):
    """Without a session, these examples are skipped; here they get a session, so all of them run."""
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(found(name)), {"spark": spark}, name, None, None)
    for example in test.examples:
        example.options.pop(doctest.SKIP, None)
    ran = doctest.DocTestRunner().run(test)
    assert ran.attempted > 3
    assert not ran.failed


# --- the guide ---


PAGES = sorted([*(DOCS / "guide").glob("*.md"), *(DOCS / f"{name}.md" for name in ("index", "install", "start"))])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_the_guide_runs(page):
    blocks = re.findall(r"^```python\n(>>>.*?)^```", page.read_text(), re.S | re.M)
    assert blocks or page.stem in ("index", "glossary", "single-cells")  # single-cells needs anndata
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    assert not doctest.DocTestRunner().run(test).failed


def test_the_guide_has_a_page_for_each_question():
    text = (DOCS / "guide" / "index.md").read_text()
    asked = re.findall(r"^\| .* \| \[.*\]\((.*)\) \|$", text, re.M)
    hidden = re.findall(r"^(?:.*<)?((?:\.\./)?[\w-]+)>?$", text.split("```{toctree}")[1], re.M)
    assert [Path(name).stem for name in asked] == [Path(name).stem for name in hidden]


def test_install_commands_follow_one_setting():
    set_name = runpy.run_path(str(DOCS / "conf.py"))["_set_install_name"]
    page = ["pip install '.[spark]'  # a comment\nUse `pip install .` or pip install ./a\n"]
    set_name(None, "page", page)
    assert page[0].startswith("pip install '.[spark]'  #")
    set_name.__globals__["INSTALLED_FROM"] = "belief-fs"
    set_name(None, "page", page)
    assert page[0] == "pip install 'belief-fs[spark]'  # a comment\nUse `pip install belief-fs` or pip install ./a\n"


def test_versions_are_those_with_a_tag_and_the_one_that_is_built(monkeypatch):
    tags = SimpleNamespace(stdout="v0.1.0\nv0.10.0\nvaguely\n")
    monkeypatch.setattr(versions.subprocess, "run", lambda *command, **more: tags)
    assert [each["version"] for each in versions.list_versions("0.2.0")] == ["0.10.0", "0.2.0", "0.1.0"]


@pytest.mark.parametrize("library", inventories.SITES)
def test_inventories_have_a_page_for_every_name(library):
    *head, packed = Path(inventories.write(library)).read_bytes().split(b"\n", 4)
    lines = zlib.decompress(packed).decode().splitlines()
    assert b"zlib" in head[-1]
    assert len(lines) == len(inventories.NAMES[library])
    assert all(re.fullmatch(r"\S+ (py:class|std:\w+) 1 \S+\.html#\S+ -", line) for line in lines)


def test_every_page_is_in_a_table_of_contents():
    trees = re.findall(r"```\{toctree\}(.*?)```", "\n".join(p.read_text() for p in DOCS.rglob("*.md")), re.S)
    named = {Path(name).name for tree in trees for name in re.findall(r"^(?:.*<)?([\w./-]+)>?$", tree, re.M)}
    assert {page.stem for page in DOCS.rglob("*.md")} - {"index"} <= named


# --- the gallery ---


def test_every_example_has_a_title_and_a_plot():
    for path in GALLERY:
        title, line, *_ = ast.get_docstring(ast.parse(path.read_text())).splitlines()
        assert len(line) == len(title), path.name
        assert re.search(r"plt\.subplots|belief\.plot\.", path.read_text()), path.name
        assert "http" not in path.read_text(), path.name  # examples download nothing


# --- links ---


@pytest.mark.parametrize(
    ("link", "docname", "expected"),
    [
        ("../src/belief/api.py#select", "method", "source:source/src/belief/api.html#select"),
        ("../../src/belief/api.py", "experiments/small", "source:../source/src/belief/api.html#"),
        ("../../examples/gallery/plot_03_rare_classes.py", "guide/x", "source:../gallery/plot_03_rare_classes.html#"),
        ("../examples/gallery/README.rst", "index", "source:gallery/index.html#"),
        ("../method.md", "guide/x", "../method.md"),
        ("../experiments/choices.md", "guide/x", "../experiments/choices.md"),
    ],
)
def test_rewritten_links_lead_to_pages_of_the_site(link, docname, expected):
    assert source_pages.rewritten(f"[x]({link})", docname) == f"[x]({expected})"


def test_check_links_finds_broken_links(tmp_path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a><a href="#here">a</a><img src="x.svg">')
    (tmp_path / "b.html").write_text(
        '<a href="https://example.org">out</a><script src="//cdn.example.org/x.js"></script>'
    )
    assert sorted(check_links.broken(tmp_path)) == [
        "a.html: b.html#there",
        "a.html: x.svg",
        "b.html loads //cdn.example.org/x.js",
    ]


def test_check_links_finds_warnings_of_examples(tmp_path):
    (tmp_path / "gallery").mkdir()
    (tmp_path / "gallery" / "a.html").write_text("<pre>x.py:1: FutureWarning: old</pre>")
    (tmp_path / "gallery" / "b.html").write_text("<p>Warning of a storm</p>")
    assert check_links.warned(tmp_path) == ["gallery/a.html has a FutureWarning"]
