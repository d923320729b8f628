"""The dense look-alikes made to measure are what they say they are."""

import numpy as np
import pytest
from problems import DenseProblem, ecbdl14_like, epsilon_like
from public_data import load
from sklearn.linear_model import LogisticRegression

import belief

MAKERS = {"epsilon-like": epsilon_like, "ECBDL14-like": ecbdl14_like}


@pytest.fixture(scope="module")
def epsilon():
    return epsilon_like(6_000, 300, n_informative=30, n_redundant=20, block_rows=2_500)


@pytest.fixture(scope="module")
def ecbdl14():
    return ecbdl14_like(6_000, seed=1)


@pytest.fixture(scope="module")
def slice_1k(data_home):
    """1,000 published rows of ECBDL14, letters as codes."""
    data = load("ECBDL14_1K", data_home)
    codes = dict(zip("CEHX", range(4), strict=True)) | {str(level): level for level in range(5)}
    columns = []
    for j, column in enumerate(data.X.columns):
        beyond = 5 if j not in (*range(3, 21), *range(131, 136)) else 3
        known = codes | {"X": beyond}
        columns.append([known[v] for v in column.to_pylist()] if data.discrete[j] else column.to_numpy())
    return np.array(columns, float).T, data


def test_shape_and_types(epsilon):
    assert isinstance(epsilon, DenseProblem)
    assert [X.shape for X in epsilon.X] == [(2_500, 300), (2_500, 300), (1_000, 300)]
    assert {X.dtype for X in epsilon.X} == {np.dtype(np.float32)}
    assert epsilon.y.shape == (6_000,)
    assert epsilon.y.dtype == np.int8


def test_epsilon_has_rows_of_length_one_and_classes_of_one_size(epsilon):
    X = np.vstack(epsilon.X)
    assert np.allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    assert np.all(np.abs(X.mean(axis=0)) * np.sqrt(300) < 0.1)
    assert abs(epsilon.y.mean() - 0.5) < 0.03
    assert not epsilon.discrete.any()


def test_epsilon_tells_the_classes_by_its_informative_features_alone(epsilon):
    X = np.vstack(epsilon.X) * np.sqrt(300)
    difference = np.abs(X[epsilon.y == 1].mean(axis=0) - X[epsilon.y == 0].mean(axis=0))
    informative = [group[0] for group in epsilon.relevant]
    noise = np.setdiff1d(np.arange(300), np.append(informative, epsilon.redundant))
    assert difference[noise].max() < 0.15
    assert difference[informative[:10]].min() > difference[noise].max()
    rule = LogisticRegression(max_iter=1000).fit(X[:4_000], epsilon.y[:4_000])
    assert 0.86 < rule.score(X[4_000:], epsilon.y[4_000:]) < 0.93


def test_a_redundant_feature_of_epsilon_repeats_its_own(epsilon):
    correlation = np.corrcoef(np.vstack(epsilon.X), rowvar=False)
    pairs = [(group[0], copy) for group in epsilon.relevant for copy in group[1:]]
    assert sorted(copy for _, copy in pairs) == epsilon.redundant.tolist()
    assert np.allclose([correlation[pair] for pair in pairs], 0.9, atol=0.03)
    others = np.abs(correlation - np.eye(300))
    others[tuple(np.transpose(pairs))] = others[tuple(np.transpose(pairs)[::-1])] = 0
    assert others.max() < 0.2


def test_ecbdl14_has_the_columns_that_were_published(ecbdl14, slice_1k):
    published, data = slice_1k
    X = ecbdl14.X[0]
    assert X.shape[1] == published.shape[1] == 631
    assert np.array_equal(ecbdl14.discrete, data.discrete)
    whole = (published == published.round()).all(axis=0)
    assert np.array_equal((X.round() == X).all(axis=0), whole)
    for j in np.flatnonzero(data.discrete):
        assert set(np.unique(X[:, j])) >= set(np.unique(published[:, j]))
    assert np.all(X[:, 171:].max(axis=0) <= 13)
    assert np.all(X[:, 171:].min(axis=0) >= -16)
    assert abs(X[:, 171:].mean() - published[:, 171:].mean()) < 0.1
    assert abs(X[:, 171:].std() - published[:, 171:].std()) < 0.1
    assert abs((X[:, ~data.discrete] == 0).mean() - (published[:, ~data.discrete] == 0).mean()) < 0.03


