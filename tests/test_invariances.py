"""Tests of the invariances in section 7 of docs/method.md."""

import numpy as np
import pytest

import belief

rng = np.random.default_rng(11)
M, F = 240, 12
Y = rng.integers(0, 3, M)
X = rng.standard_normal((M, F))
X[:, 0] += Y
X[:, 1] = X[:, 0] + 0.2 * rng.standard_normal(M)
X[:, 2] = np.round(X[:, 2])
X[:, 3] = 7.0
X = np.concatenate([X, X[:40]])
Y = np.concatenate([Y, Y[:40]])
SETTINGS = {"n_features_to_select": 6, "sample_size": 150, "random_state": 3, "copies": "keep"}


@pytest.fixture(scope="module")
def reference():
    return belief.select(X, Y, **SETTINGS)


def same(a, b, rtol=1e-9):
    np.testing.assert_array_equal(a.selected, b.selected)
    np.testing.assert_allclose(a.weights, b.weights, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(a.marginal, b.marginal, rtol=rtol)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(a.redundancy, b.redundancy, rtol=1e-7, atol=1e-9)
    for name in ("p_neighbours", "round", "metric"):  # the probe is the same, so these are bit-identical
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_allclose(a.p_value, b.p_value, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_select_with_any_number_of_threads(reference, n_jobs):
    same(belief.select(X, Y, n_jobs=n_jobs, **SETTINGS), reference)


@pytest.mark.parametrize("n_blocks", [1, 2, 7, 280])
def test_select_with_any_number_of_blocks(reference, n_blocks):
    same(belief.select(np.array_split(X, n_blocks), Y, **SETTINGS), reference)


@pytest.mark.parametrize("memory", [16, 100])
def test_select_with_any_working_memory(reference, memory):
    same(belief.select(X, Y, working_memory=memory, **SETTINGS), reference)


def test_select_from_float32_equals_float64():
    narrow = X.astype(np.float32)
    same(belief.select(narrow, Y, **SETTINGS), belief.select(narrow.astype(np.float64), Y, **SETTINGS))


def test_select_from_integers_equals_floats():
    whole = np.round(3 * X).astype(np.int8)
    same(belief.select(whole, Y, **SETTINGS), belief.select(whole.astype(float), Y, **SETTINGS))


def test_select_with_any_memory_order_and_memory_maps(reference, tmp_path):
    same(belief.select(np.asfortranarray(X), Y, **SETTINGS), reference)
    same(belief.select(X[:, ::-1][:, ::-1], Y, **SETTINGS), reference)
    file = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    same(belief.select(np.memmap(tmp_path / "X", dtype=np.float64, mode="r", shape=X.shape), Y, **SETTINGS), reference)


def test_select_from_rescaled_and_shifted_features():
    a = belief.select(X, Y, scale="standard", **SETTINGS)
    b = belief.select(X * 1e3 ** rng.integers(-2, 3, F) + rng.integers(-5, 5, F), Y, scale="standard", **SETTINGS)
    same(a, b, rtol=1e-6)


def test_select_with_renamed_classes(reference):
    same(belief.select(X, np.array(["ape", "mole", "zebra"])[Y], **SETTINGS), reference)


def test_select_with_classes_in_another_order():
    """Significance is not tested, because the shuffles of the probe depend on the order of classes."""
    plain = {**SETTINGS, "significance": None}
    names = np.array(["zebra", "ape", "mole"])
    result, wanted = belief.select(X, names[Y], **plain), belief.select(X, Y, **plain)
    np.testing.assert_array_equal(result.selected, wanted.selected)
    np.testing.assert_allclose(result.weights, wanted.weights, rtol=1e-9, atol=1e-12)


def test_copy_of_a_feature_has_the_same_weight_and_comes_later_with_redundancy():
    twins = np.column_stack([X, X[:, 0]])
    plain = belief.select(twins, Y, 13, sample_size=150, random_state=3, copies="keep", redundancy=None)
    paying = belief.select(twins, Y, 13, sample_size=150, random_state=3, copies="keep")
    assert plain.weights[0] == pytest.approx(plain.weights[F], rel=1e-12)
    assert plain.selected.tolist().index(0) < plain.selected.tolist().index(F)
    assert paying.selected.tolist().index(F) > plain.selected.tolist().index(F)


def test_constant_features_come_last():
    result = belief.select(X, Y, F, sample_size=150, random_state=3, copies="keep")
    assert result.selected[-1] == 3
    assert result.constant.tolist() == [3]


def test_select_depends_on_the_seed_only(reference):
    same(belief.select(X, Y, **SETTINGS), reference)
    other = belief.select(X, Y, **{**SETTINGS, "random_state": 4})
    assert not np.allclose(other.weights, reference.weights, rtol=1e-6)
    drawn = belief.select(X, Y, 6, sample_size=150, copies="keep")
    same(belief.select(X, Y, 6, sample_size=150, copies="keep", random_state=drawn.seed), drawn)


def test_ties_between_neighbours_are_shared_by_the_classes():
    """In data with five distinct rows, sorted by class, all pooled neighbours of a query are ties."""
    grid = np.tile(np.arange(5.0), 120)[:, None] * np.ones((1, 3))
    y = np.repeat([0, 1, 2], 200)
    from belief.engines.block import local_engine
    from belief.method.difference import Difference
    from belief.method.protocols import Search

    with local_engine(grid, np.arange(3), y.astype(np.int32), np.zeros(3, bool)) as engine:
        sample = engine.sample(np.array([100]), 0)
        difference = Difference.from_summary(engine.describe(), engine.discrete, "standard")
        found = engine.nearest(sample, difference, Search(30, 1, 0))
    share = np.bincount(found.target.ravel(), minlength=3) / found.target.size
    assert found.d2.max() == 0.0
    np.testing.assert_allclose(share, 1 / 3, atol=0.15)


@pytest.mark.parametrize("rare", [0.5, 0.2, 0.05, 0.02])
def test_mean_z_of_noise_is_0_for_any_class_balance(rare):
    def mean_z(seed, **settings):
        rng = np.random.default_rng(seed)
        y = rng.permutation(1500) < rare * 1500
        return belief.select(rng.standard_normal((1500, 60)), y, 5, random_state=seed, **settings).z.mean()

    assert abs(np.mean([mean_z(seed, significance=None) for seed in range(6)])) < 0.3
    if rare <= 0.05:  # with the weights of the paper, noise has a large z
        assert mean_z(0, **belief.PAPER) > 5
