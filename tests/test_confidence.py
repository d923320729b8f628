"""How sure: the weights of noise against naive loops, p-values that are honest, and how many features stand."""

import math
import warnings

import numpy as np
import pytest

import belief
from belief.engines.block import local_engine
from belief.method.confidence import Null, luck, p_values, q_values, recentre, threshold
from belief.method.difference import Difference
from belief.method.null import LAGS, ROWS, Sharing, bias, lags_of, looked_at, pull, rates, sharing
from belief.method.partials import Pairs


def noise(seed, m=800, F=60, rare=0.5, n_strong=0):
    """Columns of noise, the first few of them shifted by class, and a class as rare as asked for."""
    rng = np.random.default_rng(seed)
    y = (rng.permutation(m) < rare * m).astype(int)
    X = rng.standard_normal((m, F))
    X[:, :n_strong] += 1.5 * y[:, None]
    return X, y


# --- the parts of the null, by loops ---


def test_rows_that_pairs_share_inflate_as_counted_by_hand():
    rng = np.random.default_rng(0)
    every = [(i, j) for i in range(9) for j in range(9) if i != j]  # a query has each neighbour once
    q, r = np.array([every[p] for p in np.sort(rng.permutation(len(every))[:40])]).T
    a = rng.standard_normal(40)
    by_row = [sum(a[p] * (int(q[p] == i) + int(r[p] == i)) for p in range(40)) for i in range(9)]
    by_pair = {}
    for p in range(40):
        pair = tuple(sorted((q[p], r[p])))
        by_pair[pair] = by_pair.get(pair, 0.0) + a[p]
    found = sharing(Pairs(q, r, np.zeros(40, np.int64), 1), a)
    alone = sum(x * x for x in a)
    assert found.rows == pytest.approx(sum(x * x for x in by_row) / alone)
    assert found.pairs == pytest.approx(sum(x * x for x in by_pair.values()) / alone)


def test_rates_are_one_over_the_mean_gap_to_the_farthest_neighbour():
    d2 = np.array([[[1.0, 2.0, 4.0], [3.0, 3.5, np.inf]], [[0.5, 1.0, 1.0], [2.0, 5.0, 6.0]]])
    found = rates(d2, np.array([0, 1]))
    assert found[0].tolist() == pytest.approx([2 / (3 + 2), 1 / 0.5])
    assert found[1].tolist() == pytest.approx([2 / 0.5, 2 / (4 + 1)])


def test_rates_of_neighbours_that_are_all_as_far_correct_nothing():
    assert np.all(rates(np.ones((3, 2, 4)), np.array([0, 1, 0])) == 0)


def difference_of(X, discrete, scale):
    with local_engine(X, np.arange(2), np.arange(len(X)) % 2, discrete) as engine:
        return Difference.from_summary(engine.describe(), engine.discrete, scale)


def naive_pull(x, lags, nominal, unit, typical, rate):
    """Slope: cov(Δ, Δ²) under e^(-rate·Δ²); single: the variance due to a row, over what the other row leaves."""
    n = len(x)
    pairs = {frozenset((i, (i + lag) % n)) for lag in lags for i in range(n)}
    gaps = [[] for _ in range(n)]
    for i, j in (sorted(pair) for pair in pairs):
        if not (math.isnan(x[i]) or math.isnan(x[j])):
            gap = (float(x[i] != x[j]) if nominal else abs(x[i] - x[j]) / unit) / typical
            gaps[i].append(gap)
            gaps[j].append(gap)
    tilt = [[math.exp(-rate * g * g) for g in row] for row in gaps]
    total = sum(map(sum, tilt))
    moment = [
        sum(t * g**k for ts, gs in zip(tilt, gaps, strict=True) for t, g in zip(ts, gs, strict=True)) / total
        for k in range(4)
    ]
    some = [(ts, gs) for ts, gs in zip(tilt, gaps, strict=True) if ts]
    means = [sum(t * g for t, g in zip(ts, gs, strict=True)) / sum(ts) for ts, gs in some]
    by_row = sum(m * m * sum(ts) for m, (ts, _) in zip(means, some, strict=True)) / total
    rows, n_pairs = sum(not math.isnan(v) for v in x), sum(map(len, gaps)) / 2
    others = max(2.0, 2 * n_pairs / rows)
    within = (moment[2] - by_row) * others / (others - 1)
    due = (moment[2] - moment[1] ** 2 - within * (1 - 1 / n_pairs)) / max(0.25, 1 - 4 / rows + 1 / n_pairs)
    return moment[3] - moment[1] * moment[2], min(1, max(0, due / within))


