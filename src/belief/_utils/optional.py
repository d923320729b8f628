"""Libraries that few users need: how they are imported, and what is said where one is missing."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["MissingExtraError"]

NAME = "belief-fs"
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
    >>> issubclass(belief.MissingExtraError, ImportError)
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
        message = f"{NEEDED_FOR[extra]} {library}, which is not installed: {installs(extra, library)}."
        raise MissingExtraError(message, name=library) from None


def installs(extra: str, library: str) -> str:
    """The line that installs an extra as this package itself was installed: by what, and from where."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(NAME)
    except PackageNotFoundError:
        return _from_tree(extra) or f"pip install {library}"
    tool = (found.read_text("INSTALLER") or "pip").strip()
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    named = [r for r in found.requires or () if re.search(rf"extra\s*==\s*['\"]{extra}['\"]", r)]
    libraries = " ".join(repr(r.partition(";")[0].strip()) for r in named) or library
    what = _from_origin(extra, origin) if tool != "conda" else None  # pip would install this package once more
    return f"{'uv pip' if tool == 'uv' else 'pip'} install {what or libraries}"


def _from_origin(extra: str, origin: dict[str, Any]) -> str | None:
    """What is installed, with an extra: from an index by its name, from elsewhere by that; None where it is gone."""
    url, wanted = origin.get("url"), f"{NAME}[{extra}]"
    if url is None:
        return f"'{wanted}'"
    if "vcs_info" in origin:
        return f"'{wanted} @ {origin['vcs_info']['vcs']}+{url}'"
    path = Path(unquote(urlsplit(url).path))
    if url.startswith("file:") and not path.exists():
        return None
    if "dir_info" not in origin:
        return f"'{wanted} @ {url}'"
    return f"{'-e ' * bool(origin['dir_info'].get('editable'))}'{path}[{extra}]'"


def _from_tree(extra: str) -> str | None:
    """Of a source tree that is used as it is."""
    tree = Path(__file__).parents[3]
    return f"pip install '{tree}[{extra}]'" if (tree / "pyproject.toml").exists() else None
