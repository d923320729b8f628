"""What a run may use of the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from belief.cores import n_threads

Report = Callable[..., None]  # rows done, of how many (0: not known), and in what ("comparing")


def silent(*how_far: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Resources:
    """Threads, memory, and whom to tell of progress.

    Parameters
    ----------
    n_jobs : threads, as joblib counts them
    working_memory : bytes the search and the tally may use beside the data
    report : told how many rows have been searched, and of how many
    """

    n_jobs: int | None = None
    working_memory: int = 2**30
    report: Report = silent

    @property
    def threads(self) -> int:
        return n_threads(self.n_jobs)
