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


@pytest.mark.parametrize("shifts", [(0.6, 1.2), (0.5, 0.5)])
def test_the_class_means_are_as_far_apart_as_the_shifts_say(redundancy, shifts):
    X, y, origin = redundancy.planted(2, 3, shifts)
    apart = (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)).astype(float)
    expected = np.append(np.linspace(*shifts, 10), 0)[origin]  # -1 is noise
    assert np.all(np.abs(apart - expected) < 5 * np.sqrt(2 * 1.0625 / 500))


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


def test_the_published_page_is_that_of_the_answers(redundancy):
    kept = redundancy.Answers(redundancy.CELLS, redundancy.configuration())
    assert kept.answers, "redundancy.json is of another configuration: run experiments/redundancy.py again"
    assert redundancy.markdown(kept) in redundancy.PAGE.read_text()


def test_the_tries_are_those_the_page_tells_of(redundancy, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(redundancy, "distinct", lambda *cell: asked.append(cell) or len(asked) % 3)
    monkeypatch.setattr(redundancy, "commit", lambda: "abc")
    monkeypatch.setattr(redundancy, "compute", None)  # answers that are kept stay as they are
    redundancy.main(["--tries"])
    seeds, shifts = (100, 101, 102), ((0.6, 1.2), (0.4, 0.8), (0.5, 0.5))
    assert asked == [(method, 10, seed, pair) for method in redundancy.METHODS for pair in shifts for seed in seeds]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| method, r = 10 | shifts 0.6 to 1.2 | shifts 0.4 to 0.8 | shifts 0.5 for all |"
    assert lines[2] == "| BELIEF | 1.0 (0–2) | 1.0 (0–2) | 1.0 (0–2) |"
    assert lines[-1] == "Seeds 100 to 102. Computed at commit abc."


def test_what_the_page_says_of_equal_shifts(redundancy):
    seeds = redundancy.TRIED_SEEDS

    def mean(method):
        return np.mean([redundancy.distinct(method, 10, seed, redundancy.TRIES["0.5 for all"]) for seed in seeds])

    plain = mean("BELIEF")
    assert plain == 5.0
    assert round(mean("BELIEF + mCR, θ = 0.3") / plain, 1) == 1.6
    assert round(mean("BELIEF + mCR, θ = mean") / plain, 1) == 1.4
