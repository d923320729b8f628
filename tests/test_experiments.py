"""The experiment on redundancy, in small: its data, and whether docs/reproduction.md agrees with the stored answers."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from common import is_published

FILE = Path(__file__).parents[1] / "experiments" / "redundancy.py"


@pytest.fixture(scope="module")
def redundancy():
    return importlib.import_module(FILE.stem)


@pytest.mark.smoke
def test_planted_copies_are_near_copies(redundancy):
    X, y, origin = redundancy.planted(10, 0)
    assert X.shape == (1000, 200)
    assert np.bincount(y).tolist() == [500, 500]
    assert np.bincount(origin + 1).tolist() == [100] + [10] * 10
    correlation = np.corrcoef(X, rowvar=False)
    for feature in range(10):
        best = correlation[np.ix_(origin == feature, origin == feature)].min(axis=1).max()  # of the original
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
    monkeypatch.setattr(redundancy, "CELLS", tmp_path / "cells.jsonl")
    monkeypatch.setattr(redundancy, "distinct", lambda *cell: asked.append(cell) or 1)
    kept = redundancy.compute()
    every = [*redundancy.grid(), *redundancy.tries()]
    assert asked == every
    assert len(kept.answers) == len(every)
    assert redundancy.compute().answers == kept.answers
    assert asked == every
    monkeypatch.setattr(redundancy, "BLUR", 0.5)  # with other data, all answers are computed again
    redundancy.compute()
    assert asked == 2 * every


@pytest.fixture
def kept(redundancy):
    """Return the published answers."""
    found = redundancy.Answers(redundancy.CELLS, redundancy.configuration())
    assert found.answers, "redundancy.jsonl has answers of another configuration: run experiments/redundancy.py again"
    return found


def test_the_published_page_is_that_of_the_answers(redundancy, kept):
    for text in (redundancy.markdown(kept), redundancy.markdown_of_tries(kept)):
        assert is_published(redundancy.PAGE, text)


def test_what_the_page_says_in_words(redundancy, kept):
    words = " ".join(redundancy.PAGE.read_text().split())

    def times(method, seeds, shifts="0.6 to 1.2"):
        """Return how many times as many features are found as without mCR, over all seeds."""
        more, plain = ([kept.answers[redundancy.key_of(x, 10, seed, shifts)] for seed in seeds]
                       for x in (f"BELIEF + mCR, θ = {method}", "BELIEF"))  # fmt: skip
        return sum(more) / sum(plain)

    strict, mean = (times(method, redundancy.SEEDS) for method in ("0.3", "mean"))
    assert strict >= 2
    assert mean >= 1.5
    assert f"θ = 0.3, BELIEF with mCR finds {strict:.2f} times as many different features as without mCR." in words
    assert f'With θ = "mean", it finds {mean:.1f} times as many.' in words
    tried = [times(x, redundancy.TRIED_SEEDS, shifts) for x in ("0.3", "mean") for shifts in redundancy.SHIFTS]
    assert f"mCR finds {min(tried):.1f} to {max(tried):.1f} times as many different features." in words
