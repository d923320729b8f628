"""What a run notes on the way, so that another like it can go on from there.

A checkpoint is a folder of arrays, each file written beside and renamed, and a page that says whose it is: the same
settings on the same data continue it, any other run is refused. Every file begins with a seal, a checksum of the run it
belongs to, of its name and of its contents: what was damaged, or copied from elsewhere, is not believed. What the seal
cannot know, that the numbers go together with this run, is looked at by whoever reads them.
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

from belief.method.arrays import Array
from belief.method.protocols import Notes
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target

FORMAT = 3
PAGE = "checkpoint.json"
NOTES = ("neighbours.npz", "search.npz", "sums.npz")
SEAL = hashlib.sha256().digest_size
DAMAGES = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, MemoryError, RecursionError),
    *(OSError, EOFError, NotImplementedError, BadZipFile, zlib.error),
)  # what reading a file may raise that is not what was written
T = TypeVar("T")


class Checkpoint(Notes):
    """The notes of one run, in a folder; with `restart` those that are there are forgotten."""

    def __init__(self, folder: str | os.PathLike[str], restart: bool = False) -> None:
        self.folder, self._restart = Path(folder), restart
        self._whose = ""  # the run that the notes belong to
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"checkpoint {self.folder} is a file: give the name of a folder.")

    def begin(self, settings: Settings, summary: Summary, target: Target, fingerprint: Callable[[], bytes]) -> int:
        mine = {"format": FORMAT, "settings": settings.as_dict(), "data": digest(summary, target, fingerprint())}
        seed = settings.draw_seed()
        ours = (self.folder / PAGE).exists()
        if ours and not self._restart:
            seed = self._continued(mine, seed, drawn=settings.random_state is None)
        else:
            self._forget() if ours else self._refuse_foreign()
            page = {**mine, "seed": seed}
            self._write(PAGE, lambda file: file.write(json.dumps({**page, "checksum": _sum_of(page)}).encode()))
        self._whose = _sum_of({**mine, "seed": seed})
        return seed

    def _continued(self, mine: dict[str, Any], seed: int, drawn: bool) -> int:
        """The seed of the run whose page is there, which must be one like mine."""
        theirs = self._page()
        before: int = theirs["seed"]
        _refuse_other(self.folder, mine, theirs)
        if not drawn and seed != before:
            raise ValueError(
                f"checkpoint {self.folder} belongs to a run with the seed {before}, not {seed}: give that seed to"
                " continue it, another folder, or start anew with restart=True."
            )
        return before

    def _page(self) -> dict[str, Any]:
        """What the page says, as it was written."""
        try:
            page: dict[str, Any] = json.loads(_plain_file(self.folder / PAGE).read_text())
            if page["format"] == FORMAT and page.pop("checksum") != _sum_of(page):
                raise ValueError("checksum")
        except DAMAGES:
            raise ValueError(f"checkpoint {self.folder}: {PAGE} is damaged; start anew with restart=True.") from None
        if page["format"] != FORMAT:
            raise ValueError(
                f"checkpoint {self.folder} was made by another version of belief: start anew with restart=True."
            )
        return page

    def _forget(self) -> None:
        """Remove what a run has noted here, and nothing else; the page last, so that no notes are without one."""
        try:
            for name in (*NOTES, PAGE):
                (self.folder / f".{name}").unlink(missing_ok=True)
                (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(f"checkpoint {self.folder}: {name} cannot be removed ({error.strerror}).") from None

    def _refuse_foreign(self) -> None:
        begun = f".{PAGE}"  # by a run that was killed in its first moment
        if self.folder.exists() and any(file.name != begun for file in self.folder.iterdir()):
            raise ValueError(f"checkpoint {self.folder} holds other files: give an empty folder, or a new name.")

    def note(self, name: str, **arrays: Any) -> None:
        self._write(f"{name}.npz", partial(self._save, name, arrays))

    def _save(self, name: str, arrays: dict[str, Any], file: BinaryIO) -> None:
        file.write(bytes(SEAL))
        np.savez(file, **arrays)
        file.seek(SEAL)
        seal = self._seal(name, file)
        file.seek(0)
        file.write(seal)

    def _seal(self, name: str, file: BinaryIO) -> bytes:
        """A checksum of the run, of the name, and of the rest of a file."""
        begun = f"{self._whose} {name} ".encode()
        return hashlib.file_digest(file, lambda: hashlib.sha256(begun)).digest()  # type: ignore[arg-type]

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file beside its place, and rename it when it is safe."""
        beside = self.folder / f".{name}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with beside.open("w+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            why = os.strerror(error.errno) if error.errno else error
            raise ValueError(f"checkpoint {self.folder}: {name} cannot be written ({why}).") from None

    def recall(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
        if not (self.folder / f"{name}.npz").exists():
            return None
        try:
            return read(self._load(name))
        except DAMAGES:
            raise ValueError(
                f"checkpoint {self.folder}: {name}.npz is damaged; remove it to go on without, or start anew with"
                " restart=True."
            ) from None

    def _load(self, name: str) -> dict[str, Any]:
        with _plain_file(self.folder / f"{name}.npz").open("rb") as raw:
            if raw.read(SEAL) != self._seal(name, raw):
                raise ValueError("seal")
            raw.seek(SEAL)
            with np.load(raw) as file:
                return {key: file[key] for key in file.files}


def _plain_file(path: Path) -> Path:
    """The same; a pipe would never end."""
    if not path.is_file():
        raise OSError(f"{path} is no file")
    return path


def _sum_of(page: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(page, sort_keys=True).encode()).hexdigest()


def digest(summary: Summary, target: Target, fingerprint: bytes) -> str:
    """A name for the data: its moments, its levels, its target, and what the engine says of its rows."""
    h = hashlib.sha256(fingerprint)
    for x in _arrays(summary, target.counts):
        h.update(str(x.shape).encode() + np.ascontiguousarray(x).tobytes())
    return h.hexdigest()


def _arrays(*values: Any) -> Iterator[Array]:
    """The arrays in some values, and in the fields of those that have fields."""
    for value in values:
        if hasattr(value, "__dataclass_fields__"):
            yield from _arrays(*(getattr(value, f.name) for f in fields(value)))
        else:
            yield np.asarray(value)


def _refuse_other(folder: Path, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    before = theirs["settings"]
    for name, value in mine["settings"].items():
        if json.dumps(before.get(name)) != json.dumps(value):  # 1 is one feature, 1.0 is all of them
            raise ValueError(
                f"checkpoint {folder} belongs to a run with {name}={before.get(name)!r}, not {value!r}: give that run's"
                " settings to continue it, another folder, or start anew with restart=True."
            )
    if theirs["data"] != mine["data"]:
        raise ValueError(
            f"checkpoint {folder} belongs to other data: give another folder, or start anew with restart=True."
        )
