"""Checkpoints: intermediate results in a folder, from which an interrupted run continues.

A checkpoint is a folder with arrays and a description of the run. Only a run with the same settings on the same data
can continue it. Each file of arrays begins with a checksum of the run, the file's name and its contents, so that
damaged files and files of other runs are detected. The code that uses the arrays also checks that they are valid for
the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zipfile import BadZipFile

import numpy as np

from belief._utils.system import lock_file
from belief.method.arrays import Array
from belief.method.protocols import Storage
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target

FORMAT = 3
DESCRIPTION = "checkpoint.json"
LOCK = ".lock"
ARRAY_FILES = ("neighbours.npz", "search.npz", "sums.npz")
CHECKSUM_SIZE = hashlib.sha256().digest_size
READ_ERRORS = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, MemoryError, RecursionError),
    *(OSError, EOFError, NotImplementedError, BadZipFile, zlib.error),
)  # errors that reading a damaged file may raise
T = TypeVar("T")


class Checkpoint(Storage):
    """The checkpoint of one run, in a folder. With `restart`, an earlier checkpoint in the folder is discarded."""

    def __init__(self, folder: str | os.PathLike[str], restart: bool = False) -> None:
        self.folder, self._restart = Path(folder), restart
        self._run = ""  # identifies the run in checksums
        self._locked: BinaryIO | None = None
        if os.path.exists(self.folder) and not self.folder.is_dir():  # unlike Path.exists, accepts long names
            raise ValueError(f"checkpoint {self.folder} is a file: pass a folder.")

    def begin(self, settings: Settings, summary: Summary, target: Target, fingerprint: Callable[[], bytes]) -> int:
        self._lock()
        run = {"format": FORMAT, "settings": settings.as_dict(), "data": digest(summary, target, fingerprint())}
        seed = settings.draw_seed()
        exists = (self.folder / DESCRIPTION).exists()
        if exists and not self._restart:
            seed = self._resume(run, seed, drawn=settings.random_state is None)
        else:
            if exists:
                self._clear()
            description = {**run, "seed": seed}
            text = json.dumps({**description, "checksum": _checksum(description)})
            self._write(DESCRIPTION, lambda file: file.write(text.encode()))
        self._run = _checksum({**run, "seed": seed})
        return seed

    def _lock(self) -> None:
        """Reserve the folder for this run until `close` is called. Raise a ValueError if another run uses it."""
        path = self.folder / LOCK
        begun = (LOCK, f".{DESCRIPTION}")  # a run that was killed at its start may leave these files behind
        if (
            os.path.exists(self.folder)
            and not os.path.exists(self.folder / DESCRIPTION)
            and any(file.name not in begun for file in self.folder.iterdir())
        ):
            raise ValueError(f"checkpoint {self.folder} holds other files: pass an empty or a new folder.")
        while self._locked is None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                file = path.open("wb")
            except OSError as error:
                raise ValueError(f"checkpoint {self.folder}: cannot be written ({error.strerror}).") from None
            try:
                lock_file(file)
                if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    self._locked = file
                else:  # another run that has just ended removed the file
                    file.close()
            except BlockingIOError:
                file.close()
                raise ValueError(
                    f"checkpoint {self.folder} is in use by another run: wait until it ends, or pass another folder."
                ) from None
            except OSError:  # a file system without locks
                self._locked = file

    def close(self) -> None:
        """Release the folder for other runs."""
        if self._locked is not None:
            lock = self.folder / LOCK
            try:
                lock.unlink()
            except OSError:  # Windows does not remove an open file
                self._locked.close()
                with suppress(OSError):
                    lock.unlink()
            self._locked.close()

    def _resume(self, run: dict[str, Any], seed: int, drawn: bool) -> int:
        """Return the seed of the stored run; raise a ValueError if that run had other settings or data."""
        try:
            stored: dict[str, Any] = json.loads(_check_is_file(self.folder / DESCRIPTION).read_text(encoding="utf-8"))
            if stored["format"] == FORMAT and stored.pop("checksum") != _checksum(stored):
                raise ValueError("checksum")
        except READ_ERRORS:
            raise ValueError(f"checkpoint {self.folder}: {DESCRIPTION} is damaged: use restart=True.") from None
        if stored["format"] != FORMAT:
            raise ValueError(
                f"checkpoint {self.folder} was written by another version (format {stored['format']!r:.40}, not"
                f" {FORMAT}): use restart=True."
            )
        settings, stored_seed = stored["settings"], int(stored["seed"])
        for name, value in run["settings"].items():
            if json.dumps(settings.get(name)) != json.dumps(value):  # 1 (one feature) is not 1.0 (all features)
                raise ValueError(
                    f"checkpoint {self.folder} belongs to a run with {name}={settings.get(name)!r}, not {value!r}: use"
                    " the settings of that run, another folder, or restart=True."
                )
        if stored["data"] != run["data"]:
            raise ValueError(f"checkpoint {self.folder} belongs to other data: use another folder, or restart=True.")
        if not drawn and seed != stored_seed:
            raise ValueError(
                f"checkpoint {self.folder} belongs to a run with the seed {stored_seed}, not {seed}: use that seed,"
                " another folder, or restart=True."
            )
        return stored_seed

    def _clear(self) -> None:
        """Remove the files of the checkpoint, the description last. Other files in the folder stay."""
        try:
            for name in (*ARRAY_FILES, DESCRIPTION):
                (self.folder / f".{name}").unlink(missing_ok=True)
                (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(f"checkpoint {self.folder}: {name} cannot be removed ({error.strerror}).") from None

    def save(self, name: str, **arrays: Any) -> None:
        self._write(f"{name}.npz", partial(self._save, name, arrays))

    def _save(self, name: str, arrays: dict[str, Any], file: BinaryIO) -> None:
        file.write(bytes(CHECKSUM_SIZE))
        np.savez(file, **arrays)
        file.seek(CHECKSUM_SIZE)
        checksum = self._file_checksum(name, file)
        file.seek(0)
        file.write(checksum)

    def _file_checksum(self, name: str, file: BinaryIO) -> bytes:
        """Return one checksum of the run, of the file's name, and of what has not been read of the file."""
        prefix = f"{self._run} {name} ".encode()
        return hashlib.file_digest(file, lambda: hashlib.sha256(prefix)).digest()  # type: ignore[arg-type]

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a temporary file, and rename it once its contents are on disk."""
        temporary = self.folder / f".{name}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("w+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            why = os.strerror(error.errno) if error.errno else error
            raise ValueError(f"checkpoint {self.folder}: {name} cannot be written ({why}).") from None

    def load(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
        if not (self.folder / f"{name}.npz").exists():
            return None
        try:
            with _check_is_file(self.folder / f"{name}.npz").open("rb") as raw:
                if raw.read(CHECKSUM_SIZE) != self._file_checksum(name, raw):
                    raise ValueError("checksum")
                raw.seek(CHECKSUM_SIZE)
                with np.load(raw) as file:
                    return read({key: file[key] for key in file.files})
        except READ_ERRORS:
            raise ValueError(
                f"checkpoint {self.folder}: {name}.npz is damaged: delete it to compute it again, or use restart=True."
            ) from None


def _check_is_file(path: Path) -> Path:
    """Return the path if it is a regular file. Otherwise raise an OSError: reading a pipe could block forever."""
    if not path.is_file():
        raise OSError(f"{path} is not a file")
    return path


def _checksum(description: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def digest(summary: Summary, target: Target, fingerprint: bytes) -> str:
    """Return a checksum of the data, made from its summary, its target, and the engine's fingerprint of the rows."""
    h = hashlib.sha256(fingerprint)
    for x in _arrays(summary, target.counts):
        h.update(str(x.shape).encode() + np.ascontiguousarray(x).tobytes())
    return h.hexdigest()


def _arrays(*values: Any) -> Iterator[Array]:
    """Yield the values as arrays, and the fields of dataclasses recursively."""
    for value in values:
        if hasattr(value, "__dataclass_fields__"):
            yield from _arrays(*(getattr(value, f.name) for f in fields(value)))
        else:
            yield np.asarray(value)
