"""Signals that end the process, raised as exceptions, so that temporary files are removed.

An exception at any moment could leave a lock held that the threads need, or be swallowed by a finaliser. Where this may
happen, it is raised a moment later.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Ctrl-C, and the signals of schedulers and closed terminals; Windows has no SIGHUP
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
LOCKING = ("numba", "llvmlite")  # take locks by methods written in Python, and have finalisers
SECONDS_LATER = 0.02


class Terminated(BaseException):
    """The process received a signal that ends it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Raise `Terminated` within this context on SIGTERM and SIGHUP, unless they are ignored or handled already.

    SIGINT raises a KeyboardInterrupt, as usual.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    handler = _Handler()
    usual = {number: signal.getsignal(number) for number in (*ENDING, *handler.timer)}
    taken = [  # nohup ignores SIGHUP
        number for number, known in usual.items() if known in (signal.SIG_DFL, signal.default_int_handler)
    ]
    for number in taken:
        signal.signal(number, handler)
    handler.can_wait = set(handler.timer) <= set(taken)
    try:
        yield
    finally:
        waiting = handler.stop_waiting()
        for number in taken:
            if signal.getsignal(number) is handler:  # Spark handles SIGINT
                signal.signal(number, usual[number])
        if waiting:
            signal.raise_signal(waiting)


class _Handler:
    """Raises an exception for a signal; a second signal raises it at once."""

    # the signal of the timer, which Windows lacks
    timer = (signal.SIGALRM,) if hasattr(signal, "SIGALRM") else ()

    def __init__(self) -> None:
        self.can_wait, self._waiting = False, 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        is_late = number in self.timer
        if is_late and not self._waiting:
            return
        is_first = is_late or not self._waiting
        self._waiting = self._waiting if is_late else number
        if self.can_wait and is_first and _is_unsafe(frame):
            signal.setitimer(signal.ITIMER_REAL, SECONDS_LATER)
            return
        number, self._waiting = self._waiting, 0
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    def stop_waiting(self) -> int:
        """Return the signal that was not raised yet, or 0."""
        if self.can_wait:
            signal.setitimer(signal.ITIMER_REAL, 0)
        waiting, self._waiting = self._waiting, 0
        return waiting


def _is_unsafe(frame: FrameType | None) -> bool:
    """Return True if an exception here may leave a lock held, or be swallowed."""
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
