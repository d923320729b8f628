"""Tests of univariate p-values, and of the sums by class from which they are computed."""

from functools import reduce

import naive
import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, eye_array

from belief.data.labels import Labels
from belief.engines.block import Describer, local_engine
from belief.engines.resources import Resources
from belief.method import summary as summary_module
from belief.method.summary import Summary
from belief.method.univariate import f_tail, p_of_all_shuffles, univariate_p_values


def describe(X, labels, discrete):
    with local_engine(X, np.unique(labels), labels.astype(np.int32), discrete) as engine:
        return engine.describe()


def table(rng, m=300, missing=0.1):
    labels = rng.choice([0, 0, 0, 1, 1, 2], m)
    labels[:3] = 0, 1, 2
    X = np.column_stack([
        rng.standard_normal(m), labels + rng.standard_normal(m), 5 * labels + 0.1 * rng.standard_normal(m),
        rng.integers(0, 4, m), np.where(rng.random(m) < 0.5, labels, rng.integers(0, 5, m)), rng.integers(0, 90, m),
        np.full(m, 3.0), np.full(m, 2.0), rng.exponential(size=m),
    ])  # fmt: skip
    X[rng.random(X.shape) < missing] = np.nan
    return X, labels, np.array([0, 0, 0, 1, 1, 1, 1, 0, 0], bool)


def expected(X, labels, discrete):
    return np.array([naive.alone(X[:, j], labels, discrete[j]) for j in range(X.shape[1])])


# --- the tests themselves ---


@given(seed=st.integers(0, 2**32 - 1), missing=st.sampled_from([0.0, 0.1, 0.9]), m=st.sampled_from([8, 60, 300]))
@settings(max_examples=40, deadline=None)
def test_univariate_p_values_equal_scipy(seed, missing, m):
    X, labels, discrete = table(np.random.default_rng(seed), m, missing)
    np.testing.assert_allclose(
        univariate_p_values(describe(X, labels, discrete)), expected(X, labels, discrete), rtol=1e-8, atol=1e-290
    )


def test_f_test_of_equal_means_is_1_despite_rounding():
    x = np.zeros(42)
    x[[5, 10, 13, 14]] = -1, 1, 1, 2
    x[[20, 22, 24, 26, 31, 36]] = 1, -2, -2, 2, 2, 3
    labels = (np.arange(42) >= 18).astype(int)
    np.testing.assert_allclose(naive.alone(x, labels, discrete=False), 1.0)  # scipy alone may return NaN
    np.testing.assert_allclose(univariate_p_values(describe(x[:, None], labels, np.zeros(1, bool))), [1.0])


def test_f_test_keeps_its_digits_with_a_large_offset():
    rng = np.random.default_rng(0)
    noise, labels = np.round(rng.standard_normal((5000, 3)) * 2**10) / 2**10, np.arange(5000) % 4
    noise[:, 1] += labels / 16
    X = noise + 2.0**30  # without rounding
    found = univariate_p_values(
        reduce(Summary.merge, (describe(x, y, np.zeros(3, bool)) for x, y in pieces(X, labels, 700)))
    )
    np.testing.assert_allclose(found, [naive.alone(x, labels, False) for x in noise.T], rtol=1e-6)


def test_univariate_p_values_of_special_features():
    labels = np.repeat([0, 1], 3)
    X = np.column_stack([labels * 0.1, np.full(6, 0.1), np.full(6, np.nan), [1, np.nan, np.nan, 2, np.nan, np.nan]])
    found = univariate_p_values(describe(X, labels, np.zeros(4, bool)))
    assert found.tolist() == pytest.approx([0, *[np.nan] * 3], nan_ok=True)


def test_xor_features_are_not_significant_alone():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (4000, 3)).astype(float)
    labels = (X[:, 0] != X[:, 1]).astype(np.int32)
    for discrete in (np.ones(3, bool), np.zeros(3, bool)):
        assert univariate_p_values(describe(X, labels, discrete)).min() > 0.01
        assert univariate_p_values(describe(X, (X[:, 0] + (labels & 1) > 0).astype(np.int32), discrete))[0] < 1e-200


# --- in blocks ---


def pieces(X, labels, height):
    return [(X[a : a + height], labels[a : a + height]) for a in range(0, X.shape[0], height)]


@given(seed=st.integers(0, 2**32 - 1), height=st.integers(1, 120), sort=st.booleans())
@settings(max_examples=examples(30), deadline=None)
def test_summaries_with_groups_merge_in_any_order(seed, height, sort):
    rng = np.random.default_rng(seed)
    X, labels, discrete = table(rng)
    order = np.argsort(labels, kind="stable") if sort else np.arange(len(X))  # if sorted, most blocks lack a class
    parts = [describe(x, y, discrete) for x, y in pieces(X[order], labels[order], height)]
    rng.shuffle(parts)
    merged, whole = reduce(Summary.merge, parts), describe(X, labels, discrete)
    np.testing.assert_array_equal(merged.group_count, whole.group_count)
    np.testing.assert_array_equal(merged.levels.groups, whole.levels.groups)
    np.testing.assert_allclose(univariate_p_values(merged), univariate_p_values(whole), rtol=1e-8, atol=1e-290)


# --- limits and single functions ---


