"""The sparse problems made to measure are what they say they are."""

import math
import tracemalloc
from hashlib import blake2b

import numpy as np
import pytest
from problems import SparseProblem, kddb_like, url_like
from scipy.sparse import vstack
from scipy.stats import spearmanr

MAKERS = {"url-like": (url_like, 115, 1 / 3, 40), "kddb-like": (kddb_like, 29, 0.86, 40)}
N_ROWS, N_FEATURES = 40_000, 200_003


@pytest.fixture(scope="module", params=MAKERS)
def problem(request):
    return MAKERS[request.param][0](N_ROWS, N_FEATURES, block_rows=15_000)


@pytest.fixture(scope="module")
def whole(problem):
    return vstack(problem.X, format="csr")


def rates(problem, whole):
    """How often each informative column is in the rows of class 0 and of class 1."""
    present = whole[:, problem.informative].toarray() != 0
    return np.array([present[problem.y == c].mean(axis=0) for c in (0, 1)])


def test_shape_and_types(problem):
    assert isinstance(problem, SparseProblem)
    assert problem.name in MAKERS
    assert [X.shape for X in problem.X] == [(15_000, N_FEATURES), (15_000, N_FEATURES), (10_000, N_FEATURES)]
    assert problem.y.shape == (N_ROWS,)
    assert problem.y.dtype == np.int8
    for X in problem.X:
        assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)


def test_rows_are_sorted_without_duplicates_and_within_the_width(problem):
    for X in problem.X:
        new_row = np.zeros(X.nnz + 1, bool)
        new_row[X.indptr] = True
        assert np.all((np.diff(X.indices) > 0) | new_row[1:-1])
        assert X.indices.min() >= 0
        assert X.indices.max() < N_FEATURES


def test_nonzeros_per_row_and_share_of_positives(problem, whole):
    _, nnz, positive, _ = MAKERS[problem.name]
    counts = np.diff(whole.indptr)
    assert abs(counts.mean() - nnz) < 0.02 * nnz
    assert counts.std() > 0.1 * nnz
    assert abs(problem.y.mean() - positive) < 6 * math.sqrt(0.25 / N_ROWS)


def test_nnz_per_row_may_be_a_fraction():
    problem = kddb_like(50_000, 20_000, 7.5)
    assert abs(problem.X[0].nnz / 50_000 - 7.5) < 0.05


