"""Jobs per fit, small partitions, sources that change, cleanup, concurrent fits, and streams on Spark."""

import json
import os
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from spark_sessions import wait_until
from test_spark_engine import engine_on, in_partitions, same, table

import belief
from belief.data.labels import RowError
from belief.engines.spark import staging
from belief.engines.spark.blocks import BlockInfo, Layout, TableSpec, lay_out
from belief.engines.spark.executors import split_runs
from belief.engines.spark.folder import OWNER_FILE, Owner, remove_stale
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
    df = in_partitions(spark, X, y.astype(np.int32), 40).persist()  # so that Spark does not read
    df.count()  # the partitions in order
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
    """Stage rows of two values, for the runs of partitions of one task; `None` stands for a row with an error."""

    def read(numbers):
        for x in numbers:
            if x is None:
                raise RowError("No vector in row", len(numbers) - 1, ".")
            yield np.array([[x, x]], np.float64), np.array([16]), np.array([0.0]), np.zeros(1, np.int32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "BLOCK_BYTES", block_bytes)
        given = [(partition, read(numbers)) for partition, numbers in runs]
        return sorted(staging.stage(given, np.zeros(2, bool), {}), key=lambda x: (x[0].partition, x[0].seq))


def test_layout_numbers_rows_by_partition():
    """Runs may come out of order, and continue in the next block."""
    found = staged_runs([(5, [50, 51]), (2, [20, 21, 22]), (9, [90])])
    blocks = [(block, data) for block, data in found if data is not None]
    layout = Layout.of([info for info, _ in blocks], [np.zeros(1, np.int32)] * len(blocks))
    values = [unpack(data)["X"][:, 0] for _, data in blocks]
    assert [len(x) for x in values] == [3, 3]
    in_order = [values[b][a] for b, a in zip(*layout.locate(np.arange(6)), strict=True)]
    assert in_order == [20, 21, 22, 50, 51, 90]


def test_lay_out_raises_errors_with_the_row_number():
    found = staged_runs([(5, [50, 51, None]), (2, [20, 21, 22])], 2**20)
    with pytest.raises(RowError, match="No vector in row 5"):  # three rows of partition 2, and two of partition 5
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
