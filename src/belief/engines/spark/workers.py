"""Checks of the Python environment of Spark's workers: missing packages, and other versions than on the driver.

A worker may be unable to import this package. So the driver sends it a function, pickled by value, that needs only
Python and returns what is installed.
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

MISSING_MODULE = re.compile(
    r"^(?:ModuleNotFoundError: No module named|ImportError: cannot import name) '([\w.]+)'", re.MULTILINE
)
MISSING_NAME = re.compile(r"^AttributeError: Can't get attribute '\w+' on <module '(belief\.[\w.]+)'", re.MULTILINE)
REQUIRED = (
    *("belief", "numpy", "scipy", "numba", "llvmlite", "pyarrow"),
    *("narwhals", "sklearn", "joblib", "threadpoolctl"),
)
SOLUTIONS = (
    "Set PYSPARK_PYTHON to a Python that has belief-fs on every worker before the session starts, or send an"
    " environment with spark.archives=belief.tar.gz#environment, or install belief-fs[spark] into the workers' Python"
    " (see docs/spark.md)."
)


def read_versions() -> dict[str, str]:
    """Return the path of Python, its version, and the versions of belief-fs and NumPy if they are installed."""
    known = {"executable": sys.executable, "Python": ".".join(map(str, sys.version_info[:2]))}
    for name in ("belief-fs", "numpy"):
        with suppress(metadata.PackageNotFoundError):
            known[name] = metadata.version(name)
    return known


@cache
def get_versions() -> dict[str, str]:
    """Return `read_versions()` for this process, computed only once."""
    return read_versions()


def warn_of_differences(workers: Iterable[dict[str, str]]) -> None:
    """Warn if the versions of Python, belief-fs or NumPy on a worker differ from those on the driver."""
    driver = get_versions()
    for worker in workers:
        names = [name for name in driver if name != "executable" and worker.get(name, driver[name]) != driver[name]]
        if names:
            differences = ", ".join(f"{name} {worker[name]} (driver: {driver[name]})" for name in names)
            warn(
                f"The versions on the workers, in {worker['executable']}, are not those on the driver: {differences}."
                " Results may differ, or jobs may fail. Install the same versions on both sides."
            )
            return


def explain_error(spark: Any, message: str) -> str | None:
    """Return an explanation of an error in the Python environment of the workers; None for other errors."""
    found = MISSING_MODULE.search(message) or MISSING_NAME.search(message)
    if found is None or found[1].split(".")[0] not in REQUIRED:  # a user's function may lack other modules
        return None
    worker, driver = _ask_worker(spark), get_versions()
    python = f"The workers' Python, {worker['executable']},"
    if "belief-fs" in worker and found[1].startswith("belief"):
        return (
            f"{python} has belief-fs {worker['belief-fs']} without {found[1]}; the driver has"
            f" {driver.get('belief-fs', 'another version')}. Install the same version on both sides."
        )
    return f"{python} has no module {found[1].split('.')[0]!r}. {SOLUTIONS}"


def _ask_worker(spark: Any) -> dict[str, str]:
    """Return the versions of Python and packages on a worker, or the path of its Python if a job there fails."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import udf

    module = import_module(__name__)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        ask = udf(lambda: read_versions(), "map<string,string>", useArrow=False)  # pyarrow may be missing
        return dict(spark.range(1).select(ask.asNondeterministic()().alias("versions")).collect()[0].versions)
    except Exception:
        return {"executable": str(getattr(getattr(spark, "_sc", None), "pythonExec", "in an unknown place"))}
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
