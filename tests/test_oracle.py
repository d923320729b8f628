"""Compare all results of the method, on every engine, with a naive implementation that shares no code with it."""

import warnings
from functools import cache

import naive
import numpy as np
import pytest
import traced
from effort import examples
from hypothesis import HealthCheck, assume, example, given, settings
from tables import Case, cases

from belief.method.algorithm import make_search
from belief.method.difference import Difference
from belief.method.sampling import sample_quota
from belief.method.settings import PAPER, Settings

pytestmark = pytest.mark.slow
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def run(engine, given_settings):
    with engine:
        return traced.run(engine, given_settings)


def is_close_call(ref):
    """Return True if all weights are equal up to rounding, so that another order of summation may change the result."""
    live = ref.w[~ref.constant]
    return len(live) > 1 and np.ptp(live) < 1e-9 * np.abs(live).max()


def few_ties(n_more=0):
    rng = np.random.default_rng(5)
    X = np.repeat(rng.integers(0, 2, (12, 6)).astype(float), 30, axis=0)
    X = np.column_stack([np.zeros((len(X), n_more)), X])
    return Case(
        X, np.sort(rng.integers(0, 3, len(X))).astype(np.int32), np.zeros(X.shape[1], bool),
        {
            "n_features_to_select": 3, "n_neighbors": 5, "sample_size": 100, "batch_size": 0.25,
            "neighborhood": "per_class", "scale": "standard", "redundancy": "mcr", "theta": "mean", "eta": 2.0,
            "kappa": 0.8, "sampling": "random", "class_weight": "prior", "random_state": 1,
        },
    )  # fmt: skip


@given(case=cases())
@example(case=few_ties())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_belief_agrees_with_the_oracle(make_engine, case):
    got = run(make_engine(case.X, case.labels, case.discrete), case.settings)
    ref = naive.belief(case.X, case.labels, **case.oracle())
    assume(not is_close_call(ref))
    size = np.abs(ref.w).max(initial=0)
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11 * max(size, 1e-300))
    np.testing.assert_allclose(got.tally.DD, ref.DD, **CLOSE)
    np.testing.assert_allclose(got.tally.ED, ref.ED, **CLOSE)
    np.testing.assert_array_equal(np.broadcast_to(got.tally.DC, ref.DC.shape), ref.DC)
    np.testing.assert_array_equal(np.broadcast_to(got.tally.EC, ref.EC.shape), ref.EC)
    if case.settings["redundancy"] == "mcr":
        np.testing.assert_allclose(got.tally.rates, ref.marginal, **CLOSE)
    else:
        assert not len(got.tally.rates)
    assert got.tally.n_pairs == ref.n_pairs
    np.testing.assert_allclose(got.se, ref.se, rtol=1e-6, atol=max(1e-9 * size, 1e-12))
    assert got.difference.scale == ref.scale
    if case.settings["redundancy"] == "mcr":
        assert got.watched.tolist() == ref.watch_lists[-1]
    assert got.selected.tolist() == ref.selected
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-7, atol=1e-9)


@given(case=cases())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_mcr_agrees_with_the_oracle(make_engine, case):
    ref = naive.belief(case.X, case.labels, **{**case.oracle(), "redundancy": "mcr"})
    assume(not is_close_call(ref))
    got = run(make_engine(case.X, case.labels, case.discrete), {**case.settings, "redundancy": "mcr"})
    pool = got.measure.pool
    for i in pool:
        joint, pairs = got.measure.joint_with_pool(i)
        np.testing.assert_allclose(joint, ref.joint[i, pool], **CLOSE)
        np.testing.assert_array_equal(pairs, ref.joint_pairs[i, pool])
        np.testing.assert_allclose(got.measure.raw(i)[0], ref.I[i, pool], rtol=1e-7, atol=1e-9)


@given(case=cases())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_agreement_equals_the_oracle(make_engine, case):
    mine = {"redundancy": "agreement", "theta": "auto"}
    ref = naive.belief(case.X, case.labels, **{**case.oracle(), **mine})
    assume(not is_close_call(ref))
    got = run(make_engine(case.X, case.labels, case.discrete), {**case.settings, **mine})
    pool = got.measure.pool
    for i in got.selected[~got.difference.constant[got.selected]]:
        others = pool != i
        row = got.measure.row(i, pool[:0])
        np.testing.assert_allclose(row[others], ref.R[i, pool[others]], rtol=1e-7, atol=1e-7)


