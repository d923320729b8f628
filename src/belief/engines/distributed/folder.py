"""Blocks in files of a folder that every worker reaches: a task maps them into memory, and reads what it needs.

So rows are gathered from them without moving any: a gathered block is read when a task asks for it.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from belief.engines.distributed.blocks import Placed, RowBlock, Staged, decoded, decoded_rows, stacked
from belief.engines.distributed.tasks import Job
from belief.method.arrays import Array


@dataclass(frozen=True)
class Folder:
    """A folder of blocks, as a worker sees it; a relative name is in its temporary folder."""

    name: str

    def path(self) -> Path:
        return Path(tempfile.gettempdir(), self.name) if not os.path.isabs(self.name) else Path(self.name)

    def write(self, block: Staged, data: bytearray) -> None:
        """Write a block: all of it, or none."""
        folder = self.path()
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{uuid.uuid4().hex}"
        beside.write_bytes(data)
        beside.replace(folder / self._file(block))

    def read(self, block: Placed, whole: bool) -> Any:
        """The bytes of a block, mapped into memory; where all will be looked at, all pages by one fault."""
        path = self.path() / self._file(block)
        if not path.exists():
            raise ValueError(f"{path} is gone: the folder of staged blocks must be reached by every executor.")
        with path.open("rb") as file:
            populated = getattr(mmap, "MAP_POPULATE", 0) if whole else 0
            return mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED | populated, mmap.PROT_READ)

    @staticmethod
    def _file(block: Staged | Placed) -> str:
        return f"{block.partition}-{block.seq}-{block.checksum:08x}"

    def remove(self) -> None:
        shutil.rmtree(self.path(), ignore_errors=True)


class Readable(Protocol):
    """Numbered blocks that every worker can read."""

    def __len__(self) -> int:
        """How many there are."""

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        """Some of them, for a job."""


@dataclass(frozen=True)
class StagedFiles:
    """The blocks as they were staged."""

    folder: Folder
    placed: Sequence[Placed]
    dense: bool

    def __len__(self) -> int:
        return len(self.placed)

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        for i in numbers:
            yield decoded(i, self.folder.read(self.placed[i], whole=True), self.placed[i], self.dense)

    def rows(self, ids: Array, features: Array | None = None, number: int = 0) -> RowBlock:
        """A block of the rows with some ids, which rise, wherever they are."""
        edges = np.searchsorted(ids, [x.first for x in self.placed] + [np.iinfo(np.int64).max])
        parts = [
            decoded_rows(self.folder.read(block, whole=False), block, self.dense, ids[a:b], features)
            for block, (a, b) in zip(self.placed, pairwise(edges), strict=True)
            if a < b
        ]
        return RowBlock(number, stacked([X for X, _ in parts]), np.concatenate([targets for _, targets in parts]))


@dataclass(frozen=True)
class GatheredFiles:
    """Blocks that are gathered from those when they are read."""

    staged: StagedFiles
    portions: Sequence[Array]

    def __len__(self) -> int:
        return len(self.portions)

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        for i in numbers:
            yield self.staged.rows(self.portions[i], job.features, i)
