"""The number of threads for `n_jobs`, which has the same meaning as in joblib and scikit-learn.

Threads share the data and need no copies of it, so the default `n_jobs=None` uses all cores that are available to the
process, with three exceptions. In a joblib context, None uses the number of jobs of the context. If the environment
variable OMP_NUM_THREADS is set, as joblib does in its worker processes, None uses at most this number of threads. In
the other workers of joblib, such as its threads, None uses one thread.
"""

from __future__ import annotations

import os
import re
from typing import Any

from belief._utils.lazy import importing
from belief._utils.validation import is_integer


def count_threads(n_jobs: Any) -> int:
    """Return the number of threads for `n_jobs`: -1 means all cores, -2 all but one.

    None means all cores, except where joblib or OMP_NUM_THREADS sets another number. As in joblib, "all cores"
    are the cores that the affinity of the process and the quota of its container allow.
    """
    check_n_jobs(n_jobs)
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    with importing():
        import joblib  # here, because the import takes 0.2 seconds
    if n_jobs is not None:
        return max(1, joblib.cpu_count() + 1 + int(n_jobs))
    backend, n_jobs = joblib.parallel.get_active_backend()
    if n_jobs is not None:
        return count_threads(n_jobs)
    share = re.match(r"\s*(\d+)", os.environ.get("OMP_NUM_THREADS", ""))
    if share:
        return max(1, min(int(share[1]), joblib.cpu_count()))
    return 1 if backend.nesting_level else joblib.cpu_count()


def check_n_jobs(n_jobs: Any) -> None:
    """Raise a ValueError if `n_jobs` is not a valid number of threads."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        allowed = "None or an integer: a number of threads, -1 for all cores, -2 for all but one"
        raise ValueError(f"n_jobs must be {allowed}; got {n_jobs!r}.")
