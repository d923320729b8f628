"""Files on other machines, given by URLs.

pyarrow reads s3://, gs:// and abfs:// if it includes their filesystems, the standard library http:// and https://, and
fsspec all others.

Parquet and Arrow files are read in place, in batches. Files of other formats are first copied to a temporary folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatch
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from belief._utils.optional import import_optional
from belief.data.arrow import pyarrow
from belief.data.files import IGNORED_PREFIXES, detect_format
from belief.data.relations import Relation, open_dataset

OF_PYARROW = ("s3", "gs", "gcs", "abfs", "abfss")
WEB = ("http", "https")
WILDCARDS = "*?["


def is_remote(path: Any) -> bool:
    """Return True if a path is a string with a URL. A `Path` is always a local file."""
    return isinstance(path, str) and "://" in path


def expand_wildcards(path: str | os.PathLike[str]) -> list[Path]:
    """Return the local files that match a pattern; return a path itself if it exists or has no wildcards."""
    text = os.fspath(path)
    if not any(c in text for c in WILDCARDS) or os.path.exists(text):
        return [Path(text)]
    found = [Path(each) for each in sorted(glob(text, recursive=True))]
    if not found:
        raise FileNotFoundError(f"{text}: no file matches this pattern.")
    return found


class RemoteFiles:
    """The files of some URLs on one filesystem. A URL may refer to a file, a folder or a pattern with wildcards.

    Attributes
    ----------
    kind : the format, such as "parquet"
    paths : the paths of the files on the filesystem; for the web, their URLs
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = list(urls)
        self.filesystem: Any = None  # None for files on the web
        self.paths: list[str] = []
        self._root: str | None = None  # the folder, if the URL is a folder; its files may be partitioned
        for url in urls:
            try:
                self._find(url)
            except (OSError, pyarrow().ArrowException) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                raise ValueError(f"{hide_secrets(url)}: could not be read: {_one_line(error)}") from None
        kinds = {detect_format(Path(urlsplit(path).path if "://" in path else path)) for path in self.paths}
        if len(kinds) > 1:
            found = ", ".join(sorted(kinds))
            raise ValueError(f"All files must have the same format; got {found}. Read each format separately.")
        self.kind = kinds.pop()

    def _find(self, url: str) -> None:
        scheme = url.partition("://")[0].lower()
        if scheme in WEB:
            self.paths.append(url)
            return
        fs = import_optional("pyarrow.fs", "files")
        self.filesystem, path = None, ""
        if scheme in OF_PYARROW:
            with suppress(pyarrow().ArrowNotImplementedError):  # builds of pyarrow may not include the filesystem
                self.filesystem, path = fs.FileSystem.from_uri(url)
        if self.filesystem is None:
            fsspec = import_optional("fsspec", "remote")
            try:
                filesystem, path = fsspec.core.url_to_fs(url)
            except ImportError as error:
                raise ValueError(f"{scheme}:// needs a package that is not installed: {_one_line(error)}") from None
            except ValueError as error:
                raise ValueError(f"{hide_secrets(url)} cannot be read: {_one_line(error)}") from None
            self.filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        if any(c in path for c in WILDCARDS):
            parts = path.split("/")
            base = "/".join(parts[: next(i for i, part in enumerate(parts) if any(c in part for c in WILDCARDS))])
            found = [each for each in self._list(base) if fnmatch(each, path)]
            if not found:
                raise FileNotFoundError(f"{hide_secrets(url)}: no file matches this pattern.")
        else:
            info = self.filesystem.get_file_info(path)
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(f"{hide_secrets(url)}: there is no such file or folder.")
            found = [path]
            if info.type == fs.FileType.Directory:
                found, self._root = self._list(path), path
                if not found:
                    raise ValueError(
                        f"{hide_secrets(url)}: the folder has no data files. Names that begin with _ or . are ignored."
                    )
        self.paths += found

    def _list(self, folder: str) -> list[str]:
        """Return the sorted paths of the files in a folder and its subfolders."""
        fs = import_optional("pyarrow.fs", "files")
        selector = fs.FileSelector(folder, recursive=True)
        files = (info.path for info in self.filesystem.get_file_info(selector) if info.type == fs.FileType.File)
        return sorted(p for p in files if not PurePosixPath(p).name.startswith(IGNORED_PREFIXES))

    def open(self) -> Relation | None:
        """Return a Relation that reads the files in place if they are Parquet or Arrow files; otherwise None."""
        if self.kind not in ("parquet", "arrow") or self.filesystem is None:
            return None
        dataset = import_optional("pyarrow.dataset", "files")
        data = dataset.dataset(
            self.paths,
            filesystem=self.filesystem,
            format={"arrow": "ipc"}.get(self.kind, self.kind),
            partitioning="hive" if self._root else None,
            partition_base_dir=self._root,
        )
        relation = open_dataset(data)
        relation.first = hide_secrets(self._urls[0])
        return relation

    def copy(self) -> tuple[list[Path], Path]:
        """Copy the files to a temporary folder; return the paths of the copies, and the folder."""
        folder, files = Path(tempfile.mkdtemp(prefix="belief-")), []
        try:
            for i, path in enumerate(self.paths):
                name = PurePosixPath(urlsplit(path).path if "://" in path else path).name
                files.append(folder / str(i) / name)
                files[-1].parent.mkdir()
                source = urlopen(path) if "://" in path else self.filesystem.open_input_stream(path)
                with source, files[-1].open("wb") as target:
                    shutil.copyfileobj(source, target, 2**20)
        except (OSError, URLError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise ValueError(f"{hide_secrets(self._urls[0])}: could not be copied: {_one_line(error)}") from None
        return files, folder


def hide_secrets(url: str) -> str:
    """Return a URL without user, password and query, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") + "."
