"""Which Python the workers run, and a sentence where it lacks this package, or is not like the driver's.

Where the workers cannot load what they are sent, they are asked by a function that goes to them by value and needs
nothing but Python.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module, metadata
from typing import Any

from belief._utils.warnings import warn

LACKING = re.compile(
    r"^(?:ModuleNotFoundError: No module named|ImportError: cannot import name) '([\w.]+)'", re.MULTILINE
)
NEEDED = ("belief", "numpy", "scipy", "numba", "llvmlite", "pyarrow")
CANNOT_LOAD = re.compile(r"^AttributeError: Can't get attribute '\w+' on <module '(belief\.[\w.]+)'", re.MULTILINE)
WAYS_OUT = (
    "set PYSPARK_PYTHON to a Python that has belief-fs on every worker before the session starts, or send an"
    " environment with spark.archives=belief.tar.gz#environment, or install belief-fs[spark] into the workers' Python;"
    " all three are in docs/spark.md"
)


def interpreter() -> dict[str, str]:
    """Where Python is, and the versions that matter; those of packages that are not there are left out."""
    known = {"executable": sys.executable, "Python": ".".join(map(str, sys.version_info[:2]))}
    for name in ("belief-fs", "numpy"):
        with suppress(metadata.PackageNotFoundError):
            known[name] = metadata.version(name)
    return known


@cache
def versions() -> dict[str, str]:
    """The same, looked up once in a process."""
    return interpreter()


def _here() -> dict[str, str]:
    """The driver's."""
    return versions()


def warn_of_differences(workers: Iterable[dict[str, str]]) -> None:
    """Warn where a worker has other versions than the driver."""
    here = _here()
    for there in workers:
        other = [name for name in here if name != "executable" and there.get(name, here[name]) != here[name]]
        if other:
            said = ", ".join(f"{name} {there[name]} and not {here[name]}" for name in other)
            warn(
                f"The workers' Python, {there['executable']}, has {said} as the driver: the answer may differ, or a"
                " job fail; install the same versions on both sides."
            )
            return


def explained(spark: Any, said: str) -> str | None:
    """A sentence for an error of the workers that comes of their Python; None where it does not."""
    found = LACKING.search(said) or CANNOT_LOAD.search(said)
    if found is None or found[1].split(".")[0] not in NEEDED:  # a function of the user's may need others
        return None
    there, here = _asked(spark), _here()
    which = f"The workers' Python, {there['executable']}"
    if "belief-fs" in there and found[1].startswith("belief"):
        return (
            f"{which}, has belief-fs {there['belief-fs']}, which lacks {found[1]}, and the driver has"
            f" {here.get('belief-fs', 'another')}: install the same version on both sides."
        )
    return f"{which}, has no module {found[1].split('.')[0]!r}: {WAYS_OUT}."


def _asked(spark: Any) -> dict[str, str]:
    """What a worker says of itself; what it is called where it cannot even say that."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import udf

    module = import_module(__name__)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        ask = udf(lambda: interpreter(), "map<string,string>", useArrow=False)  # nor pyarrow
        return dict(spark.range(1).select(ask.asNondeterministic()().alias("it")).collect()[0].it)
    except Exception:
        return {"executable": str(getattr(getattr(spark, "_sc", None), "pythonExec", "of unknown place"))}
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
