"""The answers of tasks become one: packed where they are made, merged slice by slice in the order of the tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from belief.engines.distributed.blocks import RowBlock
from belief.engines.distributed.cluster import Slices
from belief.engines.distributed.tasks import Job
from belief.engines.distributed.wire import pack, unpack
from belief.method.arrays import Array

SEEN = -1  # the slice in which a task says which blocks it has seen
Merge = Callable[[Sequence[dict[str, Any]]], dict[str, Any]]


def answers_of(job: Job, blocks: Iterable[RowBlock], n_jobs: int) -> Iterator[tuple[int, bytearray]]:
    """What a worker does: run a job over some blocks; (slice, bytes) of each answer, and of the blocks it has seen."""
    seen: list[int] = []

    def noted() -> Iterator[RowBlock]:
        for block in blocks:
            seen.append(block.number)
            yield block

    for where, arrays in job.run(noted(), n_jobs):
        yield where, pack(arrays)
    yield SEEN, pack({"seen": np.array(seen, np.int64)})


def merged(job: Job, answers: Iterable[tuple[int, int, Any]], n_blocks: int) -> Slices:
    """The answers (task, slice, bytes) of all tasks."""
    by_slice: dict[int, list[Any]] = defaultdict(list)
    for _, where, data in sorted(answers, key=lambda x: x[:2]):
        by_slice[where].append(data)
    refuse_lost(merged_slice(SEEN, by_slice.pop(SEEN, []), job.merge)["seen"], n_blocks)
    return {where: merged_slice(where, parts, job.merge) for where, parts in by_slice.items()}


def merged_slice(where: int, parts: Sequence[Any], merge: Merge) -> dict[str, Any]:
    """The answers of all tasks for one slice."""
    arrays = [unpack(data) for data in parts]
    if where == SEEN:
        return {"seen": np.concatenate([x["seen"] for x in arrays]) if arrays else np.zeros(0, np.int64)}
    return merge(arrays)


def refuse_lost(seen: Array, n_blocks: int) -> None:
    """Refuse an answer in which a block is missing, or counted twice."""
    different = len(np.unique(seen))
    if len(seen) != n_blocks or different != n_blocks:
        raise ValueError(
            f"Of {n_blocks} staged blocks {different} came back: the table came out different when it was computed"
            " again. Stage to a folder (staging='/path'), or write it to storage first."
        )
