"""Input files are never overwritten, are read once, and are checked for changes; encodings; copies of columns."""

import gzip
import os
import re
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from conftest import call
from pyarrow import csv, parquet

import belief
from belief.cli import commands as cli
from belief.data.columns import ColumnSelection
from belief.data.files import file_stamp
from belief.data.readers import CsvFiles
from belief.data.stream import open_files
from belief.engines.resources import Resources
from belief.engines.stream import StreamEngine

M = 60


def lines(seed=0, m=M):
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    return [f"{x:.3f},{i % 7},{c}" for i, (x, c) in enumerate(zip(rng.standard_normal(m) + 3 * y, y, strict=True))]


def write_csv(path, seed=0, m=M):
    path.write_text("\n".join(["a,b,y", *lines(seed, m)]) + "\n")
    return path


def write_parquet(path, seed=0, m=M):
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    parquet.write_table(pa.table({"a": rng.standard_normal(m) + 3 * y, "b": np.arange(m) % 7, "y": y}), path)
    return path


def write_libsvm(path, seed=0, m=M):
    rows = (line.split(",") for line in lines(seed, m))
    path.write_text("".join(f"{y} 1:{a} 2:{b}\n" for a, b, y in rows))
    return path


def select(capsys, *arguments):
    return call(capsys, "select", *arguments, "--quiet", "--seed", 0, "--top", 1)


# --- inputs are not overwritten ---


@pytest.mark.linux
@pytest.mark.parametrize("how", ["folder", "spelling", "link", "hard link", "linked folder", "glob"])
@pytest.mark.parametrize("option", ["--write-data", "--out"])
def test_outputs_never_overwrite_inputs(tmp_path, capsys, monkeypatch, how, option):
    (tmp_path / "dir" / "deep").mkdir(parents=True)
    file = write_csv(tmp_path / "dir" / "deep" / "a.csv")
    write_csv(tmp_path / "dir" / "b.csv")
    before, given, out = file.read_bytes(), [tmp_path / "dir"], file
    if how == "spelling":
        monkeypatch.chdir(tmp_path)
        out = "dir/../dir/deep//a.csv"
    elif how == "link":
        (out := tmp_path / "l.csv").symlink_to(file)
    elif how == "hard link":
        (out := tmp_path / "h.csv").hardlink_to(file)
    elif how == "linked folder":
        (tmp_path / "other").symlink_to(tmp_path / "dir")
        given = [tmp_path / "other"]
    elif how == "glob":
        given = sorted((tmp_path / "dir").rglob("*.csv"))
    code, shown, err = select(capsys, *given, "--label", "y", option, out, "--force")
    assert (code, shown) == (2, "")
    assert err == f"belief: {option} {out} would overwrite an input file: choose another name.\n".replace("//", "/")
    assert file.read_bytes() == before


@pytest.mark.linux
def test_report_does_not_overwrite_the_result(tmp_path, capsys):
    select(capsys, write_csv(tmp_path / "a.csv"), "--label", "y", "--out", tmp_path / "r.json")
    (tmp_path / "r.html").hardlink_to(tmp_path / "r.json")
    before = (tmp_path / "r.json").read_bytes()
    code, _, err = call(capsys, "report", tmp_path / "r.json", "--force")
    assert (code, (tmp_path / "r.json").read_bytes()) == (2, before)
    assert "would overwrite the result" in err


# --- copies of columns ---

