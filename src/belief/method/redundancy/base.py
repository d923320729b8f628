"""What a redundancy measure is.

A measure says which sums over pairs it needs, and from them how much a feature repeats each of the selected ones. Its
rule says what that leaves of the feature's score. Adding one takes a file like mcr.py, and a line in __init__.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from belief.method.arrays import Array
from belief.method.partials import Joint, Pairs, Tally
from belief.method.redundancy.collisions import Collisions, Watch


@dataclass(frozen=True)
class Evidence:
    """What a measure is made from: the sums so far, the pairs, and how to ask for joint sums."""

    n_features: int
    tally: Tally
    batches: Sequence[Pairs]
    together: Pairs  # those of all batches
    watch_lists: Sequence[Array]  # the features with the largest w after each batch
    joint: Callable[[Sequence[Watch], Array], list[Joint]]
    joint_floor: Callable[[Sequence[Watch], Array], list[Array]]  # lower bounds of the same


class Rule(Protocol):
    """What redundancy leaves of a score: it may not rise when more is repeated."""

    start: ClassVar[float]  # the redundancy a feature has gathered before anything is selected
    above_null: ClassVar[bool]  # whether a weight counts from that of noise on
    ties_by_weight: ClassVar[bool]  # whether a tie goes to the larger w; else it goes to the smaller index

    def normalise(self, w: Array, constant: Array) -> Array:
        """The weights as scores."""

    def gather(self, gathered: Array, row: Array) -> Array:
        """What features have gathered, one more being selected that they repeat by `row`."""

    def score(self, w: Array, gathered: Array, n_selected: int) -> Array:
        """J."""

    def score_next(self, w: float, repeated: Array) -> float:
        """J of a feature that repeats the selected ones so much."""


class Measure(Protocol):
    """How much features repeat each other, measured when asked for, of those in a pool that can be extended."""

    needs_collision_rates: ClassVar[bool]  # whether it needs Σ cr of every feature over all pairs
    pool: Array
    place: Array  # feature -> its column in the pool, -1 where it is not there

    def __init__(self, evidence: Evidence, pool: Array) -> None:
        """Measure the features of the pool."""

    @staticmethod
    def rule(theta: float | str) -> Rule:
        """What is made of it, with the weight θ."""

    @staticmethod
    def collisions(kappa: float) -> Collisions:
        """The collisions it is made of."""

    def extend(self, features: Array) -> None:
        """Measure these features too."""

    def row(self, feature: int, likely: Array) -> Array:
        """How much each of the pool repeats a feature; `likely` are those that may be asked for next."""

    def between(self, features: Array) -> Array:
        """How much some features repeat each other."""

    def floor(self, features: Array, others: Array) -> Array | None:
        """Lower bounds of that, of some features (lines) with features outside the pool; None: no cheap ones."""
