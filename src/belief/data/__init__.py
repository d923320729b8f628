"""What a user has becomes rows of numbers by global id; public is what opens files."""

from typing import TYPE_CHECKING

from belief._utils.lazy import lazily

if TYPE_CHECKING:
    from belief.data.encoding import CsvForm
    from belief.data.files import Wanted, open_files
    from belief.data.libsvm import load_libsvm

__all__ = ["CsvForm", "Wanted", "load_libsvm", "open_files"]

__getattr__ = lazily(
    __name__,
    {
        "CsvForm": "belief.data.encoding",
        "Wanted": "belief.data.files",
        "load_libsvm": "belief.data.libsvm",
        "open_files": "belief.data.files",
    },
)
