"""The command, as a person runs it: a process of its own, on files of each format."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

import belief
from belief.datasets import CHURN

TABLE = pd.read_csv(CHURN)


def run(*arguments, check=True):
    done = subprocess.run([sys.executable, "-m", "belief.cli", *map(str, arguments)], capture_output=True, text=True)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def result_in(path):
    return belief.Result.from_dict(json.loads(path.read_text()))


def write(path):
    """The example in the format of the ending."""
    table = pa.Table.from_pandas(TABLE)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".feather":
        feather.write_feather(table, path)
    elif path.suffix == ".tsv":
        TABLE.to_csv(path, sep="\t", index=False)
    else:
        TABLE.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def expected():
    return belief.select(TABLE.drop(columns="left"), TABLE["left"], 4, random_state=0)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.feather"])
def test_every_format_gives_the_answer_of_python(tmp_path, expected, name):
    out = tmp_path / "result.json"
    done = run("select", write(tmp_path / name), "--label", "left", "--top", 4, "--seed", 0, "--out", out)
    result = result_in(out)
    np.testing.assert_array_equal(result.selected, expected.selected)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-9)
    assert str(expected.explain()) in done.stdout
    assert "belief: searching" in done.stderr


def test_several_files_are_one_table(tmp_path, expected):
    for i, part in enumerate((TABLE[:200], TABLE[200:])):
        part.to_csv(tmp_path / f"{i}.csv", index=False)
    out = tmp_path / "r.json"
    run("select", tmp_path / "0.csv", tmp_path / "1.csv", "--label", "left", "--top", 4, "--seed", 0, "--out", out)
    np.testing.assert_allclose(result_in(out).weights, expected.weights, rtol=1e-9)


def test_a_folder_of_csv_and_integer_labels(tmp_path):
    (tmp_path / "data").mkdir()
    numbered = TABLE.assign(left=(TABLE["left"] == "yes").astype(int))
    numbered[:300].to_csv(tmp_path / "data" / "a.csv", index=False)
    numbered[300:].to_csv(tmp_path / "data" / "b.csv", index=False)
    run("select", tmp_path / "data", "--label", "left", "--seed", 0, "--out", tmp_path / "r.json", "--quiet")
    assert json.loads((tmp_path / "r.json").read_text())["classes"] == [0, 1]


def test_a_folder_of_parquet(tmp_path, expected):
    (tmp_path / "data").mkdir()
    for i, part in enumerate((TABLE[:200], TABLE[200:])):
        part.to_parquet(tmp_path / "data" / f"{i}.parquet", index=False)
    done = run("select", tmp_path / "data", "--label", "left", "--top", 4, "--seed", 0, "--quiet")
    assert str(expected.explain()) in done.stdout
    assert done.stderr == ""


def test_libsvm_and_npz(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    X = np.where(rng.random((80, 12)) < 0.3, rng.standard_normal((80, 12)).round(3), 0)
    X[:, 2] += y
    X[0, 11] = 1  # so that the file knows of the last column
    want = belief.select(csr_matrix(X.astype(np.float32)), y, 3, random_state=0)
    dump_svmlight_file(csr_matrix(X), y, str(tmp_path / "a.svm"), zero_based=False)
    np.savez(tmp_path / "a.npz", X=X.astype(np.float32), y=y)
    for name in ("a.svm", "a.npz"):
        run("select", tmp_path / name, "--top", 3, "--seed", 0, "--out", tmp_path / "r.json", "--force")
        np.testing.assert_array_equal(result_in(tmp_path / "r.json").selected, want.selected)


def test_settings_columns_and_outputs(tmp_path):
    source = write(tmp_path / "a.csv")
    done = run(
        "select", source, "--label", "left", "--top", 3, "--seed", 1, "--theta", 0.3, "--n-neighbors", 5, "--scale",
        "standard", "--stratify", "--drop", "age", "shoe_size", "--discrete", "support_calls", "--redundancy", "None",
        "--out", tmp_path / "r.csv", "--write-data", tmp_path / "small.parquet",
    )  # fmt: skip
    want = belief.select(
        TABLE.drop(columns=["left", "age", "shoe_size"]), TABLE["left"], 3, random_state=1, theta=0.3, n_neighbors=5,
        scale="standard", stratify=True, discrete_features=["support_calls"], redundancy=None,
    )  # fmt: skip
    ranking = pd.read_csv(tmp_path / "r.csv")
    assert ranking["feature"].tolist()[:3] == want.selected_names
    assert len(ranking) == 10
    assert ranking["selected"].sum() == 3
    small = pd.read_parquet(tmp_path / "small.parquet")
    assert set(small.columns) == {*want.selected_names, "left"}
    pd.testing.assert_series_equal(small["left"], TABLE["left"], check_dtype=False)
    assert "10 features" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "r.csv", "small.parquet"]


def test_explain_all_and_one(tmp_path, expected):
    (tmp_path / "r.json").write_text(json.dumps(expected.to_dict()))
    assert run("explain", tmp_path / "r.json").stdout.strip() == str(expected.explain())
    assert "left: not relevant enough" in run("explain", tmp_path / "r.json", "tenure_months").stdout
    done = run("explain", tmp_path / "r.json", "tenure_month", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "did you mean 'tenure_months'" in done.stderr


def test_demo_version_and_help():
    assert "support_calls" in run("demo").stdout
    assert run("--version").stdout.strip() == f"belief {belief.__version__}"
    for command in ([], ["select"], ["explain"], ["demo"]):
        assert "usage: belief" in run(*command, "--help").stdout
    text = run("select", "--help").stdout
    assert "--n-neighbors" in text
    assert "the neighbours taken of every class (10)" in " ".join(text.split())


BAD = {
    "missing file": (["nowhere.csv", "--label", "left"], 1, "nowhere.csv: there is no such file or folder"),
    "no label": (["a.csv"], 1, "--label"),
    "unknown label": (["a.csv", "--label", "leftt"], 1, "no column 'leftt' .did you mean 'left'"),
    "unknown ending": (["a.xyz", "--label", "left"], 1, "ending .xyz is not one of csv"),
    "empty folder": (["empty", "--label", "left"], 1, "the folder has no data"),
    "ragged line": (["ragged.csv", "--label", "c"], 1, r"ragged.csv: line 3 has 2 columns, the lines before it 3"),
    "other columns": (["a.csv", "b.csv", "--label", "left"], 1, "do not have the same columns .'region'"),
    "one class": (["one.csv", "--label", "y"], 1, "has one class only"),
    "regression": (["a.csv", "--label", "total_paid"], 1, "regression target"),
    "unknown column to drop": (["a.csv", "--label", "left", "--drop", "regoin"], 1, "did you mean 'region'"),
    "wrong setting": (["a.csv", "--label", "left", "--kappa", "3"], 1, r"kappa must be a number in \[0, 1\]; got 3"),
    "output exists": (["a.csv", "--label", "left", "--out", "b.csv"], 1, "b.csv exists already.*--force"),
    "output nowhere": (["a.csv", "--label", "left", "--out", "no/r.json"], 1, "the folder no does not exist"),
    "output ending": (["a.csv", "--label", "left", "--out", "r.txt"], 1, "ending must be one of .json, .csv, .parquet"),
    "same output twice": (["a.csv", "--label", "left", "--out", "r.csv", "--write-data", "r.csv"], 1, "two names"),
    "output is a folder": (["a.csv", "--label", "left", "--out", "d.csv", "--force"], 1, "d.csv is a folder"),
    "two columns of one name": (["twice.csv", "--label", "y"], 1, "more than one column named 'a'"),
    "broken npz": (["cut.npz"], 1, "cut.npz: is not a whole NPZ file"),
    "no data to write": (["a.npz", "--write-data", "w.csv"], 1, "--write-data needs columns with names"),
    "truncated parquet": (["cut.parquet", "--label", "left"], 1, "cut.parquet: "),
    "bad option": (["a.csv", "--lable", "left"], 2, "unrecognized arguments|ambiguous"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_leaves_nothing_behind(tmp_path, name, monkeypatch):
    arguments, code, said = BAD[name]
    write(tmp_path / "a.csv")
    TABLE.drop(columns="region").to_csv(tmp_path / "b.csv", index=False)
    (tmp_path / "a.xyz").write_text("1")
    (tmp_path / "empty").mkdir()
    (tmp_path / "ragged.csv").write_text("a,b,c\n1,2,x\n3,4\n5,6,y\n")
    (tmp_path / "one.csv").write_text("a,y\n1,0\n2,0\n3,0\n")
    (tmp_path / "cut.parquet").write_bytes(write(tmp_path / "whole.parquet").read_bytes()[:500])
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,0\n2,3,1\n")
    np.savez(tmp_path / "a.npz", X=np.eye(4), y=[0, 1, 0, 1])
    (tmp_path / "cut.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:99])
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    done = run("select", *arguments, "--quiet", check=False)
    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    import re

    assert re.search(said, done.stderr), done.stderr
    if code == 1:
        assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_broken_result_is_said_to_be_one(tmp_path, expected):
    (tmp_path / "r.json").write_text(json.dumps(expected.to_dict())[:200])
    assert "is not whole JSON" in run("explain", tmp_path / "r.json", check=False).stderr
    (tmp_path / "r.json").write_text("[]")
    assert "not a result of belief, but a list" in run("explain", tmp_path / "r.json", check=False).stderr
    assert "cannot be read (No such file" in run("explain", tmp_path / "no.json", check=False).stderr
    (tmp_path / "r.json").write_text(json.dumps({"format": 99}))
    assert "upgrade belief-fs" in run("explain", tmp_path / "r.json", check=False).stderr
