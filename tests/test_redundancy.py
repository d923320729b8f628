"""Tests of the interface of redundancy measures, and of the forward selection that uses it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import belief
from belief.method.redundancy import MEASURES, make_rule
from belief.method.redundancy.agreement import Agreement, UniqueShareRule
from belief.method.selection import forward_selection

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 300)
X = rng.standard_normal((300, 8)) + np.r_[np.ones(3), np.zeros(5)] * Y[:, None]
X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(300)


class OverlapRule(UniqueShareRule):
    presentation = replace(
        UniqueShareRule.presentation, name="overlap", redundancy_title="Overlap of the features",
        relevance_axis="relevance without overlap", redundancy_axis="overlap with", redundancy_caption="How far",
    )  # fmt: skip

    def describe_loss(self, feature, redundancy, relevance, score):
        return f"overlaps with {feature!r}"


class Overlap(Agreement):
    @staticmethod
    def make_rule(theta):
        return OverlapRule(1.0)


def test_a_new_measure_needs_no_change_elsewhere(monkeypatch):
    monkeypatch.setitem(MEASURES, "overlap", Overlap)
    result = belief.select(X, Y, 3, redundancy="overlap", random_state=0)
    assert result.selected.tolist() == belief.select(X, Y, 3, random_state=0).selected.tolist()
    assert "overlaps with" in str(result.explain())
    pytest.importorskip("jinja2", reason="reports need Jinja2")
    pytest.importorskip("matplotlib", reason="reports need matplotlib")
    from matplotlib.figure import Figure

    from belief.report import render

    page = render(result)
    assert "Overlap of the features" in page
    assert "agree" not in page.lower().partition("<code>redundancy</code>")[0]  # this setting lists all measures
    for draw, label in ((belief.plot.redundancy, "overlap with"), (belief.plot.relevance_redundancy, "relevance with")):
        assert draw(result, Figure().add_subplot()).get_xlabel().startswith(label)


@pytest.mark.parametrize("redundancy", ["agreement", "mcr", None])
def test_rules_never_raise_a_score_with_redundancy(redundancy):
    rule = make_rule(redundancy, "auto")
    low, high = (rule.accumulate(np.full(5, rule.initial), np.full(5, r)) for r in (0.2, 0.7))
    relevance = np.linspace(0, 1, 5)
    assert np.all(rule.score(relevance, high, 1) <= rule.score(relevance, low, 1))
    for w, redundancies in ((0.5, np.array([0.2])), (0.5, np.array([0.2, 0.7]))):
        accumulated = np.array([rule.initial])
        for r in redundancies:
            accumulated = rule.accumulate(accumulated, r)
        assert rule.score_next(w, redundancies) == pytest.approx(
            rule.score(np.array([w]), accumulated, len(redundancies))[0]
        )


@pytest.mark.parametrize("n", [300, 1100])  # without and with compiled kernels
def test_distant_clusters_do_not_hide_agreement(n):
    """Differences between neighbours are small compared with the values, but must not be lost by rounding.

    Neighbours are in the same cluster.
    """
    rng = np.random.default_rng(n)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 6)) + 3 * y[:, None]
    X[:, 5] = X[:, 4] + 0.1 * rng.normal(size=n)
    X[: n // 2, 4:] += 1e8
    chosen = {"n_features_to_select": 6, "random_state": 0, "scale": "none"}
    dense, thin = (belief.select(x, y, **chosen) for x in (X, sparse.csr_array(X)))
    at = [dense.selected.tolist().index(j) for j in (4, 5)]
    assert dense.redundancy[min(at), max(at)] > 0.9
    np.testing.assert_allclose(thin.redundancy, dense.redundancy, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(thin.scores, dense.scores, rtol=1e-9)


class CountingMeasure:
    """A redundancy measure that looks up all values in the matrix R, and counts the calls of `row`."""

    def __init__(self, R, pool):
        self.R, self.pool, self.column, self.n_lines = R, pool, np.full(len(R), -1), 0
        self.column[pool] = np.arange(len(pool))

    def extend(self, features):
        self.column[features] = len(self.pool) + np.arange(len(features))
        self.pool = np.concatenate([self.pool, features])

    def row(self, feature, likely):
        self.n_lines += 1
        return self.R[feature, self.pool]

    def lower_bounds(self, features, others):
        return None


def test_features_without_relevance_are_selected_without_measuring_their_redundancy():
    F, n_select, rng = 3000, 1500, np.random.default_rng(1)
    w = np.round(np.where(np.arange(F) < 20, 1.0, -1.0) * rng.random(F), 2)  # many equal weights
    rule = make_rule("agreement", "auto")
    relevance, order = rule.normalise(w, np.zeros(F, bool)), np.argsort(-w, kind="stable")
    R = np.minimum(1.0, rng.random((F, F)) * 1.02)  # if it is 1, the score of a relevant feature becomes 0
    np.fill_diagonal(R, 0.0)
    measure = CountingMeasure(R, order[:16])
    found = forward_selection(relevance, w, order, n_select, measure, rule, np.zeros(0, int))
    expected, share = [], np.ones(F)
    for _ in range(n_select):  # the same selection, with all redundancies
        J = np.round(relevance * share, 10)
        J[expected] = -1.0
        ties = np.flatnonzero(J.max() == J)
        expected.append(int(ties[np.argmax(w[ties])]))
        share = np.minimum(share, 1.0 - R[expected[-1]])
    assert found.selected.tolist() == expected
    assert measure.n_lines < 40
    assert len(measure.pool) < 200


def test_no_more_features_are_measured_than_become_rivals():
    F, rng = 500, np.random.default_rng(2)
    w = rng.random(F)
    rule = make_rule("agreement", "auto")
    relevance, order = rule.normalise(w, np.zeros(F, bool)), np.argsort(-w, kind="stable")
    R = rng.random((F, F))
    found = []
    for at_once in (64, 1):
        measure = CountingMeasure(R, order[:8])
        race = relevance, w, order, 6, measure, rule, np.zeros(0, int)
        found.append((forward_selection(*race, at_once=at_once).selected.tolist(), len(measure.pool)))
    assert found[0][0] == found[1][0]
    assert found[1][1] < found[0][1] - 20
