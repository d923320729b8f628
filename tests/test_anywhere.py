"""Threads of BLAS, forks, and a kernel cache that cannot be written."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  it loads its own BLAS
from threadpoolctl import threadpool_info, threadpool_limits

import belief
from belief.engines.block import blas
from belief.engines.block.blas import limit_blas
from belief.kernels import compiling

pytestmark = pytest.mark.slow
SOURCE = Path(belief.__file__).parents[1]
rng = np.random.default_rng(0)
X = rng.normal(size=(1100, 4)).astype(np.float32)  # too many rows for the engine for small tables
y = (X[:, 0] > 0).astype(int)


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """Let BLAS use two threads."""
    blas._libraries.cache_clear()  # SciPy may have loaded another BLAS in the meantime
    with threadpool_limits(2, "blas"):
        if blas_threads() != {2}:
            pytest.skip("needs a BLAS that has threads")
        yield


def in_a_thread(task):
    found = []
    thread = threading.Thread(target=lambda: found.append(task()))
    thread.start()
    thread.join()
    return found[0]


def seen_inside(**options):
    """Return the numbers of threads that BLAS may use during a search."""
    seen = set()
    belief.select(X, y, 2, random_state=0, callback=lambda _: seen.update(blas_threads()), **options)
    return seen - blas_threads() or seen


@pytest.mark.parametrize("call", [lambda task: task(), in_a_thread], ids=["main thread", "another thread"])
def test_blas_uses_one_thread_during_a_search(two_threads, call):
    assert call(seen_inside) == {1}
    assert blas_threads() == {2}


def test_blas_uses_one_thread_until_the_last_search_ends(two_threads):
    begun, end = threading.Event(), threading.Event()

    def other():
        with limit_blas():
            begun.set()
            end.wait(30)

    thread = threading.Thread(target=other)
    with limit_blas():
        thread.start()
        assert begun.wait(30)
    assert blas_threads() == {1}
    end.set()
    thread.join()
    assert blas_threads() == {2}


def test_one_thread_keeps_limits_set_meanwhile(two_threads):
    with limit_blas():
        in_a_thread(lambda: threadpool_limits(3, "blas"))
    assert blas_threads() in ({3}, {2})  # 2 if the library supports no more


# --- forks ---


def run(program, seconds=60, **environment):
    """Run a program in a new process; return stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, timeout=seconds,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


FORK = """
import os, signal, sys, threading, time
def child(task, seconds=20):
    if not (pid := os.fork()):
        signal.alarm(seconds)
        task()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.linux
def test_fork_waits_for_a_running_compilation():
    program = """
from numba.core.compiler_lock import global_compiler_lock
from belief.kernels.compiling import kernel
held = threading.Event()
def compile():
    with global_compiler_lock:
        held.set()
        time.sleep(1)
threading.Thread(target=compile).start()
held.wait()
child(lambda: kernel()(lambda x: x + 1)(1), 10)
"""
    assert run(FORK + program)[0].strip() == "0"


@pytest.mark.linux
def test_fork_waits_for_a_running_import(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nstarted.set()\ntime.sleep(1)\nname = 1\n")
    program = f"""
import builtins
from belief._utils.lazy import make_lazy_getattr
sys.path.append({str(tmp_path)!r})
builtins.started = threading.Event()
get = make_lazy_getattr("slow", {{"name": "slow"}})
threading.Thread(target=get, args=("name",)).start()
started.wait()
child(lambda: get("name"), 10)
"""
    assert run(FORK + program)[0].strip() == "0"


@pytest.mark.linux
def test_child_searches_while_its_parent_does():
    program = """
import numpy as np, scipy.linalg, belief
from threadpoolctl import threadpool_info, threadpool_limits
threadpool_limits(2, "blas")
count = lambda: [x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"]
before = count()
X = np.random.default_rng(0).normal(size=(1100, 4)).astype(np.float32)
y = (X[:, 0] > 0).astype(int)
select = lambda **more: belief.select(X, y, 2, random_state=0, device="cpu", **more)
begun, end = threading.Event(), threading.Event()
def hold(progress):
    begun.set()
    end.wait(60)
def task():
    assert count() == before, count()
    assert select().selected_names[0] == "x0"
    assert count() == before, count()
thread = threading.Thread(target=lambda: select(callback=hold))
thread.start()
begun.wait()
child(task, 60)
end.set()
thread.join()
"""
    assert run(FORK + program, 120)[0].strip() == "0"


# --- the cache of compiled kernels ---

USE = """
import warnings, numpy as np
from belief.kernels import nearest
out = np.empty((2, 3))
nearest.transpose(np.arange(6.0).reshape(3, 2), out)
nearest.round9(1.0)
print(out.tolist())
"""
DONE = "[[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]"


def assert_one_warning(said, *words):
    told = [line for line in said.splitlines() if "UserWarning" in line]
    assert len(told) == 1, said
    for word in ("The compiled kernels", "NUMBA_CACHE_DIR", *words):
        assert word in told[0]


@pytest.mark.linux
def test_cache_without_a_writable_folder(tmp_path):
    """A file in place of the cache folder prevents writing, even by root."""
    package = shutil.copytree(SOURCE / "belief", tmp_path / "belief", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (package / "kernels", package / "kernels" / "dense"):
        (folder / "__pycache__").write_text("")
    home = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "NUMBA_CACHE_DIR": ""}
    printed, said = run(USE, PYTHONPATH=str(tmp_path), **home)
    assert printed.strip() == DONE
    assert_one_warning(said, "no folder is writable")


@pytest.mark.linux
def test_cache_on_a_full_disk(tmp_path):
    """A limit of 0 bytes per file simulates a full disk."""
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    printed, said = run(full + USE, NUMBA_CACHE_DIR=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    assert printed.strip() == DONE
    assert_one_warning(said, f"cannot be saved in {tmp_path}")


def plus_one(x):
    return x + 1


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [lambda x: x[: len(x) // 2], lambda x: b"", lambda x: b"something else"])
def test_damaged_cache_is_rebuilt(tmp_path, monkeypatch, ending, damage):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "_warned", [])
    assert compiling.kernel()(plus_one)(1) == 2
    (file,) = tmp_path.rglob(f"*{ending}")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = compiling.kernel()(plus_one)
    with pytest.warns(UserWarning, match="cannot be read in .* NUMBA_CACHE_DIR") as told:
        assert again(1) == 2
    assert len(told) == 1
    third = compiling.kernel()(plus_one)
    assert third(1) == 2
    assert sum(third.stats.cache_hits.values()) == 1  # it was loaded from the new cache
