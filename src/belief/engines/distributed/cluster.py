"""What a cluster must do: hold blocks of rows, run jobs over them, and bring rows together.

    Cluster ──stage──► Staged, … ──(the driver works out the Layout)──► Cluster.blocks ──► StagedBlocks
                                                       rows by id ◄──fetch──┤  run(job) ──► answers, merged
                                     GatheredBlocks, each some rows by id ◄──gather

Adding a cluster takes one module that implements the two: see engines/spark/, and tests/pool_cluster.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from belief.engines.distributed.blocks import RowBlock, Staged
from belief.engines.distributed.placing import Layout
from belief.engines.distributed.tasks import Job
from belief.method.arrays import Array

Slices = dict[int, dict[str, Any]]  # the answers to a job, by slice


class Blocks(Protocol):
    """Blocks that a cluster holds. A block that is lost is computed again, and refused if it comes out different."""

    @property
    def tasks(self) -> int:
        """In how many tasks a job is done."""

    def run(self, job: Job, size: int, what: str) -> Slices:
        """Run a job over all blocks, and merge the answers in the order of the blocks.

        Parameters
        ----------
        size : bytes that each task answers, about
        what : the job in a word, for who watches
        """

    def release(self) -> None:
        """Hold them no longer."""


class StagedBlocks(Blocks, Protocol):
    """The blocks of the whole table, each of consecutive rows."""

    def fetch(self, ids: Array) -> Sequence[RowBlock]:
        """Some rows, by rising ids, in as many pieces as they come."""

    def values(self, ids: Array, columns: Array) -> Array | None:
        """Some features of some rows, by rising ids; None where only a job could say."""

    def gather(self, portions: Sequence[Array]) -> Blocks:
        """New blocks, the i-th of the rows with the ids portions[i], which rise.

        Where every worker reaches every block, nothing need be moved: a task reads the rows when it runs.
        """


class Cluster(Protocol):
    """Workers, and the table they read."""

    def stage(self) -> Sequence[Staged]:
        """Cut the table into blocks, and hold them; what is to be known of each."""

    def blocks(self, layout: Layout) -> StagedBlocks:
        """The blocks that were staged, in their places."""

    def release(self) -> None:
        """Give back what was taken to hold the blocks."""
