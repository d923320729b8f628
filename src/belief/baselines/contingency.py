"""Jobs of mRMR over the blocks of a cluster: values become codes, and codes become contingency tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from belief.engines.block.threads import spans
from belief.engines.spark.blocks import RowBlock
from belief.engines.spark.engine import MAX_SLICE_FEATURES
from belief.engines.spark.jobs import Answer, Job
from belief.kernels.compiling import kernel
from belief.method.arrays import Array


@dataclass(frozen=True)
class Encode(Job):
    """Convert blocks of rows to blocks of codes (features x rows); for sparse rows, to the positions of non-zeros."""

    upto: Sequence[Array] | None  # for each feature the upper bounds of all levels but the last; None: sparse rows

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        for block in blocks:
            X = block.X
            codes = {"indptr": X.indptr, "indices": X.indices} if issparse(X) else {"codes": self._codes(X)}
            yield block.number, {"targets": block.targets, **codes}

    def _codes(self, X: Array) -> Array:
        assert self.upto is not None
        small = max(map(len, self.upto)) + 2 <= 256
        out = np.empty(X.shape[::-1], np.uint8 if small else np.int32)
        for j, upto in enumerate(self.upto):
            missing = np.isnan(X[:, j])
            out[j] = np.where(missing, len(upto) + 1, np.searchsorted(upto, X[:, j]))
        return out


@dataclass(frozen=True)
class Count(Job):
    """Count the contingency tables of all features with one feature or with the class, by slices of features."""

    feature: int | None
    n_target: int
    levels: Array

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        start = np.concatenate([[0], np.cumsum(self.levels)])
        counts = np.zeros((start[-1], self.n_target), np.int64)
        rows = np.zeros(self.n_target, np.int64)
        sparse = False
        for block in blocks:
            sparse = "codes" not in block.X
            target = block.targets if self.feature is None else column(block.X, self.feature)
            rows += np.bincount(target, minlength=self.n_target)
            if sparse:
                count_present(block.X["indptr"], block.X["indices"], target, counts)
            else:
                count(block.X["codes"], start, target, counts)
        if sparse:
            counts[::2] = rows - counts[1::2]
        for i, (a, b) in enumerate(spans(len(self.levels), MAX_SLICE_FEATURES)):
            yield i, {"counts": counts[start[a] : start[b]]}

    @classmethod
    def merge(cls, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"counts": np.sum([x["counts"] for x in answers], axis=0)}


def column(codes: dict[str, Array], j: int) -> Array:
    """Return the codes of one feature in a block."""
    if "codes" in codes:
        return codes["codes"][j]
    indptr = codes["indptr"]
    present = np.zeros(len(indptr) - 1, np.uint8)
    present[np.searchsorted(indptr, np.flatnonzero(codes["indices"] == j), side="right") - 1] = 1
    return present


@kernel()
def count(codes: Array, start: Array, target: Array, counts: Array) -> None:
    """Add the rows of a dense block to the tables."""
    for j in range(len(codes)):
        for r in range(len(target)):
            counts[start[j] + codes[j, r], target[r]] += 1


@kernel()
def count_present(indptr: Array, indices: Array, target: Array, counts: Array) -> None:
    """Add the non-zeros of a sparse block to the tables; every feature has two levels, zero and non-zero."""
    for r in range(len(target)):
        for p in range(indptr[r], indptr[r + 1]):
            counts[2 * np.int64(indices[p]) + 1, target[r]] += 1
