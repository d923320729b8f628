"""Input data: tables in memory, files and streams, read as rows of numbers with a target and feature names.

Code that reads a format, parses the target or chooses columns belongs here. It may import `method`, `kernels` and
`_utils`, but nothing that runs the method. The public names, in `__all__`, open files.
"""

from typing import TYPE_CHECKING

from belief._utils.lazy import make_lazy_getattr

if TYPE_CHECKING:
    from belief.data.columns import ColumnSelection
    from belief.data.libsvm import load_libsvm
    from belief.data.stream import open_files

__all__ = ["ColumnSelection", "load_libsvm", "open_files"]

__getattr__ = make_lazy_getattr(
    __name__,
    {
        "ColumnSelection": "belief.data.columns",
        "load_libsvm": "belief.data.libsvm",
        "open_files": "belief.data.stream",
    },
)
