"""Spark as a cluster: staging, jobs and gathering on the executors, with mapInArrow and applyInArrow only.

Only DataFrames are used, so classic Spark and Spark Connect work alike. There are two places for the blocks:

FileCluster: each block is a file, in a folder the user names, or in a temporary folder if Spark runs on one machine.
Tasks map the files into memory; no rows pass through the JVM, and to gather rows, tasks read them from the files.

PersistedCluster: each block is a row of a persisted DataFrame, in memory or on disk. If Spark loses a block, it
computes the block again; if the result differs, an error is raised. One shuffle gathers rows into another DataFrame.
"""

from __future__ import annotations

import gc
import json
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from belief.engines.resources import ignore_progress
from belief.engines.spark.blocks import BlockInfo, Layout, RowBlock, stack_rows, take_rows, to_arrays, to_matrix
from belief.engines.spark.engine import ClusterEngine
from belief.engines.spark.folder import PREFIX, BlockFiles, Folder, Owner, balance_tasks
from belief.engines.spark.frame import FrameInput
from belief.engines.spark.gathering import PORTION_BYTES
from belief.engines.spark.jobs import (
    SEEN,
    Answers,
    ChooseSample,
    Fetch,
    Job,
    check_seen,
    merge_answers,
    merge_slice,
    run_job,
)
from belief.engines.spark.session import cancel_jobs, clear_errors, staging_settings
from belief.engines.spark.staging import BLOCK_BYTES, StringCodes, stage
from belief.engines.spark.wire import pack, unpack
from belief.engines.spark.workers import get_versions, warn_of_differences
from belief.method.arrays import Array

STAGED = "partition int, seq int, rows long, checksum long, about string, summary binary, strings binary, data binary"
ANSWERS = "task int, slice int, data binary"
GATHERED = "portion int, block int, rows int, data binary"
TASKS_PER_CORE = 4  # staging tasks; each reads several partitions if there are more partitions than tasks
TASK_BYTES = 2**26  # a table with at most this many bytes per task is small, so a task reads several partitions
BLOCKS_PER_HEAP = 128  # with a heap of 1 GB per task, blocks have 8 MB
MIN_PERSISTED_BYTES = 2**20  # minimum size of a persisted block
MIN_HEAP_FOR_MEMORY = 2**31  # per task; with less, staging="auto" uses the disks of the executors
MAX_DRIVER_SAMPLING_ROWS = 2**20  # up to this many rows, the driver draws samples itself if it can read the targets


def frame_engine(
    frame: FrameInput, staging: str = "auto", report: Callable[[str], None] = ignore_progress
) -> ClusterEngine:
    """Return the engine for a DataFrame.

    Parameters
    ----------
    staging : where blocks are held: "auto", "memory", "disk", or a folder that all executors can read
    report : called with a short description of each Spark job
    """
    if staging not in ("auto", "memory", "disk") and not re.match(r"(file://)?/", staging):
        raise ValueError(
            "staging must be 'auto', 'memory', 'disk', or the absolute path of a folder on a file system that every"
            f" executor can read; got {staging!r}."
        )
    spark = frame.df.sparkSession
    local = re.fullmatch(r"local(\[(\d+|\*).*\])?", spark.conf.get("spark.master", ""))
    cluster: FileCluster | PersistedCluster
    if staging in ("memory", "disk") or (staging == "auto" and not local):
        cluster = PersistedCluster(frame, report, choose_level(spark, staging))
    else:
        run = f"{PREFIX}{uuid.uuid4().hex}"
        on_driver = bool(local) and hasattr(spark, "_sc")
        if staging == "auto":  # each executor resolves a relative name in its own temporary directory
            folder = os.path.join(tempfile.gettempdir(), run) if on_driver else run
        else:
            folder = f"{staging.removeprefix('file://').rstrip('/')}/{run}"
        if local is not None and (local[2] or "").isdigit():
            tasks = int(local[2])
        else:  # one task per core on one machine, three per core on a cluster
            context = getattr(spark, "_sc", None)
            cores = int(context.defaultParallelism) if context is not None else 16
            tasks = cores if local is not None else 3 * cores
        cluster = FileCluster(frame, report, folder, tasks, on_driver)
    return ClusterEngine(cluster, frame.spec)


# --- staging ---


