"""Loading of the compiled kernels. Torch is used if the device or the installed Triton does not support them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import torch

from belief._utils.warnings import warn


@cache
def load_triton_kernels(device: torch.device) -> Any:
    """Return the module of Triton kernels, or None if they cannot be used on this device."""
    return _load("compiled") if device.type == "cuda" else None


@cache
def load_hopper_kernels(device: torch.device) -> Any:
    """Return the module with the scan for NVIDIA's Hopper, or None if it cannot be used on this device.

    The module needs Gluon, which is younger than Triton and still changes, so it may fail to load.
    """
    is_hopper = device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9
    return _load("hopper") if is_hopper else None


@cache
def _load(name: str) -> Any:
    try:
        return import_module(f"belief.kernels.gpu.{name}")
    except (ImportError, AttributeError, TypeError) as error:
        warn(f"The compiled kernels ({name}) cannot be used ({error}). Torch is used instead, which is slower.")
        return None
