"""Closed, full and ASCII streams: files are written anyway, without a traceback."""

import io
import json
import os
import subprocess
import sys

import pytest

import belief
from belief.cli.commands import main
from belief.datasets import CHURN
from belief.progress import Reporter

COMMAND = f"{sys.executable} -m belief.cli select churn.csv --label left --top 2 --seed 0 --out r.json --force"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / "churn.csv").write_text(CHURN.read_text().replace("support_calls", "größe_€"))
    return folder


@pytest.mark.parametrize(
    ("more", "env", "out"),
    [
        ("", {"PYTHONIOENCODING": "ascii"}, "gr??e_?"),
        ("2>&-", {}, "größe_€"),
        ("<&- >&- 2>&-", {}, ""),
        ("| true", {}, ""),
        (">/dev/full 2>/dev/full", {}, ""),
    ],
)
def test_files_are_written_whatever_the_streams_do(home, more, env, out):
    (home / "r.json").unlink(missing_ok=True)
    done = subprocess.run(
        f"{COMMAND} {more}", shell=True, capture_output=True, cwd=home, env={**os.environ, "PYTHONUTF8": "1", **env}
    )
    assert b"Traceback" not in done.stderr
    assert b"Error" not in done.stderr
    assert out in done.stdout.decode()
    assert belief.Result.from_dict(json.loads((home / "r.json").read_text())).selected_names[0] == "größe_€"
    assert sorted(p.name for p in home.iterdir()) == ["churn.csv", "r.json"]


def test_reporter_survives_missing_and_closed_streams(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    Reporter(bar=True).phase("describe")

    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    Reporter(bar=True, stream=Closed()).phase("describe")


def test_unknown_option_is_escaped(capsys):
    with pytest.raises(SystemExit):
        main(["select", "a.csv", "--label", "y", "--\x1b[31mred"])
    assert "unrecognized arguments: --\\x1b[31mred" in capsys.readouterr().err
