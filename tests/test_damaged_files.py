"""Damaged or unusual files: each is read correctly, or raises an error of one sentence that names the file."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
import pytest

import belief
from belief.cli import main
from belief.data import ColumnSelection, open_files
from belief.data.readers import CsvFiles

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 50)
X = rng.normal(size=(100, 3)) + Y[:, None] * [2.0, 0.0, 0.0]


def csv_text(end: str = "\n") -> str:
    lines = [f"{a!r},{b!r},{c!r},{y}" for (a, b, c), y in zip(X.tolist(), Y.tolist(), strict=True)]
    return end.join(["a,b,c,y", *lines, ""])


def read_rows(path: Path) -> list[dict]:
    stream = open_files([path], ColumnSelection(label="y"))
    return [row for batch in stream.files.batches(["a", "b", "c", "y"]) for row in batch.to_pylist()]


def arrow_table(**columns) -> pa.Table:
    text = [["red", "green", "blue"][i % 3] for i in range(100)]
    return pa.table({"a": X[:, 0], "text": text, "kind": pa.array(text).dictionary_encode(), "y": Y, **columns})


# --- empty lines ---


@pytest.mark.parametrize("start", ["\n", "\n\n", "\ufeff\n", "\r\n", "\ufeff\r\n\r\n", "\r"])
def test_empty_lines_before_the_header_are_skipped(tmp_path, start):
    path = tmp_path / "rows.csv"
    path.write_bytes((start + csv_text(start.strip("\ufeff")[-1] if "\r\n" not in start else "\r\n")).encode())
    assert [row["y"] for row in read_rows(path)] == Y.tolist()


def test_write_data_writes_the_header_once_if_the_first_line_is_empty(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("\n" + csv_text())
    out = tmp_path / "out.csv"
    assert main(["select", str(tmp_path / "rows.csv"), "--label", "y", "--top", "3", "--write-data", str(out)]) == 0
    assert out.read_text() == csv_text()
    assert "100 rows" in capsys.readouterr().out


def test_line_numbers_count_empty_lines_before_the_header(tmp_path):
    (tmp_path / "rows.csv").write_text("\n\n" + csv_text() + "1,2,3\n")
    with pytest.raises(ValueError, match="line 104 has 3 columns"):
        belief.select(tmp_path / "rows.csv", label="y")


# --- Parquet and Arrow ---


def write_parquet_with_a_wrong_checksum(path: Path) -> Path:
    pa.parquet.write_table(
        pa.table({"a": X[:, 0], "y": Y}), path, compression="none", use_dictionary=False, write_page_checksum=True
    )
    content = bytearray(path.read_bytes())
    at = content.index(X[10:14, 0].tobytes())
    content[at + 6] ^= 0x01
    path.write_bytes(content)
    return path


def test_parquet_page_with_a_wrong_checksum_raises(tmp_path):
    path = write_parquet_with_a_wrong_checksum(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows\.parquet: cannot be read as Parquet: .*checksum"):
        belief.select(path, label="y")


def test_page_of_a_dataset_with_a_wrong_checksum_raises(tmp_path):
    dataset = pyarrow.dataset.dataset(write_parquet_with_a_wrong_checksum(tmp_path / "rows.parquet"))
    with pytest.raises(ValueError, match=r"X could not be read: .*checksum"):
        belief.select(dataset, label="y")


def damage_arrow(path: Path, kind: str) -> None:
    """Overwrite offsets of a text column or codes of a category with numbers outside their buffers."""
    content = path.read_bytes()
    text = pa.array([["red", "green", "blue"][i % 3] for i in range(100)])
    old = {
        "offsets": np.frombuffer(text.buffers()[1], np.int32)[10:50],
        "codes": np.arange(100, dtype=np.int32)[10:50] % 3,
    }[kind].tobytes()
    assert old in content
    path.write_bytes(content.replace(old, np.full(40, 2**30, np.int32).tobytes()))


DAMAGED_ARROW = """
import belief, numpy as np, pandas as pd, pyarrow.dataset, pyarrow.ipc, sys
path, column = sys.argv[1:]
table, rows, y = pyarrow.ipc.open_file(path).read_all(), np.random.rand(100, 2), np.arange(100) % 2
ways = {
    "file": lambda: belief.select(path, label="y"),
    "table": lambda: belief.select(table, label="y"),
    "dataset": lambda: belief.select(pyarrow.dataset.dataset(path, format="ipc"), label="y"),
    "reader": lambda: belief.select(table.to_reader(), label="y"),
    "pandas": lambda: belief.select(table.to_pandas(types_mapper=pd.ArrowDtype), label="y"),
    "fit": lambda: belief.BeliefSelector().fit(table.drop_columns("y"), y),
    "target": lambda: belief.select(rows, table[column]),
    "pandas target": lambda: belief.select(rows, table.to_pandas(types_mapper=pd.ArrowDtype)[column]),
    "groups": lambda: belief.select(rows, y, groups=table[column]),
    "adjust_for": lambda: belief.select(rows, y, adjust_for=table.select([column])),
}
for name, select in ways.items():
    try:
        select()
    except ValueError as error:
        print(name, "|", error)
