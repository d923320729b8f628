"""Output files are complete, even if streams are closed, full or limited to ASCII, or a signal stops the run."""

import io
import json
import os
import signal
import stat
import subprocess
import sys

import pytest

import belief
from belief.cli.commands import main
from belief.datasets import CHURN
from belief.progress import Reporter

COMMAND = f"{sys.executable} -m belief.cli select churn.csv --label left --top 2 --seed 0 --out r.json --force"
COMMAND += " --significance None"  # without compiled kernels the process starts faster


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / "churn.csv").write_text(CHURN.read_text().replace("support_calls", "größe_€"))
    return folder


@pytest.mark.linux
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
@pytest.mark.slow
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


# --- outputs ---

WRITING = """
import os, signal, sys, time
from belief.cli import commands, outputs
keep = outputs._write_batches
def slow(schema, batches, path):
    print("writing", flush=True)
    def pausing():
        for batch in batches:
            yield batch
            time.sleep(60)
    keep(schema, pausing(), path)
outputs._write_batches = slow
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
sys.exit(commands.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
@pytest.mark.slow
@pytest.mark.linux
def test_signals_leave_no_partial_files(home, tmp_path, name, code):
    out = tmp_path / "small.parquet"
    arguments = ["select", "churn.csv", "--label", "left", "--top", "2", "--significance", "None", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, *arguments, "--write-data", str(out)],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "writing\n" in process.stdout  # reads up to this line
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, "belief: stopped.\n")
    assert list(tmp_path.iterdir()) == []


LIBRARY = """
class Guard:
    def __enter__(self):
        lock.acquire()
        send()
    def __exit__(self, *error):
        lock.release()
class Module:
    def __del__(self):
        send()
"""
UNSAFE = """
import os, signal, sys, threading, time
from belief.cli.signals import Terminated, raising_on_signals
number = getattr(signal, sys.argv[1])
signal.signal(signal.SIGHUP, signal.SIG_DFL)
library = {"__name__": "llvmlite.binding", "lock": threading.Lock(), "send": lambda: os.kill(os.getpid(), number)}
exec(sys.argv[2], library)
def enter():
    with library["Guard"]():
        pass
def finalise():
    library["Module"]()
for run in (enter, finalise):
    try:
        with raising_on_signals():
            run()
            time.sleep(20)
            print("not raised")
    except (Terminated, KeyboardInterrupt) as error:
        print(type(error).__name__, library["lock"].locked())
"""


@pytest.mark.parametrize(
    ("name", "error"), [("SIGTERM", "Terminated"), ("SIGHUP", "Terminated"), ("SIGINT", "KeyboardInterrupt")]
)
@pytest.mark.linux
def test_signals_leave_no_lock_held_and_are_not_swallowed(name, error):
    """Otherwise, threads could wait for the lock for ever, and the run could go on after a signal."""
    done = subprocess.run([sys.executable, "-c", UNSAFE, name, LIBRARY], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == (f"{error} False\n" * 2, "")


@pytest.mark.linux
def test_a_signal_that_waits_at_the_end_is_not_lost():
    code = (
        "import os, signal\n"
        "from belief.cli.signals import raising_on_signals\n"
        "def __enter__(): os.kill(os.getpid(), signal.SIGTERM)\n"
        "with raising_on_signals(): __enter__()\n"
        "print('lost')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")


@pytest.mark.linux
def test_ignored_signals_stay_ignored(home):
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from belief.cli.signals import raising_on_signals\n"
        "with raising_on_signals(): print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
        "print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\nTrue\n"


@pytest.mark.parametrize(("more", "how"), [([], ""), (["--restart"], " without --restart")])
def test_message_after_ctrl_c_names_the_command_that_continues(home, tmp_path, capsys, monkeypatch, more, how):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(belief, "select", interrupt)
    arguments = ["select", str(home / "churn.csv"), "--label", "left", "--checkpoint", str(tmp_path / "notes"), *more]
    assert main(arguments) == 130
    assert capsys.readouterr().err == f"belief: stopped; repeat the command{how} to continue.\n"


def select(home, out, *more):
    options = ["--label", "left", "--significance", "None", "--quiet", "--out", str(out), *more]
    return main(["select", str(home / "churn.csv"), *options])


def test_overwriting_keeps_permissions_and_links(home, tmp_path):
    target, link = tmp_path / "private.json", tmp_path / "link.json"
    target.write_text("{}")
    target.chmod(0o600)
    link.symlink_to(target.name)
    assert select(home, link, "--force") == 0
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "weights" in json.loads(target.read_text())


def test_outputs_are_on_disk_before_they_get_their_name(home, tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (done.append(name), real(*args))[1])
    assert select(home, tmp_path / "r.json") == 0
    assert done == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("length", [241, 255])
def test_output_may_have_the_longest_name(home, tmp_path, length):
    out = tmp_path / f"{'r' * (length - 5)}.json"
    assert select(home, out) == 0
    assert out.exists()


def test_output_with_too_long_a_name_raises_before_the_run(home, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(belief, "select", lambda *args, **options: pytest.fail("it ran"))
    assert select(home, tmp_path / f"{'r' * 251}.json") == 1
    assert "cannot be written (File name too long): choose another name." in capsys.readouterr().err


def test_json_of_a_result_has_no_nan(home, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n" + "".join(f"{i % 7},3,{i % 2}\n" for i in range(60)))
    out = tmp_path / "r.json"
    assert main(["select", str(tmp_path / "a.csv"), "--label", "y", "--top", "2", "--quiet", "--out", str(out)]) == 0
    plain = json.loads(out.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert plain["p_univariate"][1] is None  # the feature is constant
    found = belief.Result.from_dict(plain)
    assert found.p_univariate[1] != found.p_univariate[1]
