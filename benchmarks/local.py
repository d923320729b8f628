"""Measure the speed of the local engine, mostly as ratios of two times from the same run on the same machine.

    python benchmarks/local.py [--quick] [--only tall,wide,...]

The program prints tables. Without --quick, it also writes the figures to local.json, and publishes the tables in
docs/benchmarks.md. If a package to compare with is not installed, its row only says so. scikit-rebate is timed
only once, because it takes minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from page import shown
from threadpoolctl import threadpool_limits

import belief
from belief.engines import block
from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.method.difference import Difference
from belief.method.protocols import Search
from belief.method.sampling import Sample

REPEATS, SMALL_REPEATS = 3, 300


def best(task: Callable[[], object], repeats: int = REPEATS) -> float:
    """Run a task several times; return the shortest time in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def table(m: int, F: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of normal noise whose first 20 columns are shifted by class, and the class of each row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, m)
    X = rng.standard_normal((m, F), dtype=np.float32)
    X[:, :20] += 0.5 * y[:, None]
    return X, y


class Peak:
    """A context manager whose `gb` is the peak memory of this process in GB, minus its memory at the start."""

    def __enter__(self) -> Peak:
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._start = self._most = self._rss()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.gb = (self._most - self._start) / 1e9

    def _rss(self) -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * self._page

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self._most = max(self._most, self._rss())


def fit(X: object, y: object, n: int, **settings: object) -> belief.Result:
    """Fit without significance tests, unless `settings` turns them on, as the case "significance" does."""
    return belief.select(X, y, n, random_state=0, **{"significance": None, **settings})


def tall(rows: list[dict], quick: bool) -> None:
    m = 20_000 if quick else 200_000
    X, y = table(m, 500, 2)
    Q = X[:2000].copy()
    out = np.empty((2000, m), np.float32)
    ours = best(lambda: fit(X, y, 10, sample_size=2000))
    with Peak() as peak:
        fit(X, y, 10, sample_size=2000)
    plain = best(lambda: fit(X, y, 10, sample_size=2000, redundancy=None))
    sgemm = best(lambda: np.matmul(Q, X.T, out=out))
    rows.append(
        row("tall", f"{m:,} x 500, sample 2,000", ours, "bare sgemm", sgemm, ours / sgemm, "at most 1.5", peak.gb)
    )
    rows.append(row("mCR", f"{m:,} x 500, sample 2,000", ours, "without mCR", plain, ours / plain, "at most 1.15"))


def wide(rows: list[dict], quick: bool) -> None:
    F = 23_000 if quick else 230_000
    X, y = table(2350, F, 3)
    ours = best(lambda: fit(X, y, 50, sample_size=2350))
    with Peak() as peak:
        fit(X, y, 50, sample_size=2350)
    Y, out = X.copy(), np.empty((2350, 2350), np.float32)  # a copy, because numpy computes only half of X @ X.T
    sgemm = best(lambda: np.matmul(Y, X.T, out=out))
    rows.append(
        row("wide", f"2,350 x {F:,}, all rows", ours, "bare sgemm", sgemm, ours / sgemm, "at most 1.8", peak.gb)
    )


def significance(rows: list[dict], quick: bool) -> None:
    """Compare the times of fits with and without significance tests.

    With tests, the neighbour search may use fewer columns.
    """
    limits = {(300, 20): "", (1_000, 50): "at most 0.4 s", (5_000, 500): "", (200_000, 500): "at most 1.4"}
    limits[2_350, 230_000] = "at most 1.3"
    for (m, F), limit in limits.items():
        if quick and m * F > 10**6:
            continue
        X, y = table(m, F, 2)
        some, repeats = min(m, 5_000), 2 if m * F > 10**8 else REPEATS
        ours, theirs = (
            best(partial(fit, X, y, 10, sample_size=some, significance=x), repeats) for x in ("permutation", None)
        )
        rows.append(row("significance", f"{m:,} x {F:,}", ours, "fit without tests", theirs, ours / theirs, limit))


def peers(rows: list[dict], quick: bool) -> None:
    for m, F in ((5_000, 500), (20_000, 200)):
        m = m // 5 if quick else m
        X, y = table(m, F, 2)
        ours = best(partial(fit, X, y, 10, sample_size=m))
        with_10 = best(partial(fit, X, y, 10, sample_size=m, n_neighbors=10))  # as in the other packages
        name = f"{m:,} x {F}, all rows"
        fast_select(rows, name, X, y, ours, with_10)
        rebate(rows, name, X, y, ours)


def fast_select(rows: list[dict], name: str, X: np.ndarray, y: np.ndarray, ours: float, with_10: float) -> None:
    theirs = time_fast_select(X, y)
    if theirs is None:
        rows.append(absent("peers", name, "fast-select"))
        return
    for what, seconds in ((name, ours), (f"{name}, 10 neighbours", with_10)):
        ratio, said = theirs / seconds, "at least 4 times as fast"
        rows.append(row("peers", what, seconds, "fast-select ReliefF", theirs, ratio, said))


