"""The command line: output, files, errors and exit codes.

Most tests run commands in this process, which is faster. Signals, full disks and exit codes need a new process.
"""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import call
from pyarrow import parquet

import belief
from belief._utils.optional import install_command
from belief.cli import commands as cli
from belief.datasets import CHURN
from belief.method.settings import Settings

TABLE = pd.read_csv(CHURN)
COMMAND = [sys.executable, "-m", "belief.cli"]


def run(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, **options)


def result_in(path):
    return belief.Result.from_dict(json.loads(path.read_text()))


@pytest.fixture(scope="module")
def expected():
    return belief.select(TABLE.drop(columns="left"), TABLE["left"], 4, random_state=0)


@pytest.fixture
def churn(tmp_path):
    path = tmp_path / "churn.csv"
    TABLE.to_csv(path, index=False)
    return path


# --- commands ---


def test_select_in_a_new_process_equals_python(tmp_path, churn, expected):
    out = tmp_path / "result.json"
    done = run("select", churn, "--label", "left", "--top", 4, "--seed", 0, "--out", out)
    assert done.returncode == 0, done.stderr
    assert str(expected.explain()) in done.stdout
    assert [line.split()[1] for line in done.stderr.splitlines()[:3]] == ["reading", "sampling", "testing"]
    np.testing.assert_array_equal(result_in(out).selected, expected.selected)


def test_select_settings_columns_and_outputs(tmp_path, churn, capsys):
    code, out, _ = call(
        capsys, "select", churn, "--label", "left", "--top", 3, "--seed", 1, "--theta", 0.3, "--n-neighbors", 5,
        "--scale", "standard", "--sampling", "proportional", "--class-weight", "yes=2,no=1",
        "--drop", "age", "shoe_size", "--discrete", "support_calls",
        "--redundancy", "None", "--out", tmp_path / "r.csv", "--write-data", tmp_path / "small.parquet",
        "--report", tmp_path / "r.html",
    )  # fmt: skip
    assert code == 0
    want = belief.select(
        TABLE.drop(columns=["left", "age", "shoe_size"]), TABLE["left"], 3, random_state=1, theta=0.3, n_neighbors=5,
        scale="standard", sampling="proportional", class_weight={"yes": 2, "no": 1},
        discrete_features=["support_calls"], redundancy=None,
    )  # fmt: skip
    ranking = pd.read_csv(tmp_path / "r.csv")
    assert ranking["feature"].tolist()[:3] == want.selected_names
    assert len(ranking) == 10
    assert ranking["selected"].sum() == 3
    small = pd.read_parquet(tmp_path / "small.parquet")
    assert list(small.columns) == [c for c in TABLE.columns if c in {*want.selected_names, "left"}]
    pd.testing.assert_series_equal(small["left"], TABLE["left"], check_dtype=False)
    assert "10 features" in out
    assert "<title>churn.csv" in (tmp_path / "r.html").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["churn.csv", "r.csv", "r.html", "small.parquet"]


def test_write_data_writes_categories_as_text(tmp_path, capsys):
    TABLE.astype({"contract": "category"}).to_parquet(tmp_path / "a.parquet", index=False)
    small = tmp_path / "small.csv"
    args = ["select", tmp_path / "a.parquet", "--label", "left", "--candidates", "contract", "--top", 1]
    code, *_ = call(capsys, *args, "--write-data", small)
    assert code == 0
    pd.testing.assert_frame_equal(pd.read_csv(small), TABLE[["contract", "left"]])


@pytest.mark.parametrize(("separator", "option"), [(";", ";"), ("\t", r"\t")])
def test_select_csv_with_separator_and_without_header(tmp_path, capsys, expected, separator, option):
    TABLE.to_csv(tmp_path / "a.csv", sep=separator, header=False, index=False)
    label = f"c{TABLE.columns.get_loc('left')}"
    options = ["--separator", option, "--no-header", "--label", label, "--top", 4, "--seed", 0]
    code, *_ = call(capsys, "select", tmp_path / "a.csv", *options, "--out", tmp_path / "r.json")
    assert code == 0
    assert result_in(tmp_path / "r.json").selected_names == [f"c{j}" for j in expected.selected]


