"""Inventories for intersphinx, which links names in our pages to the documentation of other libraries.

Each inventory has only the names that our pages use, so that the site can be built offline. Set the environment
variable BELIEF_DOCS_ONLINE to use the complete inventories that the libraries publish.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="inventories-"))
SITES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "pandas": "https://pandas.pydata.org/docs",
    "matplotlib": "https://matplotlib.org/stable",
}
NAMES = {  # the page of each name; names that are not classes are followed by their role, and $ stands for the name
    "python": {
        "bltin-boolean-values std:label": "library/stdtypes.html#$",
        **dict.fromkeys((f"{term} std:term" for term in ("iterable", "mapping", "sequence")), "glossary.html#term-$"),
        **dict.fromkeys(("bool", "float", "int"), "library/functions.html#$"),
        **dict.fromkeys(("dict", "list", "set", "str", "tuple"), "library/stdtypes.html#$"),
    },
    "numpy": {
        "array_like std:term": "glossary.html#term-$",
        "numpy.ndarray": "reference/generated/numpy.ndarray.html#$",
        "numpy.random.Generator": "reference/random/generator.html#$",
        "numpy.random.RandomState": "reference/random/legacy.html#$",
    },
    "pandas": {"pandas.DataFrame": "reference/api/pandas.DataFrame.html#$"},
    "matplotlib": {"matplotlib.axes.Axes": "api/_as_gen/matplotlib.axes.Axes.html#$"},
}


def write(library: str) -> str:
    """Write the inventory of a library, and return its path."""
    lines = [f"{name if ' ' in name else f'{name} py:class'} 1 {page} -\n" for name, page in NAMES[library].items()]
    head = [
        "# Sphinx inventory version 2",
        f"# Project: {library}",
        "# Version: ",
        "# The rest is compressed with zlib.",
    ]
    file = FOLDER / f"{library}.inv"
    file.write_bytes("".join(f"{line}\n" for line in head).encode() + zlib.compress("".join(lines).encode()))
    return str(file)