def small(rows: list[dict], quick: bool) -> None:
    """Time fits of small tables, which take milliseconds, with 10 neighbours as in fast-select."""
    for m, F, wanted in ((300, 20, "within 4 ms"), (1_000, 50, "at most 1")):
        X, y = table(m, F, 2)
        ours = best(partial(fit, X, y, 10, n_neighbors=10), SMALL_REPEATS)
        theirs = time_fast_select(X, y, SMALL_REPEATS)
        if theirs is None:
            rows.append(absent("small", f"{m:,} x {F}", "fast-select"))
            continue
        rows.append(
            row(
                "small",
                f"{m:,} x {F}, all rows, 10 neighbours",
                ours,
                "fast-select ReliefF",
                theirs,
                ours / theirs,
                wanted,
            )
        )


def phases(rows: list[dict], quick: bool) -> None:
    """Measure the milliseconds of each phase, in the fastest of several fits of each table."""
    for m, F, k in ((300, 20, 10), (1_000, 50, 10), (5_000, 500, 10), (20_000, 200, 20)):
        m = m // 5 if quick and m > 1_000 else m
        X, y = table(m, F, 2)
        repeats = SMALL_REPEATS if m <= 1_000 else 3 * REPEATS
        timings = (fit(X, y, 10, n_neighbors=k, sample_size=m).timings for _ in range(repeats))
        fastest = min(timings, key=lambda x: sum(x.values()))
        rows.append(
            {"case": "phases", "data": f"{m:,} x {F}", **{f"{name}_ms": 1e3 * x for name, x in fastest.items()}}
        )


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "normal": lambda rng, m, F: rng.standard_normal((m, F)),
    "normal with 20 factors": lambda rng, m, F: (
        rng.standard_normal((m, 20)) @ rng.standard_normal((20, F)) + rng.standard_normal((m, F))
    ),
    "t with 3 degrees of freedom": lambda rng, m, F: rng.standard_t(3, (m, F)),
    "lognormal": lambda rng, m, F: rng.lognormal(size=(m, F)),
    "zero-inflated counts": lambda rng, m, F: rng.poisson(3.0, (m, F)) * (rng.random((m, F)) < 0.2),
    "binary": lambda rng, m, F: rng.integers(0, 2, (m, F)),
}
SEARCHES = (  # distribution, rows, columns, queries, neighbours from each of the two classes
    ("normal", 60_000, 500, 1_000, 10),
    *((name, 30_000, 500, 1_000, 10) for name in [*DISTRIBUTIONS][1:5]),
    ("binary", 30_000, 200, 1_000, 10),
    ("normal", 30_000, 3_000, 1_000, 10),
    ("normal", 30_000, 50, 1_000, 10),
    ("normal", 20_000, 200, 20_000, 10),
    ("normal", 20_000, 200, 20_000, 20),
    ("normal", 5_000, 500, 5_000, 20),
    ("normal", 2_350, 10_000, 2_350, 10),
)


