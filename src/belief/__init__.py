"""BELIEF: distance-based, redundancy-proof feature selection.

>>> import belief
>>> result = belief.select(X, y, 10)  # doctest: +SKIP
>>> print(result.explain())  # doctest: +SKIP
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belief.api import select
    from belief.result import Result
    from belief.selector import BeliefSelector

__all__ = ["BeliefSelector", "Result", "__version__", "select"]

try:
    __version__ = version("belief-fs")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0.0.0"

_HOMES = {"BeliefSelector": "belief.selector", "Result": "belief.result", "select": "belief.api"}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: `import belief` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'belief' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
