"""The files behind the names a user gives: each once, whatever links lead to it, and the same from pass to pass."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from belief._utils.warnings import warn

HIDDEN = ("_", ".")  # how the names begin of what lies beside the data
FOOTER = 8  # bytes at the end of a Parquet file: how long what stands before is, and its mark


def files_in(path: Path) -> list[Path]:
    """A file itself; of a folder the files in it and in its folders, by name."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder.")
    if path.is_dir():
        found = sorted(_walk(path, {_identity(path)}))
        if not found:
            raise ValueError(f"{path}: the folder has no data in it.")
        return found
    if not path.is_file():
        raise ValueError(
            f"{path} is a pipe or a device, which cannot be read again and again: save it as a file first."
        )
    return [path]


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """The files below a folder; a link to a folder that was seen, the folder itself for one, leads nowhere."""
    inside = sorted((p for p in folder.iterdir() if not p.name.startswith(HIDDEN)), key=lambda p: (p.is_symlink(), p))
    yield from (p for p in inside if p.is_file())
    for p in inside:
        if p.is_dir() and _identity(p) not in seen:
            seen.add(_identity(p))
            yield from _walk(p, seen)


def once(files: Iterable[Path]) -> list[Path]:
    """The files, each once: a link or another spelling is no other file."""
    kept: dict[tuple[int, int], Path] = {}
    again = []
    for file in files:
        if _identity(file) in kept:
            again.append(f"{file} is {kept[_identity(file)]} once more")
        kept.setdefault(_identity(file), file)
    if again:
        warn(f"{again[0]}{f' (and {len(again) - 1} others)' if len(again) > 1 else ''}: each file is read once.")
    return list(kept.values())


def same_file(path: Path, files: Iterable[Path]) -> Path | None:
    """Which of some files a path is, by whatever name; None where it is none, or not there."""
    if not path.exists():
        return None
    mine = _identity(path)
    return next((file for file in files if file.exists() and _identity(file) == mine), None)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


Mark = tuple[int, ...]


class Unchanged:
    """Files as they were first seen: to read on in others would mix two tables.

    Parameters
    ----------
    files : the files
    mark : what tells a file from another with its name
    """

    def __init__(self, files: Sequence[Path], mark: Callable[[Path], Mark] | None = None) -> None:
        self._mark = mark or stamp
        self._marks = {file: self._mark(file) for file in files}

    @contextmanager
    def reading(self, *files: Path) -> Iterator[None]:
        """Refuse files that are others by now, or are when they have been read."""
        self._check(files)
        yield
        self._check(files)

    def _check(self, files: Iterable[Path]) -> None:
        for file in files:
            if not file.exists() or self._mark(file) != self._marks[file]:
                raise ValueError(f"{file} was changed or replaced while it was read: run it again when it is at rest.")


def stamp(file: Path) -> Mark:
    """Size, times, and which file it is; the time of the last change of any kind cannot be put back."""
    found = os.stat(file)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino


def parquet_stamp(file: Path) -> Mark:
    """The same, and what the end of a Parquet file says of its columns and rows."""
    with file.open("rb") as raw:
        size = raw.seek(0, os.SEEK_END)
        raw.seek(max(0, size - FOOTER))
        length = int.from_bytes(raw.read(4), "little") + FOOTER
        raw.seek(max(0, size - length))
        return *stamp(file), zlib.crc32(raw.read(length))
