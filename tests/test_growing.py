"""Tests of growing samples, interaction partners and copies of rows."""

import numpy as np
import pytest

import belief
from belief.method.growing import Limits, find_rivals, forecast, next_step
from belief.method.partners import MAX_FEATURES
from belief.method.redundancy import make_rule

RULE = make_rule("agreement", "auto")
PLAIN = {"redundancy": None, "significance": None}
rng = np.random.default_rng(8)
M = 9_000
Y = rng.integers(0, 2, M)
CLEAR = rng.standard_normal((M, 12)) + np.r_[np.full(4, 1.2), np.zeros(8)] * Y[:, None]
CLOSE = rng.standard_normal((M, 12)) + np.linspace(0.5, 0.3, 12) * Y[:, None]  # features 2 and 3 have similar weights


# --- the sample ---


@pytest.mark.slow
def test_growth_stops_at_once_for_a_clear_selection():
    result = belief.select(CLEAR, Y, 4, random_state=0)
    assert result.stop_reason == "converged"
    assert result.sample_size == 2000
    assert sorted(result.selected) == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def grown():
    return belief.select(CLOSE, Y, 3, random_state=0, significance=None)


def test_growth_continues_for_a_close_selection(grown):
    assert grown.sample_size > 2000
    assert grown.stop_reason in ("converged", "equivalent", "all rows")


@pytest.mark.parametrize(("size", "queries"), [(500, 500), (0.1, 900), ("fixed", 2000)])
def test_given_sample_size_does_not_grow(size, queries):
    result = belief.select(CLOSE, Y, 3, random_state=0, sample_size=size)
    assert result.stop_reason == "fixed"
    assert result.sample_size == queries


def test_small_table_uses_all_rows():
    result = belief.select(CLOSE[:700], Y[:700], 3, random_state=0)
    assert (result.stop_reason, result.sample_size) == ("all rows", 700)


def test_grown_sample_equals_a_sample_of_that_size(grown):
    given = belief.select(CLOSE, Y, 3, random_state=0, sample_size=grown.sample_size, significance=None)
    np.testing.assert_allclose(grown.weights, given.weights, rtol=1e-9)
    np.testing.assert_array_equal(grown.selected, given.selected)


def test_growth_resumes_from_a_checkpoint(tmp_path, grown):
    seen = []

    def stop_later(progress):
        seen.append(progress.phase)
        if seen.count("neighbours") and progress.phase == "tally" and "of 8" in progress.detail:
            raise KeyboardInterrupt

    options = {"random_state": 0, "significance": None, "checkpoint": tmp_path / "notes"}
    with pytest.raises(KeyboardInterrupt):
        belief.select(CLOSE, Y, 3, callback=stop_later, **options)
    resumed = belief.select(CLOSE, Y, 3, **options)
    np.testing.assert_array_equal(resumed.weights, grown.weights)
    assert resumed.sample_size == grown.sample_size


def test_forecast_is_certain_for_distant_weights_only():
    w, se, R = np.array([1.0, 0.9, 0.1]), np.full(3, 0.01), np.eye(3)
    assert forecast(w, se, R, np.array([0, 1]), RULE).chance == 1.0
    assert forecast(np.array([1.0, 0.5, 0.5]), se, R, np.array([0, 1]), RULE).chance == pytest.approx(0.5, abs=0.12)


def test_forecast_lets_copies_replace_each_other():
    w, se = np.array([1.0, 0.5, 0.5]), np.full(3, 0.05)
    R = np.array([[1, 0, 0], [0, 1, 0.95], [0, 0.95, 1.0]])
    assert forecast(w, se, R, np.array([0, 1]), RULE).chance > 0.95


def test_forecast_respects_theta():
    """The third feature is partly redundant with the first, so the second is selected instead if theta is 1."""
    w, se = np.array([1.0, 0.5, 0.9]), np.full(3, 0.01)
    R = np.array([[1, 0, 0.7], [0, 1, 0], [0.7, 0, 1.0]])
    assert forecast(w, se, R, np.array([0, 1]), make_rule("agreement", 1.0)).chance == 1.0
    assert forecast(w, se, R, np.array([0, 1]), make_rule("agreement", 0.0)).chance == 0.0


