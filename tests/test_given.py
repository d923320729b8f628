"""Columns by name or by number, in Python as on the command line; and the words of the face that was used."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix

import belief
from belief.datasets import CHURN

rng = np.random.default_rng(0)
LEFT = np.repeat([0, 1], 40)
VALUES = rng.normal(size=(80, 4))
VALUES[:, 0] += 3 * LEFT
VALUES[:, 3] = VALUES[:, 0]
TABLE = np.insert(VALUES, 2, LEFT, axis=1)  # the label is column 2
FRAME = pd.DataFrame(TABLE, columns=["a", "b", "left", "c", "copy"])


def select(X, y=None, **more):
    return belief.select(X, y, 1, random_state=0, task="classification", **more)


WANTED = belief.select(VALUES, LEFT, 1, random_state=0)
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


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("how", [{"label": 2}, {"y": 2}, {"label": -3}, {"label": np.int64(2)}])
def test_the_label_is_a_column_by_its_number(kind, how):
    result = select(TABLES[kind], **how)
    np.testing.assert_allclose(result.weights, WANTED.weights)
    names = ["a", "b", "c", "copy"] if kind in ("pandas", "polars", "frames") else ["x0", "x1", "x3", "x4"]
    assert list(result.feature_names) == names


@pytest.mark.parametrize("kind", ["pandas", "polars", "frames"])
@pytest.mark.parametrize("how", [{"y": "left"}, {"label": "left"}])
def test_the_label_is_a_column_by_its_name(kind, how):
    np.testing.assert_allclose(select(TABLES[kind], **how).weights, WANTED.weights)


def test_a_column_whose_name_is_a_number_comes_before_the_one_with_that_number():
    numbered = FRAME.set_axis([4, 3, 2, 1, 0], axis=1)
    assert list(select(numbered, label=2, drop=[0]).feature_names) == ["4", "3", "1"]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("how", [{"drop": [4, 1]}, {"keep": [0, 3]}, {"keep": [0, 1, 3], "drop": 1}])
def test_columns_are_dropped_and_kept(kind, how):
    result = select(TABLES[kind], label=2, **how)
    assert list(result.feature_names) == (["a", "c"] if kind in ("pandas", "polars", "frames") else ["x0", "x3"])
    np.testing.assert_allclose(result.weights, select(VALUES[:, [0, 2]], LEFT).weights)


def test_and_by_name_beside_a_y():
    assert select(FRAME.drop(columns="left"), LEFT, drop="copy", keep=["a", "c", "copy"]).feature_names == ["a", "c"]


def test_files_take_what_the_command_line_takes(tmp_path):
    file = tmp_path / "t.csv"
    FRAME.to_csv(file, sep=";", index=False)
    for label in ({"label": "left"}, {"y": "left"}, {"label": 2}):
        result = select(file, **label, separator=";", drop="copy", keep=["a", "b", "copy"])
        assert result.feature_names == ["a", "b"]
    FRAME.to_csv(file, index=False, header=False)
    assert select([file], label=2, header=False, drop=[4]).feature_names == ["c0", "c1", "c3"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"label": "lefd"}, r"label: there is no column 'lefd' in X \(did you mean 'left'\?\)."),
        ({"label": 5}, "label: there is no column 5 in X, which has 5 columns, counted from 0."),
        ({"label": "left", "drop": "zip"}, "drop: there is no column 'zip' in X, whose columns are a, b, left"),
        ({"label": "left", "y": "a"}, "Both y='a' and label='left' are given. Pass only one of them."),
        ({"label": "left", "separator": ";"}, "separator applies only to CSV files, but X is a DataFrame. Omit it."),
        ({"label": "left", "header": False}, "header applies only to CSV files, but X is a DataFrame. Omit it."),
        ({"label": "left", "separator": "ab"}, "separator must be one character; got 'ab'."),
        ({"label": "left", "keep": "a", "drop": "a"}, "label, drop and keep leave no feature in X."),
    ],
)
def test_what_is_not_meant_is_refused_in_the_words_of_python(arguments, said):
    with pytest.raises((TypeError, ValueError), match=said):
        belief.select(FRAME, **arguments)


def test_names_where_there_are_none():
    with pytest.raises(ValueError, match=r"label: 'left' is a column name, but X has no column names\. Pass"):
        belief.select(TABLE, label="left")
    with pytest.raises(ValueError, match=r"drop: 'a' is a column name, but X has no column names\. Use"):
        belief.select(TABLE, LEFT, drop=["a"])


def test_a_stream_knows_its_own():
    stream = belief.data.open_files([CHURN], belief.data.ColumnSelection("left"))
    for given in ({"drop": "age"}, {"separator": ";"}, {"label": "left"}, {"y": LEFT}):
        with pytest.raises(ValueError, match=f"^{next(iter(given))} cannot be changed for an open stream. Omit it"):
            belief.select(stream, **given)


@pytest.mark.parametrize("given", [{"keep": []}, {"keep": np.array([], str)}])
def test_nothing_to_choose_from_is_not_everything(given):
    with pytest.raises(ValueError, match=r"^keep is empty. Give at least one column"):
        belief.select(np.eye(6), [0, 1] * 3, 1, **given)


def test_the_classes_themselves_are_y():
    with pytest.raises(ValueError, match=r"^label must be the name or the position of a column of X; got a ndarray"):
        belief.select(np.eye(6), label=np.array([0, 1] * 3))


@pytest.mark.parametrize("feature", [["x0"], ("x0",), {}, True, 1.0])
def test_one_feature_is_explained_by_its_name_or_index(feature):
    X = np.random.default_rng(0).normal(size=(40, 4))
    result = belief.select(X, np.tile([0, 1], 20), 1, random_state=0)
    with pytest.raises(ValueError, match=r"^feature must be the name or the index of a feature"):
        result.explain(feature)
