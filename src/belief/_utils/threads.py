"""How many threads: `n_jobs` as joblib and scikit-learn understand it.

The threads of a search are like those of BLAS or of scikit-learn's OpenMP loops: they share the data, so None takes all
cores that are there for this process. It takes fewer where somebody has said so: a joblib context, OMP_NUM_THREADS
(which joblib sets in its worker processes to their share of the cores); and in any other worker of joblib it takes one.
"""

from __future__ import annotations

import os
import re
from typing import Any

from belief._utils.lazy import importing
from belief._utils.validation import is_integer


def n_threads(n_jobs: Any) -> int:
    """The number of threads for `n_jobs`: None as above; -1 all cores, -2 all but one, and so on.

    Cores are counted as joblib does: what the affinity of the process and the quota of its container allow.
    """
    check_n_jobs(n_jobs)
    if n_jobs is None:
        return _by_default()
    return int(n_jobs) if n_jobs > 0 else max(1, _joblib().cpu_count() + 1 + int(n_jobs))


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of threads."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        allowed = "None or an integer: a number of threads, -1 for all cores, -2 for all but one"
        raise ValueError(f"n_jobs must be {allowed}; got {n_jobs!r}.")


def _joblib() -> Any:
    """The library, when a number of threads is asked for: it takes a fifth of a second to import."""
    with importing():
        import joblib
    return joblib


def _by_default() -> int:
    joblib = _joblib()
    worker, said = joblib.parallel.get_active_backend()
    if said is not None:
        return n_threads(said)
    share = re.match(r"\s*(\d+)", os.environ.get("OMP_NUM_THREADS", ""))
    if share:
        return max(1, min(int(share[1]), joblib.cpu_count()))
    return 1 if worker.nesting_level else joblib.cpu_count()
