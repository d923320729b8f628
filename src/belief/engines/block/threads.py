"""The base class of engines with a thread pool, and functions that engines share."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, reduce
from math import prod
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from belief._utils.lazy import importing
from belief.engines.block.blas import limit_blas, limit_blas_in_this_thread
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.design import Design
from belief.method.sampling import Sample
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
        return self._start().submit(task, *arguments)

    def _start(self) -> ThreadPoolExecutor:
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self._n, initializer=limit_blas_in_this_thread)
            return self._pool

    def shutdown(self) -> None:
        """Stop the threads. Tasks that have not started are cancelled, for example after Ctrl-C."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class Buffers(local):
    """Uninitialised arrays, which each thread reuses."""

    def get(self, name: str, *shape: int, dtype: Any = np.float32) -> Array:
        held, size = self.__dict__.get(name), prod(shape)
        if held is None or len(held) < size:
            held = self.__dict__[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)


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
        return self.resources.threads

    def weigh(self, rows: Array, sampled: Array) -> Array:
        return np.ones(len(rows))

    def local_search(self) -> ProbeSearch:
        with importing():
            from belief.engines.probe import ProbeSearch

        assert self.pool is not None
        return ProbeSearch(self.pool, self.report)

    def __enter__(self) -> Self:
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
