"""Tests of significance by permutation: the oracle, the search, invariances, noise, settings, and special cases."""

import warnings

import naive
import numpy as np
import pytest
from effort import THOROUGH
from scipy.sparse import csr_array

import belief
from belief.engines.block.threads import Threads
from belief.engines.probe import MULTIPLIED_COLUMNS, ProbeSearch
from belief.engines.resources import Resources
from belief.kernels.instructions import exact_instructions
from belief.method.probe import ProbeTarget, Scores
from belief.method.significance import is_significant
from belief.method.targets import make_class_target

QUIET = pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")


# --- the oracle ---

COLUMNS = {
    "normal": lambda rng, m: (rng.standard_normal(m), False),
    "grid": lambda rng, m: (rng.integers(0, 4, m), False),
    "binary": lambda rng, m: (rng.integers(0, 2, m), rng.random() < 0.5),
    "marks": lambda rng, m: (rng.random(m) < 0.1, False),
    "nominal": lambda rng, m: (rng.integers(0, 5, m), True),
    "many levels": lambda rng, m: (rng.integers(0, 50, m), True),
    "lognormal": lambda rng, m: (np.exp(2 * rng.standard_normal(m)), False),
    "constant": lambda rng, m: (np.full(m, 3.0) if rng.random() < 0.3 else rng.standard_normal(m), rng.random() < 0.3),
}
KINDS = [*COLUMNS, "mixed"]


def random_table(seed):
    """Return a random table, its target, a mask of the discrete columns, and whether the target is numeric.

    The columns are of one kind or of mixed kinds. In most tables, the first two columns depend on the target.
    """
    rng = np.random.default_rng(seed)
    kind, numeric = KINDS[seed % 9], seed % 4 == 3
    m, F, n_classes = int(rng.integers(24, 70)), int(rng.integers(2, 28)), int(rng.integers(2, 6))
    if seed % 11 == 0:
        m = int(rng.integers(10, 24))
    if seed % 11 == 5:  # more rows than the 255 knots of the rank scores
        m, F = 270, min(F, 17)
    labels = rng.choice(n_classes, m, p=rng.dirichlet(np.full(n_classes, 3.0)))
    labels[:n_classes] = range(n_classes)
    kinds = [kind if kind != "mixed" else str(rng.choice(list(COLUMNS))) for _ in range(F)]
    made = [COLUMNS[each](rng, m) for each in kinds]
    X, discrete = np.column_stack([x for x, _ in made]).astype(float), np.array([d for _, d in made])
    if seed % 3 == 0:
        X[rng.random(X.shape) < 0.1] = np.nan
    if seed % 5 != 4:
        X[:, 0] = np.where(discrete[0] & (rng.random(m) < 0.6), labels, X[:, 0] + ~discrete[0] * labels)
        if not discrete[1]:  # a function of column 0
            X[:, 1] = np.where(rng.random(m) < 0.9, np.abs(X[:, 0] - 1), X[:, 1])
    y = np.nan_to_num(X[:, 0]) + (X[:, -1] > 0) + 0.5 * rng.standard_normal(m) if numeric else labels
    return X, np.round(y) if seed % 8 == 3 else y, discrete, numeric


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(200) if THOROUGH else range(0, 200, 17))
def test_p_values_agree_with_the_oracle(seed, weighted):
    """Both implementations derive the shuffles from the same keys, so their p-values differ only by rounding."""
    seed += 3 * weighted
    table, rng = random_table(seed), np.random.default_rng(seed)
    weight = np.where(table[1] > 0, 3.0, 1.0) * rng.lognormal(0, 1 + seed % 2, len(table[0])) if weighted else None
    check_against_the_oracle(seed, *table, weight=weight)


