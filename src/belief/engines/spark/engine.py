"""The engine for a DataFrame, and where its blocks are held."""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Callable
from typing import Any

from belief.engines.distributed.engine import DistributedEngine
from belief.engines.distributed.owner import PREFIX
from belief.engines.resources import ignore_progress
from belief.engines.spark.frame import Input
from belief.engines.spark.store import Files, Persisted


def frame_engine(
    given: Input, staging: str = "auto", say: Callable[[str], None] = ignore_progress
) -> DistributedEngine:
    """The Engine protocol over a DataFrame that was opened.

    Parameters
    ----------
    staging : where blocks are held: "auto", "memory", "disk", or a folder that all executors reach
    say : told what Spark is doing, in a word or two
    """
    return DistributedEngine(cluster_of(given, staging, say), given.about)


def cluster_of(given: Input, staging: str, say: Callable[[str], None]) -> Files | Persisted:
    """Spark as a cluster that holds blocks where it is said: "auto", "memory", "disk", or a folder."""
    from pyspark import StorageLevel

    if staging not in ("auto", "memory", "disk") and not re.match(r"(file://)?/", staging):
        raise ValueError(
            f"staging must be 'auto', 'memory', 'disk', or the full path of a folder that every executor reaches as a"
            f" file system; got {staging!r}."
        )
    spark = given.df.sparkSession
    local = re.fullmatch(r"local(\[(\d+|\*).*\])?", spark.conf.get("spark.master", ""))
    if staging in ("memory", "disk") or (staging == "auto" and not local):
        return Persisted(given, say, StorageLevel.DISK_ONLY if staging == "disk" else StorageLevel.MEMORY_AND_DISK)
    run = f"{PREFIX}{uuid.uuid4().hex}"
    here = bool(local) and hasattr(spark, "_sc")
    home = tempfile.gettempdir() if here else ""  # of another process, it may be another
    folder = os.path.join(home, run) if staging == "auto" else f"{staging.removeprefix('file://').rstrip('/')}/{run}"
    return Files(given, say, folder, parallelism(spark, local), here)


def parallelism(spark: Any, local: re.Match[str] | None) -> int:
    """How many tasks a pass over files has: as many as run at once, and on a cluster a few times that."""
    context = getattr(spark, "_sc", None)
    if local is not None and (local[2] or "").isdigit():
        return int(local[2])
    together = int(context.defaultParallelism) if context is not None else 16
    return together if local is not None else 3 * together
