"""How far a run has come: for a program, a callback; for a person, a bar on stderr."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self, TextIO

__all__ = ["Progress"]

LABELS = {
    "describe": "reading",
    "sample": "sampling",
    "neighbours": "searching",
    "tally": "weighing",
    "confidence": "judging",
    "redundancy": "selecting",
    "explain": "explaining",
}
EVERY_LIVE, EVERY_PLAIN = 0.1, 10.0  # seconds between two lines of a phase, on a terminal and elsewhere


@dataclass(frozen=True)
class Progress:
    """What a callback is told: the phase, what of it ("batch 2 of 4"), and the rows done so far, of how many.

    `total` is 0 where it is not known, as when a file is first read; `seconds` count from the beginning of the phase or
    of this part of it. The last phase is "finished", or "stopped" after an error.

    Examples
    --------
    >>> import belief
    >>> told = []
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", callback=told.append, random_state=0)
    >>> told[0].phase, told[-1].phase
    ('describe', 'finished')
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
        self._callbacks = [c for c in (callback, _bar(stream or sys.stderr) if bar else None) if c]
        self._phase, self._detail = "", ""
        self._began = self._told = time.perf_counter()

    def phase(self, name: str, detail: str = "") -> None:
        self._phase, self._detail = name, detail
        self._began = time.perf_counter()
        self.rows(0, 0)

    def rows(self, done: int, total: int, detail: str | None = None) -> None:
        if detail is not None and detail != self._detail:  # begun when something else was last told of
            self._detail, self._began = detail, self._told
        self._told = time.perf_counter()
        for callback in self._callbacks:
            callback(Progress(self._phase, self._detail, done, total, self._told - self._began))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *more: object) -> None:
        self.phase("finished" if error is None else "stopped")


def _bar(stream: TextIO | None) -> Callback | None:
    """A bar, where there is something to write to: a program without a terminal may have no stderr at all."""
    return None if stream is None else Bar(stream)


class Bar:
    """One line that is written over; off a terminal, a line for each phase, and for a long one every few seconds."""

    def __init__(self, stream: TextIO, width: int = 24) -> None:
        self._stream, self._width = stream, width
        self._live = stream.isatty()
        self._shown, self._phase = 0.0, ""

    def __call__(self, p: Progress) -> None:
        if p.phase in ("finished", "stopped"):
            self._write("")
        elif self._due(p):
            self._shown, self._phase = time.perf_counter(), p.phase
            self._write(self._text(p))

    def _due(self, p: Progress) -> bool:
        """Not too often; but a phase is shown as it begins, and its bar when it is full."""
        if p.phase != self._phase or (p.done == p.total and (self._live or not p.total)):
            return True
        return time.perf_counter() - self._shown >= (EVERY_LIVE if self._live else EVERY_PLAIN)

    def _text(self, p: Progress) -> str:
        text = f"belief: {LABELS.get(p.phase, p.phase)}" + (f" ({p.detail})" if p.detail else "")
        if not p.done:
            return text
        rate = p.done / max(p.seconds, 1e-9)
        if not p.total:
            return f"{text}: {p.done:,} rows, {rate:,.0f} rows/s"
        left = duration((p.total - p.done) / rate)
        told = f"{p.done:,} of {p.total:,} rows, {left} left"
        speed = f", {rate:,.0f} rows/s"
        if not self._live or len(text) + len(told) + len(speed) + self._width + 5 <= _columns():
            told += speed
        return f"{text}{self._bar(p, len(text) + len(told))} {told}"

    def _bar(self, p: Progress, beside: int) -> str:
        """A bar as wide as there is room for beside the words."""
        width = min(self._width, _columns() - beside - 5)
        if not self._live or width < 8:
            return ":"
        full = width * p.done // p.total
        return f" [{'#' * full}{'.' * (width - full)}]"

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # closed: a run does not end for want of a listener
            if self._live:
                self._stream.write(f"\r\x1b[2K{text[: _columns() - 1]}")  # a line that wraps cannot be written over
            elif text:
                self._stream.write(f"{text}\n")
            self._stream.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns


def duration(seconds: float) -> str:
    """A time to wait, in words."""
    s = round(seconds)
    if s < 120:
        return f"{s} s"
    return f"{s // 60} min" if s < 7200 else f"{s // 3600} h {s % 3600 // 60} min"
