"""A cluster of worker processes on this machine, in place of Spark, with blocks in files of a temporary folder.

It tests the cluster engine without a JVM. When a worker is killed, its pool breaks; a new pool runs the missing tasks.
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

from belief.engines.spark.blocks import TableSpec
from belief.engines.spark.engine import ClusterEngine
from belief.engines.spark.folder import BlockFiles, Folder
from belief.engines.spark.jobs import Fetch, merge_answers, run_job
from belief.engines.spark.staging import stage

WORKERS, MAX_TRIES = 2, 3


class Pool:
    """A pool of worker processes, which is replaced if a worker dies."""

    def __init__(self):
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["belief.engines.spark.jobs", "pool_cluster"])
        self._pool = None
        self.broken = 0  # number of pools that lost a worker

    def map(self, function, tasks):
        """Return the answers in the order of the tasks; a task whose worker dies runs again."""
        answers = {}
        for _ in range(MAX_TRIES):
            self._pool = self._pool or ProcessPoolExecutor(WORKERS, self._context)
            futures = {i: self._pool.submit(function, *task) for i, task in enumerate(tasks) if i not in answers}
            try:
                for i, future in futures.items():
                    answers[i] = future.result()
                return [answers[i] for i in range(len(tasks))]
            except BrokenProcessPool:
                self.broken += 1
                self._pool = None
        raise AssertionError(f"The pool broke {MAX_TRIES} times.")


@cache
def pool():
    """Return the pool that all tests share."""
    return Pool()


# --- in the workers ---


def stage_part(folder, partition, X, labels, discrete):
    """Cut a part of the table into blocks, write them, and return their descriptions."""
    values, codes = np.unique(labels, return_inverse=True)
    sizes = np.diff(X.indptr) * 12 if issparse(X) else np.full(X.shape[0], 8 * X.shape[1])
    staged = []
    for info, data in stage([(partition, [(X, sizes, values, codes.astype(np.int32))])], discrete, {}):
        if data is not None:
            folder.write(info, data)
        staged.append(info)
    return staged


def answer(job, files, numbers, kill_file):
    """Run a job over some blocks; the first worker that can delete `kill_file` kills itself after its first block."""
    blocks = kill_after_first(files.read(numbers, job.features), kill_file)
    return [(where, bytes(data)) for where, data in run_job(job, blocks, 1)]


def kill_after_first(blocks, kill_file):
    for block in blocks:
        yield block
        if kill_file is not None:
            with suppress(FileNotFoundError):  # another worker deleted it first
                kill_file.unlink()
                os.kill(os.getpid(), signal.SIGKILL)


# --- on the driver ---


class FileBlocks:
    """Staged or gathered blocks in files, and the jobs on them."""

    portion_bytes = 2**26

    def __init__(self, cluster, files):
        self._cluster, self.files = cluster, files
        self.tasks = max(1, min(WORKERS, len(files)))

    def run(self, job, size, what):
        n, kill_file = len(self.files), self._cluster.kill_file(what)
        tasks = [(job, self.files, range(t, n, self.tasks), kill_file) for t in range(self.tasks)]
        found = pool().map(answer, tasks)
        return merge_answers(job, [(t, where, data) for t, part in enumerate(found) for where, data in part], n)

    def fetch(self, ids, features=None):
        if features is None:
            return [self.files.read_rows(ids)]
        return Fetch.read(self.run(Fetch(ids, features), 0, "fetching rows"))

    def gather(self, portions):
        return FileBlocks(self._cluster, self.files.gather(portions))

    def release(self):
        pass


class PoolCluster:
    """A cluster of worker processes for a table in memory.

    Parameters
    ----------
    n_parts : number of parts that are staged separately
    mixed : make the first part dense
    kill_in : description of the job in which a worker is killed
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
        return [block for part in pool().map(stage_part, tasks) for block in part]

    def open(self, layout):
        return FileBlocks(self, BlockFiles.of(self._folder, layout, min_bytes=0))

    def kill_file(self, what):
        """Return the file that makes one worker kill itself, if a worker is to be killed in this job."""
        if what != self._kill_in:
            return None
        file, self._kill_in = Path(self._home.name, "die"), ""
        file.touch()
        return file

    def cancel(self):
        """Do nothing: the pool waits for its tasks."""

    def release(self):
        self._home.cleanup()


def pool_engine(X, labels, discrete, **options):
    """Return the cluster engine for a table, with the pool as its workers."""
    spec = TableSpec("y", "", np.asarray(discrete))
    return ClusterEngine(PoolCluster(X, np.asarray(labels), np.asarray(discrete), **options), spec)
