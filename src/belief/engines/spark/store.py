"""Where staged blocks are held, and how a job reaches them.

Files: each block is a file, in a folder the user names, which every executor reaches, or, where Spark runs on one
machine, in a temporary one. A pass maps the files into memory; nothing goes through the JVM.

Persisted: each block is a row of a persisted DataFrame, in memory or on disk. A lost one is computed again by Spark,
and refused if it comes out different.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from belief.data.labels import RowError
from belief.engines.spark.blocks import STAGED, Block, Placed, Reader, arrays_of, decode, refuse_shared, settle, stage
from belief.engines.spark.tasks import Job, picked
from belief.engines.spark.wire import pack, unpack
from belief.method.arrays import Array

ANSWERS = "task int, slice int, data binary"
SEEN = -1  # the slice in which a task says which blocks it has seen
COLLECT_BYTES = 2**26  # answers up to this size go to the driver as they are; more are merged on the way


@dataclass(frozen=True)
class Staged:
    """What the driver hears of the blocks when they are made."""

    partition: int
    seq: int
    rows: int
    checksum: int
    about: dict[str, Any]
    summary: bytes | None
    names: dict[str, Array]


def heard(rows: Sequence[Any]) -> list[Staged]:
    """The rows of the staging job; of what could not be read, the first is said."""
    told = sorted(((row, json.loads(row.about)) for row in rows), key=lambda x: (x[0].partition, x[0].seq))
    for row, about in told:
        if "problem" in about:
            refuse_staged(about["problem"], sum(x.rows for x, _ in told if x.partition < row.partition))
    return [
        Staged(
            row.partition,
            row.seq,
            row.rows,
            row.checksum,
            about,
            None if row.summary is None else bytes(row.summary),
            unpack(bytes(row.names)),
        )
        for row, about in told
    ]


def refuse_staged(problem: list[Any], rows_before: int) -> None:
    """Say what a partition could not read; its rows are numbered from its first, and here from that of the whole."""
    if len(problem) == 1:
        raise ValueError(*problem)
    before, row, rest = problem
    raise RowError(before, rows_before + row, rest)


def refuse_shared_codes(staged: Sequence[Staged]) -> None:
    """Refuse two strings of a column that have the same code."""
    known: dict[tuple[str, float], int] = {}
    for x in staged:
        for name, code, check in zip(x.about["columns"], x.names["code"], x.names["names"], strict=True):
            refuse_shared(known.setdefault((name, float(code)), int(check)), int(check), name)


# --- on the executors ---


def threads() -> int:
    """The cores of a task."""
    from pyspark import TaskContext

    return max(1, TaskContext.get().cpus())  # type: ignore[union-attr]


def answered(job: Job, blocks: Iterator[tuple[int, Block]]) -> Iterator[Any]:
    """Run a job over some blocks, and put its answers into batches."""
    import pyarrow as pa
    from pyspark import TaskContext

    settle()
    task = TaskContext.get().partitionId()  # type: ignore[union-attr]
    schema = pa.schema([("task", pa.int32()), ("slice", pa.int32()), ("data", pa.binary())])
    seen: list[int] = []

    def counted() -> Iterator[Block]:
        for i, block in blocks:
            seen.append(i)
            yield block

    for where, arrays in job.run(counted(), threads()):
        yield pa.record_batch([[task], [where], [pack(arrays)]], schema=schema)
    yield pa.record_batch([[task], [SEEN], [pack({"seen": np.array(seen, np.int64)})]], schema=schema)


def kept(block: Block, ids: Array) -> Block:
    """A block of those rows that are among the ids."""
    X, at = picked(block, ids)
    return Block(X, np.zeros(len(at), np.int32), block.first, ids[at])


class Folder:
    """A folder of blocks, as an executor sees it; a relative name is in its temporary folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def path(self) -> Path:
        return Path(tempfile.gettempdir(), self.name) if not os.path.isabs(self.name) else Path(self.name)

    def write(self, partition: int, seq: int, checksum: int, data: bytearray) -> None:
        folder = self.path()
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{uuid.uuid4().hex}"
        beside.write_bytes(data)
        beside.replace(folder / self._file(partition, seq, checksum))

    def read(self, placed: Placed) -> Any:
        path = self.path() / self._file(placed.partition, placed.seq, placed.checksum)
        if not path.exists():
            raise ValueError(f"{path} is gone: the folder of staged blocks must be reached by every executor.")
        with path.open("rb") as file:
            populated = getattr(mmap, "MAP_POPULATE", 0)  # one fault for all pages
            return mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED | populated, mmap.PROT_READ)

    @staticmethod
    def _file(partition: int, seq: int, checksum: int) -> str:
        return f"{partition}-{seq}-{checksum:08x}"

    def remove(self) -> None:
        shutil.rmtree(self.path(), ignore_errors=True)


