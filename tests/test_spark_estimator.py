"""Tests of the pyspark.ml estimator and model on classic Spark; one of them runs these and others on Spark Connect."""

import gc
import inspect
import os
import re
import warnings
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
import test_engines
import test_spark_engine
from effort import THOROUGH
from spark_sessions import connect_server, on_connect

import belief
from belief.method.settings import Settings
from belief.result.result import Result
from belief.spark import BeliefSelector, BeliefSelectorModel
from belief.spark.frames import select_frame

NAMES = ["noise", "signal", "copy", "weak", "flat"]


def numbers():
    """Return five features: 1 is relevant, 2 is a copy of it, 3 is weak, 0 is noise, 4 is mostly zero."""
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 2.0], 20)
    X = rng.normal(size=(60, 5)).round(3)
    X[:, 1] += 4 * y
    X[:, 2] = X[:, 1]
    X[:, 3] += y
    X[:, 4] = rng.random(60) < 0.1
    return X, y


@pytest.fixture
def df(spark):
    """Return the numbers as named vectors, alternately dense and sparse."""
    from pyspark.ml.linalg import Vectors

    X, y = numbers()
    sparse = lambda row: Vectors.sparse(5, np.flatnonzero(row), row[row != 0])  # noqa: E731
    rows = [
        (i, (Vectors.dense if i % 2 else sparse)(row), c) for i, (row, c) in enumerate(zip(X, y.tolist(), strict=True))
    ]
    names = {"ml_attr": {"attrs": {"numeric": [{"idx": j, "name": n} for j, n in enumerate(NAMES)]}, "num_attrs": 5}}
    return spark.createDataFrame(rows, ["id", "features", "label"]).withMetadata("features", names)


@pytest.fixture
def columns(spark):
    """Return the numbers as plain columns, with a text column that has missing values."""
    X, y = numbers()
    town = np.array(["Rome", "Oslo", "Bern"])[y.astype(int)]
    rows = [(*map(float, row), None if i % 7 == 0 else str(t), f"class {c:.0f}") for i, (row, t, c) in
            enumerate(zip(X, town, y, strict=True))]  # fmt: skip
    return spark.createDataFrame(rows, ", ".join(f"{n} double" for n in NAMES) + ", town string, kind string")


@pytest.fixture
def selector():
    return BeliefSelector(numTopFeatures=2, numNeighbors=3, outputCol="best", seed=7)


def expected(n=2):
    X, y = numbers()
    return belief.select(X, y, n, n_neighbors=3, random_state=7)


# --- the Params ---


def test_defaults_are_those_of_the_method():
    assert BeliefSelector()._settings() == Settings()
    engine = inspect.signature(select_frame).parameters
    assert BeliefSelector().getStaging() == engine["staging"].default
    assert BeliefSelector().getDiscreteFeatures() == engine["discrete_features"].default


def test_params_have_setter_getter_doc_and_keyword():
    selector = BeliefSelector()
    values = {
        "featuresCol": "f", "inputCols": ["a"], "labelCol": "l", "outputCol": "o", "numTopFeatures": 3,
        "numNeighbors": 4, "sampleSize": 0.5, "batchSize": 0.1, "neighborhood": "pooled", "scale": "none",
        "redundancy": None, "theta": 0.3, "eta": 3, "kappa": 0.5, "discreteFeatures": [1, 2], "seed": 5,
        "sampling": "random", "classWeight": {"a": 2, "b": 1}, "staging": "disk", "copies": "merge",
        "significance": None, "alpha": 0.01, "rounds": 3,
        "task": "regression", "groupsCol": "g", "adjustForCols": ["b"], "weightCol": "w", "given": ["a"], "perClass": 2,
        "stability": 9,
    }  # fmt: skip
    assert {p.name for p in selector.params} == set(values) == set(inspect.signature(BeliefSelector).parameters)
    for name, value in values.items():
        title = name[0].upper() + name[1:]
        assert getattr(selector, f"set{title}")(value) is selector
        assert getattr(selector, f"get{title}")() == value
        assert getattr(BeliefSelector, f"set{title}").__doc__ == f"Sets {name}: {selector.getParam(name).doc}."
    assert BeliefSelector(**values).setParams(eta=1.5).getEta() == 1.5
    assert selector.setInputCols(None).getInputCols() is None
    assert type(selector.setNumTopFeatures(np.int64(3)).getNumTopFeatures()) is int
    assert selector.setDiscreteFeatures(np.array([True, False])).getDiscreteFeatures() == [True, False]


