"""Plain numpy kernels agree with the compiled kernels, and small tables import nothing slow."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from belief.data.source import ArraySource
from belief.engines.block import DenseEngine, SmallEngine, block_engine
from belief.engines.resources import Resources
from belief.kernels import dense, nearest, plain
from belief.kernels.dense import gather
from belief.kernels.shapes import POWERS_OF_TEN, round9
from belief.method.difference import Difference

rng = np.random.default_rng(0)


def engine_type(n_rows, n_features):
    discrete = np.zeros(n_features, bool)
    return type(block_engine(np.zeros((n_rows, n_features)), np.zeros(n_rows, np.int32), discrete, Resources()))


def test_is_small():
    assert engine_type(1024, 16) is engine_type(64, 4096) is engine_type(600, 12) is SmallEngine
    assert engine_type(1025, 2) is engine_type(1024, 17) is engine_type(2, 200_000) is DenseEngine


SLOW = ("numba", "sklearn", "joblib", "pandas", "torch", "matplotlib")


def slow_imports(program):
    program += f"\nimport sys\nprint(*[name for name in {SLOW} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()


def test_select_on_a_small_array_without_tests_imports_nothing_slow():
    program = "import numpy as np, belief\nX = np.random.default_rng(0).normal(size=(80, 3))\n"
    assert slow_imports(program + "belief.select(X, X[:, 0] > 0, 1, significance=None)") == []


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other rules")
def test_small_fits_keep_their_memory():
    program = """
import numpy as np, resource, belief
X = np.random.default_rng(0).normal(size=(300, 20))
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    belief.select(X, X[:, 0] > 0, 10, significance=None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200  # pages; otherwise about 1,000


def test_round9():
    x = np.r_[
        0.0,
        -1.0,
        10.0 ** rng.uniform(-13, 29, 20_000),
        10.0 ** rng.uniform(-300, 300, 20_000),
        10.0 ** np.arange(-13, 30.0),
        1 - 2.0**-53,
    ]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(round9(x, POWERS_OF_TEN, np), [nearest.round9(v) for v in x])


def test_nearest_rows_are_those_by_exact_distances():
    """Ties, copies, outliers and large offsets, which matrix products cannot decide, among others that they can."""
    for case in range(60):
        m, F, size = int(rng.integers(8, 90)), int(rng.integers(1, 12)), int(rng.integers(1, 12))
        X = rng.normal(size=(m, F)) + 10.0 ** rng.integers(-2, 9) * (case % 3 == 0)
        X[: m // 3] = X[m // 2] if case % 4 == 1 else X[: m // 3].round(0 if case % 4 == 2 else 9)
        X[0] *= 1e6 if case % 5 == 0 else 1.0
        engine = SmallEngine(ArraySource(X), np.zeros(m, np.int32), np.zeros(F, bool), Resources())
        difference = Difference.from_summary(engine.describe(), engine.discrete, ("standard", "none")[case % 2])
        is_own = np.eye(m, dtype=bool)
        d2 = plain.distances(X, X, difference)
        d2[is_own] = np.nan
        for got, want in zip(
            nearest_lists(m, size, *plain.nearest(X, X, is_own, size, difference)),
            nearest_lists(m, size, *plain.smallest(d2, size)),
            strict=True,
        ):
            np.testing.assert_array_equal(got, want)


def test_nearest_rows_that_a_matrix_product_cannot_decide():
    """Two tight clusters far from the mean: the distances within them are smaller than the errors of the product."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((12, 1)) < 0.5, -1.0, 1.0) + 3e-8 * rng.normal(size=(12, 30))
        engine = SmallEngine(ArraySource(X), np.zeros(12, np.int32), np.zeros(30, bool), Resources())
        difference, is_own = Difference.from_summary(engine.describe(), engine.discrete, "none"), np.eye(12, dtype=bool)
        d2 = plain.distances(X, X, difference)
        d2[is_own] = np.nan
        got = nearest_lists(12, 2, *plain.nearest(X, X, is_own, 2, difference))
        np.testing.assert_array_equal(got[0], nearest_lists(12, 2, *plain.smallest(d2, 2))[0])


def nearest_lists(m, size, line, rank, column, d):
    rows, distances = np.full((m, size), -1), np.full((m, size), np.inf)
    rows[line, rank], distances[line, rank] = column, d
    return rows, distances


def test_add_identities():
    X = rng.normal(size=(40, 6))
    X[rng.random(X.shape) < 0.2], X[rng.random(X.shape) < 0.2] = np.nan, 0.0
    X[0, :2] = -0.0, -np.nan
    rows, keys = rng.permutation(40)[:30], rng.integers(0, 2**63, 4).astype(np.uint64)
    for values in (X, X.astype(np.float32)):
        got, expected = np.zeros((2, 30), np.uint64)
        plain.add_identities(values, rows, 1, keys, got)
        dense.add_identities(values, rows, 1, keys, expected)
        np.testing.assert_array_equal(got, expected)


def test_columns_of_large_and_small_arrays():
    X = rng.normal(size=(300, 900))
    ids, columns = rng.integers(0, 300, 50), rng.permutation(900)[:70]
    out = np.empty((50, 70))
    gather(X, ids, columns, out)
    for source in (ArraySource(X), ArraySource(X[:, :800].copy())):
        existing = columns[columns < source.n_features]
        values, rows, first = source.columns(ids, existing)
        np.testing.assert_array_equal(values[rows, first:], out[:, columns < source.n_features])
