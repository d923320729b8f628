"""Sparse matrices give the same results as dense ones, and as the oracle."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from effort import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from problems import kddb_like
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from test_oracle import is_close_call, run

import belief
from belief import BeliefSelector
from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.redundancy.agreement import compute_correlation
from belief.method.redundancy.collisions import Collisions

pytestmark = pytest.mark.slow


@st.composite
def sparse_cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, F, n_classes = draw(st.integers(4, 50)), draw(st.integers(1, 20)), draw(st.integers(2, 4))
    density = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    values = rng.integers(-2, 4, (m, F)) if draw(st.booleans()) else rng.standard_normal((m, F))
    X = np.where(rng.random((m, F)) < density, values, 0.0)
    X = X[np.concatenate([np.arange(m), rng.integers(0, m, draw(st.integers(0, 40)))])]
    X[:, rng.random(F) < 0.1] = draw(st.sampled_from([0.0, 2.0]))  # empty and constant columns
    X[rng.random(len(X)) < 0.1] = 0.0  # empty rows
    if draw(st.booleans()):
        X = X.astype(np.float32).astype(np.float64)
    labels = rng.integers(0, n_classes, len(X))
    labels[:n_classes] = np.arange(n_classes)
    discrete = rng.random(F) < draw(st.sampled_from([0.0, 0.0, 0.4]))
    redundancy = draw(st.sampled_from(["agreement", "mcr"]))
    given_settings = {
        "n_features_to_select": draw(st.integers(1, F)),
        "sampling": draw(st.sampled_from(["balanced", "random"])),
        "class_weight": draw(st.sampled_from(["balanced", "prior"])),
        "redundancy": redundancy,
        "n_neighbors": draw(st.integers(1, 6)),
        "sample_size": draw(st.integers(1, len(X))),
        "batch_size": draw(st.sampled_from([0.25, 1.0])),
        "neighborhood": draw(st.sampled_from(["per_class", "pooled"])),
        "scale": draw(st.sampled_from(["auto", "standard", "sigma", "none"])),
        "theta": draw(st.sampled_from(["auto", 0.3])),
        "kappa": draw(st.sampled_from([0.0, 0.5, 0.8, 1.0])),
        "random_state": draw(st.integers(0, 2**40)),
    }
    return X, labels.astype(np.int32), discrete, given_settings


def oracle(X, labels, discrete, s):
    return naive.belief(
        X, labels, s["n_features_to_select"], discrete=discrete, k=s["n_neighbors"], s=s["sample_size"],
        share=s["batch_size"], neighborhood=s["neighborhood"], scale=s["scale"], theta=s["theta"], kappa=s["kappa"],
        seed=s["random_state"], sampling=s["sampling"], class_weight=s["class_weight"], redundancy=s["redundancy"],
    )  # fmt: skip


def cut(X, blocks):
    return [sp.csr_array(part) for part in np.array_split(X, blocks) if len(part)]


@pytest.mark.parametrize(("blocks", "n_jobs", "dtype"), [(1, 1, np.float64), (3, 2, np.float64), (1, 3, np.float32)])
@given(case=sparse_cases())
@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
def test_sparse_engine_agrees_with_the_oracle(blocks, n_jobs, dtype, case):
    X, labels, discrete, given_settings = case
    X = X.astype(dtype).astype(np.float64)
    rows, classes = cut(X.astype(dtype), blocks), np.arange(labels.max() + 1)
    engine = local_engine(rows, classes, labels, discrete, Resources(n_jobs))
    got = run(engine, given_settings)
    ref = oracle(X, labels, discrete, given_settings)
    assume(not is_close_call(ref))
    size = max(np.abs(ref.w).max(initial=0), 1e-300)
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(got.se, ref.se, rtol=1e-6, atol=max(1e-9 * size, 1e-12))
    assert got.difference.scale == ref.scale
    if given_settings["redundancy"] == "mcr":
        np.testing.assert_allclose(got.tally.rates, ref.marginal, rtol=1e-9, atol=1e-9)
        assert got.watched.tolist() == ref.watch_lists[-1]
        for i in got.measure.pool:
            joint, pairs = got.measure.joint_with_pool(i)
            np.testing.assert_allclose(joint, ref.joint[i, got.measure.pool], rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(pairs, ref.joint_pairs[i, got.measure.pool])
    assert got.selected.tolist() == ref.selected
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-7, atol=1e-9)


rng = np.random.default_rng(4)
Y = rng.integers(0, 2, 150)
X = np.where(rng.random((150, 40)) < 0.1, rng.integers(1, 4, (150, 40)), 0).astype(float)
X[:, :3] += (rng.random((150, 3)) < 0.6) * Y[:, None]
SETTINGS = {"n_features_to_select": 8, "random_state": 0}


@pytest.fixture(scope="module")
def dense():
    return belief.select(X, Y, **SETTINGS)


def same(a, b):
    np.testing.assert_array_equal(a.selected, b.selected)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a.marginal, b.marginal, rtol=1e-9)
    np.testing.assert_allclose(a.redundancy, b.redundancy, rtol=1e-7, atol=1e-9)


def messy():
    """Return the same matrix with unsorted indices, duplicate entries that add up, and explicit zeros."""
    clean = sp.coo_array(X)
    order = rng.permutation(clean.nnz)
    rows, columns, values = clean.row[order], clean.col[order], clean.data[order]
    zeros = np.argwhere(X == 0)[:50]
    rows, columns = np.r_[rows, rows[:20], zeros[:, 0]], np.r_[columns, columns[:20], zeros[:, 1]]
    values = np.r_[values, np.full(20, 0.5), np.zeros(50)]
    values[:20] -= 0.5
    by_row = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[by_row], np.arange(151))
    return sp.csr_array((values[by_row], columns[by_row], starts), shape=X.shape)


def test_unsorted_indices_duplicates_and_explicit_zeros(dense):
    X = messy()
    before = X.indices.copy(), X.data.copy()
    same(belief.select(X, Y, **SETTINGS), dense)
    np.testing.assert_array_equal(X.indices, before[0])
    np.testing.assert_array_equal(X.data, before[1])


def test_64_bit_indices_integers_and_booleans(dense):
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same(belief.select(wide, Y, **SETTINGS), dense)
    same(belief.select(sp.csr_array(X.astype(np.int32)), Y, **SETTINGS), dense)
    same(belief.select(sp.csr_array(X > 0), Y, **SETTINGS), belief.select(X > 0, Y, **SETTINGS))


@pytest.mark.parametrize("n_blocks", [2, 7, 150])
def test_blocks_of_any_size(dense, n_blocks):
    blocks = cut(X, n_blocks)
    same(belief.select([blocks[0], sp.csr_array((0, 40)), *blocks[1:]], Y, **SETTINGS), dense)


@pytest.mark.parametrize("by", ["hit", "rate"])
@pytest.mark.parametrize("working_memory", [2**14, 2**30])
@pytest.mark.parametrize("n_blocks", [1, 7])
def test_joint_sums_from_dense_values_and_from_non_zeros(by, working_memory, n_blocks):
    """Sums computed from dense values agree with sums computed from non-zero values only.

    The engine uses non-zero values only if rows have few of them. To make it do so, the test sets the features that are
    not in the sums to 0.
    """
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 30)) < 0.3, rng.integers(-2, 4, (400, 30)), 0.0)
    labels, discrete = rng.integers(0, 2, 400).astype(np.int32), np.arange(30) % 4 == 0
    pairs = Pairs(rng.integers(0, 400, 9000), rng.integers(0, 400, 9000), np.zeros(9000, np.int8), 2)
    watched, columns = np.array([3, 0, 8]), np.array([29, 4, 8, 1, 20])
    joint = []
    for others in (X, np.zeros_like(X)):
        table = np.where(np.isin(np.arange(30), [*watched, *columns]), X, others)
        resources = Resources(working_memory=working_memory)
        with local_engine(cut(table, n_blocks), np.arange(2), labels, discrete, resources) as engine:
            difference = Difference.from_summary(engine.describe(), discrete, "standard")
            joint += engine.joint(difference, Collisions(0.5, by=by), [(pairs, watched)], columns)
    a, b = joint
    np.testing.assert_allclose(a.pairs, b.pairs)
    if by == "hit":
        np.testing.assert_allclose(a.joint, b.joint, rtol=1e-12)
    else:  # rates and their complements have the same correlations
        np.testing.assert_allclose(compute_correlation(a), compute_correlation(b), rtol=1e-9, atol=1e-9)


def test_nearest_finds_short_rows_without_common_features():
    """The rows nearest to row 0 have small norms, but no non-zero feature in common with it."""
    X = np.zeros((6, 6))
    X[0, 0], X[1, 1], X[2, 2] = 1.0, 0.1, 5.0
    X[3, [0, 3]] = 1.0, 9.0
    y = np.array([0, 1, 1, 1, 0, 1])
    from belief.method.difference import Difference
    from belief.method.protocols import Search

    with local_engine(sp.csr_array(X), np.arange(2), y.astype(np.int32), np.zeros(6, bool)) as engine:
        sample = engine.sample(np.array([6]), 0)
        difference = Difference.from_summary(engine.describe(), engine.discrete, "none")
        found = engine.nearest(sample, difference, Search(2, 2, 0))
    rows = found.row[np.flatnonzero(sample.row == 0)[0], 1]
    assert rows.tolist() == [5, 1]  # the empty row, then the one of length 0.1


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_column_with_an_outlier_is_not_constant(kind):
    """A value of 1e20 makes σ so large that the collision rate is 1, but the column still separates the classes."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.zeros((400, 12))
    X[:, 10], X[:, 11] = y, rng.random(400)
    sampled = belief.select(X, y, 1, sample_size=20, random_state=0, n_neighbors=5)
    assert sampled.sample_size == 20
    X[399, :11] = 1e20
    s = {**belief.PAPER, "scale": "none", "sample_size": 20, "n_neighbors": 5}
    ref = naive.belief(X, y, 2, scale="none", s=20, k=5)
    result = belief.select(kind(X), y, 2, random_state=0, **s)
    assert result.selected.tolist() == ref.selected


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_columns_far_from_zero_have_the_p_values_of_dense_ones(n_blocks):
    """Sums of values near 1e6 with a standard deviation of 0.02 would lose the digits that the F test needs."""
    X = 1e6 + np.random.default_rng(0).integers(0, 4, (150, 5)) / 64
    found, expected = (belief.select(x, Y, 3, random_state=0) for x in (cut(X, n_blocks), X))
    np.testing.assert_allclose(found.p_value, expected.p_value, rtol=1e-12)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)


