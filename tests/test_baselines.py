"""The baselines compared with naive loops, with other implementations, and as scikit-learn selectors.

scikit-rebate's ReliefF gives the same weights on discrete features without ties at the k-th neighbour, if classes are
balanced and k is below the size of the smallest class. Otherwise it differs: it adds differences instead of their
squares, and weights the misses of all classes equally. mrmr-selection gives the same selection if it measures mutual
information.
"""

import naive
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.metrics import mutual_info_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from skrebate import ReliefF as Skrebate

from belief import BeliefSelector
from belief.baselines import MRMR, Relief, ReliefF, RReliefF, mrmr
from belief.baselines.mrmr import encode_levels

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore:n_features_to_select:UserWarning")  # the tables of the checks have few columns
@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")  # and few rows
@parametrize_with_checks([ReliefF()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("selector", [ReliefF(2, random_state=0), MRMR(2)], ids=["ReliefF", "MRMR"])
def test_fitted_attributes_equal_those_of_belief_selector(iris, selector):
    X, y = iris
    selector.fit(X, y)
    kept = {name for name in vars(BeliefSelector(2, random_state=0).fit(X, y)) if name.endswith("_")}
    assert {name for name in vars(selector) if name.endswith("_")} == (kept | {"selection_scores_"}) - {
        "result_",
        "pvalues_",
        "feature_importances_",
    }
    assert selector.support_.nonzero()[0].tolist() == sorted(selector.selected_)
    assert selector.ranking_[selector.selected_].tolist() == [1, 1]
    assert sorted(selector.ranking_) == [1, 1, 2, 3]
    left = np.flatnonzero(~selector.support_)
    assert left[np.argmin(selector.ranking_[left])] == left[np.argmax(selector.scores_[left])]
    assert selector.feature_names_in_.tolist() == X.columns.tolist()
    assert (
        selector.set_output(transform="pandas").transform(X).columns.tolist() == X.columns[selector.support_].tolist()
    )


@pytest.mark.parametrize("selector", [ReliefF(3, n_neighbors=2), Relief(3), MRMR(3)], ids=["ReliefF", "Relief", "MRMR"])
def test_constant_and_string_columns(selector):
    y = ["no", "yes"] * 6
    table = pd.DataFrame({"one": 1.0, "colour": ["red", "blue"] * 6, "noise": np.tile([0.1, 0.4, 0.9], 4)})
    selector.fit(table, y)
    assert selector.selected_.tolist() == [1, 2, 0]
    assert selector.scores_[0] == 0


# --- Relief and ReliefF ---


def naive_relieff(X, y, k, discrete, squared=False, rows=None):
    """Return the weights of ReliefF as published, computed in loops.

    Differences of continuous features are shares of their range, and distances are Euclidean. With k = 1, two classes
    and squared differences, this is Kira and Rendell's Relief. The weights are means over `rows`, by default all rows;
    neighbours come from all rows.
    """
    m, F = X.shape
    rows = range(m) if rows is None else rows
    width = np.ptp(X, axis=0)

    def diff(a, b):
        d = [float(X[a, j] != X[b, j]) if discrete[j] else abs(X[a, j] - X[b, j]) / width[j] for j in range(F)]
        return np.array(d)

    W = np.zeros(F)
    P = {c: np.mean(y == c) for c in set(y)}
    for q in rows:
        for c in P:
            near = sorted((r for r in range(m) if r != q and y[r] == c), key=lambda r: (diff(q, r) ** 2).sum())[:k]
            mean = np.mean([diff(q, r) ** (2 if squared else 1) for r in near], axis=0)
            W += (-mean if c == y[q] else P[c] / (1 - P[y[q]]) * mean) / len(rows)
    return W


def test_relieff_equals_naive_loops():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 60, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(60, 6)) * [1, 2, 3, 4, 5, 6] + y[:, None] * [1, 0, 0, 2, 0, 0]
    X[:, 5] = rng.integers(0, 3, 60)
    discrete = np.arange(6) == 5
    W = ReliefF(2, n_neighbors=4, discrete_features=discrete).fit(X, y).scores_
    np.testing.assert_allclose(W, naive_relieff(X, y, 4, discrete), atol=1e-12)


@pytest.mark.parametrize("mixed", [False, True], ids=["continuous", "mixed"])
def test_relief_equals_naive_loops(mixed):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 40)
    X = rng.normal(size=(40, 5)) * [1, 2, 3, 4, 5] + y[:, None] * [1, 0, 0, 3, 0]
    discrete = np.zeros(5, bool)
    if mixed:
        X[:, 2], X[:, 4] = rng.integers(0, 3, 40), y ^ (rng.random(40) < 0.2)
        discrete[[2, 4]] = True
    expected = naive_relieff(X, y, 1, discrete, squared=True)
    relief = Relief(2, discrete_features=discrete)
    np.testing.assert_allclose(relief.fit(X, y).scores_, expected, atol=1e-12)
    np.testing.assert_allclose(relief.fit(csr_array(X), y).scores_, expected, atol=1e-12)
    # ReliefF does not square differences, which changes only the weights of continuous features
    plain = ReliefF(2, n_neighbors=1, discrete_features=discrete).fit(X, y).scores_
    np.testing.assert_allclose(plain[discrete], expected[discrete], atol=1e-12)
    assert np.all(np.abs(plain - expected)[~discrete] > 1e-6)


