"""Base classes of the engines, with a thread pool and the methods that only need the targets."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, reduce
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from belief._utils.lazy import importing
from belief.engines.block.blas import limit_blas, limit_blas_in_this_thread
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.copies import select_representatives
from belief.method.design import Design
from belief.method.partials import Pairs
from belief.method.sampling import Sample
from belief.method.summary import can_count_groups
from belief.method.targets import Target

if TYPE_CHECKING:
    from belief.engines.probe import ProbeSearch

T = TypeVar("T")
# Maximum number of rows of a tile. With a power of two, columns would compete for the same few cache lines.
TILE = 2000


def spans(n: int, width: int) -> list[tuple[int, int]]:
    """Cut range(n) into consecutive spans (start, stop) of at most `width`."""
    return [(a, min(a + width, n)) for a in range(0, n, width)]


class Threads:
    """A thread pool that starts when it is first needed.

    Each thread makes its own BLAS calls, which run on that thread alone.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources, self._pool = resources, None  # type: Resources, ThreadPoolExecutor | None
        self._lock = Lock()

    def map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        """Apply the task to each argument, and yield the results in the order of the arguments.

        A single task runs in the calling thread.
        """
        if len(arguments) < 2 or self._n == 1:
            return map(task, arguments)
        return self._start().map(task, arguments)

    @cached_property
    def _n(self) -> int:
        return self._resources.threads

    def submit(self, task: Callable[..., T], *arguments: Any) -> Future[T]:
        """Start a task in a thread; return its future."""
        return self._start().submit(task, *arguments)

    def _start(self) -> ThreadPoolExecutor:
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self._n, initializer=limit_blas_in_this_thread)
            return self._pool

    def shutdown(self) -> None:
        """Stop the threads. Tasks that have not started are cancelled, for example after Ctrl-C."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class ThreadedEngine:
    """An engine with threads, used as a context manager.

    Parameters
    ----------
    resources : threads, memory and device
    pool : threads of another engine to share; None: the engine starts its own
    """

    target: Target  # the target of all rows; needed for sampling
    design = Design()
    rereads_data = False
    columns_at_once = 0

    def __init__(self, resources: Resources, pool: Threads | None = None) -> None:
        self.resources = resources
        self.working_memory, self.report = resources.working_memory, resources.report
        self.pool = pool

    @cached_property
    def n_jobs(self) -> int:
        """The number of threads."""
        return self.resources.threads

    def weigh(self, rows: Array, sampled: Array) -> Array:
        return np.ones(len(rows))

    def local_search(self) -> ProbeSearch:
        """Return the object that searches the probe, the part of the rows on which features are tested."""
        with importing():
            from belief.engines.probe import ProbeSearch

        assert self.pool is not None
        return ProbeSearch(self.pool, self.report)

    def __enter__(self) -> Self:
        """Create the thread pool."""
        self._blas = limit_blas()
        self._blas.__enter__()
        self.pool = self._own = Threads(self.resources)
        return self

    def __exit__(self, error: type[BaseException] | None, *about: object) -> None:
        self._own.shutdown()
        self._blas.__exit__(None, None, None)

    def map(self, task: Callable[..., T], arguments: Sequence[Any]) -> Iterator[T]:
        """Apply the task to each argument in threads, and yield the results in the order of the arguments.

        The fixed order makes sums independent of the number of threads.
        """
        assert self.pool is not None, "use the engine as a context manager"
        return self.pool.map(task, arguments)


class RowEngine(ThreadedEngine):
    """An engine over rows with known targets, in memory or in memory-mapped files.

    Parameters
    ----------
    targets : the target of each row as a number, such as the index of its class
    counted : mask of the rows that may be sampled or found as neighbours; None: all rows
    """

    def __init__(
        self, n_features: int, targets: Array, discrete: Array, resources: Resources, pool: Threads | None = None,
        counted: Array | None = None,
    ) -> None:  # fmt: skip
        super().__init__(resources, pool)
        self.n_features, self.m = n_features, len(targets)
        self.targets, self.discrete, self.counted = targets, discrete, counted

    def fingerprint(self) -> bytes:
        """Return a checksum of the rows, the targets, and the mask of discrete features."""
        return checksum([self.targets, self.discrete, *self._all_values()])

    def _all_values(self) -> Iterator[Array]:
        """Yield all values in a fixed order, as arrays."""
        raise NotImplementedError

    def identities(self) -> Array:
        """Return a hash of each row; identical rows have the same hash."""
        raise NotImplementedError

    def merge_copies(self, seed: int) -> Target:
        self.counted = select_representatives(self.identities(), self.targets, seed)
        return self.target.counted(self.targets[self.counted])

    def retarget(self, targets: Array, counted: Array | None) -> None:
        """Replace the targets of all rows, and set the mask of the rows that may be sampled or found as neighbours."""
        self.targets, self.counted = targets, counted

    def _count_groups(self) -> int:
        """Return the number of classes for which the summary has separate sums.

        It is 0 if the targets are unknown (-1) or the sums would take too much memory.
        """
        n = int(self.targets.max(initial=-1)) + 1 if self.targets.dtype.kind in "iu" else 0
        return n if can_count_groups(n, self.n_features) else 0

    def prefetch(self, batches: Sequence[Pairs]) -> None:
        """Do nothing: all rows can be read at any time."""

    def sample(self, quota: Array, seed: int) -> Sample:
        return draw_sample(self.targets, self.counted, quota, seed)


def checksum(arrays: Iterable[Array]) -> bytes:
    """Return the CRC-32 checksum of some arrays."""
    crc = 0
    for x in arrays:
        crc = zlib.crc32(np.ascontiguousarray(x).tobytes(), crc)
    return crc.to_bytes(4, "little")


def draw_sample(targets: Array, counted: Array | None, quota: Array, seed: int) -> Sample:
    """Return the rows with the smallest random keys: quota[0] of all rows, or quota[c] of the rows of each class c."""
    ids = np.arange(len(targets)) if counted is None else np.flatnonzero(counted)
    parts = (Sample.draw(ids[a:b], targets[ids[a:b]], quota, seed) for a, b in spans(len(ids), 2**20))
    return reduce(lambda x, y: x.merge(y, quota), parts, Sample.zero())
