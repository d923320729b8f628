"""A model of the CPU seconds of each phase, fitted to runs of several sizes and checked against two others.

    python benchmarks/costs.py [--repeats 5] [--fit]

The runs are dense normal data (float32, two classes) and single-cell counts (CSR, eight classes), on one thread and
without significance tests. Each phase has a few terms, such as rows x columns, whose coefficients are at least 0 and
minimise the squared relative errors. The time of a phase is the least of the repeats. The runs go to costs.json and
the model to docs/benchmarks.md; --fit only fits it again to the runs in the file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from page import PAGE, as_data, commit, computed_at, digits, publish, table
from problems import single_cells
from scipy.optimize import nnls

import belief
from belief.engines.block.rounded import MAX_WIDTH
from belief.method import algorithm

K, FILE = 20, Path(__file__).with_suffix(".json")


class Size(NamedTuple):
    """Rows, columns, non-zeros of a row, queries and classes."""

    m: int
    F: int
    nnz: float
    s: int
    C: int


Terms = dict[str, Callable[[Size], float]]
M_F: Terms = {"mF": lambda x: x.m * x.F}
S_M_F: Terms = {"smF": lambda x: x.s * x.m * x.F}
QUERIES: Terms = {"s": lambda x: x.s}
NON_ZEROS: Terms = {"mz": lambda x: x.m * x.nnz}
PAIRS_F: Terms = {"skCF": lambda x: x.s * K * x.C * x.F}
PAIRS_NNZ: Terms = {"skCz": lambda x: x.s * K * x.C * x.nnz}
MODEL: dict[str, dict[str, Terms]] = {
    "dense": {"describe": M_F, "neighbours": M_F | S_M_F | QUERIES, "tally": PAIRS_F},
    "sparse": {"describe": NON_ZEROS, "neighbours": S_M_F | PAIRS_NNZ | NON_ZEROS, "tally": PAIRS_NNZ},
}
# rows, columns, share of non-zeros, queries; the model is checked against the last two
SIZES = {
    "dense": [
        (20_000, 100, 1.0, 1000), (80_000, 100, 1.0, 1000), (20_000, 400, 1.0, 1000), (80_000, 400, 1.0, 500),
        (40_000, 200, 1.0, 2000), (20_000, 200, 1.0, 4000), (60_000, 300, 1.0, 1500), (100_000, 250, 1.0, 2500),
    ],
    "sparse": [
        (4_000, 2_000, 0.05, 200), (16_000, 2_000, 0.05, 200), (4_000, 8_000, 0.05, 200), (8_000, 4_000, 0.1, 200),
        (8_000, 4_000, 0.03, 400), (4_000, 4_000, 0.05, 800), (12_000, 5_000, 0.05, 300), (20_000, 8_000, 0.05, 400),
    ],
}  # fmt: skip

# predictions for a cluster: 5,000 queries, two classes
LARGE = {"10⁹ x 10³": Size(10**9, 10**3, 1e3, 5000, 2), "10⁸ x 10⁵": Size(10**8, 10**5, 1e5, 5000, 2)}
EXECUTORS, CORES, READ_BYTES = 100, 400, 20e9  # per second, for all executors together
FLOAT32 = 1.91 * 2 / (200_000 * 500 * 2000)  # CPU seconds per multiplication: sgemm in the row `tall` of local.py


def make(kind: str, m: int, F: int, share: float) -> tuple[Any, np.ndarray, float, int]:
    """Return a table, its classes, the non-zeros of a row and the number of classes."""
    if kind == "sparse":
        problem = single_cells(m, F, share, block_rows=m)
        return problem.X[0], problem.y, problem.X[0].nnz / m, 8
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, m)
    X = rng.standard_normal((m, F), dtype=np.float32)
    X[:, :20] += 0.5 * y[:, None]
    return X, y, float(F), 2


def measure(X: Any, y: np.ndarray, s: int, repeats: int) -> dict[str, float]:
    """Return the least CPU seconds of each phase."""
    best: dict[str, float] = {}
    for _ in range(repeats):
        took: dict[str, float] = {}

        @contextmanager
        def timed(timings: dict, phase: object, name: str, detail: str = "", took: dict = took) -> Iterator[None]:
            start = process_time()
            yield
            took[name] = took.get(name, 0.0) + process_time() - start

        algorithm._timed = timed  # type: ignore[assignment]
        belief.select(X, y, 10, random_state=0, sample_size=s, n_neighbors=K, significance=None, n_jobs=1)
        best = {name: min(value, best.get(name, value)) for name, value in took.items()}
    return best


def run(repeats: int) -> dict[str, Any]:
    """Measure all sizes."""
    runs = []
    for kind, sizes in SIZES.items():
        for m, F, share, s in sizes:
            X, y, nnz, C = make(kind, m, F, share)
            measure(X, y, s, 1)  # compiles, or loads what is compiled
            took = measure(X, y, s, repeats)
            runs.append({"kind": kind, "size": Size(m, F, nnz, s, C), "cpu": {x: took[x] for x in MODEL[kind]}})
            print(runs[-1], flush=True)
    return {"runs": runs, "commit": commit()}


def fit(runs: list[dict[str, Any]], kind: str, phase: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of the terms, and measured over predicted seconds of the two sizes left out."""
    terms, mine = MODEL[kind][phase], [x for x in runs if x["kind"] == kind]
    A = np.array([[term(Size(*x["size"])) for term in terms.values()] for x in mine], float)
    seconds, unit = np.array([x["cpu"][phase] for x in mine]), A.max(axis=0)
    found = nnls(A[:-2] / unit / seconds[:-2, None], np.ones(len(A) - 2))[0] / unit
    return found, seconds[-2:] / (A[-2:] @ found)


