"""What the driver makes of all that was staged: where each block is in the whole, and what the whole is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from belief.data.labels import Labels, RowError
from belief.engines.distributed.blocks import Form, Pieces, Placed, Staged
from belief.engines.distributed.records import restored
from belief.engines.distributed.wire import unpack
from belief.method.arrays import Array
from belief.method.summary import Summary
from belief.method.targets import REGRESSION, Classes, Target, rank_value_counts

KEPT_SPARSE_BELOW = 0.25  # rows of which some came sparse are kept sparse if fewer of their values are not 0


@dataclass(frozen=True)
class Given:
    """What is known of a table before it is read, and what it is called in errors."""

    table: str  # "The DataFrame"
    label: str  # "Column 'y'"
    vectors: str  # "The vectors of column 'features'"
    discrete: Array  # which features are; of vectors of unknown length as many as had to be named
    masked: bool = False  # whether `discrete` speaks of every feature
    task: str = "auto"


@dataclass(frozen=True)
class Layout:
    """All blocks, where their rows are in the whole, and what the table is."""

    placed: Sequence[Placed]
    pieces: Pieces
    form: Form
    m: int
    n_features: int
    discrete: Array
    target: Target
    row_bytes: int  # of one row, about

    @classmethod
    def of(cls, staged: Sequence[Staged], given: Given) -> Layout:
        """Refuse what cannot be used, and give every row its place, in the order zipWithIndex would have."""
        refuse_problems(staged)
        refuse_shared_codes(staged)
        blocks = [x for x in staged if x.rows]
        if not blocks:
            raise ValueError(f"{given.table} has no rows.")
        F, m = _width(blocks, given), sum(x.rows for x in blocks)
        placed, target = _placed(blocks, given, m)
        nonzero = sum(x.about["nonzero"] for x in blocks)
        some_sparse = any(x.about["sparse"] for x in blocks)
        dense = not (some_sparse and nonzero < KEPT_SPARSE_BELOW * m * F)
        row_bytes = 8 * F if dense and some_sparse else 1 + sum(x.about["bytes"] for x in blocks) // m
        form = Form(dense, np.result_type(*{x.about["dtype"] for x in blocks}).str)
        return cls(placed, Pieces.of(blocks), form, m, F, _discrete(given, F), target, row_bytes)


def _width(blocks: Sequence[Staged], given: Given) -> int:
    widths = sorted({x.about["width"] for x in blocks})
    if len(widths) > 1:
        raise ValueError(
            f"{given.vectors} differ in length: {widths[0]} in one partition, {widths[-1]} in another: make them all as"
            " long."
        )
    return int(widths[0])


def _placed(blocks: Sequence[Staged], given: Given, m: int) -> tuple[list[Placed], Target]:
    target, numbers = _target(blocks, given, m)
    cut = np.cumsum([0] + [len(x.about["labels"]) for x in blocks])
    placed = [
        Placed(x.partition, x.seq, x.rows, x.checksum, numbers[i:j])
        for x, i, j in zip(blocks, cut[:-1], cut[1:], strict=True)
    ]
    return placed, target


def _target(blocks: Sequence[Staged], given: Given, m: int) -> tuple[Target, Array]:
    """What is to be explained, and what each of the distinct labels of each block is in it."""
    labels = Labels(given.label, given.task)
    for x in blocks:  # the distinct labels of a block stand for all of its rows
        values = np.array(x.about["labels"])
        labels.add_encoded(values, np.arange(len(values)))
    labels.n_rows = m
    counts = np.concatenate([x.about["counts"] for x in blocks])
    if (labels.infer_task() if given.task == "auto" else given.task) == REGRESSION:
        return rank_value_counts(labels.to_numbers(), counts)
    names, codes = labels.encode_classes()
    return Classes(names, np.bincount(codes, counts, len(names)).astype(np.int64)), codes.astype(np.int32)


def _discrete(given: Given, F: int) -> Array:
    n = len(given.discrete)
    if given.masked and n != F:
        raise ValueError(f"discrete_features is a mask of {n} values, but the vectors have {F}.")
    if n > F:
        raise ValueError(f"discrete_features speaks of {n} features, but the vectors have {F}.")
    return np.concatenate([given.discrete, np.zeros(F - n, bool)])


def summary_of(staged: Sequence[Staged], m: int, classes: Array) -> Summary | None:
    """The summary of all rows, if all of them were described when they were staged."""
    known = [_regrouped(x, classes) for x in staged if x.summary is not None]
    return reduce(Summary.merge, known) if sum(x.m for x in known) == m else None


def _regrouped(x: Staged, classes: Array) -> Summary:
    """The summary of a task, with its labels numbered as the classes are."""
    order = np.searchsorted(classes, np.array(x.about["labels"], classes.dtype))
    return restored(Summary, unpack(x.summary)).regrouped(order, len(classes))


def refuse_problems(staged: Sequence[Staged]) -> None:
    """Say the first thing that could not be read; a row is counted from its partition's first, and here from 0."""
    for x in staged:
        if "problem" in x.about:
            runs = (run for y in staged for run in y.about.get("runs", ()))
            _refuse(x.about["problem"], sum(rows for partition, rows in runs if partition < x.partition))


def _refuse(problem: Sequence[Any], rows_before: int) -> None:
    if len(problem) == 1:
        raise ValueError(*problem)
    before, row, rest = problem
    raise RowError(before, rows_before + row, rest)


def refuse_shared_codes(staged: Sequence[Staged]) -> None:
    """Refuse two strings of a column that have the same code."""
    known: dict[tuple[str, float], int] = {}
    for x in staged:
        noted = unpack(x.strings) if x.strings is not None else {"code": np.zeros(0), "check": np.zeros(0)}
        for name, code, check in zip(x.about.get("columns", []), noted["code"], noted["check"], strict=True):
            refuse_shared(known.setdefault((name, float(code)), int(check)), int(check), name)


def refuse_shared(known: int, check: int, name: str) -> None:
    """Refuse two strings with the same code."""
    if known != check:
        raise ValueError(f"Two values of column {name!r} have the same 53-bit hash: index the column with numbers.")
