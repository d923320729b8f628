"""The engine for a DataFrame."""

from __future__ import annotations

from collections.abc import Callable

from belief.engines.distributed.engine import DistributedEngine
from belief.engines.resources import silent
from belief.engines.spark.frame import Input
from belief.engines.spark.store import cluster_of


def frame_engine(given: Input, staging: str = "auto", say: Callable[[str], None] = silent) -> DistributedEngine:
    """The Engine protocol over a DataFrame that was opened.

    Parameters
    ----------
    staging : where blocks are held: "auto", "memory", "disk", or a folder that all executors reach
    say : told what Spark is doing, in a word or two
    """
    return DistributedEngine(cluster_of(given, staging, say), given.about)