def test_explain_command(tmp_path, expected, capsys):
    file = tmp_path / "r.json"
    file.write_text(json.dumps(expected.to_dict()))
    assert call(capsys, "explain", file)[1].strip() == str(expected.explain())
    assert "not selected: redundant with 'tenure_days' (0.98)" in call(capsys, "explain", file, "tenure_months")[1]
    other = next(j for j in range(12) if j not in expected.watched and j not in expected.selected)
    assert re.search(r"^unique_share +-$", call(capsys, "explain", file, expected.feature_names[other])[1], re.M)
    code, out, err = call(capsys, "explain", file, "tenure_month")
    assert (code, out) == (1, "")
    assert "did you mean 'tenure_months'" in err


def test_report_command(tmp_path, expected, capsys):
    (tmp_path / "r.json").write_text(json.dumps(expected.to_dict()))
    assert call(capsys, "report", tmp_path / "r.json")[:2] == (0, f"{tmp_path / 'r.html'}\n")
    assert "support_calls" in (tmp_path / "r.html").read_text()
    code, out, err = call(capsys, "report", tmp_path / "r.json")
    assert (code, out) == (1, "")
    assert "exists already" in err


def test_paper_settings_can_be_overridden(churn, tmp_path, capsys):
    out = tmp_path / "r.json"
    options = ["--label", "left", "--top", 4, "--seed", 0, "--paper", "--kappa", 0.7, "--quiet", "--out", out]
    assert call(capsys, "select", churn, *options)[0] == 0
    want = belief.select(TABLE.drop(columns="left"), TABLE["left"], 4, random_state=0, **{**belief.PAPER, "kappa": 0.7})
    found = result_in(out)
    assert found.settings == want.settings
    np.testing.assert_array_equal(found.scores, want.scores)


def test_demo_and_version(capsys):
    assert "support_calls" in call(capsys, "demo")[1]
    assert call(capsys, "--version")[:2] == (0, f"belief {belief.__version__}\n")


def test_documented_output_is_current(churn, capsys):
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
    documented = re.search(r"^classification: 600 rows, 12 features, 2 .*?(?=^```)", page, re.M | re.S)[0]
    printed = call(capsys, "select", churn, "--label", "left", "--top", 4, "--seed", 0, "--quiet")[1].splitlines()
    lines = [line for line in documented.splitlines() if line != "..."]
    assert len(lines) == 5
    assert [line for line in lines if line not in printed] == []


def test_help_is_complete_and_fits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for command in ([], ["select"], ["compare"], ["explain"], ["report"], ["demo"]):
        code, text, _ = call(capsys, *command, "--help")
        assert code == 0
        assert text.startswith("usage: belief")
        assert max(map(len, text.splitlines())) <= 100
    commands = next(a for a in cli.build_parser()._actions if a.choices).choices
    for name, command in commands.items():
        assert all(action.help for action in command._actions), name
    options = commands["select"].format_help()
    for f in Settings.definitions():
        assert f.metadata["doc"].split()[1] in options
    assert "--redundancy agreement|mcr|None" in options


# --- errors ---

