"""The house as CONTRIBUTING.md draws it: imports go one way, pieces are small, and the map is true."""

import ast
import re
from pathlib import Path
from statistics import median

import pytest

HOME = Path(__file__).parents[1]
SOURCE = HOME / "src" / "belief"
CONTRIBUTING = (HOME / "CONTRIBUTING.md").read_text()

# from the bottom up: a layer imports from itself and those below it
LAYERS = [
    ("warn", "lazy", "extras", "terminal", "progress", "records"),
    ("method",),
    ("kernels", "checkpoint", "cores", "older"),
    ("data",),
    ("engines",),
    ("explain", "saved", "result", "checks", "given", "api", "frames"),
    ("datasets",),
    (
        "columns",
        "selector",
        "baselines",
        "comparing",
        "spark",
        "plot",
        "report",
        "outputs",
        "flags",
        "streams",
        "usage",
        "inputs",
        "cli",
    ),
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
UPWARD = {("result", "report"), ("explain", "report")}  # a notebook asks them themselves for a page


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def home_of(module):
    """The part of the house a module is in: the first name below belief."""
    return module.split(".")[1] if "." in module else "belief"


def imported(tree):
    """The modules of the package that a module imports, wherever in it; not those for type checkers alone."""
    for_types = {
        id(x)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for x in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("belief"):
            yield from ([node.module] if node.module != "belief" else [f"belief.{a.name}" for a in node.names])
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("belief."))


def test_imports_go_one_way():
    wrong = []
    for path in modules():
        here = path.relative_to(SOURCE).with_suffix("").parts[0]
        for module in imported(ast.parse(path.read_text())):
            there = home_of(module)
            if RANK[there] > RANK[here] and (here, there) not in UPWARD:
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert not wrong, wrong


def test_the_method_imports_numpy_alone():
    known = {"belief", "numpy", "__future__"}
    standard = {"collections", "contextlib", "dataclasses", "difflib", "functools", "itertools", "math", "numbers"}
    standard |= {"secrets", "statistics", "time", "types", "typing"}
    for path in (SOURCE / "method").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                for name in names:
                    assert name.split(".")[0] in known | standard, f"{path.name} imports {name}"


def bodies(tree):
    """The lines of each function's body, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            yield body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short_and_modules_fit_on_a_few_screens():
    outside = [p for p in modules() if "kernels" not in p.parts]
    assert median(n for p in outside for n in bodies(ast.parse(p.read_text()))) <= 5
    long = {str(p.relative_to(SOURCE)): n for p in modules() if (n := len(p.read_text().splitlines())) > 350}
    assert not long, long


# --- the map ---


def mapped():
    """The files and folders that the map names, as paths below src/belief."""
    text = CONTRIBUTING.split("```")[1]
    folders = {0: ""}
    for line in text.splitlines()[2:]:
        if not line.startswith("  "):
            break
        depth = (len(line) - len(line.lstrip())) // 2
        parent = folders[max(k for k in folders if k < depth)]
        for name in re.findall(r"(?:^\s*|\s{2,})([\w/]+(?:\.py|/))(?=\s|$)", line):
            if name.endswith("/"):
                folders = {k: v for k, v in folders.items() if k < depth} | {depth: parent + name}
            yield parent + name


def test_the_map_names_what_there_is_and_all_of_it():
    named = set(mapped())
    missing = [name for name in named if not (SOURCE / name).exists()]
    assert not missing, missing
    there = {str(p.relative_to(SOURCE)) for p in modules() if p.name != "__init__.py"}
    opened = {name for name in named if any(n != name and n.startswith(name) for n in named)}
    whole = tuple(name for name in named - opened if name.endswith("/"))
    unnamed = [p for p in there if p not in named and not p.startswith(whole)]
    assert not unnamed, unnamed


def recipes():
    section = CONTRIBUTING.split("## Ten changes")[1].split("\n## ")[0]
    return re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \|", section, re.MULTILINE)


def test_there_are_ten_recipes():
    assert len(recipes()) == 10


@pytest.mark.parametrize(("change", "files"), recipes())
def test_a_recipe_names_at_most_four_files_that_are_there(change, files):
    named = re.findall(r"`([^`]+)`", files)
    assert 1 <= len(named) <= 4, change
    for name in named:
        assert (SOURCE / name).exists() or "NEW" in name, f"{change}: {name}"