@pytest.mark.slow
def test_queries_of_a_large_table_count_by_their_weight_as_in_the_oracle():
    """The queries are 1,000 of the 1,080 rows, sampled by weight."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1080, 4))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(1080), [-1, 1])
    check_against_the_oracle(3, X, y, np.zeros(4, bool), numeric=False, weight=rng.lognormal(0, 1, 1080))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(4))
def test_columns_of_nearly_one_value_agree_with_the_oracle(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 60)
    made = [rng.normal(size=60) + y, rng.integers(0, 4, 60)]
    for n_others in (2, 2, 3):
        others = rng.permutation(60)[:n_others]
        values = np.arange(n_others)
        for value, replaced in ((0, 1), (1, 0), (0, values + 1), (7, values)):
            x = np.full(60, float(value))
            x[others] = replaced
            made.append(x)
    X = np.column_stack(made)
    X[rng.random(60) < 0.1, -1] = np.nan
    discrete = np.arange(14) % 2 == seed % 2
    check_against_the_oracle(seed, X, y, discrete, numeric=seed == 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("kind", "n_shuffles"), [("noise", 10), ("shift", 11), ("interaction", 20)])
def test_shuffles_end_where_nothing_is_close_to_significant_as_in_the_oracle(kind, n_shuffles):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 90)
    X = rng.standard_normal((90, 100))
    if kind == "shift":
        X[:, 0] += 1.1 * y
    elif kind == "interaction":
        X[:, 1] = np.where(y == 1, 1, -1) * np.sign(X[:, 0]) * np.abs(X[:, 1])
    check_against_the_oracle(0, X, y, np.zeros(100, bool), numeric=False)
    assert belief.select(X, y, 2, random_state=0).probe["shuffles"] == n_shuffles


def test_features_that_are_significant_only_together_are_close_to_it():
    """By Benjamini-Hochberg, 20 of 300 features need p-values below 0.05 * 20 / 300, a single one below 0.05 / 300."""
    p = np.where(np.arange(300) < 20, 0.2 * 0.004, 0.5)
    found, close = is_significant(p, np.ones(300), np.arange(300))
    assert not found.any()
    assert np.flatnonzero(close).tolist() == list(range(20))
    assert not is_significant(p[19:], np.ones(281), np.arange(281))[1].any()


def check_against_the_oracle(seed, X, y, discrete, numeric, weight=None):
    how = {"class_weight": ["balanced", "prior", {c: 1 + c for c in range(5)}][seed % 5 % 3]} if not numeric else {}
    how |= {"neighborhood": "pooled" if seed % 7 == 0 else "per_class", "scale": ["auto", "standard"][seed % 2]}
    k, rounds = ["auto", 5, 3][seed % 3], 2 if seed % 6 == 0 else "auto"
    task = "regression" if numeric else "classification"
    got = belief.select(
        X, y, 2, discrete_features=discrete, task=task, random_state=seed, copies="keep", rounds=rounds, n_neighbors=k,
        sample_weight=weight, **how,
    )  # fmt: skip
    target = {"target": "numeric" if numeric else "classes", "most_rounds": None if rounds == "auto" else rounds}
    settings = {**naive.DEFAULT, **how, **target, "k": k, "seed": seed, "significant": True}
    ref = naive.belief(X, y, 2, discrete=discrete, weight=weight, **settings)
    np.testing.assert_array_equal(got.round, ref.sure.round)
    np.testing.assert_array_equal(got.metric, ref.sure.metric)
    exact = 1e-6 if numeric else 1e-9  # the weights of misses are summed in float32
    np.testing.assert_allclose(got.p_neighbours, ref.sure.p_neighbours, rtol=exact)
    for name in ("p_univariate", "p_value", "q_value"):  # the statistics of shuffles are in float32
        np.testing.assert_allclose(getattr(got, name), getattr(ref.sure, name), rtol=1e-3, atol=1e-290, err_msg=name)
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(got.null_weight, ref.null_weight, rtol=exact, atol=1e-11)
    np.testing.assert_allclose(got.relevance, ref.relevance, rtol=1e-3, atol=1e-9)
    assert got.selected.tolist() == ref.selected


# --- the searches ---


@pytest.mark.parametrize("kind", [*exact_instructions(), None], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(("m", "F", "largest", "size"), [(50, 1, 1, 7), (333, 7, 92, 11), (1100, 130, 127, 40)])
def test_every_instruction_set_finds_the_nearest_rows(kind, m, F, largest, size):
    """The search finds the nearest rows, because distances from products of int8 are exact.

    They stay exact if the search adds the distances in some columns to known distances, or subtracts them.
    """
    rng = np.random.default_rng(m)
    X = rng.choice([-largest, 0, rng.integers(1, largest + 1), largest], (m, F)).astype(np.int8)
    more = rng.integers(-largest, largest + 1, (m, 5)).astype(np.int8)
    queries, ends = np.sort(rng.choice(m, 23, replace=False)), np.array([m // 3, m])
    d2, of_more = (naive.squared_distances([x.astype(float)], queries) for x in (X, more))
    wanted = [np.sort(naive.nearest_of_probe(d2, queries, a, b, size)) for a, b in ((0, ends[0]), (ends[0], m))]
    search = ProbeSearch(Threads(Resources()))
    search._kind = kind
    for D, columns, sign, is_kept in (
        (np.zeros_like(d2), X, 1.0, False),
        (d2 + of_more, more, -1.0, True),
        (d2, X[:, :0], 1.0, False),
    ):
        D, before = D.astype(np.float32), D.astype(np.float32)
        rows = np.empty((len(queries), 2, size), np.int32)
        search.find(D, columns, sign, is_kept, queries, rows, ends)
        for c in range(2):
            np.testing.assert_array_equal(np.sort(rows[:, c]), wanted[c])
        np.testing.assert_array_equal(D, d2 if is_kept else before)
    np.testing.assert_array_equal(search.squared_distances(X, queries), d2.astype(np.float32))


@pytest.mark.parametrize("kind", [*exact_instructions(), None], ids=lambda x: type(x).__name__)
def test_distances_and_sums_of_many_columns(kind):
    """There are so many columns that they are processed in several parts."""
    rng = np.random.default_rng(0)
    m, F = 40, 2 * MULTIPLIED_COLUMNS + 3
    X, y, queries = rng.integers(-92, 93, (m, F)).astype(np.int8), np.arange(m) // 20, np.arange(0, m, 3)
    search = ProbeSearch(Threads(Resources()))
    search._kind = kind
    apart = X[queries, None].astype(np.int64) - X
    np.testing.assert_array_equal(search.squared_distances(X, queries), (apart**2).sum(axis=2).astype(np.float32))

    rows = np.stack([rng.integers(a, b, (len(queries), 4)) for a, b in ((0, 20), (20, m))], axis=1).astype(np.int32)
    order = rng.permutation(m)
    shuffled = Scores(X, np.arange(F), F).arrange(order)
    target = ProbeTarget(make_class_target(np.arange(2), y), y)
    got = search.tally(queries, rows, shuffled, target)
    sums = np.abs(X[order][queries][:, None, None].astype(int) - X[order][rows]).sum(axis=2)  # (queries, classes, F)
    for own in range(2):
        of_class = sums[y[queries] == own]
        np.testing.assert_array_equal(got.total[2 * own], of_class[:, 1 - own].sum(axis=0))
        np.testing.assert_array_equal(got.total[2 * own + 1], of_class[:, own].sum(axis=0))
        delta = (of_class[:, 1 - own] - of_class[:, own]) / 4
        np.testing.assert_allclose(got.spread[:, own], [delta.sum(axis=0), (delta**2).sum(axis=0)])


def shifted(seed, m=300, F=30, n_shifted=2):
    """Return a table of normal columns, the first of which are shifted by class, and two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, m)
    X = rng.standard_normal((m, F))
    X[:, :n_shifted] += 1.5 * y[:, None]
    return X, y


