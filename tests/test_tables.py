"""Tables of every type give the same result, without copies where possible."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import belief
from belief.data.labels import read_labels

rng = np.random.default_rng(1)
M = 120
Y = rng.integers(0, 2, M)
COLOUR = np.array(["red", "green", "blue"])[(Y + (rng.random(M) < 0.3)) % 3]
MIXED = pd.DataFrame(
    {
        "age": rng.integers(0, 90, M),
        "height": (170 + 10 * rng.standard_normal(M) + 6 * Y).astype(np.float32),
        "colour": COLOUR,
        "smokes": rng.random(M) < 0.5,
        "grade": pd.Categorical(rng.choice(["A", "B", "C"], M)),
        "score": np.where(rng.random(M) < 0.1, np.nan, rng.standard_normal(M) + Y),
    }
)
SETTINGS = {"random_state": 0, "significance": None}
AS = {
    "pandas": lambda: MIXED,
    "pandas nullable": lambda: MIXED.convert_dtypes(),
    "pandas objects": lambda: MIXED.astype(object),
    "polars": lambda: pl.from_pandas(MIXED),
    "arrow": lambda: pa.Table.from_pandas(MIXED),
    "blocks": lambda: [MIXED[:50], MIXED[50:50], MIXED[50:]],
    "polars blocks": lambda: [pl.from_pandas(MIXED[:1]), pl.from_pandas(MIXED[1:])],
    "object array": lambda: MIXED.to_numpy(object),
    "list of rows": lambda: MIXED.to_numpy(object).tolist(),
}


def encoded():
    """Return MIXED encoded by hand, and the indices of its discrete features."""
    out = MIXED.copy()
    for name in ("colour", "grade"):
        out[name] = np.unique(out[name].astype(str), return_inverse=True)[1]
    return out.astype(float).to_numpy(), [2, 3, 4]


@pytest.fixture(scope="module")
def expected():
    X, discrete = encoded()
    return belief.select(X, Y, 6, discrete_features=discrete, **SETTINGS)


@pytest.mark.parametrize("kind", AS)
def test_result_does_not_depend_on_table_type(kind, expected):
    result = belief.select(AS[kind](), Y, 6, **SETTINGS)
    np.testing.assert_array_equal(result.selected, expected.selected)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-9)
    if kind not in ("object array", "list of rows"):
        assert result.feature_names == list(MIXED.columns)


def test_discrete_features_by_mask_index_and_name(expected):
    X, discrete = encoded()
    frame = pd.DataFrame(X, columns=MIXED.columns)
    mask = np.isin(np.arange(6), discrete)
    by_mask = belief.select(X, Y, 6, discrete_features=mask, **SETTINGS)
    by_name = belief.select(frame, Y, 6, discrete_features=["colour", "smokes", "grade"], **SETTINGS)
    np.testing.assert_array_equal(expected.weights, by_mask.weights)
    np.testing.assert_allclose(expected.weights, by_name.weights, rtol=1e-12)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"])[Y],
        pd.Series(np.array(["no", "yes"])[Y], dtype="category"),
        pl.Series(np.array(["no", "yes"])[Y].tolist()),
        Y.astype(bool),
        Y.astype(float),
        Y[:, None],
        Y.tolist(),
    ],
    ids=["strings", "pandas category", "polars strings", "booleans", "whole floats", "one column", "list"],
)
def test_result_does_not_depend_on_type_of_y(labels, expected):
    X, discrete = encoded()
    found = belief.select(X, labels, 6, discrete_features=discrete, **SETTINGS)
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_integer_column_names():
    """pandas names the columns of tables without a header by integers."""
    frame = pd.DataFrame(encoded()[0])
    result = belief.select(frame, Y, 2, discrete_features=["2", 3], **SETTINGS)
    assert result.feature_names == ["0", "1", "2", "3", "4", "5"]
    assert "2 of 6 features selected" in repr(result)
    expected = belief.select(encoded()[0], Y, 2, discrete_features=[2, 3], **SETTINGS)
    np.testing.assert_array_equal(result.weights, expected.weights)


def test_masked_arrays_and_arrow_labels():
    X, _ = encoded()
    holes = rng.random(X.shape) < 0.1
    expected = belief.select(np.where(holes, np.nan, X), Y, 6, **SETTINGS)
    result = belief.select(np.ma.masked_array(X, holes), pa.array(Y), 6, **SETTINGS)
    np.testing.assert_array_equal(result.weights, expected.weights)


def test_all_missing_column_or_block():
    empty = pl.DataFrame({"a": MIXED["age"].to_numpy(), "b": pl.Series([None] * M)})
    with pytest.warns(UserWarning, match="Column 'b' has no values"):
        belief.select(empty, Y, 1, **SETTINGS)
    blocks = [MIXED[["colour", "age"]][:60], MIXED[["colour", "age"]][60:].assign(colour=np.nan)]
    whole = pd.concat([blocks[0], blocks[1].astype({"colour": object})])
    np.testing.assert_allclose(
        belief.select(blocks, Y, 2, **SETTINGS).weights, belief.select(whole, Y, 2, **SETTINGS).weights, rtol=1e-9
    )


def test_blocks_in_a_deque():
    from collections import deque

    X, _ = encoded()
    np.testing.assert_allclose(
        belief.select(deque([X[:30], X[30:]]), Y, 3, **SETTINGS).weights,
        belief.select(X, Y, 3, **SETTINGS).weights,
        rtol=1e-9,
    )


def test_open_table_does_not_copy_polars_columns():
    import tracemalloc

    from belief.data.table import open_table

    frame = pl.DataFrame({f"c{j}": rng.standard_normal(200_000) for j in range(20)})
    tracemalloc.start()
    open_table(frame)
    assert tracemalloc.get_traced_memory()[1] < frame.estimated_size() / 20
    tracemalloc.stop()


def test_open_table_does_not_copy_arrays():
    """Rows of a float32 array in memory are a view of it."""
    from belief.data.table import open_table

    X = rng.standard_normal((50, 3)).astype(np.float32)
    seen, rows, a = open_table(X).source.rows(np.arange(10, 20), 1, 3)
    assert np.shares_memory(seen, X)
    assert seen.dtype == np.float32
    assert (rows[0], a) == (10, 1)
    frame = pd.DataFrame(X)
    assert np.shares_memory(open_table(frame).source._X, frame.to_numpy())


@pytest.mark.slow
def test_memory_overhead_does_not_grow_with_rows():
    """The peak memory stays below `working_memory` for any number of rows."""
    import tracemalloc

    X = rng.standard_normal((30_000, 60)).astype(np.float32)
    y = rng.integers(0, 2, len(X))
    belief.select(X[:500], y[:500], 5, **SETTINGS)
    peaks = []
    for n in (15_000, 30_000):
        tracemalloc.start()
        belief.select(X[:n], y[:n], 5, sample_size=1000, working_memory=16, random_state=0, n_jobs=2, significance=None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 16 * 2**20
    assert peaks[1] < peaks[0] * 1.5


@pytest.mark.parametrize(
    "y",
    [
        np.arange(-128, 128, dtype=np.int8).repeat(2), np.array([2**64 - 1, 2**64 - 3] * 3, np.uint64),
        np.array([2 - 2**63, -(2**63)] * 2), np.array([0, 255] * 200, np.uint8), np.array([10**6, 1]),
    ],
    ids=["all of int8", "the last of uint64", "the first of int64", "uint8", "far apart"],
)  # fmt: skip
def test_encode_classes_keeps_order_and_type_of_integers(y):
    classes, labels = read_labels(y, len(y), "classification").encode_classes()
    expected, places = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    assert classes.dtype == y.dtype
    np.testing.assert_array_equal(labels, places)
