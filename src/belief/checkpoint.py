"""What a run notes on the way, so that another like it can go on from there.

A checkpoint is a folder of arrays, each file written beside and renamed, and a page that says whose it is: the same
settings on the same data continue it, any other run is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from belief.method.arrays import Array
from belief.method.protocols import Notes
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target

FORMAT = 2
PAGE = "checkpoint.json"


class Checkpoint(Notes):
    """The notes of one run, in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"checkpoint {self.folder} is a file: give the name of a folder.")

    def begin(self, settings: Settings, summary: Summary, target: Target, fingerprint: Callable[[], bytes]) -> int:
        seed = settings.draw_seed()
        data = digest(summary, target, fingerprint())
        mine = {"format": FORMAT, "settings": settings.as_dict(), "data": data}
        page = self.folder / PAGE
        if not page.exists():
            self._refuse_foreign()
            self._write(PAGE, lambda file: file.write(json.dumps({**mine, "seed": seed}).encode()))
            return seed
        try:
            theirs = json.loads(page.read_text())
            before = int(theirs.pop("seed"))
        except (ValueError, KeyError, AttributeError):
            raise ValueError(f"checkpoint {self.folder}: {PAGE} is damaged; remove the folder to start anew.") from None
        _refuse_other(self.folder, mine, theirs)
        if settings.random_state is not None and seed != before:
            raise ValueError(
                f"checkpoint {self.folder} belongs to a run with the seed {before}, not {seed}: give that seed to"
                " continue it, or another folder."
            )
        return before

    def _refuse_foreign(self) -> None:
        begun = f".{PAGE}"  # by a run that was killed in its first moment
        if self.folder.exists() and any(file.name != begun for file in self.folder.iterdir()):
            raise ValueError(f"checkpoint {self.folder} holds other files: give an empty folder, or a new name.")

    def note(self, name: str, **arrays: Any) -> None:
        self._write(f"{name}.npz", lambda file: np.savez(file, **arrays))

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file beside its place, and rename it when it is safe."""
        beside = self.folder / f".{name}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            why = os.strerror(error.errno) if error.errno else error
            raise ValueError(f"checkpoint {self.folder}: {name} cannot be written ({why}).") from None

    def recall(self, name: str) -> dict[str, Any] | None:
        if not (self.folder / f"{name}.npz").exists():
            return None
        try:
            with (self.folder / f"{name}.npz").open("rb") as raw, np.load(raw) as file:
                return {key: file[key] for key in file.files}
        except (ValueError, OSError, EOFError, BadZipFile, TypeError):
            raise ValueError(f"checkpoint {self.folder}: {name}.npz is damaged; remove it to go on without.") from None


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
    if theirs.get("format") != mine["format"]:
        raise ValueError(f"checkpoint {folder} was made by another version of belief: remove it to start anew.")
    before = theirs["settings"]
    for name, value in mine["settings"].items():
        if json.dumps(before.get(name)) != json.dumps(value):  # 1 is one feature, 1.0 is all of them
            raise ValueError(
                f"checkpoint {folder} belongs to a run with {name}={before.get(name)!r}, not {value!r}: give that run's"
                " settings to continue it, or another folder."
            )
    if theirs["data"] != mine["data"]:
        raise ValueError(f"checkpoint {folder} belongs to other data: give another folder, or remove it.")
