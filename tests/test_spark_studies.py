"""Groups, strata and weights of rows on Spark give the answers of one machine."""

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


BAD = {
    "values": ({"groups": np.arange(400)}, "groups must name a column of the DataFrame; got a ndarray"),
    "unknown": ({"groups": "patients"}, "groups: there is no column 'patients' in X .did you mean 'patient'"),
    "target": ({"sample_weight": "class"}, "Column 'class' is the target"),
}


@pytest.mark.parametrize("bad", BAD)
def test_unusable_roles_raise(spark, bad):
    options, message = BAD[bad]
    with pytest.raises(ValueError, match=message):
        belief.select(spark.createDataFrame(study()), **options, **FIXED)


def test_roles_need_plain_columns(spark):
    from pyspark.ml.feature import VectorAssembler

    df = VectorAssembler(inputCols=FEATURES, outputCol="features").transform(spark.createDataFrame(study()))
    with pytest.raises(ValueError, match=r"^groups, adjust_for and sample_weight need plain feature columns"):
        belief.select(df, label="class", groups="patient")
