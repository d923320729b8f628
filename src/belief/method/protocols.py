"""The interfaces between the method and the data.

    method ──► Engine (all rows, wherever they are) ──► BlockEngine (a block of rows in memory) ──► kernels

An engine knows where rows are, but not what its sums mean: pairs come with their kind and weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from belief.method.arrays import Array
from belief.method.design import Design
from belief.method.difference import Difference
from belief.method.partials import Joint, Neighbours, Pairs, Tally, check_features
from belief.method.probe import LocalSearch
from belief.method.redundancy.collisions import Collisions, Watch
from belief.method.sampling import Sample
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target

T = TypeVar("T")


@dataclass(frozen=True)
class Search:
    """A search for the `size` nearest rows of each group. Groups are the classes if there are several."""

    size: int
    n_groups: int
    seed: int


@dataclass(frozen=True)
class Visit:
    """Queries from anywhere in the table, whose neighbours are searched in one block."""

    queries: Any  # the sampled rows in the order of the sample, as a Source or a CSR matrix
    first: int  # the id of the block's first row
    found: Neighbours  # the nearest rows in earlier blocks
    ready: dict[Any, Any] = field(default_factory=dict)  # prepared forms of the queries, shared by all blocks


class _CommonEngine(Protocol):
    """The methods of every engine."""

    def describe(self) -> Summary:
        """Summarise the data in one pass."""

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        """Yield the sums of each batch: differences, and collision rates if `rates` is given."""

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        """Return, for each watch, the joint sums of the watched features with the features `columns`."""

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        """Return lower bounds of these joint sums, which are close and cheaper."""

    def rows(self, ids: Array, columns: Array) -> Array:
        """Return some features of some rows as float64; missing values are NaN, categories their codes."""

    def __enter__(self) -> Self:
        """Acquire resources, such as threads and storage for blocks."""

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        """Release them."""


class BlockEngine(_CommonEngine, Protocol):
    """A block of rows in memory; all other engines are made of these. Rows are numbered from 0."""

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        """Return the exact nearest rows of each sampled row; for a visit, merged with those in earlier blocks."""


class Engine(_CommonEngine, Protocol):
    """All rows, each with an id and a target.

    Each request is answered per block, and the answers are merged. The attributes are valid after `describe`; after
    that, the methods may be called in any order and repeatedly.
    """

    n_features: int
    discrete: Array
    target: Target
    design: Design
    rereads_data: bool  # whether each search reads all data again, so that few large searches are better
    columns_at_once: int  # features whose joint sums can be computed at little extra cost

    @property
    def targets(self) -> Array:
        """The target of each row: the index of its class, or its rank. A cluster has it only if rows have a design."""

    @property
    def counted(self) -> Array | None:
        """The mask of the rows that may be sampled and found; None for all."""

    def retarget(self, targets: Array, counted: Array | None) -> None:
        """Replace the targets of all rows, and choose the rows that may be sampled and found."""

    def peek(self) -> tuple[Array, Array] | None:
        """Return some rows, spread over the table, and their targets; None if the engine has no cheap way."""

    def fingerprint(self) -> bytes:
        """Return a checksum of all rows and targets, for a checkpoint. It may take a pass over the data."""

    def merge_copies(self, seed: int) -> Target:
        """Keep one of all identical rows with the same target for samples and searches; return their target."""

    def sample(self, quota: Array, seed: int) -> Sample:
        """Return the rows with the smallest keys: quota[0] in all, or quota[c] of each class c."""

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        """Return the exact nearest rows of each sampled row; ties go to the smaller key."""

    def local_search(self) -> LocalSearch:
        """Return the searches of the probe, in threads of this machine."""

    def weigh(self, rows: Array, sampled: Array) -> Array:
        """Return the weights of rows, divided by the probability that each is in a sample like the rows `sampled`."""

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Prepare for requests about these pairs, so that their rows can be read together."""


class Storage:
    """Where a run stores intermediate results so that it can be continued. This base class stores nothing."""

    def begin(self, settings: Settings, summary: Summary, target: Target, fingerprint: Callable[[], bytes]) -> int:
        """Return the seed of the run, which is the stored one when a run is continued."""
        return settings.draw_seed()

    def save(self, name: str, **arrays: Any) -> None:
        """Store arrays under a name, and then delete those stored under it before."""

    def load(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
        """Return what `read` makes of the arrays stored under a name; None if nothing is stored.

        Files may have been changed, so `read` raises a ValueError for arrays that this run cannot have stored.
        """
        return None

    def save_neighbours(self, neighbours: Neighbours) -> None:
        self.save("neighbours", **vars(neighbours))

    def load_neighbours(self, search: Search, m: int) -> Neighbours | None:
        """Return the stored neighbours, in a table of m rows."""
        return self.load("neighbours", partial(Neighbours.validated, search.n_groups, search.size, m))

    def save_sums(self, tally: Tally, watch_lists: Sequence[Array]) -> None:
        """Store the sums so far, and the watch list after each batch."""
        lists = {f"watched_{t}": watched for t, watched in enumerate(watch_lists)}
        self.save("sums", **vars(tally), **lists, batches=len(watch_lists))

    def load_sums(self, batches: Sequence[Pairs], n_features: int) -> tuple[Tally, list[Array]] | None:
        """Return the stored sums and watch lists. They cover the first of these batches, or more than these."""

        def read(stored: dict[str, Any]) -> tuple[Tally, list[Array]]:
            watch_lists = [stored.pop(f"watched_{t}") for t in range(int(stored.pop("batches")))]
            check_features(watch_lists, n_features)
            tally = Tally.validated(batches[0], n_features, {**stored, "n_pairs": int(stored["n_pairs"])})
            n_pairs = sum(map(len, batches[: len(watch_lists)]))
            if len(watch_lists) <= len(batches) and tally.n_pairs != n_pairs:
                raise ValueError("stored sums belong to other pairs")
            return tally, watch_lists

        return self.load("sums", read)
