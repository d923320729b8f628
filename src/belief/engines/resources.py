"""What a run may use of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from belief._utils.threads import n_threads
from belief.engines.device import devices_for
from belief.method.settings import AUTO_SAMPLE

Report = Callable[..., None]  # rows done, of how many (0: not known), and in what ("comparing")


def silent(*how_far: object) -> None:
    """Tell nobody."""


def few(n_rows: int) -> int:
    """The rows that are sampled of so many, where nobody says otherwise."""
    return min(n_rows, AUTO_SAMPLE)


@dataclass(frozen=True)
class Resources:
    """Threads, memory, a device, and whom to tell of progress.

    Parameters
    ----------
    n_jobs : threads, as joblib counts them
    working_memory : bytes the search and the tally may use beside the data
    report : told how many rows have been searched, and of how many
    device : "auto", "cpu", "cuda", "cuda:1", "cuda:0,1"; None: what BELIEF_DEVICE says, or else the CPU
    queries : how many rows will look for their neighbours, of so many; whether a GPU is worth it depends on that
    """

    n_jobs: int | None = None
    working_memory: int = 2**30
    report: Report = silent
    device: str | None = None
    queries: Callable[[int], int] = few

    @property
    def threads(self) -> int:
        return n_threads(self.n_jobs)

    def devices(self, n_rows: int, n_features: int) -> list[str]:
        """The torch devices for so much data; none: the CPU's engines do the work."""
        named = self.device or os.environ.get("BELIEF_DEVICE", "cpu")
        return devices_for(named, float(self.queries(n_rows)) * n_rows * n_features)

    def decided(self, n_rows: int, n_features: int) -> Self:
        """The same, with "auto" decided for all blocks of a table, each of which would be too small to be worth it."""
        if self.device != "auto":
            return self
        return replace(self, device=",".join(self.devices(n_rows, n_features)) or "cpu")
