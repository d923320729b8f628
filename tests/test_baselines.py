"""The baselines against other people's, against naive loops, and as scikit-learn selectors.

Where scikit-rebate's ReliefF is the same as Kononenko's, and so as ours:

- the order of neighbours: it adds differences up (Manhattan), ours adds their squares up; these are the same where all
  features are discrete, or where there is one feature only (or copies of one);
- ties at the k-th place: it takes them by file order, ours by a hash; so there must be none, or k must take all;
- the classes must be balanced: it weighs the misses of every class alike, not by P(c)/(1 - P(class of the query));
- k must be below the size of the smallest class: beyond, it takes a row as its own hit;
- no table may mix discrete and continuous features: there it makes all differences above σ 1.
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.metrics import mutual_info_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from skrebate import ReliefF as Skrebate

from belief import BeliefSelector
from belief.baselines import MRMR, Relief, ReliefF, mrmr
from belief.baselines.mrmr import as_codes


@pytest.mark.filterwarnings("ignore:n_features_to_select:UserWarning")  # the checks' tables have few columns
@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")  # and few rows
@parametrize_with_checks([Relief(), ReliefF(), MRMR()], xfail_strict=True)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("selector", [ReliefF(2, random_state=0), MRMR(2)], ids=["ReliefF", "MRMR"])
def test_the_attributes_are_those_of_belief(iris, selector):
    X, y = iris
    selector.fit(X, y)
    kept = {name for name in vars(BeliefSelector(2, random_state=0).fit(X, y)) if name.endswith("_")}
    assert {name for name in vars(selector) if name.endswith("_")} == kept - {"result_"}
    assert selector.support_.nonzero()[0].tolist() == sorted(selector.selected_)
    assert selector.ranking_[selector.selected_].tolist() == [1, 2]
    assert sorted(selector.ranking_) == [1, 2, 3, 4]
    left = np.flatnonzero(~selector.support_)
    assert left[np.argmin(selector.ranking_[left])] == left[np.argmax(selector.weights_[left])]
    assert selector.feature_names_in_.tolist() == X.columns.tolist()
    assert (
        selector.set_output(transform="pandas").transform(X).columns.tolist() == X.columns[selector.support_].tolist()
    )


@pytest.mark.parametrize("selector", [ReliefF(3, n_neighbors=2), Relief(3), MRMR(3)], ids=["ReliefF", "Relief", "MRMR"])
def test_constant_features_come_last_and_strings_are_discrete(selector):
    y = ["no", "yes"] * 6
    table = pd.DataFrame({"one": 1.0, "colour": ["red", "blue"] * 6, "noise": np.tile([0.1, 0.4, 0.9], 4)})
    selector.fit(table, y)
    assert selector.selected_.tolist() == [1, 2, 0]
    assert selector.weights_[0] == 0


# --- Relief and ReliefF ---


def naive_relieff(X, y, k, discrete, squared=False):
    """ReliefF by the book, in loops; continuous features as shares of their range, neighbours by Euclidean distance."""
    m, F = X.shape
    width = np.ptp(X, axis=0)

    def diff(a, b):
        d = [float(X[a, j] != X[b, j]) if discrete[j] else abs(X[a, j] - X[b, j]) / width[j] for j in range(F)]
        return np.array(d)

    W = np.zeros(F)
    P = {c: np.mean(y == c) for c in set(y)}
    for q in range(m):
        for c in P:
            near = sorted((r for r in range(m) if r != q and y[r] == c), key=lambda r: (diff(q, r) ** 2).sum())[:k]
            mean = np.mean([diff(q, r) ** (2 if squared else 1) for r in near], axis=0)
            W += (-mean if c == y[q] else P[c] / (1 - P[y[q]]) * mean) / m
    return W


def test_relieff_by_the_book():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 60, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(60, 6)) * [1, 2, 3, 4, 5, 6] + y[:, None] * [1, 0, 0, 2, 0, 0]
    X[:, 5] = rng.integers(0, 3, 60)
    discrete = np.arange(6) == 5
    W = ReliefF(2, n_neighbors=4, discrete_features=discrete).fit(X, y).weights_
    np.testing.assert_allclose(W, naive_relieff(X, y, 4, discrete), atol=1e-12)


def test_relief_by_the_book_and_with_squares_on_discrete_features():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 40)
    X = rng.normal(size=(40, 5)) + y[:, None] * [1, 0, 0, 1, 0]
    W = Relief(2).fit(X, y).weights_
    np.testing.assert_allclose(W, naive_relieff(X, y, 1, np.zeros(5, bool)), atol=1e-12)
    X = apart()
    y = np.arange(12) % 2
    every = np.ones(X.shape[1], bool)
    W = Relief(2, discrete_features=every).fit(X, y).weights_
    np.testing.assert_allclose(W, naive_relieff(X, y, 1, every, squared=True), atol=1e-12)


def apart():
    """Twelve rows of bits, no two of which have the same distance from a third: the marks of a Golomb ruler."""
    marks = np.array([0, 2, 6, 24, 29, 40, 43, 55, 68, 75, 76, 85])
    return (marks[:, None] > np.arange(85)).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 3])
def test_relieff_is_scikit_rebates_on_discrete_features_without_ties(n_classes, k):
    X, y = apart(), np.random.default_rng(n_classes).permutation(np.arange(12) % n_classes)
    theirs = Skrebate(n_neighbors=k).fit(X, y).feature_importances_
    ours = ReliefF(5, n_neighbors=k, discrete_features=np.ones(85, bool)).fit(X, y).weights_
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_relieff_is_scikit_rebates_on_one_continuous_feature_and_its_copies():
    x = np.random.default_rng(0).normal(size=60)
    X, y = np.column_stack([x, -2 * x, x + 5]), np.arange(60) % 3
    theirs = Skrebate(n_neighbors=7).fit(X, y).feature_importances_
    np.testing.assert_allclose(ReliefF(3, n_neighbors=7).fit(X, y).weights_, theirs, atol=1e-12)


def test_a_sample_is_a_mean_over_fewer_rows_and_threads_or_sparsity_change_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 8)) * (rng.random((300, 8)) < 0.4)
    X[:, 2] += y
    few = ReliefF(1, sample_size=50, random_state=0).fit(X, y)
    assert few.selected_.tolist() == [2]
    assert not np.allclose(few.weights_, ReliefF(1).fit(X, y).weights_)
    for other in (ReliefF(1, sample_size=50, random_state=0, n_jobs=1).fit(X, y),
                  ReliefF(1, sample_size=50, random_state=0).fit(csr_array(X), y)):  # fmt: skip
        np.testing.assert_allclose(other.weights_, few.weights_, atol=1e-12)


def test_a_pair_with_a_missing_value_is_left_out_of_the_means():
    X = np.array([[0.0, 0], [0.1, 1], [0.9, 2], [1.0, np.nan], [0.5, 3]])
    y = [0, 0, 1, 1, 1]
    W = ReliefF(1, n_neighbors=1).fit(X[:, [0, 0, 1]], y).weights_  # twice: the first feature decides who is near
    hits = [1, 1, np.nan, np.nan, 1]  # rows 0-1, 1-0, 2-3, 3-2, 4-2, over a range of 3
    misses = [3, 2, 1, np.nan, 2]  # rows 0-4, 1-4, 2-1, 3-1, 4-1
    share = [2 / 5, 3 / 5]
    parts = [(np.nanmean(misses[a:b]) - np.nanmean(hits[a:b])) / 3 for a, b in ((0, 2), (2, 5))]
    assert W[2] == pytest.approx(np.dot(share, parts))


def test_relief_refuses_three_classes():
    with pytest.raises(ValueError, match="two classes, and y has 3; use ReliefF"):
        Relief().fit(np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2])


# --- mRMR ---


def naive_information(a, b):
    m, total = len(a), 0.0
    for u in set(a):
        for v in set(b):
            both = sum(x == u and z == v for x, z in zip(a, b, strict=True)) / m
            if both:
                total += both * math.log(both / (sum(x == u for x in a) / m * sum(z == v for z in b) / m))
    return total


def naive_mrmr(columns, y, n, form):
    """Peng's greedy search, in loops."""
    selected = []
    while len(selected) < n:
        best = None
        for j in range(len(columns)):
            if j in selected:
                continue
            score = naive_information(columns[j], y)
            if selected:
                redundancy = sum(naive_information(columns[j], columns[i]) for i in selected) / len(selected)
                score = score - redundancy if form == "difference" else score / redundancy
            if best is None or score > best[0]:
                best = (score, j)
        selected.append(best[1])
    return selected


