"""The experiment on the steps from the paper to the defaults: its scores, and whether the pages show its answers."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from pages import kept_answers

import belief

HOME = Path(__file__).parents[1] / "experiments"
MODULES = ("common", "steps", "steps_page", "choices")


@pytest.fixture(scope="module")
def it():
    """Return the modules of the experiments, by name."""
    return {name: importlib.import_module(name) for name in MODULES}


# --- the steps ---


def test_the_steps_begin_with_the_paper(it):
    steps = it["steps"]
    rng = np.random.default_rng(0)
    data = it["choices"].Data(rng.standard_normal((60, 5)), np.arange(60) % 2, np.zeros(5, bool))
    assert steps.settings_of(data, next(iter(steps.STEPS))) == dict(belief.PAPER)


def test_features_are_judged_by_rows_that_did_not_select_them(it):
    steps = it["steps"]
    rng = np.random.default_rng(0)
    data = it["choices"].Data(rng.standard_normal((60, 2000)), rng.permutation(np.arange(60) % 2), np.zeros(2000, bool))
    marks = steps.Judge(data, 3).marks(lambda part: steps.selected(part, 20, steps.LAST, 0))
    assert np.mean(marks) < 0.6


# --- the published pages ---


@pytest.mark.smoke
def test_the_published_page_is_that_of_the_answers(it):
    assert it["common"].is_published(it["steps"].PAGE, it["steps_page"].markdown(kept_answers(it["steps"])))


def test_what_the_page_says_of_the_steps(it):
    answers, page = kept_answers(it["steps"]), it["steps_page"]
    words = " ".join(it["steps"].PAGE.read_text().split())
    first, *_, last = it["steps"].STEPS
    for k, rare in enumerate((0.1, 0.03)):
        rise = " to ".join(f"{page.found(answers, rare, step):.2f}" for step in (first, last))
        assert ("found rises from ", "If it has 3 %, the share rises from ")[k] + rise in words

    def gain(size=None, name=None, a=first, b=last):
        cells = [c for c in page.cells(answers) if size in (None, c[1]) and name in (None, c[0])]
        return np.mean([page.f1(answers, *c, b) - page.f1(answers, *c, a) for c in cells])

    assert f"change it by {gain():+.3f} ±" in words
    assert f"by {gain(10):+.3f} with 10 features and by {gain(50):+.3f} with 50." in words
    *_, agreement, significance, _ = it["steps"].STEPS
    assert f"the largest gain on public data: {gain(None, None, agreement, significance):+.3f} ±" in words
    madelon = (gain(n, "Madelon", agreement, significance) for n in (10, 50))
    assert "F1 on Madelon rises by {:.3f} with 10 features and by {:.3f} with 50.".format(*madelon) in words


def test_the_pages_of_large_problems_show_the_defaults(it, data_home, monkeypatch):
    monkeypatch.setenv("BELIEF_DATA", str(data_home))
    monkeypatch.syspath_prepend(HOME)
    module = importlib.import_module("large_defaults")
    answers = kept_answers(module)
    for page, text in module.tables(answers).items():
        assert it["common"].is_published(module.FOLDER / page, text), page
    large, sampling = (" ".join((module.FOLDER / f"{page}.md").read_text().split()) for page in ("large", "sampling"))

    def relevant(name, n, sample=""):
        return [answers.answers[f"{name} | {way} | {n}{sample}"]["relevant"] for way in reversed(module.WAYS)]

    copied = "ECBDL14-like, the rare class 49 times"
    for name in module.LOOK_ALIKES:
        for n in (10, 50):
            ours, papers = relevant(name, n)
            assert ours >= papers
    assert (
        "On epsilon-like, {} of 50 selected features are relevant with the defaults, and {} with the paper's"
        " settings.".format(*relevant("epsilon-like", 50))
        in large
    )
    assert "49 copies of each row of the rare class, the numbers are {} and {}.".format(*relevant(copied, 50)) in large
    ours, papers = relevant("epsilon-like", 100, " | sample 250")
    assert f"{ours} are relevant with the defaults, and {papers} with the paper's settings." in sampling
    assert (
        "On ECBDL14-like data, the numbers are {} and {}.".format(*relevant("ECBDL14-like", 100, " | sample 250"))
        in sampling
    )
