"""Input data: tables in memory, files and streams, read as rows of numbers with a target and names.

Modules that read a format, parse the target or choose columns belong here. They may import `method`, `kernels` and
`_utils`, and nothing that runs the method. The names in `__all__` are public; they open files.
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
