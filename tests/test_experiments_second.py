"""What the second edition must show, and what its steps are worth: tables are as said, pages show what is kept."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from common import read_answers

import belief

HOME = Path(__file__).parents[1] / "experiments"
MODULES = (
    "made",
    "checking",
    "common",
    "second",
    "second_found",
    "second_sure",
    "steps",
    "steps_page",
    "choices",
    "redundancy",
)


@pytest.fixture(scope="module")
def it():
    """The modules of the experiments, by name."""
    return {name: importlib.import_module(name) for name in MODULES}


def kept(module, common):
    found = common.Answers(module.ANSWERS, module.configuration())
    assert found.answers, f"{module.ANSWERS.name} is of another configuration: run the experiment again"
    return found


# --- the steps ---


def test_the_steps_lead_from_the_paper_to_the_defaults(it):
    steps = it["steps"]
    rng = np.random.default_rng(0)
    data = it["choices"].Data(rng.standard_normal((60, 5)), np.arange(60) % 2, np.zeros(5, bool))
    first, *_, last = (steps.settings_of(data, step) for step in steps.STEPS)
    assert first == dict(belief.PAPER)
    defaults = belief.select(data.X, data.y, 1, random_state=0).settings
    assert {**defaults, **last} == defaults


def test_the_step_without_noise_taken_away_is_another(it):
    steps, (X, y, _) = it["steps"], it["redundancy"].planted(5, 0)
    part = it["choices"].Data(X, y, np.zeros(X.shape[1], bool))
    raw, above, last = (steps.selected(part, 20, step, 0).tolist() for step in (steps.RAW, steps.ABOVE, steps.LAST))
    assert last == belief.select(X, y, 20, random_state=0).selected.tolist()
    assert raw != above != last


def test_features_are_judged_by_rows_that_did_not_select_them(it):
    steps = it["steps"]
    rng = np.random.default_rng(0)
    data = it["choices"].Data(rng.standard_normal((60, 2000)), rng.permutation(np.arange(60) % 2), np.zeros(2000, bool))
    marks = steps.Judge(data, 3).marks(lambda part: steps.selected(part, 20, steps.LAST, 0))
    assert np.mean(marks) < 0.6


# --- what is published ---


@pytest.mark.parametrize("name", ["second", "steps"])
def test_the_published_page_is_that_of_the_answers(it, name):
    module = it[name]
    page = it["steps_page" if name == "steps" else name]
    assert page.markdown(kept(module, it["common"])) in module.PAGE.read_text()


@pytest.mark.smoke
def test_only_missing_answers_are_computed(it, monkeypatch, tmp_path):
    asked = []
    check = it["checking"].Check("part", "wanted", {"a": lambda: asked.append("a") or 1}, lambda found: ("one", True))
    monkeypatch.setattr(it["second"], "CHECKS", [check])
    answers = it["common"].Answers(tmp_path / "second.jsonl", {})
    for _ in range(2):
        it["second"].compute(answers, [])
    assert asked == ["a"]
    assert "| part | wanted | one | yes |" in it["second"].markdown(answers)
    assert read_answers(answers.file)["answers"]["part | a"]["found"] == 1


def test_what_the_page_says_of_the_steps(it):
    answers, page = kept(it["steps"], it["common"]), it["steps_page"]
    words = " ".join(it["steps"].PAGE.read_text().split())
    first, *_, last = it["steps"].STEPS
    rises = [[page.found(answers, rare, step) for rare in (0.1, 0.03)] for step in (first, last)]
    assert "from {:.2f} and {:.2f} to {:.2f} and {:.2f},".format(*rises[0], *rises[1]) in words

    def gain(size=None, name=None, a=first, b=last):
        cells = [c for c in page.cells(answers) if size in (None, c[1]) and name in (None, c[0])]
        return np.mean([page.f1(answers, *c, b) - page.f1(answers, *c, a) for c in cells])

    assert f"change it by {gain():+.3f} ±" in words
    assert f"by {gain(10):+.3f} with 10 features and by {gain(50):+.3f} with 50." in words
    *_, raw, above, alone, _ = it["steps"].STEPS
    assert f"changes almost nothing on average, {gain(None, None, raw, above):+.3f} ±" in words
    assert f"gain {gain(10, 'colon', above, alone):.2f} on colon with 10 features" in words
    assert f"{gain(50, 'lymphoma', above, alone):.2f} on lymphoma with 50" in words
    assert f"lose {-gain(50, 'SD3', above, alone):.2f} on SD3 with 50" in words
    assert f"on average {gain(None, None, above, alone):+.3f} ±" in words


def test_what_the_page_says_is_not_met(it):
    answers, second = kept(it["second"], it["common"]), it["second"]
    unmet = [c.wanted for c in second.CHECKS if not c.judge(second.found(answers, c))[1]]
    assert unmet == ["nothing is lost that the paper's settings find"]
    runs = second.found(answers, second.CHECKS[-1])
    settled, level = ({k: x for k, x in runs.items() if x["stopped"] == y} for y in ("converged", "equivalent"))
    changed = [k.startswith("XOR and shifts") for k, x in level.items() if x["changed"]]  # of which five matter
    smaller = [x for x in settled.values() if x["larger"] < 8 * x["sample"]]
    assert (len(settled), len(runs), len(level), len(changed), sum(changed), len(smaller)) == (28, 48, 20, 13, 6, 7)


def test_the_pages_of_large_problems_show_the_defaults(it, data_home, monkeypatch):
    monkeypatch.setenv("BELIEF_DATA", str(data_home))
    monkeypatch.syspath_prepend(HOME)
    module = importlib.import_module("large_defaults")
    answers = kept(module, it["common"])
    large, sampling = ((module.FOLDER / f"{page}.md").read_text() for page in ("large", "sampling"))
    assert module.on_slices(answers) in large
    assert module.on_look_alikes(answers) in large
    assert module.by_sample(answers) in sampling
