"""Stdout and stderr as they may be: closed, full, with nobody at the other end, or unable to show a name."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from belief._utils.text import escape_controls


def make_ready() -> None:
    """See to it that there is a stdout and a stderr, and that they take every name."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:  # closed ones: a file of ours must not get their numbers
        pass
    os.close(spare)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")


def complain(what: str) -> None:
    """Say something on stderr, if it listens."""
    with contextlib.suppress(OSError):
        print(f"belief: {escape_controls(what)}", file=sys.stderr, flush=True)


def leave(stream: TextIO) -> None:
    """Where stdout or stderr takes no more, see to it that Python does not try again as it ends."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
