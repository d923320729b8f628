"""The resources of a run: threads, memory, and the device, which is the CPU or one or several GPUs.

Importing torch takes seconds, so device="auto" imports it only for large searches, and only if it is installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

from belief._utils.optional import import_optional
from belief._utils.threads import count_threads
from belief.method.settings import AUTO_SAMPLE

# called with the number of rows done, the total number (0: unknown), and a detail such as "comparing"
Report = Callable[..., None]

SMALL_ROWS = 1024  # the default of `Resources.small_rows`
MIN_GPU_MULTIPLICATIONS = 5e12  # about 10 s of 16 cores; torch and its kernels take some seconds to start
DEVICE_NAMES = "'auto', 'cpu', 'cuda', one GPU such as 'cuda:1', or several such as 'cuda:0,1'"


def ignore_progress(*progress: object) -> None:
    """Ignore the progress of a run. This is the default callback."""


def default_sample_size(n_rows: int) -> int:
    """Return how many of the rows are sampled with the default settings."""
    return min(n_rows, AUTO_SAMPLE)


@dataclass(frozen=True)
class Resources:
    """The threads, memory and device that a run uses, and its progress callback.

    The last four parameters choose between implementations that agree up to rounding. They exist for tests.

    Parameters
    ----------
    n_jobs : number of threads, as in joblib
    working_memory : bytes of memory overhead allowed for the search and the tally
    report : called with the number of rows searched so far and in total
    device : "auto", "cpu", "cuda", "cuda:1", "cuda:0,1"; None uses the environment variable BELIEF_DEVICE or, if that
        is not set, the CPU
    n_queries : function that returns the number of queries, given the number of rows; device="auto" uses it to estimate
        the cost of the search
    small_rows : tables and tiles with at most this many rows skip steps that only pay off for more rows
    always_compile : whether to use compiled kernels even for tables so small that plain numpy is faster
    instructions : how the CPU multiplies dense rows: "auto", "float32", "int16", "int8", or the name of a class in
        `belief.kernels.instructions`
    torch_devices : torch devices to use instead of `device`; ("cpu",) runs the GPU engine on the CPU
    """

    n_jobs: int | None = None
    working_memory: int = 2**30
    report: Report = ignore_progress
    device: str | None = None
    n_queries: Callable[[int], int] = default_sample_size
    small_rows: int = SMALL_ROWS
    always_compile: bool = False
    instructions: str = "auto"
    torch_devices: tuple[str, ...] = ()

    @cached_property
    def threads(self) -> int:
        """The number of threads. It is computed once, because looking up the limits of the process takes time."""
        return count_threads(self.n_jobs)

    def choose_devices(self, n_rows: int, n_features: int) -> list[str]:
        """Return the torch devices to use for a table of this size; an empty list means the CPU engines."""
        if self.torch_devices:
            return list(self.torch_devices)
        name = self.device or os.environ.get("BELIEF_DEVICE", "cpu")
        return choose_devices(name, float(self.n_queries(n_rows)) * n_rows * n_features)

    def with_device_for(self, n_rows: int, n_features: int) -> Self:
        """Return a copy in which device="auto" is replaced by the choice for the whole table.

        A single block may be too small for a GPU although the whole table is large enough.
        """
        if self.device != "auto":
            return self
        return replace(self, device=",".join(self.choose_devices(n_rows, n_features)) or "cpu")


def check_device(device: Any) -> None:
    """Raise a ValueError if `device` is not the name of a device."""
    if not (isinstance(device, str) and re.fullmatch(r"auto|cpu|cuda(:\d+(,\d+)*)?", device)):
        raise ValueError(f"device must be {DEVICE_NAMES}; got {device!r}.")


def choose_devices(device: str, multiplications: float) -> list[str]:
    """Return the names of the torch devices to use; an empty list means the CPU engines.

    Parameters
    ----------
    device : the device, as the user passed it
    multiplications : the cost of the search, queries x rows x features, which decides if "auto" uses a GPU
    """
    check_device(device)
    if device == "cpu":
        return []
    if device == "auto":
        if multiplications < MIN_GPU_MULTIPLICATIONS or find_spec("torch") is None:
            return []
        try:
            return ["cuda:0"] if import_optional("torch", "gpu").cuda.is_available() else []
        except (ImportError, OSError):  # torch is installed, but does not work on this machine
            return []
    torch = import_optional("torch", "gpu")
    if not torch.cuda.is_available():
        reason = (
            "finds none. Check the NVIDIA driver"
            if torch.version.cuda
            else "was built without CUDA. Install a build with CUDA"
        )
        raise ValueError(
            f"device={device!r} needs an NVIDIA GPU, but torch {torch.__version__} {reason}, or use device='cpu'."
        )
    names = ["cuda:0"] if device == "cuda" else [f"cuda:{i}" for i in device[5:].split(",")]
    n = torch.cuda.device_count()
    missing = [name for name in names if int(name[5:]) >= n]
    if missing:
        raise ValueError(f"device={device!r}: {missing[0]} does not exist; torch finds {n} GPUs, numbered from cuda:0.")
    return names
