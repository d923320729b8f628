"""Tests of `Result`: its numbers, explanations and JSON; and of progress reports."""

import copy
import io
import json
import pickle
import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import Terminal
from scipy.sparse import csr_array

import belief
from belief.progress import Bar, Progress, Reporter
from belief.result import deferred

rng = np.random.default_rng(2)
Y = rng.integers(0, 2, 200)
X = rng.standard_normal((200, 8))
X[:, 0] += 2 * Y
X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(200)  # nearly a copy of feature 0
X[:, 2] += 1.2 * Y
NAMES = ["age", "age in days", "height", "a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def result():
    return belief.select(pd.DataFrame(X, columns=NAMES), Y, 2, random_state=0, eta=3.0)


# --- explain ---


def test_explain_gives_the_reason_for_each_feature(result):
    rows = {row.feature: row for row in result.explain()}
    first, second = result.selected_names
    twin = rows["age in days" if first == "age" else "age"]
    assert rows[first].reason == "selected: the most relevant feature"
    assert second == "height"  # not the twin, although it is more relevant
    assert twin.relevance > rows[second].relevance
    assert (twin.redundant_with, twin.rank) == (first, None)
    assert twin.agreement > 0.9
    assert twin.unique_share < 0.01
    assert twin.reason == f"not selected: redundant with {first!r} ({twin.agreement:.2f})"
    assert set(rows) >= set(result.selected_names)
    assert len(rows) == 6  # watched features are explained too


def test_explain_calls_noise_not_significant(result):
    noise = [row for row in result.explain() if not row.is_significant]
    assert {row.feature for row in noise} == {"b", "c", "d"}
    for row in noise:
        assert row.reason == f"not selected: not significant (p = {row.p_value:.2g})"
    forced = belief.select(X, Y, 8, random_state=0).explain()
    assert any(row.reason.startswith("selected only to reach the requested number; not sig") for row in forced)


def test_explain_scores_are_relevance_times_unique_share(result):
    for row in result.explain():
        if row.relevance > 0:
            assert row.relevance * row.unique_share == pytest.approx(row.score)
    selected = [row for row in result.explain() if row.rank]
    for t, row in enumerate(selected):
        assert row.unique_share == pytest.approx(1 - result.redundancy[:t, t].max(initial=0.0))
        assert row.error == result.error_of_relevance[row.index]
        assert row.q_value == result.q_value[row.index]


def test_explain_one_feature_returns_a_row(result):
    row = result.explain("height")
    assert row.feature == "height"
    assert row == result.explain(2)
    assert row.as_dict()["reason"] == row["reason"] == row.reason
    lines = repr(row).splitlines()
    assert lines[0].split() == ["feature", "height"]
    assert lines[-1].split(maxsplit=1) == ["reason", row.reason]
    with pytest.raises(ValueError, match="There is no feature 8: the data has 8 features, numbered from 0"):
        result.explain(8)
    unwatched = next(j for j in range(8) if j not in result.watched and j not in result.selected)
    row = result.explain(unwatched)
    assert (row.unique_share, row.score, row.redundant_with, row.agreement) == (None, None, None, None)
    assert row.reason.startswith("not selected: ")


def test_explain_with_mcr_states_what_is_subtracted():
    paper = belief.select(X, Y, 3, random_state=0, **belief.PAPER)
    for t, row in enumerate(paper.explain()[1:3], 1):
        lost = paper.redundancy[:t, t].mean()
        assert row.relevance - row.score == pytest.approx(lost)
        assert row.unique_share is None
        if row.score > 0:
            most = paper.selected_names[int(paper.redundancy[:t, t].argmax())]
            assert f"although redundant with {most!r} (mCR subtracts {lost:.2f} in all)" in row.reason
        assert row.p_value is row.q_value is row.p_neighbours is row.round is None  # the paper has no tests
        assert row.p_univariate is not None
    assert str(paper.explain()).split()[:4] == ["rank", "feature", "relevance", "score"]


def test_explain_without_redundancy_uses_the_relevance_as_score():
    rows = belief.select(X, Y, 3, random_state=0, redundancy=None).explain()
    assert len(rows) == 6
    assert all(row.score == row.relevance and row.unique_share is None for row in rows)


def test_explain_with_auto_names_redundancy_or_missing_significance():
    auto = belief.select(X, Y, "auto", random_state=0)
    rows = [auto.explain(j) for j in range(8)]
    assert rows[1 if 0 in auto.selected else 0].reason.startswith("not selected: redundant with")
    for row in rows:
        if row.rank is None and row.q_value >= 0.05:
            assert "not significant" in row.reason


def test_explanation_is_displayed_as_a_table_and_converts_to_pandas(result):
    text = repr(result.explain())
    head = ["rank", "feature", "relevance", "q_value", "unique_share", "score", "reason"]
    assert text.splitlines()[0].split() == head
    assert "selected: the most relevant feature" in text
    assert "1.000 ± 0." in text
    assert repr(result.explain()[:2]).splitlines()[1].startswith("1     ")
    frame = pd.DataFrame(result.explain())
    assert list(frame) == list(result.explain()[0].as_dict())
    assert frame["feature"].tolist() == [row.feature for row in result.explain()]


# --- JSON ---


def test_to_dict_and_from_dict_round_trip(result):
    again = belief.Result.from_dict(json.loads(json.dumps(result.to_dict())))
    assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())  # NaN is not equal to itself
    assert again.selected.dtype == np.int64
    assert str(again.explain()) == str(result.explain())


