"""On Spark, groups, strata and weights of rows give the same results as on one machine."""

import numpy as np
import pytest
from test_studies import FIXED, ROLES, study

import belief
from belief.spark import BeliefSelector

pytestmark = pytest.mark.spark
FEATURES = [f"x{j}" for j in range(22)]
PARAMS = {"groups": "groupsCol", "adjust_for": "adjustForCols", "sample_weight": "weightCol"}


@pytest.fixture(params=["rows", "files"])
def table(request, spark, tmp_path):
    """Return the study as a local and as a Spark DataFrame; one partition keeps the order of the rows."""
    frame = study()
    if request.param == "files":
        frame.to_parquet(tmp_path / "study.parquet")
        return frame, spark.read.parquet(str(tmp_path / "study.parquet"))
    return frame, spark.createDataFrame(frame).coalesce(1)


@pytest.mark.parametrize("roles", [*([role] for role in ROLES), [*ROLES]])
def test_roles_on_spark_are_those_of_one_machine(table, roles):
    frame, df = table
    given = {role: ROLES[role] for role in roles}
    others = {"drop": [x for role in ROLES if role not in roles for x in np.atleast_1d(ROLES[role])]}
    local = belief.select(frame, **given, **others, **FIXED)
    found = belief.select(df, **given, **others, **FIXED)
    assert found.feature_names == local.feature_names == FEATURES
    np.testing.assert_allclose(found.weights, local.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.p_value, local.p_value, rtol=1e-6, atol=1e-12)
    assert found.selected.tolist() == local.selected.tolist()


def test_the_estimator_has_params_for_roles(table):
    frame, df = table
    params = {PARAMS[role]: ROLES[role] for role in ROLES}
    selector = BeliefSelector(inputCols=FEATURES, labelCol="class", numTopFeatures=3, seed=0, **params)
    model = selector.fit(df)
    local = belief.select(frame[[*FEATURES, "class", "patient", "site", "age", "weight"]], **ROLES, **FIXED)
    assert model.selectedNames == local.selected_names
    rest = ["patient", "site", "age", "weight", "class"]
    assert sorted(model.transform(df).columns) == sorted([*model.selectedNames, *rest])


@pytest.mark.parametrize("option", [{"given": ["x5"]}, {"per_class": 2}, {"stability": 20}])
@pytest.mark.parametrize("roles", [{}, ROLES])
def test_given_features_classes_and_stability_on_spark_are_those_of_one_machine(table, option, roles):
    frame, df = table
    options = {**FIXED, **option, **roles}
    if not roles:
        options["drop"] = ["patient", "site", "age", "weight"]
    local, found = belief.select(frame, **options), belief.select(df, **options)
    assert found.selected.tolist() == local.selected.tolist()
    assert found.selected_for.tolist() == local.selected_for.tolist()
    assert found.given.tolist() == local.given.tolist()
    np.testing.assert_allclose(found.class_weights, local.class_weights, rtol=1e-9, atol=1e-12)
    if "stability" in option:
        assert found.stability.frequency.tolist() == local.stability.frequency.tolist()
        assert found.stability.index == pytest.approx(local.stability.index, rel=1e-12)


def test_the_estimator_has_params_for_given_features_classes_and_stability(spark):
    frame = study()
    params = {"inputCols": FEATURES, "labelCol": "class", "seed": 0, "given": ["x5"], "perClass": 2, "stability": 12}
    model = BeliefSelector(**params).fit(spark.createDataFrame(frame).coalesce(1))
    X = frame[[*FEATURES, "class"]]
    local = belief.select(X, label="class", given=["x5"], per_class=2, stability=12, random_state=0)
    assert model.selectedNames == local.selected_names
    assert model.toLocal().stability.frequency.tolist() == local.stability.frequency.tolist()


BAD = {
    "values": ({"groups": np.arange(400)}, "groups must name a column of the DataFrame; got a ndarray"),
    "unknown": ({"groups": "patients"}, "groups: there is no column 'patients' in X .did you mean 'patient'"),
    "target": ({"sample_weight": "class"}, "Column 'class' is the target"),
    "text": ({"sample_weight": "site"}, "sample_weight must hold numbers, but column 'site' is of type string"),
    "array": ({"groups": "pair"}, r"groups: column 'pair' is of type array<double>. Name a column of numbers"),
    "large": ({"groups": "id"}, r"groups: column 'id' holds integers of 2\^53 or more, .* Cast it to string"),
}


@pytest.mark.parametrize("bad", BAD)
def test_unusable_roles_raise(spark, bad):
    options, message = BAD[bad]
    table = spark.createDataFrame(study()).selectExpr("*", "array(x0, x1) AS pair", "age + 9007199254740992 AS id")
    options = {**FIXED, **options, "drop": [name for name in ("pair", "id") if name not in map(str, options.values())]}
    with pytest.raises(ValueError, match=message):
        belief.select(table, **options)


def test_roles_need_plain_columns(spark):
    from pyspark.ml.feature import VectorAssembler

    df = VectorAssembler(inputCols=FEATURES, outputCol="features").transform(spark.createDataFrame(study()))
    with pytest.raises(ValueError, match=r"^groups, adjust_for and sample_weight need plain feature columns"):
        belief.select(df, label="class", groups="patient")