ODD = {
    "long": [9007199254741993 + i for i in range(M)],
    "zip": [f"{i:05d}" for i in range(M)],
    "price": [f"{i}.50" for i in range(M)],
    "note": ['say "hi"', "a,b", "two\nlines", "NA", "", " x "] * (M // 6),
    "gap": ["", "NA", "7"] * (M // 3),
    "flag": ["true", "false"] * (M // 2),
    "y": ["no", "yes"] * (M // 2),
}


def odd_csv(path):
    text = pa.table({name: [str(v) for v in values] for name, values in ODD.items()})
    csv.write_csv(text, path)
    return path


def written(tmp_path, capsys, source, name):
    code, _, err = call(
        capsys, "select", source, "--label", "y", "--top", len(ODD), "--quiet", "--write-data", tmp_path / name
    )
    assert code == 0, err
    return tmp_path / name


@pytest.mark.filterwarnings("ignore")
def test_write_data_keeps_text_from_csv_to_csv(tmp_path, capsys):
    import csv as plain

    out = written(tmp_path, capsys, odd_csv(tmp_path / "a.csv"), "small.csv")
    with out.open(newline="") as file:
        found = list(plain.reader(file))
    assert found[0] == [*ODD]
    assert [*zip(*found[1:], strict=True)] == [tuple(map(str, values)) for values in ODD.values()]
    assert "\n9007199254741993,00000,0.50," in out.read_text()


@pytest.mark.filterwarnings("ignore")
def test_write_data_chooses_lossless_types_from_csv_to_parquet(tmp_path, capsys):
    found = parquet.read_table(written(tmp_path, capsys, odd_csv(tmp_path / "a.csv"), "small.parquet"))
    kinds = ("int64", "string", "double", "string", "int64", "bool", "string")
    assert {f.name: str(f.type) for f in found.schema} == dict(zip(ODD, kinds, strict=True))
    assert found["long"].to_pylist() == ODD["long"]
    assert found["zip"].to_pylist() == ODD["zip"]
    assert found["gap"].to_pylist()[:3] == [None, None, 7]
    assert found["note"].to_pylist()[:6] == ['say "hi"', "a,b", "two\nlines", "NA", None, " x "]


@pytest.mark.filterwarnings("ignore")
def test_write_data_keeps_types_from_parquet_to_parquet(tmp_path, capsys):
    table = pa.table(
        {
            "long": pa.array(ODD["long"]),
            "small": pa.array(np.arange(M, dtype=np.int8)),
            "single": pa.array(np.arange(M, dtype=np.float32)),
            "money": pa.array(range(M), pa.int32()).cast(pa.decimal128(12, 2)),
            "kind": pa.array(ODD["zip"]).dictionary_encode(),
            "y": pa.array(ODD["y"]),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    found = parquet.read_table(written(tmp_path, capsys, tmp_path / "a.parquet", "small.parquet"))
    assert found.equals(table)


# --- changes between passes ---


def streamed(stream):
    """Return an engine that keeps no rows in memory, so that each pass reads the file."""
    return StreamEngine(stream, "y", Resources(working_memory=2**10))


@pytest.mark.parametrize("how", ["replaced", "in place"])
@pytest.mark.parametrize(
    ("name", "write"), [("a.csv", write_csv), ("a.parquet", write_parquet), ("a.svm", write_libsvm)]
)
def test_file_changed_between_passes_raises(tmp_path, name, write, how):
    file = write(tmp_path / name)
    with streamed(open_files([file], ColumnSelection(None if name == "a.svm" else "y"))) as engine:
        engine.describe()
        if how == "replaced":
            write(tmp_path / f"new-{name}", seed=1).replace(file)
        else:
            write(file, seed=1)
        with pytest.raises(ValueError, match=f"^{file} was changed or replaced during the run. Run again when"):
            list(engine.stream.later_pass())


def test_parquet_change_with_mtime_set_back_is_detected(tmp_path):
    file = write_parquet(tmp_path / "a.parquet")
    stream = open_files([file], ColumnSelection("y"))
    before = file.stat()
    other = parquet.read_table(file)
    other = other.set_column(0, "a", pa.array(np.asarray(other["a"]) * -2))
    with file.open("r+b") as out:
        parquet.write_table(other, out)
        out.truncate(before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_ino) == (before.st_size, before.st_ino)
    with pytest.raises(ValueError, match="was changed or replaced"):
        list(stream.later_pass())


# --- duplicates ---


@pytest.mark.linux
@pytest.mark.parametrize(("name", "write"), [("a.csv", write_csv), ("a.parquet", write_parquet)])
def test_folder_with_link_to_itself_is_read_once(tmp_path, name, write):
    home = tmp_path / "dir"
    (home / "part=1").mkdir(parents=True)
    write(home / "part=1" / name)
    (home / "self").symlink_to(home)
    (home / "part=1" / "up").symlink_to(home / "part=1")
    assert belief.select(home, label="y", n_features_to_select=1).n_rows == M


@pytest.mark.parametrize(("name", "write"), [("a.csv", write_csv), ("a.parquet", write_parquet)])
def test_warns_of_duplicate_files_and_reads_them_once(tmp_path, name, write):
    home = tmp_path / "dir"
    home.mkdir()
    file = write(home / name)
    (home / f"hard-{name}").hardlink_to(file)
    for given in ([home], [file, file], [home, file]):
        with pytest.warns(UserWarning, match=f"{name} is the same file as .*. Each file is read only once"):
            assert belief.select(given, label="y", n_features_to_select=1).n_rows == M


# --- text and encodings ---


@pytest.mark.parametrize("size", [64, 256, 4096, 2**23])
def test_quoted_line_breaks_with_any_block_size(tmp_path, size):
    class Files(CsvFiles):
        block_bytes = size

    words = ["one\ntwo", 'say "no"\r\n', "x" * 900 + "\n", "plain"]
    rows = [f'{i % 5},"{words[i % 4].replace(chr(34), 2 * chr(34))}",{i % 2}' for i in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["n,t,y", *rows]))
    files = Files([tmp_path / "a.csv"], ColumnSelection("y"), [])
    found = pa.Table.from_batches(files.batches(["n", "t"]))
    assert found["t"].cast(pa.string()).to_pylist() == [words[i % 4] for i in range(200)]
    assert found["n"].to_pylist() == [i % 5 for i in range(200)]


def words_csv():
    return "naïve,größe,y\n" + "".join(f"{i % 5},{'äöü'[i % 3]},{'né' if i % 2 else 'mort'}\n" for i in range(M))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_detects_unicode_encodings(tmp_path, encoding, ending):
    text = words_csv().encode(encoding)
    (tmp_path / f"a.{ending}").write_bytes(gzip.compress(text) if ending == "csv.gz" else text)
    found = belief.select(tmp_path / f"a.{ending}", label="y", n_features_to_select=2)
    assert list(found.feature_names) == ["naïve", "größe"]
    assert found.classes.tolist() == ["mort", "né"]


@pytest.mark.parametrize("encoding", ["latin1", "cp1252", "utf-16", "mac-roman"])
def test_encoding_option(tmp_path, capsys, encoding):
    (tmp_path / "a.csv").write_bytes(words_csv().encode(encoding))
    stream = open_files([tmp_path / "a.csv"], ColumnSelection("y", encoding=encoding))
    assert belief.select(stream, n_features_to_select=2).n_rows == M
    out = tmp_path / "w.csv"
    code, shown, err = select(capsys, tmp_path / "a.csv", "--label", "y", "--encoding", encoding, "--write-data", out)
    assert code == 0, err
    assert "naïve" in shown + out.read_text()


def test_undecodable_files_raise(tmp_path, capsys):
    a = tmp_path / "a.csv"
    for text, options, code, said in (
        (
            words_csv().encode("latin1"),
            [],
            1,
            "is not valid UTF-8. Pass the encoding of the file, such as --encoding latin1",
        ),
        (words_csv().encode("utf-16")[:-1], [], 1, "a.csv: the file is not valid utf-16 .truncated data.. Pass"),
        (words_csv().encode(), ["--encoding", "ascii"], 1, "a.csv: the file is not valid ascii"),
        (words_csv().encode(), ["--encoding", "klingon"], 2, "--encoding must be the name of .* got 'klingon'"),
        (words_csv().encode(), ["--encoding", "base64"], 2, "--encoding must be the name of .* got 'base64'"),
        (b"a,b,y\n1,\x00\x00\x00,0\n2,x,1\n", [], 1, "a.csv: contains zero bytes, .*such as --encoding utf-16"),
    ):
        a.write_bytes(text)
        found, out, err = select(capsys, a, "--label", "y", *options)
        assert (found, out) == (code, "")
        assert len(err.splitlines()) == 1
        assert re.search(said, err), err


@pytest.mark.linux
@pytest.mark.parametrize("ending", ["csv", "svm"])
def test_pipe_raises_at_once(tmp_path, ending):
    pipe = tmp_path / f"a.{ending}"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "belief.cli", "select", str(pipe), "--label", "y"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    said = f"belief: {pipe} is a pipe or a device, but files are read several times. Save it to a file first.\n"
    assert done.stderr == said


# --- wide CSV files ---

MEASURED = """
import sys
from belief.cli.commands import main
code = main(sys.argv[1:])
# the peak memory of this process; ru_maxrss includes that of its parent
most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(int(most) / 1024, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.linux
def test_csv_of_100_000_columns_needs_about_a_gigabyte(tmp_path):
    rng = np.random.default_rng(0)
    width, m = 100_000, 60
    X = rng.integers(-5000, 5000, (m, width))
    X[:, 7] += 20_000 * (np.arange(m) % 2)
    names = [f"feature_{j}" for j in range(width)]
    rows = [",".join([*map(str, x), "b" if i % 3 else "", str(i % 2)]) for i, x in enumerate(X.tolist())]
    (tmp_path / "a.csv").write_text("\n".join([",".join([*names, "word", "y"]), *rows]))
    options = ["--label", "y", "--top", "1", "--seed", "0", "--quiet", "--write-data", str(tmp_path / "w.csv")]
    command = [sys.executable, "-c", MEASURED, "select", str(tmp_path / "a.csv"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)  # ten times the usual duration
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w.csv").read_text().startswith("feature_7,y\n")
    megabytes = float(done.stderr.split()[-1])
    assert megabytes < 1250  # MB: 1,000 to read the file, 130 for the tests; depends on the version of Arrow


@pytest.mark.parametrize("option", ["--write-data", "--out", "--report", "--checkpoint"])
def test_outputs_in_input_folder_raise(tmp_path, capsys, option):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a,b,y\n" + "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(40)))
    name = {"--write-data": "w.csv", "--out": "r.json", "--report": "r.html", "--checkpoint": "notes"}[option]
    arguments = ["select", str(tmp_path / "in"), "--label", "y", option, str(tmp_path / "in" / name)]
    assert cli.main(arguments) == 2
    assert "is inside the input folder" in capsys.readouterr().err
    assert [file.name for file in (tmp_path / "in").iterdir()] == ["a.csv"]


def test_file_stamp_differs_if_mtime_is_set_back(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("a,y\n1,0\n")
    before, was = file_stamp(file), file.stat()
    time.sleep(0.05)
    file.write_text("a,y\n2,1\n")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file_stamp(file) != before


@pytest.mark.linux
def test_explain_rejects_pipe(tmp_path, capsys):
    os.mkfifo(tmp_path / "r.json")
    assert cli.main(["explain", str(tmp_path / "r.json")]) == 1
    assert "is not a file" in capsys.readouterr().err
