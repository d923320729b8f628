"""Blocks in files of a folder that every executor can read.

Tasks map the files into memory and read the rows that they need, so no rows are moved to gather them.

The folder also has a file that identifies its owner, the driver process that created it. The next run that stages to
the same place removes the folders of drivers that have ended. Only the machine of a process knows whether it has ended;
folders from other machines are removed if they have not been modified for a day.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from heapq import heapreplace
from pathlib import Path
from typing import Any, Self

import numpy as np

from belief.engines.spark.blocks import BlockInfo, Layout, RowBlock, stack_rows
from belief.method.arrays import Array

OWNER_FILE = ".owner"
PREFIX = "belief-"
STALE_SECONDS = 24 * 3600


# --- the folder ---


@dataclass(frozen=True)
class Owner:
    """The driver process that created a folder. The start time distinguishes processes with the same id."""

    machine: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Self:
        return cls(_machine_id(), os.getpid(), _start_time(os.getpid()))

    def has_ended(self) -> bool:
        """Return True if the process is known to have ended."""
        if self.machine != _machine_id():
            return False
        if sys.platform == "win32":  # os.kill may end the process there
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # a process of another user
            return False
        return _start_time(self.pid) != self.started

    def write(self, folder: Path) -> None:
        """Write a file that names this process as the owner of a folder, unless the folder has one."""
        with suppress(FileExistsError), (folder / OWNER_FILE).open("x", encoding="utf-8") as file:
            json.dump(asdict(self), file)


def _machine_id() -> str:
    """Return a text that identifies the machine, its current boot and the container; without /proc, the host name."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    return socket.gethostname()


def _start_time(pid: int) -> str:
    """Return when a process started, in clock ticks; an empty string without /proc."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    return ""


def remove_stale(home: Path) -> None:
    """Remove the staging folders in `home` whose drivers have ended."""
    for folder in home.glob(f"{PREFIX}{'[0-9a-f]' * 32}"):
        is_stale = False
        with suppress(OSError, ValueError, TypeError):
            is_stale = Owner(**json.loads((folder / OWNER_FILE).read_text(encoding="utf-8"))).has_ended()
        with suppress(OSError):  # another run may remove it at the same time
            if is_stale or time.time() - folder.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Folder:
    """A staging folder. A relative name is below the temporary directory of each executor."""

    name: str
    owner: Owner | None = None
    created_by_driver: bool = False  # otherwise by the first task that writes

    def path(self) -> Path:
        return Path(tempfile.gettempdir(), self.name) if not os.path.isabs(self.name) else Path(self.name)

    def create(self) -> None:
        """Create the folder, with a file that names its owner."""
        folder = self.path()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"The staging folder {folder.parent} cannot be written ({error.strerror}). Pass another folder, or"
                " staging='disk'."
            ) from None
        if self.owner is not None:
            self.owner.write(folder)

    def write(self, block: BlockInfo, data: bytearray) -> None:
        """Write a block to a file. Other tasks see the whole file or none."""
        folder = self.path()
        if not self.created_by_driver and not folder.exists():
            self.create()
        temporary, target = folder / f".{uuid.uuid4().hex}", folder / self._file_name(block)
        try:
            temporary.write_bytes(data)
            temporary.replace(target)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            # Windows does not replace a file that a task reads, and this one has the same contents
            if not (isinstance(error, PermissionError) and target.exists()):
                raise ValueError(
                    f"The staging folder {folder} cannot be written ({error.strerror}). Pass another folder, or"
                    " staging='disk'."
                ) from None

    def read(self, block: BlockInfo, whole: bool) -> Any:
        """Map the file of a block into memory.

        With `whole`, read all pages at once, which is faster if all are needed.
        """
        path = self.path() / self._file_name(block)
        if not path.exists():
            raise ValueError(f"{path} is missing. Pass a staging folder that every executor can read.")
        with path.open("rb") as file:
            if whole and hasattr(mmap, "MAP_POPULATE"):
                return mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @staticmethod
    def _file_name(block: BlockInfo) -> str:
        return f"{block.partition}-{block.seq}-{block.checksum:08x}"

    def remove_older(self) -> None:
        """Remove the folders next to this one whose drivers have ended."""
        remove_stale(self.path().parent)

    def remove(self) -> None:
        shutil.rmtree(self.path(), ignore_errors=True)


# --- its blocks ---


@dataclass(frozen=True)
class BlockFiles:
    """Numbered blocks of rows, which any task can read from files.

    The rows of a block are consecutive rows of the table, or any rows in the order of their ids.
    """

    folder: Folder
    layout: Layout
    portions: Sequence[range | Array]  # the row ids of each block

    @classmethod
    def of(cls, folder: Folder, layout: Layout, min_bytes: int) -> Self:
        """Return the blocks of the whole table.

        A run of the layout, which is a range of consecutive rows in one file, becomes a block. But small consecutive
        runs share a block of at most `min_bytes` bytes, because each block has a fixed overhead.
        """
        portions: list[range] = []
        size = 0  # size of the last portion
        for first, rows in zip(layout.run_first.tolist(), layout.run_rows.tolist(), strict=True):
            size += rows * layout.row_bytes
            if portions and size <= min_bytes:
                portions[-1] = range(portions[-1].start, first + rows)
            else:
                portions.append(range(first, first + rows))
                size = rows * layout.row_bytes
        return cls(folder, layout, portions)

    def gather(self, portions: Sequence[Array]) -> Self:
        """Return new blocks, one for each of these arrays of row ids."""
        return replace(self, portions=portions)

    def __len__(self) -> int:
        return len(self.portions)

    def read(self, numbers: Iterable[int], features: Array | None) -> Iterator[RowBlock]:
        """Yield the blocks with these numbers. Features that are not in `features` may be left out."""
        layout = self.layout
        for i in numbers:
            ids = self.portions[i]
            if not isinstance(ids, range):
                yield replace(self.read_rows(ids, features), number=i)
                continue
            run = int(np.searchsorted(layout.run_first, ids.start, side="right")) - 1
            if layout.run_rows[run] == len(ids):
                block = layout.blocks[layout.run_block[run]]
                data = self.folder.read(block, whole=features is None and block.rows == len(ids))
                yield replace(next(layout.decode_runs(data, [run])), number=i)
            else:
                rows = self.read_rows(np.arange(ids.start, ids.stop), features)
                yield replace(rows, number=i, first=ids.start)

    def read_rows(self, ids: Array, features: Array | None = None) -> RowBlock:
        """Return the rows with these sorted ids, from the blocks that have them."""
        block, position = self.layout.locate(ids)
        order = np.argsort(block, kind="stable")
        parts = []
        for some in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
            i = int(block[some[0]])
            data = self.folder.read(self.layout.blocks[i], whole=False)
            parts.append(self.layout.decode_rows(data, i, position[some], features))
        X, targets = stack_rows([X for X, _ in parts]), np.concatenate([targets for _, targets in parts])
        if np.any(np.diff(block) < 0):  # consecutive ids alternate between blocks
            back = np.argsort(order)
            X, targets = X[back], targets[back]
        return RowBlock(0, X, targets)


def balance_tasks(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """Assign blocks to tasks so that all tasks have about the same number of rows; return the blocks of each task.

    The largest block is assigned first, always to the task with the fewest rows.
    """
    load = [(0, t) for t in range(tasks)]
    out: list[list[int]] = [[] for _ in load]
    for i in np.argsort(sizes, kind="stable")[::-1].tolist():
        size, t = load[0]
        out[t].append(i)
        heapreplace(load, (size + int(sizes[i]), t))
    return [sorted(assigned) for assigned in out]
