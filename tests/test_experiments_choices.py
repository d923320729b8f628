"""The experiment on the settings, in small: its scores, its stored answers, and whether its page agrees with them."""

import importlib

import numpy as np
import pytest
from common import is_published, read_answers
from pages import kept_answers, words_of


@pytest.fixture(scope="module")
def modules():
    return tuple(importlib.import_module(name) for name in ("choices", "choices_page", "common"))


@pytest.fixture
def small(modules, monkeypatch, tmp_path):
    """Return the modules of the experiment, with two cases only, and its answers in a temporary folder."""
    choices, page, common = modules
    names = ("Parity3+3", "SD2")
    cases = {name: choices.CASES[name] for name in names}
    monkeypatch.setattr(choices, "CASES", cases)
    monkeypatch.setattr(page, "CASES", cases)
    monkeypatch.setattr(common, "commit", lambda: "abc")
    return choices, page, common.Answers(tmp_path / "choices.jsonl", choices.configuration())


def test_real_data_is_judged_on_rows_that_did_not_select(modules):
    """The 20 columns selected from 2,000 columns of noise predict the rows used for the selection, but not new rows."""
    choices, *_ = modules
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(60) % 2)
    data = choices.Data(rng.standard_normal((60, 2000)), y, np.zeros(2000, bool))

    def select(part):
        return choices.selected(part, 20, "eta", 2.0, 0)

    assert choices.macro_f1(data, select, 0) < 0.57
    leaked = select(data)
    assert choices.macro_f1(data, lambda part: leaked, 0) > 0.7  # so leaks would exceed the bound above
    told = data._replace(X=np.column_stack([data.X[:, 1:], y]))
    assert choices.macro_f1(told, select, 0) > 0.9


@pytest.mark.smoke
def test_only_missing_answers_are_computed(small, monkeypatch):
    choices, _, answers = small
    asked = []
    monkeypatch.setattr(choices, "score", lambda *args: asked.append(args) or 0.5)
    choices.compute(answers, ("Parity3+3",), 1)
    first = len(asked)
    choices.compute(answers, ("Parity3+3",), 2)
    assert len(asked) == 2 * first == len(read_answers(answers.file)["answers"])


def test_the_published_page_is_that_of_the_answers(modules):
    choices, page, _ = modules
    assert is_published(choices.PAGE, page.markdown(kept_answers(choices)))


def test_what_the_page_says_in_words(modules):
    choices, page, _ = modules
    answers, words = kept_answers(choices), words_of(choices.PAGE)

    def gain(*what):
        return page.gain(answers, *what)

    def shown(g, digits=3):
        return f"{g.mean:+.{digits}f} ± {g.error:.{digits}f}"

    near = {(value, kind): gain("kappa", value, kind) for value in (0.7, 0.9, 0.95) for kind in page.KINDS}
    assert max(abs(g.mean) for g in near.values()) < 0.0055
    assert [key for key, g in near.items() if abs(g.mean) > g.error] == [(0.9, "real")]
    each = [x for kind in page.KINDS for x in gain("kappa", 0.5, kind).each.values()]
    assert [sum(sign * x > page.NOTABLE for x in each) for sign in (1, -1)] == [3, 4]
    assert "κ = 0.5 is better on three data sets and worse on four" in words

    assert gain("n_neighbors", 20, "planted").each["Parity3+3"] == -1
    assert f"Because of this set, the mean gain of k = 20 is {gain('n_neighbors', 20, 'planted').mean:.3f}." in words
    for k, said in (
        (20, "On the other nine synthetic sets, the mean gain is {}, and no set is worse"),
        (40, "{} without Parity3+3"),
    ):
        rest = {name: x for name, x in gain("n_neighbors", k, "planted").each.items() if name != "Parity3+3"}
        values = list(rest.values())
        without = page.Gain(np.mean(values), np.std(values, ddof=1) / len(values) ** 0.5, rest)
        assert len(values) == 9
        assert said.format(shown(without)) in words
        assert page.sure(without) == 0
        assert min(values) >= (0 if k == 20 else -0.02 - 1e-9)
        assert shown(gain("n_neighbors", k, "real")) in words
    assert f"adds next to nothing ({shown(gain('sample_size', 1.0, 'planted'))})" in words
