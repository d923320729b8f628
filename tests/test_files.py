"""Files of all formats, in memory and streamed: equal results, the order of rows, the number of passes, and memory."""

import bz2
import gzip
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import select_in_blocks
from pyarrow import csv, dataset, feather, parquet
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

import belief
from belief.data.columns import ColumnSelection
from belief.data.labels import Labels
from belief.data.stream import open_files

M = 500


def mixed_table():
    """Return a table with a column of every type, some with missing values."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, M)
    words = np.array(["no", "maybe", "yes", "never"])[np.clip(y + rng.integers(0, 3, M), 0, 3)]
    gaps = rng.random(M) < 0.1
    return pa.table(
        {
            "float": pa.array(rng.standard_normal(M) + y),
            "small": pa.array((np.round(8 * (rng.standard_normal(M) - y)) / 8).astype(np.float32)),
            "gaps": pa.array(rng.standard_normal(M).round(6), mask=gaps),
            "whole": pa.array(rng.integers(0, 50, M) + 9 * y, mask=gaps),
            "text": pa.array(words.tolist(), mask=~gaps & (rng.random(M) < 0.05)),
            "flag": pa.array(rng.random(M) < 0.3 + 0.4 * y, mask=gaps),
            "money": pa.array([Decimal(int(v)) / 100 for v in rng.integers(0, 9999, M)], pa.decimal128(12, 2)),
            "kind": pa.array(words[::-1].tolist()).dictionary_encode(),
            "nothing": pa.nulls(M, pa.float64()),
            "class": pa.array(np.array(["a", "b"])[y].tolist()),
        }
    )


TABLE = mixed_table()
SETTINGS = {"random_state": 0, "n_features_to_select": 4, "sample_size": 200, "significance": None}


def to_csv(path, sep=","):
    csv.write_csv(TABLE, path, csv.WriteOptions(delimiter=sep, quoting_style="none"))


def packed(pack, suffix):
    def write(path):
        to_csv(path.with_suffix(""))
        path.write_bytes(pack(path.with_suffix("").read_bytes()))
        path.with_suffix("").unlink()

    return f"a.csv{suffix}", write


def folder(path):
    path.mkdir()
    parquet.write_table(TABLE.slice(0, 123), path / "0.parquet", row_group_size=50)
    parquet.write_table(TABLE.slice(123), path / "1.parquet")


FORMATS = dict(
    [
        ("a.csv", to_csv),
        ("a.tsv", lambda path: to_csv(path, "\t")),
        packed(gzip.compress, ".gz"),
        packed(bz2.compress, ".bz2"),
        packed(lambda text: pa.compress(text, "zstd", asbytes=True), ".zst"),
        ("a.parquet", lambda path: parquet.write_table(TABLE, path, row_group_size=70)),
        ("folder", folder),
        ("a.feather", lambda path: feather.write_feather(TABLE, path, chunksize=90)),
        ("a.arrow", lambda path: feather.write_feather(TABLE, path, "uncompressed")),
    ]
)


@pytest.fixture
def written(request, tmp_path):
    path = tmp_path / request.param
    FORMATS[request.param](path)
    return path


def open_in_blocks(paths, label="class", **options):
    """Open files that are small, but are read in many blocks."""
    stream = open_files(paths, ColumnSelection(label, **options))
    stream.files.batch_bytes, stream.files.block_bytes = 4 * 10 * 64, 4096
    return stream


@pytest.fixture(scope="module")
def expected():
    with pytest.warns(UserWarning, match="'nothing' has no values"):
        return belief.select(TABLE.drop(["class"]), TABLE["class"], **SETTINGS)


def same(result, expected):
    assert result.feature_names == expected.feature_names
    np.testing.assert_array_equal(result.selected, expected.selected)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-9)
    np.testing.assert_allclose(result.redundancy, expected.redundancy, rtol=1e-9)
    assert result.classes.tolist() == expected.classes.tolist()
    assert result.n_rows == expected.n_rows


@pytest.mark.filterwarnings("ignore:Column 'nothing'")
@pytest.mark.parametrize("written", FORMATS, indirect=True)
def test_select_gives_same_result_for_every_format(written, expected):
    same(belief.select(str(written), label="class", **SETTINGS), expected)
    stream = open_in_blocks([written])
    assert len(list(stream.first_pass(Labels()))) > 4
    same(select_in_blocks(open_in_blocks([written]), **SETTINGS), expected)


@pytest.mark.filterwarnings("ignore:Column 'nothing'")
def test_select_gives_same_result_for_frames(expected):
    polars = pytest.importorskip("polars")
    same(belief.select(polars.from_arrow(TABLE), label="class", **SETTINGS), expected)
    same(belief.select(TABLE, label="class", **SETTINGS), expected)


@pytest.mark.filterwarnings("ignore:Column 'nothing'")
def test_partitioned_folder(tmp_path):
    order = TABLE.append_column("day", pa.array(np.arange(M) // 200))
    dataset.write_dataset(order, tmp_path / "days", format="parquet", partitioning=["day"], partitioning_flavor="hive")
    assert sorted(p.name for p in (tmp_path / "days").iterdir()) == ["day=0", "day=1", "day=2"]
    want = belief.select(order, label="class", **SETTINGS)
    same(select_in_blocks(open_in_blocks([tmp_path / "days"]), **SETTINGS), want)
    want = belief.select(order.drop(["class"]), label="day", **SETTINGS)
    same(select_in_blocks(open_in_blocks([tmp_path / "days"], "day", drop=["class"]), **SETTINGS), want)


@pytest.mark.parametrize("written", ["a.csv", "a.parquet", "folder", "a.feather"], indirect=True)
def test_stream_keeps_order_of_rows(written):
    stream = open_in_blocks([written], candidates=["float"])
    for blocks in (stream.first_pass(Labels()), stream.first_pass(Labels())):
        np.testing.assert_allclose(np.concatenate([block.whole() for block in blocks])[:, 0], TABLE["float"].to_numpy())


def test_files_are_concatenated_in_given_order(tmp_path):
    parquet.write_table(TABLE.slice(0, 99), tmp_path / "z.parquet")
    parquet.write_table(TABLE.slice(99), tmp_path / "a.parquet")
    stream = open_files(
        [tmp_path / "z.parquet", tmp_path / "a.parquet"], ColumnSelection("class", candidates=["float"])
    )
    np.testing.assert_array_equal(
        np.concatenate([block.whole() for block in stream.first_pass(Labels())])[:, 0], TABLE["float"].to_numpy()
    )


@pytest.mark.filterwarnings("ignore:Column 'nothing'")
def test_integers_and_floats_in_two_files_are_unified(tmp_path, expected):
    halves = [TABLE.slice(0, 250), TABLE.slice(250)]
    place = TABLE.column_names.index("whole")
    halves[1] = halves[1].set_column(place, "whole", halves[1]["whole"].cast(pa.float64()))
    halves[1] = halves[1].select([*reversed(TABLE.column_names)])  # columns may be in another order
    for i, half in enumerate(halves):
        parquet.write_table(half, tmp_path / f"{i}.parquet")
    stream = open_in_blocks([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    same(select_in_blocks(stream, **SETTINGS), expected)


def test_pandas_index_is_not_a_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "y": [0, 1, 0, 1]}, index=[3, 5, 8, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_files([tmp_path / "a.parquet"], ColumnSelection("y")).names == ["a"]


def test_type_of_column_that_begins_with_missing_values(tmp_path):
    long = "x" * 10_000  # so that the first values are not in the first block of 8 MB
    rows = [f"{i % 5},{'' if i < 900 else i % 7},{'' if i < 950 else 'no'},,{i % 2},{long}" for i in range(1000)]
    (tmp_path / "a.csv").write_text("a,late,word,never,y,long\n" + "\n".join(rows))
    stream = open_files([tmp_path / "a.csv"], ColumnSelection("y", drop=["long"]))
    assert stream.discrete.tolist() == [False, False, True, False]
    X = np.concatenate([block.whole() for block in stream.later_pass()])
    assert np.isnan(X[:900, 1]).all()
    np.testing.assert_array_equal(X[900:, 1], np.arange(900, 1000) % 7)


def test_select_from_libsvm_and_npz(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.where(rng.random((200, 12)) < 0.3, rng.standard_normal((200, 12)).round(3), 0).astype(np.float32)
    X[:, 2] += y
    X[0, 11] = 1  # so that the file contains the last column
    want = belief.select(csr_matrix(X), y, 3, random_state=0)
    dump_svmlight_file(csr_matrix(X), y, str(tmp_path / "a.svm"), zero_based=False)
    (tmp_path / "a.svm.gz").write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes()))
    np.savez(tmp_path / "a.npz", X=X, y=y)
    for name in ("a.svm", "a.svm.gz", "a.npz"):
        result = belief.select(tmp_path / name, None, 3, random_state=0)
        np.testing.assert_array_equal(result.selected, want.selected)
        np.testing.assert_allclose(result.weights, want.weights, rtol=1e-6)
    stream = open_files([tmp_path / "a.svm"], ColumnSelection())
    streamed = select_in_blocks(stream, n_features_to_select=3, random_state=0)
    np.testing.assert_allclose(streamed.weights, want.weights, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Column 'nothing'")
@pytest.mark.parametrize("batch_size", [1.0, 0.02])
def test_number_of_passes_does_not_depend_on_batches(tmp_path, batch_size):
    parquet.write_table(TABLE, tmp_path / "a.parquet", row_group_size=100)
    stream, asked = open_in_blocks([tmp_path / "a.parquet"]), []
    batches = stream.files.batches
    stream.files.batches = lambda columns: asked.append(columns) or batches(columns)
    select_in_blocks(stream, batch_size=batch_size, **SETTINGS | {"significance": "permutation"})
    assert len(asked) == 3


MEASURED = """
import sys
from belief.cli.commands import main
code = main(sys.argv[1:])
print([int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")][0], file=sys.stderr)
sys.exit(code)
"""


def peak_mb(*arguments):
    command = [sys.executable, "-c", MEASURED, "select", *map(str, arguments), "--label", "y", "--quiet", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stderr) / 1024


@pytest.mark.slow
@pytest.mark.linux
def test_memory_is_less_than_file_size(tmp_path):
    """A file of 350 MB needs less memory than its size, and the second half of its rows needs little more memory."""
    rng = np.random.default_rng(0)
    m, F = 40_000, 100
    y = rng.integers(0, 2, m)
    X = rng.standard_normal((F, m), dtype=np.float32)
    X[7] += 5 * y
    piece = pa.table([*X, y], names=[*(f"f{j}" for j in range(F)), "y"])
    sizes = {"tiny": 0, "half": 11, "whole": 22}
    for name, pieces in sizes.items():
        with parquet.ParquetWriter(tmp_path / f"{name}.parquet", piece.schema, use_dictionary=False) as out:
            for _ in range(pieces):
                out.write_table(piece)
            out.write_table(piece.slice(0, 1000))
    options = ["--sample-size", 50, "--top", 3, "--working-memory", 16, "--copies", "keep"]
    options += ["--out", tmp_path / "r.json", "--force"]
    size = (tmp_path / "whole.parquet").stat().st_size / 2**20
    assert size > 330
    # On average, the second half of the file adds 170 MB to its size and 30 MB to the peak. But the peaks of a file
    # differ by up to 42 MB between runs, so the smallest of three runs counts.
    tiny = half = whole = np.inf
    for _ in range(3):
        peaks = [peak_mb(tmp_path / f"{name}.parquet", *options) for name in sizes]
        tiny, half, whole = np.minimum([tiny, half, whole], peaks)
        if whole - tiny < size / 1.2 and whole - half < size / 4:
            break
    assert json.loads((tmp_path / "r.json").read_text())["selected"][0] == 7
    assert whole - tiny < size / 1.2
    assert whole - half < size / 4


def test_unused_category_is_not_a_class(tmp_path):
    y = pd.Categorical(["a", "b"] * 30, categories=["a", "b", "gone"])
    pd.DataFrame({"x": np.arange(60) % 7, "y": y}).to_parquet(tmp_path / "a.parquet")
    assert belief.select(str(tmp_path / "a.parquet"), label="y", n_features_to_select=1).classes.tolist() == ["a", "b"]


def test_folder_of_single_file_is_not_a_partition(tmp_path):
    (tmp_path / "run=3").mkdir()
    pd.DataFrame({"x": np.arange(60) % 7, "y": np.arange(60) % 2}).to_parquet(tmp_path / "run=3" / "a.parquet")
    found = belief.select(str(tmp_path / "run=3" / "a.parquet"), label="y", n_features_to_select=1)
    assert list(found.feature_names) == ["x"]


def test_libsvm_codes_are_exact(tmp_path):
    lines = [f"{i % 2} 1:{16777216 + i % 2} 2:{i % 5 + 1}" for i in range(60)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    chosen = {"n_features_to_select": 2, "random_state": 0}
    assert belief.select(str(tmp_path / "a.svm"), discrete_features=[0], **chosen).selected[0] == 0


def test_csv_codes_beyond_float_precision_are_exact(tmp_path):
    table = pd.DataFrame({"b": np.arange(60) % 7, "id": 2**53 + np.arange(60) % 2, "y": np.arange(60) % 2})
    table.to_csv(tmp_path / "a.csv", index=False)
    for discrete in ("id", ["id"], [1], [False, True]):
        found = belief.select(str(tmp_path / "a.csv"), label="y", discrete_features=discrete, n_features_to_select=1)
        assert found.selected_names == ["id"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"y": [0, 1]}, "X is a file, so y cannot hold the values"), ({"label": "list"}, "must be numeric")],
)
def test_unusable_targets_of_files_raise(tmp_path, options, message):
    table = pa.table({"x": np.arange(60) % 7, "y": np.arange(60) % 2, "list": [[1]] * 60})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        belief.select(str(tmp_path / "a.parquet"), **options)


def test_select_from_files_of_timestamps_gives_the_same_result_as_from_memory(tmp_path):
    """The standard deviations of large numbers do not depend on how the rows are divided into blocks."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = 1.7e18 + rng.normal(0, 1e4, (300, 6)) + np.outer(y, [5e3, 4e3, 0, 0, 0, 0])
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for path, part in zip(paths, (frame.assign(y=y)[:150], frame.assign(y=y)[150:]), strict=True):
        part.to_parquet(path)
    settings = {"n_features_to_select": 3, "random_state": 0}
    found, expected = select_in_blocks(open_in_blocks(paths, "y"), **settings), belief.select(frame, y, **settings)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
    assert found.selected.tolist() == expected.selected.tolist()