def test_transform_keeps_csr(dense):
    selector = BeliefSelector(8, random_state=0).fit(sp.csr_matrix(X), Y)
    out = selector.transform(sp.csr_matrix(X))
    assert out.format == "csr"
    np.testing.assert_array_equal(out.toarray(), X[:, np.sort(dense.selected)])


def test_invalid_sparse_input_raises():
    holes = sp.csr_array(X)
    holes.data[7] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN \(row 1, column \d+\): missing values in sparse data"):
        belief.select(holes, Y, 3)
    holes.data[7] = np.inf
    with pytest.raises(ValueError, match="contains infinity, in column 'x"):
        belief.select(holes, Y, 3)
    with pytest.raises(ValueError, match="block 0 has 40 columns, block 1 has 39"):
        belief.select([sp.csr_array(X[:70]), sp.csr_array(X[70:, :39])], Y, 3)
    with pytest.raises(ValueError, match="some are sparse matrices, but block 1 is a ndarray"):
        belief.select([sp.csr_array(X[:70]), X[70:]], Y, 3)
    with pytest.raises(ValueError, match="Every feature of X is constant"):
        belief.select(sp.csr_array((150, 5)), Y, 3)
    wrong = sp.csr_array(X)
    wrong.indices[:2] = 99, 100
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        belief.select(wrong, Y, 3)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        belief.select(sp.coo_array(np.ones(150)), Y, 3)
    with pytest.raises(ValueError, match="y is a sparse matrix"):
        belief.select(sp.csr_array(X), sp.csr_array(Y[:, None]), 3)
    with pytest.raises(ValueError, match="X has 3,000,000,000,000 features, which need"):
        belief.select(sp.coo_array((150, 3 * 10**12)), Y, 3)
    with pytest.raises(ValueError, match="Complex"):
        belief.select(sp.csr_array(X + 1j), Y, 3)


