"""`belief.compare`: selection inside the folds, any input, within the time limit."""

import json
import math
import os
import re
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import t as t_distribution

import belief
from belief.cli import commands as cli
from belief.comparison import benchmark, compare, rows
from belief.comparison.comparison import Comparison, Standing
from belief.comparison.encoding import Encoding
from belief.comparison.scoring import score_features
from belief.comparison.selectors import SELECTORS, Part, Selector
from belief.datasets import CHURN

pytestmark = pytest.mark.slow
ALWAYS = {"seconds": 600, "random_state": 0}  # enough time even on a busy machine


@pytest.fixture(scope="module")
def churn():
    return pd.read_csv(CHURN)


@pytest.fixture(scope="module")
def found(churn):
    return belief.compare(churn, label="left", n_features_to_select=4, selectors=["BELIEF", "F test", "mRMR"], **ALWAYS)


def part(X, y, discrete=None, task="classification"):
    return Part(X, y, np.zeros(X.shape[1], bool) if discrete is None else discrete, task, 0, 1)


def some(m=40):
    return np.random.default_rng(0).normal(size=(m, 4)), np.arange(m) % 2


# --- the comparison ---


def test_standings(found, churn):
    assert {s.selector for s in found.standings} == {"BELIEF", "F test", "mRMR"}
    assert [s.score for s in found.standings] == sorted((s.score for s in found.standings), reverse=True)
    ours = next(s for s in found.standings if s.selector == "BELIEF")
    alone = belief.select(churn, label="left", n_features_to_select=4, random_state=0)
    assert ours.selected == alone.selected_names
    for s in found.standings:
        assert len(s.by_fold) == found.folds == 5
        assert s.score == pytest.approx(np.mean(s.by_fold)) == pytest.approx(np.mean(list(s.by_model.values())))
        assert s.spread == pytest.approx(math.sqrt(sum((x - s.score) ** 2 for x in s.by_fold) / 4))
    assert (found.task, found.measure, found.n_rows, found.n_compared) == ("classification", "F1", 600, 600)
    assert (found.n_features, found.n_selected, found.seed, found.skipped) == (12, 4, 0, {})


def test_compare_selects_inside_the_folds():
    """Some of a thousand noise columns fit any labels, so selecting from all rows gives a score that is too high."""
    X, y = np.random.default_rng(1).normal(size=(80, 1000)), np.arange(80) % 2
    honest = belief.compare(X, y, 10, selectors=["F test"], **ALWAYS).standings[0].score
    whole = part(X, y)
    selected = SELECTORS["F test"].choose(whole, 10)
    folds = benchmark.Benchmark(whole, [], 10, time.perf_counter() + 600).folds
    leaking = np.mean([list(score_features(train, test, selected).values()) for train, test in folds])
    assert honest < 0.55 < 0.65 < leaking


def test_compare_accepts_files_arrays_and_frames(churn, tmp_path):
    def scores(*what, **more):
        found = belief.compare(*what, n_features_to_select=3, selectors="F test", **more, **ALWAYS)
        return [(s.by_fold, s.selected) for s in found.standings]

    churn = churn[:200]
    numbers = churn[["tenure_days", "support_calls", "age", "shoe_size", "left"]]
    numbers.to_csv(tmp_path / "some.csv", index=False)
    expected = scores(numbers, label="left")
    assert scores(tmp_path / "some.csv", label="left") == expected
    assert scores(churn, label="left", candidates=list(numbers.columns[:4])) == expected
    array = scores(numbers.iloc[:, :4].to_numpy(), numbers["left"])
    assert [x[0] for x in array] == [x[0] for x in expected]
    assert {*array[0][1]} <= {"x0", "x1", "x2", "x3"}


def test_compare_with_a_numeric_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=150)
    found = belief.compare(X, y, 2, selectors=["F test", "mRMR", "L1 model"], **ALWAYS)
    assert (found.task, found.measure) == ("regression", "R²")
    assert [set(s.selected) for s in found.standings] == [{"x0", "x1"}] * 2
    assert found.standings[0].by_model["ridge"] > 0.95
    assert found.skipped == {"mRMR": "does not support regression"}
    assert "Skipped: mRMR: does not support regression." in str(found)


