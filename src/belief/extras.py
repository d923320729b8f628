"""Libraries that few users need: how they are imported, and what is said where one is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["MissingExtraError"]

NEEDED_FOR = {
    "files": "Tables in files need",
    "gpu": "A GPU needs",
    "report": "Pictures and reports need",
    "spark": "Spark needs",
}


class MissingExtraError(ModuleNotFoundError, ValueError):
    """A library that is an extra of this package is not installed; the message has the line that installs it.

    It is a ValueError too: what was asked for cannot be done here, and the command line says so in one line.

    Examples
    --------
    >>> import belief
    >>> issubclass(belief.extras.MissingExtraError, ImportError)
    True
    """


def import_optional(name: str, extra: str) -> Any:
    """Import a library, or a module of one, that is not always installed.

    Parameters
    ----------
    name : the module, "pyarrow.csv" for one
    extra : the extra of this package that brings it
    """
    library = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise  # it is there, but something that it needs is not
        message = f"{NEEDED_FOR[extra]} {library}, which is not installed: pip install 'belief-fs[{extra}]'."
        raise MissingExtraError(message, name=library) from None
