"""Finding input files and their formats, ignoring duplicates, and detecting files that change while they are read."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from belief._utils.warnings import warn

FORMATS = {
    "csv": ("csv", "tsv", "txt", "data"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "libsvm": ("libsvm", "svm", "svmlight"),
    "npz": ("npz",),
    "npy": ("npy",),
    "anndata": ("h5ad", "zarr"),
}
COMPRESSIONS = {"csv": (".gz", ".bz2", ".zst"), "libsvm": (".gz", ".bz2", ".xz")}
IGNORED_PREFIXES = ("_", ".")  # Spark and others add files such as _SUCCESS and .part.crc to a folder
FOOTER_BYTES = 8  # the end of a Parquet file: the length of its metadata, and a magic number

Stamp = tuple[int, ...]


def detect_format(path: Path) -> str:
    """Return the format of a file, based on the ending of its name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_compressed = bool(suffixes) and any(suffixes[-1] in endings for endings in COMPRESSIONS.values())
    compression = suffixes.pop() if is_compressed else ""
    ending = suffixes[-1][1:] if suffixes else ""
    for name, endings in FORMATS.items():
        if ending in endings and (not compression or compression in COMPRESSIONS.get(name, ())):
            return name
        if ending in endings:
            raise ValueError(f"{path}: {compression} is not supported for {name} files. Decompress the file first.")
    allowed = ", ".join(e for endings in FORMATS.values() for e in endings)
    raise ValueError(
        f"{path}: the file ending {ending!r} is not supported. Rename or convert the file; supported are {allowed}."
    )


def detect_common_format(paths: Sequence[Path]) -> str:
    """Return the common format of files and folders; raise a ValueError if the formats differ."""
    formats = {file: detect_format(file) for file in list_all_files(paths)}
    if len(set(formats.values())) > 1:
        found = ", ".join(f"{file} is {name}" for file, name in formats.items())
        raise ValueError(f"All files must have the same format, but {found}. Convert them, or read them separately.")
    return next(iter(formats.values()))


def find_files(paths: Sequence[Path]) -> tuple[str, list[Path]]:
    """Return the common format of files and folders, and the list of files to read.

    The list contains folders of Parquet files as folders, because they may be partitioned.
    """
    name = detect_common_format(paths)
    return name, drop_duplicates(paths if name == "parquet" else list_all_files(paths))


def list_all_files(paths: Sequence[Path]) -> list[Path]:
    """Return the given files, and the files in the given folders."""
    return [file for path in paths for file in list_files(path)]


def list_files(path: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, sorted by name; for a file, return the file itself."""
    if not os.path.exists(path):  # unlike Path.exists, accepts names that are too long
        raise FileNotFoundError(f"{path}: there is no such file or folder.")
    if path.is_dir() and path.suffix == ".zarr":
        return [path]
    if path.is_dir():
        found = sorted(_walk(path, {_identity(path)}))
        if not found:
            raise ValueError(f"{path}: the folder has no data files. Names that begin with _ or . are ignored.")
        return found
    if not path.is_file():
        raise ValueError(f"{path} is a pipe or a device, but files are read several times. Save it to a file first.")
    return [path]


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders. Each subfolder is entered once, whatever links lead to it."""
    inside = (p for p in folder.iterdir() if not p.name.startswith(IGNORED_PREFIXES))
    for p in sorted(inside, key=lambda p: (p.is_dir(), p.is_symlink(), p)):
        if p.is_file():
            yield p
        elif p.is_dir() and _identity(p) not in seen:
            seen.add(_identity(p))
            yield from _walk(p, seen)


def drop_duplicates(files: Iterable[Path]) -> list[Path]:
    """Return each file once, with a warning if several paths lead to the same file."""
    kept: dict[tuple[int, int], Path] = {}
    duplicates = []
    for file in files:
        if _identity(file) in kept:
            duplicates.append(f"{file} is the same file as {kept[_identity(file)]}")
        kept.setdefault(_identity(file), file)
    if duplicates:
        more = f" ({len(duplicates) - 1} more duplicates)" if len(duplicates) > 1 else ""
        warn(f"{duplicates[0]}{more}. Each file is read only once.")
    return list(kept.values())


def find_same_file(path: Path, files: Iterable[Path]) -> Path | None:
    """Return the path in `files` that leads to the same file as `path`, or None. The two paths may differ."""
    if not path.exists():
        return None
    identity = _identity(path)
    return next((file for file in files if file.exists() and _identity(file) == identity), None)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


class ChangeDetector:
    """Detects files that change during a pass or between two passes, because a run must not mix rows of two versions.

    Parameters
    ----------
    files : the files
    get_stamp : a function of a file; its value changes if the file is changed or replaced
    """

    def __init__(self, files: Sequence[Path], get_stamp: Callable[[Path], Stamp] | None = None) -> None:
        self._get_stamp = get_stamp or file_stamp
        self._stamps = {file: self._get_stamp(file) for file in files}

    @contextmanager
    def reading(self, *files: Path) -> Iterator[None]:
        """Raise a ValueError if one of these files has changed when this context is entered or left."""
        self._check(files)
        yield
        self._check(files)

    def _check(self, files: Iterable[Path]) -> None:
        for file in files:
            if not file.exists() or self._get_stamp(file) != self._stamps[file]:
                raise ValueError(f"{file} was changed or replaced during the run. Run again when the file is complete.")


def file_stamp(file: Path) -> Stamp:
    """Return the size, the times and the identity of a file. At least one of them differs if the file has changed.

    ctime is included because it changes even if mtime is set back.
    """
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_dev, status.st_ino


def parquet_stamp(file: Path) -> Stamp:
    """Return the stamp of a Parquet file (see `file_stamp`), with a checksum of the file's metadata."""
    with file.open("rb") as raw:
        size = raw.seek(0, os.SEEK_END)
        raw.seek(max(0, size - FOOTER_BYTES))
        length = int.from_bytes(raw.read(4), "little") + FOOTER_BYTES
        raw.seek(max(0, size - length))
        return *file_stamp(file), zlib.crc32(raw.read(length))