LEFT = ["--label", "left"]
BAD = {
    "missing file": (["nowhere.csv", *LEFT], "nowhere.csv: there is no such file or folder"),
    "empty folder": (["empty", *LEFT], "empty: the folder has no data files"),
    "folder of marks": (["marks", *LEFT], "marks: the folder has no data files"),
    "unknown ending": (["a.xyz", *LEFT], "a.xyz: the file ending 'xyz' is not supported.*csv"),
    "packing not known": (["a.csv.xz", *LEFT], r"a.csv.xz: .xz is not supported for csv files. Decompress"),
    "two formats": (["a.csv", "a.parquet", *LEFT], "All files must have the same format"),
    "unknown label": (["a.csv", "--label", "leftt"], r"--label: .* 'leftt' in a.csv \(did you mean 'left'\?\)"),
    "unknown column": (["a.csv", *LEFT, "--drop", "regoin"], r"--drop: .*'regoin' in a.csv \(did you mean 'region'"),
    "unknown name": (["a.csv", *LEFT, "--discrete", "regoin"], r"'regoin'.*did you mean 'region'"),
    "no names to drop": (["a.npz", "--drop", "b"], r"drop applies only to CSV, .*; got \['b'\]"),
    "all classes": (
        ["a.csv", *LEFT, "--sample-size", "1", "--sampling", "proportional"],
        "--sample-size 1 samples 1 of .* but --sampling proportional needs at least one row",
    ),
    "nothing kept": (["a.csv", *LEFT, "--candidates", "left"], "exclude every column of a.csv"),
    "one class": (["one.csv", "--label", "y"], "'y' has only one class, 0"),
    "unique numbers": (["a.csv", "--label", "total_paid", "--task", "classification"], "like a regression target"),
    "ragged line": (["ragged.csv", "--label", "c"], "ragged.csv: line 3 has 2 columns, but the lines before have 3"),
    "ragged far down": (["far_ragged.csv", "--label", "y"], "far_ragged.csv: line 3002 has 2 columns"),
    "mixed types": (
        ["mixed.csv", "--label", "y"],
        "mixed.csv: column 'b' contains numbers, but also 'oops'.*--discrete b",
    ),
    "mixed far down": (
        ["far.csv", "--label", "y"],
        "far.csv: line 3002, column 'b' has the value 'oops', but numbers in the lines before.*--discrete b",
    ),
    "yes and no far down": (
        ["far.csv", "--label", "y", "--candidates", "d"],
        "line 3002, column 'd' has the value 'oops', but booleans in the lines before",
    ),
    "label mixed far down": (["far.csv", "--label", "b", "--candidates", "a"], "column 'b' has .* Correct the value.$"),
    "other columns": (["a.csv", "b.csv", *LEFT], "b.csv and a.csv have different columns: they differ in 'region'"),
    "other columns, Parquet": (["a.parquet", "b.parquet", *LEFT], r"b.parquet and a.parquet have .*'region'"),
    "other types": (["a.csv", "words.csv", *LEFT], "words.csv: line 2, column 'age' has the value '.*x', but"),
    "other types, Parquet": (
        ["a.parquet", "words.parquet", *LEFT],
        "words.parquet and a.parquet have different column types: column 'age' is double vs .*string",
    ),
    "two columns of one name": (["twice.csv", "--label", "y"], "twice.csv has more than one column named 'a'"),
    "the same, Parquet": (["twice.parquet", "--label", "y"], "twice.parquet: .* several columns with the same name"),
    "empty CSV": (["zero.csv", *LEFT], "zero.csv: the file is empty"),
    "header only": (["head.csv", "--label", "y"], "head.csv has no rows"),
    "no UTF-8": (["latin.csv", "--label", "y"], "latin.csv: column 'b' is not valid UTF-8"),
    "no UTF-8 in the names": (["latin_names.csv", "--label", "y"], "latin_names.csv: the line of column names is"),
    "no class in a row": (["unlabelled.csv", "--label", "y"], "'y' has no value in row 50"),
    "NaN as a class": (["undefined.parquet", *LEFT], "'left' has no value in row 77"),
    "no class, Parquet": (["unlabelled.parquet", *LEFT], "'left' has no value in row 77"),
    "truncated gz": (["cut.csv.gz", *LEFT], "cut.csv.gz: cannot be read as CSV: Truncated compressed stream"),
    "truncated Parquet": (["cut.parquet", *LEFT], "cut.parquet: cannot be read as Parquet: "),
    "damaged Parquet": (["torn.parquet", *LEFT], "torn.parquet: cannot be read as Parquet: "),
    "truncated Arrow": (["cut.feather", *LEFT], "cut.feather: cannot be read as Arrow: "),
    "truncated NPZ": (["cut.npz"], "cut.npz: the file is not a valid NPZ file"),
    "NPZ of one dimension": (["flat.npz"], r"flat.npz: the array X must be two-dimensional; got the shape \(4,\)"),
    "no such array": (["a.npz", "--label", "z"], "a.npz: there is no array 'z'"),
    "bad line of LIBSVM": (["bad.svm"], "bad.svm, line 2: '1:x' is not of the form index:value"),
    "output exists": (["a.csv", *LEFT, "--out", "b.csv"], "b.csv exists already: .*--force"),
    "output nowhere": (["a.csv", *LEFT, "--out", "no/r.json"], r"no/r.json: cannot write to the folder no \(No such"),
    "output cannot be": (["a.csv", *LEFT, "--out", "/proc/r.json"], "/proc/r.json: cannot write to the folder /proc"),
    "output ending": (["a.csv", *LEFT, "--out", "r.txt"], "ending must be one of .json, .csv, .parquet"),
    "output is a folder": (["a.csv", *LEFT, "--out", "d.csv", "--force"], "d.csv is a folder"),
    "checkpoint is a file": (["a.csv", *LEFT, "--checkpoint", "b.csv"], "checkpoint b.csv is a file"),
}
WRONG = {
    "no threads": (["a.csv", *LEFT, "--n-jobs", "0"], "--n-jobs must be a number of threads, -1 for all .*; got 0."),
    "no memory": (["a.csv", *LEFT, "--working-memory", "3"], r"--working-memory must be .* 2\*\*30 \(MiB\); got 3."),
    "no device": (["a.csv", *LEFT, "--device", "gpu"], "--device must be 'auto', 'cpu', 'cuda', one GPU"),
    "no label": (["a.csv"], "Pass --label NAME to name the target column"),
    "wrong setting": (["a.csv", *LEFT, "--kappa", "3"], r"--kappa must be a number in \[0, 1\]; got 3"),
    "wrong number": (["a.csv", *LEFT, "--top", "few"], "--top must be 'auto', an integer .* got 'few'"),
    "same output twice": (["a.csv", *LEFT, "--out", "r.csv", "--write-data", "r.csv"], "same file, r.csv: choose two"),
    "input written over": (["a.csv", *LEFT, "--write-data", "a.csv", "--force"], "would overwrite an input file"),
    "no data to write": (["a.npz", "--write-data", "w.csv"], "--write-data needs a file with column names"),
    "no such feature": (["a.npz", "--discrete", "q"], "no column 'q'. Columns without names are called x0"),
    "for this machine": (["a.csv", *LEFT, "--engine", "spark", "--n-jobs", "2"], "--n-jobs needs --engine local"),
    "memory of Spark": (
        ["a.csv", *LEFT, "--engine", "spark", "--working-memory", "99"],
        "--working-memory needs --engine local",
    ),
    "long separator": (["a.csv", *LEFT, "--separator", "::"], "--separator must be one ASCII character"),
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """Return a folder with invalid files."""
    home = tmp_path_factory.mktemp("bad")
    for name in ("empty", "marks", "d.csv"):
        (home / name).mkdir()
    (home / "marks" / "_SUCCESS").write_text("")
    for name, table in {
        "a": TABLE,
        "b": TABLE.drop(columns="region"),
        "words": TABLE.assign(age=TABLE["age"].astype(str) + "x"),
        "undefined": TABLE.assign(left=[float("nan") if i == 77 else i % 2 for i in range(len(TABLE))]),
        "unlabelled": TABLE.assign(left=[None if i == 77 else v for i, v in enumerate(TABLE["left"])]),
    }.items():
        table.to_csv(home / f"{name}.csv", index=False)
        table.to_csv(home / f"{name}.csv.gz", index=False)
        table.to_parquet(home / f"{name}.parquet", index=False)
        table.to_feather(home / f"{name}.feather")
    (home / "a.csv.xz").write_bytes(b"\xfd7zXZ")
    numbers = [f"{i % 7},{i},{i % 2}" for i in range(200)]
    long = "1." + 4000 * "0"  # so that line 3002 is not in the first block of 8 MB
    for name, text in {
        "a.xyz": "1",
        "zero.csv": "",
        "head.csv": "a,b,y\n",
        "one.csv": "a,y\n1,0\n2,0\n3,0\n",
        "twice.csv": "a,a,y\n1,2,0\n2,3,1\n",
        "ragged.csv": "a,b,c\n1,2,x\n3,4\n5,6,y\n",
        "far_ragged.csv": "a,b,y\n" + f"{long},2,0\n" * 3000 + "1,2\n",
        "mixed.csv": "a,b,y\n" + "\n".join([*numbers[:50], "1,oops,0", *numbers[51:]]),
        "far.csv": "a,b,d,y\n" + f"{long},2,true,0\n" * 3000 + "1,oops,oops,0\n",
        "unlabelled.csv": "a,b,y\n" + "\n".join([*numbers[:50], "1,2,", *numbers[51:]]),
        "bad.svm": "1 1:2 2:3\n0 1:x\n",
    }.items():
        (home / name).write_text(text)
    (home / "latin.csv").write_bytes("a,b,y\n1,é,0\n2,è,1\n".encode("latin1"))
    (home / "latin_names.csv").write_bytes("a,bé,y\n1,1,0\n2,3,1\n".encode("latin1"))
    four = [pa.array([1, 2, 3, 4]), pa.array([4, 1, 3, 2]), pa.array([0, 1, 0, 1])]
    parquet.write_table(pa.table(four, names=["a", "a", "y"]), home / "twice.parquet")
    np.savez(home / "a.npz", X=np.eye(4), y=[0, 1, 0, 1])
    np.savez(home / "flat.npz", X=np.arange(4), y=[0, 1, 0, 1])
    for whole, size in {"a.parquet": 500, "a.csv.gz": 3000, "a.feather": 5000, "a.npz": 99}.items():
        (home / whole.replace("a.", "cut.")).write_bytes((home / whole).read_bytes()[:size])
    torn = (home / "a.parquet").read_bytes()
    (home / "torn.parquet").write_bytes(torn[:3000] + bytes(3000) + torn[6000:])
    return home


def listing(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*BAD, *WRONG])
def test_bad_input_is_one_line_and_writes_nothing(bad, name, monkeypatch, capsys):
    arguments, said = {**BAD, **WRONG}[name]
    monkeypatch.chdir(bad)
    before = listing(bad)
    code, out, err = call(capsys, "select", *arguments, "--quiet")
    assert code == (1 if name in BAD else 2)
    assert out == ""
    assert re.match(f"belief: .*{said}" if not said.startswith("^") else said, err.strip()), err
    assert len(err.strip().splitlines()) == 1
    assert listing(bad) == before


