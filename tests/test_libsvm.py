"""Tests of reading LIBSVM files: round trips with blocks of any size, tolerated variants, errors with line numbers."""

import bz2
import gzip
import lzma
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from belief.data.libsvm import load_libsvm, read_libsvm

READERS = {"load": load_libsvm, "read": lambda *args, **options: list(read_libsvm(*args, **options))}


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


def write(folder, text, name="data.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_whole(path, **options):
    X, y = zip(*read_libsvm(path, **options), strict=True)
    return vstack(X, format="csr"), np.concatenate(y)


def assert_same(blocks, y, X, labels):
    whole = vstack(blocks, format="csr")
    assert whole.shape == X.shape
    assert np.array_equal(whole.indptr, X.indptr)
    assert np.array_equal(whole.indices, X.indices)
    assert np.array_equal(whole.data, X.data)
    assert np.array_equal(y, labels)


@st.composite
def problems(draw):
    """Draw a matrix with an entry in its last column, explicit zeros and empty rows, and finite labels."""
    n_rows, n_features = draw(st.integers(1, 12)), draw(st.integers(1, 30))
    rows = [draw(st.sets(st.integers(0, n_features - 1), max_size=5)) for _ in range(n_rows)]
    rows[draw(st.integers(0, n_rows - 1))].add(n_features - 1)
    indptr = np.cumsum([0] + [len(row) for row in rows])
    finite = st.floats(allow_nan=False, allow_infinity=False)
    values = draw(st.lists(finite, min_size=int(indptr[-1]), max_size=int(indptr[-1])))
    y = draw(st.lists(finite, min_size=n_rows, max_size=n_rows))
    X = csr_array((np.array(values), np.concatenate([sorted(row) for row in rows]), indptr), shape=(n_rows, n_features))
    return X, np.array(y)


@settings(max_examples=150, deadline=None)
@given(problem=problems(), block_bytes=st.integers(1, 200), zero_based=st.booleans(), n_known=st.booleans())
def test_roundtrip_with_any_block_size(problem, block_bytes, zero_based, n_known):
    X, y = problem
    lines = [
        f"{label!r} "
        + " ".join(f"{j + 1 - zero_based}:{v!r}" for j, v in zip(X.indices[a:b], X.data[a:b].tolist(), strict=True))
        for label, a, b in zip(y.tolist(), X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    options = {"zero_based": zero_based, "n_features": X.shape[1] if n_known else None}
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "\n".join(lines))
        blocks, labels = load_libsvm(path, block_bytes=block_bytes, dtype=np.float64, **options)
        assert_same(blocks, labels, X, y)
        streamed, labels = read_whole(path, block_bytes=block_bytes, dtype=np.float64, **options)
        assert_same([streamed], labels, X, y)


@settings(max_examples=300, deadline=None)
@given(
    digits=st.integers(0, 10**21),
    point=st.integers(0, 22),
    power=st.none() | st.integers(-330, 280),
    sign=st.sampled_from(["", "+", "-"]),
)
def test_numbers_are_parsed_like_python_floats(digits, point, power, sign):
    text = str(digits).rjust(point + 1, "0")
    number = sign + text[: len(text) - point] + "." + text[len(text) - point :] + ("" if power is None else f"e{power}")
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), f"{number} 1:{number}")
        blocks, y = load_libsvm(path, dtype=np.float64)
    assert blocks[0].data[0] == y[0] == float(number)


@pytest.mark.parametrize("number", ["9007199254740993", "9007199254740992.9999", "4503599627370497.5", "1e22", "1e23"])
def test_numbers_between_two_floats_are_rounded_like_python_floats(tmp_path, number):
    blocks, y = load_libsvm(write(tmp_path, f"{number} 1:-{number}"), dtype=np.float64)
    assert -blocks[0].data[0] == y[0] == float(number)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("query_id", [None, np.arange(300)])