def test_n_features_to_select_auto(churn):
    found = belief.compare(churn, label="left", n_features_to_select="auto", selectors="F test", **ALWAYS)
    assert found.n_selected == 5


# --- the time limit ---


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that tests set; scoring takes no time by this clock."""
    now = SimpleNamespace(seconds=0.0, perf_counter=lambda: now.seconds)
    for module in (benchmark, compare):
        monkeypatch.setattr(module, "time", now)
    monkeypatch.setattr(benchmark, "score_features", lambda *what: {"nobody": 0.5})
    return now


def taking(clock, seconds):
    """Return a selector that takes `seconds(number of rows)` by this clock."""

    def choose(part, n):
        clock.seconds += seconds(len(part.y))
        return np.arange(n)

    return Selector(choose, by_rows=1.0, by_features=0.0)


def test_slow_selectors_are_skipped(monkeypatch, clock):
    monkeypatch.setitem(SELECTORS, "a snail", taking(clock, lambda m: 0.1 + 0.01 * m))  # 16.1 s for 1,600 rows
    X, y = some(2000)
    found = belief.compare(X, y, 2, selectors=["F test", "a snail"], seconds=60)
    assert [s.selector for s in found.standings] == ["F test"]
    assert found.skipped == {"a snail": "would take about 97 s, but only 54 s are left"}
    assert found.seconds == pytest.approx(2 * (1.1 + 2.1))  # trials on 100 and 200 rows, each twice
    enough = belief.compare(X, y, 2, selectors=["F test", "a snail"], seconds=120)
    assert {s.selector: s.seconds for s in enough.standings} == pytest.approx({"a snail": 16.1, "F test": 0.0})
    with pytest.raises(ValueError, match="No selector finishes within seconds=3: a snail would take about 97 s"):
        belief.compare(X, y, 2, selectors=["a snail"], seconds=3)


def test_selectors_slower_than_predicted_are_stopped(monkeypatch, clock):
    calls = count()
    monkeypatch.setitem(SELECTORS, "a hare", taking(clock, lambda m: 20.0 if next(calls) >= 2 else 0.0))  # after trials
    X, y = some(200)
    found = belief.compare(X, y, 2, selectors=["F test", "a hare"], seconds=60)
    assert found.skipped == {"a hare": "a fold took 20 s, but only 60 s were left"}
    assert [s.selector for s in found.standings] == ["F test"]


def test_score_all_features_if_there_is_time(monkeypatch, clock):
    def score_features(train, test, features):
        clock.seconds += 0.1 * len(features)
        return {"nobody": len(features) / 100}

    monkeypatch.setattr(benchmark, "score_features", score_features)
    X, y = np.random.default_rng(0).normal(size=(60, 50)), np.arange(60) % 2
    none, one, all_five = (belief.compare(X, y, 2, selectors=["F test"], seconds=s) for s in (6, 20, 120))
    assert none.all_features == []  # the trial takes 2 s and predicts 5 s for a fold
    assert none.skipped == {"all features": "scoring them would take too long"}
    assert one.all_features == [0.5]
    assert "All features were scored in 1 of 5 folds" in str(one)
    assert all_five.all_features == [0.5] * 5
    assert one.skipped == all_five.skipped == {}


def test_compare_ends_in_time_on_a_busy_machine(monkeypatch, clock):
    """Scoring becomes ten times slower after the trials."""
    calls = count()

    def score_features(train, test, features):
        clock.seconds += 0.2 if next(calls) < 6 else 2.0
        return {"nobody": 0.5}

    monkeypatch.setattr(benchmark, "score_features", score_features)
    for name in ("a", "b", "c", "d"):
        monkeypatch.setitem(SELECTORS, name, taking(clock, lambda m: 0.1))
    X, y = np.random.default_rng(0).normal(size=(60, 50)), np.arange(60) % 2
    found = belief.compare(X, y, 2, selectors=["a", "b", "c", "d"], seconds=30)
    assert clock.seconds <= 30
    assert 1 < len(found.standings) < 4
    assert all("left" in reason or "were left" in reason for reason in found.skipped.values())


@pytest.mark.parametrize("seed", range(10))
def test_compare_ends_in_time_if_every_fold_takes_another_time(monkeypatch, clock, seed):
    load = np.random.default_rng(seed)

    def score_features(train, test, features):
        clock.seconds += load.uniform(1.6, 2.0)
        return {"nobody": 0.5}

    monkeypatch.setattr(benchmark, "score_features", score_features)
    for name in "abcd":
        monkeypatch.setitem(SELECTORS, name, taking(clock, lambda m: load.uniform(0.8, 1.0)))
    X, y = np.random.default_rng(0).normal(size=(60, 10)), np.arange(60) % 2
    found = belief.compare(X, y, 2, selectors=list("abcd"), seconds=60)
    assert 45 < clock.seconds <= 60
    assert len(found.standings) + len(found.skipped) == 4


def test_the_time_limit_includes_the_imports():
    """The test runs in a new process, in which a simulated clock adds 30 s when scikit-learn is imported."""
    program = """
