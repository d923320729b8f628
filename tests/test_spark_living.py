"""Tests of fits on Spark: number of jobs, small partitions, changing sources, cleanup, concurrent fits, and streams."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import traced
from spark_sessions import wait_until
from test_spark_engine import engine_on, in_partitions, same, table

import belief
from belief.data.labels import RowError
from belief.engines.spark import executors, session, staging
from belief.engines.spark.blocks import BlockInfo, Layout, TableSpec, lay_out
from belief.engines.spark.executors import split_runs
from belief.engines.spark.folder import OWNER_FILE, Folder, Owner, remove_stale
from belief.engines.spark.wire import unpack
from belief.method.settings import Settings
from belief.spark.frames import select_frame

on_classic = pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="Spark Connect does not list jobs")
CHOSEN = {"n_features_to_select": 3, "random_state": 1, "sample_size": 60}


def easy_table(n=3000):
    """Return a table for which the first sample suffices."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 12))
    X[:, :3] += np.outer(y, [4.0, 3.0, 2.0])
    return X, y.astype(np.int32)


def count_jobs(spark, task):
    """Return the number of Spark jobs that a function starts."""
    context, name = spark.sparkContext, f"jobs {time.time_ns()}"
    context.setJobGroup(name, "")
    try:
        task()
        context.parallelize([1], 1).count()  # jobs are listed in order, so this is the last
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    known = context.statusTracker().getJobIdsForGroup
    wait_until(lambda: known(name), "A job", os.devnull)
    time.sleep(0.5)
    return len(known(name)) - 1


@on_classic
def test_a_default_fit_takes_few_jobs(spark):
    X, y = easy_table()
    df, found = in_partitions(spark, X, y, 3), []
    chosen = {"n_features_to_select": 3, "random_state": 0}
    n = count_jobs(spark, lambda: found.append(belief.select(df, label="label", **chosen)))
    assert found[0].stop_reason == "converged"
    assert 4 <= n <= 6
    same(found[0], belief.select(X, y, **chosen))


@on_classic
@pytest.mark.parametrize("where", ["auto", "memory"])
def test_staging_reads_many_small_partitions_in_few_tasks(spark, where):
    X, y = table(300)
    # Spark assigns persisted partitions to tasks by location, so it does not read them in order
    df = in_partitions(spark, X, y.astype(np.int32), 40).persist()
    df.count()
    with engine_on(df, where) as engine:
        engine.describe()
        blocks = engine.staged.table if where == "memory" else engine.cluster.make_blocks(None, 8)
        assert blocks.rdd.getNumPartitions() == 8
        assert len(engine.layout.blocks) <= 8 < len(engine.layout.run_first)  # partitions of a task share a block
        assert where == "memory" or len(engine.staged.files) == 1  # read as one block
        np.testing.assert_array_equal(engine.queries.rows(np.arange(300)), X)  # in order
    df.unpersist()


def batch(*partitions):
    return pa.record_batch([pa.array(partitions), pa.array(range(len(partitions)))], ["partition", "x"])


def test_split_runs_at_skipped_partitions():
    found = [(first, rows.column("x").to_pylist()) for first, rows in split_runs([batch(3, 3, 4, 7), batch(7, 8, 2)])]
    assert found == [(3, [0, 1, 2]), (7, [3]), (7, [0, 1]), (2, [2])]
    assert list(split_runs([batch()])) == []


def staged_runs(runs, block_bytes=48):
    """Stage rows as one Spark task does; return the description and the bytes of each block, sorted by partition.

    `runs` has pairs (partition number, values), in the order in which the task reads the partitions. Each value x
    becomes the row [x, x], and None becomes an invalid row.
    """

    def read(numbers):
        for x in numbers:
            if x is None:
                raise RowError("No vector in row", len(numbers) - 1, ".")
            yield np.array([[x, x]], np.float64), np.array([16]), np.array([0.0]), np.zeros(1, np.int32)

    given = [(partition, read(numbers)) for partition, numbers in runs]
    found = staging.stage(given, np.zeros(2, bool), {}, block_bytes)
    return sorted(found, key=lambda x: (x[0].partition, x[0].seq))


