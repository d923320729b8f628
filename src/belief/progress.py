"""How far a run has come: for a program, a callback; for a person, a bar on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TextIO

LABELS = {
    "describe": "reading",
    "sample": "sampling",
    "neighbours": "searching",
    "tally": "weighing",
    "redundancy": "selecting",
}


@dataclass(frozen=True)
class Progress:
    """What a callback is told: the phase, what of it ("batch 2 of 4"), and the rows searched so far, of how many.

    The last phase is "finished", or "stopped" after an error.
    """

    phase: str
    detail: str
    done: int
    total: int
    seconds: float


Callback = Callable[[Progress], None]


class Reporter:
    """Passes on what the method and the engine say of their progress."""

    def __init__(self, callback: Callback | None = None, bar: bool = False, stream: TextIO | None = None) -> None:
        self._callbacks = [c for c in (callback, Bar(stream or sys.stderr) if bar else None) if c]
        self._phase, self._detail = "", ""
        self._began = time.perf_counter()

    def phase(self, name: str, detail: str = "") -> None:
        self._phase, self._detail = name, detail
        self._began = time.perf_counter()
        self.rows(0, 0)

    def rows(self, done: int, total: int, detail: str | None = None) -> None:
        if detail is not None and detail != self._detail:
            self._detail, self._began = detail, time.perf_counter()
        for callback in self._callbacks:
            callback(Progress(self._phase, self._detail, done, total, time.perf_counter() - self._began))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *more: object) -> None:
        self.phase("finished" if error is None else "stopped")


class Bar:
    """One line that is written over; a line for each phase where the stream is not a terminal."""

    def __init__(self, stream: TextIO, width: int = 24) -> None:
        self._stream, self._width = stream, width
        self._live = stream.isatty()
        self._shown = 0.0

    def __call__(self, p: Progress) -> None:
        if p.phase in ("finished", "stopped"):
            self._write("", "\r" if self._live else "")
            return
        now = time.perf_counter()
        if p.total and (not self._live or (now - self._shown < 0.1 and p.done < p.total)):
            return
        self._shown = now
        text = f"belief: {LABELS.get(p.phase, p.phase)}" + (f" ({p.detail})" if p.detail else "")
        if p.total:
            full = self._width * p.done // p.total
            left = p.seconds * (p.total - p.done) / max(p.done, 1)
            text += f" [{'#' * full}{'.' * (self._width - full)}] {p.done:,} of {p.total:,} rows, {left:.0f} s left"
        self._write(text, "" if self._live else "\n")

    def _write(self, text: str, end: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}{end}" if self._live else f"{text}{end}")
        self._stream.flush()
