"""Where staged blocks are held, and how a job reaches them: Spark as a Cluster.

Files: each block is a file, in a folder the user names, which every executor reaches, or, where Spark runs on one
machine, in a temporary one. A pass maps the files into memory; nothing goes through the JVM, and rows are gathered by
reading them.

Persisted: each block is a row of a persisted DataFrame, in memory or on disk. A lost one is computed again by Spark,
and refused if it comes out different. Rows are gathered by one shuffle, into another persisted DataFrame.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belief.engines.distributed.blocks import (
    Form,
    Pieces,
    Placed,
    RowBlock,
    Staged,
    arrays_of,
    decoded,
    matrix_of,
    picked,
    stacked,
)
from belief.engines.distributed.cluster import Slices
from belief.engines.distributed.folder import Folder, GatheredFiles, Readable, StagedFiles, dealt
from belief.engines.distributed.merging import answers_of, merged
from belief.engines.distributed.owner import Owner
from belief.engines.distributed.placing import Layout
from belief.engines.distributed.tasks import Choose, Fetch, Job
from belief.engines.distributed.wire import pack, unpack
from belief.engines.spark.frame import Input
from belief.engines.spark.jobs import ANSWERS, STAGED, Watched, answered, arrow_schema, one_row, staged_by, told
from belief.engines.spark.session import described, small_batches
from belief.engines.spark.workers import warn_of_differences
from belief.method.arrays import Array

READERS = 4  # tasks that read the input, for each that runs at a time: small partitions are read by one task
TASK_BYTES = 2**26  # of small partitions that one task reads, where its blocks are persisted together
CHOSEN_HERE = 2**20  # rows of which the driver draws a sample itself, where it reaches their labels
GATHERED = "portion int, block int, rows int, data binary"


class _Cluster:
    """What both kinds have: the input, and a session that is watched."""

    def __init__(self, given: Input, say: Callable[[str], None]) -> None:
        self._given = given
        self.watched = Watched(given.df.sparkSession, say)

    def _blocks(self, keep: Callable[[Staged, bytearray], bytearray | None], tasks: int | None) -> Any:
        """The DataFrame of the blocks; `tasks` are as many as read the input at the most, None: one for a partition."""
        from pyspark.sql.functions import spark_partition_id

        given = self._given
        parts = given.df.withColumn("partition", spark_partition_id())
        parts = parts if tasks is None else parts.coalesce(tasks)
        return parts.mapInArrow(staged_by(given.reader, given.about.discrete, keep), STAGED)

    def _told(self, table: Any) -> list[Staged]:
        """Cut the input into blocks, and hear of them."""
        watched = self.watched
        with described(watched.spark, watched.say, "staging"), small_batches(watched.spark):
            staged = told(table.drop("data").collect())
        warn_of_differences(x.about["worker"] for x in staged)
        return staged


# --- files ---


class Files(_Cluster):
    """A cluster whose blocks are files."""

    def __init__(self, given: Input, say: Callable[[str], None], folder: str, tasks: int, here: bool) -> None:
        super().__init__(given, say)
        self._folder, self._tasks = Folder(folder, Owner.me()), tasks
        self._here = here  # whether the driver reaches the folder too

    def stage(self) -> list[Staged]:
        if os.path.isabs(self._folder.name):  # which the driver may reach
            self._folder.remove_older()
        return self._told(self._blocks(self._folder.write, READERS * self._tasks))

    def blocks(self, layout: Layout) -> FileBlocks:
        return FileBlocks(self.watched, StagedFiles.of(self._folder, layout), self._tasks, self._here)

    def release(self) -> None:
        folder = self._folder
        if self._here:
            folder.remove()
            return

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            folder.remove()
            folder.remove_older()
            yield from batches

        self.watched.spark.range(0, 1, 1, 1).mapInArrow(run, "id long").collect()


class ReadBlocks:
    """Blocks that tasks read, wherever they run."""

    def __init__(self, watched: Watched, files: Readable, most: int) -> None:
        self.watched, self._readable, self._most = watched, files, most

    def __len__(self) -> int:
        return len(self._readable)

    @property
    def tasks(self) -> int:
        return max(1, min(self._most, len(self)))

    def run(self, job: Job, size: int, what: str) -> Slices:
        return self.watched.answer(self.answers(job), job, size * self.tasks, len(self), what)

    def answers(self, job: Job) -> Any:
        """The DataFrame of the answers to a job."""
        files, tasks = self._readable, self.tasks
        mine = dealt(files.sizes(), tasks)

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for t in batch.column(0).to_pylist():
                    yield from answered(job, files.read(mine[t], job))

        return self.watched.spark.range(0, tasks, 1, tasks).mapInArrow(run, ANSWERS)

    def release(self) -> None:
        """The files go with their folder."""


class FileBlocks(ReadBlocks):
    """The staged blocks in their files."""

    def __init__(self, watched: Watched, files: StagedFiles, most: int, here: bool) -> None:
        super().__init__(watched, files, most)
        self._files, self._here = files, here

    def run(self, job: Job, size: int, what: str) -> Slices:
        """By a job, unless that would take longer than the driver does: to choose among some labels, say."""
        if not self._here or not isinstance(job, Choose) or sum(self._files.sizes()) > CHOSEN_HERE:
            return super().run(job, size, what)
        self.watched.say(what)
        answers = answers_of(job, self._files.read(range(len(self)), job), n_jobs=1)
        return merged(job, [(0, *answer) for answer in answers], len(self))

    def fetch(self, ids: Array) -> Sequence[RowBlock]:
        if self._here:
            self.watched.say("fetching the sample")
            return [self._files.rows(ids)]
        job = Fetch(ids)
        return job.pieces(self.run(job, 0, "fetching the sample"))

    def values(self, ids: Array, columns: Array) -> Array | None:
        return self._files.values(ids, columns) if self._here else None

    def gather(self, portions: Sequence[Array]) -> ReadBlocks:
        return ReadBlocks(self.watched, GatheredFiles(self._files, portions), self._most)


# --- persisted ---


class Persisted(_Cluster):
    """A cluster whose blocks are rows of a persisted DataFrame."""

    def __init__(self, given: Input, say: Callable[[str], None], level: Any) -> None:
        super().__init__(given, say)
        self._level = level
        self.table: Any = None

    def stage(self) -> list[Staged]:
        tasks = small_tasks(self._given.df)
        self.table = self._blocks(lambda block, data: data, tasks).persist(self._level)
        return self._told(self.table)

    def blocks(self, layout: Layout) -> PersistedBlocks:
        tasks = len({x.partition for x in layout.placed})
        blocks = _Verified(layout.placed, layout.pieces, layout.form)
        return PersistedBlocks(self.watched, self.table, blocks, len(layout.pieces), tasks, self._level)

    def release(self) -> None:
        if self.table is not None:
            self.table.unpersist()


class TableBlocks:
    """Blocks in the rows of a persisted DataFrame.

    Parameters
    ----------
    decode : the blocks in batches of the DataFrame
    """

    def __init__(
        self, watched: Watched, table: Any, decode: Callable[[Iterator[Any]], Iterator[RowBlock]], n: int, tasks: int
    ) -> None:
        self.watched, self.table, self._decode = watched, table, decode
        self._n, self.tasks = n, tasks

    def __len__(self) -> int:
        return self._n

    def run(self, job: Job, size: int, what: str) -> Slices:
        return self.watched.answer(self.answers(job), job, size * self.tasks, self._n, what)

    def answers(self, job: Job) -> Any:
        """The DataFrame of the answers to a job."""
        decode = self._decode

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            return answered(job, decode(batches))

        return self.table.mapInArrow(run, ANSWERS)

    def release(self) -> None:
        self.table.unpersist()


class PersistedBlocks(TableBlocks):
    """The staged blocks."""

    def __init__(self, watched: Watched, table: Any, decode: _Verified, n: int, tasks: int, level: Any) -> None:
        super().__init__(watched, table, decode, n, tasks)
        self._level = level

    def fetch(self, ids: Array) -> Sequence[RowBlock]:
        job = Fetch(ids)
        return job.pieces(self.run(job, 0, "fetching the sample"))

    def values(self, ids: Array, columns: Array) -> Array | None:
        return None

    def gather(self, portions: Sequence[Array]) -> TableBlocks:
        """By one shuffle, when they are first asked for."""
        decode, sizes = self._decode, [len(ids) for ids in portions]

        def cut(batches: Iterator[Any]) -> Iterator[Any]:
            schema = arrow_schema(GATHERED)
            for block in decode(batches):
                for portion, ids in enumerate(portions):
                    X, targets, at = picked(block, ids)
                    if len(at):
                        data = pack({**arrays_of(X), "targets": targets})
                        yield one_row([portion, block.number, len(at), data], schema)

        def join(table: Any) -> Any:
            return joined(table, sizes)

        pieces = self.table.mapInArrow(cut, GATHERED).repartition(len(portions), "portion")
        table = pieces.groupBy("portion").applyInArrow(join, GATHERED).persist(self._level)
        return TableBlocks(self.watched, table, gathered_blocks, len(portions), len(portions))


def joined(table: Any, sizes: Sequence[int]) -> Any:
    """The pieces of a portion as one block, its rows by rising ids."""
    import pyarrow as pa

    portion, data = table.column("portion")[0].as_py(), table.column("data")
    parts = [unpack(data[int(i)].as_buffer()) for i in np.argsort(table.column("block"))]
    X, targets = stacked([matrix_of(x) for x in parts]), np.concatenate([x["targets"] for x in parts])
    if len(targets) != sizes[portion]:
        raise ValueError(f"Of {sizes[portion]} rows {len(targets)} came back: a block was lost on the way; try again.")
    whole = pack({**arrays_of(X), "targets": targets})
    return pa.table([[portion], [0], [len(targets)], [whole]], schema=table.schema)


def gathered_blocks(batches: Iterator[Any]) -> Iterator[RowBlock]:
    """The blocks that were joined."""
    for batch in batches:
        for portion, data in zip(batch.column("portion"), batch.column("data"), strict=True):
            held = unpack(data.as_buffer())
            yield RowBlock(portion.as_py(), matrix_of(held), held["targets"])


@dataclass(frozen=True)
class _Verified:
    """The staged rows that Spark gives back; a block that is not what it was is refused."""

    placed: Sequence[Placed]
    pieces: Pieces
    form: Form

    def __call__(self, batches: Iterator[Any]) -> Iterator[RowBlock]:
        number = {(x.partition, x.seq): i for i, x in enumerate(self.placed)}
        for batch in batches:
            columns = (batch.column(name) for name in ("partition", "seq", "checksum", "data"))
            for partition, seq, checksum, data in zip(*columns, strict=True):
                if data.is_valid:  # not the row that described the partition
                    i = number.get((partition.as_py(), seq.as_py()))
                    yield from self._blocks(i, partition.as_py(), checksum.as_py(), data.as_buffer())

    def _blocks(self, i: int | None, partition: int, checksum: int, data: Any) -> Iterator[RowBlock]:
        if i is None or self.placed[i].checksum != checksum:
            raise ValueError(
                f"Partition {partition} of the DataFrame was lost, and came out different when Spark computed it"
                " again: its rows have no fixed order. Stage to a folder (staging='/path'), or write the DataFrame"
                " to storage first and read it from there."
            )
        return decoded(data, self.placed[i], self.pieces, np.flatnonzero(self.pieces.block == i).tolist(), self.form)


def small_tasks(df: Any) -> int | None:
    """In how many tasks a table is read that Spark knows to be small; None where it is not, or nothing is known."""
    context = getattr(df.sparkSession, "_sc", None)
    if context is None:
        return None
    size = int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    tasks = READERS * int(context.defaultParallelism)
    return tasks if size <= TASK_BYTES * tasks else None
