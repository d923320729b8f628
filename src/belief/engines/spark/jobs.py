"""How executors run jobs: functions for mapInArrow, and what becomes of their answers.

Only DataFrames are used (mapInArrow, applyInArrow), so classic Spark and Spark Connect are served alike.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from belief.engines.distributed.blocks import RowBlock, Staged
from belief.engines.distributed.cluster import Slices
from belief.engines.distributed.merging import SEEN, Merge, answers_of, merged, merged_slice, refuse_lost
from belief.engines.distributed.staging import Strings, stage
from belief.engines.distributed.tasks import Fetch, Job
from belief.engines.distributed.wire import pack, unpack
from belief.engines.spark.reading import Reader
from belief.engines.spark.session import described
from belief.engines.spark.workers import versions
from belief.method.arrays import Array

STAGED = "partition int, seq int, rows long, checksum long, about string, summary binary, strings binary, data binary"
ANSWERS = "task int, slice int, data binary"
COLLECT_BYTES = 2**26  # answers up to this size go to the driver as they are; more are merged on the way


# --- on the executors ---


@cache
def forget_imports() -> None:
    """Once in a Python worker: what has been imported by now is no garbage.

    PySpark collects garbage after every task. Looking through all that numba and pandas hold takes 40 ms each time,
    more than a task on a small partition.
    """
    gc.collect()
    gc.freeze()


def arrow_schema(columns: str) -> Any:
    """The schema of a DataFrame as Arrow writes it."""
    import pyarrow as pa

    kinds = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    return pa.schema([(name, kinds[kind]) for name, kind in (part.split() for part in columns.split(", "))])


def one_row(values: Iterable[Any], schema: Any) -> Any:
    """A batch of one row."""
    import pyarrow as pa

    return pa.record_batch([[x] for x in values], schema=schema)


def task_number() -> int:
    """The number of this task, and of the partition it reads."""
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())  # type: ignore[union-attr]


def threads() -> int:
    """The cores of a task."""
    from pyspark import TaskContext

    return max(1, TaskContext.get().cpus())  # type: ignore[union-attr]


def staged_by(
    reader: Reader, discrete: Array, keep: Callable[[Staged, bytearray], bytearray | None]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that cuts what a task reads into blocks; `keep` says what of each is to be held in the DataFrame."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        forget_imports()
        schema, strings = arrow_schema(STAGED), Strings()
        runs = groupby(in_runs(batches), itemgetter(0))
        read = ((first, reader((batch for _, batch in together), strings)) for first, together in runs)
        for block, data in stage(read, discrete, strings):
            held = keep(block, data) if data is not None else None
            told = {**vars(block), "about": json.dumps({**block.about, "worker": versions()})}
            yield one_row([*told.values(), held], schema)

    return run


def in_runs(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Batches of rows of partitions that follow each other, each with the first of these.

    A task may read several partitions, and what it reads of them in their order is one run of rows. Where it reads
    others, which ones are between is not known, and a new run begins: so the rows keep the order of partitions.
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


def answered(job: Job, blocks: Iterable[RowBlock]) -> Iterator[Any]:
    """Run a job over some blocks, and put its answers into batches."""
    forget_imports()
    task, schema = task_number(), arrow_schema(ANSWERS)
    for where, data in answers_of(job, blocks, threads()):
        yield one_row([task, where, data], schema)


# --- on the driver ---


def told(rows: Iterable[Any]) -> list[Staged]:
    """What the staging job says of the blocks."""
    return [
        Staged(x.partition, x.seq, x.rows, x.checksum, json.loads(x.about), _bytes(x.summary), _bytes(x.strings))
        for x in rows
    ]


def _bytes(x: Any) -> bytes | None:
    return None if x is None else bytes(x)


@dataclass(frozen=True)
class Watched:
    """A session, and whom to tell what it is doing."""

    spark: Any
    say: Callable[[str], None]

    def collected(self, answers: Any, job: Job, n_blocks: int, what: str) -> Slices:
        """The answers to a job, merged by the driver."""
        with described(self.spark, self.say, what):
            rows = answers.collect()
        return merged(job, [(row.task, row.slice, bytes(row.data)) for row in rows], n_blocks)

    def answer(self, answers: Any, job: Job, size: int, n_blocks: int, what: str) -> Slices:
        """The answers to a job, of about `size` bytes in all; large ones are merged on the way."""
        if size <= COLLECT_BYTES or isinstance(job, Fetch):
            return self.collected(answers, job, n_blocks, what)
        with described(self.spark, self.say, what):
            return merged_on_the_way(answers, job.merge, n_blocks)


def merged_on_the_way(answers: Any, merge: Merge, n_blocks: int) -> Slices:
    """Slices are merged by the executors, each in one place, and reach the driver one at a time."""

    def run(table: Any) -> Any:
        return merged_table(table, merge)

    out: Slices = {SEEN: {"seen": np.zeros(0, np.int64)}}
    for row in answers.groupBy("slice").applyInArrow(run, ANSWERS).toLocalIterator():
        out[row.slice] = unpack(bytes(row.data))
    refuse_lost(out.pop(SEEN)["seen"], n_blocks)
    return out


def merged_table(table: Any, merge: Merge) -> Any:
    """The answers of all tasks for one slice, on an executor."""
    import pyarrow as pa

    where = table.column("slice")[0].as_py()
    data = table.column("data")  # not sorted as it is: one array holds no more than 2 GB
    parts = [data[int(i)].as_buffer() for i in np.argsort(table.column("task"))]
    return pa.table([[0], [where], [pack(merged_slice(where, parts, merge))]], schema=table.schema)