def exclusive_or(seed, m=400, F=60):
    X, _ = shifted(seed, m, F, 0)
    return X, (X[:, 3] > 0) ^ (X[:, 40] > 0)


def same_tests(a, b):
    for name in ("p_neighbours", "round", "metric"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_a_monotone_change_of_features_changes_no_p_value_of_neighbours():
    X, y = exclusive_or(0)
    changed = X.copy()
    for j, change in enumerate([np.exp, np.cbrt, lambda x: 1e3 * x - 7, lambda x: x**3] * 15):
        changed[:, j] = change(X[:, j])
    same_tests(*(belief.select(values, y, 2, random_state=0) for values in (X, changed)))


def test_a_monotone_change_of_features_or_a_numeric_target_changes_no_test():
    """With a numeric target, both the univariate test and the neighbour test use ranks."""
    X, _ = shifted(1)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    wanted, got = (belief.select(*table, 2, random_state=0) for table in ((X, y), (np.exp(X), np.exp(y))))
    same_tests(got, wanted)
    np.testing.assert_allclose(got.p_value, wanted.p_value, rtol=1e-9)


def test_dense_and_sparse_rows_have_the_same_p_values():
    """If misses and hits differ equally from a query, their difference is exactly 0, without a rounding error."""
    rng = np.random.default_rng(0)
    X = np.zeros((60, 1500))
    for column in X.T:
        column[rng.permutation(60)[:4]] = rng.standard_normal(4)
    y = np.arange(60) % 2
    dense, sparse = (belief.select(values, y, 2, random_state=0) for values in (X, csr_array(X)))
    same_tests(dense, sparse)
    np.testing.assert_allclose(dense.p_value, sparse.p_value, rtol=1e-9)
    assert dense.p_value.min() > 1e-6


def test_tied_rows_are_chosen_without_regard_to_the_class_or_the_place_in_the_file():
    """If many rows are equally near, and the table is sorted by class, no class is preferred."""
    y = np.repeat([0, 1], 200)
    X = np.random.default_rng(0).integers(0, 2, (400, 6)).astype(float)
    found = belief.select(X, y, 2, random_state=0, copies="keep")
    assert np.nanmin(found.q_value) > 0.05


# --- noise and real effects ---


@pytest.mark.slow
def test_p_values_of_noise_are_uniform():
    tables = [shifted(seed, 300, 40, 0) for seed in range(20)]
    p = np.concatenate([belief.select(X, y, 2, random_state=0).p_neighbours for X, y in tables])
    assert np.isfinite(p).mean() > 0.99
    assert 0.02 <= np.mean(p < 0.05) <= 0.08
    assert np.mean(p < 0.001) <= 0.004
    assert 0.4 < np.mean(p < 0.5) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("rare", [0.3, 0.05])
def test_p_values_of_noise_are_uniform_for_any_class_balance(rare):
    p = []
    for seed in range(4):
        X, _ = shifted(seed, 500, 60, 0)
        y = np.random.default_rng(seed).permutation(500) < rare * 500
        p.append(belief.select(X, y, 2, random_state=0).p_neighbours)
    assert 0.01 <= np.mean(np.concatenate(p) < 0.05) <= 0.09


@pytest.mark.parametrize("seed", [0, 1])
def test_exclusive_or_is_found_among_noise(seed):
    X, y = exclusive_or(seed)
    result = belief.select(X, y, "auto", random_state=0)
    assert sorted(result.selected) == [3, 40]
    assert result.q_value[[3, 40]].max() < 1e-4
    assert result.p_univariate[[3, 40]].min() > 0.05
    assert np.delete(result.q_value, [3, 40]).min() > 0.05
    assert set(result.metric) > {3, 40}
    assert len(result.metric) <= 16 + 2  # those left after the rounds, and the two found
    row = result.explain("x3")
    assert (row.round, row.p_neighbours) == (result.round[3], result.p_neighbours[3])
    assert row.partner == "x40"


def test_known_features_need_no_neighbours():
    X, y = shifted(2)
    result = belief.select(X, y, 2, random_state=0)
    assert result.q_value[:2].max() < 1e-4
    assert np.isnan(result.p_neighbours[:2]).all()
    assert result.round[:2].tolist() == [0, 0]
    assert np.isfinite(result.p_neighbours[2:]).all()
    assert result.round[2:].min() >= 1
    assert set(result.metric) >= {0, 1}
    outside = np.setdiff1d(np.arange(30), result.metric)
    assert len(outside) == 12
    assert not result.null_weight[outside].any()
    assert result.null_weight[result.metric].all()


def test_p_value_is_the_smaller_of_both_tests_with_their_shares():
    X, y = shifted(3)
    result = belief.select(X, y, 2, random_state=0)
    by_neighbours = np.where(np.isnan(result.p_neighbours), 1.0, result.p_neighbours / 0.2)
    np.testing.assert_allclose(result.p_value, np.fmin(1.0, np.fmin(result.p_univariate / 0.8, by_neighbours)))
    np.testing.assert_allclose(result.q_value, naive.adjusted(result.p_value))


# --- the settings ---


def test_without_significance_there_is_no_test():
    X, y = shifted(0)
    result = belief.select(X, y, 2, random_state=0, significance=None)
    for name in ("p_value", "q_value", "p_neighbours"):
        assert np.isnan(getattr(result, name)).all(), name
    assert not result.round.any()
    assert not len(result.metric)
    assert not result.null_weight.any()
    assert "significance" not in result.timings
    np.testing.assert_allclose(result.relevance, np.maximum(result.weights, 0) / result.weights.max())


def test_relevance_is_by_weight_where_significant_and_by_p_where_not():
    X, y = shifted(4)
    result = belief.select(X, y, 4, random_state=0)
    above = (result.weights - result.null_weight)[:2]
    np.testing.assert_allclose(result.relevance[:2], above / above.max())
    assert result.relevance[2:].max() == 0.05
    assert result.selected.tolist()[2:] == sorted(range(2, 30), key=lambda j: result.p_value[j])[:2]


def test_alpha_is_the_limit_of_what_is_significant():
    X, y = shifted(5)
    X[:, 2] += 0.7 * y
    loose, strict = (belief.select(X, y, "auto", random_state=0, alpha=alpha) for alpha in (0.05, 1e-9))
    np.testing.assert_array_equal(loose.q_value, strict.q_value)
    for result, alpha in ((loose, 0.05), (strict, 1e-9)):
        np.testing.assert_array_equal(result.significant, result.q_value < alpha)
        assert set(result.selected) <= set(np.flatnonzero(result.significant))
    assert set(loose.selected) == {0, 1, 2}
    assert set(strict.selected) < {0, 1}


def test_auto_without_significance_raises():
    X, y = shifted(0)
    with pytest.raises(ValueError, match="n_features_to_select='auto' selects significant features, but significance"):
        belief.select(X, y, "auto", significance=None)


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 0), ("alpha", 1.0), ("rounds", 0), ("rounds", "all"), ("significance", "f test")]
)
def test_invalid_settings_raise(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be .*; got {value!r}"):
        belief.select(*shifted(0), 2, **{name: value})


def test_one_round_is_one_search():
    X, y = exclusive_or(0)
    one, all_of_them = (belief.select(X, y, 2, random_state=0, rounds=rounds) for rounds in (1, "auto"))
    assert set(one.round) == {1}
    assert one.metric.tolist() == list(range(60))
    assert all_of_them.round.max() == 7  # with 60, 48, 38, 30, 24, 19 and 16 features


def test_of_noise_one_feature_is_selected_with_a_warning():
    with pytest.warns(UserWarning, match="No feature is significant"):
        result = belief.select(*shifted(3, F=10, n_shifted=0), "auto", random_state=0)
    assert len(result.selected) == 1
    assert "not significant" in result.explain()[0].reason


def test_copies_of_columns_are_not_selected_again():
    X, y = shifted(4, 600, 30, 4)
    X = np.hstack([X, X[:, :4] + 0.2 * np.random.default_rng(0).standard_normal((600, 4))])
    selected = belief.select(X, y, "auto", random_state=0).selected
    assert {int(j) % 30 for j in selected} == {0, 1, 2, 3}
    assert len(selected) == 4


@pytest.mark.parametrize("redundancy", ["mcr", None])
def test_the_number_is_found_without_agreement_too(redundancy):
    X, y = shifted(5, 600, 30, 5)
    assert set(belief.select(X, y, "auto", random_state=0, redundancy=redundancy).selected) == {0, 1, 2, 3, 4}


# --- special cases ---


@pytest.mark.parametrize("seed", range(3))
def test_few_rows_of_many_columns_of_noise(seed):
    X = np.random.default_rng(seed).standard_normal((20, 2000))
    assert belief.select(X, np.arange(20) % 2, 2, random_state=0).q_value.min() > 0.05


@pytest.mark.parametrize("seed", range(3))
def test_binary_noise_beside_a_strong_binary_feature(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1000)
    X = rng.integers(0, 2, (1000, 9)).astype(float)
    X[:, 0] = np.where(rng.random(1000) < 0.9, y, 1 - y)
    result = belief.select(X, y, 2, random_state=0)
    assert result.q_value[0] < 1e-6
    assert result.q_value[1:].min() > 0.05


def test_binary_noise_beside_an_exclusive_or():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1000, 20)).astype(float)
    y = (X[:, 3] != X[:, 8]) ^ (rng.random(1000) < 0.05)
    result = belief.select(X, y, 2, random_state=0)
    assert np.flatnonzero(result.q_value < 0.05).tolist() == [3, 8]


