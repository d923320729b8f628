"""Public names that are imported when they are first used: to import the package is quick, and needs no extra."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Condition, get_ident
from typing import Any

LONGEST = 30.0  # seconds that a fork waits

_changed = Condition()
_importing: list[int] = []  # the threads that do


@contextmanager
def importing() -> Iterator[None]:
    """Import something late. A fork waits for it: in its child nobody would finish what another thread has begun."""
    me = get_ident()
    with _changed:
        _importing.append(me)
    try:
        yield
    finally:
        with _changed:
            _importing.remove(me)
            _changed.notify_all()


def _before_fork() -> None:
    _changed.acquire()
    _changed.wait_for(lambda: set(_importing) <= {get_ident()}, LONGEST)


os.register_at_fork(before=_before_fork, after_in_parent=_changed.release, after_in_child=_changed.release)


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package, from the module in which each name is; a module's own is itself."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with importing():
            home = import_module(homes[name])
        return home if homes[name] == f"{package}.{name}" else getattr(home, name)

    return get
