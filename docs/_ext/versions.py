"""The list of versions of the site, for the version switcher: all versions with a tag, and the one that is built.

A host keeps each version in a folder of its name, /0.2.0/, and versions.json of the newest build next to these folders,
where older sites find it. A site that is opened as files, or that has one version, needs none of that.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any


def list_versions(current: str) -> list[dict[str, str]]:
    """Return the name of each version and its address relative to the other versions, the newest first."""
    command = ["git", "-C", str(Path(__file__).parent), "tag", "--list", "v*"]
    try:
        tags = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    except OSError:  # no git
        tags = []
    names = {current, *(tag[1:] for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag))}
    newest_first = sorted(names, key=lambda name: [int(x) for x in re.findall(r"\d+", name)], reverse=True)
    return [{"version": name, "url": f"{name}/index.html"} for name in newest_first]


def write_list(app: Any, error: Exception | None) -> None:
    """Write versions.json into the site."""
    if error is None and app.builder.format == "html":
        listed = json.dumps(app.config.html_context["versions"], indent=1)
        Path(app.outdir, "versions.json").write_text(f"{listed}\n", encoding="utf-8")