import sys, time
import belief
compare = belief.compare
assert "sklearn" not in sys.modules and "scipy" not in sys.modules
late, real = [0.0], time.perf_counter
time.perf_counter = lambda: real() + late[0]
class Slow:
    def find_spec(name, *more):
        if name == "sklearn":
            late[0] = 30.0
sys.meta_path.insert(0, Slow)
found = compare(str(belief.datasets.CHURN), "left", 4, selectors=["F test"], seconds=600, random_state=0)
assert found.seconds > 30.0, found.seconds
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(belief.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_belief_is_compared_before_the_others_are_timed(monkeypatch, clock):
    """In this test, timing the other selectors takes all the time that is left."""
    monkeypatch.setitem(SELECTORS, "BELIEF", taking(clock, lambda m: 2.0))
    for name in "ab":
        monkeypatch.setitem(SELECTORS, name, taking(clock, lambda m: 30.0))
    X, y = some(200)
    found = belief.compare(X, y, 2, selectors=["a", "b", "BELIEF"], seconds=60)
    assert [s.selector for s in found.standings] == ["BELIEF"]
    assert found.skipped["b"] == "was not tried, because no time was left"
    assert "0 s are left" in found.skipped["a"]


def test_failing_selectors_are_skipped_with_the_error(monkeypatch):
    def choose(part, n):
        raise ValueError("There is nothing here for me.")

    monkeypatch.setitem(SELECTORS, "a cynic", Selector(choose))
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    found = belief.compare(X, y, 2, selectors=["F test", "a cynic"], **ALWAYS)
    assert found.skipped == {"a cynic": "There is nothing here for me"}


# --- the rows ---


def test_sample_rows_of_tables_and_files(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(7000, 3)), columns=list("abc")).assign(y=np.arange(7000) % 3)
    table.to_parquet(tmp_path / "t.parquet", row_group_size=90)
    here, names, n_rows = rows.sample_rows(
        belief.data.inputs.open_input(table, None, belief.data.ColumnSelection("y")), "auto", "auto", 5
    )
    given = belief.data.inputs.open_input(tmp_path / "t.parquet", None, belief.data.ColumnSelection("y"))
    there, *whole = rows.sample_rows(given, "auto", "auto", 5)
    assert here.X.shape == (3000, 3)
    assert [names, n_rows] == whole == [["a", "b", "c"], 7000]
    np.testing.assert_array_equal(here.X, there.X)
    np.testing.assert_array_equal(here.y, there.y)
    lines = pd.Index(table["a"]).get_indexer(here.X[:, 0])
    np.testing.assert_array_equal(table["y"].to_numpy()[lines], here.y)
    sparse = [csr_array(table[["a", "b", "c"]].to_numpy()[part]) for part in (slice(0, 3000), slice(3000, 7000))]
    np.testing.assert_array_equal(rows.sample_rows((sparse, table["y"], None), "auto", "auto", 5)[0].X, here.X)


def test_count_rows():
    assert rows.count_rows(10) == 3000
    assert rows.count_rows(1000) == 1500
    assert rows.count_rows(50_000) == 300
    with pytest.raises(ValueError, match="at most 100,000 features, and X has 200,000"):
        rows.count_rows(200_000)


