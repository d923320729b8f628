"""BELIEF against what one would otherwise use: time, memory and which of the true features are found, in one run.

    python benchmarks/peers.py [--quick] [--only BELIEF,fast-select,...] [--limit 250] [--draw]

The tables are 5,000 x 500, 20,000 x 200 and 2,000 x 20,000, in float32. Twenty columns are the informative ones of
scikit-learn's make_classification (two clusters in each of two classes), brought to mean 0 and variance 1; twenty
repeat one of them each at a correlation of 0.97; the rest is normal noise. Their order is random, the seed fixed. Each
selector is asked for 20 features. "Found" is the share of the 20 informative features that these show, where a feature
and its copy count once: one that ranks without an eye on redundancy and makes no mistake finds about half. "Not noise"
is the share of the 20 that are informative or copies.

Each selector and table has a process of its own, which makes the table, warms up on a small one (so that compiling and
the start of workers are not timed) and is then timed on the whole call, with all cores: the best of three, or of fewer
where these take ten seconds together. Packages that start worker processes for short tasks are also run on one
core, and the faster is kept. What takes longer than the limit is stopped; if its time grows with the square of the
rows, it gets a second try on a quarter of them. Peak memory is that of the process, libraries and workers included,
less that of one that only makes the table; what the call itself added is in a column of its own. A package that is not
installed is left out, and said so.

Prints a table, notes it as JSON, and unless --quick puts it into docs/benchmarks.md with a plot; --draw shows the last
run again. --only measures some selectors again, and keeps the figures of the others.
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
WARM = (2_000, 60)  # for BELIEF, whose compiled kernels are for more than 1,024 rows
INFORMATIVE, K = 20, 10  # K: the neighbours of the other implementations of ReliefF
BLUR = 0.25  # the standard deviation of what is added to a copy: it correlates at 0.97 with the original
REPEATS, PATIENCE = 3, 10  # times, and seconds after which there is no other time

Array = np.ndarray


def table(m: int, F: int, seed: int) -> tuple[Array, Array, Array]:
    """The columns, the classes, and which informative feature a column shows (-1: none)."""
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


# --- the selectors: the table and its classes in, the numbers of the columns out, best first -------------------------


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
    """A selector: the ways to call it, the distributions it may come in, and whether time grows with rows squared."""

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


# --- in a process of its own -----------------------------------------------------------------------------------------


def status(pid: int | str = "self") -> dict[str, float]:
    """The memory a process has and had at most, by the names of /proc, in MB."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0][:-1]: int(words[1]) / 1024 for words in lines if words[-1] == "kB"}


def workers() -> float:
    """What the processes this one started had at most, without what they share with others, in MB."""
    started = " ".join(file.read_text() for file in Path("/proc/self/task").glob("*/children")).split()
    return sum(s["VmHWM"] - s["RssFile"] - s["RssShmem"] for s in map(status, started) if "VmHWM" in s)


class Cell(NamedTuple):
    """What one process does: a selector, in one of its ways, on the first rows of a table. None: only the table."""

    name: str | None
    way: int
    shape: tuple[int, int]
    seed: int
    rows: int


def measure(cell: Cell) -> dict[str, Any]:
    """Time and memory, the table's included, and what was found."""
    X, y, origin = table(*cell.shape, cell.seed)
    X, y = X[: cell.rows], y[: cell.rows]
    if cell.name is None:
        return {"peak_mb": status()["VmHWM"]}
    select = PEERS[cell.name].ways[cell.way]
    select(*table(*(WARM if cell.name.startswith("BELIEF") else TINY), cell.seed)[:2])
    print("ready", flush=True)
    before, peak = status()["VmRSS"] + workers(), status()["VmHWM"]
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again: from here on it is the call's
    selected, seconds = timed(lambda: select(X, y))
    most = status()["VmHWM"] + workers()
    shown = origin[selected]
    found = len(set(shown[shown >= 0].tolist()))
    return {
        "seconds": seconds, "peak_mb": max(peak, most), "call_mb": max(0.0, most - before),
        "found": found / INFORMATIVE, "not_noise": float((shown >= 0).mean()),
    }  # fmt: skip


