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
from dataclasses import dataclass, replace
from heapq import heapreplace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from belief.engines.distributed.blocks import (
    Form,
    Matrix,
    Pieces,
    Placed,
    RowBlock,
    Staged,
    decoded,
    decoded_rows,
    stacked,
)
from belief.engines.distributed.owner import Owner, remove_stale
from belief.engines.distributed.placing import Layout
from belief.engines.distributed.tasks import Job
from belief.method.arrays import Array

TOGETHER_BYTES = 2**22  # of small pieces that are read as one block


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

    def sizes(self) -> Sequence[int]:
        """The rows of each."""

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        """Some of them, for a job."""


def dealt(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """The blocks of each task, so that all have about as many rows: the largest first, to who has the least."""
    load = [(0, t) for t in range(tasks)]
    out: list[list[int]] = [[] for _ in load]
    for i in np.argsort(sizes, kind="stable")[::-1].tolist():
        size, t = load[0]
        out[t].append(i)
        heapreplace(load, (size + int(sizes[i]), t))
    return [sorted(mine) for mine in out]


def together(layout: Layout) -> list[range]:
    """Which pieces are read as one block: small ones that follow each other, for each block has a price of its own."""
    out: list[range] = []
    size = 0  # of the last range
    for i, rows in enumerate(layout.pieces.rows.tolist()):
        size += rows * layout.row_bytes
        if out and size <= TOGETHER_BYTES:
            out[-1] = range(out[-1].start, i + 1)
        else:
            out.append(range(i, i + 1))
            size = rows * layout.row_bytes
    return out


@dataclass(frozen=True)
class StagedFiles:
    """The rows that were staged, as blocks of consecutive ids."""

    folder: Folder
    placed: Sequence[Placed]
    pieces: Pieces
    form: Form
    ranges: Sequence[range]  # the pieces of each

    @classmethod
    def of(cls, folder: Folder, layout: Layout) -> StagedFiles:
        return cls(folder, layout.placed, layout.pieces, layout.form, together(layout))

    def __len__(self) -> int:
        return len(self.ranges)

    def sizes(self) -> Sequence[int]:
        rows = self.pieces.rows
        return [int(rows[x.start : x.stop].sum()) for x in self.ranges]

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        for i in numbers:
            pieces = self.ranges[i]
            block = self._piece(pieces[0], job.features is None) if len(pieces) == 1 else self._joined(pieces)
            yield replace(block, number=i)

    def _piece(self, i: int, whole: bool) -> RowBlock:
        placed = self.placed[self.pieces.block[i]]
        whole = whole and self.pieces.rows[i] == placed.rows
        return next(decoded(self.folder.read(placed, whole), placed, self.pieces, [i], self.form))

    def _joined(self, pieces: range) -> RowBlock:
        first, last = (int(self.pieces.first[i]) for i in (pieces[0], pieces[-1]))
        ids = np.arange(first, last + int(self.pieces.rows[pieces[-1]]))
        return replace(self.rows(ids), first=first)

    def rows(self, ids: Array, features: Array | None = None, number: int = 0) -> RowBlock:
        """A block of the rows with some ids, which rise, wherever they are."""
        block, at = self.pieces.find(ids)
        order = np.argsort(block, kind="stable")
        apart = np.split(order, np.flatnonzero(np.diff(block[order])) + 1)
        parts = [self._some(self.placed[block[some[0]]], at[some], features) for some in apart]
        X, targets = stacked([X for X, _ in parts]), np.concatenate([targets for _, targets in parts])
        if np.any(np.diff(block) < 0):  # runs of partitions that took turns in the blocks
            back = np.argsort(order)
            X, targets = X[back], targets[back]
        return RowBlock(number, X, targets)

    def _some(self, placed: Placed, at: Array, features: Array | None) -> tuple[Matrix, Array]:
        return decoded_rows(self.folder.read(placed, whole=False), placed, self.form, at, features)

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

    def sizes(self) -> Sequence[int]:
        return list(map(len, self.portions))

    def read(self, numbers: Iterable[int], job: Job) -> Iterator[RowBlock]:
        for i in numbers:
            yield self.staged.rows(self.portions[i], job.features, i)