def test_relief_with_little_working_memory():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 5000))
    X[rng.random(X.shape) < 0.01] = np.nan
    few = Relief(2, working_memory=16).fit(X, y).scores_  # 34 of the 60 pairs at a time
    np.testing.assert_allclose(few, Relief(2).fit(X, y).scores_, atol=1e-12)


def apart():
    """Return twelve binary rows whose distances all differ, because they encode the marks of a Golomb ruler."""
    marks = np.array([0, 2, 6, 24, 29, 40, 43, 55, 68, 75, 76, 85])
    return (marks[:, None] > np.arange(85)).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 3])
def test_relieff_equals_scikit_rebate_on_discrete_features(n_classes, k):
    X, y = apart(), np.random.default_rng(n_classes).permutation(np.arange(12) % n_classes)
    theirs = Skrebate(n_neighbors=k).fit(X, y).feature_importances_
    ours = ReliefF(5, n_neighbors=k, discrete_features=np.ones(85, bool)).fit(X, y).scores_
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize(("kind", "k"), [(ReliefF, 3), (Relief, 1)], ids=["ReliefF", "Relief"])
def test_sample_size_threads_and_sparse_data(kind, k):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = rng.normal(size=(120, 8)) * (rng.random((120, 8)) < 0.4)
    X[:, 2] += y
    settings = {"sample_size": 30, "random_state": 0} | ({"n_neighbors": k} if kind is ReliefF else {})
    few = kind(1, **settings).fit(X, y)
    rows = sorted(range(120), key=lambda i: naive.key(0, 0, i))[:30]  # the sample of docs/method.md, section 2
    expected = naive_relieff(X, y, k, np.zeros(8, bool), squared=kind is Relief, rows=rows)
    np.testing.assert_allclose(few.scores_, expected, atol=1e-12)
    for other in (kind(1, **settings, n_jobs=1).fit(X, y), kind(1, **settings).fit(csr_array(X), y)):
        np.testing.assert_allclose(other.scores_, few.scores_, atol=1e-12)


def test_relieff_skips_pairs_with_missing_values():
    X = np.array([[0.0, 0], [0.1, 1], [0.9, 2], [1.0, np.nan], [0.5, 3]])
    y = [0, 0, 1, 1, 1]
    W = ReliefF(1, n_neighbors=1).fit(X[:, [0, 0, 1]], y).scores_  # column 0 counts twice, so it defines the nearest
    hits = [1, 1, np.nan, np.nan, 1]  # rows 0-1, 1-0, 2-3, 3-2, 4-2, over a range of 3
    misses = [3, 2, 1, np.nan, 2]  # rows 0-4, 1-4, 2-1, 3-1, 4-1
    share = [2 / 5, 3 / 5]
    parts = [(np.nanmean(misses[a:b]) - np.nanmean(hits[a:b])) / 3 for a, b in ((0, 2), (2, 5))]
    assert W[2] == pytest.approx(np.dot(share, parts))


