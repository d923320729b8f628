"""Whose a folder of staged blocks is: those of drivers that are gone are removed by the next run that finds them.

Beside the blocks lies a note of the process that staged them. Whether that still runs can be told on its own machine;
of another machine's, only that nobody has touched the folder for a day.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

NOTE = ".owner"
PREFIX = "belief-"
FORGOTTEN = 24 * 3600  # seconds


@dataclass(frozen=True)
class Owner:
    """A process: where it runs, its number there, and when that began, since numbers are used again."""

    place: str
    pid: int
    began: str

    @classmethod
    def me(cls) -> Self:
        return cls(_place(), os.getpid(), _began(os.getpid()))

    def is_gone(self) -> bool:
        """Whether it is known to have ended."""
        if self.place != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it is another user's
            return False
        return _began(self.pid) != self.began

    def note(self, folder: Path) -> None:
        """Leave a note in a folder, unless there is one."""
        with suppress(FileExistsError), (folder / NOTE).open("x") as file:
            json.dump(asdict(self), file)


def _place() -> str:
    """The machine since it was started, and the container; where that cannot be told, the machine's name."""
    with suppress(OSError):
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{started} {os.stat('/proc/self/ns/pid').st_ino}"
    return socket.gethostname()


def _began(pid: int) -> str:
    """When a process began, in the machine's own time; nothing where that cannot be told."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def remove_stale(home: Path) -> None:
    """Remove the folders below one that drivers left behind."""
    for folder in home.glob(f"{PREFIX}{'[0-9a-f]' * 32}"):
        with suppress(OSError):  # another run removes it too
            if _is_stale(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_stale(folder: Path) -> bool:
    with suppress(OSError, ValueError, TypeError):
        if Owner(**json.loads((folder / NOTE).read_text())).is_gone():
            return True
    return time.time() - folder.stat().st_mtime > FORGOTTEN
