"""All that may be asked: of data wherever it lives (Engine), of one block of rows in one place (BlockEngine), of notes.

    method ──asks──► Engine ──asks──► BlockEngine ──calls──► kernels

An engine knows where rows are, and nothing of what its answers mean: pairs come with their kind and weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally, check_features
from belief.method.redundancy.collisions import Collisions, Watch
from belief.method.sampling import Sample
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target

T = TypeVar("T")


@dataclass(frozen=True)
class Search:
    """What is looked for: the `size` nearest rows of each group, by class if there is more than one."""

    size: int
    n_groups: int
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
    ready: dict[Any, Any] = field(default_factory=dict)  # what a block made of the queries, for all


class _Answers(Protocol):
    """What is asked of every engine, about pairs of rows it can reach."""

    def describe(self) -> Summary:
        """One pass: rows, moments, levels."""

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        """The sums of differences over the pairs of each batch, and of collision rates if they are asked for."""

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        """Of each watch: the joint sums of the watched features with the features `columns` over the pairs."""

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        """Numbers not above those joint sums, nor far below: cheaper, for what will hardly matter."""

    def rows(self, ids: Array, columns: Array) -> Array:
        """Some features of some rows, as float64; a missing value is a NaN, a category its code."""

    def __enter__(self) -> Self:
        """Take what the answers need: threads, a place for blocks."""

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        """Give it back."""


class BlockEngine(_Answers, Protocol):
    """One block of rows in one place: what every engine is made of. Rows are numbered from 0."""

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        """The nearest rows of each sampled row, exact, ties by key; of queries that visit, with those found before."""


class Engine(_Answers, Protocol):
    """All rows, each with a global id and a target, wherever they are.

    Each question is answered block by block, and the blocks' answers are merged. `n_features`, `discrete` and `target`
    are valid once the data has been described. Any question may be asked twice, and in any order after that.
    """

    n_features: int
    discrete: Array
    target: Target
    rereads_data: bool  # whether a search reads all data anew, so that few of them are better than small ones
    columns_at_once: int  # features whose joint sums are measured for little more than the asking

    def fingerprint(self) -> bytes:
        """A name for all rows and their targets, for a checkpoint; it may take a pass."""

    def merge_copies(self, seed: int) -> Target:
        """From now on, of identical rows with the same target sample and find one only; return the target of those."""

    def sample(self, quota: Array, seed: int) -> Sample:
        """The rows with the smallest keys: quota[0] in all, or quota[c] of each class c."""

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        """The nearest rows of each sampled row, exact, ties by key."""

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Be told of pairs that will be asked about, so that their rows can be fetched at once."""


class Notes:
    """Where a run notes what it has found, and finds it again. These are those of a run that keeps none."""

    def begin(self, settings: Settings, summary: Summary, target: Target, fingerprint: Callable[[], bytes]) -> int:
        """Return the seed of the run: that of the run to be continued, if there is one."""
        return settings.draw_seed()

    def note(self, name: str, **arrays: Any) -> None:
        """Keep arrays under a name; the ones before them are forgotten once these are safe."""

    def recall(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
        """What `read` makes of the arrays kept under a name; None where there are none.

        They may have been changed since: `read` raises a ValueError where they are not what this run could have kept.
        """
        return None

    def save_neighbours(self, found: Neighbours) -> None:
        self.note("neighbours", **vars(found))

    def neighbours(self, search: Search, m: int) -> Neighbours | None:
        """The neighbours kept, of m rows."""
        return self.recall("neighbours", partial(Neighbours.validated, search.n_groups, search.size, m))

    def save_sums(self, tally: Tally, watch_lists: Sequence[Array]) -> None:
        """Keep the sums so far, and the watch list made after each batch."""
        lists = {f"watched_{t}": watched for t, watched in enumerate(watch_lists)}
        self.note("sums", **vars(tally), **lists, batches=len(watch_lists))

    def sums(self, batches: Sequence[Pairs], n_features: int) -> tuple[Tally, list[Array]] | None:
        """The sums kept over some of these batches, or over more, and the watch lists."""

        def read(noted: dict[str, Any]) -> tuple[Tally, list[Array]]:
            watch_lists = [noted.pop(f"watched_{t}") for t in range(int(noted.pop("batches")))]
            check_features(watch_lists, n_features)
            tally = Tally.validated(batches[0], n_features, {**noted, "n_pairs": int(noted["n_pairs"])})
            of = sum(map(len, batches[: len(watch_lists)]))
            if len(watch_lists) <= len(batches) and tally.n_pairs != of:
                raise ValueError("sums of other pairs")
            return tally, watch_lists

        return self.recall("sums", read)