def test_reads_files_of_dump_svmlight_file(tmp_path, zero_based, query_id):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 80)) < 0.1, rng.random((300, 80)), 0.0)
    X[0, 0] = X[5, 79] = 1.0
    X = csr_array(X)
    y = rng.integers(0, 2, 300)
    path = tmp_path / "data"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, query_id=query_id, comment="two\nlines")
    theirs, labels = load_svmlight_file(str(path), dtype=np.float32)
    blocks, mine = load_libsvm(path, block_bytes=1_000)
    assert len(blocks) > 10
    assert_same(blocks, mine, theirs, labels)
    streamed, mine = read_whole(path, block_bytes=1_000)
    assert_same([streamed], mine, theirs, labels)


def test_a9a(data_home):
    path = data_home / "sparse" / "a9a"
    if not path.is_file():
        pytest.skip("needs the data set a9a")
    theirs, labels = load_svmlight_file(str(path), n_features=123, dtype=np.float32)
    blocks, y = load_libsvm(path, n_features=123, block_bytes=2**19)
    assert len(blocks) > 3
    assert_same(blocks, y, theirs, labels)
    with path.open() as lines:
        assert len(y) == sum(1 for _ in lines) > 32_000
    assert all(np.all(X.data == 1) for X in blocks)
    assert len(np.unique(y)) == 2


def test_types_and_format(tmp_path):
    path = write(tmp_path, "1 3:1 1:2\n-1 2:0.5\n")
    for X, y in [*read_libsvm(path), (load_libsvm(path)[0][0], load_libsvm(path)[1])]:
        assert isinstance(X, csr_array)
        assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
        assert y.dtype == np.float64
        assert X.has_canonical_format
        assert X.toarray().tolist() == [[2, 0, 1], [0, 0.5, 0]]
    assert load_libsvm(path, dtype="float64")[0][0].data.dtype == np.float64


@pytest.mark.parametrize("last", [2**31 - 1, 2**31, 2**40, 10**18 - 1])
def test_large_indices(tmp_path, last):
    """All blocks have the width of the widest block, and the index type that it needs."""
    path = write(tmp_path, f"1 1:1\n2 {last}:2\n3 2:3\n")
    kind = np.int32 if last < 2**31 else np.int64
    blocks, _ = load_libsvm(path, block_bytes=5)
    streamed = [X for X, _ in read_libsvm(path, block_bytes=5)]
    for read in (blocks, streamed):
        assert [X.shape for X in read] == [(1, last)] * 3
        assert [X.indices.tolist() for X in read] == [[0], [last - 1], [1]]
        assert {X.indices.dtype for X in read} == {np.dtype(kind)}


TOLERATED = {
    "plain": "1 1:2 3:4\n0 2:5\n",
    "comments": "# head\n1 1:2 3:4 # 9:9 x\n0 2:5# y\n#tail\n",
    "qid": "1 qid:7 1:2 3:4\n0 qid:8 2:5\n",
    "blank lines": "\n  \n1 1:2 3:4\n\n\t\n0 2:5\n\n",
    "Windows line ends": "1 1:2 3:4\r\n\r\n0 2:5\r\n",
    "no last line end": "1 1:2 3:4\n0 2:5",
    "spaces and tabs": "  1\t1:2   3:4  \n 0  2:5 ",
    "unsorted": "1 3:4 1:2\n0 2:5\n",
    "other ways to write a number": "+1.0 01:+2. 3:.4e1\n-0 2:0.0500E+2\n",
}


@pytest.mark.parametrize("case", TOLERATED)
@pytest.mark.parametrize("block_bytes", [1, 7, 2**25])
def test_tolerated_variants(tmp_path, case, block_bytes):
    path = write(tmp_path, TOLERATED[case])
    blocks, y = load_libsvm(path, block_bytes=block_bytes)
    streamed, labels = read_whole(path, block_bytes=block_bytes)
    for X in (vstack(blocks), streamed):
        assert X.toarray().tolist() == [[2, 0, 4], [0, 5, 0]]
    assert y.tolist() == labels.tolist() == [1, 0]