def test_popularity_follows_a_power_law_and_not_the_column_numbers(problem, whole):
    popularity = np.bincount(whole.indices, minlength=N_FEATURES)
    falling = np.sort(popularity)[::-1]
    assert falling[: N_FEATURES // 100].sum() > 0.6 * whole.nnz
    # a straight line of slope -1 in logarithms, from where columns are no longer in most rows to where they are rare
    ranks = np.unique(np.geomspace(1_000, 20_000, 30).astype(int))
    slope = np.polyfit(np.log(ranks), np.log(falling[ranks]), 1)[0]
    assert -1.2 < slope < -0.8
    assert abs(spearmanr(np.arange(N_FEATURES), popularity).statistic) < 0.05
    top = np.argsort(-popularity)[:1_000]
    assert np.all(np.histogram(top, bins=4, range=(0, N_FEATURES))[0] > 150)


def test_values(problem, whole):
    assert whole.data.min() > 0
    assert whole.data.max() == 1
    real = np.unique(whole.indices[whole.data != 1])
    assert len(real) == (40 if problem.name == "url-like" else 0)
    if len(real):
        present = np.bincount(whole.indices, minlength=N_FEATURES)[real] / N_ROWS
        assert np.all(np.abs(present - 0.9) < 0.02)
        assert abs(whole[:, real].sum() / (N_ROWS * present.sum()) - 0.5) < 0.01


def test_informative_columns_differ_between_the_classes_strongest_first(problem, whole):
    n = MAKERS[problem.name][3]
    assert len(np.unique(problem.informative)) == n
    rate = rates(problem, whole)
    difference = rate[1] - rate[0]
    expected = np.linspace(0.25, 0.05, n) * np.where(np.arange(n) % 2, -1, 1)
    error = np.sqrt(sum(0.3 * 0.7 / (problem.y == c).sum() for c in (0, 1)))
    assert np.all(np.abs(difference - expected) < 6 * error)
    assert spearmanr(np.abs(difference), -np.arange(n)).statistic > 0.95
    share = np.bincount(whole.indices, minlength=N_FEATURES)[problem.informative] / N_ROWS
    assert np.all((share > 0.045) & (share < 0.31))


def test_other_columns_do_not_differ(problem, whole):
    counts = np.array([np.bincount(whole[problem.y == c].indices, minlength=N_FEATURES) for c in (0, 1)])
    sizes = np.bincount(problem.y)
    share = counts.sum(axis=0) / N_ROWS
    common = np.flatnonzero((share > 0.005) & (share < 0.995))
    common = np.setdiff1d(common, problem.informative)
    error = np.sqrt(share * (1 - share) * (1 / sizes).sum())
    score = np.abs(counts[1] / sizes[1] - counts[0] / sizes[0])[common] / error[common]
    assert len(common) > 100
    assert score.max() < 6


@pytest.mark.parametrize("make", [url_like, kddb_like])
def test_a_seed_makes_the_same_rows_in_blocks_of_any_size(make):
    one, other = make(1_000, 50_000, seed=3), make(1_000, 50_000, seed=3, block_rows=77)
    assert len(one.X) == 1
    assert len(other.X) == 13
    assert (one.X[0] != vstack(other.X)).nnz == 0
    assert np.array_equal(one.y, other.y)
    assert np.array_equal(one.informative, other.informative)
    more = make(2_000, 50_000, seed=3)
    assert (one.X[0] != more.X[0][:1_000]).nnz == 0
    different = make(1_000, 50_000, seed=4)
    assert not np.array_equal(one.y, different.y)
    assert not np.array_equal(one.informative, different.informative)


DIGESTS = {url_like: "b1179bf44c4fdda3", kddb_like: "2c3dce8284233b55"}


@pytest.mark.smoke
@pytest.mark.parametrize("make", DIGESTS)
def test_the_rows_are_the_ones_the_published_figures_were_computed_on(make):
    problem = make(1_000, 50_000)
    (X,) = problem.X
    parts = (X.indptr, X.indices, X.data, problem.y, problem.informative)
    assert blake2b(b"".join(x.tobytes() for x in parts), digest_size=8).hexdigest() == DIGESTS[make]


def test_without_redundant_columns_every_informative_one_is_alone(problem):
    assert problem.relevant == tuple((j,) for j in problem.informative.tolist())
    assert problem.redundant.shape == (0,)
    assert problem.discrete.tolist() == [False] * N_FEATURES


@pytest.mark.parametrize("make", [url_like, kddb_like])
def test_redundant_columns_repeat_the_first_of_their_group(make):
    problem = make(40_000, 50_000, n_redundant=50, block_rows=15_000)
    whole = vstack(problem.X, format="csc")
    assert [group[0] for group in problem.relevant] == problem.informative.tolist()
    assert [len(group) for group in problem.relevant] == [3] * 10 + [2] * 30
    assert sorted(j for group in problem.relevant for j in group[1:]) == problem.redundant.tolist()
    assert len(np.union1d(problem.informative, problem.redundant)) == 90
    assert problem.discrete.tolist() == [False] * 50_000
    for original, *copies in problem.relevant:
        there = whole[:, [original]].toarray().ravel()
        for copy in (whole[:, [j]].toarray().ravel() for j in copies):
            assert set(copy) == {0, 1}
            assert not copy[there == 0].any()
            assert abs(copy[there == 1].mean() - 0.9) < 6 * math.sqrt(0.09 / there.sum())
            assert np.corrcoef(there, copy)[0, 1] > 0.9
    assert abs(whole.nnz / 40_000 - MAKERS[problem.name][1]) < 0.02 * whole.nnz / 40_000
    plain = make(40_000, 50_000)  # copies change neither the classes nor which columns are informative
    assert np.array_equal(problem.y, plain.y)
    assert np.array_equal(problem.informative, plain.informative)


def test_redundant_rows_are_the_same_in_blocks_of_any_size():
    one, other = (url_like(1_000, 50_000, n_redundant=50, block_rows=n) for n in (1_000, 77))
    assert (one.X[0] != vstack(other.X)).nnz == 0


def test_besides_the_rows_only_one_block_is_in_memory():
    kddb_like(10, 20_000, n_redundant=50)  # compiles
    tracemalloc.start()
    problem = kddb_like(40_000, 20_000, n_redundant=50, block_rows=2_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * sum(x.nbytes for X in problem.X for x in (X.data, X.indices, X.indptr))


def test_a_narrow_problem_ends():
    problem = kddb_like(500, 140, 29)
    assert abs(problem.X[0].nnz / 500 - 29) < 2


REFUSED = {
    "no rows": ({"n_rows": 0}, "n_rows must be an integer of at least 1; got 0"),
    "a fraction": ({"block_rows": 1.5}, "block_rows must be an integer"),
    "none informative": ({"n_informative": 0}, "n_informative must be"),
    "negative": ({"n_real": -1}, "n_real must be an integer of at least 0"),
    "half a copy": ({"n_redundant": 0.5}, "n_redundant must be an integer of at least 0"),
    "too many copies": ({"n_redundant": 900}, "nnz_per_row=29 is too small: 40 informative, 900 redundant and 0 real"),
    "too wide": ({"n_features": 2**31}, "below 2..31"),
    "too narrow": ({"n_features": 50}, "n_features=50 is too small.*at least 136"),
    "too few non-zeros": ({"nnz_per_row": 3}, "nnz_per_row=3 is too small: 40 informative, 0 redundant and 0 real"),
    "one class": ({"positive": 1.0}, "positive must be between 0 and 1"),
    "huge blocks": ({"n_rows": 10**8, "block_rows": 10**8}, "block_rows=100000000 is too large"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        kddb_like(**{"n_rows": 10, "n_features": 1_000} | options)
