"""Run the selectors of experiments/contest.py in a separate process, so that slow selections can be stopped."""

from __future__ import annotations

import signal
import time
import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from choices import Data
from contest_selectors import SELECTORS

WARM = (300, 60)  # shape of the first table of each selector, so that compilation is not timed


class Worker:
    """A process that selects features, one table at a time.

    If a selection takes too long, the process is stopped, and the next selection starts a new one.

    Parameters
    ----------
    limit : float
        The largest CPU time of a selection, in seconds.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._process: Any = None

    def ask(self, name: str, data: Data, n: int) -> dict[str, Any]:
        """Select n features, and return a dictionary.

        It has the keys "selected" and "seconds" (CPU time), or only "more than" (the exceeded time limit), or only
        "failed" (the error message).
        """
        if self._process is None:
            self._begin()
        self._pipe.send((name, data, n))
        try:
            return self._pipe.recv()
        except EOFError:  # the timer stopped the process
            self.close()
            return {"more than": self.limit}

    def _begin(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self.limit), daemon=True)
        self._process.start()
        theirs.close()  # otherwise `recv` would wait forever after the process has stopped

    def close(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def serve(pipe: Connection, limit: float) -> None:
    """Answer requests until the process is stopped; this is the main function of the worker process.

    A timer ends the process when a selection exceeds the limit. It counts the CPU time of this process, so the load of
    the machine does not matter.
    """
    warnings.simplefilter("ignore")
    warm: set[str] = set()
    while True:
        name, data, n = pipe.recv()
        if name not in warm:
            answer(name, tiny(), 5)
            warm.add(name)
        signal.setitimer(signal.ITIMER_PROF, limit)
        found = answer(name, data, n)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(found)


def answer(name: str, data: Data, n: int) -> dict[str, Any]:
    """Return the selected features and the CPU seconds, or the error message."""
    start = time.process_time()
    try:
        chosen = SELECTORS[name].select(data, n)
    except Exception as error:  # a library may raise any exception
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return {"selected": np.asarray(chosen, int).tolist(), "seconds": time.process_time() - start}


def tiny() -> Data:
    """Return a small table with relevant, irrelevant and nominal columns."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(WARM), rng.permutation(np.arange(WARM[0]) % 3)
    X[:, :10] += y[:, None]
    X[:, -6:] = rng.integers(0, 3, (WARM[0], 6))
    return Data(X, y, np.arange(WARM[1]) >= WARM[1] - 6)
