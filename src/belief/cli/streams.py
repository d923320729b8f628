"""Handling of standard streams that are closed, full, or cannot encode a character."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def prepare_streams() -> None:
    """Open stdout and stderr if they are closed, and make them accept every character."""
    # If a standard stream is closed, the next file that is opened would get its number, so this opens os.devnull.
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")


def flush_or_discard(stream: TextIO) -> None:
    """Flush a stream; if that fails, redirect it to os.devnull, so that Python does not fail again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
