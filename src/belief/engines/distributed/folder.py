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
from scipy.sparse import issparse

from belief.engines.distributed.blocks import Placed, RowBlock, Staged, decoded, decoded_rows, stacked
from belief.engines.distributed.owner import Owner, remove_stale
from belief.engines.distributed.placing import Layout
from belief.engines.distributed.tasks import Job
from belief.method.arrays import Array

TOGETHER_BYTES = 2**22  # of small blocks that are read as one


@dataclass(frozen=True)
class Folder:
    """A folder of blocks, as a worker sees it; a relative name is in its temporary folder."""

    name: str
    owner: Owner | None = None  # the driver, who removes it in the end

    def path(self) -> Path:
        return Path(tempfile.gettempdir(), self.name) if not os.path.isabs(self.name) else Path(self.name)

    def write(self, block: Staged, data: bytearray) -> None:
        """Write a block: all of it, or none."""
        folder = self.path()
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            if self.owner is not None:
                self.owner.note(folder)
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

    def remove_older(self) -> None:
        """Remove what drivers that are gone have left beside it."""
        remove_stale(self.path().parent)

    def remove(self) -> None:
        shutil.rmtree(self.path(), ignore_errors=True)


class Readable(Protocol):
    """Numbered blocks that every worker can read."""

    def __len__(self) -> int:
        """How many there are."""

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        """Some of them, for a job."""


def together(layout: Layout) -> list[range]:
    """Which blocks are read as one: small ones that follow each other, for each block has a price of its own."""
    out: list[range] = []
    size = 0  # of the last range
    for i, block in enumerate(layout.placed):
        size += block.rows * layout.row_bytes
        if out and size <= TOGETHER_BYTES:
            out[-1] = range(out[-1].start, i + 1)
        else:
            out.append(range(i, i + 1))
            size = block.rows * layout.row_bytes
    return out


@dataclass(frozen=True)
class StagedFiles:
    """The blocks as they were staged, those of a range read as one."""

    folder: Folder
    placed: Sequence[Placed]
    dense: bool
    ranges: Sequence[range]

    def __len__(self) -> int:
        return len(self.ranges)

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        for i in numbers:
            blocks = [self._block(j) for j in self.ranges[i]]
            targets = blocks[0].targets if len(blocks) == 1 else np.concatenate([x.targets for x in blocks])
            yield RowBlock(i, stacked([x.X for x in blocks]), targets, blocks[0].first)

    def _block(self, i: int) -> RowBlock:
        return decoded(i, self.folder.read(self.placed[i], whole=True), self.placed[i], self.dense)

    def rows(self, ids: Array, features: Array | None = None, number: int = 0) -> RowBlock:
        """A block of the rows with some ids, which rise, wherever they are."""
        edges = np.searchsorted(ids, [x.first for x in self.placed] + [np.iinfo(np.int64).max])
        parts = [
            decoded_rows(self.folder.read(block, whole=False), block, self.dense, ids[a:b], features)
            for block, (a, b) in zip(self.placed, pairwise(edges), strict=True)
            if a < b
        ]
        return RowBlock(number, stacked([X for X, _ in parts]), np.concatenate([targets for _, targets in parts]))

    def values(self, ids: Array, columns: Array) -> Array:
        """Some features of the rows with some ids, which rise."""
        rising = np.sort(columns)
        X = self.rows(ids, rising).X
        X = X[:, rising].toarray() if issparse(X) else X
        return X[:, np.searchsorted(rising, columns)].astype(np.float64)


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
