"""What experiments/large.py asks of every data set: methods, their settings, and how many features."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class Way(NamedTuple):
    """A method and its settings; one that does not depend on a setting has None there."""

    method: str
    k: int | None = None
    batch: float | None = None

    def __str__(self) -> str:
        k = "" if self.k is None else f", k = {self.k}"
        return self.method + k + ("" if self.batch is None else f", batches of {self.batch}")

    @property
    def settings(self) -> dict[str, Any]:
        """What is not as in belief.PAPER."""
        return {
            "n_neighbors": self.k, "batch_size": self.batch or 1.0, "redundancy": None if self.greedy else "mcr",
        }  # fmt: skip

    @property
    def greedy(self) -> bool:
        """Whether the first 10 of 100 are those that are selected if 10 are asked for."""
        return self.method != "BELIEF + mCR"


@dataclass(frozen=True)
class Grid:
    """The settings of the paper's tables."""

    sizes: tuple[int, ...] = (10, 50, 100)
    k: tuple[int, ...] = (3, 5, 10)
    batches: tuple[float, ...] = (0.25, 0.1)

    def ways(self) -> list[Way]:
        """The rows of a table. Batches matter to mCR only, which watches other features after each."""
        plain = [Way("BELIEF", k) for k in self.k]
        return [Way("mRMR"), *plain, *(Way("BELIEF + mCR", k, batch) for k in self.k for batch in self.batches)]

    def describe(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


PAPERS = Grid()
