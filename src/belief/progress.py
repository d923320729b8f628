"""The progress of a run, reported to callbacks or displayed on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TextIO

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
        The rows processed so far, and in all. In the significance tests, steps take their place, and `total` grows
        when a test begins, because the number of tests depends on what the others find. `total` is 0 if it is unknown,
        as when a file is first read.
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
    """Passes the progress of the method and the engine on to callbacks, and measures the time of each phase.

    The time from one phase to the next belongs to the earlier one. The time before the first phase, such as for opening
    files, belongs to the first. So the times add up to the whole run.
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
    """Return a Bar for a stream; None if there is no stream.

    A program without a terminal may have no stderr.
    """
    return None if stream is None else Bar(stream)


class Bar:
    """Displays the phases of a run.

    On a terminal the display is live. Elsewhere it is a line at the start of each phase, and every ten seconds.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = _Live(stream) if stream.isatty() else None
        self._updated, self._phase = 0.0, ""
        self._seen: list[tuple[float, int]] = []  # seconds and rows of the current part of the phase

    def __call__(self, p: Progress) -> None:
        if not p.done or (self._seen and p.done < self._seen[-1][1]):
            self._seen = []
        if p.done:
            self._seen.append((p.seconds, p.done))
        with suppress(OSError, ValueError):  # a closed stream must not end the run
            if p.phase in ("finished", "stopped"):
                if self._live:
                    self._live.stop()
            elif self._due(p):
                self._updated, self._phase = time.perf_counter(), p.phase
                self._show(p)

    def _due(self, p: Progress) -> bool:
        """Return True if the display should be updated: at the start and end of a phase, otherwise not too often."""
        if p.phase != self._phase or (p.done == p.total and (self._live or not p.total)):
            return True
        return time.perf_counter() - self._updated >= (TERMINAL_INTERVAL if self._live else PLAIN_INTERVAL)

    def _show(self, p: Progress) -> None:
        label = LABELS.get(p.phase, p.phase) + (f" ({p.detail})" if p.detail else "")
        if self._live:
            self._live.show(p, label, self._describe_rows(p))
        else:
            self._stream.write(f"belief: {label}{': ' * bool(p.done)}{self._describe_rows(p)}\n")
            self._stream.flush()

    def _describe_rows(self, p: Progress) -> str:
        if not p.done:
            return ""
        rate, unit, at_least = p.done / max(p.seconds, 1e-9), "rows", ""
        if p.phase == "significance":  # further tests may follow
            unit, at_least = "steps", "at least "
        if not p.total:
            return f"{p.done:,} {unit}, {rate:,.0f} {unit}/s"
        remaining = format_duration((p.total - p.done) / self._recent_rate(p))
        return f"{p.done:,} of {p.total:,} {unit}, {at_least}{remaining} left, {rate:,.0f} {unit}/s"

    def _recent_rate(self, p: Progress) -> float:
        """Return the rows per second in the second half of the time so far.

        The first rows of a search take longest.
        """
        seconds, done = max((x for x in self._seen if x[0] <= p.seconds / 2), default=(0.0, 0))
        return max(p.done - done, 1) / max(p.seconds - seconds, 1e-9)


class _Live:
    """A live display on a terminal: a line for each phase so far, and a bar for the current one.

    It vanishes at the end.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Lines

        columns = (
            TextColumn("{task.description}"),
            BarColumn(24, complete_style="cyan", finished_style="green"),
            TextColumn("{task.fields[rows]}", style="dim"),
        )
        self._lines = Lines(
            *columns, console=Console(file=stream), auto_refresh=False, transient=True, redirect_stdout=False
        )
        self._tasks: dict[str, Any] = {}
        self._phase, self._began = "", 0.0

    def show(self, p: Progress, label: str, rows: str) -> None:
        now = time.perf_counter()
        if p.phase != self._phase:
            if self._phase:
                self._end_phase(now)
            self._phase, self._began = p.phase, now
        self._lines.start()
        task = self._tasks.get(p.phase)
        if task is None:
            task = self._tasks[p.phase] = self._lines.add_task(label, rows=rows)
        self._lines.update(task, description=label, total=p.total or None, completed=p.done, rows=rows)
        self._lines.refresh()

    def _end_phase(self, now: float) -> None:
        took = f"{now - self._began:.1f} s"
        self._lines.update(self._tasks[self._phase], description=LABELS[self._phase], total=1, completed=1, rows=took)

    def stop(self) -> None:
        self._lines.stop()


def format_duration(seconds: float) -> str:
    """Return a waiting time as text, such as "12 min"."""
    s = round(seconds)
    if s < 120:
        return f"{s} s"
    return f"{s // 60} min" if s < 7200 else f"{s // 3600} h {s % 3600 // 60} min"
