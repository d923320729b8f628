"""A process of its own for the selectors of experiments/contest.py, so that one that takes too long can be stopped."""

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

WARM = (300, 60)  # the table that each selector sees first, so that compiling is not timed


class Worker:
    """Selects, one table after the other, and is begun anew after a table that took too long.

    Parameters
    ----------
    limit : float
        The processor's seconds a selection may take.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._process: Any = None

    def ask(self, name: str, data: Data, n: int) -> dict[str, Any]:
        """What was selected and the processor's seconds; or "more than" so many, or how it "failed"."""
        if self._process is None:
            self._begin()
        self._pipe.send((name, data, n))
        try:
            return self._pipe.recv()
        except EOFError:  # its time was up
            self.close()
            return {"more than": self.limit}

    def _begin(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self.limit), daemon=True)
        self._process.start()
        theirs.close()  # so that its end is seen here

    def close(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def serve(pipe: Connection, limit: float) -> None:
    """What the process does; the alarm, which ends it, counts its own seconds, whoever else uses the machine."""
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
    """The features and the time, or the error's words."""
    start = time.process_time()
    try:
        chosen = SELECTORS[name].select(data, n)
    except Exception as error:  # any of a library
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return {"selected": np.asarray(chosen, int).tolist(), "seconds": time.process_time() - start}


def tiny() -> Data:
    """Numbers and some nominal columns, of which few matter."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(WARM), rng.permutation(np.arange(WARM[0]) % 3)
    X[:, :10] += y[:, None]
    X[:, -6:] = rng.integers(0, 3, (WARM[0], 6))
    return Data(X, y, np.arange(WARM[1]) >= WARM[1] - 6)
