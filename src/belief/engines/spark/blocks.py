"""Blocks of rows on a cluster: their descriptions, the position of every row, and how executors decode them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from belief.data.labels import Labels, RowError
from belief.data.source import as_read_only
from belief.engines.records import restore
from belief.engines.spark.wire import unpack
from belief.kernels.dense import gather
from belief.method.arrays import Array
from belief.method.summary import Summary
from belief.method.targets import REGRESSION, Classes, Target, make_numeric_target

MAX_SPARSE_DENSITY = 0.25  # tables with sparse rows are kept sparse below this share of non-zero values
Matrix = Any  # a C-ordered float array or a CSR matrix


@dataclass(frozen=True)
class TableSpec:
    """The columns and discrete features of a table, and the task, before any rows are read."""

    label: str
    features: str  # the column of vectors; "" for plain columns
    discrete: Array  # mask; may be shorter than the vectors if their length is unknown
    is_full_mask: bool = False  # `discrete` must have one value per feature
    task: str = "auto"
    roles: int = 0  # the number of columns at the end that are not features, but groups, strata or weights of rows


@dataclass(frozen=True)
class BlockInfo:
    """The description of a staged block, which its task sends to the driver.

    Tasks also send entries without rows: the message of an error, or the summary of all blocks of the task.
    """

    partition: int  # the first input partition with rows in this block
    seq: int  # number of the block within its task
    rows: int = 0
    checksum: int = 0
    about: dict[str, Any] = field(default_factory=dict)  # sizes and labels, as JSON
    summary: bytes | None = None
    strings: bytes | None = None  # codes of the strings in this block that earlier blocks of the task do not contain


@dataclass(frozen=True)
class RowBlock:
    """The rows of a block on an executor. If their ids are consecutive, `first` is the id of the first row."""

    number: int
    X: Matrix
    targets: Array
    first: int = 0


@dataclass(frozen=True)
class Layout:
    """The position of every row on the cluster, and the format of the rows. It is sent with every job, so it is small.

    A run is a range of consecutive row ids that are stored together in one block. Runs are sorted by id.
    """

    blocks: Sequence[BlockInfo]
    targets: Sequence[Array]  # for each block, the target of each of its distinct labels
    run_first: Array  # the id of the first row of each run
    run_rows: Array
    run_block: Array
    run_offset: Array  # the position of the first row within the block
    n_rows: int
    n_features: int
    row_bytes: int  # average
    dense: bool  # whether blocks are decoded to arrays of `dtype`, and not to CSR matrices
    dtype: str

    @classmethod
    def of(cls, blocks: Sequence[BlockInfo], targets: Sequence[Array]) -> Self:
        """Number the rows like Spark's zipWithIndex (by partition, then in reading order), and return their layout."""
        runs = [(*run, i, x.seq) for i, x in enumerate(blocks) for run in x.about["runs"]]
        partition, rows, block, seq = np.array(runs, np.int64).T
        offset = np.cumsum(rows) - rows
        offset -= offset[np.searchsorted(block, block)]
        order = np.lexsort((seq, partition))
        n_rows, n_features = int(rows.sum()), int(blocks[0].about["width"])
        has_sparse = any(x.about["sparse"] for x in blocks)
        nonzero = sum(x.about["nonzero"] for x in blocks)
        dense = not (has_sparse and nonzero < MAX_SPARSE_DENSITY * n_rows * n_features)
        stored_bytes = sum(x.about["bytes"] for x in blocks)
        return cls(
            [replace(x, about={}, summary=None, strings=None) for x in blocks],
            targets,
            run_first=np.cumsum(rows[order]) - rows[order],
            run_rows=rows[order],
            run_block=block[order],
            run_offset=offset[order],
            n_rows=n_rows,
            n_features=n_features,
            row_bytes=8 * n_features if dense and has_sparse else 1 + stored_bytes // n_rows,
            dense=dense,
            dtype=np.result_type(*{x.about["dtype"] for x in blocks}).str,
        )

    def locate(self, ids: Array) -> tuple[Array, Array]:
        """Return the number of the block that has each row, and the position of the row within it."""
        run = np.searchsorted(self.run_first, ids, side="right") - 1
        return self.run_block[run], self.run_offset[run] + ids - self.run_first[run]

    def decode_runs(self, data: Any, runs: Sequence[int]) -> Iterator[RowBlock]:
        """Decode the bytes of a block, and yield these runs of consecutive rows, which the block must contain."""
        i = self.run_block[runs[0]]
        arrays = unpack(data)
        X, targets = to_matrix(arrays), self.targets[i][arrays["codes"]]
        for run in runs:
            a, n = int(self.run_offset[run]), int(self.run_rows[run])
            rows = X if n == self.blocks[i].rows else X[a : a + n]
            yield RowBlock(int(run), self._convert(rows), targets[a : a + n], int(self.run_first[run]))

    def decode_rows(self, data: Any, block: int, positions: Array, features: Array | None) -> tuple[Matrix, Array]:
        """Decode the bytes of a block, and return some of its rows with their targets.

        `features` are the features to return, in ascending order; None means all.
        """
        arrays = unpack(data)
        X, targets = to_matrix(arrays), self.targets[block][arrays["codes"][positions]]
        if features is None:
            return self._convert(X[positions]), targets
        if issparse(X) or not self.dense:
            return take_features(self._convert(X[positions]), features), targets
        out = np.empty((len(positions), len(features)), X.dtype)
        gather(as_read_only(X), positions, features, out)
        return self._convert(out), targets

    def _convert(self, X: Matrix) -> Matrix:
        """Convert stored rows, which may be float32 arrays or CSR, to the format that all blocks have in common."""
        if not self.dense:
            return X if issparse(X) else csr_array(X)
        return as_read_only(X.toarray()) if issparse(X) else X.astype(self.dtype, copy=False)


