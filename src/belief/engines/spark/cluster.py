"""The interface of a cluster, which holds blocks of rows, runs jobs over them, and gathers rows.

A cluster stages the table as blocks. From their descriptions, the driver computes the layout. Implementations are in
executors.py (Spark) and in tests/pool_cluster.py (a process pool).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from belief.engines.spark.blocks import BlockInfo, Layout, RowBlock
from belief.engines.spark.jobs import Job
from belief.method.arrays import Array

Answers = dict[int, dict[str, Any]]  # the merged answers of a job, by slice


class Blocks(Protocol):
    """The interface of blocks of rows that a cluster holds."""

    @property
    def tasks(self) -> int:
        """The number of tasks of a job."""

    def run(self, job: Job, size: int, what: str) -> Answers:
        """Run a job over all blocks. Return its answers, which are merged in the order of the tasks.

        Parameters
        ----------
        size : approximate number of bytes that each task returns
        what : description of the job for progress reports
        """

    def release(self) -> None:
        """Free the memory or disk that the blocks use."""


class StagedBlocks(Blocks, Protocol):
    """The interface of the blocks that hold the whole table."""

    portion_bytes: int  # the largest block that may be gathered

    def fetch(self, ids: Array, features: Array | None = None) -> Sequence[RowBlock]:
        """Return the rows with these sorted ids, in one or more pieces.

        `features` are the features to return, in ascending order; None means all.
        """

    def gather(self, portions: Sequence[Array]) -> Blocks:
        """Return new blocks; block i has the rows with the sorted ids portions[i]."""


class Cluster(Protocol):
    """The interface of executors that read the table and store it as blocks."""

    def stage(self) -> Sequence[BlockInfo]:
        """Divide the table into blocks, store them on the cluster, and return a description of each."""

    def open(self, layout: Layout) -> StagedBlocks:
        """Return the staged blocks. The layout contains the position of every row."""

    def cancel(self) -> None:
        """Stop the tasks that still run after an error."""

    def release(self) -> None:
        """Free the memory or disk that staging used."""