def products(rows: list[dict], quick: bool) -> None:
    """Compare the CPU time of neighbour searches with that of the matrix product of queries and rows.

    Each search is timed in float32 and with products of integers.
    """
    for name, m, F, s, k in SEARCHES:
        m, s = (m // 10, s // 10) if quick else (m, s)
        rng = np.random.default_rng(0)
        X, y = DISTRIBUTIONS[name](rng, m, F).astype(np.float32), rng.integers(0, 2, m).astype(np.int32)
        discrete, sample = np.zeros(F, bool), Sample.draw(np.arange(m), y, np.array([s]), 0)
        searches = []
        for instructions in ("float32", "auto"):
            engine = local_engine(X, np.arange(2), y, discrete, Resources(1, instructions=instructions))
            with engine:
                difference = Difference.from_summary(engine.describe(), discrete, "std")
            searches.append((engine, partial(engine.nearest, sample, difference, Search(k, 2, 0))))
        times = []
        for _ in range(REPEATS):
            took = []
            for engine, search in searches:
                with engine:
                    took.append(cpu_seconds(search))
            with threadpool_limits(1):
                took.append(cpu_seconds(partial(np.matmul, X[sample.row], X.T)))
            times.append(took)
        in_float32, in_integers, sgemm = np.min(times, axis=0).tolist()
        what = f"{name}, {m:,} x {F:,}, {'all' if s == m else f'{s:,}'} queries, k = {k}"
        found = {"float32_ratio": in_float32 / sgemm, "integer_ratio": in_integers / sgemm}
        rows.append({"case": "products", "data": what, **found})


def numba(rows: list[dict], quick: bool) -> None:
    """Compare the CPU seconds of fits on one thread: with compiled kernels, and with plain numpy as in small tables."""
    is_small = block.is_small
    for m, F in ((1_000, 20), (5_000, 100), (10_000, 50), (20_000, 50)):
        X, y = table(m // 5 if quick else m, F, 2)
        times = []
        for _ in range(REPEATS):
            took = []
            for answer in (False, True):
                block.is_small = lambda source, resources, answer=answer: answer
                took.append(cpu_seconds(partial(fit, X, y, 10, n_jobs=1)))
            times.append(took)
        compiled, plain = np.min(times, axis=0).tolist()
        rows.append({"case": "numba", "data": f"{len(X):,} x {F}", "numba_cpu": compiled, "numpy_cpu": plain})
    block.is_small = is_small


def cpu_seconds(task: Callable[[], object]) -> float:
    """Run a task; return the CPU time of this process in seconds."""
    start = time.process_time()
    task()
    return time.process_time() - start


def time_fast_select(X: np.ndarray, y: np.ndarray, repeats: int = REPEATS) -> float | None:
    """Return the seconds that fast-select takes after compilation, or None if it is not installed."""
    try:
        from fast_select import ReliefF
    except ImportError:
        return None
    model = ReliefF(n_features_to_select=10, n_neighbors=10, backend="cpu", n_jobs=-1)
    model.fit(X[:200], y[:200])
    return best(lambda: model.fit(X, y), repeats)


def rebate(rows: list[dict], name: str, X: np.ndarray, y: np.ndarray, ours: float) -> None:
    try:
        from skrebate import ReliefF
    except ImportError:
        rows.append(absent("peers", name, "scikit-rebate"))
        return
    model = ReliefF(n_features_to_select=10, n_neighbors=10, n_jobs=-1)
    theirs = best(lambda: model.fit(X.astype(float), y), 1)
    said = "at least 150 times as fast"
    rows.append(row("peers", name, ours, "scikit-rebate ReliefF", theirs, theirs / ours, said))


def ties(rows: list[dict], quick: bool) -> None:
    home = Path(os.environ.get("BELIEF_DATA", Path(__file__).parents[2] / "shared" / "data"))
    file = home / "large_slices" / "kddcup_10K.csv"
    if not file.exists():
        rows.append(absent("ties", "kddcup_10K", f"the file {file.name} (set BELIEF_DATA)"))
        return
    import pandas as pd

    X = pd.read_csv(file, header=None)
    y = X.pop(X.columns[-1]).to_numpy()
    X.columns = [f"c{j}" for j in X.columns]
    noise = np.random.default_rng(0).standard_normal(X.shape, dtype=np.float32)
    ours, other = best(lambda: fit(X, y, 10)), best(lambda: fit(noise, y, 10))
    rows.append(row("ties", "kddcup_10K, 10,000 x 41", ours, "random data", other, ours / other, "at most 3"))


def row(
    case: str, what: str, ours: float, against: str, theirs: float, ratio: float, wanted: str, gb: float | None = None
) -> dict:
    return {
        "case": case, "data": what, "seconds": ours, "against": against, "their_seconds": theirs, "ratio": ratio,
        "wanted": wanted, "peak_gb": gb,
    }  # fmt: skip


def absent(case: str, what: str, name: str) -> dict:
    return {"case": case, "data": what, "against": f"{name}: not installed, left out"}


def startup(rows: list[dict], quick: bool) -> None:
    """Time new Python processes that import belief, or that also fit a small table.

    Each program runs once before it is timed, so that compiled files are in the cache.
    """
    data = "import numpy as np; rng = np.random.default_rng(0); X = rng.random((150, 5)); y = rng.integers(0, 3, 150); "
    for what, code, limit in (
        ("import belief", "import belief", "under 1"),
        ("belief.select", data + "import belief; belief.select(X, y, 2)", "within 2"),
        ("BeliefSelector.fit", data + "from belief import BeliefSelector; BeliefSelector(2).fit(X, y)", "within 2"),
    ):
        subprocess.run([sys.executable, "-c", code], check=True)
        ours = best(partial(subprocess.run, [sys.executable, "-c", code], check=True))
        bare = best(partial(subprocess.run, [sys.executable, "-c", "import numpy"], check=True))
        rows.append(row("start", what, ours, "import numpy", bare, ours / bare, f"{limit} s"))


CASES = {
    "tall": tall,
    "wide": wide,
    "significance": significance,
    "peers": peers,
    "small": small,
    "ties": ties,
    "startup": startup,
    "phases": phases,
    "products": products,
    "numba": numba,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use smaller tables, and write no files")
    parser.add_argument("--only", default=",".join(CASES), help="cases to run, separated by commas")
    options = parser.parse_args()
    fit(*table(300, 20, 2), 5)  # compile the kernels, or load them from the cache, before anything is timed
    rows: list[dict] = []
    for name in options.only.split(","):
        CASES[name](rows, options.quick)
    print(shown("local", rows, not options.quick))


if __name__ == "__main__":
    main()