def test_relief_refuses_three_classes():
    with pytest.raises(ValueError, match="two classes, and y has 3 classes"):
        Relief().fit(np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2])


# --- RReliefF ---


def naive_rrelieff(X, y, k, discrete, rows=None):
    """Return the weights of RReliefF from N_dC, N_dA and N_dC&dA, in loops; the k nearest rows count equally."""
    m, F = X.shape
    rows = range(m) if rows is None else rows
    width, range_of_y = np.ptp(X, axis=0), max(y) - min(y)
    N_dC, N_dA, N_both = 0.0, np.zeros(F), np.zeros(F)
    for q in rows:
        diff = [np.where(discrete, X[q] != X[r], np.abs(X[q] - X[r]) / width) for r in range(m)]
        for r in sorted((r for r in range(m) if r != q), key=lambda r: (diff[r] ** 2).sum())[:k]:
            tau = abs(y[q] - y[r]) / range_of_y
            N_dC, N_dA, N_both = N_dC + tau / k, N_dA + diff[r] / k, N_both + tau * diff[r] / k
    return N_both / N_dC - (N_dA - N_both) / (len(rows) - N_dC)


def test_rrelieff_equals_naive_loops():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 6)) * [1, 2, 3, 4, 5, 6]
    X[:, 5] = rng.integers(0, 3, 70)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=70)
    discrete = np.arange(6) == 5
    found = RReliefF(2, n_neighbors=7, discrete_features=discrete).fit(X, y)
    np.testing.assert_allclose(found.scores_, naive_rrelieff(X, y, 7, discrete), atol=1e-12)
    few = RReliefF(2, n_neighbors=7, sample_size=30, random_state=0, discrete_features=discrete).fit(X, y)
    rows = sorted(range(70), key=lambda i: naive.key(0, 0, i))[:30]
    np.testing.assert_allclose(few.scores_, naive_rrelieff(X, y, 7, discrete, rows), atol=1e-12)
    sparse = RReliefF(2, n_neighbors=7, discrete_features=discrete).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.scores_, found.scores_, atol=1e-12)
    assert not hasattr(found, "classes_")


# --- mRMR ---


def naive_mrmr(columns, y, n, form):
    """Return the features that the greedy search of Peng et al. selects, in loops."""
    selected = []
    while len(selected) < n:
        best = None
        for j in range(len(columns)):
            if j in selected:
                continue
            score = mutual_info_score(columns[j], y)
            if selected:
                redundancy = sum(mutual_info_score(columns[j], columns[i]) for i in selected) / len(selected)
                score = score - redundancy if form == "difference" else score / redundancy
            if best is None or score > best[0]:
                best = (score, j)
        selected.append(best[1])
    return selected


