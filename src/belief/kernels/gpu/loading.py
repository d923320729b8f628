"""Compiled kernels, where the device and the installed Triton have them; None elsewhere, and torch does the work."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import torch

from belief._utils.warnings import warn


@cache
def compiled(device: torch.device) -> Any:
    """The Triton kernels for a GPU."""
    return _module("compiled") if device.type == "cuda" else None


@cache
def hopper(device: torch.device) -> Any:
    """The scan for NVIDIA's Hopper, in Gluon, which is younger than Triton and still changes."""
    here = device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9
    return _module("hopper") if here else None


@cache
def _module(name: str) -> Any:
    try:
        return import_module(f"belief.kernels.gpu.{name}")
    except (ImportError, AttributeError, TypeError) as error:
        warn(f"The compiled kernels ({name}) cannot be used ({error}): torch takes their place, which is slower.")
        return None
