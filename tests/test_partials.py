"""Tests of mergeable partial results (summaries, neighbours, sums, samples), of row keys and of quotas."""

from fractions import Fraction
from functools import reduce

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belief.engines.block import local_engine
from belief.method.arrays import lexsort_pairs
from belief.method.partials import Joint, Neighbours, Pairs, Tally
from belief.method.redundancy.agreement import count_mutual_once
from belief.method.redundancy.collisions import Collisions, empty_joint
from belief.method.sampling import Sample, batches, proportional_quota, row_keys
from belief.method.summary import Levels, Summary


def describe(X, labels, discrete):
    with local_engine(X, np.arange(3), labels, discrete) as engine:
        return engine.describe()


def assert_same(a, b, rtol=1e-12):
    for name in a.__dataclass_fields__:
        x, y = getattr(a, name), getattr(b, name)
        if name in ("group_sum", "origin", "shift"):  # only their combination is independent of the order
            continue
        if isinstance(x, Levels):
            assert_same(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_summary_merge(seed, parts):
    rng = np.random.default_rng(seed)
    X = np.column_stack([1e6 + rng.standard_normal(50), rng.integers(0, 4, 50), np.full(50, 0.1), np.full(50, np.nan)])
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = rng.integers(0, 3, 50).astype(np.int32)
    discrete = np.array([False, True, False, True])
    cuts = np.sort(rng.choice(np.arange(1, 50), parts - 1, replace=False))
    pieces = [describe(x, y, discrete) for x, y in zip(np.split(X, cuts), np.split(labels, cuts), strict=True)]
    rng.shuffle(pieces)
    merged = reduce(Summary.merge, pieces, Summary.zero(4))
    assert_same(merged, describe(X, labels, discrete), rtol=1e-9)  # with a mean of 1e6, ten digits of m2 are right
    for c, (n, total) in enumerate(zip(merged.group_count, merged.group_sum, strict=True)):
        x = X[labels == c, 0]
        assert merged.origin[0] + total[0] / n[0] == pytest.approx(np.nanmean(x), rel=1e-14)
    present = X[:, 0][~np.isnan(X[:, 0])]
    assert merged.mean[0] == pytest.approx(present.mean(), rel=1e-14)
    assert merged.m2[0] == pytest.approx(present.var() * len(present), rel=1e-8)


@pytest.mark.parametrize("parts", [1, 2, 40])
def test_variance_beside_a_large_mean_does_not_depend_on_the_parts(parts):
    """Timestamps in nanoseconds have such values: with rounded sums, the mean would have an error of about σ."""
    rng = np.random.default_rng(0)
    X, labels = 1.7e18 + rng.normal(0, 1e4, (4000, 3)), rng.integers(0, 3, 4000).astype(np.int32)
    X[:, 1] = np.sort(X[:, 1])
    X[0, 2] = 0.0  # such as a missing date that is stored as 0
    cuts = zip(np.array_split(X, parts), np.array_split(labels, parts), strict=True)
    pieces = (describe(x, y, np.zeros(3, bool)) for x, y in cuts)
    found = reduce(Summary.merge, pieces)
    exact = [[int(x) for x in column] for column in X.T]
    for j, column in enumerate(exact):
        mean = Fraction(sum(column), len(column))
        assert found.m2[j] == pytest.approx(float(sum((x - mean) ** 2 for x in column)), rel=1e-9)
        assert found.mean[j] == pytest.approx(float(mean), rel=1e-12)
        for c in range(3):
            members = [x for x, label in zip(column, labels, strict=True) if label == c]
            from_origin = Fraction(sum(members), len(members)) - int(found.origin[j])
            assert found.group_sum[c, j] / found.group_count[c, j] == pytest.approx(float(from_origin), rel=1e-9)


def random_partial(kind, rng):
    if kind is Neighbours:
        d2 = np.sort(rng.integers(0, 5, (3, 2, 4)).astype(float), axis=2)
        key_ = rng.integers(0, 2**63, (3, 2, 4)).astype(np.uint64)
        order = np.lexsort((key_, d2), axis=2)
        rows, labels = rng.integers(0, 99, (3, 2, 4)), rng.integers(0, 2, (3, 2, 4))
        return Neighbours(*(np.take_along_axis(x, order, axis=2) for x in (d2, key_, rows, labels)))
    if kind is Joint:
        return Joint(*(rng.random(shape) for shape in ((2, 3), (2, 3), (2, 2, 1), (2, 1, 3))))
    sums = (rng.random(shape) for shape in ((4, 3), (4, 1), (3,), (2, 2, 3), (1, 2, 1)))
    return Tally(*sums, int(rng.integers(9)))


def zero_of(kind):
    if kind is Neighbours:
        return Neighbours.zero(3, 2, 4)
    if kind is Joint:
        return empty_joint(Collisions(0.8, by="rate"), 2, 3)
    none = np.zeros(0, np.int64)
    return Tally.zero(Pairs(none, none, none, 4, coupled=True), 3, True)


@pytest.mark.parametrize("kind", [Neighbours, Tally, Joint])
def test_merge_is_associative_commutative_and_has_a_zero(kind):
    rng = np.random.default_rng(0)
    a, b, c = (random_partial(kind, rng) for _ in range(3))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(zero_of(kind)), a)


