"""Make Python on Linux behave as on macOS or Windows, before anything else is imported.

Tests put this folder on PYTHONPATH and set BELIEF_TEST_SYSTEM to macos or windows. Then in each of their processes:

- Functions and modules that exist only on Linux or Unix are removed, and /proc is hidden.
- multiprocessing starts processes by "spawn".
- An error is raised if the package opens a text file without naming its encoding.
- On Windows, a file that is open or mapped in this process cannot be replaced, renamed or removed.
"""

import builtins
import ctypes
import errno
import io
import mmap
import multiprocessing
import os
import signal
import subprocess  # noqa: F401  imported before msvcrt exists, by which it recognises Windows
import sys
from fcntl import LOCK_EX, LOCK_NB, flock
from types import SimpleNamespace

LINUX_ONLY = (
    *("posix_fallocate", "posix_fadvise", "memfd_create", "eventfd"),
    *("sendfile", "copy_file_range", "splice", "O_DIRECT", "O_PATH"),
)
UNIX_ONLY = (
    *("register_at_fork", "fork", "forkpty", "sysconf", "sysconf_names", "getloadavg", "mkfifo", "mknod", "chown"),
    *("killpg", "getpgid", "setsid", "pread", "pwrite", "preadv", "pwritev", "fchmod", "posix_spawn"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_SYNC"),
)
UNIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "syslog")
MAP_FLAGS = ("MAP_SHARED", "MAP_POPULATE")  # polars needs the other flags on Linux

is_windows = os.environ["BELIEF_TEST_SYSTEM"] == "windows"
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
real_open, real_readlink, real_listdir = io.open, os.readlink, os.listdir


def is_proc(path):
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith("/proc")


def without_proc(function):
    def guarded(path=".", *args, **options):
        if is_proc(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return function(path, *args, **options)

    return guarded


def open_with_encoding(file, mode="r", buffering=-1, encoding=None, *more, **options):
    """Open a file; raise if the package opens a text file without naming its encoding, which depends on the system."""
    if "b" not in mode and encoding in (None, "locale"):
        caller = sys._getframe(1)
        while caller.f_globals["__name__"].partition(".")[0] in (__name__, "pathlib", "tempfile"):
            caller = caller.f_back
        if caller.f_globals["__name__"].startswith("belief"):
            raise AssertionError(f"{file} is opened without an encoding in {caller.f_globals['__name__']}")
    return real_open(file, mode, buffering, encoding, *more, **options)


def is_open(path):
    """Return True if this process has the file open or mapped."""
    path = os.path.realpath(path)
    for number in real_listdir("/proc/self/fd"):
        try:
            if real_readlink(f"/proc/self/fd/{number}") == path:
                return True
        except OSError:
            pass
    with real_open("/proc/self/maps") as maps:
        return any(line.rstrip("\n").endswith(f" {path}") for line in maps)


def only_written(function):
    """Return a version of fsync that raises, as on Windows, for files that were not opened for writing."""

    def guarded(handle):
        with real_open(f"/proc/self/fdinfo/{handle}") as about:
            flags = int(next(line for line in about if line.startswith("flags")).split()[1], 8)
        if not flags & os.O_ACCMODE:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return function(handle)

    return guarded


def lock_bytes(handle, mode, n):
    """Lock a file as msvcrt.locking does."""
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def unless_open(function):
    def guarded(*paths, **options):
        if not options.get("dir_fd") and any(is_open(path) for path in paths):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), *map(os.fspath, paths[:1]))
        return function(*paths, **options)

    return guarded


def global_memory_status(reference):
    """Fill a MEMORYSTATUSEX as Windows does: the length was set by the caller, the total is at byte 8 of 64."""
    length, total = ctypes.c_uint32.from_address(reference), ctypes.c_uint64.from_address(reference + 8)
    total.value = MEMORY
    return length.value == 64


for name in LINUX_ONLY + (UNIX_ONLY if is_windows else ()):
    if hasattr(os, name):
        delattr(os, name)
for name in MAP_FLAGS if is_windows else ("MAP_POPULATE",):
    if hasattr(mmap, name):
        delattr(mmap, name)
if is_windows:
    sys.modules.update(dict.fromkeys(UNIX_MODULES))
    kernel = SimpleNamespace(
        GlobalMemoryStatusEx=lambda reference: global_memory_status(ctypes.addressof(reference._obj))
    )
    sys.modules["msvcrt"] = SimpleNamespace(locking=lock_bytes, LK_NBLCK=2)
    del signal.SIGHUP
    os.fsync = only_written(os.fsync)
    ctypes.windll = SimpleNamespace(kernel32=kernel)
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, unless_open(getattr(os, name)))
for name in ("stat", "open", "listdir", "readlink"):
    setattr(os, name, without_proc(getattr(os, name)))
builtins.open = io.open = without_proc(open_with_encoding)
multiprocessing.set_start_method("spawn")
