"""The interfaces between the method and the data.

    method ──► Engine (all rows, wherever they are) ──► BlockEngine (a block of rows in memory) ──► kernels

An engine knows where the rows are and adds up differences over pairs of rows. It does not know what the sums mean: the
method gives each pair its kind (such as hit or miss) and its weight.
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
    """The parameters of a search for the `size` nearest rows of each query in each group of rows.

    The groups are the classes if `n_groups` is above 1; otherwise, all rows form one group. `seed` determines which of
    two rows at the same distance comes first.
    """

    size: int
    n_groups: int
    seed: int


@dataclass(frozen=True)
class Visit:
    """Queries (sampled rows of any block) that are sent to one block, to find their neighbours among its rows."""

    queries: Any  # the sampled rows in the order of the sample, as a Source or a CSR matrix
    first: int  # the id of the block's first row
    found: Neighbours  # the nearest rows in earlier blocks
    ready: dict[Any, Any] = field(default_factory=dict)  # prepared forms of the queries, shared by all blocks


class _CommonEngine(Protocol):
    """The methods that engines over all rows and engines over one block have in common."""

    def describe(self) -> Summary:
        """Return the summary of the data (counts, moments and levels of each feature), computed in one pass."""

    def tally(self, batches: Sequence[Pairs], difference: Difference, rates: Collisions | None) -> Iterator[Tally]:
        """Yield, for each batch of pairs, the sums of differences, and of collision rates if `rates` is passed."""

    def joint(self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array) -> list[Joint]:
        """Return the joint sums of collision rates for each watch, a set of pairs with a list of watched features.

        The sums have one line per watched feature and one column per feature in `columns`.
        """

    def joint_floor(
        self, difference: Difference, rates: Collisions, watches: Sequence[Watch], columns: Array
    ) -> list[Array]:
        """Return close lower bounds of the sums that `joint` returns; the bounds are cheaper to compute."""

    def rows(self, ids: Array, columns: Array) -> Array:
        """Return some features of some rows as float64. Missing values are NaN, and categories are their codes."""

    def __enter__(self) -> Self:
        """Acquire resources, such as threads and storage for blocks."""

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        """Release the resources."""


class BlockEngine(_CommonEngine, Protocol):
    """The interface of a block of rows in memory. All other engines are built from blocks.

    The rows of a block are numbered from 0.
    """

    def nearest(self, sample: Sample, difference: Difference, search: Search, visit: Visit | None = None) -> Neighbours:
        """Return the exact nearest rows of each query among the rows of this block.

        The queries are the sampled rows of this block. If `visit` is passed, they are sampled rows of the whole table,
        and their nearest rows here are merged with those found in earlier blocks.
        """


class Engine(_CommonEngine, Protocol):
    """The interface between the method and all rows of a table, each of which has an id and a target.

    Each request is answered by every block, and the answers are merged. The attributes are valid after `describe`;
    after that, the methods may be called in any order and repeatedly.
    """

    n_features: int
    discrete: Array
    target: Target
    design: Design
    rereads_data: bool  # whether each search reads all data again, so that few large searches are better
    columns_at_once: int  # joint sums of up to this many features take little longer than joint sums of a few

    @property
    def targets(self) -> Array:
        """The target of each row: the index of its class, or its rank.

        On a cluster, the targets are only available with a study design.
        """

    @property
    def counted(self) -> Array | None:
        """A mask of the rows that may be sampled or found as neighbours; None if all rows may be."""

    def retarget(self, targets: Array, counted: Array | None) -> None:
        """Replace the targets of all rows, and set the mask of the rows that may be sampled or found as neighbours."""

    def peek(self) -> tuple[Array, Array] | None:
        """Return rows spread over the table, and their targets; None if the engine cannot read such rows cheaply."""

    def fingerprint(self) -> bytes:
        """Return a checksum of all rows and targets, by which a checkpoint recognises its data.

        This may read all data once.
        """

    def merge_copies(self, seed: int) -> Target:
        """Keep one of each set of identical rows with the same target; exclude the others from samples and searches.

        Return the target of the remaining rows.
        """

    def sample(self, quota: Array, seed: int) -> Sample:
        """Return the rows with the smallest random keys: quota[0] of all rows, or quota[c] of each class c."""

    def nearest(self, sample: Sample, difference: Difference, search: Search) -> Neighbours:
        """Return the exact nearest rows of each sampled row. Ties in distance go to the row with the smaller key."""

    def local_search(self) -> LocalSearch:
        """Return the object that searches the probe.

        The probe is the small part of the rows on which features are tested. It is searched on this machine, even if
        the engine uses a cluster.
        """

    def weigh(self, rows: Array, sampled: Array) -> Array:
        """Return the sampling weight of each of `rows`: its weight divided by the probability of being sampled.

        `sampled` are the rows of the sample, from which this probability follows.
        """

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Announce the pairs of the next requests, so that the engine can read all their rows together."""


class Storage:
    """Where a run stores intermediate results so that it can be continued. This base class stores nothing."""

    def begin(self, settings: Settings, summary: Summary, target: Target, fingerprint: Callable[[], bytes]) -> int:
        """Return the seed of the run: the stored seed if a run is continued, otherwise a new one."""
        return settings.draw_seed()

    def save(self, name: str, **arrays: Any) -> None:
        """Store arrays under a name, and then delete the arrays that were stored under it before."""

    def load(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
        """Return the arrays stored under a name, converted by `read`; None if nothing is stored.

        Files may have been changed, so `read` raises a ValueError for arrays that this run cannot have stored.
        """
        return None

    def save_neighbours(self, neighbours: Neighbours) -> None:
        self.save("neighbours", **vars(neighbours))

    def load_neighbours(self, search: Search, m: int) -> Neighbours | None:
        """Return the stored neighbours of this search in a table of m rows; None if nothing is stored."""
        return self.load("neighbours", partial(Neighbours.validated, search.n_groups, search.size, m))

    def save_sums(self, tally: Tally, watch_lists: Sequence[Array]) -> None:
        """Store the sums over all batches so far, and the list of the features with the largest w after each batch."""
        lists = {f"watched_{t}": watched for t, watched in enumerate(watch_lists)}
        self.save("sums", **vars(tally), **lists, batches=len(watch_lists))

    def load_sums(self, batches: Sequence[Pairs], n_features: int) -> tuple[Tally, list[Array]] | None:
        """Return the sums and lists stored by `save_sums`; None if nothing is stored.

        They may cover fewer or more batches than `batches`.
        """

        def read(stored: dict[str, Any]) -> tuple[Tally, list[Array]]:
            watch_lists = [stored.pop(f"watched_{t}") for t in range(int(stored.pop("batches")))]
            check_features(watch_lists, n_features)
            tally = Tally.validated(batches[0], n_features, {**stored, "n_pairs": int(stored["n_pairs"])})
            n_pairs = sum(map(len, batches[: len(watch_lists)]))
            if len(watch_lists) <= len(batches) and tally.n_pairs != n_pairs:
                raise ValueError("stored sums belong to other pairs")
            return tally, watch_lists

        return self.load("sums", read)
