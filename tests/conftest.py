"""Fixtures and helpers for all tests: public data sets, the command line, and the engines that run the method."""

import io
import os
import re
import sys
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from spark_sessions import _stopped_at_the_end, java_home, jvm_has_ended, spark  # noqa: F401

from belief.api import open_engine, run_engine
from belief.cli import main
from belief.data.source import ArraySource, BlockSource, ColumnSource, as_read_only
from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.engines.stream import StreamEngine
from belief.method.settings import Settings
from belief.progress import Reporter

# tests are marked by their file or fixture, so that no mark is forgotten
FILE_MARKS = {"test_spark_": "spark", "test_experiments": "experiments"}
LOST = "lost JVM"  # name of a property in test reports: the end of stderr of a test during which Spark's JVM ended
collect_ignore = ["other_system"] + ([] if find_spec("torch") else ["test_gpu.py"])


def pytest_runtest_protocol(item, nextitem):
    """Run a test, and run it again with a new JVM if it failed and Spark's JVM has ended."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports) and jvm_has_ended():
        said = "".join(report.capstderr for report in reports if report.failed)
        item.user_properties.append((LOST, said[-3000:]))
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collection_modifyitems(items):
    """Mark tests that need Spark, torch or a browser, and tests of experiments except their smoke tests."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        marks = {mark for start, mark in FILE_MARKS.items() if item.path.name.startswith(start)}
        marks |= fixtures & {"spark", "browser"}
        if "[Spark" in item.name:
            marks.add("spark")
        if re.search(r"\[.*\btorch\b", item.name):
            marks.add("gpu")
        if item.get_closest_marker("smoke"):
            marks.discard("experiments")
        for mark in marks:
            item.add_marker(mark)


@cache
def missing_for(mark):
    """Return why tests with this mark cannot run on this machine, or an empty string if they can."""
    if mark == "linux":
        other = sys.platform != "linux" or "BELIEF_TEST_SYSTEM" in os.environ
        return "these tests need forks, links, pipes, /proc, limits or a shell" if other else ""
    if mark == "gpu":
        return "" if find_spec("torch") else "the tests of the engine for GPUs need torch: run make test-gpu"
    try:
        java_home()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip a test that cannot run on this machine.

    All such tests are skipped by the same line of code, so that pytest reports them in one line.
    """
    for mark in ("linux", "gpu", "spark"):
        if item.get_closest_marker(mark) and missing_for(mark):
            pytest.skip(missing_for(mark))


def pytest_terminal_summary(terminalreporter):
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = {(report.nodeid, *pair) for report in reports for pair in getattr(report, "user_properties", ())}
    for test, name, said in sorted(properties):
        if name == LOST:
            terminalreporter.write_line(f"{test} lost Spark's JVM, and was run again:\n{said}")


@pytest.fixture(scope="session")
def data_home():
    """Return the folder with the public data sets; without it, skip the tests that need it."""
    home = Path(os.environ.get("BELIEF_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not home.is_dir():
        pytest.skip("needs the public data sets: set BELIEF_DATA to their folder")
    return home


def call(capsys, *arguments):
    """Run a command in this process; return its exit code, stdout and stderr."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as stopped:
        code = stopped.code
    return code, *capsys.readouterr()


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


def refused(message, call):
    """Check that a call raises a ValueError whose message has one line."""
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def in_memory(X):
    return ArraySource(X)


def fortran(X):
    return ArraySource(np.asfortranarray(X))


def in_blocks(X):
    cuts = sorted({0, 1, len(X) // 3, len(X)})
    return BlockSource([ArraySource(X[a:b]) for a, b in pairwise(cuts)])


def in_columns(X):
    return ColumnSource(list(X.T))


class Blocks:
    """A stream that reads an array in small blocks, as if it were a file larger than memory."""

    names = None

    def __init__(self, X, labels, discrete, height):
        self.X, self.labels, self.discrete, self.height = X, labels, discrete, height

    def later_pass(self):
        for a in range(0, len(self.X), self.height):
            yield as_read_only(self.X[a : a + self.height].copy())

    def first_pass(self, labels):
        labels.add(self.labels)
        return self.later_pass()


def streamed(X, labels, discrete, task="auto", **options):
    """Return an engine that reads an array as a stream, with too little memory to keep the rows."""
    resources = Resources(working_memory=min(X.nbytes, 2**11), **options)
    return StreamEngine(Blocks(X, labels, discrete, 1 + len(X) // 4), "y", resources, task=task)


def select_in_blocks(stream, notes=None, **settings):
    """Select features of an open stream with so little memory that no block is kept."""
    engine, _ = open_engine(stream, None, "auto", Resources(working_memory=2**14), notes)
    with Reporter() as reporter, engine:
        result = run_engine(engine, Settings(**settings), lambda: stream.names, 16, reporter, notes, stream)
        assert engine._whole is None  # the table is larger than the memory
        return result


AS_LARGE = {"small_rows": 0}  # small tables take the code path of large ones
ENGINES = {
    "small": (in_memory, {}),
    "one thread": (in_memory, {"n_jobs": 1, "always_compile": True}),
    "three threads": (in_memory, {"n_jobs": 3, **AS_LARGE}),
    "little memory": (in_memory, {"working_memory": 2**14, **AS_LARGE}),
    "int8": (in_memory, {"instructions": "int8", **AS_LARGE}),
    "fortran": (fortran, AS_LARGE),
    "blocks": (in_blocks, {"working_memory": 2**14, **AS_LARGE}),
    "columns": (in_columns, AS_LARGE),
    "torch": (in_memory, {"torch_devices": ("cpu",), **AS_LARGE}),
    "torch, little memory": (in_blocks, {"torch_devices": ("cpu",), "working_memory": 2**9, **AS_LARGE}),
    "two torch devices": (fortran, {"torch_devices": ("cpu", "cpu"), **AS_LARGE}),
}


@pytest.fixture(params=[*ENGINES, "streamed", "streamed to torch"])
def make_engine(request):
    """Return a function that creates an engine of one kind from an array, labels and a mask of discrete features."""
    if request.param == "streamed":
        return partial(streamed, **AS_LARGE)
    if request.param == "streamed to torch":
        return partial(streamed, torch_devices=("cpu",), **AS_LARGE)
    source, options = ENGINES[request.param]

    def make(X, labels, discrete):
        return local_engine(source(X), np.arange(labels.max() + 1), labels, discrete, Resources(**options))

    return make
