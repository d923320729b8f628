"""The experiments of docs/reproduction.md, in small: what the page says still comes out."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).parents[1] / "experiments" / "redundancy.py"


@pytest.fixture(scope="module")
def redundancy():
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.syspath_prepend(FILE.parent)
    spec = importlib.util.spec_from_file_location("experiments_redundancy", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    monkeypatch.undo()


def test_planted_copies_are_near_copies(redundancy):
    X, y, origin = redundancy.planted(10, 0)
    assert X.shape == (1000, 200)
    assert np.bincount(y).tolist() == [500, 500]
    assert np.bincount(origin + 1).tolist() == [100] + [10] * 10
    correlation = np.corrcoef(X, rowvar=False)
    for feature in range(10):
        best = correlation[np.ix_(origin == feature, origin == feature)].min(axis=1).max()  # the original's
        assert 0.95 < best < 0.99


def test_mcr_finds_more_of_the_features_that_are_repeated_ten_times(redundancy):
    def mean(method):
        return np.mean([redundancy.distinct(method, 10, seed) for seed in (0, 1)])

    plain = mean("BELIEF")
    assert mean("BELIEF + mCR, θ = 0.3") >= 2 * plain
    assert mean("BELIEF + mCR, θ = mean") >= 1.5 * plain


def test_only_missing_answers_are_computed(redundancy, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(redundancy, "CELLS", tmp_path / "cells.json")
    monkeypatch.setattr(redundancy, "distinct", lambda *cell: asked.append(cell) or 1)
    kept = redundancy.compute()
    assert len(asked) == len(redundancy.grid()) == len(kept.answers)
    assert redundancy.compute().answers == kept.answers
    assert len(asked) == len(redundancy.grid())
    monkeypatch.setattr(redundancy, "BLUR", 0.5)  # other data: all anew
    redundancy.compute()
    assert len(asked) == 2 * len(redundancy.grid())
