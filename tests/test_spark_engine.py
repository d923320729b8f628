"""Tests of the Spark engine: DataFrames of all kinds, staging, errors, and lost workers.

test_engines.py compares its operations with the local engine, and test_spark_estimator.py runs tests of this file on
Spark Connect.
"""

import itertools
import json
import os
import time
from dataclasses import replace
from threading import Timer

import numpy as np
import pytest
import test_invariances
import traced
from effort import THOROUGH
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array, issparse
from spark_sessions import cluster, stop_session, wait_until

import belief
from belief.data.source import ArraySource
from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.engines.spark import folder, staging
from belief.engines.spark.executors import frame_engine
from belief.engines.spark.frame import open_frame
from belief.engines.spark.reading import Reader
from belief.engines.spark.wire import pack, unpack
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.settings import Settings
from belief.spark.frames import select_frame


def in_partitions(spark, X, labels, n):
    """Return a DataFrame of arrays and labels in n partitions; the second one is empty."""
    cuts = np.linspace(0, len(X), max(2, n)).astype(int)
    parts = np.split(np.arange(len(X)), cuts[1:-1]) if n > 1 else [np.arange(len(X))]
    parts = parts[:1] + [np.arange(0)] * (n > 1) + parts[1:]

    def rows(batches):
        import pyarrow as pa

        for batch in batches:
            for t in batch.column(0).to_pylist():
                mine = parts[t]
                values = pa.array([X[i] for i in mine], pa.list_(pa.float64()))
                yield pa.record_batch([values, pa.array(labels[mine], pa.int32())], names=["features", "label"])

    return spark.range(0, n, 1, n).mapInArrow(rows, "features array<double>, label int")


if "SPARK_REMOTE" in os.environ:
    WAYS = {"connect": (3, "auto"), "connect, persisted": (2, "disk")}


