"""Tests of the public API: its names work after `import belief`, and no module uses private names of another."""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import belief

HOME = Path(__file__).parents[1]
SOURCE = Path(belief.__file__).parent
PUBLIC = {
    "belief": {"PAPER", "BeliefSelector", "Comparison", "MissingExtraError", "Result", "SizeCurve", "__version__",
               "baselines", "compare", "data", "datasets", "plot", "progress", "report", "score_by_size",
               "select", "spark"},
    "belief.baselines": {"MRMR", "RReliefF", "Relief", "ReliefF", "mrmr"},
    "belief.data": {"ColumnSelection", "load_libsvm", "open_files"},
    "belief.datasets": {"CHURN"},
    "belief.plot": {"by_class", "stability", "comparison", "distribution", "interaction", "interactions", "ranking",
                    "score_by_size", "redundancy", "relevance_redundancy", "convergence", "timings"},
    "belief.progress": {"Progress"},
    "belief.report": {"render"},
    "belief.spark": {"BeliefSelector", "BeliefSelectorModel"},
}  # fmt: skip
HEAVY = ("numpy", "scipy", "sklearn", "joblib", "numba", "pandas", "pyarrow", "matplotlib", "pyspark", "torch")


def fresh(code):
    """Return the output of a program that runs in a new interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def imported_after(code):
    return fresh(f"import sys; {code}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))").split()


# --- public names ---


@pytest.mark.slow
@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_works_after_import_belief(module):
    code = f"import json, belief; m = {module}; print(json.dumps([[n, bool(getattr(m, n))] for n in m.__all__]))"
    assert sorted(json.loads(fresh(code))) == [[name, True] for name in sorted(PUBLIC[module])]


def test_no_other_module_has_all():
    said = [path for path in SOURCE.rglob("*.py") if re.search(r"^__all__ = ", path.read_text(), re.M)]
    names = {"belief" + "".join(f".{p}" for p in path.relative_to(SOURCE).with_suffix("").parts) for path in said}
    assert {name.removesuffix(".__init__") for name in names} - {
        "belief.kernels.dense",
        "belief._utils.optional",
    } == set(PUBLIC)


def test_unknown_names_raise():
    assert set(dir(belief)) == set(belief.__all__)
    for module in (belief, belief.data, belief.spark):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
            module.nothing  # noqa: B018


# --- cost of the import ---


def test_importing_belief_imports_nothing_heavy():
    assert imported_after("import belief") == []


def test_no_module_imports_an_extra_before_it_is_used():
    modules = "; ".join(name for name in PUBLIC if name != "belief")
    found = imported_after(f"import belief; {modules}")  # scikit-learn imports pandas if it is installed
    assert not {"matplotlib", "pyspark", "torch"} & set(found)


# --- private names ---


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_"


def defined_in(tree):
    """Yield the names that a module defines: functions, classes, variables, and attributes that it sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def used_in(tree):
    """Yield the private names that a module imports, or uses as attributes, except of `self`, `cls` and `super()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("belief"):
            yield from filter(is_private, (alias.name for alias in node.names))
        elif (
            isinstance(node, ast.Attribute)
            and is_private(node.attr)
            and ast.unparse(node.value) not in ("self", "cls", "super()")
        ):
            yield node.attr


def test_no_module_uses_a_private_name_of_another():
    """A class may use private attributes that it inherits; otherwise, private names are only used in their module."""
    trees = {str(p.relative_to(SOURCE)): ast.parse(p.read_text()) for p in SOURCE.rglob("*.py")}
    homes = defaultdict(set)
    for module, tree in trees.items():
        for name in filter(is_private, defined_in(tree)):
            homes[name].add(module)
    reached = {
        (module, name)
        for module, tree in trees.items()
        for name in used_in(tree)
        if homes[name] and module not in homes[name]
    }
    assert not reached, reached