# --- the selectors and the encoding ---


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_with_nominal_columns_and_missing_values(name):
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 5))
    X[:, 2] = (y + 1) % 3  # codes without an order
    X[rng.random(X.shape) < 0.1] = np.nan
    assert SELECTORS[name].choose(part(X, y, np.arange(5) == 2), 2).tolist()[0] == 2


@pytest.mark.parametrize("name", [name for name in SELECTORS if name != "mRMR"])
def test_every_selector_with_a_numeric_target(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 5))
    found = SELECTORS[name].choose(part(X, 3 * X[:, 1] + X[:, 3], task="regression"), 2)
    assert sorted(found) == [1, 3]


def test_encoding():
    nan = np.nan
    X = np.array([[1.0, 5, 0], [3, nan, 1], [nan, 7, 1], [2, 6, nan]])
    encoding = Encoding.of(X, np.array([False, False, True]))
    assert encoding.feature.tolist() == [0, 1, 2, 2, 2]
    out = encoding(np.array([[nan, 6.0, 1], [2, nan, 9], [1, 1, nan]]))
    assert out[0, 0] == out[1, 0] == pytest.approx(0)  # the imputed median of 1, 2 and 3 is also the mean
    assert out[0, 1] == out[1, 1] == pytest.approx(0)
    assert out[:, 2:].sum(axis=1).tolist() == [1, 0, 1]  # unknown levels have no column, missing values have one
    assert out[0, 2] == 1  # the most frequent level is the first column
    many = Encoding.of(np.arange(40.0)[:, None] % 20, np.array([True]))
    assert len(many.feature) == 10


# --- bad input ---


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (some(), {"n_features_to_select": 4}, "n_features_to_select=4 selects all 4 features"),
        (some(), {"selectors": ["BELEIF"]}, r"there is no selector 'BELEIF' \(did you mean 'BELIEF'\?\)"),
        (some(), {"selectors": []}, "selectors is empty"),
        (some(), {"seconds": 0}, "seconds must be a number above 0; got 0"),
        (some(), {"label": 1}, "Both y and label=1 are given"),
        (some(), {"task": "guess"}, "task must be"),
        (some(8), {}, "compare needs at least two classes with 5 rows each"),
        ((some(8)[0], np.arange(8.0)), {"task": "regression"}, "compare needs at least 10 rows, .*; got 8"),
        ((some()[0] * np.inf, some()[1]), {}, "infinity, in column 'x0'"),
        ((some()[0], np.zeros(40)), {}, "only one class"),
    ],
)
def test_compare_refuses_bad_input(given, more, message):
    with pytest.raises(ValueError, match=message):
        belief.compare(*given, **{"n_features_to_select": 2, "selectors": ["F test"], **more})


def test_compare_refuses_spark_dataframes():
    Frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect", "sparkSession": None})
    with pytest.raises(ValueError, match=r"Spark DataFrames are not supported. Pass X.sample"):
        belief.compare(Frame(), label="y")


# --- text, HTML, JSON and plots ---


def made(**changes):
    standings = [
        Standing("BELIEF", 0.8, 0.01, [0.79, 0.8, 0.8, 0.8, 0.81], {"a": 0.7, "b": 0.9}, 0.1, ["x", "<b>\x1b[2J"]),
        Standing("F test", 0.79, 0.03, [0.76, 0.78, 0.8, 0.82, 0.79], {"a": 0.7, "b": 0.88}, 0.01, ["x", "z"]),
        Standing("mRMR", 0.6, 0.01, [0.6, 0.6, 0.59, 0.6, 0.61], {"a": 0.6, "b": 0.6}, 0.01, ["y", "z"]),
    ]
    about = {
        "standings": standings, "all_features": [0.8, 0.81, 0.83, 0.8, 0.81],
        "skipped": {"ReliefF": "would take about 2 min"},
        "task": "classification", "n_rows": 9000, "n_compared": 3000, "n_features": 40, "n_selected": 2, "folds": 5,
        "seed": 7, "seconds": 31.2,
    }  # fmt: skip
    return Comparison(**about | changes)


