"""A second cluster: processes of this machine, and blocks in files of a temporary folder.

It proves that engines/distributed/ knows nothing of Spark, and shows how much a cluster must bring. A worker that is
killed takes the pool with it: a new pool computes the tasks that have not answered.
"""

import os
import signal
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

from belief.engines.distributed.engine import DistributedEngine
from belief.engines.distributed.folder import Folder, GatheredFiles, StagedFiles
from belief.engines.distributed.merging import answers_of, merged
from belief.engines.distributed.placing import Given
from belief.engines.distributed.staging import stage

WORKERS, TRIES = 2, 3


class Pool:
    """Worker processes; in the place of a pool that has lost one comes a new one."""

    def __init__(self):
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["belief.engines.distributed.sums", "pool_cluster"])
        self._pool = None
        self.broken = 0  # how often a worker was lost

    def map(self, function, tasks):
        """The answers in the order of the tasks; a task whose worker dies is done again."""
        answers = {}
        for _ in range(TRIES):
            self._pool = self._pool or ProcessPoolExecutor(WORKERS, self._context)
            asked = {i: self._pool.submit(function, *task) for i, task in enumerate(tasks) if i not in answers}
            try:
                for i, future in asked.items():
                    answers[i] = future.result()
                return [answers[i] for i in range(len(tasks))]
            except BrokenProcessPool:
                self.broken += 1
                self._pool = None
        raise AssertionError(f"The pool broke {TRIES} times.")


@cache
def pool():
    """The pool of the tests."""
    return Pool()


# --- in the workers ---


def staged_part(folder, partition, X, labels, discrete):
    """Cut a part of the table into blocks, and write them."""
    values, codes = np.unique(labels, return_inverse=True)
    sizes = np.diff(X.indptr) * 12 if issparse(X) else np.full(X.shape[0], 8 * X.shape[1])
    told = []
    for block, data in stage([(partition, [(X, sizes, values, codes.astype(np.int32))])], discrete, {}):
        if data is not None:
            folder.write(block, data)
        told.append(block)
    return told


def answered(job, files, numbers, dies):
    """Run a job over some blocks; the first worker that finds the order to die does so, halfway."""
    return [(where, bytes(data)) for where, data in answers_of(job, doomed(files.read(numbers, job), dies), 1)]


def doomed(blocks, dies):
    for block in blocks:
        yield block
        if dies is not None:
            with suppress(FileNotFoundError):  # another was first
                dies.unlink()
                os.kill(os.getpid(), signal.SIGKILL)


# --- in the driver ---


class FileBlocks:
    """Blocks in files, staged or gathered."""

    def __init__(self, cluster, files):
        self._cluster, self._files = cluster, files
        self.tasks = max(1, min(WORKERS, len(files)))

    def run(self, job, size, what):
        n, dies = len(self._files), self._cluster.order_to_die(what)
        tasks = [(job, self._files, range(t, n, self.tasks), dies) for t in range(self.tasks)]
        found = pool().map(answered, tasks)
        return merged(job, [(t, where, data) for t, part in enumerate(found) for where, data in part], n)

    def fetch(self, ids):
        return [self._files.rows(ids)]

    def values(self, ids, columns):
        return None  # by a job

    def gather(self, portions):
        return FileBlocks(self._cluster, GatheredFiles(self._files, portions))

    def release(self):
        pass


class PoolCluster:
    """Workers, and a table in memory.

    Parameters
    ----------
    n_parts : the parts it is staged in
    mixed : whether the first of them is dense, whatever the others are
    kill_in : the job, by what it is called, in which a worker is killed
    """

    def __init__(self, X, labels, discrete, n_parts=3, mixed=False, kill_in=""):
        self._table, self._n_parts, self._mixed, self._kill_in = (X, labels, discrete), n_parts, mixed, kill_in
        self._home = tempfile.TemporaryDirectory(prefix="belief-pool-")
        self._folder = Folder(str(Path(self._home.name, "blocks")))

    def stage(self):
        X, labels, discrete = self._table
        cuts = np.linspace(0, len(labels), self._n_parts + 1).astype(int)
        parts = [X[a:b] for a, b in pairwise(cuts)]
        parts[:1] = [parts[0].toarray()] if self._mixed else parts[:1]
        tasks = [(self._folder, t, part, labels[cuts[t] : cuts[t + 1]], discrete) for t, part in enumerate(parts)]
        return [block for part in pool().map(staged_part, tasks) for block in part]

    def blocks(self, layout):
        return FileBlocks(self, StagedFiles.of(self._folder, layout))

    def order_to_die(self, what):
        """A file that orders a worker to die, once, if this is the job for it."""
        if what != self._kill_in:
            return None
        order, self._kill_in = Path(self._home.name, "die"), ""
        order.touch()
        return order

    def release(self):
        self._home.cleanup()


def pool_engine(X, labels, discrete, **options):
    """The Engine protocol over a table, by the pool."""
    given = Given("The table", "y", "The rows", np.asarray(discrete))
    return DistributedEngine(PoolCluster(X, np.asarray(labels), np.asarray(discrete), **options), given)
