"""Malformed or extreme tables in memory: the result is correct, or an error of one sentence says what is wrong."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

import belief

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 50)
X = rng.normal(size=(100, 6)) + Y[:, None] * [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]


# --- malformed sparse matrices ---

MALFORMED = {
    "csr index": "A = csr(); A.indices[5] = 10**6",
    "csr negative index": "A = csr(); A.indices[5] = -(10**6)",
    "csr indptr": "A = csr(); A.indptr[3] = 10**6",
    "csr empty": "A = csr(); A.indptr[3] = 10**6; A.indptr[-1] = 0",
    "csr short data": "A = csr(); A.data = A.data[:10]",
    "csc index": "A = csr().tocsc(); A.indices[5] = 10**7",
    "csc indptr": "A = csr().tocsc(); A.indptr[1] = 10**7",
    "bsr index": "A = csr().tobsr((2, 2)); A.indices[5] = 10**6",
    "bsr indptr": "A = csr().tobsr((2, 2)); A.indptr[3] = 10**6",
    "coo row": "A = csr().tocoo(); A.coords[0][5] = 10**7",
    "coo column": "A = csr().tocoo(); A.coords[1][5] = -(10**7)",
    "lil column": "A = csr().tolil(); A.rows[3][0] = 10**6",
    "lil lengths": "A = csr().tolil(); A.data[3] = A.data[3] + [1.0] * 10**5",
    "lil rows": "A = csr().tolil(); A.rows = np.concatenate([A.rows] * 1000)",
    "dok key": "A = csr().todok(); A._dict[10**7, 3] = 1.0",
}


def test_malformed_sparse_matrices_raise():
    code = """
        import numpy as np, belief
        from scipy.sparse import csr_array
        y = np.repeat([0, 1], 50)
        csr = lambda: csr_array(np.random.default_rng(0).integers(0, 3, (100, 6)).astype(float))
        fitted = belief.BeliefSelector(2).fit(csr(), y)
        calls = lambda A: belief.select(A, y), lambda A: belief.select(A, y, drop=[1]), fitted.transform
        for name, damage in CASES.items():
            for i, call in enumerate(calls):
                exec(damage)
                try:
                    call(A)
                    print(name, i, "is accepted")
                except ValueError as error:
                    if not str(error).startswith("X is not a valid sparse matrix: "):
                        print(name, i, error)
    """
    code = textwrap.dedent(code).replace("CASES", repr(MALFORMED))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_every_sparse_format_gives_the_same_result(form):
    A = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    expected = belief.select(A, Y, 3, random_state=0, significance=None)
    for kind, options in ((sparse.csr_array, {}), (sparse.csr_matrix, {"candidates": list(range(6))})):
        found = belief.select(kind(A).asformat(form), Y, 3, random_state=0, significance=None, **options)
        np.testing.assert_array_equal(found.weights, expected.weights)


# --- targets ---

LARGE = np.where(Y, 2**53 + 1, 2**53)  # equal when converted to floats
LARGE_TABLE = pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": LARGE})


@pytest.mark.parametrize(
    ("data", "y"),
    {
        "array": (X, LARGE),
        "array of long doubles": (X, LARGE.astype(np.longdouble)),
        "objects": (X, LARGE.astype(object)),
        "list": (X, LARGE.tolist()),
        "decimals": (X, [Decimal(v) for v in LARGE.tolist()]),
        "series of objects": (X, pd.Series(LARGE, dtype=object)),
        "nullable series": (X, pd.Series(LARGE, dtype="Int64")),
        "polars": (X, pl.Series(LARGE)),
        "Arrow": (X, pa.array(LARGE)),
        "Arrow decimals": (X, pa.array([Decimal(v) for v in LARGE.tolist()])),
        "label of a table": (LARGE_TABLE, "y"),
        "label of blocks": ([LARGE_TABLE[:50], LARGE_TABLE[50:]], "y"),
    }.values(),
)
def test_large_integers_remain_different_classes(data, y):
    assert belief.select(data, y, 2, random_state=0).classes.tolist() == [2**53, 2**53 + 1]


def test_large_integers_in_files_remain_different_classes(tmp_path):
    decimals = pa.array([Decimal(v) for v in LARGE.tolist()], pa.decimal128(18, 0))
    for i, table in enumerate((LARGE_TABLE, LARGE_TABLE.set_column(6, "y", decimals))):
        pa.parquet.write_table(table, tmp_path / f"{i}.parquet")
        found = belief.select(tmp_path / f"{i}.parquet", label="y", n_features_to_select=2)
        assert found.classes.tolist() == [2**53, 2**53 + 1]


def test_unsigned_and_huge_integers_are_classes():
    for low in (2**63, 10**400):
        y = [low + int(v) for v in Y]
        assert belief.select(X, y, 2).classes.tolist() == [low, low + 1]


def cells(*values):
    out = np.empty(100, object)
    out[:] = [values[i % len(values)] for i in range(100)]
    return out


BAD_TARGETS = {
    "masked": (np.ma.array(np.where(Y, 1, -999), mask=np.arange(100) == 3), "missing value .first in row 3"),
    "NaT": (np.array(["2020-01-01", "NaT"] * 50, "M8[D]"), "contains NaT .first in row 1"),
    "missing durations": (np.array([1, "NaT"] * 50, "m8[D]"), "contains NaT .first in row 1"),
    "NaT in a series": (pd.Series([pd.Timestamp("2020"), pd.NaT] * 50), "contains NaT .first in row 1"),
    "infinity among objects": (cells(1, np.inf), "contains infinity"),
    "generator": ((i % 2 for i in range(100)), "y is a generator, which"),
    "set": (set(range(100)), "y is a set, which"),
    "mapping": (dict.fromkeys(range(100), 1), "y is a dict, which"),
    "arrays": (cells(np.array([1, 2]), np.array([3])), "y has values of type ndarray"),
    "lists": ([[1, 2], [2]] * 50, "y has values of type list"),
    "Arrow lists": (pa.array([[1, 2], [2, 3]] * 50), "y has values of type list"),
    "mappings": (cells({}, {1: 2}), "y has values of type dict"),
    "bytes": ([b"a", b"b"] * 50, "Decode them to strings"),
    "bytes among objects": (cells(b"a", b"b"), "Decode them to strings"),
    "complex": (Y + 1j, "type complex128"),
    "records": (np.zeros(100, [("a", float)]), "neither classes nor numbers"),
    "huge integers and fractions": (cells(10**400, 1.5), "too large for floats"),
}


@pytest.mark.parametrize(("y", "message"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_unusable_targets_raise(y, message):
    with pytest.raises(ValueError, match=message):
        belief.select(X, y, 2)
    with pytest.raises(ValueError, match=message):
        belief.BeliefSelector(2).fit(X, y)


@pytest.mark.parametrize("option", ["drop", "candidates", "given"])
@pytest.mark.parametrize("value", [[np.zeros(2)], [[1]], np.zeros((2, 2)), 10**400], ids=range(4))
def test_what_names_no_column_raises(option, value):
    for table in (X, pd.DataFrame(X).rename(columns=str)):
        with pytest.raises(ValueError, match=f"{option}: there is no column") as raised:
            belief.select(table, Y, 2, **{option: value})
        assert len(str(raised.value)) < 300


@pytest.mark.parametrize("option", ["drop", "candidates", "given"])
def test_columns_that_are_no_list_raise(option):
    with pytest.raises(ValueError, match=f"{option} must be a list of columns; got <built-in function len>"):
        belief.select(X, Y, 2, **{option: len})


@pytest.mark.parametrize("option", ["groups", "adjust_for", "sample_weight"])
@pytest.mark.parametrize("value", [set(range(100)), iter(range(100)), dict.fromkeys(range(100), 1), len], ids=range(4))
def test_values_without_an_order_of_rows_raise(option, value):
    with pytest.raises(ValueError, match=f"{option} must"):
        belief.select(X, Y, 2, **{option: value})


def test_huge_weights_raise():
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        belief.select(X, Y, 2, sample_weight=[10**400] * 100)


def test_huge_integers_cannot_be_predicted():
    with pytest.raises(ValueError, match="too large for floats"):
        belief.select(X, [10**400 + i for i in range(100)], 2, task="regression")


def test_binary_target_of_a_file_raises(tmp_path):
    pa.parquet.write_table(pa.table({"a": X[:, 2], "y": [b"a", b"b"] * 50}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="target column 'y' has the type binary"):
        belief.select(tmp_path / "a.parquet", label="y")


# --- cells ---


@pytest.mark.parametrize("values", [cells(np.array([1, 2])), cells([1], [1, 2])], ids=["arrays", "lists"])
def test_cells_that_hold_arrays_are_left_out(values):
    for data in (pd.DataFrame({"a": values, "b": X[:, 2]}), np.column_stack([values, X[:, 2]])):
        with pytest.warns(UserWarning, match=r"1 column is left out: .* \(lists\)"):
            assert len(belief.select(data, Y, 1).weights) == 1


def test_cells_that_hold_huge_integers_raise():
    frame = pd.DataFrame({"a": cells(10**400, 1)}, dtype=object)  # with an inferred dtype, pandas 2 raises
    for data, name in ((frame, "'a'"), (cells(10**400, 1)[:, None], "0")):
        with pytest.raises(ValueError, match=f"column {name} of X has integers too large for floats"):
            belief.select(data, Y, 1)


def test_one_long_cell_takes_its_own_memory_only():
    values = np.array(["a", "b"] * 50, object)
    values[::3] = "x" * 2**20
    for data, y, roles in (
        (pd.DataFrame({"a": values}, dtype=object), Y, {}),
        (values[:, None], Y, {}),
        (values[:, None].tolist(), Y, {}),
        (X, values.tolist(), {}),
        (X, Y, {"groups": values}),
        (X, Y, {"adjust_for": values}),
    ):
        tracemalloc.start()
        belief.select(data, y, 1, **roles)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**26  # 100 cells of 4 MB each would be 400 MB


# --- settings ---


@pytest.mark.parametrize("weight", [1e308, 1e-320])
def test_extreme_class_weights_give_the_same_result_as_equal_weights(weight):
    expected = belief.select(X, Y, 3, random_state=0)
    found = belief.select(X, Y, 3, random_state=0, class_weight={0: weight, 1: weight})
    np.testing.assert_allclose(found.weights, expected.weights)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["n_features_to_select", "n_neighbors", "sample_size", "rounds", "random_state"])
def test_counts_beyond_floats_are_like_large_ones(name):
    expected = belief.select(X, Y, random_state=0) if name == "random_state" else None
    found, large = (belief.select(X, Y, **{"random_state": 0, name: n}) for n in (10**400, 10**9))
    assert sorted(found.selected) == sorted((expected or large).selected)


def test_long_classes_are_shortened_in_messages():
    with pytest.raises(ValueError, match=r"y has only one class, 'x{79}\.\.\., but at least 2 classes"):
        belief.select(X, ["x" * 5000] * 100)
    with pytest.raises(ValueError, match=r"such as 'x{79}\.\.\., but task='regression' needs numbers"):
        belief.select(X, ["x" * 5000, "y"] * 50, task="regression")
