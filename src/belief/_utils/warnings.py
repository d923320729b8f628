"""Warnings that point to the user's code."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HOME = str(Path(__file__).parents[1])


def warn(message: str) -> None:
    """Issue a UserWarning that points to the first caller outside this package."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HOME):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, UserWarning, stacklevel=depth)
