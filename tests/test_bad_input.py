"""Error messages for bad input: one line that names the parameter or column, the value, and the fix."""

import warnings

import numpy as np
import pandas as pd
import pytest

import belief
from belief import BeliefSelector

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4))
Y = np.repeat([0, 1], 20)
FRAME = pd.DataFrame(X, columns=["age", "height", "weight", "pulse"])


def with_value(value, column=1, X=X):
    out = X.copy()
    out[3, column] = value
    return out


BAD_INPUT = {
    "y missing": ((X, None), {}, "requires y to be passed"),
    "y of another length": ((X, Y[:39]), {}, r"X has 40, y has 39"),
    "y two-dimensional": ((X, np.column_stack([Y, Y])), {}, r"y should be a 1d array.*\(40, 2\)"),
    "y a table of two columns": ((X, pd.DataFrame({"a": Y, "b": Y})), {}, r"got a table of shape \(40, 2\) instead"),
    "one class": ((X, np.zeros(40)), {}, "y has only one class, 0.0, but at least 2 classes are needed"),
    "regression target": ((X, rng.random(40)), {"task": "classification"}, "regression target.*KBinsDiscretizer"),
    "NaN in y": ((X, np.where(Y, 1.0, np.nan)), {}, r"Input y contains NaN \(first in row 0\)"),
    "None in y": ((X, np.array(["a", None] * 20, object)), {}, r"missing value \(first in row 1\)"),
    "y of mixed types": ((X, np.array(["a", 1] * 20, object)), {}, "cannot be compared .int, str."),
    "values too large to square": ((with_value(1e200), Y), {}, r"too large to square, in column 'x1' .* to 1e\+200"),
    "values too small to square": (
        (np.column_stack([X, Y * 1e-170]), Y), {}, r"too close together .* column 'x4' \(from 0 to 1e-170\): multiply"
    ),
    "mostly unique numbers": (
        (np.tile(X, (5, 1)), np.arange(200)), {"task": "classification"}, "it has 200 distinct numbers in 200 rows"
    ),
    "fractions as objects": (
        (X, np.array([0.5, 1.0] * 20, object)), {"task": "classification"}, "it has fractions, such as 0.5"
    ),
    "NA in y": ((X, pd.Series(["a", pd.NA] * 20, dtype="string")), {}, r"missing value \(first in row 1\)"),
    "two columns of one name": ((FRAME.set_axis([*"abac"], axis=1), Y), {}, "more than one column named 'a'"),
    "codes beyond floats": ((np.full((40, 2), 2**60), Y), {"discrete_features": [1]}, "column 1 is .* to strings"),
    "verbose": ((X, Y), {"verbose": "yes"}, "verbose must be 0, 1 or more; got 'yes'"),
    "infinity": ((with_value(np.inf), Y), {}, "contains infinity, in column 'x1'"),
    "infinity in a frame": ((FRAME.replace(FRAME.iloc[0, 2], -np.inf), Y), {}, "infinity, in column 'weight'"),
    "every feature constant": ((np.ones((40, 3)), Y), {}, "Every feature of X is constant"),
    "everything missing": ((np.full((40, 3), np.nan), Y), {}, "Every value of X is missing"),
    "no rows": ((X[:0], Y[:0]), {}, r"X has no rows.*\(0, 4\)"),
    "no columns": ((X[:, :0], Y), {}, r"X has no columns.*\(40, 0\)"),
    "one-dimensional X": ((X[:, 0], Y), {}, "Expected 2D array.*reshape"),
    "ragged X": (([[1, 2], [3]], [0, 1]), {}, "rows have different lengths"),
    "complex X": ((X + 1j, Y), {}, "Complex data not supported"),
    "no usable column": ((pd.DataFrame({"tags": [["a"]] * 40}), Y), {}, "X has no usable column. 1 column is left out"),
    "odd objects": ((pd.DataFrame({"a": X[:, 0], "odd": [object()] * 40}), Y), {}, "column 'odd' of X contains object"),
    "strings and numbers": ((pd.DataFrame({"odd": ["a", 1] * 20}, dtype=object), Y), {}, "contains int, str"),
    "blocks of other widths": (([X[:20], X[20:, :3]], Y), {}, "block 0 has 4 columns, block 1 has 3"),
    "blocks of other columns": (([FRAME[:20], FRAME[20:].rename(columns={"age": "agee"})], Y), {}, "block 1.*'agee'"),
    "k too small": ((X, Y), {"n_neighbors": 0}, "n_neighbors must be 'auto' or an integer of at least 1; got 0"),
    "k not whole": ((X, Y), {"n_neighbors": 2.5}, "n_neighbors must be .* got 2.5"),
    "k a boolean": ((X, Y), {"n_neighbors": True}, "n_neighbors must be .* got True"),
    "none to select": ((X, Y), {"n_features_to_select": 0}, "n_features_to_select must be .* got 0"),
    "share to select": ((X, Y), {"n_features_to_select": 1.5}, r"share of the features in \(0, 1\]; got 1.5"),
    "sample": ((X, Y), {"sample_size": 0.0}, "sample_size must be 'auto', 'fixed', an integer .* got 0.0"),
    "sample by a wrong word": ((X, Y), {"sample_size": "all"}, "sample_size must be 'auto'.* got 'all'"),
    "sample below the classes": ((X, Y), {"sample_size": 1, "sampling": "proportional"}, "at least one row of"),
    "batch": ((X, Y), {"batch_size": 1.01}, r"batch_size must be a share of the sample in \(0, 1\]; got 1.01"),
    "kappa": ((X, Y), {"kappa": -0.1}, r"kappa must be a number in \[0, 1\]; got -0.1"),
    "theta": ((X, Y), {"theta": "median"}, "theta must be 'auto', 'mean' or a number .* got 'median'"),
    "theta of agreement": ((X, Y), {"theta": 1.5}, "theta must be 'auto' or a number up to 1; got 1.5"),
    "theta negative": ((X, Y), {"theta": -1.0}, "theta must be .* got -1.0"),
    "eta": ((X, Y), {"eta": float("nan")}, "eta must be a number above 0; got nan"),
    "neighborhood": ((X, Y), {"neighborhood": "all"}, "neighborhood must be 'per_class' or 'pooled'; got 'all'"),
    "scale": ((X, Y), {"scale": None}, "scale must be 'auto', 'standard', 'sigma' or 'none'; got None"),
    "redundancy": ((X, Y), {"redundancy": "mrmr"}, "redundancy must be 'agreement', 'mcr' or None; got 'mrmr'"),
    "sampling": ((X, Y), {"sampling": "all"}, "sampling must be 'balanced', 'random' or 'proportional'; got 'all'"),
    "class weight": ((X, Y), {"class_weight": {0: -1}}, "class_weight must be 'balanced', 'prior' or a mapping"),
    "class weight beyond floats": ((X, Y), {"class_weight": {0: 10**400, 1: 1}}, "class_weight must be"),
    "a class without a weight": ((X, Y), {"class_weight": {0: 1}}, "no entry for class .* Add one for every class"),
    "no class with a weight": ((X, Y), {"class_weight": {0: 0, 1: 0}}, "class_weight has no positive weight"),
    "seed": ((X, Y), {"random_state": "x"}, "random_state must be None, an integer"),
    "n_jobs": ((X, Y), {"n_jobs": 0}, "n_jobs must be None or an integer: .* got 0"),
    "n_jobs not whole": ((X, Y), {"n_jobs": 1.5}, "n_jobs must be None or an integer: .* got 1.5"),
    "working memory": ((X, Y), {"working_memory": 1}, "working_memory must be an integer from 16 to 2"),
    "too much memory": ((X, Y), {"working_memory": 10**20}, "working_memory must be an integer from 16 to 2"),
    "unknown discrete column": ((FRAME, Y), {"discrete_features": ["hight"]}, "'hight'.*did you mean 'height'"),
    "discrete name without names": ((X, Y), {"discrete_features": ["a"]}, "X has no column names. Use its position"),
    "discrete index": ((X, Y), {"discrete_features": [4]}, "there is no column 4 in X, which has 4 columns"),
    "discrete mask": ((X, Y), {"discrete_features": [True]}, "a mask of 1 booleans, but X has 4 columns"),
    "discrete nonsense": ((X, Y), {"discrete_features": 3.5}, "discrete_features must be 'auto'.*got 3.5"),
    "discrete nonsense within": ((X, Y), {"discrete_features": [1.5]}, "it contains 1.5"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_INPUT)
def test_select_and_fit_raise_on_bad_input(name):
    (data, labels), settings, message = BAD_INPUT[name]
    with pytest.raises(ValueError, match=message) as error:
        belief.select(data, labels, **{"n_features_to_select": 2, **settings})
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=message):  # the estimator raises the same error
        BeliefSelector(**{"n_features_to_select": 2, **settings}).fit(data, labels)


