"""Tests of the interface of redundancy measures."""

from dataclasses import replace

import numpy as np
import pytest

import belief
from belief.method.redundancy import MEASURES, make_rule
from belief.method.redundancy.agreement import Agreement, UniqueShareRule

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, 300)
X = rng.standard_normal((300, 8)) + np.r_[np.ones(3), np.zeros(5)] * Y[:, None]
X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(300)


class OverlapRule(UniqueShareRule):
    presentation = replace(UniqueShareRule.presentation, name="overlap", redundancy_title="Overlap of the features")

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
    from belief.report import render

    assert "Overlap of the features" in render(result)


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