def timed(task: Callable[[], Array]) -> tuple[Array, float]:
    """What a task gives, and the least of a few times, in seconds."""
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < PATIENCE:
        start = time.perf_counter()
        answer = task()
        times.append(time.perf_counter() - start)
    return answer, min(times)


# --- one process after the other -------------------------------------------------------------------------------------


def apart(cell: Cell, limit: float | None = None) -> dict[str, Any]:
    """`measure` in a process of its own, which has so many seconds once it is warm."""
    call = [sys.executable, "-W", "ignore", __file__, "--cell", json.dumps(cell)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(call, start_new_session=True, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            first = process.stdout.readline()  # "ready"
            said = first + process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            return {"more_than": limit}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with its workers
        if process.returncode == 0:
            return json.loads(said.splitlines()[-1])
        errors.seek(0)
        return {"failed": " ".join([f"exit {process.returncode}:", *errors.read().splitlines()[-1:]])}


def fastest(name: str, shape: tuple[int, int], seed: int, rows: int, limit: float) -> dict[str, Any]:
    """The best of the ways to call a selector."""
    tried = [apart(Cell(name, way, shape, seed, rows), limit) for way in range(len(PEERS[name].ways))]
    best = min(tried, key=lambda took: took.get("seconds", float("inf")))
    return {"peer": name, "table": shape, "rows": rows, **best}


def rows_of(name: str, shape: tuple[int, int], seed: int, limit: float) -> list[dict[str, Any]]:
    """What a selector takes on a table, and on a quarter of its rows where all of them take too long."""
    rows = [fastest(name, shape, seed, shape[0], limit)]
    if "more_than" in rows[0] and PEERS[name].quadratic:
        rows.append(fastest(name, shape, seed, shape[0] // 4, limit))
    return rows


def installed(peer: Peer) -> str | None:
    """The first of its distributions that is there, with its version."""
    for package in peer.packages:
        try:
            return f"{package} {belief.__version__ if package == 'belief-fs' else version(package)}"
        except PackageNotFoundError:
            pass
    return None


def compute(options: argparse.Namespace) -> None:
    """Measure all, or those that are asked for beside the figures of the others; write the file after each selector."""
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
        fastest(name, TINY, options.seed, TINY[0], options.limit)  # what is compiled once and kept on disk is there now
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
    """The place of a selector in the tables."""
    return list(PEERS).index(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to see that it runs")
    parser.add_argument("--only", default="", help="how the names of the selectors begin, with commas")
    parser.add_argument("--limit", type=float, default=250, help="seconds after which a selector is stopped")
    parser.add_argument("--seed", type=int, default=0, help="of the tables")
    parser.add_argument("--draw", action="store_true", help="show the last run again, without measuring")
    parser.add_argument("--json", type=Path, help="where the figures go; benchmarks/peers.json if not --quick")
    parser.add_argument("--cell", type=lambda text: Cell(*json.loads(text)), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(options.cell)))
        return
    options.json = options.json or HOME / "benchmarks" / ("peers-quick.json" if options.quick else "peers.json")
    if unknown := [word for word in options.only.split(",") if not any(name.startswith(word) for name in PEERS)]:
        parser.error(f"--only: no selector's name begins with {unknown[0]!r}; there are: {'; '.join(PEERS)}.")
    if options.draw and not options.json.exists():
        parser.error(f"--draw: there is no {options.json}; run without --draw first, or name the file with --json.")
    if not options.draw:
        compute(options)
    kept = json.loads(options.json.read_text())
    print(markdown(kept))
    if not options.quick:
        publish(PAGE, "peers", markdown(kept))
        draw(kept, HOME / "docs" / "pictures" / "peers.svg")


if __name__ == "__main__":
    main()