def test_the_docs_list_every_param_with_its_default():
    """Params that the page does not list are settings in camel case, with the same default."""
    page = (Path(__file__).parents[1] / "docs" / "spark.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    selector = BeliefSelector()
    defaults = {p.name: selector.getOrDefault(p) for p in selector.params}
    shown = {name: repr(value).replace("'", '"') for name, value in defaults.items()} | {
        "outputCol": 'uid + "__output"'
    }
    assert listed == {name: shown[name] for name in listed}
    settings = {re.sub(r"_(.)", lambda x: x[1].upper(), f.name): f.default for f in Settings.definitions()}
    assert set(defaults) - set(listed)
    for name in set(defaults) - set(listed):
        assert defaults[name] == settings[name], name


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"numNeighbors": "ten"}, ValueError, "numNeighbors must be 'auto' or an integer of at least 1; got 'ten'."),
        ({"numNeighbors": 0}, ValueError, "numNeighbors must be 'auto' or an integer of at least 1; got 0."),
        ({"theta": "most"}, ValueError, "theta must be 'auto', 'mean' or a number of at least 0; got 'most'."),
        ({"seed": 1.5}, TypeError, 'for param "seed". It must be an integer or None; got 1.5.'),
        ({"labelCol": 3}, TypeError, 'Invalid param value given for param "labelCol". Could not convert'),
        ({"numFeatures": 3}, TypeError, "There is no Param 'numFeatures' (did you mean 'numTopFeatures'?)."),
    ],
)
def test_invalid_params_are_errors(params, error, message):
    with pytest.raises(error) as caught:
        BeliefSelector(**params)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"numNeighbors": None}, "numNeighbors must be 'auto' or an integer of at least 1; got None."),
        ({"inputCols": ["a"], "featuresCol": "f"}, "inputCols and featuresCol are both set"),
    ],
)
def test_fit_checks_params_before_the_data(params, message):
    with pytest.raises(ValueError, match=message):
        BeliefSelector(**params).fit("no DataFrame at all")


# --- the model ---


def test_model_attributes_and_explain(df, selector):
    model, result = selector.fit(df), expected()
    assert model.uid == selector.uid
    assert model.selectedFeatures == result.selected.tolist()
    assert model.selectedNames == [NAMES[j] for j in result.selected]
    np.testing.assert_allclose(model.weights.toArray(), result.weights, rtol=1e-9)
    assert isinstance(model.toLocal(), Result)
    assert model.toLocal().seed == model.getSeed() == 7
    assert model.getNumTopFeatures() == 2
    lines = [row.asDict() for row in model.explain().collect()]
    assert lines == [row.as_dict() for row in model.toLocal().explain()]
    assert repr(model) == f"BeliefSelectorModel: uid={selector.uid}, 2 of 5 features selected"


def test_transform_keeps_order_sparsity_and_names(df, selector):
    model = selector.fit(df)
    out = model.transform(df)
    assert out.columns == [*df.columns, "best"]
    for row in out.collect():
        assert row.best.toArray().tolist() == row.features.toArray()[model.selectedFeatures].tolist()
        assert type(row.best) is type(row.features)
    attributes = out.schema["best"].metadata["ml_attr"]["attrs"]["numeric"]
    assert [a["name"] for a in sorted(attributes, key=lambda a: a["idx"])] == model.selectedNames


def test_fit_and_transform_arrays(df, selector):
    from pyspark.ml.functions import vector_to_array

    arrays = df.withColumn("features", vector_to_array("features"))
    model = selector.fit(arrays)
    out = model.transform(arrays)
    assert out.columns == [*df.columns, "best"]
    assert out.select("id", "best").collect() == selector.fit(df).transform(df).select("id", "best").collect()


def test_transform_drops_columns_that_were_not_selected(columns):
    model = BeliefSelector(inputCols=["noise", "town", "flat"], labelCol="kind", numTopFeatures=1, seed=0).fit(columns)
    assert (model.selectedNames, model.selectedFeatures) == (["town"], [1])
    assert model.transform(columns).columns == ["signal", "copy", "weak", "town", "kind"]
    with pytest.raises(ValueError, match="no column 'town'"):
        model.transform(columns.drop("town"))


