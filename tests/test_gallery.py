"""The examples of the gallery run without warnings, and the claims in their text are true."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow
HOME = Path(__file__).parents[1]
GALLERY = HOME / "examples" / "gallery"
ON_SPARK = "plot_10_spark"
SINGLE_CELLS = "plot_12_single_cells"
EXAMPLES = sorted(path.stem for path in GALLERY.glob("plot_*.py") if path.stem != ON_SPARK)


@pytest.fixture(scope="module")
def run():
    """Return a function that runs an example once, and returns its variables and its output."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    known = {}

    def run_once(name, capfd):
        if name == SINGLE_CELLS:
            pytest.importorskip("anndata", reason="the extra anndata is not installed")
        if name not in known:
            variables = runpy.run_path(str(GALLERY / f"{name}.py"))
            plt.close("all")
            known[name] = variables, "".join(capfd.readouterr())
        return known[name]

    return run_once


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_without_warnings(run, name, capfd):
    """In tests, warnings raise errors; only warnings of other threads and processes are printed."""
    printed = run(name, capfd)[1]
    assert "Warning" not in printed
    assert str(HOME) not in printed
    assert "object at 0x" not in printed
    assert "[[]" not in printed


def test_first_steps(run, capfd):
    v, _ = run("plot_01_first_steps", capfd)
    assert (v["result"].q_value[v["result"].selected] > 0.05).tolist() == [False] * 5 + [True]
    assert v["auto"].selected_names == v["result"].selected_names[:5]
    assert v["result"].explain("tenure_months").redundant_with == "tenure_days"


def test_belief_has_the_highest_score_and_is_not_the_fastest(run, capfd):
    found = run("plot_02_other_selectors", capfd)[0]["found"]
    assert max(found, key=lambda name: found[name][1]) == "BELIEF"
    assert found["BELIEF"][0] > found["F test"][0]


def test_balanced_classes_find_all_columns_of_a_rare_class(run, capfd):
    paper, balanced = run("plot_03_rare_classes", capfd)[0]["results"].values()
    assert (balanced.selected < 10).sum() == 10
    assert (paper.selected < 10).sum() < 8
    assert paper.z[10:].min() > 3
    assert abs(balanced.z[10:].mean()) < 1


def test_redundant_groups_are_selected_once(run, capfd):
    v, _ = run("plot_04_redundancy", capfd)
    framed = (v["ranked"].redundancy >= 0.5).sum(axis=1) > 1
    assert framed.sum() > 6
    off_diagonal = v["result"].redundancy[~np.eye(len(v["result"].selected), dtype=bool)]
    assert off_diagonal.max() < 0.5
    sizes = ("radius", "perimeter", "area")
    assert sum(name in {f"worst {size}" for size in sizes} for name in v["result"].selected_names) == 1


def test_interactions_are_found_and_named(run, capfd):
    v, printed = run("plot_05_together", capfd)
    first = printed.partition("958 boards")[0]
    assert [line.split()[1] for line in first.splitlines() if line[:1] in "12"] in (["x0", "x1"], ["x1", "x0"])
    assert len(v["boards"]) == 958
    named = {j: partner for j, partner in zip(v["result"].selected, v["result"].partner, strict=True) if partner >= 0}
    assert named
    assert set(named) & {1, 3, 5, 7}  # the middles of the edges of the board


def test_auto_stops_where_the_accuracy_does(run, capfd):
    v, _ = run("plot_06_how_many", capfd)
    best = v["tried"][int(np.argmax(v["accuracy"]))]
    assert abs(best - len(v["auto"].selected)) <= 4
    assert len({j % 10 for j in v["auto"].selected if j < 20}) == 10
    assert v["accuracy"][-1] < max(v["accuracy"])


def test_the_search_chooses_few_features(run, capfd):
    v, _ = run("plot_07_pipeline", capfd)
    assert len(v["selector"].result_.selected) == v["search"].best_params_["beliefselector__n_features_to_select"]
    assert v["mean"][v["search"].best_index_] >= v["mean"].max() - v["spread"][v["mean"].argmax()]


def test_the_gallery_of_plots_draws_each_of_them(run, capfd):
    import belief

    v, _ = run("plot_11_plots", capfd)
    text = (GALLERY / "plot_11_plots.py").read_text()
    assert {name for name in belief.plot.__all__ if f"belief.plot.{name}(" not in text} == set()
    pairs = {frozenset((i, j)) for i, j, _ in v["together"].interactions}
    assert pairs == {frozenset((0, 1)), frozenset((2, 3))}
    assert v["curve"].automatic == 5
    frequency = dict(zip(v["halves"].feature_names, v["halves"].stability.frequency, strict=True))
    assert 0.2 < frequency["tenure_days"] < 0.8
    assert 0.2 < frequency["tenure_months"] < 0.8


def test_the_names_of_the_libraries_are_among_the_words(run, capfd):
    v, _ = run("plot_08_text", capfd)
    assert {"sklearn", "scipy"} == set(v["chosen"][:2])
    assert not {"from", "are", "and", "for"} & set(v["chosen"])


@pytest.mark.linux
def test_memory_stays_below_the_size_of_the_file(run, capfd):
    v, printed = run("plot_09_large_file", capfd)
    assert sorted(v["result"].selected_names) == [f"c{j}" for j in range(8)]
    size = float(printed.split(" MiB")[0].split()[-1])
    assert size > 64 * 3
    assert np.max(v["held"] - v["held"][0]) < size


def test_one_gene_of_each_pair_of_copies_is_selected(run, capfd):
    v, _ = run(SINGLE_CELLS, capfd)
    names = v["result"].selected_names
    assert v["markers"].shape == (600, 9)
    assert {int(name[4:]) for name in names} <= set(range(12))
    assert not any(f"gene{j}" in names and f"gene{j + 1}" in names for j in (0, 4, 8))


def test_spark_selects_what_one_machine_selects(spark):
    """The example runs in a new process, because it stops its Spark session."""
    program = [sys.executable, "-W", "ignore", str(GALLERY / f"{ON_SPARK}.py")]
    paths = {"PYTHONPATH": str(HOME / "src"), "MPLBACKEND": "agg"}
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ | paths, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stdout
    assert "\nTrue " in done.stdout
    assert float(done.stdout.split("\nTrue ")[1].split()[0]) < 1e-9
    assert "['tenure_days', 'monthly_fee', 'support_calls', 'contract', 'left'" in done.stdout
