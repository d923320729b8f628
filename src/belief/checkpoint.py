"""What a run notes on the way, so that another like it can go on from there.

A checkpoint is a folder of arrays, each file written beside and renamed, and a page that says whose it is: the same
settings on the same data continue it, any other run is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from belief.method.partials import Array, Neighbours, Summary, Tally
from belief.method.settings import Settings

FORMAT = 1
PAGE = "checkpoint.json"


class Checkpoint:
    """The notes of one run, or none where there is no folder."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"checkpoint {self.folder} is a file: give the name of a folder.")

    def begin(self, settings: Settings, summary: Summary, fingerprint: Callable[[], bytes]) -> int:
        """Return the seed of the run: that of the run to be continued, if there is one."""
        seed = settings.draw_seed()
        if self.folder is None:
            return seed
        mine = {"format": FORMAT, "settings": settings.as_dict(), "data": digest(summary, fingerprint())}
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
        assert self.folder is not None
        begun = f".{PAGE}"  # by a run that was killed in its first moment
        if self.folder.exists() and any(file.name != begun for file in self.folder.iterdir()):
            raise ValueError(f"checkpoint {self.folder} holds other files: give an empty folder, or a new name.")

    def keep_neighbours(self, found: Neighbours) -> None:
        self.note("neighbours", **vars(found))

    def neighbours(self) -> Neighbours | None:
        noted = self.recall("neighbours")
        return None if noted is None else Neighbours(**noted)

    def keep_sums(self, tally: Tally, watch_lists: Sequence[Array]) -> None:
        """Keep the sums so far, and the watch list made after each batch."""
        lists = {f"watched_{t}": watched for t, watched in enumerate(watch_lists)}
        self.note("sums", **vars(tally), **lists, batches=len(watch_lists))

    def sums(self) -> tuple[Tally, list[Array]] | None:
        noted = self.recall("sums")
        if noted is None:
            return None
        watch_lists = [noted.pop(f"watched_{t}") for t in range(int(noted.pop("batches")))]
        return Tally(**{**noted, "n_pairs": int(noted["n_pairs"])}), watch_lists

    def note(self, name: str, **arrays: Any) -> None:
        """Keep arrays under a name; the ones before them are forgotten once these are safe."""
        if self.folder is not None:
            self._write(f"{name}.npz", lambda file: np.savez(file, **arrays))

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file beside its place, and rename it when it is safe."""
        assert self.folder is not None
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
        """The arrays kept under a name, None where there are none."""
        if self.folder is None or not (self.folder / f"{name}.npz").exists():
            return None
        try:
            with (self.folder / f"{name}.npz").open("rb") as raw, np.load(raw) as file:
                return {key: file[key] for key in file.files}
        except (ValueError, OSError, EOFError, BadZipFile, TypeError):
            raise ValueError(f"checkpoint {self.folder}: {name}.npz is damaged; remove it to go on without.") from None


NO_CHECKPOINT = Checkpoint(None)


def digest(summary: Summary, fingerprint: bytes) -> str:
    """A name for the data: its moments, its levels, and what the engine says of its rows."""
    h = hashlib.sha256(fingerprint)
    for f in fields(summary):
        value = getattr(summary, f.name)
        parts = [value] if isinstance(value, np.ndarray) else [getattr(value, g.name) for g in fields(value)]
        for x in parts:
            h.update(str(x.shape).encode() + np.ascontiguousarray(x).tobytes())
    return h.hexdigest()


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
