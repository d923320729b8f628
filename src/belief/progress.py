"""The progress of a run, reported to callbacks or displayed on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
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
COMPARING = "comparing features"  # the detail of sums over pairs of rows
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
        The number of rows processed so far, and the number of all rows. In the significance tests, both count steps
        instead. `total` then grows when a test begins, because the number of tests depends on the results of the tests
        before. When features are compared with each other ("comparing features"), both count pairs of rows, and start
        again with each group of features. `total` is 0 if it is unknown, as in the first pass over a file.
    seconds : float
        The time since this phase, or this part of it, began.

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

    A phase lasts until the next phase begins. The time before the first phase, such as for opening files, counts for
    the first phase, so the times add up to the runtime.
    """

    def __init__(self, callback: Callback | None = None, bar: bool = False, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr  # which is None in some programs without a terminal
        self._callbacks = [c for c in (callback, Bar(stream) if bar and stream is not None else None) if c]
        self._phase, self._detail, self._done = "", "", 0
        self._began = self._reported = self._timed = time.perf_counter()
        self._timings: dict[str, float] = {}

    def phase(self, name: str, detail: str = "") -> None:
        self._began = time.perf_counter()
        if self._phase:
            self._credit()
        self._phase, self._detail, self._done = name, detail, 0
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
        is_new = detail is not None and detail != self._detail
        if is_new or done < self._done:  # the new part began at the last report of the previous part
            self._detail, self._began = self._detail if detail is None else detail, self._reported
        self._done = done
        self._reported = time.perf_counter()
        for callback in self._callbacks:
            callback(Progress(self._phase, self._detail, done, total, self._reported - self._began))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *more: object) -> None:
        self.phase("finished" if error is None else "stopped")


class Bar:
    """Displays the phases of a run.

    On a terminal, the display is updated in place. Elsewhere, a line is printed at the start of each phase and then
    every ten seconds.
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
                label = LABELS.get(p.phase, p.phase) + (f" ({p.detail})" if p.detail else "")
                if self._live:
                    self._live.show(p, label, self._describe_rows(p))
                else:
                    self._stream.write(f"belief: {label}{': ' * bool(p.done)}{self._describe_rows(p)}\n")
                    self._stream.flush()

    def _due(self, p: Progress) -> bool:
        """Return True if the display should be updated: at the start and end of a phase, and in fixed intervals."""
        if p.phase != self._phase or (p.done == p.total and (self._live or not p.total)):
            return True
        return time.perf_counter() - self._updated >= (TERMINAL_INTERVAL if self._live else PLAIN_INTERVAL)

    def _describe_rows(self, p: Progress) -> str:
        if not p.done:
            return ""
        rate, unit, at_least = p.done / max(p.seconds, 1e-9), "rows", ""
        if p.phase == "significance" or p.detail == COMPARING:  # further tests or groups of features may follow
            unit, at_least = "pairs" if p.detail == COMPARING else "steps", "at least "
        if not p.total:
            return f"{p.done:,} {unit}, {rate:,.0f} {unit}/s"
        remaining = f"{at_least}{format_duration(left)} left, " if (left := self._time_left(p)) is not None else ""
        return f"{p.done:,} of {p.total:,} {unit}, {remaining}{rate:,.0f} {unit}/s"

    def _time_left(self, p: Progress) -> float | None:
        """Estimate the seconds left from the recent rate; None if there are too few reports.

        The longest time between two reports does not count, because it may include the compilation of a function. Of
        the others, the first half does not count, because the first rows of a search take longest.
        """
        if p.done == p.total:
            return 0.0
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise([(0.0, 0), *self._seen])]
        steps.remove(max(steps))
        half, seconds, done = sum(x for x, _ in steps) / 2, 0.0, 0
        while steps and seconds <= half:
            step = steps.pop()
            seconds, done = seconds + step[0], done + step[1]
        return (p.total - p.done) * seconds / done if done else None


class _Live:
    """A live display on a terminal: a line for each phase so far, and a bar for the current phase.

    The display is erased at the end of the run.
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
                took, label_before = f"{now - self._began:.1f} s", LABELS[self._phase]
                self._lines.update(self._tasks[self._phase], description=label_before, total=1, completed=1, rows=took)
            self._phase, self._began = p.phase, now
        self._lines.start()
        task = self._tasks.get(p.phase)
        if task is None:
            task = self._tasks[p.phase] = self._lines.add_task(label, rows=rows)
        self._lines.update(task, description=label, total=p.total or None, completed=p.done, rows=rows)
        self._lines.refresh()

    def stop(self) -> None:
        self._lines.stop()


def format_duration(seconds: float) -> str:
    """Return a time in seconds as text, such as "12 min"."""
    s = round(seconds)
    if s < 120:
        return f"{s} s"
    return f"{s // 60} min" if s < 7200 else f"{s // 3600} h {s % 3600 // 60} min"
