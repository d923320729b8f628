"""Imports of public names on first use, so that `import belief` is fast and needs no optional dependency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Condition, get_ident
from typing import Any

from belief._utils.system import register_at_fork

MAX_WAITING_SECONDS = 30.0  # the longest time that a fork waits for running imports

_changed = Condition()
_importing: list[int] = []  # identifiers of the importing threads


@contextmanager
def importing() -> Iterator[None]:
    """Mark that this thread is importing a module.

    Forks wait until the import has finished, because a half-imported module would break the child process.
    """
    thread = get_ident()
    with _changed:
        _importing.append(thread)
    try:
        yield
    finally:
        with _changed:
            _importing.remove(thread)
            _changed.notify_all()


def _before_fork() -> None:
    _changed.acquire()
    _changed.wait_for(lambda: set(_importing) <= {get_ident()}, MAX_WAITING_SECONDS)


register_at_fork(before=_before_fork, after_in_parent=_changed.release, after_in_child=_changed.release)


def make_lazy_getattr(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `modules` maps each public name to the module that defines it."""

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with importing():
            module = import_module(modules[name])
        return module if modules[name] == f"{package}.{name}" else getattr(module, name)

    return get
