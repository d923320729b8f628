"""The protocol of a cluster: hold blocks of rows, run jobs over them, and bring rows together.

A cluster stages the table, and the driver computes the layout from the descriptions of the blocks. Implementations are
in executors.py (Spark) and in tests/pool_cluster.py (a process pool).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from belief.engines.spark.blocks import BlockInfo, Layout, RowBlock
from belief.engines.spark.jobs import Job
from belief.method.arrays import Array

Answers = dict[int, dict[str, Any]]  # the merged answers of a job, by slice


class Blocks(Protocol):
    """Blocks that a cluster holds."""

    @property
    def tasks(self) -> int:
        """The number of tasks of a job."""

    def run(self, job: Job, size: int, what: str) -> Answers:
        """Run a job over all blocks, and merge the answers in task order.

        Parameters
        ----------
        size : approximate bytes that each task returns
        what : description of the job for progress reports
        """

    def release(self) -> None:
        """Free the blocks."""


class StagedBlocks(Blocks, Protocol):
    """The blocks of the whole table."""

    portion_bytes: int  # the largest block that may be gathered

    def fetch(self, ids: Array, features: Array | None = None) -> Sequence[RowBlock]:
        """Return some rows, with all or some features, in one or more pieces; `ids` and `features` are sorted."""

    def gather(self, portions: Sequence[Array]) -> Blocks:
        """Return new blocks: block i has the rows with the sorted ids portions[i]."""


class Cluster(Protocol):
    """Executors that read the table and store it as blocks."""

    def stage(self) -> Sequence[BlockInfo]:
        """Split the table into blocks, store them on the cluster, and return a description of each."""

    def open(self, layout: Layout) -> StagedBlocks:
        """Return the staged blocks."""

    def cancel(self) -> None:
        """End the tasks that still run after an error."""

    def release(self) -> None:
        """Free what staging used."""