def test_letters_and_levels_have_the_published_shares_and_repeat_their_neighbours(ecbdl14, slice_1k):
    X, (published, _) = ecbdl14.X[0], slice_1k
    for columns, codes in ((range(3, 21), range(4)), (range(39, 93), range(6))):
        for code in codes:
            assert abs((X[:, columns] == code).mean() - (published[:, columns] == code).mean()) < 0.03

    def agree(table, columns):
        return np.mean([(table[:, j] == table[:, j + 1]).mean() for j in columns])

    assert abs(agree(X, [3, 4, 6, 7, 9, 10]) - agree(published, [3, 4, 6, 7, 9, 10])) < 0.03
    levels = [j for j in range(39, 92) if (j - 39) % 3 < 2]
    assert abs(agree(X, levels) - agree(published, levels)) < 0.06


def test_ecbdl14_is_as_hard_as_the_published_rows_column_by_column(ecbdl14, slice_1k):
    def strongest(X, y):
        return np.max([abs(np.corrcoef(X[:, j], y)[0, 1]) for j in np.flatnonzero(~ecbdl14.discrete)])

    assert abs(strongest(ecbdl14.X[0], ecbdl14.y) - strongest(slice_1k[0], slice_1k[1].y)) < 0.1


def test_only_the_relevant_groups_of_ecbdl14_tell_the_classes(ecbdl14):
    X, y = ecbdl14.X[0], ecbdl14.y
    shift = np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)) / X.std(axis=0)
    relevant = np.concatenate(ecbdl14.relevant)
    assert shift[np.setdiff1d(np.arange(631), relevant)].max() < 0.12
    assert shift[relevant].min() > 0.18
    assert all(shift[list(group)].min() > 0.45 for group in ecbdl14.relevant[:5])
    assert ecbdl14.redundant.tolist() == sorted(j for group in ecbdl14.relevant for j in group[1:])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_seed_makes_the_same_rows_in_blocks_of_any_size(make):
    one, other = make(300, seed=3), make(300, seed=3, block_rows=77)
    assert [len(X) for X in other.X] == [77, 77, 77, 69]
    assert np.array_equal(one.X[0], np.vstack(other.X))
    assert np.array_equal(one.y, other.y)
    longer = make(500, seed=3)
    assert np.array_equal(one.X[0], longer.X[0][:300])
    assert one.relevant == longer.relevant
    assert not np.array_equal(one.X[0], make(300, seed=4).X[0])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_blocks_come_one_at_a_time(make):
    """A problem larger than any memory costs nothing until its blocks are asked for."""
    X, y = next(make(10**12, block_rows=50).blocks())
    assert np.array_equal(X, make(50).X[0])
    assert len(y) == 50


def test_oversampling_repeats_the_rows_of_class_one():
    problem = ecbdl14_like(4_000, repeats=49)
    positive, negative = (problem.X[0][problem.y == c] for c in (1, 0))
    assert abs(len(positive) - 2_000) < 150
    assert len(np.unique(positive, axis=0)) <= 41
    assert len(np.unique(negative, axis=0)) == len(negative)
    rare = ecbdl14_like(4_000, positive=0.02)
    assert 40 < rare.y.sum() < 130
    assert len(np.unique(rare.X[0], axis=0)) == 4_000


@pytest.mark.smoke
def test_fewer_positions_make_a_narrower_table():
    problem = ecbdl14_like(50, n_positions=9)
    assert problem.X[0].shape == (50, 79 + 9 * 24)
    assert problem.discrete.sum() == 9 * 4


def test_belief_finds_what_was_planted():
    problem = ecbdl14_like(1_500, n_positions=9, n_relevant=8)
    result = belief.select(problem.X, problem.y, 8, discrete_features=problem.discrete, random_state=0)
    found = [group for group in problem.relevant if set(group) & set(result.selected.tolist())]
    assert len(found) >= 4


REFUSED = {
    "no rows": (epsilon_like, {"n_rows": 0}, "n_rows must be an integer of at least 1; got 0"),
    "too narrow": (epsilon_like, {"n_features": 299}, "n_features=299 is too small for 200 informative and 100"),
    "a fraction": (epsilon_like, {"block_rows": 1.5}, "block_rows must be an integer"),
    "few positions": (ecbdl14_like, {"n_positions": 8}, "n_positions must be an integer of at least 9; got 8"),
    "many groups": (ecbdl14_like, {"n_relevant": 500}, "n_relevant=500 is too large: there are 147 groups"),
    "one class": (ecbdl14_like, {"positive": 1.0}, "positive must be between 0 and 1; got 1.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make(**options)