def test_comparison_str():
    assert str(made()) == (
        "classification: 9,000 rows (3,000 compared), 40 features, 2 selected; macro F1 over 5 folds, the mean of a,"
        " b; 31 s; seed 7\n\n"
        "selector      F1             behind          p        seconds  common  selected\n"
        "BELIEF        0.800 ± 0.010                           0.10     2 of 2  x, <b>\\x1b[2J\n"
        "F test        0.790 ± 0.030  0.010 ± 0.013   0.5      0.01     1 of 2  x, z\n"
        "mRMR          0.600 ± 0.010  0.200 ± 0.005   1.9e-06  0.01     0 of 2  y, z\n"
        "all features  0.810 ± 0.012  -0.010 ± 0.008  0.29                      all 40\n\n"
        "features in common  1  2  3\n"
        "1 BELIEF            2  1  0\n"
        "2 F test            1  2  1\n"
        "3 mRMR              0  1  2\n\n"
        "Not significantly different from BELIEF (p >= 0.05): F test. p: paired t test over the folds, corrected"
        " for the rows that their training parts share.\n\n"
        "Skipped: ReliefF: would take about 2 min."
    )
    assert repr(made()) == str(made())
    ahead = made(standings=made().standings[::2], all_features=[], skipped={})
    assert "Not significantly different from BELIEF (p >= 0.05): none." in str(ahead)
    assert "all features" not in str(ahead)


def test_scores_are_compared_fold_by_fold():
    """One selector is better in each fold, although the spreads overlap."""
    better, worse = [0.5, 0.6, 0.7, 0.8, 0.9], [0.48, 0.57, 0.68, 0.77, 0.88]
    found = made(standings=[Standing(x, float(np.mean(f)), float(np.std(f, ddof=1)), f, {}, 0.1, ["x"])
                            for x, f in (("a", better), ("b", worse))])  # fmt: skip
    assert found.standings[0].score - found.standings[0].spread < found.standings[1].score
    error = np.std([2, 3, 2, 3, 2], ddof=1) / 100 * math.sqrt(1 / 5 + 1 / 4)
    p = 2 * t_distribution.sf(0.024 / error, 4)
    assert found.behind == pytest.approx(np.array([[0, 0, 1], [0.024, error, p]]))
    assert p < 0.01
    assert found.tied == ["a"]
    assert found.to_dict()["behind"] == found.behind.tolist()


def test_comparison_html_json_and_table():
    page = made()._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert page.count("<tr>") == 5
    told = json.loads(made().to_json())
    assert told["standings"][0]["selected"] == ["x", "<b>\x1b[2J"]
    assert told["common"] == [[2, 1, 0], [1, 2, 1], [0, 1, 2]]
    assert told["skipped"] == {"ReliefF": "would take about 2 min"}
    assert pd.DataFrame(made().standings)["selector"].tolist() == ["BELIEF", "F test", "mRMR"]
    assert page.count("<svg") == 4


def test_plot_comparison():
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    ax = figure.add_subplot()
    assert belief.plot.comparison(made(), ax) is ax
    scores, agreement = figure.axes
    assert [text.get_text().split("\u2002")[0] for text in scores.get_yticklabels()] == ["BELIEF", "F test", "mRMR"]
    assert [bar.lines[0].get_xdata()[0] for bar in scores.containers] == [0.8, 0.79, 0.6]
    assert [text.get_text() for text in agreement.texts] == ["2", "1", "0", "1", "2", "1", "0", "1", "2"]
    assert scores.get_legend().get_texts()[0].get_text() == "all 40 features"
    figure.draw_without_rendering()
    loose = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    assert belief.plot.comparison(made(), loose) is loose
    one = figure.add_subplot()
    belief.plot.comparison(made(standings=made().standings[:1], all_features=[]), one)
    assert one.get_legend() is None


# --- the command line ---


