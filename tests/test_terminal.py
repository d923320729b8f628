"""Tests of output on a terminal: tables that fit its width, colours, suggestions, and the prompt for the target."""

import io
import json
import re
import sys

import pandas as pd
import pytest
from conftest import Terminal

import belief
from belief.cli import commands as cli
from belief.cli.terminal import _fitting_columns
from belief.datasets import CHURN

ANSI = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that runs a command on a terminal of a given width, and returns its output."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def call(*arguments, width=80, **env):
        monkeypatch.setenv("COLUMNS", str(width))
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        stdout = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            assert cli.main([str(a) for a in arguments]) == 0
        return stdout.getvalue()

    return call


SELECT = ("select", CHURN, "--label", "left", "--top", "6", "--seed", "0", "--quiet")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the file of a result with many features, one of which has a long name."""
    table = pd.read_csv(CHURN).rename(columns={"texts_sent": "[red]texts[/red] " + "x" * 60})
    for j in range(60):
        table[f"copy_{j}"] = table["tenure_days"] + j
    result = belief.select(table, label="left", n_features_to_select=35, random_state=0)
    path = tmp_path_factory.mktemp("saved") / "r.json"
    path.write_text(json.dumps(result.to_dict()))
    return path


@pytest.mark.parametrize("width", [50, 80, 140])
def test_table_fits_the_terminal_and_the_reason_wraps_in_its_column(terminal, width):
    lines = ANSI.sub("", terminal(*SELECT, width=width)).splitlines()
    assert max(map(len, lines)) <= width
    start = next(line for line in lines if line.startswith("rank")).index("reason")
    wrapped = [line for line in lines if line.startswith(" " * start) and line.strip()]
    assert wrapped
    assert len("".join(line[start:] for line in lines).split()) > 50
    assert ("unique_share" in "".join(lines)) == (width == 140)


def test_colours_show_the_status(terminal):
    text = terminal(*SELECT)
    assert "\x1b[32msupport_calls" in text
    assert "\x1b[33mtexts_sent" in text  # selected, but not significant
    assert re.search(r"\x1b\[2mtenure_months", text)


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(terminal, env):
    text = terminal(*SELECT, **env)
    assert not re.search(r"\x1b\[3\dm", text)
    assert "support_calls" in text


def test_pipes_get_plain_aligned_text(capsys):
    assert cli.main([*map(str, SELECT)]) == 0
    out = capsys.readouterr().out
    want = belief.select(str(CHURN), label="left", n_features_to_select=6, random_state=0)
    assert out.endswith(f"\n\n{want.explain()}\n")


def test_long_tables_are_cut_on_a_terminal(terminal, tmp_path):
    rng = pd.Series(range(12_000)).sample(frac=1, random_state=0).to_numpy().reshape(200, 60)
    table = pd.DataFrame(rng, columns=[f"f{j}" for j in range(60)]).assign(y=[0, 1] * 100)
    table.to_csv(tmp_path / "a.csv", index=False)
    options = ["select", tmp_path / "a.csv", "--label", "y", "--top", 32, "--eta", 1.8, "--seed", 0, "--quiet"]
    text = ANSI.sub("", terminal(*options, width=200))
    assert "+2 more selected, +18 more not selected" in text
    assert len([line for line in text.splitlines() if re.match(r"(\d+|-) +f\d", line)]) == 38


def test_explain_on_a_terminal(terminal, saved):
    text = ANSI.sub("", terminal("explain", saved, width=70))
    assert "[red]texts" in text  # names are not markup
    assert max(map(len, text.splitlines())) <= 70
    one = ANSI.sub("", terminal("explain", saved, "tenure_days", width=70))
    assert re.search(r"^is_significant +True", one, re.M)


def test_unselected_features_are_sorted_by_score(saved):
    lines = belief.Result.from_dict(json.loads(saved.read_text())).explain()
    scores = [line.score for line in lines if line.rank is None]
    assert len(scores) > 5
    assert scores == sorted(scores, reverse=True)


def test_rarely_needed_columns_make_room():
    rows = [["rank", "feature", "score", "unique_share", "reason"], ["1", "f" * 20, "0.5", "100 %", "r" * 90]]
    assert _fitting_columns(rows, 200) == [0, 1, 2, 3, 4]
    assert _fitting_columns(rows, 70) == [0, 1, 2, 4]
    assert _fitting_columns(rows, 60) == [0, 1, 4]


# --- JSON, suggestions, the target ---


def test_json_replaces_the_table(capsys, saved):
    assert cli.main([*map(str, SELECT), "--json"]) == 0
    assert belief.Result.from_dict(json.loads(capsys.readouterr().out)).selected_names[0] == "support_calls"
    assert cli.main(["explain", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rank"] == 1
    assert cli.main(["explain", str(saved), "age", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feature"] == "age"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["selct", "a.csv"], "did you mean 'select'?"),
        (["select", "a.csv", "--lable", "left"], "did you mean '--label'?"),
        (["select", "a.csv", "--redundency=None"], "did you mean '--redundancy'?"),
        (["select", "a.csv", "--task", "regresion"], "did you mean 'regression'?"),
        (["compare", "a.csv", "--secnods", "3"], "did you mean '--seconds'?"),
    ],
)
def test_misspelt_words_are_corrected(capsys, arguments, hint):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert hint in capsys.readouterr().err


def test_help_shows_commands_and_examples(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main([])
    out = capsys.readouterr().out
    assert "commands:" in out
    assert "belief select customers.csv --label left" in out
    with pytest.raises(SystemExit, match="0"):
        cli.main(["select", "--help"])
    groups = re.findall(r"^(\w+):$", capsys.readouterr().out, re.M)
    assert groups[:2] == ["options", "input"]
    assert groups[-5:] == ["selection", "significance", "sample", "method", "examples"]


def test_without_a_label_the_columns_are_listed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert cli.main(["select", str(CHURN)]) == 2
    err = capsys.readouterr().err
    assert "Pass --label NAME to name the target column. The columns are tenure_months, tenure_days" in err


def test_a_terminal_asks_for_the_target(capsys, monkeypatch):
    stdin = Terminal("lefft\nleft\n")
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert cli.main(["select", str(CHURN), "--top", "2", "--seed", "0", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert "there is no column 'lefft' (did you mean 'left'?)" in err
    assert "support_calls" in out
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert cli.main(["select", str(CHURN), "--quiet"]) == 2
