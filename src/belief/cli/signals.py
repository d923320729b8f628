"""Signals that end the process, raised as exceptions, so that temporary files are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# the signals of schedulers and closed terminals; Windows has no SIGHUP
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(BaseException):
    """The process received a signal that ends it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Raise `Terminated` within this context on SIGTERM and SIGHUP, unless they are ignored or handled already."""
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    taken = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)