def fitted(runs: list[dict[str, Any]]) -> str:
    """The model as a table."""
    lines = []
    for kind, phases in MODEL.items():
        for phase, terms in phases.items():
            found, ratios = fit(runs, kind, phase)
            parts = ([*f"{x:.1e}".split("e"), name] for x, name in zip(found, terms, strict=True) if x)
            model = " + ".join(rf"{x} \cdot 10^{{{int(power)}}} \, {name}" for x, power, name in parts)
            lines.append([kind, phase, f"${model}$", ", ".join(digits(float(x)) for x in ratios)])
    return table(["data", "phase", "CPU seconds", "measured / model, two other sizes"], lines)


def predicted(runs: list[dict[str, Any]]) -> str:
    """The predictions for large tables, as a table."""
    lines = []
    for name, x in LARGE.items():
        costs = [
            float(fit(runs, "dense", phase)[0] @ [term(x) for term in terms.values()])
            for phase, terms in MODEL["dense"].items()
        ]
        costs[1] = max(costs[1], FLOAT32 * x.s * x.m * x.F * (x.F > MAX_WIDTH))
        size = 4 * x.m * x.F / 1e12, 4 * x.s * x.F / 1e9, EXECUTORS * 36 * x.s * K * x.C / 1e9
        minutes = sum(costs) / CORES / 60, 4 * x.m * x.F / READ_BYTES / 60
        lines.append([name, *map(digits, costs), *map(digits, minutes), *map(digits, size)])
    head = [
        "data", *(f"{x}, CPU s" for x in MODEL["dense"]), f"minutes on {CORES} cores", "minutes per read",
        "to read, TB", "out to each executor, GB", "back from all, GB",
    ]  # fmt: skip
    return table(head, lines)


def markdown(found: dict[str, Any]) -> str:
    """What the page shows: the model, and a link to its predictions."""
    large = f"Predictions for two large tables: {as_data('cost of large tables', predicted(found['runs']))}."
    return "\n\n".join([fitted(found["runs"]), large, computed_at([found["commit"]])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fit", action="store_true", help="use the runs in the file")
    options = parser.parse_args()
    if not options.fit:
        FILE.write_text(json.dumps(run(options.repeats), indent=1))
    publish(PAGE, "costs", markdown(json.loads(FILE.read_text())))


if __name__ == "__main__":
    main()
