"""Compare BELIEF with other feature selectors: runtime, memory, and the share of informative features that each finds.

    python benchmarks/peers.py [--quick] [--only BELIEF,fast-select,...] [--limit 250] [--draw]

The tables have 5,000 x 500, 20,000 x 200 and 2,000 x 20,000 values in float32. Twenty columns are the informative
features of scikit-learn's make_classification (two clusters in each of two classes), scaled to mean 0 and variance 1.
Twenty more are noisy copies, one of each informative column, with a correlation of 0.97. All other columns are normal
noise. The order of the columns is random, and the seed is fixed. Each selector is asked for 20 features.

"Found" is the share of the 20 informative features that are selected. It is enough to select the copy, and a feature
and its copy count once. A selector that makes no mistakes but ignores redundancy finds about half. "Not noise" is the
share of the selected features that are informative or copies.

Each selector runs on each table in a separate process. The process makes the table and warms up on a small one, so that
compiling and starting workers are not timed. It then times the whole call on all cores and reports the best of three
calls, or of fewer if they take ten seconds in total. Packages that start worker processes even for short tasks also
run on one core, and the faster run counts.

A process that exceeds the limit is stopped. If the runtime of its selector grows with the square of the number of rows,
the selector then runs on a quarter of the rows. Peak memory is that of the process, with libraries and workers, minus
that of a process that only makes the table. The memory that the call itself added has a separate column. Packages that
are not installed are left out, and the page lists them.

The program prints a table and saves the figures as JSON. Without --quick, it also updates docs/benchmarks.md and its
plot. --draw shows the last run again. --only measures some selectors again, and keeps the figures of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from page import PAGE, commit, publish
from peers_page import draw, markdown

import belief

HOME = Path(__file__).parents[1]
TABLES = ((5_000, 500), (20_000, 200), (2_000, 20_000))
QUICK = ((500, 500), (2_000, 200), (2_000, 2_000))
TINY = (300, 60)
WARM = (2_000, 60)  # for BELIEF, which always uses its compiled kernels above 1,024 rows
INFORMATIVE, K = 20, 10  # K: number of neighbours in the other implementations of ReliefF
BLUR = 0.25  # standard deviation of the noise in a copy, whose correlation with the original is then 0.97
REPEATS, PATIENCE = 3, 10  # number of timed calls; no further call starts after this total of seconds

Array = np.ndarray


def table(m: int, F: int, seed: int) -> tuple[Array, Array, Array]:
    """Return a table with F columns, its classes, and the origin of each column.

    The origin is the index of an informative feature, from 0 to 19: the column is this feature or a noisy copy of it.
    The origin of a column of noise is -1.
    """
    from sklearn.datasets import make_classification

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, F), dtype=np.float32)
    original, y = make_classification(m, INFORMATIVE, n_informative=INFORMATIVE, n_redundant=0, random_state=seed)
    original = (original - original.mean(axis=0)) / original.std(axis=0)
    first, second = rng.permutation(F)[: 2 * INFORMATIVE].reshape(2, -1)
    X[:, first] = original
    X[:, second] = (original + BLUR * X[:, second]) / np.hypot(1, BLUR)
    origin = np.full(F, -1)
    origin[first] = origin[second] = np.arange(INFORMATIVE)
    return X, y, origin


# --- the selectors: each function takes a table and its classes, and returns column indices, best first --------------


def with_belief(X: Array, y: Array, **settings: Any) -> Array:
    import belief

    return belief.select(X, y, INFORMATIVE, random_state=0, **settings).selected


def fast_select(X: Array, y: Array) -> Array:
    from fast_select import ReliefF

    model = ReliefF(n_features_to_select=INFORMATIVE, n_neighbors=K, backend="cpu", n_jobs=-1)
    return model.fit(X, y).top_features_


def scikit_rebate(X: Array, y: Array) -> Array:
    from skrebate import ReliefF

    model = ReliefF(n_features_to_select=INFORMATIVE, n_neighbors=K, n_jobs=-1)
    return model.fit(X.astype(float), y).top_features_[:INFORMATIVE]


def scikit_feature(X: Array, y: Array) -> Array:
    from skfeature.function.similarity_based.reliefF import reliefF

    return reliefF(X, y, mode="index", k=K)[:INFORMATIVE]


def mrmr_selection(X: Array, y: Array, jobs: int) -> Array:
    import pandas as pd
    from mrmr import mrmr_classif

    named = pd.DataFrame(X, columns=[str(j) for j in range(X.shape[1])])
    return np.array(mrmr_classif(named, pd.Series(y), INFORMATIVE, n_jobs=jobs, show_progress=False), int)


def mutual_information(X: Array, y: Array, jobs: int) -> Array:
    from sklearn.feature_selection import mutual_info_classif

    return np.argsort(-mutual_info_classif(X, y, random_state=0, n_jobs=jobs), kind="stable")[:INFORMATIVE]


def f_test(X: Array, y: Array) -> Array:
    from sklearn.feature_selection import f_classif

    return np.argsort(-f_classif(X, y)[0], kind="stable")[:INFORMATIVE]


def with_boruta(X: Array, y: Array) -> Array:
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(max_depth=5, n_jobs=-1, random_state=0)
    ranking = BorutaPy(forest, n_estimators="auto", random_state=0).fit(X, y).ranking_
    return np.argsort(ranking, kind="stable")[:INFORMATIVE]


class Peer(NamedTuple):
    """A feature selector: the functions that call it (the fastest one counts), and the possible names of its package.

    `quadratic` is True if its runtime grows with the square of the number of rows.
    """

    ways: tuple[Callable[[Array, Array], Array], ...]
    packages: tuple[str, ...]
    quadratic: bool = False


def ours(**settings: Any) -> Peer:
    return Peer((partial(with_belief, **settings),), ("belief-fs",), "sample_size" in settings)


def one_core_or_all(select: Callable[[Array, Array, int], Array], package: str) -> Peer:
    return Peer((partial(select, jobs=1), partial(select, jobs=-1)), (package,))


PEERS = {
    "BELIEF": ours(),
    "BELIEF, θ = 0.3": ours(theta=0.3),
    "BELIEF, no significance tests": ours(significance=None),
    "BELIEF, all rows": ours(sample_size=1.0),
    "BELIEF, all rows, no redundancy": ours(sample_size=1.0, redundancy=None),
    "scikit-learn F test": Peer((f_test,), ("scikit-learn",)),
    "fast-select ReliefF": Peer((fast_select,), ("fast-select",), True),
    "scikit-rebate ReliefF": Peer((scikit_rebate,), ("skrebate",), True),
    "scikit-feature ReliefF": Peer((scikit_feature,), ("skfeature-chappers", "scikit-feature"), True),
    "mrmr-selection": one_core_or_all(mrmr_selection, "mrmr-selection"),
    "scikit-learn mutual information": one_core_or_all(mutual_information, "scikit-learn"),
    "Boruta": Peer((with_boruta,), ("Boruta",)),
}


# --- in the process that is measured ---------------------------------------------------------------------------------


def status(pid: int | str = "self") -> dict[str, float]:
    """Return the memory figures of a process in MB, by their names in /proc, such as VmRSS (now) and VmHWM (peak)."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0][:-1]: int(words[1]) / 1024 for words in lines if words[-1] == "kB"}