@pytest.mark.parametrize("form", ["difference", "quotient"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_mrmr_is_that_of_naive_loops(form, n_classes):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 80)
    X = rng.integers(0, 4, (80, 7))
    X[:, 1] = y + (rng.random(80) < 0.3)
    X[:, 2] = X[:, 1] + (rng.random(80) < 0.1)
    X[:, 5] = (y > 0) ^ (rng.random(80) < 0.2)
    found = MRMR(6, bins=None, form=form).fit(X, y)
    assert found.selected_.tolist() == naive_mrmr(X.T.tolist(), y.tolist(), 6, form)
    expected = [naive_information(x, y.tolist()) for x in X.T.tolist()]
    np.testing.assert_allclose(found.weights_, expected, atol=1e-12)


def test_information_of_many_levels_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.integers(0, [2, 300, 1000, 3000], (4000, 4))
    y = rng.integers(0, 100, 4000)  # tables of 200 to 300,000 cells
    found = MRMR(4, bins=None, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(found.weights_, [mutual_info_score(y, x) for x in X.T], atol=1e-10)
    again = MRMR(4, bins=None, n_jobs=2).fit(X, y)
    assert np.array_equal(again.weights_, found.weights_)
    assert np.array_equal(again.selected_, found.selected_)


def test_redundancy_is_asked_for_once_for_each_selected_feature_but_the_last():
    asked = []

    def redundancy_of(j):
        asked.append(j)
        return np.array([0.9, 0.9, 0.0]) if j == 0 else np.zeros(3)

    found = mrmr(np.array([1.0, 0.95, 0.5]), redundancy_of, 3)
    assert found.selected.tolist() == [0, 2, 1]
    np.testing.assert_allclose(found.scores, [1.0, 0.5, 0.95 - 0.45])
    assert asked == [0, 2]


def test_a_quotient_by_nothing_is_infinite_and_the_more_relevant_goes_first():
    found = mrmr(np.array([1.0, 0.2, 0.3, 0.0]), lambda j: np.zeros(4), 4, "quotient")
    assert found.selected.tolist() == [0, 2, 1, 3]
    assert found.scores.tolist() == [1.0, np.inf, np.inf, 0.0]


def test_codes():
    x = np.array([5.0, 1, np.nan, 2, 2, 9, 100, 3])
    assert as_codes(x, None).tolist() == [3, 0, 6, 1, 1, 4, 5, 2]
    assert as_codes(x, 3, "quantile").tolist() == [1, 0, 3, 0, 0, 2, 2, 1]
    assert as_codes(x, 3, "uniform").tolist() == [0, 0, 2, 0, 0, 0, 1, 0]
    assert as_codes(np.array([1.0] * 19 + [0]), 10).tolist() == [1] * 19 + [0]  # two values are two levels
    u = np.random.default_rng(0).random(100)
    assert np.bincount(as_codes(u, 10)).tolist() == [10] * 10
    assert np.array_equal(as_codes(u, 10), as_codes(np.exp(5 * u), 10))


@pytest.mark.parametrize(
    ("selector", "X", "message"),
    [
        (MRMR(form="ratio"), None, "form must be 'difference' or 'quotient'; got 'ratio'"),
        (MRMR(bins=1), None, "bins must be None or an integer of at least 2; got 1"),
        (MRMR(strategy="kmeans"), None, "strategy must be 'quantile' or 'uniform'; got 'kmeans'"),
        (MRMR(0), None, "n_features_to_select must be"),
        (MRMR(), csr_array(np.eye(4)), "MRMR needs a dense table"),
        (MRMR(1), np.array([[1, 2], [3, 4], [5, np.inf], [7, 8]]), "infinity, in column 'x1'"),
        (ReliefF(n_neighbors=0), None, "n_neighbors must be"),
        (ReliefF(sample_size=0), None, "sample_size must be"),
        (Relief(n_jobs=0), None, "n_jobs must be"),
    ],
)
def test_what_cannot_be_done_is_refused(selector, X, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(np.arange(8.0).reshape(4, 2) if X is None else X, [0, 0, 1, 1])
