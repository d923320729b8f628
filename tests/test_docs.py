"""Checks of the documentation: links, formulas, settings, the first example, and the numbers of benchmarks."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from belief.method.settings import Settings

HOME = Path(__file__).parents[1]
ON_PATH = {"PYTHONPATH": str(HOME / "src")}
PAGES = sorted([*HOME.glob("*.md"), *HOME.glob("docs/**/*.md")])
CODE_LINKS = re.compile(r"\[`(\w+)`\]\(([^)#]+\.py)#(\w+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_of_pages_are_valid(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_links_to_code_name_a_function_or_class_of_the_file():
    page = HOME / "docs" / "method.md"
    links = CODE_LINKS.findall(page.read_text())
    assert links
    for text, target, name in links:
        assert text == name
        assert re.search(rf"^\s*(def|class) {name}\b", (page.parent / target).read_text(), re.M), f"{target}#{name}"


def test_the_formulas_can_be_rendered_as_mathml():
    latex2mathml = pytest.importorskip("latex2mathml.converter")
    formulas = re.findall(r"(\$\$?)(?!\s\$)(.+?)\1", (HOME / "docs" / "method.md").read_text(), re.S)
    assert len(formulas) > 100
    for _, formula in formulas:
        assert "\\" not in latex2mathml.convert(formula)  # unknown commands are left unchanged


def test_the_guide_lists_every_setting_with_its_default():
    text = (HOME / "docs" / "guide" / "settings.md").read_text()
    for f in Settings.definitions():
        shown = f'"{f.default}"' if isinstance(f.default, str) else str(f.default)
        assert re.search(rf"^\| `{f.name}` \| {re.escape(shown)} \|", text, re.M), f.name


def test_the_readme_has_at_most_700_words():
    assert len((HOME / "README.md").read_text().split()) <= 700


WITHOUT = """
import sys
class Without:
    def find_spec(name, *more):
        if name.partition(".")[0] in {}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without)
"""


def install_closure(requirements):
    """Return the names of the distributions that pip installs for these requirements, without extras."""
    closure, waiting = set(), [canonical(name) for name in requirements]
    while waiting:
        name = waiting.pop()
        if name not in closure:
            closure.add(name)
            needs = metadata.requires(name) or ()
            waiting += [canonical(need) for need in needs if "extra ==" not in need and "sys_platform" not in need]
    return closure


def canonical(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


@pytest.mark.slow
def test_the_first_example_runs_after_the_first_install_line():
    """The example runs in a process that can import only the distributions that this line installs."""
    text = (HOME / "README.md").read_text()
    line = re.search(r"^pip install \. (.*?) +#", text, re.M)[1]
    example, printed = re.search(r"```python\n(import belief\n.*?)```\n\n```\n(.*?)```", text, re.S).groups()
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    installed = install_closure([*project["dependencies"], *line.split()])
    missing = [
        module
        for module, owners in metadata.packages_distributions().items()
        if module != "belief" and not {canonical(owner) for owner in owners} & installed
    ]
    assert {"pyarrow", "pytest"} <= set(missing)
    program = WITHOUT.format(missing) + example
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | ON_PATH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.partition("\n")[2] == printed


SUMMARY_ROWS = {  # by file: the case, the data, and the text about it in the summary of the benchmarks
    "local": [
        ("tall", "200,000", "| {seconds:.2f} | {ratio:.2f} times the bare matrix product of queries and rows |"),
        ("wide", "2,350", "| {seconds:.0f} | {ratio:.2f} times the bare matrix product; {peak_gb:.1f} GB memory"),
        ("peers", "5,000", "| {seconds:.2f} | {ratio:.1f} times as fast as fast-select's ReliefF |"),
        ("peers", "20,000", "| {seconds:.2f} | {ratio:.1f} times as fast as fast-select's ReliefF |"),
        ("products", "normal, 2,350 x 10,000", "takes {integer_ratio:.2f} to"),
        ("products", "normal, 30,000 x 50", "to {integer_ratio:.2f} times the CPU time of the float32 matrix product"),
        ("products", "normal, 2,350 x 10,000", "takes {float32_ratio:.2f} to"),
        ("products", "normal, 30,000 x 50", "to {float32_ratio:.2f} times the CPU time of this product"),
    ],
    "files": [
        ("big", "20,000,000", "| {seconds:.0f} | {peak_gb:.2f} GB in total, 4 reads of the file |"),
        ("read Parquet", "1,027 MB", "Reading a Parquet file takes {ratio:.2f} times as long as pyarrow's own scan"),
        ("read CSV", "279 MB", "For CSV, it takes {ratio:.2f} times as long"),
    ],
    "spark": [
        ("layouts", "200,000", "| {seconds:.1f} | {ratio:.2f} times as long as without Spark"),
        ("small", "19,968", "| {seconds:.1f} | {ratio:.0f} times as fast as the authors' Scala code, which took 25 s"),
        ("layouts", "200,000 x 500, sample 2,000, Parquet of array", "takes 1.00 to {ratio:.2f} times as long"),
        (
            "partitions",
            "200,000 x 500, sample 2,000, in 64",
            "64 partitions takes {ratio:.2f} times as long as with two",
        ),
    ],
    "sparse": [
        ("product", "200,000", "takes {ratio:.2f} times as long as scipy's product"),
        ("libsvm", "50 MB", "read in {ratio:.2f} of scikit-learn's time"),
        ("url-like", "1,916,904", "| {seconds:.0f} | {peak_gb:.1f} GB memory overhead |"),
        ("kddb-like", "19,264,097", "| {seconds:.0f} | {all_gb:.1f} GB with the matrix |"),
    ],
}


@pytest.mark.parametrize("name", SUMMARY_ROWS)
def test_the_summary_of_the_benchmarks_equals_the_measurements(name):
    noted = json.loads((HOME / "benchmarks" / f"{name}.json").read_text())["rows"]
    text = " ".join((HOME / "docs" / "benchmarks.md").read_text().split())
    for case, data, says in SUMMARY_ROWS[name]:
        row = next(r for r in noted if r["case"] == case and r["data"].startswith(data))
        in_all = (row.get("matrix_gb") or 0) + (row.get("peak_gb") or 0)
        assert says.format(**row, all_gb=in_all) in text


BENCHMARKS = ("local", "sparse", "files", "spark", "gpu", "peers")


def test_benchmark_tables_equal_the_measurements(monkeypatch):
    monkeypatch.syspath_prepend(str(HOME / "benchmarks"))
    import common
    import costs
    import page
    import peers_page

    kept = {name: json.loads((HOME / "benchmarks" / f"{name}.json").read_text()) for name in BENCHMARKS}
    for name in set(BENCHMARKS) - {"peers"}:
        assert common.is_published(page.PAGE, page.markdown(kept[name]["rows"])), name
    assert common.is_published(page.PAGE, peers_page.markdown(kept["peers"]))
    assert common.is_published(page.PAGE, costs.markdown(json.loads(costs.FILE.read_text())))


def test_the_landing_table_equals_the_measurements():
    import landing

    answers, peers = landing.Answers(landing.ANSWERS, landing.configuration()), json.loads(landing.PEERS.read_text())
    assert answers.answers
    for page, folder in landing.PAGES.items():
        assert landing.markdown(answers, peers, folder) in page.read_text()
