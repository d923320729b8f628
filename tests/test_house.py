"""The import contracts of CONTRIBUTING.md."""

import ast
import re
from pathlib import Path

HOME = Path(__file__).parents[1]
SOURCE = HOME / "src" / "belief"

CONTRACTS = (HOME / "CONTRIBUTING.md").read_text().partition("### Import contracts")[2].partition("\n## ")[0]
LAYERS = [re.findall(r"`(\w+)`", line) for line in reversed(re.findall(r"^\d+\. (.*)$", CONTRACTS, re.M))]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
UPWARD = {("result", "report")}  # a result displays itself in notebooks


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def home_of(module):
    """Return the part of the package that a module belongs to: the first name after `belief`."""
    return module.split(".")[1] if "." in module else "belief"


def imported(tree):
    """Yield the modules of the package that a module imports, at any place, except those for type checkers only."""
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


def test_imports_follow_the_contracts():
    wrong = []
    for path in modules():
        here = path.relative_to(SOURCE).with_suffix("").parts[0]
        for module in imported(ast.parse(path.read_text())):
            there = home_of(module)
            if RANK[there] > RANK[here] and (here, there) not in UPWARD:
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert not wrong, wrong


def test_the_method_imports_numpy_and_scipy_alone():
    known = {"belief", "numpy", "scipy", "__future__"}
    standard = {"collections", "contextlib", "dataclasses", "difflib", "functools", "itertools", "math", "numbers"}
    standard |= {"secrets", "statistics", "sys", "time", "types", "typing"}
    for path in (SOURCE / "method").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                for name in names:
                    assert name.split(".")[0] in known | standard, f"{path.name} imports {name}"