class _SparkCluster:
    """The base class of Spark clusters. It holds the DataFrame that is staged, and runs jobs in its session."""

    def __init__(self, frame: FrameInput, report: Callable[[str], None]) -> None:
        self.frame = frame
        self.runner = JobRunner(frame.df.sparkSession, report)

    def make_blocks(
        self,
        keep: Callable[[BlockInfo, bytearray], bytearray | None],
        tasks: int | None,
        block_bytes: int | None = None,
    ) -> Any:
        """Return a DataFrame whose rows are the blocks of the table.

        Parameters
        ----------
        keep : function that returns the bytes of a block to put into the DataFrame, or None
        tasks : maximum number of tasks; None: one per partition
        block_bytes : the size of a block; None: the default
        """
        from pyspark.sql.functions import spark_partition_id

        df, reader, discrete = self.frame.df, self.frame.reader, self.frame.spec.discrete
        df = df.withColumn("partition", spark_partition_id())
        df = df if tasks is None else df.coalesce(tasks)

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            freeze_imports()
            schema, strings = arrow_schema(STAGED), StringCodes()
            runs = groupby(split_runs(batches), itemgetter(0))
            rows = ((first, reader((batch for _, batch in run), strings)) for first, run in runs)
            for info, data in stage(rows, discrete, strings, block_bytes):
                kept = keep(info, data) if data is not None else None
                values = {**vars(info), "about": json.dumps({**info.about, "worker": get_versions()})}
                yield one_row([*values.values(), kept], schema)

        return df.mapInArrow(run, STAGED)

    def cancel(self) -> None:
        cancel_jobs(self.runner.spark, self.runner.tag)

    def _collect(self, table: Any) -> list[BlockInfo]:
        """Run the staging job on a DataFrame of blocks; return the descriptions of the blocks."""
        width = self.frame.reader.width or 0
        with self.runner.phase("staging"), staging_settings(self.runner.spark, width):
            rows = table.drop("data").collect()
        staged = [
            BlockInfo(
                x.partition, x.seq, x.rows, x.checksum, json.loads(x.about),
                summary=None if x.summary is None else bytes(x.summary),
                strings=None if x.strings is None else bytes(x.strings),
            )
            for x in rows
        ]  # fmt: skip
        warn_of_differences(x.about["worker"] for x in staged)
        return staged