def table(n=80, seed=0):
    """Return a table of mostly zeros, and three classes; features 0 and 1 are relevant, 2 is redundant with 0."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 8)).round(2) * (rng.random((n, 8)) < 0.3)
    X[:, 0] += y
    X[:, 1] += (y == 1) * 2
    X[:, 2] = X[:, 0] + 0.1 * rng.normal(size=n)
    return X, y


def vectors(spark, X, y, dense):
    """Return a DataFrame of vectors: dense where the mask is True, otherwise sparse."""
    from pyspark.ml.linalg import Vectors

    rows = [
        (Vectors.dense(x) if is_dense else Vectors.sparse(len(x), np.flatnonzero(x), x[x != 0]), f"class {c}")
        for x, c, is_dense in zip(X, y.tolist(), dense, strict=True)
    ]
    return spark.createDataFrame(rows, ["features", "label"])


def same(got, expected):
    assert got.selected.tolist() == expected.selected.tolist()
    np.testing.assert_allclose(got.weights, expected.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.scores, expected.scores, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got.redundancy, expected.redundancy, rtol=1e-6, atol=1e-9)
    assert got.n_rows == expected.n_rows
    assert got.watched.tolist() == expected.watched.tolist()


@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
@pytest.mark.parametrize("zeros", [0.0, 0.8])
def test_select_with_dense_sparse_and_mixed_vectors(spark, kind, zeros):
    X, y = table()
    X[np.random.default_rng(1).random(X.shape) < zeros] = 0.0
    dense = {"dense": np.ones(80, bool), "sparse": np.zeros(80, bool), "mixed": np.arange(80) % 2 == 0}[kind]
    chosen = {"n_features_to_select": 3, "random_state": 1, "scale": "standard"}
    same(belief.select(vectors(spark, X, y, dense), label="label", **chosen), belief.select(X, y, **chosen))


@pytest.mark.parametrize("sampling", ["balanced", "random", "proportional"])
def test_select_with_plain_columns(spark, sampling):
    import pandas as pd

    X, y = table()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X, columns=[f"n{j}" for j in range(8)])
    frame["n3"] = frame["n3"].mask(rng.random(80) < 0.2)
    frame["word"] = np.where(rng.random(80) < 0.7, np.array(["a", "b", "c"])[y], "z")
    frame.loc[5:9, "word"] = None
    frame["yes"] = y == rng.integers(0, 3, 80)
    frame["whole"] = rng.integers(-5, 5, 80)
    plain = frame.assign(y=y).astype(object)
    df = spark.createDataFrame(plain.where(plain.notna(), None))
    df = df.selectExpr(*[f"cast({c} as double) {c}" for c in frame.columns[:8]], "word", "yes", "whole", "y")
    chosen = {"n_features_to_select": 5, "random_state": 1, "sampling": sampling, "sample_size": 40}
    got = belief.select(df, label="y", **chosen)
    expected = belief.select(frame, y, **chosen)
    same(got, expected)
    assert list(got.feature_names) == list(expected.feature_names)
    assert got.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("sparse", [False, True])
def test_merge_on_executors_by_slices(spark, sparse):
    X, y = table()
    X[:, 0 if sparse else 3 :] *= np.random.default_rng(1).random((80, 8 if sparse else 5)) < 0.1
    df = vectors(spark, X, y, np.zeros(80, bool))
    settings = {"n_features_to_select": 3, "random_state": 1, "scale": "standard"}
    with engine_on(df, "auto") as engine:
        engine.max_slice_features = 3
        engine.batch_bytes = 0  # one pass per batch
        engine.query_bytes = 2000  # several search jobs
        engine.cluster.runner = replace(engine.cluster.runner, collect_bytes=0)
        engine.describe()
        engine.gathered.portion_pairs = 100
        assert issparse(engine.queries.rows(np.arange(3))) == sparse
        got = traced.run(engine, settings)
    source = csr_array(X) if sparse else ArraySource(X)
    with local_engine(source, np.arange(3), y.astype(np.int32), np.zeros(8, bool), Resources()) as engine:
        expected = traced.run(engine, settings)
    np.testing.assert_array_equal(got.selected, expected.selected)
    np.testing.assert_allclose(got.weights, expected.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.scores, expected.scores, rtol=1e-9, atol=1e-12)


def engine_on(df, where):
    return frame_engine(open_frame(df, "features", "label", "auto"), where)


@pytest.mark.parametrize("fixed", [True, False])
def test_a_recomputed_block_that_differs_is_an_error(spark, fixed):
    def rows(batches):
        import time

        import numpy as np
        import pyarrow as pa

        rng = np.random.default_rng(0 if fixed else time.time_ns())
        for batch in batches:
            X = rng.normal(size=(50, 4))
            lists = pa.array(list(X), pa.list_(pa.float64()))
            yield pa.record_batch([lists, pa.array(np.arange(50) % 2)], names=["features", "label"])
            del batch

    df = spark.range(0, 2, 1, 2).mapInArrow(rows, "features array<double>, label long")
    with engine_on(df, "memory") as engine:
        engine.describe()
        engine.staged.table.unpersist(blocking=True)  # as if all executors were lost
        if fixed:
            assert len(engine.sample(np.array([10]), 0).row) == 10
            return
        with pytest.raises(ValueError, match=r"^Partition \d of the DataFrame was lost, and Spark computed it again"):
            engine.sample(np.array([10]), 0)


def test_lost_gathered_rows_are_gathered_again(spark):
    X, y = table()
    with engine_on(in_partitions(spark, X, y.astype(np.int32), 3), "memory") as engine:
        difference = Difference.from_summary(engine.describe(), engine.discrete, "standard")
        query, neighbour = np.repeat(np.arange(20), 3), np.arange(60)
        pairs = Pairs(query, neighbour, query % 2, 2)
        (before,) = engine.tally([pairs], difference, None)
        for blocks, _ in engine.gathered.find([pairs]):
            blocks.table.unpersist(blocking=True)
        engine.staged.table.unpersist(blocking=True)
        (after,) = engine.tally([pairs], difference, None)
    np.testing.assert_allclose(after.total, before.total, rtol=1e-12)
    np.testing.assert_allclose(
        before.total[0, 0], np.abs(X[query, 0] - X[neighbour, 0])[query % 2 == 0].sum() / X[:, 0].std()
    )


def test_a_recomputed_partition_of_several_blocks_is_the_same(spark):
    """After Spark has recomputed the partition, its rows reach Python in other batches."""
    features = "transform(sequence(0, 49), j -> double(hash(id, j))) features"
    with engine_on(spark.range(0, 40_000, 1, 1).selectExpr(features, "id % 2 label"), "memory") as engine:
        engine.describe()
        assert len(engine.layout.blocks) > 2
        engine.staged.table.unpersist(blocking=True)
        assert len(engine.sample(np.array([10]), 0).row) == 10


@given(cuts=st.lists(st.integers(0, 300), max_size=6), sparse=st.booleans())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_stage_does_not_depend_on_batches(cuts, sparse):
    import pyarrow as pa

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * (rng.random((300, 4)) < 0.5)
    dense = np.arange(300) % 3 > 0 if sparse else np.ones(300, bool)
    rows = [[*x] if d else [*x[x != 0], *np.flatnonzero(x)] for x, d in zip(X, dense, strict=True)]
    size = pa.array([None if d else 4 for d in dense], pa.int32())
    whole = pa.record_batch(
        [size, pa.array(rows, pa.list_(pa.float64())), pa.array(np.arange(300) % 2)], ["size", "values", "label"]
    )

    def staged(at):
        edges = [0, *sorted(at), 300]
        batches = [whole.slice(a, b - a) for a, b in itertools.pairwise(edges)]
        rows = Reader(None, "y", "X", np.zeros(0, bool), 4)(iter(batches), {})
        found = staging.stage([(0, rows)], np.zeros(0, bool), {}, block_bytes=1000)
        return [bytes(data) for _, data in found if data is not None]

    assert staged(cuts) == staged([])
    assert len(staged([])) > 5


def test_staging_to_a_folder_writes_blocks_and_removes_them(spark, tmp_path):
    X, y = table()
    with engine_on(in_partitions(spark, X, y.astype(np.int32), 3), str(tmp_path)) as engine:
        engine.describe()
        (run,) = tmp_path.iterdir()
        files = [file for file in run.iterdir() if file.name != folder.OWNER_FILE]
        assert len(files) == 2  # one of the three partitions is empty
        files[0].unlink()
        with pytest.raises(ValueError, match=r"is missing\. Pass a staging folder"):
            engine.sample(np.array([60]), 0)
    assert not list(tmp_path.iterdir())


def test_row_ids_follow_zip_with_index(spark):
    X = np.arange(40.0)[:, None] + [[0.0, 0.5]]
    with engine_on(in_partitions(spark, X, (np.arange(40) % 2).astype(np.int32), 7), "auto") as engine:
        engine.describe()
        sample = engine.sample(np.array([40]), 0)
        np.testing.assert_array_equal(engine.queries.rows(np.arange(40))[:, 0], np.arange(40.0))
        np.testing.assert_array_equal(sample.target, sample.row % 2)


BAD = {
    "no rows": (lambda df: df.limit(0), {}, "has no rows"),
    "one class": (lambda df: df.selectExpr("features", "1 label"), {}, "'label' has only one class"),
    "null label": (lambda df: df.selectExpr("features", "nullif(label, 'class 1') label"), {}, "'label' has no value"),
    "null vector": (lambda df: df.selectExpr("if(label = 'class 1', null, features) features", "label"), {}, "no vec"),
    "unknown label": (lambda df: df, {"label": "lable"}, r"no column 'lable'.* .did you mean 'label'"),
    "label type": (lambda df: df.selectExpr("features", "array(1) label"), {}, "'label' has the type array<int>"),
    "features type": (lambda df: df.selectExpr("1 features", "label"), {}, "'features' has the type int, but must"),
    "column type": (lambda df: df.selectExpr("array(1) a", "label"), {}, "no usable column. 1 column is left out: 'a'"),
    "regression": (
        lambda df: df.selectExpr("features", "cast(monotonically_increasing_id() as double) + 0.5 label"),
        {"task": "classification"}, "looks like a regression target",
    ),
    "twice": (lambda df: df.selectExpr("features", "label", "1 Label"), {}, r"the DataFrame has \['label', 'Label'\]"),
    "twin": (lambda df: df.selectExpr("1 a", "2 A", "label"), {}, r"'a' is ambiguous: the DataFrame has \['a', 'A'\]"),
    "no features": (lambda df: df.selectExpr("array_repeat(1D, 0) features", "label"), {}, "without features in row 0"),
    "a stream": (lambda df: df.sparkSession.readStream.format("rate").load(), {"label": "value"}, "is a stream"),
    "message twice": (lambda df: df, {"y": "label"}, "Both y='label' and label='label' are given"),
    "infinite": (lambda df: df.selectExpr("array(double('inf'), 1D) features", "label"), {}, "contains infinity"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_open_frame_and_staging_refuse_bad_input(spark, case):
    change, given_settings, message = BAD[case]
    X, y = table()
    df = change(vectors(spark, X, y, np.ones(80, bool)))
    with pytest.raises(ValueError, match=message):
        belief.select(df, **{"label": "label", "n_features_to_select": 2, **given_settings})


@pytest.mark.parametrize(
    ("label", "features", "message"),
    [("if(id = 77, null, id % 2)", "array(1D, id, 2D)", "'label' has no value in row 77 "),
     ("if(id = 77, double('nan'), id % 2)", "array(1D, id, 2D)", r"contains NaN \(first in row 77\)"),
     ("id % 2", "if(id = 77, null, array(1D, id, 2D))", r"no vector in row 77\."),
     ("id % 2", "if(id = 77, array(1D), array(1D, id, 2D))", r"differ in length: 3, but 1 in row 77\.")],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 4])
def test_errors_have_the_row_number_in_the_whole_table(spark, label, features, message, n):
    df = spark.range(0, 80, 1, n).selectExpr(f"{label} label", f"{features} features")
    with pytest.raises(ValueError, match=message):
        belief.select(df, label="label")


def test_missing_values_in_sparse_rows_are_an_error_with_the_row_number(spark):
    from pyspark.ml.linalg import Vectors

    rows = [(i, Vectors.sparse(9, [i % 9], [float("nan") if i == 33 else 1.0]), i % 2) for i in range(40)]
    df = spark.createDataFrame(rows, ["i", "features", "label"]).repartitionByRange(4, "i").sortWithinPartitions("i")
    with pytest.raises(ValueError, match=r"NaN \(row 33, column 6\): missing values in sparse data are not supported"):
        belief.select(df.drop("i"), label="label")


def test_open_frame_checks_the_schema_before_any_job(spark):
    if "SPARK_REMOTE" in os.environ:
        pytest.skip("Spark Connect does not list jobs")
    df = spark.range(10).selectExpr("id a", "id % 2 label", "array(id) v")
    spark.sparkContext.setJobGroup("bad", "")
    for given_settings, message in (
        ({"label": "lable"}, "did you mean 'label'"),
        ({"label": "v"}, "has the type array<bigint>"),
        (
            {"label": "label", "candidates": ["v"]},
            r"The DataFrame has no usable column. 1 column is left out: 'v' \(lists\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            belief.select(df, **given_settings)
    with pytest.raises(ValueError, match="staging must be 'auto', 'memory', 'disk', or the absolute path"):
        belief.select(df.select("a", "label"), label="label", staging="folder")
    spark.sparkContext.parallelize([1], 1).count()  # jobs are listed in order; this must be the only one
    job_ids = spark.sparkContext.statusTracker().getJobIdsForGroup
    wait_until(lambda: job_ids("bad"), "A job", os.devnull)
    assert len(job_ids("bad")) == 1
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("names", [(0, 1, 2), (7, -1, 3)])
def test_select_with_any_labels(spark, names):
    X, y = test_invariances.X, test_invariances.Y
    chosen = {**test_invariances.SETTINGS, "scale": "standard"}
    labels = np.array(names, np.int32)[y]
    df = in_partitions(spark, X, labels, 4)
    same(belief.select(df, label="label", **chosen), belief.select(X, labels, **chosen))


def test_select_frame_reports_progress(spark):
    X, y = table()
    reports = []
    settings_ = Settings(n_features_to_select=2, random_state=0)
    df = vectors(spark, X, y, np.ones(80, bool))
    select_frame(df, features="features", label="label", settings=settings_, callback=reports.append)
    assert {"staging", "searching", "tallying"} <= {p.detail for p in reports}
    steps = [p for p in reports if p.phase == "significance" and p.done]
    assert steps[-1].done == steps[-1].total
    assert reports[-1].phase == "finished"


@given(
    arrays=st.dictionaries(
        st.text(max_size=5),
        hnp.arrays(st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint64, bool]),
                   hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    )
)  # fmt: skip
@settings(deadline=None)
def test_unpack_inverts_pack(arrays):
    back = unpack(pack(arrays))
    assert list(back) == list(arrays)
    for name, x in arrays.items():
        assert back[name].dtype == x.dtype
        np.testing.assert_array_equal(back[name], x)


@pytest.mark.parametrize(
    ("discrete", "message"),
    [
        ([-1], "Use non-negative indices"),
        ([15], "index 15, but the vectors have 8"),
        (["a"], "no column names"),
        ([True, False], "a mask of 2 values, but the vectors have 8"),
    ],
)
def test_discrete_features_with_vectors_of_unknown_length(spark, discrete, message):
    X, y = table()
    df = vectors(spark, X, y, np.ones(80, bool))
    with pytest.raises(ValueError, match=message):
        belief.select(df, label="label", discrete_features=discrete, n_features_to_select=2)


def test_nominal_integers_above_2_53_are_an_error(spark):
    df = spark.range(40).selectExpr("id + 9007199254740993 code", "id % 3 x", "id % 2 y")
    with pytest.raises(ValueError, match="has integers as large as"):
        belief.select(df, label="y", discrete_features=["code"], n_features_to_select=1)


def test_frame_engine_refuses_a_staging_url(spark):
    with pytest.raises(ValueError, match="absolute path of a folder"):
        engine_on(in_partitions(spark, np.eye(4), np.arange(4).astype(np.int32) % 2, 1), "s3://bucket/x")


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="starts another session")
def test_read_files_reads_csv_like_the_local_engine(tmp_path, capsys):
    import pandas as pd

    from belief.cli import commands as cli

    stop_session()
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"a": (y + rng.normal(size=200)).round(3).astype(str), "b c": rng.normal(size=200), "y": y})
    frame.loc[::9, "a"] = "?"
    frame.to_csv(tmp_path / "a.csv", index=False)
    for engine in ("local", "spark"):
        options = [] if engine == "local" else ["--engine", "spark", "--master", "local[1]"]
        arguments = ["select", str(tmp_path / "a.csv"), "--label", "y", "--top", "2", "--seed", "0", "--quiet"]
        assert cli.main([*arguments, "--out", str(tmp_path / f"{engine}.json"), *options]) == 0, capsys.readouterr().err
    found = [belief.Result.from_dict(json.loads((tmp_path / f"{e}.json").read_text())) for e in ("local", "spark")]
    same(found[1], found[0])


# --- standalone clusters: speculation, dynamic allocation, and a lost worker ---

SPECULATION = {
    "spark.speculation": "true", "spark.speculation.interval": "20ms", "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1", "spark.speculation.minTaskRuntime": "1ms",
}  # fmt: skip
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0", "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "1s",
}  # fmt: skip


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the cluster needs classic Spark")
@pytest.mark.skipif(not THOROUGH, reason="slow: runs with BELIEF_THOROUGH")
@pytest.mark.parametrize("staging", ["memory", "disk", "folder"])
@pytest.mark.parametrize("conf", [SPECULATION, DYNAMIC], ids=["speculation", "dynamic allocation"])
def test_a_cluster_that_repeats_tasks_or_drops_executors_gives_the_same_result(conf, staging, tmp_path):
    X, y = table(6000)

    def pause(p):  # meanwhile, idle executors are dropped with their blocks
        if conf is DYNAMIC and p.detail in ("searching", "tallying", "comparing features"):
            time.sleep(4)

    with cluster() as running, running.session(**conf) as session:
        df = in_partitions(session, X, y.astype(np.int32), 6)
        where = str(tmp_path) if staging == "folder" else staging
        chosen = {"n_features_to_select": 3, "random_state": 0, "sample_size": 600, "significance": None}
        same(belief.select(df, label="label", staging=where, callback=pause, **chosen), belief.select(X, y, **chosen))
    assert list(tmp_path.iterdir()) == []


SHORT = ("staging", "comparing features")  # phases that may end before a timer fires
LARGE = {"n_features_to_select": 3, "random_state": 1, "sample_size": 6000}


@pytest.fixture(scope="module")
def on_cluster():
    """Yield a cluster, a function that fits a table on it, and the result of the local engine.

    Each phase of the fit takes about a second. All tests share the cluster, because it takes seconds to start, and so
    does the first fit on it.
    """
    X, y = table(20_000, seed=3)
    X = np.hstack([X, np.random.default_rng(4).normal(size=(20_000, 60))])
    with cluster() as running, running.session() as session:
        df = in_partitions(session, X, y.astype(np.int32), 6)

        def fit(staging, callback=None):
            options = {"settings": Settings(**LARGE), "staging": staging, "callback": callback}
            return select_frame(df, features="features", label="label", **options)

        expected = belief.select(X, y, **LARGE)
        same(fit("memory"), expected)
        yield running, fit, expected


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the cluster needs classic Spark")
@pytest.mark.parametrize(
    ("phase", "staging"),
    [("staging", "disk"), ("searching", "memory"), ("tallying", "disk"), ("searching", "folder"),
     ("comparing features", "memory")][: None if THOROUGH else 2],
)  # fmt: skip
def test_a_cluster_that_loses_a_worker_gives_the_same_result(on_cluster, phase, staging, tmp_path):
    running, fit, expected = on_cluster
    running.start_workers(2)
    reports = []

    def kill():
        running.kill_worker()
        reports.append("killed")

    def watch(p):
        reports.append(p.detail)
        if p.detail == phase and reports.count(phase) == 1:
            kill() if phase in SHORT else Timer(0.4, kill).start()

    same(fit(str(tmp_path) if staging == "folder" else staging, watch), expected)
    assert reports[reports.index("killed") - 1] == phase  # otherwise, the phase ended too early