def workers() -> float:
    """Return the peak memory of the worker processes in MB, without files and memory that they share with others."""
    started = " ".join(file.read_text() for file in Path("/proc/self/task").glob("*/children")).split()
    return sum(s["VmHWM"] - s["RssFile"] - s["RssShmem"] for s in map(status, started) if "VmHWM" in s)


class Cell(NamedTuple):
    """One measurement: a selector, the index of the function that calls it, a table, and how many of its rows to use.

    If the name is None, the process only makes the table.
    """

    name: str | None
    way: int
    shape: tuple[int, int]
    seed: int
    rows: int


def measure(cell: Cell) -> dict[str, Any]:
    """Return the time and memory of a selector, and the quality of its selection. The memory includes the table."""
    X, y, origin = table(*cell.shape, cell.seed)
    X, y = X[: cell.rows], y[: cell.rows]
    if cell.name is None:
        return {"peak_mb": status()["VmHWM"]}
    select = PEERS[cell.name].ways[cell.way]
    select(*table(*(WARM if cell.name.startswith("BELIEF") else TINY), cell.seed)[:2])
    print("ready", flush=True)
    before, peak = status()["VmRSS"] + workers(), status()["VmHWM"]
    Path("/proc/self/clear_refs").write_text("5")  # reset VmHWM, which then measures the call alone
    selected, seconds = timed(lambda: select(X, y))
    most = status()["VmHWM"] + workers()
    shown = origin[selected]
    found = len(set(shown[shown >= 0].tolist()))
    return {
        "seconds": seconds, "peak_mb": max(peak, most), "call_mb": max(0.0, most - before),
        "found": found / INFORMATIVE, "not_noise": float((shown >= 0).mean()),
    }  # fmt: skip


def timed(task: Callable[[], Array]) -> tuple[Array, float]:
    """Return the result of a task, and the seconds of the fastest of a few runs."""
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < PATIENCE:
        start = time.perf_counter()
        answer = task()
        times.append(time.perf_counter() - start)
    return answer, min(times)


# --- in the main process, which starts one measured process after the other ------------------------------------------


