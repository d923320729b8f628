"""The result in numbers, words and JSON; progress."""

import io
import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest

import belief
from belief.progress import Bar, Progress
from belief.result import older
from belief.result.result import Result
from belief.result.serialization import array, format_of, kept

OLD = Path(__file__).with_name("data") / "result-0.1.0.json"

rng = np.random.default_rng(2)
Y = rng.integers(0, 2, 200)
X = rng.standard_normal((200, 8))
X[:, 0] += 2 * Y
X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(200)  # repeats 0
X[:, 2] += 1.2 * Y
NAMES = ["age", "age in days", "height", "a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def result():
    import pandas as pd

    return belief.select(pd.DataFrame(X, columns=NAMES), Y, 2, random_state=0, eta=3.0)


def test_explain_says_why_each_feature_was_taken_or_left(result):
    lines = {line["feature"]: line for line in result.explain()}
    first, second = result.selected_names[:2]
    twin = "age in days" if first == "age" else "age"
    assert lines[first]["reason"] == "taken: the most relevant"
    assert second == "height"  # not the twin, although it is more relevant
    assert lines[twin]["relevance"] > lines[second]["relevance"]
    assert lines[twin]["redundant_with"] == first
    assert lines[twin]["agreement"] > 0.9
    assert lines[twin]["rank"] is None
    assert lines[twin]["unique_share"] < 0.01
    kept = "keeps under 1 % of its relevance"
    assert lines[twin]["reason"] == f"left: repeats {first!r} at {lines[twin]['agreement']:.2f}: {kept}"
    assert {line["feature"] for line in result.explain()} >= set(result.selected_names)
    assert len(result.explain()) == 6  # the watched ones are explained too


def test_noise_is_not_called_relevant(result):
    doubtful = [line for line in result.explain() if line["p_value"] > 0.05]
    assert {line["feature"] for line in doubtful} == {"b", "c", "d"}
    for line in doubtful:
        said = "taken for want of better, but" if line["rank"] else "left:"
        assert line["reason"] == f"{said} not distinguishable from noise (p = {line['p_value']:.2g})"


def test_score_is_relevance_times_what_is_kept(result):
    for line in result.explain():
        if line["relevance"] > 0:
            assert line["relevance"] * line["unique_share"] == pytest.approx(line["score"])
    taken = [line for line in result.explain() if line["rank"]]
    for t, line in enumerate(taken):
        assert line["unique_share"] == pytest.approx(1 - result.redundancy[:t, t].max(initial=0.0))
        assert line["error"] == result.error_of_relevance[line["index"]]
        assert line["q_value"] == result.q_value[line["index"]]


def test_any_feature_can_be_asked_for(result):
    assert [line["feature"] for line in result.explain("height")] == ["height"]
    assert result.explain(2) == result.explain("height")
    unwatched = next(j for j in range(8) if j not in result.watched and j not in result.selected)
    (line,) = result.explain(unwatched)
    assert (line["unique_share"], line["score"], line["redundant_with"], line["agreement"]) == (None, None, None, None)
    assert line["reason"].startswith("left: ")


def test_of_mcr_it_says_what_is_subtracted():
    paper = belief.select(X, Y, 3, random_state=0, **belief.PAPER)
    taken = paper.explain()[:3]
    for t, line in enumerate(taken[1:], 1):
        lost = paper.redundancy[:t, t].mean()
        assert line["relevance"] - line["score"] == pytest.approx(lost)
        assert line["unique_share"] is None
        if line["p_value"] <= 0.05:
            most = paper.selected_names[int(paper.redundancy[:t, t].argmax())]
            assert line["reason"] == f"taken: the best left, though it loses {lost:.2f} by mCR, most of all to {most!r}"
    assert str(paper.explain()).split()[:5] == ["rank", "feature", "relevance", "q_value", "score"]


def test_without_redundancy_the_score_is_the_relevance():
    lines = belief.select(X, Y, 3, random_state=0, redundancy=None).explain()
    assert len(lines) == 6
    assert all(line["score"] == line["relevance"] and line["unique_share"] is None for line in lines)


def test_where_the_number_was_found_those_left_say_why_they_do_not_stand():
    auto = belief.select(X, Y, "auto", random_state=0)
    lines = {line["index"]: line for line in (auto.explain(j)[0] for j in range(8))}
    twin = 1 if 0 in auto.selected else 0
    assert lines[twin]["reason"].startswith("left: repeats")
    for line in lines.values():
        if line["rank"] is None and line["q_value"] > 0.01:
            assert "noise" in line["reason"]


def test_the_table_prints(result):
    text = str(result.explain())
    head = ["rank", "feature", "relevance", "q_value", "unique_share", "score", "reason"]
    assert text.splitlines()[0].split() == head
    assert "taken: the most relevant" in text
    assert "1.000 ± 0." in text


def test_the_round_trip_through_json(result):
    again = belief.Result.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.to_dict() == result.to_dict()
    assert again.selected.dtype == np.int64
    assert str(again.explain()) == str(result.explain())


def test_the_round_trip_keeps_string_classes_and_empty_watch_lists():
    plain = belief.select(X, np.array(["no", "yes"])[Y], 2, random_state=0, redundancy=None)
    again = belief.Result.from_dict(json.loads(json.dumps(plain.to_dict())))
    assert again.classes.tolist() == ["no", "yes"]
    assert again.to_dict() == plain.to_dict()


def test_numpy_settings_and_odd_classes_are_plain_in_json():
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")[Y]
    odd = belief.select(X, days, np.int64(2), n_neighbors=np.int32(3), theta=np.float32(0.5), random_state=np.int64(1))
    again = belief.Result.from_dict(json.loads(json.dumps(odd.to_dict())))
    assert again.classes.tolist() == ["2020-01-01", "2020-01-02"]


def test_a_result_does_not_change(result):
    with pytest.raises(ValueError, match="read-only"):
        result.weights[0] = 1.0


# --- older formats ---

NEXT = format_of(Result) + 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Grown(Result):
    """A result as a later version may have it."""

    gain: np.ndarray = array(float, gaps=True, since=NEXT, older=lambda r: np.full(len(r["weights"]), np.nan))
    task: str = kept(since=NEXT + 1, older=lambda r: "classification")


def test_a_result_of_version_0_1_0_is_read():
    old = json.loads(OLD.read_text())
    again = Result.from_dict(old)
    assert again.selected_names == ["support_calls", "contract", "monthly_fee", "tenure_days"]
    assert again.redundancy.shape == (4, 4)
    assert again.watched_redundancy.shape == (4, 8)
    assert again.settings["theta"] == "mean"
    assert (again.settings["sampling"], again.settings["class_weight"]) == ("proportional", "prior")
    assert (again.n_neighbors, again.stop_reason) == (10, "all rows")
    assert np.isnan([again.se, again.p_value, again.q_value]).all()
    assert len(again.explain()) == 8
    assert all(line[key] is None for line in again.explain() for key in ("error", "p_value", "q_value", "unique_share"))
    for name in ("weights", "scores", "history", "classes", "n_pairs", "seed"):
        assert again.to_dict()[name] == old[name]


def test_a_field_that_came_later_is_filled_in_where_it_is_declared():
    again = Grown.from_dict(json.loads(OLD.read_text()))
    assert np.isnan(again.gain).all()
    assert again.gain.shape == again.weights.shape
    assert again.task == "classification"
    assert again.to_dict()["format"] == NEXT + 1
    assert Grown.from_dict(again.to_dict()).task == "classification"


def test_a_field_that_the_format_has_may_not_be_missing():
    given = Grown.from_dict(json.loads(OLD.read_text())).to_dict()
    for lost in ("weights", "gain"):
        with pytest.raises(ValueError, match=f"not a grown of belief: it has no {lost}.$"):
            Grown.from_dict({name: v for name, v in given.items() if name != lost})
    with pytest.raises(
        ValueError, match=rf"format {NEXT}, newer than this version of belief reads .{NEXT - 1}.: upgrade"
    ):
        Result.from_dict({**given, "format": NEXT})


def test_every_later_field_of_a_result_says_what_stood_for_it():
    assert all(f.metadata["older"] for f in fields(Result) if f.metadata["since"] > 1)


@pytest.mark.parametrize(
    ("name", "value"), [("selected", "abc"), ("redundancy", [[1]]), ("weights", [[1], [1, 2]]), ("settings", 3)]
)
def test_what_cannot_be_read_is_named(name, value):
    with pytest.raises(
        ValueError, match=f"This result was changed by hand: its {name} is not what it should be"
    ) as error:
        Result.from_dict({**json.loads(OLD.read_text()), name: value})
    assert "\n" not in str(error.value)


def test_settings_that_are_gone_get_the_names_they_have_now():
    known = {"sampling", "eta"}
    assert older.modern({"stratify": True, "eta": 2.0}, known) == ({"sampling": "proportional", "eta": 2.0}, [])
    assert older.modern({"stratify": False}, known) == ({"sampling": "random"}, [])
    assert older.modern({"stratify": True}, {"stratify"}) == ({"stratify": True}, [])  # while it is a setting
    assert older.modern({"stratify": True, "odd": 1}, {"eta"}) == ({}, ["stratify", "odd"])


def test_settings_that_came_later_are_what_was_done_before():
    defaults = {"eta": 2.0, "class_weight": "balanced", "copies": None}
    assert older.filled({"eta": 1.0}, defaults) == {"eta": 1.0, "class_weight": "prior", "copies": None}


def test_a_setting_without_a_name_today_still_tells_what_was_done():
    old = json.loads(OLD.read_text())
    again = Result.from_dict({**old, "settings": {**old["settings"], "alpha": 0.5}})
    assert again.settings["alpha"] == 0.5


def test_what_is_not_a_result_is_refused():
    with pytest.raises(ValueError, match="newer than this version"):
        belief.Result.from_dict({"format": 99})
    with pytest.raises(ValueError, match="not a result of belief: it has no weights"):
        belief.Result.from_dict({})


def test_what_the_result_knows(result):
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
    assert set(result.timings) == {"describe", "sample", "neighbours", "tally", "confidence", "redundancy", "explain"}
    assert "2 of 8 features selected" in repr(result)


def test_the_callback_is_told_of_phases_batches_and_rows():
    told = []
    belief.select(X, Y, 2, random_state=0, callback=told.append)
    phases = [p.phase for p in told]
    each = ["describe", "sample", "neighbours", "tally", "confidence", "redundancy", "explain", "finished"]
    assert list(dict.fromkeys(phases)) == each
    assert "batch 4 of 4" in {p.detail for p in told}
    assert max(p.done for p in told) == 200 == max(p.total for p in told)


def test_verbose_shows_a_bar_on_stderr_and_nothing_on_stdout(capsys):
    belief.select(X, Y, 2, random_state=0, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "belief: searching" in err
    assert "batch 2 of 4" in err
    lines = err.splitlines()
    assert len(set(lines)) == len(lines)  # nothing is said twice


def test_the_bar_on_a_terminal_is_one_line():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    bar = Bar(stream)
    bar(Progress("neighbours", "", 0, 0, 0.0))
    bar(Progress("neighbours", "", 500, 500, 2.0))
    bar(Progress("finished", "", 0, 0, 0.0))
    assert "[########################] 500 of 500 rows, 0 s left" in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_an_error_in_a_callback_stops_the_run_and_leaves_no_threads():
    import threading

    before = threading.active_count()

    def stop(progress):
        if progress.phase == "tally":
            raise KeyboardInterrupt

    told = []
    with pytest.raises(KeyboardInterrupt):
        belief.select(X, Y, 2, random_state=0, callback=lambda p: (told.append(p.phase), stop(p)))
    assert told[-1] == "stopped"
    assert threading.active_count() == before