@pytest.mark.slow
def test_copies_beyond_chance_are_merged_with_a_warning():
    """No feature of a bootstrap sample of noise is significant."""
    X, y = shifted(0, 400, 30, 0)
    drawn = np.random.default_rng(0).integers(0, 400, 400)
    n_copies = 400 - len(set(drawn.tolist()))
    with pytest.warns(UserWarning, match=rf"{n_copies} of 400 rows are copies of another row with the same target"):
        result = belief.select(X[drawn], y[drawn], 2, random_state=0)
    assert result.q_value.min() > 0.05
    assert result.sample_size == 400 - n_copies
    kept = belief.select(X[drawn], y[drawn], 2, random_state=0, copies="keep")
    assert kept.sample_size == 400


@pytest.mark.parametrize("target", ["classes", "numbers"])
@pytest.mark.parametrize("levels", [(2,) * 8, (4,) * 4, (90, 3), (62, 2, 20)])
def test_equal_rows_of_few_values_are_not_merged(levels, target):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, n, 300) for n in levels]).astype(float)
    y = rng.integers(0, 2, 300) if target == "classes" else rng.integers(0, 5, 300) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = belief.select(X, y, 2, random_state=0)
    assert len(np.unique(np.column_stack([X, y]), axis=0)) < 300  # there are equal rows
    assert result.sample_size == 300


