"""Limit BLAS to one thread during a search: the engine calls it from its own threads, and more would compete for cores.

Some libraries (OpenBLAS with pthreads) have one limit for the whole process, others (MKL, OpenBLAS with OpenMP) have
one limit for each thread. So each thread of an engine sets its own limit. The limit of the whole process is set when
the first search begins, and restored when the last search ends. Searches may run in different threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

from belief._utils.system import register_at_fork


class _Running:
    """The number of searches that run in this process, and the BLAS limits that were set before the first of them."""

    lock = Lock()
    searches = 0
    limits: tuple[tuple[Any, int], ...] = ()


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of this process.

    They are cached, because finding them takes longer than searching a small block.
    """
    return [x for x in ThreadpoolController().lib_controllers if x.user_api == "blas"]


def _has_process_limit(library: Any) -> bool:
    return library.internal_api == "openblas" and library.threading_layer != "openmp"


def _set_limit(library: Any, n: int) -> None:
    """Limit a BLAS library to n threads. This works in every thread.

    threadpoolctl by itself ignores calls from any thread other than the first one that called it.
    """
    clear = getattr(library, "clear_controlling_thread", None)  # since threadpoolctl 3.8
    if clear is not None:
        clear(force=True)
    library.set_num_threads(n)
    if clear is not None:
        clear(force=True)


def limit_blas_in_this_thread() -> None:
    """Limit the BLAS calls that this thread makes to one thread."""
    for library in _libraries():
        if not _has_process_limit(library):
            _set_limit(library, 1)


@contextmanager
def limit_blas() -> Iterator[None]:
    """Limit BLAS to one thread within this context.

    The limit applies to this thread and to threads that call `limit_blas_in_this_thread`.
    """
    before = [(library, library.num_threads) for library in _libraries() if not _has_process_limit(library)]
    limit_blas_in_this_thread()
    with _Running.lock:
        if not _Running.searches:
            shared = (library for library in _libraries() if _has_process_limit(library))
            _Running.limits = tuple((library, library.num_threads) for library in shared)
        _Running.searches += 1
        for library, _ in _Running.limits:
            _set_limit(library, 1)
    try:
        yield
    finally:
        with _Running.lock:
            _Running.searches -= 1
            if not _Running.searches:
                _restore()
        for library, n in before:
            _set_limit(library, n)


def _restore() -> None:
    """Restore the limits of BLAS, unless other code has changed them in the meantime."""
    for library, n in _Running.limits:
        if library.num_threads == 1:
            _set_limit(library, n)


def _reset_after_fork() -> None:
    """Reset the state in the child of a fork, where no search runs and the lock is free."""
    _Running.lock = Lock()
    if _Running.searches:
        _Running.searches = 0
        _restore()


register_at_fork(after_in_child=_reset_after_fork)
