"""Tests of explanations, of escaped control characters, and of hints in error messages."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import call

import belief
from belief._utils.text import escape_controls
from belief.cli import commands as cli
from belief.data.diagnostics import suggest_csv_options
from belief.datasets import CHURN

NASTY = "<b>\x1b[31mred\x07 \u202eevil\nline"


@pytest.fixture(scope="module", params=[{}, belief.PAPER, {"redundancy": None}, {"n_features_to_select": "auto"}])
def result(request):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = pd.DataFrame(rng.normal(size=(120, 30)), columns=[f"f{j}" for j in range(30)])
    X["f0"] += 2 * y
    X["f1"] = X["f0"] + 0.01 * rng.normal(size=120)
    X["f2"] += y
    X["f28"] = 5.0
    X = X.rename(columns={"f29": NASTY})
    return belief.select(X, y, **{"n_features_to_select": 3, "random_state": 0, **request.param})


def kind_of(result, j):
    for name in ("selected", "constant", "watched"):
        if j in getattr(result, name):
            return name
    return "neither"


def test_explain_every_feature_in_python_json_and_cli(result, tmp_path, capsys):
    file = tmp_path / "r.json"
    file.write_text(json.dumps(result.to_dict()))
    saved = belief.Result.from_dict(json.loads(file.read_text()))
    kinds = set()
    for j, name in enumerate(result.feature_names):
        row = result.explain(name)
        assert row == result.explain(j) == saved.explain(name)
        assert row.feature == name
        assert row.reason.startswith("selected" if j in result.selected else "not selected: ")
        if (kind := kind_of(result, j)) not in kinds:
            assert cli.main(["explain", str(file), name]) == 0
            assert f"{escape_controls(row.reason)}\n" in capsys.readouterr().out
        kinds.add(kind)
    assert kinds >= {"selected", "neither", "constant"}
    assert "watched" in kinds or result.settings["n_features_to_select"] == "auto"


def test_explanation_repr_html_is_a_table(result):
    whole, one = result.explain()._repr_html_(), result.explain(NASTY)._repr_html_()
    assert whole.count("<tr>") == 1 + len(result.explain())
    assert one.count("<tr>") == 2
    assert "&lt;b&gt;\\x1b[31mred" in one
    assert "<b>" not in one


def test_terminal_output_escapes_control_characters(result, tmp_path, capsys):
    file = tmp_path / "r.json"
    file.write_text(json.dumps(result.to_dict()))
    cli.main(["explain", str(file), NASTY])
    cli.main(["explain", str(file), "\x1b[2J"])
    printed = capsys.readouterr()
    for text in (repr(result.explain(NASTY)), printed.out, printed.err):
        assert not set(text) & set("\x1b\x07\u202e")
    assert escape_controls(NASTY) in printed.out
    assert "\x1b" not in repr(result)


def test_escape_controls():
    assert escape_controls(NASTY) == "<b>\\x1b[31mred\\x07 \\u202eevil\\nline"
    assert escape_controls("größe 北 🙂") == "größe 北 🙂"


def test_cli_escapes_control_characters_in_column_names(tmp_path, capsys):
    file = tmp_path / "t.csv"
    pd.read_csv(CHURN)[["age", "support_calls", "left"]].rename(columns={"age": "\x1b[31mage"}).to_csv(file)
    assert cli.main(["select", str(file), "--label", "left", "--top", "3", "--quiet"]) == 0
    assert cli.main(["select", str(file), "--label", "\x1b[31mleft", "--quiet"]) == 1
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert "\\x1b[31mage" in printed.out


# --- hints ---


@pytest.mark.parametrize(
    ("names", "separator", "hint"),
    [
        (["a;b;c"], ",", "Pass separator=';'"),
        (["a\tb"], ",", r"Pass separator='\t'"),
        (["a,b"], ";", "Pass separator=','"),
        (["a|b"], ",", "Pass separator='|'"),
        (["5.1", "3.5", "setosa"], ",", "Pass header=False"),
        (["a", "b;c"], ",", ""),
        (["age", "2020", "income"], ",", ""),
        ([], ",", ""),
    ],
)
def test_layout_hint(names, separator, hint):
    said = suggest_csv_options(names, separator)
    assert (hint in said) if hint else (said == "")


FILES = {
    "semicolons": "a;b;left\n1;2;0\n2;3;1\n4;5;0\n5;6;1\n",
    "decimal commas": "a;b;left\n1,5;2,3;0\n2,1;3,4;1\n",
    "tabs": "a\tb\tleft\n1\t2\t0\n2\t3\t1\n",
    "no names": "5.1,3.5,setosa\n4.9,3.0,setosa\n6.1,2.0,virginica\n",
    "no names, twice": "1,1,0\n4,5,0\n5,6,1\n",
}
HELP = [
    ("semicolons", "separator=';'", "--separator ';'"),
    ("decimal commas", "separator=';'", "--separator ';'"),
    ("tabs", r"separator='\t'", r"--separator '\t'"),
    ("no names", "header=False", "--no-header"),
    ("no names, twice", "header=False", "--no-header"),
]


@pytest.mark.parametrize(("text", "python", "option"), HELP)
def test_errors_name_the_option_that_helps(tmp_path, capsys, text, python, option):
    file = tmp_path / "t.csv"
    file.write_text(FILES[text])
    assert cli.main(["select", str(file), "--label", "left"]) == 1
    assert f"Pass {option}" in capsys.readouterr().err
    with pytest.raises(ValueError, match="Pass ") as error:
        belief.select(file, label="left")
    assert f"Pass {python}" in str(error.value)


@pytest.mark.parametrize("option", ["--drop", "--candidates", "--discrete"])
def test_files_after_a_greedy_option_are_reported(tmp_path, capsys, option):
    file = tmp_path / "t.csv"
    file.write_text("a,b,left\n1,2,0\n2,3,1\n")
    code, _, said = call(capsys, "select", "--label", "left", option, "a", str(file))
    assert code == 2
    assert "put the files before such options, or after --" in said
    code, _, said = call(capsys, "select", str(file), "--label", "left", option, "a", str(file))
    assert code == 2
    assert said.startswith(f"belief: {option}: {str(file)!r} is a file, not a column: put the files before such")
    assert call(capsys, "select", "--label", "left", "--drop", "a", "--quiet", "--", str(CHURN))[0] == 1
