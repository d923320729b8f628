"""The experiment on study designs: the tables match their names, and the page shows the stored answers."""

import importlib

import numpy as np
import pytest


@pytest.fixture(scope="module")
def it():
    return importlib.import_module("studies")


def test_noise_depends_on_the_design_as_its_name_says(it):
    made = {name: make(np.random.default_rng(0)) for name, make in it.CALIBRATION.items()}
    X, y, design = made["groups of five rows that share the class"]
    assert all(len(set(y[design["groups"] == g])) == 1 for g in range(120))
    assert np.corrcoef(X[0], X[1])[0, 1] > 0.6 > 0.4 > abs(np.corrcoef(X[0], X[5])[0, 1])
    X, y, _ = made["autocorrelated rows, blocks of 50"]
    assert np.corrcoef(X[1:, 0], X[:-1, 0])[0, 1] == pytest.approx(0.9, abs=0.05)
    X, y, design = made["strata: batches that shift all columns, 70/30"]
    assert [y[design["adjust_for"] == b].mean() for b in (0, 1)] == pytest.approx([0.3, 0.7], abs=0.05)
    _, y, design = made["weights of one class only"]
    assert set(design["sample_weight"][y == 0]) == {1.0}
    assert design["sample_weight"][y == 1].std() > 1.0


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_are_kept_and_shown(it, tmp_path, monkeypatch):
    from common import Answers

    monkeypatch.setattr(it, "CALIBRATION", {"small": small})
    monkeypatch.setattr(it, "PARTS", {**it.PARTS, "stability": lambda seed: it.stability(seed, (200, 6))})
    answers = Answers(tmp_path / "some.jsonl", {})
    it.compute(answers, ("calibration", "stability"), 1)
    assert set(answers.answers) == {"calibration | small | seed=6000", "stability | seed=6000"}
    of_noise = answers.answers["calibration | small | seed=6000"]
    assert of_noise["p_value"][0] == of_noise["without"][0] == 5
    assert "| small | 1 |" in it.table_of_calibration(answers)
    assert "| without tests |" in it.table_of_stability(answers)


def small(rng):
    group = np.repeat(np.arange(20), 3)
    return rng.normal(size=(60, 5)), rng.integers(0, 2, 20)[group], {"groups": group}


def test_the_page_is_that_of_the_answers(it):
    from common import Answers, is_published

    answers = Answers(it.ANSWERS, it.configuration())
    assert answers.answers, "studies.jsonl has answers of another configuration: run experiments/studies.py again"
    for mark, shown in it.tables(answers).items():
        assert is_published(it.PAGE, f"<!-- {mark} -->\n{shown}\n<!-- /{mark} -->"), mark