"""


@pytest.mark.parametrize(("kind", "column"), [("offsets", "text"), ("codes", "kind")])
def test_damaged_arrow_data_raises_whatever_way_it_is_passed(tmp_path, kind, column):
    """The test runs in a new process, because damaged data could crash it."""
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, arrow_table().schema) as file:
        file.write(arrow_table())
    damage_arrow(path, kind)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DAMAGED_ARROW, path, column], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = dict(line.split(" | ") for line in done.stdout.splitlines())
    assert "rows.arrow: cannot be read as Arrow" in said.pop("file")
    assert len(said) == 9
    assert all("is damaged: " in text for text in said.values()), said


# --- text that is not a table ---


@pytest.mark.parametrize("header", ['a,"b,c,y', "a" * 200_000 + ",b,c,y"])
def test_column_name_without_end_raises(tmp_path, header):
    path = tmp_path / "rows.csv"
    path.write_text(header + csv_text().removeprefix("a,b,c,y") * 40)
    with pytest.raises(
        ValueError, match=r"rows\.csv: a column name has more than 131,072 characters, perhaps because a quote"
    ):
        belief.select(path, label="y")


def test_long_cell_of_a_wide_file_is_read(tmp_path):
    names = [f"c{i}" for i in range(10_001)]
    rows = [",".join([text, *["1"] * 10_000, str(y)]) for text, y in (("x" * 200_000, 0), ("z", 1), ("z", 0)) * 8]
    (tmp_path / "rows.csv").write_text("\n".join([",".join([*names, "y"]), *rows]))
    stream = open_files([tmp_path / "rows.csv"], ColumnSelection(label="y"))
    (batch,) = stream.files.batches(["c0", "y"])
    assert len(batch["c0"][0].as_py()) == 200_000


def test_long_value_is_shortened_in_the_message(tmp_path):
    (tmp_path / "rows.csv").write_text(csv_text() + "x" * 200_000 + ",1,2,0\n")
    with pytest.raises(ValueError, match=r"column 'a' contains numbers, but also 'x{80}\.\.\.'") as error:
        belief.select(tmp_path / "rows.csv", label="y")
    assert len(str(error.value)) < 400


def test_line_longer_than_any_block_raises(tmp_path):
    class Files(CsvFiles):
        block_bytes, max_block_bytes = 2**12, 2**14

    (tmp_path / "rows.csv").write_text(csv_text() + '"' + csv_text() * 40)
    with pytest.raises(ValueError, match=r"rows\.csv: it has a line of more than 1 GB, perhaps because a quote"):
        list(Files([tmp_path / "rows.csv"], ColumnSelection("y"), []).batches(["a"]))


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
@pytest.mark.parametrize("damage", ["not compressed", "cut", "flipped"])
def test_damaged_compressed_file_is_named(tmp_path, ending, damage):
    content = bytearray({".gz": gzip.compress, ".bz2": bz2.compress}[ending](csv_text().encode()))
    if damage == "flipped":
        content[100:104] = b"\xff\x00\xff\x00"
    content = {"not compressed": csv_text().encode(), "cut": content[: len(content) // 2]}.get(damage, content)
    path = tmp_path / f"rows.csv{ending}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"rows\.csv{ending}: "):
        belief.select(path, label="y")


@pytest.mark.parametrize("separator", ["é", '"', "\n", "\0", "::"])
def test_impossible_separator_raises(tmp_path, separator):
    (tmp_path / "rows.csv").write_text(csv_text())
    with pytest.raises(ValueError, match="separator must be one ASCII character other than a quote or a line break"):
        belief.select(tmp_path / "rows.csv", label="y", separator=separator)


# --- NPZ ---


def test_index_that_promises_too_many_columns_raises(tmp_path):
    """A damaged column index must not exhaust the memory: a selection needs about 340 bytes per column."""
    path = tmp_path / "rows.svm"
    path.write_text("1 1:0.5 2:1\n-1 2:0.5\n1 1:1 999999999999:1\n")
    with pytest.raises(ValueError, match=r"999,999,999,999 features, which need .* of memory, .* wrong column index"):
        belief.select(path, task="classification")


def npz(**entries: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in {"X": npy(X), "y": npy(Y), **entries}.items():
            file.writestr(f"{name}.npy", content)
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def compressed() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, X=X, y=Y)
    return out.getvalue()


def with_flag(content: bytes, local: int, central: int, value: int) -> bytes:
    out = bytearray(content)
    for mark, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        for found in re.finditer(re.escape(mark), content):
            out[found.start() + offset] = value
    return bytes(out)


DAMAGED_NPZ = {
    "compressed data": compressed()[:90] + b"\xff" * 30 + compressed()[120:],
    "encrypted": with_flag(npz(), 6, 8, 1),
    "unknown compression": with_flag(npz(), 8, 10, 99),
    "header": npz(X=npy(X).replace(b"{'descr': ", b"{'descr':(")),
    "zero byte in the header": npz(X=npy(X).replace(b"{'descr'", b"\x00'descr'")),
    "not an array": npz(X=b"hello"),
    "empty": npz(X=b""),
}


@pytest.mark.parametrize("content", DAMAGED_NPZ.values(), ids=DAMAGED_NPZ)
def test_damaged_npz_raises(tmp_path, content):
    (tmp_path / "rows.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.npz: the file is not a valid NPZ file of plain arrays"):
        belief.select(tmp_path / "rows.npz")


@pytest.mark.parametrize(
    "header", [b"(" * 70, b"{'descr': '<f8', 'fortran_order': False, 'shape': (-9, 4), }".ljust(70)]
)
def test_damaged_npy_raises(tmp_path, header):
    (tmp_path / "rows.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes([70, 0]) + header + bytes(800))
    with pytest.raises(ValueError, match=r"rows\.npy: the file is not a valid NPY file of numbers"):
        belief.select(tmp_path / "rows.npy", Y)


# --- names ---


@pytest.mark.parametrize("option", ["--drop", "--candidates", "--label", "--discrete"])
def test_column_with_a_long_name_is_not_looked_for_among_files(tmp_path, capsys, option):
    (tmp_path / "rows.csv").write_text(csv_text())
    name = "x" * 300 + ".csv"
    label = [] if option == "--label" else ["--label", "y"]
    assert main(["select", str(tmp_path / "rows.csv"), *label, option, name]) == 1
    assert f"there is no column '{name}'" in capsys.readouterr().err


def test_file_with_a_long_name_does_not_exist(capsys):
    assert main(["select", f"{'x' * 300}.csv", "--label", "y"]) == 1
    assert "xxx.csv: there is no such file or folder." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["label='x.csv", "candidates=['a.csv", "drop=[1)(.csv"])
def test_message_with_an_odd_file_name_is_printed(tmp_path, capsys, name):
    (tmp_path / name).write_text(csv_text() + "1,2\n")
    assert main(["select", str(tmp_path / name), "--label", "y"]) == 1
    assert "line 102 has 2 columns" in capsys.readouterr().err


def test_names_that_differ_only_in_their_type_raise():
    frame = pd.DataFrame(X[:, :2], columns=[1, "1"])
    with pytest.raises(ValueError, match="X has more than one column named '1'"):
        belief.select(frame, Y, 1)


def test_ranking_has_no_formulas(tmp_path):
    names = ["=1+1", "@a", "-b", "plain"]
    pa.parquet.write_table(pa.table({**dict(zip(names, [*X.T, X[:, 0]], strict=True)), "y": Y}), tmp_path / "a.parquet")
    for ending in ("csv", "parquet"):
        out = str(tmp_path / f"out.{ending}")
        arguments = ["select", str(tmp_path / "a.parquet"), "--label", "y", "--top", "2", "--quiet", "--out", out]
        assert main(arguments) == 0
    assert set(pa.csv.read_csv(tmp_path / "out.csv")["feature"].to_pylist()) == {"'=1+1", "'@a", "'-b", "plain"}
    assert set(pa.parquet.read_table(tmp_path / "out.parquet")["feature"].to_pylist()) == set(names)