def split_runs(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Split batches into runs of consecutive partitions; yield pieces as (first partition of the run, rows).

    A task may read several partitions. Rows are numbered by partition, so a new run starts where partitions are
    skipped, because another task may read the skipped ones.
    """
    first, last = -1, -2
    for batch in batches:
        number = np.asarray(batch.column("partition"))
        rows = batch.drop_columns(["partition"])
        edges = [0, *(np.flatnonzero(~np.isin(np.diff(number), (0, 1))) + 1), len(number)]
        for a, b in pairwise(edges):
            if a < b:
                first = first if number[a] in (last, last + 1) else int(number[a])
                last = int(number[b - 1])
                yield first, rows.slice(a, b - a)


def choose_level(spark: Any, staging: str) -> Any:
    """Return the storage level at which Spark persists blocks.

    With staging="auto", blocks are kept in memory unless the heap is small. An executor with Spark's default of 1 GB
    would run out of memory while its cache fills, although the cache could spill to disk.
    """
    from pyspark import StorageLevel

    is_short = staging == "auto" and measure_heap_per_task(spark) < MIN_HEAP_FOR_MEMORY
    return StorageLevel.DISK_ONLY if staging == "disk" or is_short else StorageLevel.MEMORY_AND_DISK


def choose_block_bytes(spark: Any) -> int:
    """Return the size of persisted blocks, such that the heap of an executor can hold many blocks per task.

    This is needed because Spark copies a block to several buffers on the heap before it is in the cache or on disk.
    """
    return int(np.clip(measure_heap_per_task(spark) / BLOCKS_PER_HEAP, MIN_PERSISTED_BYTES, BLOCK_BYTES))


def measure_heap_per_task(spark: Any) -> float:
    """Return the heap of an executor in bytes, divided by the number of tasks that it runs at the same time."""
    heap = parse_memory(spark.conf.get("spark.executor.memory", "1g"))
    cores = int(spark.conf.get("spark.executor.cores", "") or 0)
    context = getattr(spark, "_sc", None)
    if not cores and context is not None:
        executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # without the driver
        cores = -(-int(context.defaultParallelism) // max(1, executors))
    return heap / max(1.0, (cores or 4) / float(spark.conf.get("spark.task.cpus", "1")))


def parse_memory(text: str) -> int:
    """Return the bytes of a memory size in Spark's notation, such as "4g"; without a unit it is in MiB."""
    number, unit = re.fullmatch(r"\s*(\d+)\s*([kmgtp]?)b?\s*", text.lower()).groups()  # type: ignore[union-attr]
    return int(number) * 2 ** (10 * (1 + "kmgtp".index(unit or "m")))


# --- running jobs ---


@dataclass(frozen=True)
class JobRunner:
    """Runs jobs in a Spark session, and reports which one is running."""

    spark: Any
    report: Callable[[str], None]
    tag: str = field(default_factory=lambda: f"belief-{uuid.uuid4().hex}")
    collect_bytes: int = 2**26  # larger answers are merged on the executors before they go to the driver

    @contextmanager
    def phase(self, what: str) -> Iterator[None]:
        """Describe and tag the Spark jobs that run in this context, report them, and simplify their errors."""
        self.report(what)
        context = getattr(self.spark, "_sc", None)
        with clear_errors(self.spark):
            if context is None:  # Spark Connect has tags, but no descriptions
                add, remove = self.spark.addTag, self.spark.removeTag
                tags = [self.tag, "belief-" + what.replace(" ", "-")]
            else:
                add, remove, tags = context.addJobTag, context.removeJobTag, [self.tag]
                before = context.getLocalProperty("spark.job.description")
                context.setJobDescription(f"belief: {what}")
            for tag in tags:
                add(tag)
            try:
                yield
            finally:
                with suppress(Exception):  # fails if the session has been stopped
                    for tag in tags:
                        remove(tag)
                    if context is not None:
                        context.setJobDescription(before)

    def run(self, answers: Any, job: Job, size: int, n_blocks: int, what: str) -> Answers:
        """Collect the answers of a job from a DataFrame and merge them. Large answers are merged on the executors.

        `size` is the approximate number of bytes of all answers together.
        """
        with self.phase(what):
            if size <= self.collect_bytes or isinstance(job, Fetch):
                rows = answers.collect()
                return merge_answers(job, [(row.task, row.slice, bytes(row.data)) for row in rows], n_blocks)
            merge = job.merge

            def merge_on_executor(table: Any) -> Any:
                import pyarrow as pa

                where = table.column("slice")[0].as_py()
                data = table.column("data")  # Table.sort_by would put all into one array, which is limited to 2 GB
                parts = [data[int(i)].as_buffer() for i in np.argsort(table.column("task"))]
                return pa.table([[0], [where], [pack(merge_slice(merge, where, parts))]], schema=table.schema)

            merged = _apply_to_groups(answers.repartition("slice"), "slice", merge_on_executor, ANSWERS)
            # the driver gets one slice at a time
            by_slice = {row.slice: unpack(bytes(row.data)) for row in merged.toLocalIterator()}
        check_seen(by_slice.pop(SEEN, None), n_blocks)
        return by_slice


def _apply_to_groups(df: Any, column: str, function: Callable[[Any], Any], schema: str) -> Any:
    """Apply a function to one Arrow table per value of a column; `df` must be partitioned by this column."""
    grouped = df.groupBy(column)
    if hasattr(grouped, "applyInArrow"):
        return grouped.applyInArrow(function, schema)

    def apply_to_each(batches: Iterator[Any]) -> Iterator[Any]:  # Spark 3.5
        import pyarrow as pa

        rows = (batch.slice(i, 1) for batch in batches for i in range(batch.num_rows))
        for _, group in groupby(rows, lambda row: row.column(column)[0].as_py()):
            yield from function(pa.Table.from_batches(list(group))).to_batches()

    return df.sortWithinPartitions(column).mapInArrow(apply_to_each, schema)


def answer_batches(job: Job, blocks: Iterable[RowBlock]) -> Iterator[Any]:
    """Run a job on an executor, over its blocks; yield the answers as Arrow batches."""
    from pyspark import TaskContext

    freeze_imports()
    context: Any = TaskContext.get()
    schema = arrow_schema(ANSWERS)
    for where, data in run_job(job, blocks, n_jobs=max(1, context.cpus())):
        yield one_row([int(context.partitionId()), where, data], schema)


@cache
def freeze_imports() -> None:
    """Exclude all existing objects from garbage collection, once in each Python worker.

    PySpark collects garbage after every task. Visiting all objects of numba and pandas takes 40 ms, which is more than
    a task on a small partition.
    """
    gc.collect()
    gc.freeze()


def arrow_schema(columns: str) -> Any:
    """Return the Arrow schema for a schema in Spark's notation, such as "task int, data binary"."""
    import pyarrow as pa

    types = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    return pa.schema([(name, types[kind]) for name, kind in (part.split() for part in columns.split(", "))])


def one_row(values: Iterable[Any], schema: Any) -> Any:
    """Return an Arrow batch with one row of these values."""
    import pyarrow as pa

    return pa.record_batch([[x] for x in values], schema=schema)


# --- blocks in files ---


class FileCluster(_SparkCluster):
    """A cluster that holds blocks in files. `on_driver` is True if the driver can read the files too."""

    min_block_bytes = 2**22  # smaller consecutive runs are read as one block

    def __init__(
        self, frame: FrameInput, report: Callable[[str], None], folder: str, tasks: int, on_driver: bool
    ) -> None:
        super().__init__(frame, report)
        self._folder = Folder(folder, Owner.current(), created_by_driver=on_driver)
        self._tasks, self._on_driver = tasks, on_driver

    def stage(self) -> list[BlockInfo]:
        if os.path.isabs(self._folder.name):
            self._folder.remove_older()
        if self._on_driver:
            self._folder.create()
        return self._collect(self.make_blocks(self._folder.write, TASKS_PER_CORE * self._tasks))

    def open(self, layout: Layout) -> FileBlocks:
        files = BlockFiles.of(self._folder, layout, self.min_block_bytes)
        return FileBlocks(self.runner, files, self._tasks, self._on_driver)

    def release(self) -> None:
        folder = self._folder
        if self._on_driver:
            folder.remove()
            return

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            folder.remove()
            folder.remove_older()
            yield from batches

        self.runner.spark.range(0, 1, 1, 1).mapInArrow(run, "id long").collect()


class _SparkBlocks:
    """The base class of blocks on the executors of Spark: those of the whole table, or blocks of gathered rows."""

    portion_bytes = PORTION_BYTES

    def __init__(self, runner: JobRunner, n_blocks: int, tasks: int) -> None:
        self.runner, self._n_blocks, self.tasks = runner, n_blocks, tasks

    def __len__(self) -> int:
        return self._n_blocks

    def answers(self, job: Job) -> Any:
        """Return a DataFrame of the answers of all tasks to a job. Spark computes it when it is collected."""
        raise NotImplementedError

    def run(self, job: Job, size: int, what: str) -> Answers:
        return self.runner.run(self.answers(job), job, size * self.tasks, len(self), what)

    def fetch(self, ids: Array, features: Array | None = None) -> Sequence[RowBlock]:
        return Fetch.read(self.run(Fetch(ids, features), 0, "fetching rows"))


class FileBlocks(_SparkBlocks):
    """Blocks in files."""

    def __init__(self, runner: JobRunner, files: BlockFiles, max_tasks: int, on_driver: bool) -> None:
        super().__init__(runner, len(files), max(1, min(max_tasks, len(files))))
        self.files, self._max_tasks, self._on_driver = files, max_tasks, on_driver

    def run(self, job: Job, size: int, what: str) -> Answers:
        is_small = isinstance(job, ChooseSample) and self.files.layout.n_rows <= MAX_DRIVER_SAMPLING_ROWS
        if self._on_driver and is_small:  # faster than a Spark job
            self.runner.report(what)
            answers = run_job(job, self.files.read(range(len(self)), job.features), n_jobs=1)
            return merge_answers(job, [(0, *answer) for answer in answers], len(self))
        return super().run(job, size, what)

    def answers(self, job: Job) -> Any:
        files, tasks = self.files, self.tasks
        assigned = balance_tasks([len(x) for x in files.portions], tasks)

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for t in batch.column(0).to_pylist():
                    yield from answer_batches(job, files.read(assigned[t], job.features))

        return self.runner.spark.range(0, tasks, 1, tasks).mapInArrow(run, ANSWERS)

    def fetch(self, ids: Array, features: Array | None = None) -> Sequence[RowBlock]:
        if self._on_driver:
            self.runner.report("fetching rows")
            return [self.files.read_rows(ids, features)]
        return super().fetch(ids, features)

    def gather(self, portions: Sequence[Array]) -> FileBlocks:
        return FileBlocks(self.runner, self.files.gather(portions), self._max_tasks, self._on_driver)

    def release(self) -> None:
        """Do nothing, because the cluster removes the folder of all files."""


# --- blocks in a persisted DataFrame ---


class PersistedCluster(_SparkCluster):
    """A cluster that holds each block in a row of a persisted DataFrame."""

    def __init__(self, frame: FrameInput, report: Callable[[str], None], level: Any) -> None:
        super().__init__(frame, report)
        self._level, self.block_bytes = level, choose_block_bytes(frame.df.sparkSession)
        self._table: Any = None

    def stage(self) -> list[BlockInfo]:
        context, tasks = getattr(self.frame.df.sparkSession, "_sc", None), None  # one task per partition
        if context is not None:
            size = int(str(self.frame.df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
            most = TASKS_PER_CORE * int(context.defaultParallelism)
            tasks = most if size <= TASK_BYTES * most else None
        self._table = self.make_blocks(lambda info, data: data, tasks, self.block_bytes).persist(self._level)
        return self._collect(self._table)

    def open(self, layout: Layout) -> TableBlocks:
        def decode(batches: Iterator[Any]) -> Iterator[RowBlock]:
            return decode_staged(batches, layout)

        tasks = len({x.partition for x in layout.blocks})
        n_blocks, portion_bytes = len(layout.run_first), 2 * self.block_bytes
        return TableBlocks(self.runner, self._table, decode, n_blocks, tasks, portion_bytes, self._level)

    def release(self) -> None:
        if self._table is not None:
            self._table.unpersist()


class TableBlocks(_SparkBlocks):
    """Blocks that are stored in the rows of a persisted DataFrame. `decode` reads the blocks from Arrow batches."""

    def __init__(
        self,
        runner: JobRunner,
        table: Any,
        decode: Callable[[Iterator[Any]], Iterator[RowBlock]],
        n_blocks: int,
        tasks: int,
        portion_bytes: int = PORTION_BYTES,
        level: Any = None,
    ) -> None:
        super().__init__(runner, n_blocks, tasks)
        self.table, self._decode, self.portion_bytes, self._level = table, decode, portion_bytes, level

    def answers(self, job: Job) -> Any:
        decode = self._decode

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            return answer_batches(job, decode(batches))

        return self.table.mapInArrow(run, ANSWERS)

    def gather(self, portions: Sequence[Array]) -> TableBlocks:
        """Return new blocks, one for each of these arrays of row ids. One shuffle computes them at their first use."""
        decode, sizes = self._decode, [len(ids) for ids in portions]

        def cut(batches: Iterator[Any]) -> Iterator[Any]:
            schema = arrow_schema(GATHERED)
            for block in decode(batches):
                for portion, ids in enumerate(portions):
                    X, targets, positions = take_rows(block, ids)
                    if len(positions):
                        data = pack({**to_arrays(X), "targets": targets})
                        yield one_row([portion, block.number, len(positions), data], schema)

        def join(table: Any) -> Any:
            """Join the pieces of a portion to one block, with the rows in the order of their ids."""
            import pyarrow as pa

            portion, data = table.column("portion")[0].as_py(), table.column("data")
            parts = [unpack(data[int(i)].as_buffer()) for i in np.argsort(table.column("block"))]
            X, targets = stack_rows([to_matrix(x) for x in parts]), np.concatenate([x["targets"] for x in parts])
            if len(targets) != sizes[portion]:
                raise ValueError(
                    f"Gathering returned {len(targets)} of {sizes[portion]} rows: a block was lost. Try again."
                )
            block = pack({**to_arrays(X), "targets": targets})
            return pa.table([[portion], [0], [len(targets)], [block]], schema=table.schema)

        pieces = self.table.mapInArrow(cut, GATHERED).repartition(len(portions), "portion")
        table = _apply_to_groups(pieces, "portion", join, GATHERED).persist(self._level)
        return TableBlocks(self.runner, table, decode_gathered, len(portions), len(portions))

    def release(self) -> None:
        self.table.unpersist()


def decode_staged(batches: Iterator[Any], layout: Layout) -> Iterator[RowBlock]:
    """Decode the staged blocks in Arrow batches, and yield the rows of each run of consecutive row ids.

    Raise a ValueError if a block has changed since staging.
    """
    number = {(x.partition, x.seq): i for i, x in enumerate(layout.blocks)}
    for batch in batches:
        columns = (batch.column(name) for name in ("partition", "seq", "checksum", "data"))
        for partition, seq, checksum, data in zip(*columns, strict=True):
            if not data.is_valid:  # the summary of the task
                continue
            i = number.get((partition.as_py(), seq.as_py()))
            if i is None or layout.blocks[i].checksum != checksum.as_py():
                raise ValueError(
                    f"Partition {partition.as_py()} of the DataFrame was lost, and Spark computed it again with"
                    " a different result, because its rows have no fixed order. Stage to a folder (staging='/path'),"
                    " or write the DataFrame to storage first and read it from there."
                )
            yield from layout.decode_runs(data.as_buffer(), np.flatnonzero(layout.run_block == i).tolist())


def decode_gathered(batches: Iterator[Any]) -> Iterator[RowBlock]:
    """Decode the gathered blocks in Arrow batches, and yield the rows of each block."""
    for batch in batches:
        for portion, data in zip(batch.column("portion"), batch.column("data"), strict=True):
            arrays = unpack(data.as_buffer())
            yield RowBlock(portion.as_py(), to_matrix(arrays), arrays["targets"])