# --- on the driver ---


class Files:
    """Blocks in files."""

    def __init__(self, spark: Any, folder: str, tasks: int, here: bool = False) -> None:
        self._spark, self._folder, self._most = spark, Folder(folder), tasks
        self._here = here  # whether the driver reaches the folder too
        self.placed: Sequence[Placed] = []
        self.dense = True

    def stage(self, df: Any, reader: Reader, discrete: Array) -> list[Staged]:
        keep = self._folder.write
        staged = df.mapInArrow(stage(reader, discrete, keep), STAGED)
        return heard(staged.drop("data").collect())

    @property
    def tasks(self) -> int:
        """How many tasks a pass has."""
        return max(1, min(self._most, len(self.placed)))

    def answers(self, job: Job) -> Any:
        folder, placed, dense, n = self._folder, self.placed, self.dense, self.tasks

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for t in batch.column(0).to_pylist():
                    mine = ((i, decode(folder.read(placed[i]), placed[i], dense)) for i in range(t, len(placed), n))
                    yield from answered(job, mine)

        return self._spark.range(0, n, 1, n).mapInArrow(run, ANSWERS)

    def fetched(self, job: Job) -> list[tuple[int, int, bytearray]] | None:
        """The answers of a job that fetches a few rows, where the driver can do it without asking anybody."""
        if not self._here:
            return None
        blocks = (decode(self._folder.read(x), x, self.dense) for x in self.placed)
        found = [(0, where, pack(arrays)) for where, arrays in job.run(blocks, 1)]
        return [*found, (0, SEEN, pack({"seen": np.arange(len(self.placed))}))]

    def keep(self, ids: Array) -> Files:
        """Those blocks again: a row of a file that is mapped into memory is found as fast as in a smaller one."""
        return self

    def close(self) -> None:
        folder = self._folder
        if self._here:
            folder.remove()
            return

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            folder.remove()
            yield from batches

        self._spark.range(0, 1, 1, 1).mapInArrow(run, "id long").collect()


class Persisted:
    """Blocks in a persisted DataFrame."""

    def __init__(self, level: Any) -> None:
        self._level = level
        self._staged: Any = None
        self.placed: Sequence[Placed] = []
        self.dense = True
        self._decode: Callable[[Any, Placed, bool], Block] = decode

    def stage(self, df: Any, reader: Reader, discrete: Array) -> list[Staged]:
        run = stage(reader, discrete, lambda partition, seq, checksum, data: data)
        self._staged = df.mapInArrow(run, STAGED).persist(self._level)
        return heard(self._staged.drop("data").collect())

    @property
    def tasks(self) -> int:
        """How many tasks of a pass have something to say."""
        return max(1, len({x.partition for x in self.placed}))

    def answers(self, job: Job) -> Any:
        table = self._staged.select("partition", "seq", "checksum", "data")
        placed, dense, decode_as = self.placed, self.dense, self._decode
        at = {(x.partition, x.seq): i for i, x in enumerate(placed)}

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            return answered(job, verified(batches, at, placed, dense, decode_as))

        return table.mapInArrow(run, ANSWERS)

    def keep(self, ids: Array) -> Persisted:
        """The rows with these ids, in a DataFrame of their own."""
        table = self._staged.select("partition", "seq", "checksum", "data")
        placed, dense = self.placed, self.dense
        at = {(x.partition, x.seq): i for i, x in enumerate(placed)}

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            kinds = [pa.int32(), pa.int32(), pa.int64(), pa.binary()]
            schema = pa.schema(list(zip(("partition", "seq", "checksum", "data"), kinds, strict=True)))
            for i, block in verified(batches, at, placed, dense, decode):
                x = placed[i]
                data = encode_kept(kept(block, ids))
                yield pa.record_batch([[x.partition], [x.seq], [x.checksum], [data]], schema=schema)

        few = Persisted(self._level)
        few._staged = table.mapInArrow(run, "partition int, seq int, checksum long, data binary").persist(self._level)
        few.placed, few.dense, few._decode = placed, dense, decode_kept
        return few

    def fetched(self, job: Job) -> None:
        """The executors have the rows."""

    def close(self) -> None:
        if self._staged is not None:
            self._staged.unpersist()


