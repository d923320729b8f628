"""ColumnSelection: the label and the features, by name or by position, of tables and files."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix

import belief

rng = np.random.default_rng(0)
LEFT = np.repeat([0, 1], 40)
VALUES = rng.normal(size=(80, 4))
VALUES[:, 0] += 3 * LEFT
VALUES[:, 3] = VALUES[:, 0]
TABLE = np.insert(VALUES, 2, LEFT, axis=1)  # the label is column 2
FRAME = pd.DataFrame(TABLE, columns=["a", "b", "left", "c", "copy"])


def select(X, y=None, **more):
    return belief.select(X, y, 1, random_state=0, task="classification", significance=None, **more)


EXPECTED = belief.select(VALUES, LEFT, 1, random_state=0)
TABLES = {
    "array": TABLE,
    "list": TABLE.tolist(),
    "sparse": csr_array(TABLE),
    "sparse matrix": csr_matrix(TABLE),
    "blocks": [TABLE[:30], TABLE[30:]],
    "pandas": FRAME,
    "polars": pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME}),
    "frames": [FRAME[:30], FRAME[30:]],
}


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *((kind, {"label": 2}) for kind in TABLES),
        *((kind, how) for kind in ("array", "pandas") for how in ({"y": 2}, {"label": -3}, {"label": np.int64(2)})),
    ],
)
def test_select_with_label_by_position(kind, how):
    result = select(TABLES[kind], **how)
    np.testing.assert_allclose(result.weights, EXPECTED.weights)
    names = ["a", "b", "c", "copy"] if kind in ("pandas", "polars", "frames") else ["x0", "x1", "x3", "x4"]
    assert list(result.feature_names) == names


def test_integer_column_names_take_precedence_over_positions():
    numbered = FRAME.set_axis([4, 3, 2, 1, 0], axis=1)
    assert list(select(numbered, label=2, drop=[0]).feature_names) == ["4", "3", "1"]


@pytest.fixture(scope="module")
def expected_of_two():
    return select(VALUES[:, [0, 2]], LEFT)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("how", [{"drop": [4, 1]}, {"candidates": [0, 3]}, {"candidates": [0, 1, 3], "drop": 1}])
def test_drop_and_keep(kind, how, expected_of_two):
    result = select(TABLES[kind], label=2, **how)
    assert list(result.feature_names) == (["a", "c"] if kind in ("pandas", "polars", "frames") else ["x0", "x3"])
    np.testing.assert_allclose(result.weights, expected_of_two.weights)


def test_drop_and_keep_with_array_y():
    assert select(FRAME.drop(columns="left"), LEFT, drop="copy", candidates=["a", "c", "copy"]).feature_names == [
        "a",
        "c",
    ]


def test_select_files_with_column_and_csv_options(tmp_path):
    file = tmp_path / "t.csv"
    FRAME.to_csv(file, sep=";", index=False)
    for label in ({"label": "left"}, {"y": "left"}, {"label": 2}):
        result = select(file, **label, separator=";", drop="copy", candidates=["a", "b", "copy"])
        assert result.feature_names == ["a", "b"]
    FRAME.to_csv(file, index=False, header=False)
    assert select([file], label=2, header=False, drop=[4]).feature_names == ["c0", "c1", "c3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "lefd"}, r"label: there is no column 'lefd' in X \(did you mean 'left'\?\)."),
        ({"label": 5}, "label: there is no column 5 in X, which has 5 columns, counted from 0."),
        ({"label": "left", "drop": "zip"}, "drop: there is no column 'zip' in X, whose columns are a, b, left"),
        ({"label": "left", "y": "a"}, "Both y='a' and label='left' are given. Pass only one of them."),
        (
            {"label": "left", "separator": ";"},
            "separator applies only to CSV files, but X is a DataFrame. Omit separator.",
        ),
        ({"label": "left", "header": False}, "header applies only to CSV files, but X is a DataFrame. Omit header."),
        ({"label": "left", "separator": "ab"}, "separator must be one ASCII character"),
        ({"label": "left", "candidates": "a", "drop": "a"}, "label, drop and candidates exclude every column of X."),
    ],
)
def test_select_rejects_wrong_columns_and_options(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        belief.select(FRAME, **arguments)


def test_column_names_of_arrays_raise():
    with pytest.raises(ValueError, match=r"label: 'left' is a column name, but X has no column names\. Pass"):
        belief.select(TABLE, label="left")
    with pytest.raises(ValueError, match=r"drop: 'a' is a column name, but X has no column names\. Use"):
        belief.select(TABLE, LEFT, drop=["a"])


@pytest.mark.parametrize("given", [{"candidates": []}, {"candidates": np.array([], str)}])
def test_empty_candidates_raise(given):
    with pytest.raises(ValueError, match=r"^candidates is empty. Give at least one column"):
        belief.select(np.eye(6), [0, 1] * 3, 1, **given)


def test_label_array_raises():
    with pytest.raises(ValueError, match=r"^label must be the name or the position of a column of X; got a ndarray"):
        belief.select(np.eye(6), label=np.array([0, 1] * 3))


@pytest.mark.parametrize("feature", [["x0"], ("x0",), {}, True, 1.0])
def test_explain_rejects_invalid_feature(feature):
    X = np.random.default_rng(0).normal(size=(40, 4))
    result = belief.select(X, np.tile([0, 1], 20), 1, random_state=0)
    with pytest.raises(ValueError, match=r"^feature must be the name or the index of a feature"):
        result.explain(feature)


LABELS = {
    "integers": [10, 3, 0, 7],
    "numbers and text": [0, "b", 2.5, "d"],
    "two levels": [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")],
    "dates": list(pd.date_range("2020", periods=4)),
}


@pytest.mark.parametrize("how", ["frame", "label", "blocks", "dask", "selector"])
@pytest.mark.parametrize("kind", LABELS)
def test_selected_names_are_those_of_the_frame(kind, how):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=pd.Index(LABELS[kind]))
    frame[LABELS[kind][2]] += 2 * y
    if how == "selector":
        if kind == "numbers and text":
            pytest.skip("scikit-learn has no columns of mixed labels")
        result = belief.BeliefSelector(2, random_state=0).fit(frame, y).result_
    elif how == "label":
        label = ("y", "") if kind == "two levels" else "y"
        labelled = frame.copy()
        labelled[label] = y
        result = belief.select(labelled, label=label, n_features_to_select=2, random_state=0)
    elif how == "dask":
        if kind == "two levels":
            pytest.skip("dask has no columns of two levels")
        X = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
        result = belief.select(X, y, 2, random_state=0)
    else:
        result = belief.select([frame[:30], frame[30:]] if how == "blocks" else frame, y, 2, random_state=0)
    assert list(frame[result.selected_names].columns) == result.selected_names
    assert result.selected_names[0] == LABELS[kind][2]
    assert result.explain(result.selected_names[0]).rank == 1
    assert result.feature_names == [str(label) for label in LABELS[kind]]
    read = belief.Result.from_dict(json.loads(json.dumps(result.to_dict())))
    if kind != "dates":  # JSON has no dates
        assert read.selected_names == result.selected_names
    assert repr(read) == repr(result)
    if how == "frame":
        belief.report.render(read)


def test_names_of_strings_need_no_labels():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    assert belief.select(frame, np.arange(60) % 2, 1, random_state=0).columns is None