@QUIET
@pytest.mark.parametrize("seed", range(3))
def test_classes_of_four_rows_are_tested_by_shuffles_alone(seed):
    """The column has four ones and four zeros. Only 2 of the 70 ways to form the classes put all ones into one class.

    The mid-p-value counts half of these ways.
    """
    X = np.random.default_rng(seed).integers(0, 2, (8, 2000)).astype(float)
    result = belief.select(X, np.arange(8) % 2, 2, random_state=0)
    assert np.isnan(result.p_neighbours).all()
    assert not result.round.any()
    p = result.p_univariate[np.isfinite(result.p_univariate)]
    assert p.min() == pytest.approx(1 / 70)
    assert result.q_value.min() > 0.05


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize("kind", ["lognormal", "marks", "marks as levels", "rare zeros as levels"])
@pytest.mark.parametrize("n_rare", [4, 10])
def test_small_classes(kind, n_rare):
    """F and χ² tests give false positives for a class of few rows if one of these rows has an extreme value."""
    n_found = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = (rng.permutation(400) < n_rare).astype(int)
        y[np.flatnonzero(y == 0)[:150]] = 2
        if kind == "lognormal":
            X = np.exp(2 * rng.standard_normal((400, 100)))
        else:
            X = (rng.random((400, 150)) < 0.02).astype(float)
        X = 1 - X if kind == "rare zeros as levels" else X
        discrete = list(range(150)) if "levels" in kind else []
        result = belief.select(X, y, 2, random_state=0, discrete_features=discrete)
        n_found += np.sum(result.q_value < 0.05)
    assert n_found <= 2