def test_compare_command_options(tmp_path, monkeypatch, capsys, found):
    asked = []
    monkeypatch.setattr(compare, "compare", lambda *what, **more: asked.append((what, more)) or found)
    where = ["--out", str(tmp_path / "f.json"), "--plot", str(tmp_path / "f.svg")]
    command = ["compare", str(CHURN), "--label", "left", "--top", "4", "--selectors", "BELIEF, F test", "--seed", "3"]
    assert cli.main([*command, *where, "--quiet"]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert json.loads((tmp_path / "f.json").read_text()) == json.loads(found.to_json())
    assert "BELIEF" in (tmp_path / "f.svg").read_text()
    (_, _, n), more = asked[0]
    assert (n, more["selectors"], more["random_state"], more["verbose"]) == (4, ["BELIEF", "F test"], 3, 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.json", "f.svg"]


def test_compare_command_on_a_file(capsys):
    command = ["compare", str(CHURN), "--label", "left", "--top", "3", "--selectors", "F test", "--seconds", "600"]
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert out.startswith("classification: 600 rows, 12 features, 3 selected; macro F1 over 5 folds")
    assert err == "belief: scoring all features\nbelief: timing F test\nbelief: comparing F test\n"


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (["--top", "0"], 2, "--top must be"),
        (["--seconds", "soon"], 2, "--seconds must be a number above 0; got 'soon'"),
        (["--selectors", "Belief"], 2, "--selectors: there is no selector 'Belief'"),
        (["--n-jobs", "0"], 2, "--n-jobs must be"),
        (["--out", "f.txt"], 1, "f.txt: the ending must be one of .json"),
        (["--plot", "f.gif"], 1, "f.gif: the ending must be one of .png, .svg, .pdf"),
        (["--out", "f.json", "--plot", "nowhere/f.png"], 1, "cannot write to the folder nowhere"),
        (["--top", "12"], 1, "--top 12 selects all 12 features"),
        (["--drop", "lft"], 1, "--drop: there is no column 'lft' in "),
    ],
)
def test_compare_command_refuses_bad_options(tmp_path, monkeypatch, capsys, more, code, says):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["compare", str(CHURN), "--label", "left", *more]) == code
    out, err = capsys.readouterr()
    assert not out
    assert says in err
    assert err.count("\n") == 1
    assert not list(Path().iterdir())


def test_cli_page_shows_the_output_of_compare(found):
    """Times are not compared. Scores are compared roughly, because they depend on the version of scikit-learn."""
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
    for s in found.standings:
        figures = r"(\d\.\d+) ± (\d\.\d+)  +(?:\d\.\d+ ± \d\.\d+  +[\d.e-]+  +)?\d\.\d\d  +\d of 4  +(.*)$"
        line = re.search(rf"^{re.escape(s.selector)}  +{figures}", page, re.M)
        assert float(line[1]) == pytest.approx(s.score, abs=0.02)
        assert line[3].split(", ") == s.selected


# --- the score by the number of features ---


def test_score_by_size_scores_the_first_features_of_each_fold():
    curve = belief.score_by_size(str(CHURN), label="left", max_features=6, random_state=0, seconds=600)
    assert curve.sizes == [1, 2, 3, 4, 5, 6]
    assert curve.automatic == len(belief.select(str(CHURN), "left", "auto", random_state=0).selected)
    assert curve.scores[3] > curve.scores[0] + 0.1
    assert curve.all_features == pytest.approx(
        np.mean(belief.compare(str(CHURN), "left", 4, selectors=["F test"], random_state=0, seconds=600).all_features)
    )
    same = belief.compare(str(CHURN), "left", 4, selectors=["BELIEF"], random_state=0, seconds=600).standings[0]
    assert curve.scores[3] == pytest.approx(same.score, abs=0.03)  # the first four of the six features
    assert "With 5 features, the number that 'auto' selects" in repr(curve)
    assert curve._repr_html_().count("<tr>") == 8


def test_score_by_size_tries_fewer_numbers_with_little_time():
    curve = belief.score_by_size(str(CHURN), label="left", max_features=12, random_state=0, seconds=0.01)
    assert curve.all_features is None
    assert curve.automatic in curve.sizes
    assert 1 < len(curve.sizes) < 6
    for bad in ({"max_features": 0}, {"seconds": -1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            belief.score_by_size(str(CHURN), label="left", **bad)