@pytest.mark.parametrize(("arguments", "code"), [(["nowhere.csv", *LEFT], 1), (["a.csv", "--lable", "left"], 2)])
def test_exit_code_without_traceback(bad, arguments, code):
    done = run("select", *arguments, cwd=bad)
    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("belief")


@pytest.mark.parametrize("command", ["explain", "report"])
def test_damaged_results_are_refused(tmp_path, expected, capsys, command):
    file = tmp_path / "r.json"
    whole = expected.to_dict()
    assert "cannot be read (No such file" in call(capsys, command, file)[2]
    for text, said in {
        json.dumps(whole)[:200]: "not valid JSON",
        "[]": "This is not a result of belief-fs: expected a mapping, got a list",
        '{"format": 99}': "has format 99, but this version of belief reads format 1",
        "{}": "This is not a result of belief-fs. It lacks format, weights, .*",
        json.dumps({**whole, "selected": "abc"}): "r.json: ",
        json.dumps({**whole, "redundancy": [[1]]}): "r.json: ",
    }.items():
        file.write_text(text)
        code, out, err = call(capsys, command, file)
        assert (code, out) == (1, "")
        assert re.search(said, err), err
        assert len(err.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_report_without_matplotlib_fails_before_the_run(tmp_path, churn, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(belief, "select", lambda *args, **options: pytest.fail("it ran"))
    code, out, err = call(capsys, "select", churn, *LEFT, "--report", tmp_path / "r.html")
    assert (code, out) == (1, "")
    needed = f"Pictures and reports need matplotlib, which is not installed: {install_command('report', 'matplotlib')}."
    assert err == f"belief: {needed}\n"


# --- full disks, closed streams, Ctrl-C ---

UNTESTED = ["--seed", "0", "--quiet", "--significance", "None"]  # without compiled kernels, a process starts faster


@pytest.mark.slow
@pytest.mark.linux
@pytest.mark.parametrize("output", ["--out r.json", "--out r.parquet", "--write-data d.csv", "--report r.html"])
def test_failed_output_leaves_no_file(tmp_path, churn, output):
    """A limit of 1,000 bytes per file simulates a full disk."""
    option, name = output.split()

    import resource

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python 3.11 would keep truncated bytecode files
    done = run("select", churn, *LEFT, *UNTESTED, option, name, cwd=tmp_path, preexec_fn=small, env=env)
    assert done.returncode == 1
    assert done.stderr == f"belief: {name}: cannot be written ({os.strerror(errno.EFBIG)}).\n"
    assert "support_calls" in done.stdout  # the result is printed nevertheless
    assert [p.name for p in tmp_path.iterdir()] == ["churn.csv"]


@pytest.mark.slow
@pytest.mark.linux
def test_select_on_a_full_disk(tmp_path, churn):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root, to mount a file system of a few kilobytes")
    try:
        done = run("select", churn, *LEFT, *UNTESTED, "--out", disk / "r.json")
        assert (done.returncode, list(disk.iterdir())) == (1, [])
        assert done.stderr == f"belief: {disk / 'r.json'}: cannot be written (No space left on device).\n"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
@pytest.mark.linux
def test_full_and_closed_stdout(churn):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "demo"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "belief: [Errno 28] No space left on device"
    assert "Traceback" not in done.stderr
    shell = f"{' '.join([*COMMAND, 'select', str(churn), *LEFT, *UNTESTED])} | head -1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("classification: 600 rows")
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.linux
def test_ctrl_c_stops_without_traceback(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "a.npz"
    np.savez(file, X=rng.standard_normal((60_000, 200), dtype=np.float32), y=rng.integers(0, 2, 60_000))
    arguments = ["select", file, "--sample-size", "50000", "--significance", "None", "--out", tmp_path / "r.json"]
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if "searching" in line:
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "belief: stopped.\n")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