@pytest.mark.parametrize("form", ["difference", "quotient"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_mrmr_equals_naive_loops(form, n_classes):
    X, y = repeating_table(n_classes, n_classes)
    found = MRMR(6, bins=None, form=form).fit(X, y)
    assert found.selected_.tolist() == naive_mrmr(X.T.tolist(), y.tolist(), 6, form)
    np.testing.assert_allclose(found.scores_, [mutual_info_score(x, y) for x in X.T], atol=1e-12)


def repeating_table(seed, n_classes=3):
    """Return columns of codes, and classes; three columns depend on the class, and one nearly repeats another."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, 200)
    X = rng.integers(0, 4, (200, 8))
    X[:, 1] = y + (rng.random(200) < 0.3)
    X[:, 2] = X[:, 1] + (rng.random(200) < 0.1)
    X[:, 5] = (y > 0) ^ (rng.random(200) < 0.2)
    X[:, 6] = (y > 1) ^ (rng.random(200) < 0.2)
    return X, y


@pytest.mark.parametrize("form", ["difference", "quotient"])
@pytest.mark.parametrize("seed", range(3))
def test_mrmr_equals_mrmr_selection_with_mutual_information(seed, form):
    """With mutual information as its measure, mrmr-selection selects the same features.

    By default, it measures relevance by the F statistic and redundancy by Pearson's correlation. Its score is always a
    quotient; to rank by the difference, pass the exponentials of both. It raises redundancies below 0.001 to 0.001, so
    mutual information is measured in hundredths of a nat, to stay above this limit.
    """
    from mrmr import mrmr_classif  # imported here, because the import silences all warnings

    X, y = repeating_table(seed)
    measured = []

    def relevance(X, y):
        return shape(pd.Series({j: 100 * mutual_info_score(X[j], y) for j in X}))

    def redundancy(X, target_column, features):
        measured.extend(100 * mutual_info_score(X[j], X[target_column]) for j in features)
        return pd.Series(measured[-len(features) :], features)

    shape = np.exp if form == "difference" else np.positive
    theirs = mrmr_classif(
        pd.DataFrame(X), pd.Series(y), 8, relevance, redundancy, lambda I: shape(np.mean(I)), show_progress=False
    )
    assert min(measured) > 0.001
    assert MRMR(8, bins=None, form=form).fit(X, y).selected_.tolist() == theirs


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater")  # by scikit-learn 1.7
def test_information_equals_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.integers(0, [2, 300, 1000, 3000], (4000, 4))
    y = rng.integers(0, 100, 4000)  # contingency tables of 200 to 300,000 cells
    found = MRMR(4, bins=None, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(found.scores_, [mutual_info_score(y, x) for x in X.T], atol=1e-10)
    again = MRMR(4, bins=None, n_jobs=2).fit(X, y)
    assert np.array_equal(again.scores_, found.scores_)
    assert np.array_equal(again.selected_, found.selected_)


def test_mrmr_calls_redundancy_of_once_per_selected_feature():
    asked = []

    def redundancy_of(j):
        asked.append(j)
        return np.array([0.9, 0.9, 0.0]) if j == 0 else np.zeros(3)

    found = mrmr(np.array([1.0, 0.95, 0.5]), redundancy_of, 3)
    assert found.selected.tolist() == [0, 2, 1]
    np.testing.assert_allclose(found.scores, [1.0, 0.5, 0.95 - 0.45])
    assert asked == [0, 2]


def test_mrmr_quotient_without_redundancy():
    found = mrmr(np.array([1.0, 0.2, 0.3, 0.0]), lambda j: np.zeros(4), 4, "quotient")
    assert found.selected.tolist() == [0, 2, 1, 3]
    assert found.scores.tolist() == [1.0, np.inf, np.inf, 0.0]


def test_encode_levels():
    x = np.array([5.0, 1, np.nan, 2, 2, 9, 100, 3])
    assert encode_levels(x, None).tolist() == [3, 0, 6, 1, 1, 4, 5, 2]
    assert encode_levels(x, 3, "quantile").tolist() == [1, 0, 3, 0, 0, 2, 2, 1]
    assert encode_levels(x, 3, "uniform").tolist() == [0, 0, 2, 0, 0, 0, 1, 0]
    assert encode_levels(np.array([1.0] * 19 + [0]), 10).tolist() == [1] * 19 + [0]  # two values are two levels
    u = np.random.default_rng(0).random(100)
    assert np.bincount(encode_levels(u, 10)).tolist() == [10] * 10
    assert np.array_equal(encode_levels(u, 10), encode_levels(np.exp(5 * u), 10))


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
def test_baselines_refuse_bad_input(selector, X, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(np.arange(8.0).reshape(4, 2) if X is None else X, [0, 0, 1, 1])
