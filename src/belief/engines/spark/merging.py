"""The answers of tasks put together: blocks are merged, slices of features stand side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from belief.data.source import frozen
from belief.engines.spark.blocks import Rows
from belief.engines.spark.store import SEEN
from belief.engines.spark.tasks import Job, stacked
from belief.engines.spark.wire import pack, unpack
from belief.method.arrays import Array
from belief.method.partials import Tally
from belief.method.summary import Levels, Summary


def merged(job: Job, answers: Sequence[tuple[int, int, Any]], n_blocks: int) -> dict[int, dict[str, Array]]:
    """The answers of all tasks, merged in the order of the tasks."""
    by_slice: dict[int, list[dict[str, Array]]] = defaultdict(list)
    for _, where, data in sorted(answers, key=lambda x: x[:2]):
        by_slice[where].append(unpack(data))
    refuse_lost([x["seen"] for x in by_slice.pop(SEEN, [])], n_blocks)
    return {where: type(job).merge(parts) for where, parts in by_slice.items()}


def merged_table(table: Any, merge: Callable[[Sequence[dict[str, Array]]], dict[str, Any]]) -> Any:
    """The same of one slice, on an executor."""
    import pyarrow as pa

    where = table.column("slice")[0].as_py()
    data = table.column("data")  # not sorted as it is: one array holds no more than 2 GB
    parts = [unpack(data[int(i)].as_buffer()) for i in np.argsort(table.column("task"))]
    whole = {"seen": np.concatenate([x["seen"] for x in parts])} if where == SEEN else merge(parts)
    return pa.table([[0], [where], [pack(whole)]], schema=table.schema)


def refuse_lost(seen: Sequence[Array], n_blocks: int) -> None:
    """Refuse an answer in which a block is missing, or counted twice."""
    ids = np.concatenate(seen) if len(seen) else np.zeros(0, np.int64)
    if len(ids) != n_blocks or len(np.unique(ids)) != n_blocks:
        raise ValueError(
            f"Of {n_blocks} staged blocks {len(np.unique(ids))} came back: the DataFrame came out different when Spark"
            " computed it again. Stage to a folder (staging='/path'), or write it to storage first."
        )


def frozen_rows(parts: Sequence[Rows]) -> Rows:
    """Rows from several places, one after the other, that nobody may change."""
    rows = stacked(parts)
    return frozen(rows) if isinstance(rows, np.ndarray) else csr_array(rows)


def joined(parts: Sequence[Summary]) -> Summary:
    """The summaries of slices of features, side by side."""
    names = [name for name in vars(parts[0]) if name not in ("class_counts", "levels")]
    side = {name: np.concatenate([getattr(x, name) for x in parts]) for name in names}
    return Summary(parts[0].class_counts, **side, levels=Levels.concat([x.levels for x in parts]))


def beside(parts: Sequence[Tally], missing: bool) -> Tally:
    """The tallies of slices of features, side by side."""
    always = ("DD", "ED", "marginal") + (("DC", "EC", "pairs") if missing else ())
    side: dict[str, Any] = {name: np.concatenate([getattr(x, name) for x in parts], axis=-1) for name in always}
    return replace(parts[0], **side)
