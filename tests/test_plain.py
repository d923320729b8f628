"""Small tables need nothing compiled, and have the numbers of those for which it is."""

import subprocess
import sys

import numpy as np
import pytest

import belief
from belief.data.source import ArraySource
from belief.engines.block import DenseEngine, SmallEngine, block_engine
from belief.engines.resources import Resources
from belief.kernels import identity, nearest, plain
from belief.kernels.dense import gather
from belief.method.settings import PAPER

rng = np.random.default_rng(0)


def engine_of(n_rows, n_features):
    discrete = np.zeros(n_features, bool)
    return type(block_engine(np.zeros((n_rows, n_features)), np.zeros(n_rows, np.int32), discrete, Resources()))


def test_which_tables_are_small():
    assert engine_of(1024, 16) is engine_of(64, 4096) is engine_of(600, 12) is SmallEngine
    assert engine_of(1025, 2) is engine_of(1024, 17) is engine_of(2, 200_000) is DenseEngine


SLOW = ("numba", "scipy", "sklearn", "joblib", "pandas", "torch", "matplotlib")


def loaded_by(program):
    program += f"\nimport sys\nprint(*[name for name in {SLOW} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()


def test_the_demo_waits_for_no_compiler_and_for_no_large_library():
    assert loaded_by("from belief.cli import main\nmain(['demo'])") == []


def test_nor_does_a_small_array():
    program = "import numpy as np, belief\nX = np.random.default_rng(0).normal(size=(80, 3))\n"
    assert loaded_by(program + "belief.select(X, X[:, 0] > 0, 1)") == []


def test_distances_are_rounded_to_the_same_bits():
    x = np.r_[
        0.0,
        -1.0,
        10.0 ** rng.uniform(-13, 29, 20_000),
        10.0 ** rng.uniform(-300, 300, 20_000),
        10.0 ** np.arange(-13, 30.0),
        1 - 2.0**-53,
    ]
    np.testing.assert_array_equal(plain.round9(x), [nearest.round9(v) for v in x])


def test_rows_have_the_same_numbers():
    X = rng.normal(size=(40, 6))
    X[rng.random(X.shape) < 0.2], X[rng.random(X.shape) < 0.2] = np.nan, 0.0
    X[0, :2] = -0.0, -np.nan
    rows, keys = rng.permutation(40)[:30], rng.integers(0, 2**63, 4).astype(np.uint64)
    for values in (X, X.astype(np.float32)):
        got, wanted = np.zeros((2, 30), np.uint64)
        plain.of_dense(values, rows, 1, keys, got)
        identity.of_dense(values, rows, 1, keys, wanted)
        np.testing.assert_array_equal(got, wanted)


def test_columns_of_large_and_small_arrays_are_picked_alike():
    X = rng.normal(size=(300, 900))
    ids, columns = rng.integers(0, 300, 50), rng.permutation(900)[:70]
    out = np.empty((50, 70))
    gather(X, ids, columns, out)
    for source in (ArraySource(X), ArraySource(X[:, :800].copy())):
        picked = columns[columns < source.n_features]
        values, rows, first = source.columns(ids, picked)
        np.testing.assert_array_equal(values[rows, first:], out[:, columns < source.n_features])


def table(kind):
    X = rng.normal(size=(200, 8)).round(1)
    y = (X[:, 0] + X[:, 1] > 0).astype(int) if kind != "numbers" else X[:, 0] + 0.5 * rng.normal(size=200)
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4] = rng.integers(0, 4, 200)
    X[:, 5] = 7.0
    return X, y


@pytest.mark.parametrize("settings", [{}, PAPER, {"copies": "merge"}], ids=["default", "paper", "copies merged"])
@pytest.mark.parametrize("kind", ["classes", "missing", "numbers"])
def test_results_are_those_of_the_compiled_kernels(monkeypatch, kind, settings):
    X, y = table(kind)
    if kind == "numbers" and settings is PAPER:
        settings = {**PAPER, "sampling": "random", "class_weight": "prior"}
    asked = {"discrete_features": [4], "random_state": 1, "device": "cpu", **settings}
    small = belief.select(X, y, 4, **asked)
    monkeypatch.setattr("belief.engines.block.small.MOST", 0)
    large = belief.select(X, y, 4, **asked)
    assert small.selected_names == large.selected_names
    for name in ("weights", "se", "p_value", "relevance", "scores", "redundancy", "watched_redundancy"):
        np.testing.assert_allclose(getattr(small, name), getattr(large, name), rtol=1e-9, atol=1e-11, err_msg=name)