# --- matrices ---


def to_arrays(X: Matrix) -> dict[str, Any]:
    """Return the arrays that a matrix consists of, by name."""
    if not issparse(X):
        return {"X": X}
    return {"indptr": X.indptr, "indices": X.indices, "data": X.data, "width": X.shape[1]}


def to_matrix(arrays: dict[str, Any]) -> Matrix:
    """Return the matrix that consists of these arrays (see `to_arrays`)."""
    if "X" in arrays:
        return arrays["X"]
    shape = (len(arrays["indptr"]) - 1, int(arrays["width"]))
    X = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    X.has_canonical_format = True
    return X


def take_features(X: Matrix, features: Array) -> Matrix:
    """Return these columns of X; X itself if it has no others."""
    if X.shape[1] == len(features):
        return X
    return X[:, features] if issparse(X) else as_read_only(np.take(X, features, axis=1))


def take_rows(block: RowBlock, ids: Array) -> tuple[Matrix, Array, Array]:
    """Return the rows of a block that are among the sorted ids, their targets, and their positions in `ids`."""
    a, b = np.searchsorted(ids, (block.first, block.first + len(block.targets)))
    positions = ids[a:b] - block.first
    return block.X[positions], block.targets[positions], np.arange(a, b)


def stack_rows(parts: Sequence[Matrix]) -> Matrix:
    """Stack matrices of the same format to one matrix, which is read-only."""
    if len(parts) == 1:
        return parts[0]
    return csr_array(vstack(parts, format="csr")) if issparse(parts[0]) else as_read_only(np.concatenate(parts))


# --- on the driver, after staging ---


def lay_out(staged: Sequence[BlockInfo], spec: TableSpec) -> tuple[Layout, Target, Array]:
    """Check the staged blocks for errors; return the layout, the target, and the mask of discrete features."""
    for x in staged:
        problem = x.about.get("problem")
        if problem is None:
            continue
        if len(problem) == 1:
            raise ValueError(*problem)
        runs = (run for y in staged for run in y.about.get("runs", ()))
        rows_before = sum(rows for partition, rows in runs if partition < x.partition)
        before, row, rest = problem
        raise RowError(before, rows_before + row, rest)
    known: dict[tuple[str, float], int] = {}
    for x in staged:
        if x.strings is not None:
            hashes = unpack(x.strings)
            for name, code, check in zip(x.about["columns"], hashes["code"], hashes["check"], strict=True):
                check_collision(known.setdefault((name, float(code)), int(check)), int(check), name)
    blocks = [x for x in staged if x.rows]
    if not blocks:
        raise ValueError("The DataFrame has no rows.")
    widths = sorted({x.about["width"] for x in blocks})
    if len(widths) > 1:
        raise ValueError(
            f"The vectors of column {spec.features!r} differ in length: {widths[0]} in one partition, {widths[-1]} in"
            " another. Make them all the same length."
        )
    n, n_features = len(spec.discrete), widths[0]  # the mask may be shorter than the vectors
    labels = Labels(f"Column {spec.label!r}", spec.task)
    for x in blocks:
        values = np.array(x.about["labels"])
        labels.add_encoded(values, np.arange(len(values)))
    labels.n_rows = sum(x.rows for x in blocks)  # each distinct label stands for several rows
    counts = np.concatenate([x.about["counts"] for x in blocks])
    target: Target
    if (labels.infer_task() if spec.task == "auto" else spec.task) == REGRESSION:
        target, codes = make_numeric_target(labels.to_numbers(), counts)
    else:
        names, codes = labels.encode_classes()
        target = Classes(names, np.bincount(codes, counts, len(names)).astype(np.int64))
        codes = codes.astype(np.int32)
    if spec.is_full_mask and n != n_features:
        raise ValueError(
            f"discrete_features is a mask of {n} values, but the vectors have {n_features} features. Pass one value per"
            " feature."
        )
    if n > n_features:
        raise ValueError(
            f"discrete_features has the index {n - 1}, but the vectors have {n_features} features, numbered from 0."
        )
    ends = np.cumsum([len(x.about["labels"]) for x in blocks])  # of the codes of each block
    layout = Layout.of(blocks, np.split(codes, ends[:-1]))
    return layout, target, np.concatenate([spec.discrete, np.zeros(n_features - n, bool)])


def merge_summaries(staged: Sequence[BlockInfo], n_rows: int, classes: Array) -> Summary | None:
    """Return the summary of all rows; None if some rows were not summarised during staging."""
    summaries = []
    for x in staged:
        if x.summary is not None:
            order = np.searchsorted(classes, np.array(x.about["labels"], classes.dtype))
            summaries.append(restore(Summary, unpack(x.summary)).regrouped(order, len(classes)))
    return reduce(Summary.merge, summaries) if sum(x.m for x in summaries) == n_rows else None


def check_collision(known: int, check: int, name: str) -> None:
    """Raise a ValueError if two different strings of a column have the same code.

    The code of a string is one part of its hash. `known` and `check` are the other parts of the hashes of two strings
    with the same code. If these parts differ, the strings differ.
    """
    if known != check:
        raise ValueError(
            f"Two values of column {name!r} have the same 53-bit hash. Convert the column to numbers, with"
            " pyspark.ml.feature.StringIndexer for example."
        )