def test_columns_with_special_characters(columns):
    odd = columns.withColumnsRenamed({"signal": "a.b", "noise": "label", "town": "`e"})
    names = ["a.b", "label", "`e"]
    model = BeliefSelector(inputCols=names, labelCol="kind", numTopFeatures=2, seed=0).fit(odd)
    assert set(model.selectedNames) == {"a.b", "`e"}
    assert model.transform(odd).columns == ["a.b", "copy", "weak", "flat", "`e", "kind"]


@pytest.mark.parametrize("as_array", [False, True])
def test_vector_column_with_a_dot_in_its_name(df, selector, as_array):
    from pyspark.ml.functions import vector_to_array

    odd = df.withColumnRenamed("features", "a.b")
    if as_array:
        odd = odd.withColumn("a.b", vector_to_array(odd["`a.b`"]))
    model = selector.copy().setFeaturesCol("a.b").fit(odd)
    wanted = selector.fit(df)
    assert model.selectedFeatures == wanted.selectedFeatures
    got = [row.best.toArray().tolist() for row in model.transform(odd).select("best").collect()]
    assert got == [row.best.toArray().tolist() for row in wanted.transform(df).select("best").collect()]
    assert "a.b" in model.transform(odd).columns


@pytest.mark.filterwarnings("ignore:The share of missing values:UserWarning")
def test_transform_arrays_with_missing_values(df, selector):
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql.functions import expr

    gaps = df.withColumn("features", vector_to_array("features")).withColumn(
        "features", expr("transform(features, x -> if(x > 1, null, x))")
    )
    model = selector.copy().setNumTopFeatures(3).fit(gaps)
    rows = model.transform(gaps).select("features", "best").collect()
    assert any(None in row.features for row in rows)
    for row in rows:
        np.testing.assert_array_equal(row.best.toArray(), np.array(row.features, float)[model.selectedFeatures])
    assert any(np.isnan(row.best.toArray()).any() for row in rows)


def test_transform_suggests_a_column_name(df, selector):
    model = selector.fit(df)
    with pytest.raises(ValueError, match=r"no column 'features' \(did you mean 'feature'\?\) in the DataFrame"):
        model.transform(df.withColumnRenamed("features", "feature"))
    assert model.setFeaturesCol("feature").transform(df.withColumnRenamed("features", "feature")).count() == 60


def test_copy_and_fit_with_extra_params(df, selector):
    copied = selector.copy({selector.numTopFeatures: 1})
    assert (copied.uid, copied.getNumTopFeatures(), selector.getNumTopFeatures()) == (selector.uid, 1, 2)
    model = selector.fit(df, {selector.numTopFeatures: 1})
    assert model.selectedFeatures == expected(1).selected.tolist()
    assert "other" in model.transform(df, {model.outputCol: "other"}).columns
    assert model.getOutputCol() == "best"
    assert model.copy().selectedFeatures == model.selectedFeatures


# --- pipelines ---


