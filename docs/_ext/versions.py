"""List the versions of the site for the version switcher: all versions with a git tag, and the one being built.

On a web server, each version has a folder, such as /0.2.0/. Copy the versions.json of the newest build next to these
folders, so that the pages of older versions list newer ones. A site that is opened from disk, or that has only one
version, does not need this file.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any


def list_versions(current: str) -> list[dict[str, str]]:
    """Return the name of each version, and its address relative to the folder of all versions; the newest is first."""
    command = ["git", "-C", str(Path(__file__).parent), "tag", "--list", "v*"]
    try:
        tags = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    except OSError:  # git is not installed
        tags = []
    names = {current, *(tag[1:] for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag))}
    newest_first = sorted(names, key=lambda name: [int(x) for x in re.findall(r"\d+", name)], reverse=True)
    return [{"version": name, "url": f"{name}/index.html"} for name in newest_first]


def write_list(app: Any, error: Exception | None) -> None:
    """Write versions.json to the folder of the built site."""
    if error is None and app.builder.format == "html":
        listed = json.dumps(app.config.html_context["versions"], indent=1)
        Path(app.outdir, "versions.json").write_text(f"{listed}\n", encoding="utf-8")
