"""Preparation of standard streams that may be closed, full, or unable to show a character."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def prepare_streams() -> None:
    """Make stdout and stderr exist and accept every character."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:  # or our files would get the numbers of closed streams
        pass
    os.close(spare)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")


def flush_or_discard(stream: TextIO) -> None:
    """Flush a stream; if that fails, redirect it to nowhere, so that Python does not try again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