def test_explicit_zeros_and_empty_rows_are_kept(tmp_path):
    (X,), y = load_libsvm(write(tmp_path, "1\n2 1:0 2:1\n3\n"))
    assert X.indptr.tolist() == [0, 0, 2, 2]
    assert X.data.tolist() == [0, 1]
    assert y.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "compress"), [("a.gz", gzip.compress), ("a.BZ2", bz2.compress), ("a.xz", lzma.compress)]
)
def test_compressed_files(tmp_path, reader, name, compress):
    text = "".join(f"{i % 2} {1 + i % 5}:{i} 7:1\n" for i in range(2_000)).encode()
    plain, packed = write(tmp_path, text), write(tmp_path, compress(text), name)
    expected, labels = load_libsvm(plain, block_bytes=500)
    blocks, y = load_libsvm(packed, block_bytes=500)
    assert len(blocks) == len(expected)
    assert_same(blocks, y, vstack(expected, format="csr"), labels)
    for broken in (compress(text)[:-20], b"1 1:1\n"):
        with pytest.raises(ValueError, match=f"{name}: the file is not a complete .{name[2:]} file"):
            reader(write(tmp_path, broken, name))


def test_several_files_are_concatenated(tmp_path):
    paths = [write(tmp_path, "1 1:1\n", "a"), str(write(tmp_path, "2 5:1\n3 0:1", "b")), write(tmp_path, "4 1:1", "c")]
    blocks, y = load_libsvm(paths, block_bytes=2**20)
    assert [X.shape for X in blocks] == [(1, 6), (1, 6), (1, 6), (1, 6)]  # the last line without an end is a block
    assert [X.indices.tolist() for X in blocks] == [[1], [5], [0], [1]]  # the index 0 makes all files zero-based
    assert y.tolist() == [1, 2, 3, 4]
    streamed, labels = read_whole(paths)
    assert_same([streamed], labels, vstack(blocks, format="csr"), y)


def test_n_features_sets_the_width_of_blocks(tmp_path):
    path = write(tmp_path, "1 1:1\n0 3:1\n")
    for zero_based, first in [("auto", 0), (False, 0), (True, 1)]:
        for X, _ in read_libsvm(path, n_features=9, zero_based=zero_based, block_bytes=1):
            assert X.shape == (1, 9)
        X = load_libsvm(path, n_features=9, zero_based=zero_based)[0][0]
        assert X.shape == (2, 9)
        assert X.indices.tolist() == [first, first + 2]


