"""Tests of the oracle, the naive implementation, on tables small enough to compute the results by hand."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [14.0]])  # misses minus hits: 9, 8, 7 for a, and 4, 8 for b
LETTERS = np.array(list("aaabb"))
KEYS = [4, 1, 6, 3, 5, 2, 0]
LABEL = np.array([0, 0, 0, 0, 1, 1, 2])


@pytest.fixture
def hand_keys(monkeypatch):
    monkeypatch.setattr(naive, "key", lambda seed, stream, i: KEYS[i])


@pytest.fixture(scope="module")
def holes():
    """Return a table with a linear copy of a column, two binary columns and missing values, and its two classes."""
    rng = np.random.default_rng(0)
    y = (rng.random(120) < 0.3).astype(int)
    X = rng.standard_normal((120, 8))
    X[:, 0] += 2 * y
    X[:, 1] = -3 * X[:, 0] + 7
    X[:, 2:4] = rng.random((120, 2)) < 0.3
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


# 1. Scaling


def test_unit_of_two_valued_columns():
    X = np.column_stack([np.repeat([5.0, 0.0], [1, 9]), np.arange(1, 11), np.repeat([2.0, 3.0], 5), np.full(10, 3)])
    discrete = np.array([False, False, True, False])
    spread = np.arange(10).std()
    units = {s: naive.summary(X, discrete, s).unit[:2].tolist() for s in ("auto", "standard", "sigma", "none")}
    for scale in ("auto", "standard"):
        assert units[scale] == [5.0, spread]
    assert units["sigma"] == [1.5, spread]
    assert units["none"] == [1.0, 1.0]


def test_distance_with_a_missing_indicator():
    X = np.append(np.repeat([5.0, 0.0], [1, 9]), np.nan)[:, None]  # a tenth of the values are 5, so sigma = 1.5
    discrete = np.array([False])
    cost = naive.d2(X, 10, discrete, naive.summary(X, discrete, "standard"))
    assert cost == pytest.approx([0.9] + [0.1] * 9 + [2 * 0.3**2])  # a missing value adds (sigma/unit)² = 0.3²


# 2. Sample


def test_mix_is_splitmix64():
    assert naive.mix(0) == 0xE220A8397B1DCDAF  # the first output of the published generator with seed 0


@pytest.mark.parametrize(
    ("sampling", "by_hand"),
    [
        ("random", [6, 1, 5, 3, 0, 4, 2]),
        ("balanced", [6, 1, 5, 3, 4, 0, 2]),  # one row per class, a second one of two classes, then the rest
    ],
)
def test_sample_order_by_hand(hand_keys, sampling, by_hand):
    for s in range(1, 8):
        assert naive.sample(LABEL, s, sampling, seed=0) == by_hand[:s]


def test_proportional_sample_by_hand(hand_keys):
    assert naive.sample(LABEL, 4, "proportional", seed=0) == [6, 1, 5, 3]  # 2, 1 and 1 rows of the three classes


# 3. Neighbours


@pytest.mark.parametrize(("smallest", "k"), [(1, 10), (32, 10), (36, 12), (59, 19), (60, 20), (600, 20)])
def test_k_auto(smallest, k):
    y = np.repeat([0, 1], [smallest, max(smallest, 50)])
    assert naive.belief(np.zeros((len(y), 1)), y, 1, k="auto", s=1).k == k


@pytest.mark.parametrize(("m", "k"), [(24, 10), (60, 20), (353, 113), (2000, 20)])
def test_k_auto_of_numeric_targets(m, k):
    found = naive.belief(np.arange(m)[:, None], np.arange(m), 1, target="numeric", k="auto", s=3)
    assert found.k == k
    assert {len(near) for near in found.neighbours.values()} == {2 * k}


# 4. Relevance, 6c. Standard error


@pytest.mark.parametrize(
    ("class_weight", "w", "se2"),
    [
        ("prior", 0.6 * 8 + 0.4 * 6, 0.6**2 / 3 + 0.4**2 * 8 / 2),
        ("balanced", 7.0, (1 / 3 + 4) / 4),
        ({"a": 1, "b": 3}, 0.25 * 8 + 0.75 * 6, 0.25**2 / 3 + 0.75**2 * 4),
    ],
)
def test_w_and_its_error_by_hand(class_weight, w, se2):
    found = naive.belief(LINE, LETTERS, 1, k=1, scale="none", class_weight=class_weight)
    assert [found.delta[q][0] for q in range(5)] == pytest.approx([9, 8, 7, 4, 8])
    assert found.w == pytest.approx([w])
    assert found.se**2 == pytest.approx([se2])
    assert found.z == pytest.approx([w / se2**0.5])


def test_error_of_one_query_and_of_a_perfect_feature_is_0():
    X = np.array([[0.0, 1], [0, 2], [1, 4], [1, 8]])
    found = naive.belief(X, [0, 0, 1, 1], 2, k=1, s=1, class_weight="balanced")
    assert found.se.tolist() == [0.0, 0.0]
    found = naive.belief(X, [0, 0, 1, 1], 2, k=1, scale="none", class_weight="balanced")
    assert found.w[0] == 1.0
    assert found.se[0] == 0.0
    assert found.z[0] == np.inf


# 5b. Agreement


def test_agreement_by_hand():
    cr = np.array([[1, 1, 1, 0, 1, 1], [0, 0, 1, 1, 1, np.nan], [1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]], float)
    R = naive.agreement(cr)
    assert R[0, 1] == pytest.approx(1)  # a copy
    assert R[0, 2] == 0  # independent
    assert R[0, 3] == 0  # never together, so the correlation is negative
    assert R[0, 4] == 0  # no variance
    assert R[0, 5] == pytest.approx(1)  # equal where both are present
    assert R[2, 5] == pytest.approx(0.5)  # where both are present, they are 1, 0, 0 and 1, 1, 0
    np.testing.assert_array_equal(R, R.T)


def test_agreement_is_the_correlation_of_the_collisions(holes):
    X, y = holes
    discrete = np.arange(8) == 2
    found = naive.belief(X, y, 3, discrete=discrete, s=30, **naive.DEFAULT)
    rows = [(q, r) for q, near in found.neighbours.items() for r in near]
    far = np.abs(X[[q for q, _ in rows]] - X[[r for _, r in rows]]) / found.sigma
    cr = np.where(far > 1.2 + 1e-12, far * 0, 1 - far / 6)  # kappa = 0.8: at most 1.2 sigma apart
    cr[:, 2] = np.where(np.isnan(far[:, 2]), np.nan, far[:, 2] == 0)
    for i in range(8):
        for j in range(i):
            both = ~np.isnan(cr[:, i] + cr[:, j])
            expected = np.corrcoef(cr[both][:, [i, j]], rowvar=False)[0, 1]
            assert found.R[i, j] == pytest.approx(max(0, expected), abs=1e-9)


# 6. Selection


def pick(w, R, theta="auto", n=4):
    w, R = np.array(w), np.array(R)
    score = naive.rule(naive.positive_part(w), R, "agreement", theta)
    return naive.select(score, naive.ten_decimals(w), np.zeros(len(w), bool), n)


def test_selection_by_agreement_by_hand():
    R = np.eye(4)
    R[0, 1] = R[1, 0] = 0.95
    R[0, 2] = R[2, 0] = 0.2
    R[1, 2] = R[2, 1] = 0.5
    selected, scores = pick([2.0, 1.8, 1.0, -0.2], R)
    assert selected == [0, 2, 1, 3]
    assert scores == pytest.approx([1, 0.5 * 0.8, 0.9 * 0.05, 0])
    selected, scores = pick([2.0, 1.8, 1.0, -0.2], R, theta=0.5)
    assert selected == [0, 1, 2, 3]
    assert scores == pytest.approx([1, 0.9 * 0.525, 0.5 * 0.75, 0])


def test_ties_of_j():
    R = np.eye(5)
    R[0, 3] = R[3, 0] = 1.0
    assert pick([1.0, -0.2, -0.1, 0.5, -0.1], R, n=5)[0] == [0, 3, 2, 4, 1]
    assert pick([-1.0, -0.5, -0.5], np.eye(3), n=3) == ([1, 2, 0], [0.0, 0.0, 0.0])


# 10. Numeric targets


def test_ranks_by_hand():
    assert naive.mid_ranks(np.array([5.0, 1, 5, 9])).tolist() == [0.5, 0, 0.5, 1]
    assert naive.mid_ranks(np.array([7.0, 7, 7])).tolist() == [0.5, 0.5, 0.5]


def test_numeric_target_by_hand():
    found = naive.belief([[0], [1], [3], [7]], [10, 20, 40, 30], 1, target="numeric", k=1, scale="none")
    assert found.neighbours == {0: [1, 2], 1: [0, 2], 2: [1, 0], 3: [2, 1]}
    assert found.t == pytest.approx([0, 1 / 3, 1, 2 / 3])
    assert [found.DD[0, 0], found.DC[0, 0]] == pytest.approx([38 / 3, 14 / 3])
    assert [found.ED[0, 0], found.EC[0, 0]] == pytest.approx([28 / 3, 10 / 3])
    assert found.w == pytest.approx([19 / 7 - 14 / 5])
    by_hand = [-3 / 49 + 0.36, -11 / 49 + 0.44, -2 / 49 + 0.08, 16 / 49 - 0.88]
    assert [found.delta[q][0] for q in range(4)] == pytest.approx(by_hand)
    assert found.se == pytest.approx([sum(x**2 for x in by_hand) ** 0.5])


def test_influence_equals_the_derivative_of_w(holes):
    """The influence of a query is the derivative of w with respect to the weight of its sums, here for a small step."""
    X, _ = holes
    found = naive.belief(X, np.nan_to_num(X[:, 4]), 4, target="numeric", s=40, **naive.DEFAULT)
    for q in found.sample[:5]:
        totals = [
            total + 1e-6 * part
            for total, part in zip((found.DD, found.DC, found.ED, found.EC), found.sums[q], strict=True)
        ]
        moved = naive.weights(SimpleNamespace(v=np.ones(1), by_prior=True), *totals) - found.w
        np.testing.assert_allclose(moved / 1e-6, found.delta[q], atol=1e-7)


def test_normalise_ignores_rounding():
    I = np.array([[0.0, -1.48e-16], [-1.60e-16, 0.0]])
    assert not naive.normalise(I, np.ones((2, 2)), [0, 1]).any()
    assert naive.normalise(1e9 * I, np.ones((2, 2)), [0, 1]).any()
