"""How kernels are compiled: `@kernel()`, which is numba's `njit` with what a library needs beside it.

What was compiled is kept on disk. Where it cannot be kept or read, in a container that may write nothing, on a full
disk, after a crash, the kernel is compiled all the same and the user is told once what would help. And a fork waits
until no kernel is being compiled: its child would wait for ever for the thread that does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from belief._utils.warnings import warn

NOT_KEPT = (
    "The compiled kernels cannot be kept {}: every process compiles its own, which takes some seconds; set"
    " NUMBA_CACHE_DIR to a folder that can be written."
)
NOT_READ = (
    "The compiled kernels cannot be read {} and are compiled again, which takes some seconds: if this comes back, set"
    " NUMBA_CACHE_DIR to another folder."
)
_told: list[str] = []


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, without Python's lock, and keep what was compiled."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = njit(nogil=True, **options)(function)
        if not hasattr(compiled, "enable_caching"):  # NUMBA_DISABLE_JIT
            return compiled
        try:
            compiled.enable_caching()
            compiled._cache = _Lenient(compiled._cache)
        except (RuntimeError, OSError):
            _tell(NOT_KEPT.format("anywhere: no folder can be written"))
        return compiled

    return decorate


class _Lenient:
    """A cache of numba's whose failures cost time, and nothing else."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *what: Any) -> Any:
        """What was kept, or None; what cannot be read is forgotten."""
        try:
            return self._cache.load_overload(*what)
        except Exception as error:  # whatever the bytes of another make pickle do
            _tell(NOT_READ.format(self._where(error)))
        try:
            self._cache.flush()
        except OSError:
            self._cache.disable()

    def save_overload(self, *what: Any) -> None:
        """Keep it, if that is possible."""
        try:
            self._cache.save_overload(*what)
        except Exception as error:
            _tell(NOT_KEPT.format(self._where(error)))

    def _where(self, error: Exception) -> str:
        return f"in {self._cache.cache_path} ({getattr(error, 'strerror', None) or type(error).__name__})"


def _tell(what: str) -> None:
    """Warn, once in a process."""
    if not _told:
        _told.append(what)
        warn(what)


# the lock is numba's own, and reentrant: a thread that compiles may fork
os.register_at_fork(
    before=global_compiler_lock.acquire,
    after_in_parent=global_compiler_lock.release,
    after_in_child=global_compiler_lock.release,
)