def apart(cell: Cell, limit: float | None = None) -> dict[str, Any]:
    """Run `measure` in a new process, and stop it if it takes longer than the limit after its warm-up."""
    call = [sys.executable, "-W", "ignore", __file__, "--cell", json.dumps(cell)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(call, start_new_session=True, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            first = process.stdout.readline()  # "ready": the warm-up is over
            said = first + process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            return {"more_than": limit}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the process group includes the workers
        if process.returncode == 0:
            return json.loads(said.splitlines()[-1])
        errors.seek(0)
        return {"failed": " ".join([f"exit {process.returncode}:", *errors.read().splitlines()[-1:]])}


def fastest(name: str, shape: tuple[int, int], seed: int, rows: int, limit: float) -> dict[str, Any]:
    """Measure each function that calls a selector, and return the fastest measurement."""
    tried = [apart(Cell(name, way, shape, seed, rows), limit) for way in range(len(PEERS[name].ways))]
    best = min(tried, key=lambda took: took.get("seconds", float("inf")))
    return {"peer": name, "table": shape, "rows": rows, **best}


def rows_of(name: str, shape: tuple[int, int], seed: int, limit: float) -> list[dict[str, Any]]:
    """Measure a selector on a table, and also on a quarter of the rows if it is quadratic and exceeds the limit."""
    rows = [fastest(name, shape, seed, shape[0], limit)]
    if "more_than" in rows[0] and PEERS[name].quadratic:
        rows.append(fastest(name, shape, seed, shape[0] // 4, limit))
    return rows


def installed(peer: Peer) -> str | None:
    """Return the name and version of the first installed package of a selector, or None."""
    for package in peer.packages:
        try:
            return f"{package} {belief.__version__ if package == 'belief-fs' else version(package)}"
        except PackageNotFoundError:
            pass
    return None


def compute(options: argparse.Namespace) -> None:
    """Measure all selectors, or those in --only, and save the figures after each one.

    With --only, the file keeps the figures of the other selectors.
    """
    wanted = [name for name in PEERS if name.startswith(tuple(options.only.split(",")))]
    there = {name: installed(PEERS[name]) for name in wanted}
    names = [name for name, package in there.items() if package]
    old = json.loads(options.json.read_text()) if options.only and options.json.exists() else {}
    rows = [row for row in old.get("rows", ()) if row["peer"] in PEERS and row["peer"] not in names]
    packages = {**old.get("packages", {}), **there}
    kept: dict[str, Any] = {
        "machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "python": platform.python_version(),
        "seed": options.seed, "packages": {name: packages[name] for name in PEERS if packages.get(name)},
        "left_out": [name for name in PEERS if name in packages and not packages[name]], "rows": rows,
    }  # fmt: skip
    for name in names:
        fastest(name, TINY, options.seed, TINY[0], options.limit)  # fills the caches of compiled code on disk
    for shape in QUICK if options.quick else TABLES:
        bare = apart(Cell(None, 0, shape, options.seed, shape[0]))["peak_mb"]
        for name in names:
            print(f"{shape[0]:,} x {shape[1]:,}: {name}", file=sys.stderr)
            for row in rows_of(name, shape, options.seed, options.limit):
                if "peak_mb" in row:
                    row["peak_mb"] = max(0.0, row["peak_mb"] - bare)
                rows.append({**row, "commit": commit()})
            rows.sort(key=lambda row: (TABLES + QUICK).index(tuple(row["table"])) * len(PEERS) + order(row["peer"]))
            options.json.write_text(json.dumps(kept, indent=1))


def order(name: str) -> int:
    """Return the position of a selector in the tables."""
    return list(PEERS).index(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use tables of a tenth of the size, for a trial run")
    parser.add_argument("--only", default="", help="beginnings of selector names, separated by commas")
    parser.add_argument("--limit", type=float, default=250, help="seconds after which a selector is stopped")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the tables")
    parser.add_argument("--draw", action="store_true", help="show the last run again, without measuring")
    parser.add_argument("--json", type=Path, help="file for the figures (without --quick: benchmarks/peers.json)")
    parser.add_argument("--cell", type=lambda text: Cell(*json.loads(text)), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(options.cell)))
        return
    options.json = options.json or HOME / "benchmarks" / ("peers-quick.json" if options.quick else "peers.json")
    if unknown := [word for word in options.only.split(",") if not any(name.startswith(word) for name in PEERS)]:
        parser.error(f"--only: no selector's name begins with {unknown[0]!r}. The selectors are: {'; '.join(PEERS)}.")
    if options.draw and not options.json.exists():
        parser.error(f"--draw: {options.json} does not exist. Run without --draw first, or pass a file with --json.")
    if not options.draw:
        compute(options)
    kept = json.loads(options.json.read_text())
    print(markdown(kept))
    if not options.quick:
        publish(PAGE, "peers", markdown(kept))
        draw(kept, HOME / "docs" / "pictures" / "peers.svg")


if __name__ == "__main__":
    main()