def test_in_a_pipeline(columns, selector, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import VectorAssembler

    stages = [VectorAssembler(inputCols=NAMES, outputCol="features"), selector.setLabelCol("kind")]
    model = Pipeline(stages=stages).fit(columns)
    assert model.stages[1].selectedNames == [NAMES[j] for j in expected().selected]
    path = str(tmp_path / "pipeline")
    model.write().overwrite().save(path)
    again = PipelineModel.load(path)
    assert again.transform(columns).select("best").collect() == model.transform(columns).select("best").collect()


@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")  # by CrossValidator
def test_in_a_cross_validator(df, selector, tmp_path):
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder

    grid = ParamGridBuilder().addGrid(selector.numTopFeatures, [1, 3]).build()
    pipeline = Pipeline(stages=[selector, NaiveBayes(featuresCol="best", modelType="gaussian")])
    judge = MulticlassClassificationEvaluator(metricName="accuracy")
    search = CrossValidator(estimator=pipeline, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=0)
    found = search.fit(df)
    best = found.bestModel.stages[0]
    assert len(best.selectedFeatures) == best.getNumTopFeatures() == [1, 3][np.argmax(found.avgMetrics)]
    found.save(str(tmp_path / "found"))
    again = CrossValidatorModel.load(str(tmp_path / "found"))
    assert again.bestModel.stages[0].selectedFeatures == best.selectedFeatures
    gc.collect()  # closes its pool here, where the warning is ignored


def test_plain_columns_are_assembled_for_the_next_stage(columns):
    """A classifier can follow the selector for any number of selected features, as in a grid search."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import StringIndexer

    rows = columns.selectExpr(*NAMES, "noise > 0 AS flag", "kind", "'x' AS rest")
    selector = BeliefSelector(inputCols=[*NAMES, "flag"], labelCol="kind", outputCol="best", numTopFeatures=2, seed=7)
    stages = [selector, StringIndexer(inputCol="kind", outputCol="code")]
    stages.append(NaiveBayes(featuresCol="best", labelCol="code", modelType="gaussian"))
    for n in (1, 3):
        model = Pipeline(stages=stages).fit(rows, {selector.numTopFeatures: n})
        found, out = model.stages[0], model.transform(rows)
        assert set(out.columns) >= {*found.selectedNames, "best", "rest", "prediction"}
        row = out.first()
        assert row.best.toArray().tolist() == [float(row[name]) for name in found.selectedNames]
        attributes = out.schema["best"].metadata["ml_attr"]
        named = {x["idx"]: x["name"] for group in attributes["attrs"].values() for x in group}
        assert [named[i] for i in range(n)] == found.selectedNames


def test_unusable_columns_raise_before_the_fit(columns):
    with pytest.raises(ValueError, match="Column 'signal' is listed as a feature 2 times"):
        BeliefSelector(inputCols=["signal", "signal", "noise"], labelCol="kind").fit(columns)
    selector = BeliefSelector(inputCols=["town", NAMES[0]], labelCol="kind", outputCol="best")
    with pytest.raises(ValueError, match=r"'best' is a vector.*columns are not numeric: 'town'\. Convert text with"):
        selector.fit(columns)


def test_nulls_are_assembled_as_nan(columns):
    selector = BeliefSelector(inputCols=NAMES, labelCol="kind", outputCol="best", numTopFeatures=1, seed=7)
    from pyspark.sql.functions import lit

    model = selector.fit(columns)
    name = model.selectedNames[0]
    found = model.transform(columns.withColumn(name, lit(None).cast("double"))).first()
    assert np.isnan(found.best[0])


def test_names_may_differ_in_case(columns):
    selector = BeliefSelector(inputCols=[name.upper() for name in NAMES], labelCol="KIND", numTopFeatures=1, seed=7)
    model = selector.fit(columns)
    assert model.selectedNames[0] in NAMES
    assert set(model.transform(columns).columns) == {model.selectedNames[0], "town", "kind"}


def test_all_bad_columns_are_named_at_once(columns):
    with pytest.raises(ValueError, match=r"no column 'wrong', 'twon' \(did you mean 'town'\?\) in the DataFrame"):
        BeliefSelector(inputCols=["wrong", NAMES[0], "twon"], labelCol="kind").fit(columns)
    odd = columns.selectExpr("*", "INTERVAL '2' YEAR AS age", "NULL AS gap")
    with pytest.raises(ValueError, match=r"Column 'age' has the type interval .*, column 'gap' has .* Convert them\."):
        BeliefSelector(inputCols=["age", NAMES[0], "gap"], labelCol="kind").fit(odd)


TIMES = [
    "date_add(DATE'2024-02-25', CAST(id % 13 + 3 * (id % 2) AS INT)) AS day",
    "timestamp_micros(1711846800000001L + 7000003 * id * id) AS moment",
    "TIMESTAMP_NTZ'2024-03-31 01:30:00' + make_dt_interval(0, CAST(id % 7 AS INT), 0, 0.000001 * id) AS clock",
    "make_dt_interval(0, 0, CAST(5 * (id % 2) + id % 3 AS INT), 0.25) AS pause",
    "CASE WHEN id % 9 = 4 THEN NULL ELSE date_add(DATE'1999-12-31', CAST(id % 5 AS INT)) END AS gaps",
    "CAST(id % 2 AS INT) AS label",
]
NESTED = ["array(id) AS items", "named_struct('a', id) AS pair", "map('a', id) AS look", "CAST('x' AS binary) AS raw"]


@pytest.mark.parametrize("in_files", [False, True])
def test_dates_and_times_are_numbers_as_in_pandas(spark, tmp_path, in_files):
    """Lists, structs, maps and bytes are left out with one warning."""
    df = spark.range(0, 80, 1, 1).selectExpr(*TIMES, *NESTED)
    if in_files:
        df.write.parquet(str(tmp_path / "rows"))
        df = spark.read.parquet(str(tmp_path / "rows"))
    chosen = {"label": "label", "n_features_to_select": 3, "n_neighbors": 5, "random_state": 7}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = belief.select(df, **chosen)
    (warning,) = [str(w.message) for w in caught if "left out" in str(w.message)]
    assert "4 columns are left out: 'items' (lists), 'pair' (structs), 'look' (lists), 'raw' (bytes)" in warning
    assert warning.endswith("To avoid this warning, remove them from the features.")
    names = ["day", "moment", "clock", "pause", "gaps"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = belief.select(df.select(*names, "label").toPandas(), **chosen)
    assert list(found.feature_names) == list(expected.feature_names) == names
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
    assert found.selected.tolist() == expected.selected.tolist()


def test_label_of_a_data_frame_is_a_name(df):
    with pytest.raises(
        ValueError, match=r"must be named, as in label='column'; got 5\. If this is the number of features"
    ):
        belief.select(df, 5)


# --- save and load ---


def test_save_and_load_selector(selector, spark, tmp_path):
    path = str(tmp_path / "selector")
    selector.setRedundancy(None).setDiscreteFeatures(["a"]).save(path)
    with pytest.raises(Exception, match=r"(?i)already exists"):
        selector.save(path)
    selector.setTheta(0.3).write().overwrite().save(path)
    again = BeliefSelector.load(path)
    assert again.uid == selector.uid
    assert again.explainParams() == selector.explainParams()


def test_save_and_load_model(df, selector, tmp_path):
    model = selector.fit(df)
    path = str(tmp_path / "model")
    model.save(path)
    writer = model.setOutputCol("other").write()
    writer.piece_characters = 2000  # several pieces, as with millions of features
    writer.overwrite().save(path)
    again = BeliefSelectorModel.load(path)
    assert again.toLocal().to_dict() == model.toLocal().to_dict()
    assert (again.uid, again.explainParams()) == (model.uid, model.explainParams())
    assert again.transform(df).select("other").collect() == model.transform(df).select("other").collect()


def test_load_refuses_another_format_or_class(selector, spark, tmp_path):
    path = str(tmp_path / "selector")
    selector.save(path)
    with pytest.raises(ValueError, match=r"holds a belief\.spark\.BeliefSelector, not a .*SelectorModel"):
        BeliefSelectorModel.load(path)
    (file,) = (tmp_path / "selector" / "metadata").glob("part-*")
    file.write_text(file.read_text().replace('"beliefFormat":1', '"beliefFormat":99'))
    file.with_name(f".{file.name}.crc").unlink()
    with pytest.raises(ValueError, match=r"has format 99, but this version of belief-fs reads format 1"):
        BeliefSelector.load(path)


# --- on Spark Connect, in another process ---


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="this is the child")
def test_on_spark_connect(df, selector, tmp_path):
    selector.fit(df).save(str(tmp_path / "model"))
    # all tests share one process and one server, because both start slowly
    files = [__file__, test_spark_engine.__file__, test_engines.__file__]
    some = "test_spark_estimator and not cross_validator or plain_columns or bad or vectors or progress or test_belief"
    with connect_server() as address:
        chosen = "not cluster" if THOROUGH else some
        on_connect(address, *files, "-x", "-k", chosen, BELIEF_TEST_MODEL=str(tmp_path / "model"))


@pytest.mark.skipif("BELIEF_TEST_MODEL" not in os.environ, reason="runs in the child of test_on_spark_connect")
def test_load_a_model_of_another_process(df):
    model = BeliefSelectorModel.load(os.environ["BELIEF_TEST_MODEL"])
    np.testing.assert_allclose(model.toLocal().weights, expected().weights, rtol=1e-9)
    assert model.transform(df).head().best.toArray().tolist() == numbers()[0][0, model.selectedFeatures].tolist()


@pytest.mark.skipif("BELIEF_TEST_MODEL" not in os.environ, reason="runs in the child of test_on_spark_connect")
def test_a_fit_that_is_interrupted_on_connect_raises_one_sentence(spark):
    def slow(batches):
        import time

        for batch in batches:
            time.sleep(4)
            yield batch

    columns = "array(cast(id % 7 AS double), cast(id % 3 AS double)) AS features", "id % 2 AS label"
    df = spark.range(0, 80, 1, 8).mapInArrow(slow, "id long").selectExpr(*columns)
    timer = Timer(3, spark.interruptAll)
    timer.start()
    with pytest.raises(RuntimeError, match=r"^The fit was stopped, because its Spark jobs were cancelled\.$"):
        belief.select(df, label="label", n_features_to_select=1)
    timer.join()
