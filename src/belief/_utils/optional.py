"""Imports of optional dependencies. If a dependency is missing, the error message contains the install command."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

__all__ = ["MissingExtraError"]

DISTRIBUTION = "belief-fs"
PURPOSES = {
    "anndata": "AnnData files need",
    "files": "Tables in files need",
    "gpu": "A GPU needs",
    "remote": "Files on other machines need",
    "report": "Pictures and reports need",
    "spark": "Spark needs",
}


class MissingExtraError(ModuleNotFoundError, ValueError):
    """An optional dependency is not installed; the message contains the install command.

    The error is also a ValueError, so that the command line prints its message without a traceback.

    Examples
    --------
    >>> import belief
    >>> issubclass(belief.MissingExtraError, ImportError)
    True
    """


def import_optional(name: str, extra: str) -> Any:
    """Import a module of an optional dependency; raise a MissingExtraError if the dependency is not installed.

    Parameters
    ----------
    name : the module, such as "pyarrow.csv"
    extra : the extra of this package that installs the dependency, such as "files"
    """
    library = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise  # the library is installed, but one of its dependencies is not
        message = f"{PURPOSES[extra]} {library}, which is not installed: {install_command(extra, library)}."
        raise MissingExtraError(message, name=library) from None


def install_command(extra: str, library: str) -> str:
    """Return the command that installs the libraries of an extra. It uses uv if uv installed this package, else pip."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        package = distribution(DISTRIBUTION)
    except PackageNotFoundError:  # the package is imported from a source tree and not installed
        return f"pip install {library}"
    of_extra = re.compile(rf"extra\s*==\s*['\"]{extra}['\"]")
    requirements = [r.partition(";")[0].strip() for r in package.requires or () if of_extra.search(r)]
    tool = "uv pip" if (package.read_text("INSTALLER") or "").strip() == "uv" else "pip"
    return f"{tool} install {' '.join(map(repr, requirements)) or library}"