def test_pairs_counts():
    kind, weight = np.array([0, 1, 1, 2]), np.array([1.0, 0.25, 0.5, 0.0])
    pairs = Pairs(np.arange(4), np.arange(4), kind, 4)
    assert pairs.counts().tolist() == [1, 2, 1, 0]
    shared = Pairs(np.arange(4), np.arange(4), kind, 4, weight)
    assert shared.counts().tolist() == [1, 0.75, 1.25, 1]
    assert shared.take(np.array([1, 3])).weight.tolist() == [0.25, 0.0]


@given(seed=st.integers(0, 2**64 - 1), stream=st.sampled_from([0, 1]), row=st.integers(0, 2**40))
def test_row_keys_equal_the_oracle(seed, stream, row):
    assert int(row_keys(seed, stream, np.array([row]))[0]) == naive.key(seed, stream, row)


@given(sizes=st.lists(st.integers(1, 50), min_size=2, max_size=6), share=st.floats(0.01, 1))
def test_proportional_quota(sizes, share):
    s = max(len(sizes), int(share * sum(sizes)))
    got = proportional_quota(s, np.array(sizes))
    assert got.sum() == s
    assert np.all(got >= 1)
    assert np.all(got <= sizes)
    assert got.tolist() == naive.allot(s, sizes)


def test_sample_merge():
    rows, labels = np.arange(1000), np.random.default_rng(0).integers(0, 2, 1000)
    for quota in (np.array([50]), np.array([20, 5])):
        whole = Sample.draw(rows, labels, quota, 7)
        parts = [Sample.draw(rows[a : a + 130], labels[a : a + 130], quota, 7) for a in range(0, 1000, 130)]
        merged = reduce(lambda a, b: a.merge(b, quota), parts[::-1], Sample.zero())
        np.testing.assert_array_equal(merged.row, whole.row)
        assert len(whole.row) == quota.sum()


def test_batches():
    assert [b.stop - b.start for b in batches(10, 0.25)] == [3, 3, 3, 1]
    assert [b.stop - b.start for b in batches(100, 0.07)] == [7] * 14 + [2]  # 0.07·100 = 7.000000000000001
    assert [b.stop - b.start for b in batches(5, 1.0)] == [5]
    assert [b.stop - b.start for b in batches(3, 0.01)] == [1, 1, 1]


def test_count_mutual_once():
    rng = np.random.default_rng(0)
    every = [(q, r) for q in range(0, 12, 2) for r in range(12) if q != r]  # odd rows are not queries
    q, r = np.array([every[p] for p in np.sort(rng.permutation(len(every))[:40])]).T
    pairs = Pairs(q, r, np.zeros(40, np.int64), 1)
    (once, one), (twice, two) = count_mutual_once([pairs], pairs)
    assert (one, two) == (1, 2)
    given = set(zip(q.tolist(), r.tolist(), strict=True))
    both = list(zip(twice.query.tolist(), twice.neighbour.tolist(), strict=True))
    assert both
    assert all((b, a) in given for a, b in both)
    alone = set(zip(once.query.tolist(), once.neighbour.tolist(), strict=True))
    assert alone == {(a, b) for a, b in given if (b, a) not in given}
    assert len(once) + 2 * len(twice) == 40
    both_ways = Pairs(np.array([1, 2]), np.array([2, 1]), np.zeros(2, np.int64), 1)
    assert [(len(some), times) for some, times in count_mutual_once([both_ways], both_ways)] == [(1, 2)]
    few = pairs.take(q < r)
    assert count_mutual_once([few], few) == [(few, 1)]


@pytest.mark.parametrize("n", [3, 2**16, 2**16 + 1, 2**20])
def test_lexsort_pairs(n):
    rng = np.random.default_rng(0)
    first, second = np.r_[rng.integers(0, min(n, 9), 500), n - 1], np.r_[n - 1 - rng.integers(0, 3, 500), 0]
    pairs = list(zip(first.tolist(), second.tolist(), range(501), strict=True))
    assert lexsort_pairs(first, second, n).tolist() == [i for _, _, i in sorted(pairs)]
