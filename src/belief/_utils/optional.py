"""Import optional dependencies, and tell how to install a missing one."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["MissingExtraError"]

DISTRIBUTION = "belief-fs"
PURPOSES = {
    "files": "Tables in files need",
    "gpu": "A GPU needs",
    "report": "Pictures and reports need",
    "spark": "Spark needs",
}


class MissingExtraError(ModuleNotFoundError, ValueError):
    """An optional dependency is not installed; the message has the command that installs it.

    It is also a ValueError, so that the command line prints it without a traceback.

    Examples
    --------
    >>> import belief
    >>> issubclass(belief.MissingExtraError, ImportError)
    True
    """


def import_optional(name: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Parameters
    ----------
    name : the module, such as "pyarrow.csv"
    extra : the extra of this package that installs it
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
    """Return the command that installs an extra, with the tool and from the source of this package."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return _install_from_tree(extra) or f"pip install {library}"
    tool = (found.read_text("INSTALLER") or "pip").strip()
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    requirements = [r for r in found.requires or () if re.search(rf"extra\s*==\s*['\"]{extra}['\"]", r)]
    libraries = " ".join(repr(r.partition(";")[0].strip()) for r in requirements) or library
    source = _describe_origin(extra, origin) if tool != "conda" else None
    return f"{'uv pip' if tool == 'uv' else 'pip'} install {source or libraries}"


def _describe_origin(extra: str, origin: dict[str, Any]) -> str | None:
    """Return the requirement with the extra: a name, URL or path; None if the source no longer exists."""
    url, wanted = origin.get("url"), f"{DISTRIBUTION}[{extra}]"
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


def _install_from_tree(extra: str) -> str | None:
    """Return the command for a source tree that is on the path but not installed."""
    tree = Path(__file__).parents[3]
    return f"pip install '{tree}[{extra}]'" if (tree / "pyproject.toml").exists() else None
