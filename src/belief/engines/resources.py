"""What a run may use of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

Report = Callable[..., None]  # rows done, of how many (0: not known), and in what ("comparing")


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def silent(*how_far: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Resources:
    """Threads, memory, and whom to tell of progress.

    Parameters
    ----------
    n_jobs : threads, None or -1 for as many as there are cores
    working_memory : bytes the search and the tally may use beside the data
    report : told how many rows have been searched, and of how many
    """

    n_jobs: int | None = None
    working_memory: int = 2**30
    report: Report = silent

    @property
    def threads(self) -> int:
        return cores() if self.n_jobs in (None, -1) else self.n_jobs
