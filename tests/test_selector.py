"""Tests of BeliefSelector, the scikit-learn estimator."""

import pickle
import re
from inspect import getdoc, signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from effort import NOT_REPETITION
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import belief
from belief import BeliefSelector
from belief.method.settings import Settings


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_features_to_select:UserWarning")  # the tables of the checks have few columns
@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")  # or few rows
@parametrize_with_checks([BeliefSelector()], expected_failed_checks=lambda estimator: NOT_REPETITION)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


def test_fitted_attributes(iris):
    X, y = iris
    selector = BeliefSelector(2, random_state=0).fit(X, y)
    result = belief.select(X, y, 2, random_state=0)
    np.testing.assert_array_equal(selector.scores_, result.weights)
    np.testing.assert_array_equal(selector.selected_, result.selected)
    np.testing.assert_array_equal(selector.pvalues_, result.p_value)
    assert selector.feature_importances_.sum() == pytest.approx(1)
    assert selector.n_features_ == 2
    np.testing.assert_array_equal(selector.get_support(indices=True), np.sort(result.selected))
    np.testing.assert_array_equal(selector.classes_, [0, 1, 2])
    assert selector.n_features_in_ == 4
    assert selector.feature_names_in_.tolist() == X.columns.tolist()
    assert sorted(selector.ranking_) == [1, 1, 2, 3]
    assert selector.ranking_[selector.selected_].tolist() == [1, 1]
    assert set(selector.get_feature_names_out()) == set(result.selected_names)


def test_n_features_to_select_as_a_share(iris):
    X, y = iris
    assert BeliefSelector(0.5, random_state=0).fit(X, y).support_.sum() == 2


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_transform_keeps_names_order_and_dtypes(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    data = {
        "noise": rng.random(80),
        "colour": np.where(y ^ (rng.random(80) < 0.1), "red", "blue"),
        "n": rng.integers(0, 9, 80),
    }
    data["good"] = rng.random(80) + y
    frame = pd.DataFrame(data) if kind == "pandas" else pl.DataFrame(data)
    selector = BeliefSelector(2, redundancy=None, random_state=0).set_output(transform=kind)
    out = selector.fit_transform(frame, y)
    assert type(out) is type(frame)
    assert list(out.columns) == ["colour", "good"]
    assert list(out.dtypes) == [frame[c].dtype for c in out.columns]
    assert BeliefSelector(2, random_state=0).fit(frame, y).transform(frame).shape == (80, 2)


def test_clone_and_config_context_keep_the_output_container():
    from sklearn import config_context

    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["x", "y", "x", "y"]})
    selector = BeliefSelector(1, n_neighbors=1, random_state=0)
    again = clone(clone(selector).set_output(transform="polars").set_output(transform=None))
    assert again.fit(frame, [0, 1, 0, 1]).transform(frame).schema == {"b": pl.String}
    with config_context(transform_output="polars"):
        assert selector.fit(frame, [0, 1, 0, 1]).transform(frame).schema == {"b": pl.String}
        assert isinstance(selector.set_output(transform="default").transform(frame), np.ndarray)


def test_pipeline_and_grid_search(iris):
    X, y = iris
    pipe = make_pipeline(StandardScaler(), BeliefSelector(2, random_state=0), LogisticRegression())
    search = GridSearchCV(pipe, {"beliefselector__n_features_to_select": [1, 4]}, cv=3).fit(X, y)
    assert search.best_params_["beliefselector__n_features_to_select"] == 4
    assert search.best_score_ > 0.9


def test_clone_and_pickle(iris):
    X, y = iris
    selector = BeliefSelector(2, random_state=0, theta=0.3)
    assert clone(selector).get_params() == selector.get_params()
    again = pickle.loads(pickle.dumps(selector.fit(X, y)))
    np.testing.assert_array_equal(again.transform(X), selector.transform(X))


@pytest.mark.parametrize("face", [belief.select, BeliefSelector])
def test_every_setting_is_a_parameter_with_the_same_default(face):
    parameters = signature(face).parameters
    for f in Settings.definitions():
        assert parameters[f.name].default == f.default, f.name
        assert re.search(rf"^{f.name} : ", getdoc(face), re.M), f.name
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def test_transform_reports_missing_columns(iris):
    X, y = iris
    selector = BeliefSelector(2, random_state=0).set_output(transform="pandas").fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(X.drop(columns=X.columns[0]))


def test_fit_on_blocks_and_transform_a_table(iris):
    X, y = iris
    selector = BeliefSelector(2, random_state=0).fit([X[:50], X[50:]], y)
    assert selector.n_features_in_ == 4
    assert selector.transform(X).shape == (150, 2)