def verified(
    batches: Iterator[Any], at: dict[tuple[int, int], int], placed: Sequence[Placed], dense: bool, decode_as: Any
) -> Iterator[tuple[int, Block]]:
    """The blocks that Spark gives back; one that is not what it was is refused."""
    for batch in batches:
        for partition, seq, checksum, data in zip(*(batch.column(j) for j in range(4)), strict=True):
            where = partition.as_py(), seq.as_py()
            if not data.is_valid:  # the row that described the partition
                continue
            i = at.get(where)
            if i is None or placed[i].checksum != checksum.as_py():
                raise ValueError(
                    f"Partition {where[0]} of the DataFrame was lost, and came out different when Spark computed it"
                    " again: its rows have no fixed order. Stage to a folder (staging='/path'), or write the DataFrame"
                    " to storage first and read it from there."
                )
            yield i, decode_as(data.as_buffer(), placed[i], dense)


def encode_kept(block: Block) -> bytearray:
    """A block of a few rows, with their ids."""
    return pack({**arrays_of(block.X), "codes": block.labels, "ids": block.ids})


def decode_kept(data: Any, placed: Placed, dense: bool) -> Block:
    """The inverse of `encode_kept`; classes are not asked of such rows."""
    ids = unpack(data)["ids"]
    block = decode(data, replace(placed, classes=np.zeros(1, np.int32)), dense)
    return replace(block, ids=ids)


# --- which of the two ---


def store_for(spark: Any, staging: str) -> Files | Persisted:
    """Where blocks are to be held: "auto", "memory", "disk", or a folder."""
    from pyspark import StorageLevel

    if staging not in ("auto", "memory", "disk") and not re.match(r"(file://)?/", staging):
        raise ValueError(
            f"staging must be 'auto', 'memory', 'disk', or the full path of a folder that every executor reaches as a"
            f" file system; got {staging!r}."
        )
    if staging in ("memory", "disk"):
        return Persisted(StorageLevel.MEMORY_AND_DISK if staging == "memory" else StorageLevel.DISK_ONLY)
    local = re.fullmatch(r"local(\[(\d+|\*).*\])?", spark.conf.get("spark.master", ""))
    if staging == "auto" and not local:
        return Persisted(StorageLevel.MEMORY_AND_DISK)
    run = f"belief-{uuid.uuid4().hex}"
    here = bool(local) and hasattr(spark, "_sc")
    home = tempfile.gettempdir() if here else ""  # of another process, it may be another
    folder = os.path.join(home, run) if staging == "auto" else f"{staging.removeprefix('file://').rstrip('/')}/{run}"
    return Files(spark, folder, parallelism(spark, local), here)


def parallelism(spark: Any, local: re.Match[str] | None) -> int:
    """How many tasks a pass over files has: as many as run at once, and on a cluster a few times that."""
    context = getattr(spark, "_sc", None)
    if local is not None and (local[2] or "").isdigit():
        return int(local[2])
    at_once = int(context.defaultParallelism) if context is not None else 16
    return at_once if local is not None else 3 * at_once
