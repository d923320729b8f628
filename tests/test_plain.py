"""The numpy kernels for small tables agree with the compiled kernels, and small tables import no slow libraries."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from belief.data.source import ArraySource
from belief.engines.block import DenseEngine, SmallEngine, block_engine
from belief.engines.resources import Resources
from belief.kernels import dense, nearest, plain
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
    assert int(done.stdout) < 200  # page faults; about 1,000 if the memory is returned to the system


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
    """Some tables have ties, copies, outliers or large offsets, for which matrix products cannot decide."""
    for case in range(60):
        m, F, size = int(rng.integers(8, 90)), int(rng.integers(1, 12)), int(rng.integers(1, 12))
        X = rng.normal(size=(m, F)) + 10.0 ** rng.integers(-2, 9) * (case % 3 == 0)
        X[: m // 3] = X[m // 2] if case % 4 == 1 else X[: m // 3].round(0 if case % 4 == 2 else 9)
        X[0] *= 1e6 if case % 5 == 0 else 1.0
        engine = SmallEngine(ArraySource(X), np.zeros(m, np.int32), np.zeros(F, bool), Resources())
        difference = Difference.from_summary(engine.describe(), engine.discrete, ("standard", "none")[case % 2])
        for got, expected in zip(
            plain.nearest(X, X, np.arange(m), size, difference), nearest_lists(X, size, difference), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


def test_nearest_rows_that_a_matrix_product_cannot_decide():
    """Distances within two tight clusters far from the mean are smaller than the errors of the product."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((12, 1)) < 0.5, -1.0, 1.0) + 3e-8 * rng.normal(size=(12, 30))
        engine = SmallEngine(ArraySource(X), np.zeros(12, np.int32), np.zeros(30, bool), Resources())
        difference = Difference.from_summary(engine.describe(), engine.discrete, "none")
        got, _ = plain.nearest(X, X, np.arange(12), 2, difference)
        np.testing.assert_array_equal(got, nearest_lists(X, 2, difference)[0])


def nearest_lists(X, size, difference):
    d2 = plain.distances(X, X, difference)
    np.fill_diagonal(d2, np.nan)
    rows, distances = np.full((len(X), size), -1), np.full((len(X), size), np.inf)
    line, rank, *found = plain.smallest(d2, size)
    rows[line, rank], distances[line, rank] = found
    return rows, distances


def test_push_keeps_the_nearest_rows_of_each_list():
    """Candidates of a list come in one run or mixed with others, and may not fit the buffer; keys break ties."""
    for case in range(40):
        n, size, m = int(rng.integers(1, 6)), int(rng.integers(1, 12)), int(rng.integers(1, 400))
        where, group = rng.integers(0, n, m), rng.integers(0, 2, m)
        if case % 2:
            where.sort()
        d2, row, key = rng.integers(1, 20, m) / 4.0, rng.permutation(m), rng.permutation(m).astype(np.uint64)
        shape = n, 2, size
        best = np.full(shape, np.inf), np.full(shape, 2**64 - 1, np.uint64), np.full(shape, -1)
        place = rng.permutation(m)  # the position of each candidate in `of_rows`
        of_rows = [np.empty_like(x) for x in (group, key, row)]
        for out, x in zip(of_rows, (group, key, row), strict=True):
            out[place] = x
        nearest.push(best, where, place, d2, *of_rows)
        for q, g in np.ndindex(n, 2):
            mine = np.flatnonzero((where == q) & (group == g))
            mine = mine[np.lexsort((key[mine], d2[mine]))][:size]
            for got, x in zip(best, (d2, key, row), strict=True):
                np.testing.assert_array_equal(got[q, g, : len(mine)], x[mine])
            assert (best[2][q, g, len(mine) :] == -1).all()


@pytest.mark.parametrize("spread", [0.0, 1e-4, 1.0])
def test_scan_finds_all_rows_that_may_be_among_the_nearest(spread):
    """Clusters of rows are single points, tight or wide, and the distances of candidates may be limited."""
    for case in range(20):
        n, size = int(rng.integers(2, 300)), int(rng.integers(1, 12))
        X = (rng.normal(size=(4, 6))[rng.integers(0, 4, n)] + spread * rng.normal(size=(n, 6))).astype(np.float32)
        d2 = ((X[:, None].astype(np.float64) - X) ** 2).sum(axis=2)
        norm, error, groups = (X.astype(np.float64) ** 2).sum(axis=1), 30 * 2.0**-24, np.array([0, n // 3, n])
        low, gap = (1 - error) * norm, 2 * error * norm
        limit = np.full((n, 2), np.inf if case % 2 else 3.0)
        found = np.empty(n * n, np.int64), np.empty(n * n, np.int64), np.empty(n * n)
        own = np.arange(n)
        count, end = nearest.scan(
            X @ X.T, (low, gap), (low.astype(np.float32), gap), groups, own, limit, size, 0, *found
        )
        assert end == n
        pairs = set(zip(found[0][:count].tolist(), found[1][:count].tolist(), strict=True))
        assert (found[2][:count] <= d2[found[0][:count], found[1][:count]] + 1e-9).all()
        for q in range(n):
            for a, b in ((0, n // 3), (n // 3, n)):
                others = [r for r in range(a, b) if r != q]
                for r in sorted(others, key=lambda r: d2[q, r])[:size]:
                    assert (q, r) in pairs or d2[q, r] > limit[q, 0]


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
