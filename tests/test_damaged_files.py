"""Files that are damaged or unusual: each is read right or raises one sentence that names the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import belief
from belief.cli import main
from belief.data import ColumnSelection, open_files

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


def test_parquet_page_with_a_wrong_checksum_raises(tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(
        pa.table({"a": X[:, 0], "y": Y}), path, compression="none", use_dictionary=False, write_page_checksum=True
    )
    content = bytearray(path.read_bytes())
    at = content.index(X[10:14, 0].tobytes())
    content[at + 6] ^= 0x01
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.parquet: cannot be read as Parquet: .*checksum"):
        belief.select(path, label="y")


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


@pytest.mark.parametrize("kind", ["offsets", "codes"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_damaged_arrow_data_raises(tmp_path, kind, in_memory):
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, arrow_table().schema) as file:
        file.write(arrow_table())
    damage_arrow(path, kind)
    source = f"pyarrow.ipc.open_file({str(path)!r}).read_all()" if in_memory else repr(str(path))
    code = f"import belief, pyarrow.ipc\ntry: belief.select({source}, label='y')\nexcept ValueError as e: print(e)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "damaged" in done.stdout if in_memory else "rows.arrow: cannot be read as Arrow" in done.stdout
