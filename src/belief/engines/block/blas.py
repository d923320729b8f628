"""BLAS starts no threads while a search runs: our own threads make the calls, and the two would fight for the cores.

How many threads BLAS may start is one number for the whole process in some libraries (OpenBLAS with threads of its
own), and one for each thread in others (MKL, OpenBLAS with OpenMP). So each of our threads says it for itself, and
where the number is everybody's, the first search to begin sets it and the last one to end puts it back, whichever
threads they run in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class _Shared:
    """The searches of this process that run now, and the threads that BLAS had before the first of them."""

    lock = Lock()
    running = 0
    before: tuple[tuple[Any, int], ...] = ()


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of this process: looking for them takes longer than a small block does."""
    return [x for x in ThreadpoolController().lib_controllers if x.user_api == "blas"]


def _is_shared(library: Any) -> bool:
    return library.internal_api == "openblas" and library.threading_layer != "openmp"


def _set(library: Any, n: int) -> None:
    """Set it even if another thread was the first to: threadpoolctl would let only that one, without a word."""
    clear = getattr(library, "clear_controlling_thread", None)  # new in threadpoolctl 3.8
    if clear is not None:
        clear(force=True)
    library.set_num_threads(n)
    if clear is not None:
        clear(force=True)


def one_thread_here() -> None:
    """See to it that the calls of this thread start no others."""
    for library in _libraries():
        if not _is_shared(library):
            _set(library, 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """See to it that BLAS starts no threads until this ends, here and in threads that call `one_thread_here`."""
    mine = [(library, library.num_threads) for library in _libraries() if not _is_shared(library)]
    one_thread_here()
    _enter()
    try:
        yield
    finally:
        _leave()
        for library, n in mine:
            _set(library, n)


def _enter() -> None:
    with _Shared.lock:
        if not _Shared.running:
            _Shared.before = tuple((library, library.num_threads) for library in _libraries() if _is_shared(library))
        _Shared.running += 1
        for library, _ in _Shared.before:
            _set(library, 1)


def _leave() -> None:
    with _Shared.lock:
        _Shared.running -= 1
        if not _Shared.running:
            _restore()


def _restore() -> None:
    """Put back what was before, unless somebody has set something else since."""
    for library, n in _Shared.before:
        if library.num_threads == 1:
            _set(library, n)


def _begin_anew() -> None:
    """In the child of a fork none of the parent's searches runs, whoever held the lock."""
    _Shared.lock = Lock()
    if _Shared.running:
        _Shared.running = 0
        _restore()


os.register_at_fork(after_in_child=_begin_anew)
