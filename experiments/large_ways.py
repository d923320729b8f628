"""The methods of experiments/large.py, their settings, and the numbers of features to select."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class Way(NamedTuple):
    """A method and its settings; a setting is None if the method does not depend on it."""

    method: str
    k: int | None = None
    batch: float | None = None

    def __str__(self) -> str:
        k = "" if self.k is None else f", k = {self.k}"
        return self.method + k + ("" if self.batch is None else f", batches of {self.batch}")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that override belief.PAPER."""
        return {
            "n_neighbors": self.k, "batch_size": self.batch or 1.0, "redundancy": None if self.greedy else "mcr",
        }  # fmt: skip

    @property
    def greedy(self) -> bool:
        """True if the first 10 of 100 selected features are the same as with 10 features to select."""
        return self.method != "BELIEF + mCR"


@dataclass(frozen=True)
class Grid:
    """The numbers of features, k and batch sizes to run; by default, those of the paper's tables."""

    sizes: tuple[int, ...] = (10, 50, 100)
    k: tuple[int, ...] = (3, 5, 10)
    batches: tuple[float, ...] = (0.25, 0.1)

    def ways(self) -> list[Way]:
        """Return all methods with their settings, one for each row of a table.

        Only mCR depends on the batch size, because its watch list is updated after each batch.
        """
        plain = [Way("BELIEF", k) for k in self.k]
        return [Way("mRMR"), *plain, *(Way("BELIEF + mCR", k, batch) for k in self.k for batch in self.batches)]

    def describe(self) -> dict[str, Any]:
        """Return the grid as plain JSON."""
        return asdict(self)


PAPERS = Grid()