def test_round_trip_keeps_string_classes_and_empty_watch_lists():
    plain = belief.select(X, np.array(["no", "yes"])[Y], 2, random_state=0, redundancy=None)
    again = belief.Result.from_dict(json.loads(json.dumps(plain.to_dict())))
    assert again.classes.tolist() == ["no", "yes"]
    assert json.dumps(again.to_dict()) == json.dumps(plain.to_dict())


def test_to_dict_converts_numpy_settings_and_date_classes():
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")[Y]
    odd = belief.select(X, days, np.int64(2), n_neighbors=np.int32(3), theta=np.float32(0.5), random_state=np.int64(1))
    again = belief.Result.from_dict(json.loads(json.dumps(odd.to_dict())))
    assert again.classes.tolist() == ["2020-01-01", "2020-01-02"]


def test_result_arrays_are_read_only(result):
    with pytest.raises(ValueError, match="read-only"):
        result.weights[0] = 1.0


@pytest.mark.parametrize("kind", ["numbers", "text", "numeric target"])
def test_fields_for_explanations_are_computed_when_they_are_needed(kind):
    """The deferred fields equal those computed at once, even if the data has changed in the meantime."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.standard_normal((300, 6)), columns=list("abcdef"))
    y = (X.a > 0) ^ (X.b > 0)
    if kind == "text":
        X["c"] = np.where(y, "yes", "no")
    if kind == "numeric target":
        y = X.a + X.b
    options = {"n_features_to_select": 4, "random_state": 0, "significance": None}
    at_once = belief.select(X, y, **options)
    assert at_once.pairs or kind == "numeric target"
    table = X.copy()
    later, copied, pickled, replaced = (belief.select(table, y, **options) for _ in range(4))
    table.iloc[:] = table.iloc[::-1].to_numpy()
    assert not set(deferred.DeferredFields.names) & set(vars(later))
    expected = comparable(at_once)
    assert expected["pairs"] or kind == "numeric target"
    for found in (later, copy.deepcopy(copied), pickle.loads(pickle.dumps(pickled)), replace(replaced, notes=[])):
        assert comparable(found) == {**expected, "notes": found.notes}
    assert not later.partner.flags.writeable
    with pytest.raises(AttributeError, match="'Result' object has no attribute 'partners'"):
        _ = later.partners


def test_fields_for_explanations_are_computed_at_once_if_they_need_much_memory():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"many": [f"level {i}" for i in rng.integers(0, 1500, 6000)], "x": rng.standard_normal(6000)})
    found = belief.select(X, rng.integers(0, 2, 6000), 2, random_state=0, significance=None)
    assert len({*X.many}) > deferred.MAX_KEPT_LEVELS
    assert "pairs" in vars(found)


def comparable(result):
    return {name: x for name, x in result.to_dict().items() if name not in ("timings", "checksum", "about")}


def test_from_dict_refuses_other_formats_and_other_dicts(result):
    with pytest.raises(ValueError, match="has format 99, but this version of belief reads format 1"):
        belief.Result.from_dict({**result.to_dict(), "format": 99})
    with pytest.raises(ValueError, match=r"This is not a result of belief-fs. It lacks format, weights, .*, checksum"):
        belief.Result.from_dict({})
    with pytest.raises(ValueError, match="This is not a result of belief-fs: expected a mapping, got a list"):
        belief.Result.from_dict([])
    settings = {**result.settings, "gamma": 0.5}
    with pytest.raises(ValueError, match="settings is invalid"):
        belief.Result.from_dict({**result.to_dict(), "settings": settings})


# --- fields, progress and timings ---


def test_result_fields(result):
    assert result.n_rows == 200
    assert result.sample_size == 200
    assert result.n_pairs == 200 * 40
    assert result.n_neighbors == 20
    assert result.stop_reason == "all rows"
    assert result.seed == 0
    assert result.priors.sum() == pytest.approx(1)
    assert result.relevance.max() == 1.0
    assert result.relevance.min() == 0.0
    assert result.redundancy.shape == (2, 2)
    assert set(result.timings) == {"describe", "sample", "significance", "neighbours", "tally", "redundancy", "explain"}
    assert "2 of 8 features selected" in repr(result)


def test_callback_receives_phases_batches_and_rows():
    received = []
    result = belief.select(X, Y, 2, random_state=0, callback=received.append)
    phases = [p.phase for p in received]
    each = ["describe", "sample", "significance", "neighbours", "tally", "redundancy", "explain", "finished"]
    assert list(dict.fromkeys(phases)) == each
    assert "batch 4 of 4" in {p.detail for p in received}
    rows = [p for p in received if p.phase != "significance" and p.detail != "comparing features"]
    assert max(p.done for p in rows) == 200 == max(p.total for p in rows)
    assert {"describe", "neighbours"} <= {p.phase for p in rows if p.done == p.total == 200}
    steps = [p for p in received if p.phase == "significance" and p.total]
    assert [p.done for p in steps] == [*range(1, steps[-1].total + 1)]
    assert all(p.done <= p.total for p in steps)
    assert len({p.total for p in steps}) > 2  # there are several tests, with one total each
    pairs = [p for p in received if p.detail == "comparing features"]
    assert {p.phase for p in pairs} == {"redundancy"}
    assert 0 < pairs[-1].done == pairs[-1].total < result.n_pairs  # mutual neighbours count once


def test_progress_of_a_search_in_int16_never_goes_back():
    """The progress covers both the matrix products and the exact distances, and ends when all rows are compared."""
    rng = np.random.default_rng(0)
    table, target = rng.normal(size=(1500, 400)), rng.integers(0, 2, 1500)
    received = []
    belief.select(table, target, 2, random_state=0, significance=None, callback=received.append)
    done = [p.done for p in received if p.phase == "neighbours"]
    assert done == sorted(done)
    assert done[-1] == 1500


@pytest.mark.parametrize(
    ("phase", "detail", "shown"),
    [
        ("significance", "", "testing: 60 of 200 steps, at least 7 s left, 10 steps/s"),
        ("redundancy", "comparing features", "(comparing features): 60 of 200 pairs, at least 7 s left, 10 pairs/s"),
    ],
)
def test_the_bar_counts_steps_and_pairs(phase, detail, shown):
    stream = io.StringIO()
    bar = Bar(stream)
    bar._due = lambda p: True
    bar(Progress(phase, detail, 40, 200, 5.0))
    assert " left" not in stream.getvalue()  # no estimate yet, because the first step may have compiled a function
    bar(Progress(phase, detail, 60, 200, 6.0))
    assert stream.getvalue().splitlines()[-1].endswith(shown)


def test_seconds_of_the_progress_start_again_with_each_group_of_features(monkeypatch):
    now, received = [0.0], []
    monkeypatch.setattr("belief.progress.time.perf_counter", lambda: now[0])
    reporter = Reporter(received.append)
    reporter.phase("redundancy")
    for done in (10, 20, 10, 20):
        now[0] += 3.0
        reporter.rows(done, 20, "comparing features")
    assert [p.seconds for p in received[1:]] == [3.0, 6.0, 3.0, 6.0]


def test_verbose_writes_progress_to_stderr_only(capsys):
    belief.select(X, Y, 2, random_state=0, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "belief: searching" in err
    assert "batch 2 of 4" in err
    lines = err.splitlines()
    assert len(set(lines)) == len(lines)


def test_bar_on_a_terminal_lists_all_phases_and_vanishes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    bar = Bar(stream)
    bar(Progress("describe", "", 0, 0, 0.0))
    bar(Progress("neighbours", "comparing", 0, 0, 0.0))
    bar(Progress("neighbours", "comparing", 500, 500, 2.0))
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", stream.getvalue().rpartition("\x1b[1A")[2])
    assert re.fullmatch(
        r"reading +━+ \d\.\d s +\nsearching \(comparing\) +━+ 500 of 500 rows, 0 s left, 250 rows/s", shown.strip("\r")
    )
    bar(Progress("finished", "", 0, 0, 0.0))
    assert stream.getvalue().endswith("\x1b[1A\x1b[2K")  # the lines are erased


def test_time_left_is_estimated_from_the_recent_rows():
    stream = io.StringIO()
    bar = Bar(stream)
    bar._due = lambda p: True
    for seconds, done in [(70.0, 10), (80.0, 20), (130.0, 60), (195.0, 6560)]:
        bar(Progress("neighbours", "", done, 13060, seconds))
    assert " 65 s left" in stream.getvalue().splitlines()[-1]  # on average it would be 194 s, and 124 s since the first


def test_timings_add_up_to_the_whole_run(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("belief.progress.time.perf_counter", lambda: now[0])
    reporter = Reporter()
    for seconds, phase in [(2.0, "describe"), (3.0, "tally"), (5.0, "redundancy"), (7.0, "tally"), (11.0, "explain")]:
        now[0] += seconds
        reporter.phase(phase)
    now[0] += 13.0
    assert reporter.timings() == {"describe": 5.0, "tally": 5.0 + 11.0, "redundancy": 7.0, "explain": 13.0}


@pytest.mark.slow
@pytest.mark.parametrize("significance", ["permutation", None])
@pytest.mark.parametrize("kind", ["dense", "sparse", "file", "file read in blocks"])
def test_timings_of_a_fit_add_up_to_its_time(kind, significance, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", time.process_time)  # ignores other processes on a busy machine
    rng = np.random.default_rng(0)
    table = rng.normal(size=(10_000, 120)) * (rng.random((10_000, 120)) < (0.2 if kind == "sparse" else 1.0))
    target = (table[:, 0] + rng.normal(size=10_000) > 0).astype(int)
    y = target
    if kind == "sparse":
        table = csr_array(table)
    if kind.startswith("file"):
        file, y = tmp_path / "rows.parquet", "target"
        pd.DataFrame(table).add_prefix("x").assign(target=target).to_parquet(file)
        table = file
    select = belief.select  # this imports the module, which is not part of the fit
    memory = {"working_memory": 16} if kind == "file read in blocks" else {}
    received, shares = [], []
    how = {"rounds": 1, "significance": significance, "random_state": 0, "callback": received.append, **memory}
    for _ in range(6):  # the first run may also free the memory of earlier tests
        start = time.perf_counter()
        timings = select(table, y, 5, **how).timings
        shares.append(sum(timings.values()) / (time.perf_counter() - start))
        if shares[-1] >= 0.98:
            break
    assert max(shares) >= 0.98
    assert max(shares) <= 1.02
    assert {type(x) for p in received for x in (p.done, p.total)} == {int}


def test_error_in_a_callback_stops_the_run_and_its_threads():
    import threading

    before = threading.active_count()

    def stop(progress):
        if progress.phase == "tally":
            raise KeyboardInterrupt

    received = []
    with pytest.raises(KeyboardInterrupt):
        belief.select(X, Y, 2, random_state=0, callback=lambda p: (received.append(p.phase), stop(p)))
    assert received[-1] == "stopped"
    assert threading.active_count() == before