def test_next_step_jumps_beyond_doubling():
    w, se = np.array([1.0, 0.52, 0.5]), np.full(3, 0.03)
    about = (w, se, np.eye(3), np.array([0, 1]), RULE, 2000, 10**6, Limits(64_000, 64_000))
    doubled, jumped = next_step(*about), next_step(*about, jump=True)
    assert doubled.size == 4000
    assert jumped.size > 4000


def test_find_rivals():
    w, se = np.array([0.1, 1.0, 0.8, 0.3]), np.array([0.01, 0.01, 0.01, 0.2])
    assert find_rivals(w, se, np.array([1, 2]), 0.8).tolist() == [1, 2, 3]


# --- interaction partners ---


@pytest.mark.slow
def test_find_partners_of_exclusive_or():
    X = rng.standard_normal((1000, 30))
    result = belief.select(X, (X[:, 4] > 0) ^ (X[:, 9] > 0), 4, random_state=0)
    lines = {line["index"]: line for line in result.explain()}
    assert (lines[4]["partner"], lines[9]["partner"]) == ("x9", "x4")
    assert "interacts with 'x9'" in lines[4]["reason"]
    assert all(line["partner"] is None for j, line in lines.items() if j not in (4, 9))


def test_find_partners_of_parity():
    X = rng.integers(0, 2, (1200, 15)).astype(float)
    result = belief.select(X, X[:, [2, 5, 11]].sum(axis=1) % 2, 5, random_state=0)
    found = dict(zip(result.selected.tolist(), result.partner.tolist(), strict=True))
    for j in (2, 5, 11):
        assert found[j] in {2, 5, 11} - {j}
    assert all(found[j] == -1 for j in found if j not in (2, 5, 11))


def test_find_partners_finds_none_for_additive_features():
    assert np.all(belief.select(CLEAR[:1500], Y[:1500], 6, random_state=0).partner == -1)


def test_find_partners_examines_the_first_selected_only():
    X = rng.standard_normal((300, MAX_FEATURES + 20))
    result = belief.select(X, rng.integers(0, 2, 300), MAX_FEATURES + 10, random_state=0)
    assert len(result.partner) == MAX_FEATURES + 10


# --- copies ---


def oversampled(times):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((700, 25))
    y = (np.arange(700) < 100).astype(int)
    X[:, :5] += 0.8 * y[:, None]
    rows = np.concatenate([np.tile(np.arange(100), times), np.arange(100, 700)])
    return X[rows], y[rows]


def test_merging_copies_restores_the_selection():
    X, y = oversampled(20)
    with pytest.warns(UserWarning, match="copies of the row itself.*copies='merge'"):
        kept = belief.select(X, y, 5, random_state=0, copies="keep", **PLAIN)  # selected by weight only
    merged, once = (
        belief.select(X, y, 5, random_state=0, copies="merge", **PLAIN),
        belief.select(*oversampled(1), 5, random_state=0),
    )
    assert merged.sample_size == once.sample_size == 700
    assert len({0, 1, 2, 3, 4} & set(merged.selected)) > len({0, 1, 2, 3, 4} & set(kept.selected))


def test_univariate_p_values_of_merged_copies():
    X, y = oversampled(20)
    X[:, 20:] = (X[:, 20:] > 0).astype(float)
    marks = np.arange(X.shape[1]) >= 20
    how = {"random_state": 0, "discrete_features": marks}
    merged = belief.select(X, y, 5, copies="merge", **how).p_univariate
    _, once = np.unique(np.column_stack([X, y]), axis=0, return_index=True)
    alone = belief.select(X[once], y[once], 5, **how).p_univariate
    assert np.mean(merged[5:] < 0.05) < 0.15  # if every copy counted, it would be nearly half
    assert (merged[:5] < 1e-4).all()
    np.testing.assert_allclose(np.log10(merged[5:]), np.log10(alone[5:]), rtol=0.2, atol=0.05)


def test_no_copies_warning_if_columns_have_few_values(recwarn):
    X = rng.integers(0, 2, (900, 5)).astype(float)
    belief.select(X, X[:, 0] > 0, 2, random_state=0)
    assert not [w for w in recwarn if "copies" in str(w.message)]


def test_identical_rows_of_different_classes_are_not_merged():
    X = np.repeat(rng.standard_normal((60, 3)), 4, axis=0)
    result = belief.select(X, np.tile([0, 0, 1, 1], 60), 2, random_state=0, copies="merge")
    assert result.sample_size == 120
