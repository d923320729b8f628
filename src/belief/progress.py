"""Report the progress of a run to callbacks, or as a bar on stderr."""

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
    "significance": "testing",
    "redundancy": "selecting",
    "explain": "explaining",
}
TERMINAL_INTERVAL, PLAIN_INTERVAL = 0.1, 10.0  # seconds between updates on a terminal, and elsewhere


@dataclass(frozen=True)
class Progress:
    """The progress of a run, as passed to a callback.

    Attributes
    ----------
    phase : str
        "describe", "sample", "significance", "neighbours", "tally", "redundancy" or "explain"; at the end "finished",
        or "stopped" after an error.
    detail : str
        The part of the phase, such as "batch 2 of 4".
    done, total : int
        The rows processed so far, and in all. `total` is 0 if it is unknown, as when a file is first read.
    seconds : float
        The time since this phase or part began.

    Examples
    --------
    >>> import belief
    >>> received = []
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", callback=received.append, random_state=0)
    >>> received[0].phase, received[-1].phase
    ('describe', 'finished')
    """

    phase: str
    detail: str
    done: int
    total: int
    seconds: float


Callback = Callable[[Progress], None]


class Reporter:
    """Pass the progress of the method and the engine on to callbacks, and time the phases.

    The time from one phase to the next belongs to the earlier one, and that before the first phase, such as for opening
    files, to the first. So the times add up to the whole run.
    """

    def __init__(self, callback: Callback | None = None, bar: bool = False, stream: TextIO | None = None) -> None:
        self._callbacks = [c for c in (callback, _bar(stream or sys.stderr) if bar else None) if c]
        self._phase, self._detail = "", ""
        self._began = self._reported = self._timed = time.perf_counter()
        self._timings: dict[str, float] = {}

    def phase(self, name: str, detail: str = "") -> None:
        self._began = time.perf_counter()
        if self._phase:
            self._credit()
        self._phase, self._detail = name, detail
        self.rows(0, 0)

    def timings(self) -> dict[str, float]:
        """Return the seconds spent in each phase so far."""
        self._credit()
        return dict(self._timings)

    def _credit(self) -> None:
        now = time.perf_counter()
        self._timings[self._phase] = self._timings.get(self._phase, 0.0) + now - self._timed
        self._timed = now

    def rows(self, done: int, total: int, detail: str | None = None) -> None:
        if detail is not None and detail != self._detail:  # it began when the previous detail was last reported
            self._detail, self._began = detail, self._reported
        self._reported = time.perf_counter()
        for callback in self._callbacks:
            callback(Progress(self._phase, self._detail, done, total, self._reported - self._began))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *more: object) -> None:
        self.phase("finished" if error is None else "stopped")


def _bar(stream: TextIO | None) -> Callback | None:
    """Create a bar, unless there is no stream: a program without a terminal may have no stderr."""
    return None if stream is None else Bar(stream)


class Bar:
    """A progress bar on one line; without a terminal, a new line per phase and every few seconds."""

    def __init__(self, stream: TextIO, width: int = 24) -> None:
        self._stream, self._width = stream, width
        self._live = stream.isatty()
        self._updated, self._phase = 0.0, ""
        self._seen: list[tuple[float, int]] = []  # seconds and rows of the current part of the phase

    def __call__(self, p: Progress) -> None:
        if not p.done or (self._seen and p.done < self._seen[-1][1]):
            self._seen = []
        if p.done:
            self._seen.append((p.seconds, p.done))
        if p.phase in ("finished", "stopped"):
            self._write("")
        elif self._due(p):
            self._updated, self._phase = time.perf_counter(), p.phase
            self._write(self._text(p))

    def _due(self, p: Progress) -> bool:
        """Whether to update: at the start and end of a phase, otherwise not too often."""
        if p.phase != self._phase or (p.done == p.total and (self._live or not p.total)):
            return True
        return time.perf_counter() - self._updated >= (TERMINAL_INTERVAL if self._live else PLAIN_INTERVAL)

    def _text(self, p: Progress) -> str:
        text = f"belief: {LABELS.get(p.phase, p.phase)}" + (f" ({p.detail})" if p.detail else "")
        if not p.done:
            return text
        rate = p.done / max(p.seconds, 1e-9)
        if not p.total:
            return f"{text}: {p.done:,} rows, {rate:,.0f} rows/s"
        remaining = format_duration((p.total - p.done) / self._recent_rate(p))
        rows = f"{p.done:,} of {p.total:,} rows, {remaining} left"
        speed = f", {rate:,.0f} rows/s"
        if not self._live or len(text) + len(rows) + len(speed) + self._width + 5 <= _columns():
            rows += speed
        return f"{text}{self._bar(p, len(text) + len(rows))} {rows}"

    def _recent_rate(self, p: Progress) -> float:
        """Return the rows per second in the second half of the time so far: the first rows of a search take longest."""
        seconds, done = max((x for x in self._seen if x[0] <= p.seconds / 2), default=(0.0, 0))
        return max(p.done - done, 1) / max(p.seconds - seconds, 1e-9)

    def _bar(self, p: Progress, n_other: int) -> str:
        """Draw a bar in the space that `n_other` characters leave on the line."""
        width = min(self._width, _columns() - n_other - 5)
        if not self._live or width < 8:
            return ":"
        full = width * p.done // p.total
        return f" [{'#' * full}{'.' * (width - full)}]"

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a closed stream must not end the run
            if self._live:
                self._stream.write(f"\r\x1b[2K{text[: _columns() - 1]}")  # wrapped lines cannot be overwritten
            elif text:
                self._stream.write(f"{text}\n")
            self._stream.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns


def format_duration(seconds: float) -> str:
    """Format a waiting time, such as "12 min"."""
    s = round(seconds)
    if s < 120:
        return f"{s} s"
    return f"{s // 60} min" if s < 7200 else f"{s // 3600} h {s % 3600 // 60} min"