def test_fit_without_y_raises():
    with pytest.raises(ValueError, match="y"):
        BeliefSelector().fit(X)


def test_watch_list_beyond_memory_raises_before_reading():
    wide = np.broadcast_to(np.float32(0), (10, 60_000))
    with pytest.raises(ValueError, match="makes a watch list of 40000 features, which takes 24414 MiB"):
        belief.select(wide, np.arange(10) % 2, 20_000, redundancy="mcr")


def test_warns_if_classes_have_fewer_rows_than_neighbours():
    with pytest.warns(UserWarning, match="of each class, but the smallest class has only 20 rows") as told:
        assert len(belief.select(X, Y, 2, n_neighbors=25, random_state=0).selected) == 2
    assert told[0].filename == __file__  # the warning points to the caller's line
    with pytest.warns(UserWarning, match="means 50 neighbours in all, but each row has only 39 other rows"):
        belief.select(X, Y, 2, n_neighbors=25, neighborhood="pooled", random_state=0)


def test_warns_if_more_features_are_requested_than_exist():
    with pytest.warns(UserWarning, match="n_features_to_select=9, but the data has only 4 features"):
        result = belief.select(X, Y, 9, random_state=0)
    assert sorted(result.selected) == [0, 1, 2, 3]


def test_warns_of_all_missing_column():
    frame = FRAME.assign(weight=np.nan)
    with pytest.warns(UserWarning, match="Column 'weight' has no values"):
        result = belief.select(frame, Y, 4, random_state=0)
    assert result.selected_names[-1] == "weight"


def test_two_rows_suffice():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert belief.select([[1.0, 2.0], [3.0, 4.0]], [0, 1], 2, random_state=0).selected.tolist() == [0, 1]
