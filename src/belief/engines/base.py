"""All the method may know about where the data lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from belief.method.difference import Difference
from belief.method.partials import Array, Joint, Neighbours, Pairs, Summary, Tally
from belief.method.redundancy import Watch
from belief.method.sampling import Sample

SMALL = 1024  # rows of a table for which it is not worth compiling what only saves time on larger ones


def spans(n: int, width: int) -> list[tuple[int, int]]:
    """Cut 0 to n into spans of at most `width`."""
    return [(a, min(a + width, n)) for a in range(0, n, width)]


@dataclass(frozen=True)
class Search:
    """What is looked for: the `size` nearest rows of each group (one group per class, or one in all)."""

    size: int
    per_class: bool
    seed: int


@dataclass(frozen=True)
class Visit:
    """Queries that come to a block of the data from elsewhere, when the block is not all there is.

    `queries` holds the sampled rows in the order of the sample, as a Source or a CSR matrix; `first` is the global id
    of the block's first row; `found` the nearest rows of the blocks before.
    """

    queries: Any
    first: int
    found: Neighbours
    ready: dict[int, tuple[Array, Array]] = field(default_factory=dict)  # what a block made of the queries, for all


class Engine(Protocol):
    """Data in rows, each with a global id and a class, on which the method's questions can be asked.

    Each is answered block by block, and the blocks' answers are merged.
    """

    n_features: int
    n_classes: int
    discrete: Array
    at_once: int  # features whose joint collisions are measured for little more than the asking

    def describe(self) -> Summary:
        """One pass: moments, levels, class counts."""

    def fingerprint(self) -> bytes:
        """A name for all rows and their classes, for a checkpoint; it may take a pass."""

    def sample(self, quota: Array, seed: int) -> Sample:
        """The rows with the smallest keys: quota[0] in all, or quota[c] of each class c."""

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        """The nearest rows of each sampled row, exact, ties by key."""

    def expect(self, batches: Sequence[Pairs]) -> None:
        """Be told, before the first tally, the pairs of all tallies to come."""

    def tally(self, pairs: Pairs, difference: Difference, kappa: float) -> Tally:
        """The sums of differences and collisions over the pairs."""

    def collide(self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        """Of each watch: the joint collisions of the watched features with the features `columns` over the pairs."""

    def collide_floor(
        self, difference: Difference, kappa: float, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        """Numbers not above those joint collisions, nor far below: cheaper, for what will hardly matter."""
