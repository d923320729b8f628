"""Check a release before it is published: its version numbers, and the files in its wheel and sdist.

    python release/check.py dist [--tag v0.2.0]

`make release-check` builds the wheel and the sdist, runs this program, and then runs the tests of the unpacked sdist.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

HOME = Path(__file__).parents[1]
MAX_WHEEL_BYTES = 1_000_000
NOT_SHIPPED = (".ci/", ".github/")  # for continuous integration; users do not need them


def version() -> str:
    """Return the version of the package. It is read from src/belief/__init__.py."""
    return re.findall(r'^__version__ = "([^"]+)"', (HOME / "src/belief/__init__.py").read_text(), re.M)[0]


def project() -> dict[str, object]:
    """Return the table [project] of pyproject.toml."""
    return tomllib.loads((HOME / "pyproject.toml").read_text())["project"]


def tracked() -> set[str]:
    """Return the files that git tracks. Without a git repository, return all files except those in __pycache__."""
    if not (HOME / ".git").exists():
        return {p.relative_to(HOME).as_posix() for p in HOME.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    listed = subprocess.run(["git", "ls-files"], cwd=HOME, capture_output=True, text=True, check=True).stdout
    return set(listed.splitlines())


def wrong_versions(tag: str = "") -> list[str]:
    """Return a message for each place where the version differs from that of the package.

    With a tag, also check the version in the tag, the section in the changelog, and the URLs of the project.
    """
    ours, wrong = version(), []
    recipe = (HOME / "recipe/meta.yaml").read_text()
    if f'{{% set version = "{ours}" %}}' not in recipe:
        wrong.append(f"recipe/meta.yaml does not set version {ours!r}")
    if tag and tag != f"v{ours}":
        wrong.append(f"the tag is {tag!r}, but the version is {ours!r}: expected 'v{ours}'")
    if tag and f"## [{ours}]" not in (HOME / "CHANGELOG.md").read_text():
        wrong.append(f"CHANGELOG.md has no section '## [{ours}]'. Move the entries of 'Unreleased' to this section.")
    if tag and not {"Homepage", "Repository"} <= set(project()["urls"]):  # type: ignore[call-overload]
        wrong.append("pyproject.toml: [project.urls] needs Homepage and Repository before a release")
    return wrong


def wrong_in_wheel(path: Path) -> list[str]:
    """Return a message for each file that a wheel lacks or should not have, and one if the wheel is too large."""
    with zipfile.ZipFile(path) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        about = {PurePosixPath(name).name for name in wheel.namelist() if ".dist-info/" in name}
    ours = {name.removeprefix("src/") for name in tracked() if name.startswith("src/")}
    size = path.stat().st_size
    large = [f"the wheel has {size:,} bytes, more than {MAX_WHEEL_BYTES:,}"] if size > MAX_WHEEL_BYTES else []
    lacking = [f"the wheel lacks {name}" for name in sorted(ours - held)]
    lacking += [f"the wheel lacks its {name}" for name in sorted({"METADATA", "LICENSE", "entry_points.txt"} - about)]
    return large + lacking + [f"the wheel should not have {name}" for name in sorted(held - ours)]


def wrong_in_sdist(path: Path) -> list[str]:
    """Return a message for each file that an sdist lacks or should not have."""
    with tarfile.open(path) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    ours = {name for name in tracked() if not name.startswith(NOT_SHIPPED)}
    lacking = [f"the sdist lacks {name}" for name in sorted(ours - held)]
    return lacking + [f"the sdist should not have {name}" for name in sorted(held - ours - {"PKG-INFO"})]


def main() -> int:
    """Print all problems; return the exit status, which is 1 if there are any and 0 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder with one wheel and one sdist")
    parser.add_argument("--tag", default="", help="git tag of the release, such as v0.2.0")
    options = parser.parse_args()
    (wheel,), (sdist,) = sorted(options.dist.glob("*.whl")), sorted(options.dist.glob("*.tar.gz"))
    wrong = wrong_versions(options.tag) + wrong_in_wheel(wheel) + wrong_in_sdist(sdist)
    print(*wrong, f"{wheel.name} and {sdist.name}: {len(wrong)} things are wrong", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