MALFORMED = {
    "letters for an index": ("1 x:1", {}, "'x:1' is not of the form index:value"),
    "no colon": ("1 3", {}, "'3' is not of the form index:value"),
    "no index": ("1 :3", {}, "':3' is not of the form index:value"),
    "space after the colon": ("1 3: 4", {}, "'3:' has a missing or infinite value"),
    "letters for a value": ("1 3:x", {}, "'3:x' is not of the form index:value with a number"),
    "two points": ("1 3:1.2.3", {}, "'3:1.2.3' is not"),
    "no digits": ("1 3:.", {}, "'3:.' is not"),
    "no exponent": ("1 3:1e", {}, "'3:1e' is not"),
    "underscore": ("1 3:1_0", {}, "'3:1_0' is not"),
    "hexadecimal": ("1 3:0x1", {}, "'3:0x1' is not"),
    "fraction for an index": ("1 2.5:1", {}, "'2.5:1' is not of the form index:value"),
    "no label": ("3:1 4:1", {}, "'3:1' is not a valid label. Labels must be finite numbers"),
    "label of letters": ("spam 4:1", {}, "'spam' is not a valid label"),
    "several labels": ("1,2 4:1", {}, "'1,2' is not a valid label"),
    "NaN label": ("nan 4:1", {}, "'nan' is not a valid label"),
    "label too large": ("1e999 4:1", {}, "'1e999' is not a valid label"),
    "bytes that are no text": (b"1 \xff\xfe:1", {}, r"is not of the form index:value"),
    "NUL": (b"1 1:1\x00", {}, "is not of the form index:value"),
    "NaN": ("1 3:nan", {}, "'3:nan' has a missing or infinite value"),
    "missing": ("1 3:", {}, "'3:' has a missing or infinite value"),
    "infinity": ("1 3:-inf", {}, "'3:-inf' has a missing or infinite value"),
    "too large": ("1 3:1e999", {"dtype": np.float64}, "'3:1e999' has a value that is too large for float64.$"),
    "too large for float32": (
        "1 3:1e39",
        {},
        "'3:1e39' has a value that is too large for float32. Pass dtype=np.float64",
    ),
    "negative index": ("1 -3:1", {}, "'-3:1' has a negative index, but indices start at 0"),
    "index 0 of 1-based": (
        "1 0:1",
        {"zero_based": False},
        "'0:1' has index 0, but indices start at 1. Pass zero_based=True",
    ),
    "beyond the width": (
        "1 9:1",
        {"n_features": 8},
        "'9:1' has an index beyond n_features=8. The largest allowed index is 8",
    ),
    "beyond the width, 0-based": (
        "1 8:1",
        {"n_features": 8, "zero_based": True},
        "'8:1' has.*The largest allowed index is 7",
    ),
    "beyond the width, found 0-based": ("1 0:1 8:1", {"n_features": 8}, "'8:1' has.*The largest allowed index is 7"),
    "index too large": (f"1 {10**18}:1", {}, "an index that is too large. .* index is 999999999999999999"),
    "index of very many digits": ("1 " + "9" * 9_000 + ":1", {}, r"'9+\.\.\.' has an index that is too large"),
    "twice": ("1 3:1 3:2", {}, "index 3 occurs twice, but must occur only once"),
    "twice, apart": ("1 3:1 5:1 03:2", {}, "index 3 occurs twice"),
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("block_bytes", [16, 2**25])
def test_malformed_line_raises(tmp_path, reader, case, block_bytes):
    """The message names the file with the malformed line, and the line number."""
    line, options, message = MALFORMED[case]
    line = line if isinstance(line, bytes) else line.encode()
    good = [b"1 5:1 3:1", b"# note", b"", b"0 7:2\r"] * 4
    paths = [
        write(tmp_path, "1 1:1\n", "good.txt"),
        write(tmp_path, b"\n".join([*good, line, b"1 2:2", b""]), "bad.txt"),
    ]
    with pytest.raises(ValueError, match=rf"bad\.txt, line 17: .*{message}"):
        reader(paths, block_bytes=block_bytes, **options)


EMPTY = {"nothing": "", "a line end": "\n", "comments": "# 1 1:1\n  # x", "spaces": "  "}


@pytest.mark.parametrize("case", EMPTY)
def test_empty_file_raises(tmp_path, reader, case):
    with pytest.raises(ValueError, match=r"empty\.txt: the file is empty. It has no line with a label"):
        reader([write(tmp_path, "1 1:1"), write(tmp_path, EMPTY[case], "empty.txt")])


def test_file_without_entries_needs_n_features(tmp_path, reader):
    path = write(tmp_path, "1\n0\n")
    with pytest.raises(ValueError, match=r"no line has an index:value entry\. Pass n_features"):
        reader(path)
    assert load_libsvm(path, n_features=3)[0][0].shape == (2, 3)


def test_missing_file_raises_before_reading(tmp_path):
    bad = write(tmp_path, "x")
    for read in (read_libsvm, load_libsvm):  # read_libsvm raises before the first iteration
        with pytest.raises(FileNotFoundError, match=r"gone\.txt: there is no such file"):
            read([bad, tmp_path / "gone.txt"])


ARGUMENTS = {
    "no path": ({"paths": []}, "paths is empty"),
    "n_features": ({"n_features": 0}, "n_features must be a positive integer or None; got 0"),
    "zero_based": ({"zero_based": "no"}, "zero_based must be True, False or 'auto'; got 'no'"),
    "block_bytes": ({"block_bytes": 1.5}, "block_bytes must be a positive integer; got 1.5"),
    "dtype": ({"dtype": int}, "dtype must be float32 or float64"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_invalid_arguments_raise(tmp_path, case):
    options, message = ARGUMENTS[case]
    for read in (read_libsvm, load_libsvm):
        with pytest.raises(ValueError, match=message):
            read(**{"paths": write(tmp_path, "1 1:1")} | options)
