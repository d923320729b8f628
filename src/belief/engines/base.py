"""All the method may know about where the data lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from belief.method.difference import Difference
from belief.method.partials import Array, Joint, Neighbours, Pairs, Summary, Tally
from belief.method.sampling import Sample


def spans(n: int, width: int) -> list[tuple[int, int]]:
    """Cut 0 to n into spans of at most `width`."""
    return [(a, min(a + width, n)) for a in range(0, n, width)]


@dataclass(frozen=True)
class Search:
    """What is looked for: the `size` nearest rows of each group (one group per class, or one in all)."""

    size: int
    per_class: bool
    seed: int


class Engine(Protocol):
    """Data in rows, each with a global id and a class, on which the method's questions can be asked.

    Each is answered block by block, and the blocks' answers are merged.
    """

    n_features: int
    n_classes: int
    discrete: Array

    def describe(self) -> Summary:
        """One pass: moments, levels, class counts."""

    def sample(self, quota: Array, seed: int) -> Sample:
        """The rows with the smallest keys: quota[0] in all, or quota[c] of each class c."""

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        """The nearest rows of each sampled row, exact, ties by key."""

    def tally(self, pairs: Pairs, difference: Difference, kappa: float) -> Tally:
        """The sums of differences and collisions over the pairs."""

    def collide(self, pairs: Pairs, difference: Difference, kappa: float, watched: Array, columns: Array) -> Joint:
        """The joint collisions of the watched features with the features `columns` over the pairs."""

    def collide_floor(
        self, pairs: Pairs, difference: Difference, kappa: float, watched: Array, columns: Array
    ) -> Array:
        """Numbers not above those joint collisions, nor far below: cheaper, for what will hardly matter."""