def test_features_that_are_rare_beside_a_small_class():
    """Shuffles also check columns with very few non-zero values, although the neighbour test leaves them out."""
    rng = np.random.default_rng(0)
    y = (rng.permutation(1000) < 10).astype(int)
    X = np.zeros((1000, 300))
    for column in X.T:
        column[rng.permutation(1000)[:2]] = 1
    result = belief.select(X, y, 2, random_state=0)
    assert np.isnan(result.p_neighbours).all()
    assert result.q_value.min() > 0.05


@pytest.mark.parametrize("seed", range(2))
def test_functions_of_a_known_feature_are_not_found(seed):
    """If the class shifts x up or down by the same amount, |x| has the same distribution in both classes.

    But |x| depends on x, which is significant: |x| is small for rows halfway between the means of the two classes. The
    noisy copies of |x| in this test must not become significant because of this.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 400)
    x = rng.standard_normal(400) + 1.5 * (2 * y - 1)
    around = np.abs(x)[:, None] + 0.3 * rng.standard_normal((400, 10))
    result = belief.select(np.column_stack([x, around, rng.standard_normal((400, 20))]), y, 2, random_state=0)
    assert result.q_value[0] < 1e-6
    assert result.q_value[1:].min() > 0.05


@pytest.mark.parametrize("seed", range(2))
def test_values_that_are_missing_by_class(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 400)
    X = rng.standard_normal((400, 30))
    X[rng.random(X.shape) < np.where(y, 0.1, 0.4)[:, None]] = np.nan
    with pytest.warns(UserWarning, match=r"share of missing values differs between classes in \d+ features"):
        result = belief.select(X, y, 2, random_state=0)
    assert np.mean(result.q_value < 0.05) <= 0.05
    assert np.mean(result.p_neighbours < 0.05) <= 0.14


def test_values_missing_at_random_warn_of_nothing():
    X, y = shifted(0)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    result = belief.select(X, y, 2, random_state=0)
    assert result.q_value[:2].max() < 1e-4
    assert result.q_value[2:].min() > 0.05


def test_constant_features_are_not_tested():
    X, y = shifted(1, F=60, n_shifted=1)
    wanted = belief.select(np.delete(X, np.s_[20:50], axis=1), y, 2, random_state=0)
    X[:, 20:50] = 5.0
    result = belief.select(X, y, 2, random_state=0)
    assert np.isnan(result.p_neighbours[20:50]).all()
    assert np.all(result.q_value[20:50] == 1.0)
    np.testing.assert_array_equal(np.delete(result.p_neighbours, np.s_[20:50]), wanted.p_neighbours)
    np.testing.assert_allclose(np.delete(result.q_value, np.s_[20:50]), wanted.q_value, rtol=1e-9)


def test_two_valued_nominal_features_of_numeric_targets_have_the_test_of_kruskal_and_wallis():
    from scipy.stats import kruskal

    rng = np.random.default_rng(0)
    y, X = rng.standard_normal(200), (rng.random((200, 30)) < np.linspace(0.05, 0.95, 30)).astype(float)
    result = belief.select(X, y, 2, random_state=0, discrete_features=list(range(30)))
    p = np.array([kruskal(y[x == 0], y[x == 1]).pvalue for x in X.T])
    untouched = p > 0.06  # smaller p-values are corrected by shuffles
    assert untouched.sum() > 20
    np.testing.assert_allclose(result.p_univariate[untouched], p[untouched], rtol=0.02)


# --- the probe ---


@pytest.mark.parametrize("n_levels", [3, 60])
def test_codes_of_categories_do_not_matter(n_levels):
    """The codes depend on how a table is read. With 60 levels, the rare levels share a column of the probe."""
    rng = np.random.default_rng(n_levels)
    y = rng.integers(0, 2, 300)
    X = np.column_stack([rng.integers(0, n_levels, (300, 3)), rng.normal(size=300) + y]).astype(float)
    X[:, 0] = np.where(rng.random(300) < 0.4, y, X[:, 0])
    renamed = X.copy()
    renamed[:, :3] = rng.permutation(n_levels)[X[:, :3].astype(int)]
    found = [belief.select(x, y, 4, random_state=0, discrete_features=[0, 1, 2]) for x in (X, renamed)]
    for name in ("p_value", "p_univariate", "p_neighbours", "scores"):
        np.testing.assert_allclose(getattr(found[1], name), getattr(found[0], name), rtol=1e-12)


def test_probe_of_the_result_has_the_size_of_the_neighbour_test():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2100, 20))
    y = X[:, 0] * X[:, 1] > 0
    probe = belief.select(X, y, 2, random_state=0).probe
    assert (probe["rows"], probe["features"], probe["rounds"]) == (2000, 20, 2)  # rounds with 20 and 16 features
    assert 0 < probe["queries"] <= 1000
    assert probe["shuffles"] >= 20
    assert belief.select(X[:200], y[:200], 2, rounds=1, random_state=0).probe["rounds"] == 1
    assert belief.select(X[:200], y[:200], 2, significance=None).probe == {}
    copies = y[:200, None] + 0.3 * rng.normal(size=(200, 3))  # the univariate test finds all of them
    assert belief.select(copies, y[:200], 2).probe == {}


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 0, 1, 1, 1, 1]])
def test_too_few_rows_for_the_neighbour_test_warn(groups):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), [0, 1] * 4
    with pytest.warns(UserWarning, match="Interactions are not tested for significance") as seen:
        result = belief.select(X, y, 1, groups=groups, n_neighbors=2)
    assert np.isnan(result.p_neighbours).all()
    assert (result.p_univariate <= 1).all()
    assert result.probe == {}
    assert all("Interactions" in str(w.message) for w in seen)


@pytest.mark.parametrize("storage", [np.asarray, csr_array, lambda X: [X[:20], X[20:]]])
@pytest.mark.parametrize("discrete", [[], [0, 1]])
def test_any_value_may_be_the_rare_one(storage, discrete):
    """A column with the same value in all rows except two is left out, whichever of its values is coded as 0."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    is_rare = np.isin(np.arange(60), [3, 40])
    X = np.column_stack([is_rare, rng.integers(0, 2, 60), rng.normal(size=(60, 3)) + y[:, None]])
    swapped = np.column_stack([1 - X[:, :2], X[:, 2:]])
    found = [
        belief.select(storage(x), y, 3, random_state=0, discrete_features=discrete, scale="standard")
        for x in (X, swapped)
    ]
    for result in found:
        assert result.metric.tolist() == [1, 2, 3, 4]
    for name in ("weights", "p_value", "scores"):
        np.testing.assert_allclose(getattr(found[1], name), getattr(found[0], name), rtol=1e-9)