@pytest.mark.parametrize("n_lags", [2, 4])
@pytest.mark.parametrize("rate", [0.7, None])
def test_pull_is_what_loops_say(rate, n_lags, monkeypatch):
    monkeypatch.setattr("belief.method.null.BLOCK", 3 * 15)  # three features at a time
    rng = np.random.default_rng(1)
    X = rng.standard_normal((15, 7)) * [1, 5, 0.1, 1, 1, 1, 1] + [0, 1e3, 0, 0, 0, 0, 0]
    X[:, 4] = rng.integers(0, 3, 15)
    X[:, 6] = 2.0  # says nothing
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0, :3] = np.nan, 1.0, 2.0
    discrete = np.arange(7) == 4
    d = difference_of(X, discrete, "none" if rate is None else "standard")
    found = pull(lambda columns: X[:, columns], d, rate, n_lags)
    for j in range(6):
        slope, single = naive_pull(X[:, j], lags_of(15, n_lags), discrete[j], d.unit[j], d.typical, rate or 0.0)
        assert found.slope[j] == (0.0 if rate is None else pytest.approx(slope, rel=1e-4))
        assert found.single[j] == pytest.approx(single, abs=1e-5)
    assert found.slope[6] == found.single[6] == 0.0


@pytest.mark.parametrize("n", range(3, 20))
def test_rows_are_compared_with_others_and_no_two_of_them_twice(n):
    pairs = [frozenset((i, (i + lag) % n)) for lag in lags_of(n, 8) for i in range(n)]
    assert len(pairs) == n * min(8, (n - 1) // 2)
    assert all(len(pair) == 2 for pair in pairs)
    assert len(set(pairs)) == len(pairs)


def test_the_bias_is_that_of_hits_less_that_of_misses():
    slope = np.array([0.5, 2.0])
    found = bias(np.array([[3.0, 1.0], [2.0, 5.0]]), np.array([0.25, 0.75]), slope)
    assert found.tolist() == pytest.approx(((0.25 * (3 - 1) + 0.75 * (5 - 2)) * slope).tolist())


def test_what_is_looked_at_is_a_small_share_of_the_pairs_or_next_to_nothing():
    little = Sharing(3.0, 1.5, 0.0)
    assert looked_at(400_000, 500, little) == (ROWS[1], LAGS[1])
    assert looked_at(100, 20, little) == (ROWS[1], LAGS[1])  # a few columns take no time
    assert looked_at(8_000, 5_000, little) == (24, 2)
    assert looked_at(8_000, 5_000, Sharing(12.0, 1.5, 0.0)) == (31, 4)  # more depends on it
    assert looked_at(10**6, 30_000_000, little) == (ROWS[0], LAGS[1])


def test_the_share_of_single_rows_is_that_of_all_rows_however_few_are_looked_at():
    """Of a normal column var h, that of a·erf(a/√2) + 2φ(a), is 0.2886 of what is left when one row is given."""
    X = np.random.default_rng(0).standard_normal((256, 4000))
    d = difference_of(X, np.zeros(4000, bool), "standard")
    for n, n_lags in ((24, 2), (24, 8), (256, 2)):
        assert pull(lambda columns, n=n: X[:n, columns], d, None, n_lags).single.mean() == pytest.approx(
            0.2886, abs=0.01
        )


# --- p and q ---


def test_the_null_is_recentred_on_what_looks_irrelevant_and_not_on_what_does_not():
    rng = np.random.default_rng(2)
    z = np.concatenate([rng.standard_normal(400) + 0.4, np.full(100, 12.0)])
    shift, width = recentre(z)
    assert shift == pytest.approx(0.4, abs=0.15)
    assert 1.0 < width < 1.01
    assert recentre(np.full(5, 9.0))[0] == pytest.approx(0.0, abs=1e-9)  # nothing looks irrelevant: as computed


def test_q_values_are_those_of_benjamini_and_hochberg():
    p = np.array([0.01, 0.04, 0.03, 0.5])
    assert q_values(p).tolist() == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert threshold(np.array([0.001, 0.004, 0.5, 0.9]), 0.01) == pytest.approx(0.005)
    assert threshold(np.array([0.5, 0.9])) == 0.0
    assert p_values(np.array([0.0, 1.6448536, -np.inf])).tolist() == pytest.approx([0.5, 0.05, 1.0])


def test_a_feature_without_variance_has_p_1():
    null = Null.of(np.array([0.3, 0.1]), np.zeros(2), np.array([0.0, 0.05]), np.ones(2))
    assert p_values(null.z(np.array([0.3, 0.1])))[0] == 1.0


def test_less_is_put_down_to_luck_where_a_feature_speaks_for_itself():
    alone = np.array([1.0, np.nan, 0.1 * 5 / 6, 1e-2 * 4 / 6, 1e-4, 1e-9, 0.0])  # q = 1, -, 0.1, 0.01, ...
    np.testing.assert_allclose(luck(alone), [1, 1, 0, -1, -1, -1, -1], atol=1e-15)
    null = Null(np.full(7, 0.1), np.full(7, 0.2), luck(alone))
    np.testing.assert_allclose(null.left_of(np.full(7, 0.5)), [0.2, 0.2, 0.4, 0.6, 0.6, 0.6, 0.6])


def test_what_rounding_leaves_of_a_weight_is_not_above_noise():
    null = Null(np.array([0.1, 0.1]), np.array([0.2, 0.2]), np.ones(2))
    assert 0.1 + 0.2 - 0.1 - 0.2 != 0.0
    assert null.left_of(np.array([0.1 + 0.2, 0.3001])).tolist() == [0.0, pytest.approx(1e-4)]


@pytest.mark.parametrize(("rare", "n_strong"), [(0.5, 0), (0.05, 0), (0.5, 8)], ids=["even", "rare", "beside strong"])
def test_p_values_of_noise_are_honest(rare, n_strong):
    found = [belief.select(*noise(seed, rare=rare, n_strong=n_strong), 5, random_state=seed) for seed in range(8)]
    p = np.concatenate([r.p_value[n_strong:] for r in found])
    assert 0.02 <= np.mean(p < 0.05) <= 0.08
    assert np.mean(p < 0.001) <= 0.004 + 1 / len(p)
    if n_strong:
        assert max(r.q_value[:n_strong].max() for r in found) < 0.01


# --- how many ---


def test_of_noise_one_feature_is_selected_with_a_warning():
    X, y = noise(3)
    with pytest.warns(UserWarning, match="No feature is significant"):
        result = belief.select(X, y, "auto", random_state=0)
    assert len(result.selected) == 1
    assert "not significant" in result.explain()[0]["reason"]


@pytest.mark.parametrize("seed", [0, 1])
def test_of_an_exclusive_or_exactly_the_two(seed):
    X, _ = noise(seed, m=1000, F=100)
    y = (X[:, 13] > 0) ^ (X[:, 77] > 0)
    assert sorted(belief.select(X, y, "auto", random_state=seed).selected) == [13, 77]


def test_copies_of_columns_are_not_counted_again():
    X, y = noise(4, m=1000, n_strong=4)
    rng = np.random.default_rng(0)
    X = np.hstack([X, X[:, :4] + 0.2 * rng.standard_normal((1000, 4))])
    selected = belief.select(X, y, "auto", random_state=0).selected
    assert {int(j) % 60 for j in selected} >= {0, 1, 2, 3}
    assert len(selected) <= 6


@pytest.mark.parametrize("redundancy", ["mcr", None])
def test_the_number_is_found_without_agreement_too(redundancy):
    X, y = noise(5, m=1000, n_strong=5)
    selected = belief.select(X, y, "auto", random_state=0, redundancy=redundancy).selected
    assert set(selected[:5]) == {0, 1, 2, 3, 4}
    assert len(selected) <= 8


def test_constant_features_are_never_selected_to_make_up_a_number_that_is_found():
    X, y = noise(6, m=1000, n_strong=3)
    X[:, 50:] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not set(belief.select(X, y, "auto", random_state=0).selected) & set(range(50, 60))


def test_a_feature_that_is_the_class_is_sure_although_nothing_varies():
    X, y = noise(7, m=500, F=10)
    X[:, 3] = y
    result = belief.select(X, y, "auto", random_state=0)
    assert result.se[3] == 0.0
    assert result.p_value[3] < 1e-10
    assert result.selected[0] == 3


def test_a_feature_of_which_two_queries_say_the_same_is_not_sure():
    X, y = noise(8, m=60, F=6)
    X[:, 3] = y
    assert belief.select(X, y, 2, random_state=0, sample_size=2).p_value[3] > 0.05
