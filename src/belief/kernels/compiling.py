"""The `@kernel()` decorator: numba's `njit`, made safe for forks, with a cache on disk that never makes a run fail.

If the cache cannot be written or read, as in a read-only container, on a full disk or after a crash, the kernel is
compiled again, and the user is warned once. A fork waits until no kernel is being compiled. Otherwise, the child
process would wait forever for the compiling thread, which exists in the parent only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from belief._utils.system import register_at_fork
from belief._utils.warnings import warn

NOT_SAVED = (
    "The compiled kernels cannot be saved {}, so every process compiles them again, which takes some seconds. Set"
    " NUMBA_CACHE_DIR to a writable folder."
)
NOT_READ = (
    "The compiled kernels cannot be read {} and are compiled again, which takes some seconds. If this warning returns,"
    " set NUMBA_CACHE_DIR to another folder."
)
_warned: list[str] = []


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function on its first call and caches the code on disk.

    The compiled code runs without the GIL.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = njit(nogil=True, **options)(function)
        if not hasattr(compiled, "enable_caching"):  # NUMBA_DISABLE_JIT
            return compiled
        try:
            compiled.enable_caching()
            compiled._cache = _TolerantCache(compiled._cache)
        except (RuntimeError, OSError):
            _warn_once(NOT_SAVED.format("because no folder is writable"))
        return compiled

    return decorate


class _TolerantCache:
    """A wrapper of a numba cache. If the cache fails, it warns instead of raising, and numba compiles the kernel."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *args: Any) -> Any:
        """Return the cached code; None if these arguments have none, or the cache cannot be read.

        A cache that cannot be read is deleted, with a warning.
        """
        try:
            return self._cache.load_overload(*args)
        except Exception as error:  # pickle may raise any exception for damaged files
            _warn_once(NOT_READ.format(self._describe(error)))
        try:
            self._cache.flush()
        except OSError:
            self._cache.disable()

    def save_overload(self, *args: Any) -> None:
        try:
            self._cache.save_overload(*args)
        except Exception as error:
            _warn_once(NOT_SAVED.format(self._describe(error)))

    def _describe(self, error: Exception) -> str:
        return f"in {self._cache.cache_path} ({getattr(error, 'strerror', None) or type(error).__name__})"


def _warn_once(message: str) -> None:
    """Issue this warning, unless this process has already issued a warning about the cache."""
    if not _warned:
        _warned.append(message)
        warn(message)


# this is numba's own lock; it is reentrant, so a thread that compiles may fork
register_at_fork(
    before=global_compiler_lock.acquire,
    after_in_parent=global_compiler_lock.release,
    after_in_child=global_compiler_lock.release,
)