@pytest.mark.parametrize("sparse", [False, True])
def test_univariate_p_values_are_nan_for_too_many_or_unknown_groups(sparse):
    X, labels, discrete = table(np.random.default_rng(0), missing=0.0)
    rows, found = csr_array(X) if sparse else X, Describer(Resources())
    found.add(rows[:100], discrete, groups=labels[:100].astype(np.int32))
    found.add(rows[100:], discrete)  # the classes of these rows are unknown
    assert np.isnan(univariate_p_values(found.summary())).all()
    n = 4200  # the counts of 4,200 groups of 4,200 features need more than 2**28 bytes
    rows = csr_array(eye_array(n)) if sparse else np.eye(n, dtype=np.float32)
    few = describe(rows, np.arange(n), np.zeros(n, bool))
    assert few.group_count.shape == (0, n)
    assert np.isnan(univariate_p_values(few)).all()
    np.testing.assert_allclose(few.m2, 1 - 1 / n)


def test_levels_are_not_counted_by_group_for_many_classes():
    rng = np.random.default_rng(0)
    X, labels = rng.integers(0, 3, (3000, 2)).astype(float), np.arange(3000) % (summary_module.MAX_GROUPS + 1)
    p = univariate_p_values(describe(X, labels, np.array([True, False])))
    assert np.isnan(p[0])
    assert p[1] == pytest.approx(naive.alone(X[:, 1], labels, False), rel=1e-9)


def test_summary_regrouped():
    X, labels, discrete = table(np.random.default_rng(0))
    order = np.array([2, 0, 1])
    before = describe(X, labels, discrete)
    after = before.regrouped(order, 4)
    for c in range(3):
        np.testing.assert_array_equal(after.group_count[order[c]], before.group_count[c])
        np.testing.assert_array_equal(after.group_sum[order[c]], before.group_sum[c])
        np.testing.assert_array_equal(after.levels.groups[:, order[c]], before.levels.groups[:, c])
    assert not after.group_count[3].any()
    np.testing.assert_allclose(univariate_p_values(after), univariate_p_values(before), rtol=1e-12)
    one = before.regrouped(np.zeros(3, int), 1)  # 1 and "1" are one class
    np.testing.assert_array_equal(one.group_count[0], before.count)


def test_labels_groups_and_finish():
    labels = Labels()
    for block in (["b", "b"], ["c", "a", "b"], ["a"]):
        labels.add(np.array(block))
    codes = labels.provisional_codes(0, 6)
    assert codes.tolist() in ([0, 0, 2, 1, 0, 1], [0, 0, 1, 2, 0, 2])
    assert labels.provisional_codes(1, 4).tolist() == codes[1:4].tolist()
    assert labels.provisional_codes(2, 5).tolist() == codes[2:5].tolist()
    classes, y = labels.encode_classes()
    assert classes[y].tolist() == ["b", "b", "c", "a", "b", "a"]
    np.testing.assert_array_equal(labels.order[codes], y)


@pytest.mark.parametrize(
    ("df_between", "df_within", "f", "p"),  # p was computed with fifty digits
    [
        (33, 2804, 59.67305706018284, 1.72985379347622e-294),
        (27, 383429, 55.177387024709546, 5.99399105756256e-297),
        (36, 35629735, 41.58672273861644, 1.7035877696506e-291),
        (3, 99_999_996, 1e-9, 1.0),
    ],
)
def test_f_tail_is_accurate_with_many_rows(df_between, df_within, f, p):
    arrays = (np.array([x]) for x in (df_within, df_between * f, df_between, df_within))
    assert f_tail(*arrays)[0] == pytest.approx(p, rel=1e-9)


def test_f_tail_is_0_without_variance_within_and_1_without_variance_between():
    assert f_tail(*map(np.array, ([0.0, 1.0, 1e-300], [1.0, 0.0, 1.0], [3.0] * 3, [1e4] * 3))).tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", ["binary", "counts", "around the mode", "continuous"])
@pytest.mark.parametrize("seed", range(20))
def test_all_shuffles_are_counted(kind, seed):
    """Values that are multiples of a step have exact mid-p-values; for continuous values, the result is NaN or None."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(6, 30))
    draw = {
        "binary": lambda: rng.integers(0, 2, m),
        "counts": lambda: rng.poisson(0.4, m),
        "around the mode": lambda: rng.integers(-2, 3, m),
        "continuous": lambda: rng.random(m),
    }
    x = draw[kind]() * rng.choice([1.0, 0.1, 3.7])
    x[0] += x[0] == x.max() == x.min()
    is_chosen = rng.permutation(np.arange(m) < max(1, m // int(rng.integers(2, 5))))
    ours, exact = p_of_all_shuffles(x - x.mean(), is_chosen), naive.by_all_shuffles(x - x.mean(), is_chosen)
    assert (exact is None) == bool(np.isnan(ours)) == (kind == "continuous")
    if exact is not None:
        assert ours == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("levels", [[0.0, 0.8, 0.7 + 0.1], [-1.0, 0.0, 1.0, 1e-300]])
def test_levels_that_nearly_coincide_are_shuffled(levels):
    x = np.repeat(levels, 25)
    assert np.isnan(p_of_all_shuffles(x, np.arange(len(x)) % 3 == 0))
    assert naive.by_all_shuffles(x, np.arange(len(x)) % 3 == 0) is None