@given(case=cases())
@example(case=few_ties())
@example(case=few_ties(n_more=40))  # the 32 columns that are hashed first to find copies are constant
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_nearest_agrees_with_the_oracle(make_engine, case):
    ref = naive.belief(case.X, case.labels, **case.oracle())
    chosen = Settings(**case.settings)
    with make_engine(case.X, case.labels, case.discrete) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        summary = engine.describe()
        s = case.settings["sample_size"]
        quota = sample_quota(chosen.sampling, s, engine.target.counts)
        sample = engine.sample(quota, chosen.random_state).in_order(chosen.sampling, s)
        difference = Difference.from_summary(summary, case.discrete, chosen.scale)
        found = engine.nearest(sample, difference, make_search(chosen, engine.target, summary.m, chosen.random_state))
    for q, rows in zip(sample.row.tolist(), found.row, strict=True):
        assert rows[rows >= 0].tolist() == ref.neighbours[q]
    np.testing.assert_array_equal(sample.row, ref.sample)


@cache
def wide_table():
    """Return a table with more features than rows, its classes, and a mask of the discrete features.

    The most relevant features are copies of one feature, so many others become candidates after the first selection.
    """
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 220))
    X[:, 0] += 3 * y
    X[:, 1:6] += y[:, None]
    X[:, 6:12] = X[:, :6] + 0.1 * rng.standard_normal((90, 6))
    X[:, 60:] += 0.6 * y[:, None]
    X[:, 20:60] = X[:, :1] + 0.1 * rng.standard_normal((90, 40))
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 12:20] = rng.integers(0, 3, (90, 8))
    discrete = np.zeros(220, bool)
    discrete[12:20] = True
    return X, y, discrete


@cache
def oracle_of_wide_table(**how):
    """Return the result of the slow oracle, cached because it is the same for all engines."""
    X, y, discrete = wide_table()
    return naive.belief(X, y, 6, discrete=discrete, seed=4, **how)


def test_forward_selection_with_a_small_pool(make_engine):
    """The bounds exclude only features that cannot be selected next."""
    X, y, discrete = wide_table()
    for redundancy, theta in (("mcr", "mean"), ("mcr", 1.0), ("agreement", "auto"), ("agreement", 0.5)):
        how = {"eta": 2.0, "theta": theta, "redundancy": redundancy, "sampling": "random", "class_weight": "prior"}
        engine = make_engine(X, y.astype(np.int32), discrete)
        engine.columns_at_once = 0
        got = run(engine, {"n_features_to_select": 6, "random_state": 4, "n_neighbors": 10, **how})
        ref = oracle_of_wide_table(**how)
        assert got.selected.tolist() == ref.selected
        np.testing.assert_allclose(got.scores, ref.scores, atol=1e-9)
        assert 16 < len(got.measure.pool) < 210  # some features were added, and some were excluded


@pytest.mark.parametrize("size", [1e-155, 1e-100, 1e100])
def test_belief_on_very_small_and_very_large_values(make_engine, size):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)) * size, rng.integers(0, 2, 60)
    got = run(
        make_engine(X, y.astype(np.int32), np.zeros(3, bool)),
        {**PAPER, "n_features_to_select": 3, "random_state": 0, "scale": "none", "n_neighbors": 5},
    )
    assert got.tally.n_pairs == 600
    if size > 1e-150:
        np.testing.assert_allclose(got.weights, naive.belief(X, y, 3, k=5, scale="none").w, rtol=1e-9)


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_nearest_with_large_offsets_and_ranges(make_engine, scale):
    """Products in float32 lose digits of such values; the error bounds must allow for this."""
    rng = np.random.default_rng(0)
    X = 1e8 + rng.standard_normal((200, 5)) * np.array([1e-3, 1, 1, 1e3, 1e6])
    X[0] = 1e30
    y = rng.integers(0, 2, 200)
    ref = naive.belief(X, y, 3, scale=scale)
    got = run(
        make_engine(X, y.astype(np.int32), np.zeros(5, bool)),
        {**PAPER, "n_features_to_select": 3, "random_state": 0, "scale": scale},
    )
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9)
    assert got.selected.tolist() == ref.selected
