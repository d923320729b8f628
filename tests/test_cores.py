"""Number of threads for n_jobs."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest

from belief._utils.threads import count_threads


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    """Simulate a machine with eight cores and no settings."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)


@pytest.mark.parametrize(
    ("n_jobs", "threads"), [(None, 8), (1, 1), (3, 3), (12, 12), (-1, 8), (-2, 7), (-8, 1), (-9, 1)]
)
def test_count_threads_of_a_number(n_jobs, threads):
    assert count_threads(n_jobs) == threads
    assert n_jobs is None or count_threads(np.int64(n_jobs)) == threads


@pytest.mark.parametrize("n_jobs", [0, 1.0, "2", True, np.nan])
def test_count_threads_refuses_invalid_values(n_jobs):
    with pytest.raises(ValueError, match=r"^n_jobs must be None or an integer: .*; got"):
        count_threads(n_jobs)


def test_count_threads_respects_joblib_contexts():
    with joblib.parallel_config(n_jobs=2):
        assert count_threads(None) == 2
        assert count_threads(5) == 5
    with joblib.parallel_config(n_jobs=-2):
        assert count_threads(None) == 7
    with joblib.parallel_config("threading"):  # this context sets no number
        assert count_threads(None) == 8


@pytest.mark.parametrize(("value", "threads"), [("3", 3), (" 2,4", 2), ("64", 8), ("0", 1), ("many", 8), ("", 8)])
def test_count_threads_respects_omp_num_threads(monkeypatch, value, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert count_threads(None) == threads
    assert count_threads(-1) == 8


def test_count_threads_in_a_joblib_worker():
    """The test runs in a new process, so that joblib's workers start without OMP_NUM_THREADS."""
    program = (
        "from joblib import Parallel, delayed, parallel_config\n"
        "from belief._utils.threads import count_threads\n"
        "share = lambda n, **more: Parallel(n, **more)(delayed(count_threads)(None) for _ in range(2))[0]\n"
        "print(share(2), share(2, backend='threading'), count_threads(None))\n"
        "with parallel_config('loky', inner_max_num_threads=3): print(share(2))"
    )
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")} | {"LOKY_MAX_CPU_COUNT": "8"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=clean)
    shared, threading, alone, inner = map(int, run.stdout.split())
    assert alone >= 1
    assert (shared, threading, inner) == (max(1, alone // 2), 1, min(3, alone))
