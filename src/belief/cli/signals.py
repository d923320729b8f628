"""Signals that end the process, raised as exceptions, so that temporary files are removed.

Some moments are unsafe: an exception could leave a lock locked that other threads need, or be ignored by Python within
a finaliser. At an unsafe moment, the exception is delayed a little.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Ctrl-C, and the signals of schedulers and closed terminals; Windows has no SIGHUP
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
LOCKING = ("numba", "llvmlite")  # packages that acquire locks in Python code and have finalisers
SECONDS_LATER = 0.02


class Terminated(BaseException):
    """The process received a signal to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM and SIGHUP within this context, and KeyboardInterrupt on SIGINT.

    Signals that are ignored, or that have another handler already, are not changed.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    handler = _Handler()
    usual = {number: signal.getsignal(number) for number in (*ENDING, *handler.timer)}
    taken = [  # without signals that are ignored, as SIGHUP is under nohup
        number for number, known in usual.items() if known in (signal.SIG_DFL, signal.default_int_handler)
    ]
    for number in taken:
        signal.signal(number, handler)
    handler.can_wait = set(handler.timer) <= set(taken)
    try:
        yield
    finally:
        if handler.can_wait:
            signal.setitimer(signal.ITIMER_REAL, 0)
        waiting, handler.waiting = handler.waiting, 0
        for number in taken:
            if signal.getsignal(number) is handler:  # Spark may have set its own handler for SIGINT
                signal.signal(number, usual[number])
        if waiting:
            signal.raise_signal(waiting)


class _Handler:
    """Raises an exception for a signal, later if the moment is unsafe. A second signal raises it at once."""

    # the signal of the timer; Windows has no such signal
    timer = (signal.SIGALRM,) if hasattr(signal, "SIGALRM") else ()

    def __init__(self) -> None:
        self.can_wait = False
        self.waiting = 0  # the signal whose exception is delayed, or 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        is_late = number in self.timer
        if is_late and not self.waiting:
            return
        is_first = is_late or not self.waiting
        self.waiting = self.waiting if is_late else number
        if self.can_wait and is_first and _is_unsafe(frame):
            signal.setitimer(signal.ITIMER_REAL, SECONDS_LATER)
            return
        number, self.waiting = self.waiting, 0
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def _is_unsafe(frame: FrameType | None) -> bool:
    """Return True if an exception in this frame may leave a lock locked, or be ignored."""
    if frame is not None and frame.f_code.co_name in ("__enter__", "__exit__"):
        return True
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in LOCKING or frame.f_code.co_name == "__del__":
            return True
        if package == "belief":
            return False
        frame = frame.f_back
    return False
