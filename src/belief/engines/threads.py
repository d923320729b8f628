"""What the engines of one machine share: threads, and the sample."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, reduce
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from belief.cores import n_threads
from belief.engines.base import spans
from belief.method.partials import Array, Pairs
from belief.method.sampling import Sample

T = TypeVar("T")
Report = Callable[..., None]  # rows done, of how many (0: not known), and in what ("comparing")


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process: looking for them takes longer than a small block does."""
    return ThreadpoolController()


class ThreadedEngine:
    """Threads over data in memory or memory-mapped, to be used as a context.

    Parameters
    ----------
    labels : the class of each row, as a number from 0
    n_jobs : threads, as `belief.cores` counts them
    working_memory : bytes the search and the tally may use beside the data
    report : told how many rows have been searched, and of how many
    """

    classes: Array  # what the labels stand for; set by whoever knows
    at_once = 0

    def __init__(
        self,
        n_features: int,
        labels: Array,
        n_classes: int,
        discrete: Array,
        *,
        n_jobs: int | None = None,
        working_memory: int = 2**30,
        report: Report = lambda *how_far: None,
    ) -> None:
        self.n_features, self.n_classes, self.m = n_features, n_classes, len(labels)
        self.labels, self.discrete = labels, discrete
        self.n_jobs = n_threads(n_jobs)
        self.working_memory = working_memory
        self.report = report

    def __enter__(self) -> Self:
        """Start threads of our own. Each makes its own BLAS calls: BLAS starts none beside them."""
        self._limits = _libraries().limit(limits=1, user_api="blas")
        self._pool = ThreadPoolExecutor(self.n_jobs)
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)  # after Ctrl-C, what has not begun never will
        self._limits.restore_original_limits()

    def _map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        """Task over the arguments, the results in their order, so that sums do not depend on the threads."""
        return self._pool.map(task, arguments)

    def fingerprint(self) -> bytes:
        """A name for the rows, their classes, and which features are discrete."""
        crc = 0
        for x in (self.labels, self.discrete, *self._values()):
            crc = zlib.crc32(np.ascontiguousarray(x).tobytes(), crc)
        return crc.to_bytes(4, "little")

    def _values(self) -> Iterator[Array]:
        """All values, in some fixed order."""
        raise AssertionError  # every engine has its own

    def expect(self, batches: Sequence[Pairs]) -> None:
        """Be told the pairs to come: their rows are at hand already."""

    def sample(self, quota: Array, seed: int) -> Sample:
        """The rows with the smallest keys: quota[0] in all, or quota[c] of each class c."""
        parts = (Sample.of(np.arange(a, b), self.labels[a:b], quota, seed) for a, b in spans(self.m, 2**20))
        return reduce(lambda x, y: x.merge(y, quota), parts, Sample.zero())
