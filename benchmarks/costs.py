"""Fit a model of the CPU seconds of each phase to runs of several sizes, and check it on runs of other sizes.

    python benchmarks/costs.py [--repeats 5] [--only dense,wide] [--fit]

There are three kinds of data. "dense" and "wide" tables are normal data (float32, two classes). Their searches use
products of 8-bit integers (dense) or 16-bit integers (wide). "sparse" tables are single-cell counts (CSR, eight
classes). All runs use one thread, and the time of a phase is the shortest of the repeats.

The model of a phase is a sum of a few terms, such as rows x columns. Their coefficients are at least 0, and minimise
the squared relative errors. The significance tests have one model for all kinds of data, because they run on a small
table of integers in memory.

On a cluster, the search compares portions of the queries with small blocks of rows. Some of these blocks are searched
on this machine to check the model. The program writes the runs to costs.json, and publishes the model in
docs/benchmarks.md. With --only, it repeats only the runs for some kinds of data; with --fit, it only fits the model to
the runs in costs.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from page import PAGE, as_data, commit, computed_at, digits, publish, table
from problems import single_cells
from scipy.optimize import nnls

import belief
from belief.data.source import ArraySource
from belief.engines.block import block_engine, local_engine
from belief.engines.block.dense import MAX_WHOLE_ROW
from belief.engines.block.rounded import MAX_WIDTH
from belief.engines.resources import Resources
from belief.engines.spark.engine import ClusterEngine
from belief.engines.spark.staging import BLOCK_BYTES, MAX_SUMMARY_FEATURES
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.probe import FEATURES_PER_READ
from belief.method.protocols import Search, Visit
from belief.method.sampling import Sample
from belief.method.significance import Weigher

K, FILE = 20, Path(__file__).with_suffix(".json")


class Size(NamedTuple):
    """The size of a run: m rows, F columns, z non-zeros per row, s queries and C classes.

    The last four fields describe the significance tests; without tests, they are 0. The tests run n times, on the data
    and on shuffled data. Each run has up to R rounds, and each round searches for the neighbours of q queries among p
    rows.
    """

    m: int
    F: int
    z: float
    s: int
    C: int
    n: int = 0
    R: int = 0
    q: int = 0
    p: int = 0


Terms = dict[str, Callable[[Size], float]]
F: Terms = {"F": lambda x: x.F}
M_F: Terms = {"mF": lambda x: x.m * x.F}
LONG_ROWS: Terms = {f"mF (F > {MAX_WHOLE_ROW:,})": lambda x: x.m * x.F * (x.F > MAX_WHOLE_ROW)}
S_M_F: Terms = {"smF": lambda x: x.s * x.m * x.F}
QUERIES_F: Terms = {"sF": lambda x: x.s * x.F}
NON_ZEROS: Terms = {"mz": lambda x: x.m * x.z}
PAIRS: Terms = {"skC": lambda x: x.s * K * x.C}
PAIRS_F: Terms = {"skCF": lambda x: x.s * K * x.C * x.F}
PAIRS_NNZ: Terms = {"skCz": lambda x: x.s * K * x.C * x.z}
TESTS: Terms = {
    "nRqp": lambda x: x.n * x.R * x.q * x.p,
    "nqkCF": lambda x: x.n * x.q * K * x.C * x.F,
    "pF": lambda x: x.p * x.F,
}
DENSE = {"describe": M_F | F, "neighbours": M_F | S_M_F | QUERIES_F, "tally": PAIRS_F, "redundancy": PAIRS | F}
MODEL: dict[str, dict[str, Terms]] = {
    "dense": {**DENSE, "describe": M_F | LONG_ROWS},
    "wide": DENSE,
    "sparse": {
        "describe": NON_ZEROS | F, "neighbours": S_M_F | PAIRS_NNZ | NON_ZEROS, "tally": PAIRS_NNZ,
        "redundancy": PAIRS | F,
    },
    "all": {"significance": TESTS},
}  # fmt: skip
# phases whose time is the sum of several timings
PARTS = {"describe": ("describe", "sample"), "redundancy": ("redundancy", "explain")}
# rows, columns, share of non-zeros, queries; the last two sizes of each kind are used to check the model
SIZES = {
    "dense": [
        (20_000, 400, 1.0, 2000), (80_000, 200, 1.0, 2000), (40_000, 1000, 1.0, 1000), (20_000, 2000, 1.0, 1000),
        (100_000, 400, 1.0, 1000), (40_000, 400, 1.0, 4000), (100_000, 500, 1.0, 3000), (60_000, 1500, 1.0, 2000),
        (50_000, 800, 1.0, 3000), (90_000, 1200, 1.0, 1500),
    ],
    "wide": [
        (2_000, 20_000, 1.0, 500), (4_000, 20_000, 1.0, 500), (2_000, 40_000, 1.0, 500), (2_000, 20_000, 1.0, 1500),
        (2_000, 100_000, 1.0, 500), (4_000, 40_000, 1.0, 1000), (6_000, 30_000, 1.0, 2000),
        (5_000, 25_000, 1.0, 1500), (3_000, 60_000, 1.0, 1200),
    ],
    "sparse": [
        (4_000, 2_000, 0.05, 200), (16_000, 2_000, 0.05, 200), (4_000, 8_000, 0.05, 200), (8_000, 4_000, 0.1, 200),
        (8_000, 4_000, 0.03, 400), (4_000, 4_000, 0.05, 800), (12_000, 5_000, 0.05, 300), (20_000, 8_000, 0.05, 400),
    ],
}  # fmt: skip

# the tables for which costs on a cluster are predicted, with 5,000 queries and two classes
LARGE = {"10⁹ x 10³": Size(10**9, 10**3, 1e3, 5000, 2), "10⁸ x 10⁵": Size(10**8, 10**5, 1e5, 5000, 2)}
N_BLOCKS = {"10⁹ x 10³": 5, "10⁸ x 10⁵": 10}  # number of blocks that are searched to check the model
EXECUTORS, CORES, READ_BYTES = 100, 400, 20e9  # the cluster; all executors together read 20 GB/s
DRIVER_CORES = CORES // EXECUTORS


def make(kind: str, m: int, F: int, share: float) -> tuple[Any, np.ndarray, float, int]:
    """Return a table, the class of each row, the mean number of non-zeros per row, and the number of classes."""
    if kind == "sparse":
        problem = single_cells(m, F, share, block_rows=m)
        return problem.X[0], problem.y, problem.X[0].nnz / m, 8
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, m)
    X = rng.standard_normal((m, F), dtype=np.float32)
    X[:, :20] += 0.5 * y[:, None]
    return X, y, float(F), 2


@contextmanager
def cpu_clock() -> Any:
    """Make the package measure the CPU time of this process instead of elapsed time."""
    clock, time.perf_counter = time.perf_counter, time.process_time
    try:
        yield
    finally:
        time.perf_counter = clock


@contextmanager
def counted_searches() -> Any:
    """Yield a list that gets one entry each time the search of the significance tests is run.

    The tests run this search on the data and on shuffled data. The number of runs is the field n of `Size`.
    """
    rounds, seen = Weigher.rounds, []

    def count(self: Weigher, arrangement: Any) -> Any:
        seen.append(arrangement)
        return rounds(self, arrangement)

    Weigher.rounds = count  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Weigher.rounds = rounds  # type: ignore[method-assign]


def measure(X: Any, y: np.ndarray, s: int, significance: str | None, repeats: int) -> tuple[dict[str, float], Any]:
    """Fit a table several times; return the smallest CPU seconds of each phase, and the extent of significance tests.

    The extent is a list of the fields n, R, q and p of `Size`: the numbers of runs, rounds, queries and rows. Without
    tests, it is empty.
    """
    best: dict[str, float] = {}
    for _ in range(repeats):
        with cpu_clock(), counted_searches() as searches:
            how = {"random_state": 0, "sample_size": s, "n_neighbors": K, "n_jobs": 1}
            found = belief.select(X, y, 10, significance=significance, **how)
        best = {name: min(value, best.get(name, value)) for name, value in found.timings.items()}
        extent = found.probe
        tests = [len(searches), extent["rounds"], extent["queries"], extent["rows"]] if extent else []
    return best, tests


def run(kinds: list[str], repeats: int) -> list[dict[str, Any]]:
    """Measure all sizes of these kinds of data."""
    runs = []
    for kind in kinds:
        for m, F, share, s in SIZES[kind]:
            X, y, nnz, C = make(kind, m, F, share)
            if (m, F, share, s) == SIZES[kind][0]:
                measure(X, y, s, "permutation", 1)  # compile the kernels, or load them from the cache
            took, _ = measure(X, y, s, None, repeats)
            tested, tests = measure(X, y, s, "permutation", max(repeats // 2, 1))
            cpu = {x: sum(took[part] for part in PARTS.get(x, (x,))) for x in MODEL[kind]}
            cpu["significance"] = tested["significance"]
            size = Size(m, F, nnz, s, C, *tests)
            runs.append({"kind": kind, "size": size, "cpu": cpu, "commit": commit()})
            print(runs[-1], flush=True)
    return runs


# --- blocks of a cluster ---


def portions(x: Size) -> tuple[int, int]:
    """Return the number of queries that one job compares with all rows, and the number of rows per block."""
    row_bytes = 4 * x.F
    return min(x.s, max(1, ClusterEngine.query_bytes // row_bytes)), min(x.m, BLOCK_BYTES // row_bytes)


def blocks_size(x: Size, n_blocks: int) -> Size:
    """Return the size of a part of the search on a large table: the queries of one job and the rows of some blocks."""
    queries, height = portions(x)
    return x._replace(m=n_blocks * height, s=queries)


def measure_blocks(x: Size, repeats: int) -> float:
    """Search some blocks of a large table as an executor does; return the CPU seconds.

    The search starts with neighbours at distance 0, as if earlier blocks had nearer rows. On a large table, this is
    the case for nearly all blocks.
    """
    X, y, _, _ = make("dense", x.m, x.F, 1.0)
    targets, discrete, height = y.astype(np.int32), np.zeros(x.F, bool), portions(x)[1]
    with local_engine(X, np.arange(x.C), targets, discrete, Resources(1)) as engine:
        difference = Difference.from_summary(engine.describe(), discrete, "std")
    sample = Sample.draw(np.arange(len(X)), targets, np.array([x.s]), 0)
    queries, search, took = ArraySource(X[sample.row]), Search(K, x.C, 0), []
    for _ in range(repeats):
        found, ready = Neighbours.zero(x.s, x.C, K), {}
        found.d2[:] = 0.0
        start = time.process_time()
        for first in range(0, len(X), height):
            rows = slice(first, first + height)
            with block_engine(X[rows], targets[rows], discrete, Resources(1)) as block:
                found = block.nearest(sample, difference, search, Visit(queries, first, found, ready))
        took.append(time.process_time() - start)
    return min(took)


def search_seconds(runs: list[dict[str, Any]], x: Size) -> float:
    """Return the CPU seconds that the model predicts for the search on a cluster.

    Each job embeds all rows once, and embeds its queries again for each block.
    """
    (of_rows, per_product, _), _ = fit(runs, kind_of(x), "neighbours")
    queries, height = portions(x)
    jobs = -(-x.s // queries)
    return float(of_rows * jobs * x.m * x.F * (1 + queries / height) + per_product * x.s * x.m * x.F)


# --- the model ---


def kind_of(x: Size) -> str:
    return "wide" if x.F > MAX_WIDTH else "dense"


def fit(runs: list[dict[str, Any]], kind: str, phase: str) -> tuple[np.ndarray, np.ndarray]:
    """Fit the model of a phase to all but the last two sizes of each kind of data.

    Return the coefficients of the terms, and the ratio of measured to predicted seconds for each size left out.
    """
    terms = MODEL[kind][phase]
    known: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for each in SIZES if kind == "all" else [kind]:
        mine = [x for x in runs if x["kind"] == each]
        known, others = known + mine[:-2], others + mine[-2:]
    mine = known + others
    A = np.array([[term(Size(*x["size"])) for term in terms.values()] for x in mine], float)
    seconds, unit, n = np.array([x["cpu"][phase] for x in mine]), A.max(axis=0), len(known)
    found = nnls(A[:n] / unit / seconds[:n, None], np.ones(n))[0] / unit
    return found, seconds[n:] / (A[n:] @ found)


def fitted(runs: list[dict[str, Any]]) -> str:
    """Return the model as a table."""
    lines = []
    for kind, phases in MODEL.items():
        for phase, terms in phases.items():
            found, ratios = fit(runs, kind, phase)
            model = " + ".join(f"{x:.1e} {name}" for x, name in zip(found, terms, strict=True) if x)
            lines.append([kind, phase, model, ", ".join(digits(float(x)) for x in ratios)])
    return table(["data", "phase", "CPU seconds", "measured / model, other sizes"], lines)


def count_passes(x: Size) -> tuple[int, int]:
    """Return how many passes over all rows a run on a cluster needs, and how many more for the significance tests.

    The first number is without the tests, and the second is a lower bound. The queries are compared in portions, one
    portion per job. Each portion needs two passes: one fetches the queries, and one compares them with all rows.
    """
    queries, _ = portions(x)
    # four passes to stage, choose the sample, gather the neighbours and fetch rows for the explanation; for wide
    # tables, one more to describe them
    others = 4 + (x.F > MAX_SUMMARY_FEATURES)
    of_probe = 1 if 4 * x.p * x.F <= ClusterEngine.query_bytes else -(-x.F // FEATURES_PER_READ)
    return others + 2 * -(-x.s // queries), of_probe


def predict(runs: list[dict[str, Any]], x: Size) -> tuple[Size, dict[str, float]]:
    """Predict the CPU seconds of each phase on a large table; return the completed size, and these seconds.

    The last four fields of `x`, which describe the significance tests, are still 0. They are replaced by those of the
    measured run on a smaller table with the same number of columns.
    """
    kind = kind_of(x)
    small = next(Size(*each["size"]) for each in runs if each["kind"] == kind and each["size"][1] == x.F)
    x = x._replace(**{name: getattr(small, name) for name in ("n", "R", "q", "p")})
    phases = [(kind, phase) for phase in MODEL[kind]] + [("all", "significance")]
    costs = {
        phase: float(fit(runs, of, phase)[0] @ [term(x) for term in MODEL[of][phase].values()]) for of, phase in phases
    }
    return x, {**costs, "neighbours": search_seconds(runs, x)}


def predicted(runs: list[dict[str, Any]]) -> str:
    """Return the predictions for large tables as a table."""
    lines = []
    for name, large in LARGE.items():
        x, costs = predict(runs, large)
        tests = costs["significance"]
        minutes = (sum(costs.values()) - tests) / CORES / 60, tests / DRIVER_CORES / 60
        size = (
            4 * x.m * x.F / 1e12,
            4 * x.s * x.F / 1e9,
            4 * x.s * K * x.C * x.F / 1e9,
            EXECUTORS * 36 * x.s * K * x.C / 1e9,
        )
        per_pass, passes = 4 * x.m * x.F / READ_BYTES / 60, count_passes(x)
        reading = [f"{passes[0]}", digits(passes[0] * per_pass), f"{passes[1]}", digits(passes[1] * per_pass)]
        lines.append([name, *map(digits, [*costs.values(), *minutes]), *reading, *map(digits, size)])
    head = [
        "data", *(f"{x}, CPU s" for x in costs), f"computing on {CORES} cores, minutes",
        f"tests on {DRIVER_CORES} cores of the driver, minutes", "passes without tests", "reading for them, minutes",
        "more passes for tests", "reading for those, minutes", "rows, TB", "queries, to each executor, GB",
        "neighbours to gather, GB", "distances back from all, GB",
    ]  # fmt: skip
    return table(head, lines)


def markdown(found: dict[str, Any]) -> str:
    """Return the text for docs/benchmarks.md, with the tables of the model and of its predictions."""
    runs = found["runs"]
    in_blocks = [each["cpu"] / search_seconds(runs, Size(*each["size"])) for each in found["blocks"]]
    ratios = ["in blocks", "neighbours", "as above, for the blocks of a cluster", ", ".join(map(digits, in_blocks))]
    model = as_data("cost model", f"{fitted(runs)}\n| {' | '.join(ratios)} |")
    large = as_data("cost of large tables", predicted(runs))
    commits = [each["commit"] for each in [*runs, *found["blocks"]]]
    return f"Figures: {model}, and predictions: {large}. {computed_at(commits)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default=",".join([*SIZES, "blocks"]), help="kinds of data, separated by commas")
    parser.add_argument("--fit", action="store_true", help="only fit the model to the runs in costs.json")
    options = parser.parse_args()
    kinds = [] if options.fit else options.only.split(",")
    kept = json.loads(FILE.read_text()) if FILE.exists() else {"runs": [], "blocks": []}
    if "blocks" in kinds:
        kinds.remove("blocks")
        sizes = [blocks_size(x, N_BLOCKS[name]) for name, x in LARGE.items()]
        kept["blocks"] = [{"size": x, "cpu": measure_blocks(x, options.repeats), "commit": commit()} for x in sizes]
    measured = run(kinds, options.repeats)
    runs = [x for x in kept["runs"] if x["kind"] not in kinds] + measured
    kept["runs"] = sorted(runs, key=lambda x: [*SIZES].index(x["kind"]))
    if kinds or not options.fit:
        FILE.write_text(json.dumps(kept, indent=1))
    publish(PAGE, "costs", markdown(kept))


if __name__ == "__main__":
    main()
