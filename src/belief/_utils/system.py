"""Differences between operating systems: forks, the size of memory and files, and locks."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from typing import IO, Any


def register_at_fork(**handlers: Callable[[], Any]) -> None:
    """Call `os.register_at_fork` on systems that have it. Windows does not, because its processes cannot fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**handlers)


def total_memory() -> int | None:
    """Return the memory of this machine in bytes, or None if the system does not report it."""
    if hasattr(os, "sysconf"):
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            return None

    import ctypes  # Windows

    class MemoryStatus(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    kernel32 = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    return int(status.total) if kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def allocate_file(file: IO[bytes], size: int, folder: str) -> None:
    """Reserve `size` bytes on disk for an empty file.

    If the disk has too little space, this raises an OSError at once, and not later when the file is filled.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    free = shutil.disk_usage(folder).free  # truncate would accept a size that does not fit on the disk
    if size > free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
    file.truncate(size)


def lock_file(file: IO[bytes]) -> None:
    """Lock a file until it is closed.

    Raise a BlockingIOError if another process has locked the file, and a different OSError if the file system does not
    support locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