def test_layout_numbers_rows_by_partition():
    """A task may read partitions in any order, and the rows of a partition may be divided between two blocks."""
    found = staged_runs([(5, [50, 51]), (2, [20, 21, 22]), (9, [90])])
    blocks = [(block, data) for block, data in found if data is not None]
    layout = Layout.of([info for info, _ in blocks], [np.zeros(1, np.int32)] * len(blocks))
    values = [unpack(data)["X"][:, 0] for _, data in blocks]
    assert [len(x) for x in values] == [3, 3]
    in_order = [values[b][a] for b, a in zip(*layout.locate(np.arange(6)), strict=True)]
    assert in_order == [20, 21, 22, 50, 51, 90]


def test_lay_out_raises_errors_with_the_row_number():
    found = staged_runs([(5, [50, 51, None]), (2, [20, 21, 22])], 2**20)
    with pytest.raises(RowError, match="No vector in row 5"):  # after three rows of partition 2 and two of 5
        lay_out([info for info, _ in found], TableSpec("y", "X", np.zeros(2, bool)))


def test_lay_out_refuses_vectors_of_different_lengths():
    staged = [BlockInfo(partition, 0, rows=1, about={"width": 2 + partition}) for partition in (0, 1)]
    with pytest.raises(ValueError, match=r"column 'X' differ in length: 2 in one partition, 3 in another\."):
        lay_out(staged, TableSpec("y", "X", np.zeros(2, bool)))


# --- sources that change ---


@pytest.mark.parametrize("where", ["auto", "memory"])
def test_the_input_is_read_once(spark, where, tmp_path):
    folder = str(tmp_path)

    def rows(batches):
        import os
        import time
        import uuid

        import numpy as np
        import pyarrow as pa

        for part in batches:
            for t in part.column(0).to_pylist():
                rng = np.random.default_rng([os.getpid(), time.time_ns()])
                y = np.arange(60) % 2
                X = rng.normal(size=(60, 6))
                X[:, 0] += y
                np.save(f"{folder}/{t}-{uuid.uuid4().hex}.npy", X)
                yield pa.record_batch([pa.array(list(X), pa.list_(pa.float64())), pa.array(y)], ["features", "label"])

    df = spark.range(0, 3, 1, 3).mapInArrow(rows, "features array<double>, label long")
    got = belief.select(df, label="label", staging=where, **CHOSEN)
    read = sorted(tmp_path.glob("*.npy"))
    assert len(read) == 3  # one per partition
    same(got, belief.select(np.concatenate([np.load(x) for x in read]), np.arange(180) % 2, **CHOSEN))


# --- cleanup ---


def is_nothing_persisted(spark):
    return spark._jsparkSession.sharedState().cacheManager().isEmpty()


@on_classic
@pytest.mark.parametrize("phase", ["staging", "searching", "tallying", "comparing features"])
def test_persisted_blocks_are_released_when_a_fit_fails(spark, phase):
    X, y = table()
    df = in_partitions(spark, X, y.astype(np.int32), 2)
    spark.catalog.clearCache()

    def fail(p):
        if p.detail == phase:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_frame(
            df, features="features", label="label", settings=Settings(**CHOSEN), staging="memory", callback=fail
        )
    assert is_nothing_persisted(spark)


@on_classic
def test_persisted_blocks_are_released_when_staging_fails(spark):
    spark.catalog.clearCache()
    df = spark.range(20).selectExpr("array(if(id = 7, raise_error('no'), id), 1D) features", "id % 2 label")
    with pytest.raises(Exception, match="no"):
        belief.select(df, label="label", staging="memory")
    assert is_nothing_persisted(spark)


CANCELLED = """
import os, signal, sys, tempfile, threading, time
from pathlib import Path
from spark_sessions import start_session
import belief
how, staging = sys.argv[1:]
spark = start_session()

def slow(batches):
    import time
    for batch in batches:
        time.sleep(2 if batch.column(0)[0].as_py() > 1 else 0)
        yield batch

columns = "array(cast(id % 7 AS double), cast(id % 3 AS double)) AS features", "id % 2 AS label"
df = spark.range(0, 80, 1, 8).mapInArrow(slow, "id long").selectExpr(*columns)

def stop():
    while not spark._sc.statusTracker().getActiveJobsIds():
        time.sleep(0.05)
    time.sleep(1.5)
    if how == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    elif how == "cancel":
        spark._sc.cancelAllJobs()
    else:
        spark.stop()

threading.Thread(target=stop).start()
try:
    belief.select(df, label="label", staging=staging, n_features_to_select=1)
    print("it ran")
except BaseException as error:
    print(type(error).__name__, str(error).splitlines()[:1])
time.sleep(4)  # longer than a task
if how != "stop":
    print("empty", spark._jsparkSession.sharedState().cacheManager().isEmpty())
    print("stored", len(spark._sc._jsc.sc().getRDDStorageInfo()))
print("folders", [p.name for p in Path(tempfile.gettempdir()).glob("belief-*")])
"""