@pytest.mark.parametrize(("significance", "probe"), [(None, 0), ("permutation", 40 * 2**20)])
def test_memory_of_wide_sparse_data(significance, probe):
    """Significance tests may use 40 MB more for the probe, whose size does not grow with the table."""
    import tracemalloc

    problem = kddb_like(2000, 200_000, 20)
    how = {"sample_size": 50, "random_state": 0, "significance": significance}
    belief.select(problem.X, problem.y, 5, **how)
    tracemalloc.start()
    belief.select(problem.X, problem.y, 5, **how)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 8 * 200_000 + probe  # 60 numbers per feature; a dense table would need 3,200 MB


def test_auto_scale_on_word_counts(data_home):
    """Scaling word counts by σ gives rare words too much weight, so a selection without significance tests is worse."""
    from scipy.io import loadmat

    file = loadmat(data_home / "text" / "RELATHE.mat")
    X, y = sp.csr_matrix(file["X"], dtype=float), file["Y"].ravel()
    scores = {}
    for scale in ("auto", "sigma"):
        model = make_pipeline(BeliefSelector(10, scale=scale, significance=None, random_state=0), LinearSVC())
        scores[scale] = cross_val_score(model, X, y, cv=3, scoring="f1_macro").mean()
    assert BeliefSelector(10, random_state=0).fit(X, y).result_.n_rows == X.shape[0]
    assert scores["auto"] > scores["sigma"] + 0.05
