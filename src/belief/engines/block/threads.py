"""What the engines over rows in one place share: threads, and the answers that need the targets alone."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, reduce
from threading import Lock
from typing import Any, Self, TypeVar

import numpy as np

from belief.engines.block.blas import one_thread, one_thread_here
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.copies import select_representatives
from belief.method.partials import Pairs
from belief.method.sampling import Sample
from belief.method.summary import can_count_groups
from belief.method.targets import Target

T = TypeVar("T")
TILE = 2000  # rows a tile has at the most; not a power of two, whose columns would share few lines of the cache
SMALL = 1024  # rows of a table for which it is not worth compiling what only saves time on larger ones


def spans(n: int, width: int) -> list[tuple[int, int]]:
    """Cut 0 to n into spans of at most `width`."""
    return [(a, min(a + width, n)) for a in range(0, n, width)]


class Threads:
    """The threads of an engine, which start when there is something to share among them.

    Each makes its own BLAS calls: BLAS starts none beside them.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources, self._pool = resources, None  # type: Resources, ThreadPoolExecutor | None
        self._lock = Lock()

    def map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        """Task over the arguments, the results in their order; one thread is the one that asks."""
        if len(arguments) < 2 or self._n == 1:
            return map(task, arguments)
        return self._started().map(task, arguments)

    @cached_property
    def _n(self) -> int:
        return self._resources.threads

    def submit(self, task: Callable[..., T], *arguments: Any) -> Future[T]:
        """Begin a task."""
        return self._started().submit(task, *arguments)

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self._n, initializer=one_thread_here)
            return self._pool

    def shutdown(self) -> None:
        """End them: after Ctrl-C, what has not begun never will."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class ThreadedEngine:
    """Rows in memory or memory-mapped, and threads to work on them; to be used as a context.

    Parameters
    ----------
    targets : the target of each row, such as the number of its class
    counted : which rows are sampled and found, where not all are
    resources : what may be used
    pool : the threads of another engine, to use instead of starting some
    """

    target: Target  # of all rows; set by whoever knows, where the engine is asked for a sample
    rereads_data = False
    columns_at_once = 0

    def __init__(
        self, n_features: int, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None,
    ) -> None:  # fmt: skip
        self.n_features, self.m = n_features, len(targets)
        self.targets, self.discrete, self.counted = targets, discrete, counted
        self.resources = resources
        self.working_memory, self.report = resources.working_memory, resources.report
        self.pool = pool

    @cached_property
    def n_jobs(self) -> int:
        """The number of threads."""
        return self.resources.threads

    def __enter__(self) -> Self:
        """Have threads of our own."""
        self._quiet = one_thread()
        self._quiet.__enter__()
        self.pool = self._own = Threads(self.resources)
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        self._own.shutdown()
        self._quiet.__exit__(None, None, None)

    def map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        """Task over the arguments, the results in their order, so that sums do not depend on the threads."""
        assert self.pool is not None, "an engine is to be used as a context"
        return self.pool.map(task, arguments)

    def fingerprint(self) -> bytes:
        """A name for the rows, their targets, and which features are discrete."""
        crc = 0
        for x in (self.targets, self.discrete, *self._values()):
            crc = zlib.crc32(np.ascontiguousarray(x).tobytes(), crc)
        return crc.to_bytes(4, "little")

    def _values(self) -> Iterator[Array]:
        """All values, in some fixed order."""
        raise AssertionError  # every engine has its own

    def identities(self) -> Array:
        """A number for each row, the same for identical rows."""
        raise AssertionError  # every engine has its own

    def merge_copies(self, seed: int) -> Target:
        self.counted = select_representatives(self.identities(), self.targets, seed)
        return self.target.counted(self.targets[self.counted])

    def _groups_kept(self) -> int:
        """The groups of rows by their targets, which are numbered from 0; none where no target is known (-1)."""
        n = int(self.targets.max(initial=-1)) + 1 if self.targets.dtype.kind in "iu" else 0
        return n if can_count_groups(n, self.n_features) else 0

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Be told of pairs to come: their rows are at hand already."""

    def sample(self, quota: Array, seed: int) -> Sample:
        """The rows with the smallest keys: quota[0] in all, or quota[c] of each class c."""
        ids = np.arange(self.m) if self.counted is None else np.flatnonzero(self.counted)
        parts = (Sample.draw(ids[a:b], self.targets[ids[a:b]], quota, seed) for a, b in spans(len(ids), 2**20))
        return reduce(lambda x, y: x.merge(y, quota), parts, Sample.zero())