@on_classic
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "staging"), [("interrupt", "auto"), ("interrupt", "memory"), ("cancel", "memory"), ("stop", "auto")]
)
def test_nothing_is_left_after_a_fit_is_cancelled(tmp_path, how, staging):
    """Tasks that are still running do not create removed folders and blocks again."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CANCELLED, how, staging], env=env, capture_output=True, text=True
    )
    said = done.stdout.splitlines()
    expected = {
        "interrupt": "KeyboardInterrupt []",
        "cancel": "RuntimeError ['The fit was stopped, because its Spark jobs were cancelled.']",
        "stop": "RuntimeError ['The Spark session was stopped during the fit. Start a new one, and fit again.']",
    }
    assert said[0] == expected[how], done.stdout + done.stderr[-3000:]
    assert said[1:] == [*(["empty True", "stored 0"] if how != "stop" else []), "folders []"]


def test_the_next_run_removes_the_folder_of_a_killed_driver(spark, tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from belief.engines.spark.folder import Owner\n"
        "home = Path(sys.argv[1]); home.mkdir(); Owner.current().write(home)\n"
        "print('ready', flush=True); time.sleep(99)"
    )
    names = [tmp_path / f"belief-{digit * 32}" for digit in "ab"]
    drivers = [subprocess.Popen([sys.executable, "-c", code, name], stdout=subprocess.PIPE) for name in names]
    try:
        assert [x.stdout.readline() for x in drivers] == [b"ready\n"] * 2
        drivers[0].kill()
        drivers[0].wait()
        X, y = table()
        belief.select(in_partitions(spark, X, y.astype(np.int32), 2), label="label", staging=str(tmp_path), **CHOSEN)
        assert list(tmp_path.iterdir()) == names[1:]  # the other driver still runs
    finally:
        for x in drivers:
            x.kill()
            x.wait()
            x.stdout.close()


def test_remove_stale_keeps_recent_folders_of_other_machines(tmp_path):
    new, old, foreign = (tmp_path / f"belief-{digit * 32}" for digit in "012")
    for folder in (new, old, foreign):
        folder.mkdir()
        (folder / OWNER_FILE).write_text(
            json.dumps({**vars(Owner.current()), "machine": "elsewhere", "pid": 2**22 + 1})
        )
    os.utime(old, (0, 0))
    (tmp_path / "belief-notes").mkdir()
    os.utime(tmp_path / "belief-notes", (0, 0))
    remove_stale(tmp_path)
    assert {x.name for x in tmp_path.iterdir()} == {new.name, foreign.name, "belief-notes"}
    assert not Owner.current().has_ended()


# --- concurrent fits, and streams ---


def test_concurrent_fits_in_one_session(spark):
    X, y = table(200)
    df, found = in_partitions(spark, X, y.astype(np.int32), 3), {}

    def fit(seed, where):
        chosen = {**CHOSEN, "random_state": seed}
        found[seed] = belief.select(df, label="label", staging=where, **chosen), belief.select(X, y, **chosen)

    fits = [Thread(target=fit, args=x) for x in ((1, "auto"), (2, "memory"))]
    for each in fits:
        each.start()
    for each in fits:
        each.join()
    for got, expected in found.values():
        same(got, expected)
    assert sorted(found) == [1, 2]


@on_classic
def test_select_in_foreach_batch(spark, tmp_path):
    X, y = table(120)
    columns = [f"x{j}" for j in range(8)]
    rows = spark.createDataFrame([(*map(float, x), int(c)) for x, c in zip(X, y, strict=True)], [*columns, "label"])
    rows.coalesce(1).write.parquet(str(tmp_path / "in"))
    found = []

    def fit(df, number):
        found.append(belief.select(df, label="label", **CHOSEN))

    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    query = stream.writeStream.foreachBatch(fit).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "notes")).start().awaitTermination()
    assert len(found) == 1
    same(found[0], belief.select(X, y, **CHOSEN))


# --- executors with little memory ---


class Conf(dict):
    """The configuration of a session, with the interface of `spark.conf`."""

    def get(self, name, default=None):
        return dict.get(self, name, default)


@pytest.mark.parametrize(
    ("text", "expected"), [("1g", 2**30), ("768m", 768 * 2**20), ("1024", 2**30), ("2GB", 2**31), ("512k", 2**19)]
)
def test_parse_memory(text, expected):
    assert executors.parse_memory(text) == expected


@pytest.mark.parametrize(("memory", "uses_memory"), [(None, False), ("1536m", False), ("2g", True), ("64g", True)])
def test_default_staging_on_a_cluster_uses_disk_if_memory_is_short(memory, uses_memory):
    settings = {"spark.executor.cores": "1"} | ({"spark.executor.memory": memory} if memory else {})
    level = executors.choose_level(SimpleNamespace(conf=Conf(settings)), "auto")
    assert (level.useDisk, level.useMemory) == (True, uses_memory)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"spark.executor.cores": "1"}, 2**23),  # 1 GB, Spark's default
        ({"spark.executor.memory": "64g", "spark.executor.cores": "4"}, 2**25),
        ({"spark.executor.memory": "4g", "spark.executor.cores": "8"}, 2**22),
        ({"spark.executor.memory": "4g", "spark.executor.cores": "8", "spark.task.cpus": "2"}, 2**23),
        ({"spark.executor.memory": "500m", "spark.executor.cores": "16"}, 2**20),
        ({"spark.executor.memory": "4g"}, 2**23),  # Spark Connect does not report the number of cores
    ],
)
def test_persisted_blocks_fit_the_heap_of_a_task(settings, expected):
    assert executors.choose_block_bytes(SimpleNamespace(conf=Conf(settings))) == expected


def test_blocks_of_any_size_give_the_same_result(spark):
    X, y = table()
    with engine_on(in_partitions(spark, X, y.astype(np.int32), 2), "memory") as engine:
        engine.cluster.block_bytes = 4000
        engine.describe()
        sizes = [8 * X.shape[1] * block.rows for block in engine.layout.blocks]
        got = traced.run(engine, CHOSEN)
    assert max(sizes) <= 4000 + 8 * X.shape[1]
    assert len(sizes) > 1
    expected = belief.select(X, y, **{**traced.PLAIN, **CHOSEN})
    np.testing.assert_array_equal(got.selected, expected.selected)
    np.testing.assert_allclose(got.weights, expected.weights, rtol=1e-9, atol=1e-12)


def test_lost_executors_are_explained():
    text = (
        "Job aborted due to stage failure: ... ExecutorLostFailure (executor 3 exited ...) java.lang.OutOfMemoryError"
    )
    assert "spark.executor.memory" in session.explain_end(text)
    assert session.explain_end("Job 3 cancelled because SparkContext was shut down").startswith("The Spark session was")
    assert session.explain_end("[OPERATION_CANCELED] Operation has been canceled.") == session.explain_end("cancelled")
    assert session.explain_end("AnalysisException: no such column") is None


def test_tasks_that_fail_because_the_session_stops_are_explained():
    """Stopping a session ends the Python workers of running tasks, so a job may fail before it is cancelled."""
    from pyspark.errors import PySparkException

    java = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: True))
    stopping = SimpleNamespace(_sc=SimpleNamespace(_jsc=java))
    with pytest.raises(RuntimeError, match="session was stopped during the fit"), session.clear_errors(stopping):
        raise PySparkException("Job aborted: Python worker exited unexpectedly (crashed)")


# --- staging folders that cannot be written ---


def test_staging_folder_that_cannot_be_created_raises_before_any_job(spark):
    def rows(batches):
        raise AssertionError("a job started")

    df = spark.range(9).mapInArrow(rows, "features array<double>, label long")
    with pytest.raises(ValueError, match=r"The staging folder /proc/nowhere cannot be written \(.*\)\. Pass another"):
        belief.select(df, label="label", staging="/proc/nowhere", **CHOSEN)


def test_full_staging_folder_raises_one_sentence(tmp_path, monkeypatch):
    def write_bytes(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(ValueError, match=r"cannot be written \(No space left on device\)\. Pass another folder, or"):
        Folder(str(tmp_path / "belief")).write(BlockInfo(0, 0), bytearray(8))
    assert list((tmp_path / "belief").iterdir()) == []
