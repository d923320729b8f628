"""Compare the GPU engine with the bare matrix product and with all CPU cores, and time it at the size of ECBDL14.

    python benchmarks/gpu.py [--only product,ecbdl14,cores,same] [--share 1.0]

`product` has 65,536 queries x 4,194,304 rows x 631 features and two classes, made on the device and stored in fp16,
with k = 10. It compares the time of the search, and of the whole fit with the redundancy measure "agreement", with that
of the bare fp16 product of the same shapes. `ecbdl14` makes 65 million x 631 values on the device and samples 1 % of
the rows. `cores` fits 200,000 x 500 values in host memory with a sample of 2,000, on the GPU and on all CPU cores. The
time on the GPU includes the copy to the device. `same` counts how many of 20 random tables have the same selection and
weights (to 1e-9) on the CPU and on the GPU. `--share` uses this fraction of the rows and queries, for a trial run.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import belief
from belief._utils.threads import count_threads
from belief.api import run_engine
from belief.engines.block.gpu import GpuEngine
from belief.engines.block.stored import TensorSource
from belief.engines.resources import Resources
from belief.method.difference import Difference
from belief.method.protocols import Search
from belief.method.sampling import sample_quota
from belief.method.settings import Settings
from belief.method.targets import make_class_target
from belief.progress import Reporter

FEATURES, PADDED, INFORMATIVE = 631, 640, 10
CASES = ("product", "ecbdl14", "cores", "same")


def clock(task: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds and the result of a task. The device is idle before and after it."""
    _idle()
    start = time.perf_counter()
    out = task()
    _idle()
    return time.perf_counter() - start, out


def _idle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def fastest(task: Callable[[], Any], repeats: int = 2) -> tuple[float, Any]:
    return min((clock(task) for _ in range(repeats)), key=lambda x: x[0])


def made(m: int, device: str) -> tuple[torch.Tensor, np.ndarray]:
    """Return noise in fp16, with a few features shifted in one of two classes, and the class labels."""
    torch.manual_seed(0)
    X = torch.empty(m, FEATURES, dtype=torch.float16, device=device)
    label = torch.rand(m, device=device) < 0.5
    for part, of in zip(X.split(2**20), label.split(2**20), strict=True):
        values = torch.randn(part.shape, device=device)
        values[:, :INFORMATIVE] += 0.5 * of[:, None]
        part.copy_(values)
    return X, label.cpu().numpy().astype(np.int32)


def engine_of(X: torch.Tensor, labels: np.ndarray) -> GpuEngine:
    source, discrete = TensorSource(X), np.zeros(X.shape[1], bool)
    engine = GpuEngine(source, labels, discrete, Resources(), device=str(X.device))
    engine.target = make_class_target(np.arange(2), labels)
    return engine


def fit(X: torch.Tensor, labels: np.ndarray, s: int) -> belief.Result:
    """Run the whole fit, as `belief.select` does, but on rows that are already on the device."""
    chosen = Settings(n_features_to_select=INFORMATIVE, n_neighbors=10, sample_size=s, random_state=0)
    with Reporter(None, bar=False) as reporter, engine_of(X, labels) as engine:
        return run_engine(engine, chosen, lambda: None, 1024, reporter)


def bare(Q: torch.Tensor, X: torch.Tensor, height: int = 32768) -> None:
    """Multiply the queries with all rows, one block of rows at a time, and overwrite the same buffer."""
    out = torch.empty(len(Q), height, dtype=torch.float16, device=Q.device)
    for x in X.split(height):
        torch.mm(Q, x.T, out=out[:, : len(x)])


def product(share: float, device: str) -> list[dict[str, Any]]:
    s, m = int(65_536 * share), int(4_194_304 * share)
    X, labels = made(m, device)
    with engine_of(X, labels) as engine:
        difference = Difference.from_summary(engine.describe(), np.zeros(FEATURES, bool), "standard")
        sample = engine.sample(sample_quota("balanced", s, engine.target.counts), 0).in_order("balanced", s)
        asked = Search(10, 2, 0)
        engine.nearest(sample.part(slice(0, 1000)), difference, asked)  # compiles before the timed runs
        search, found = fastest(lambda: engine.nearest(sample, difference, asked))
        right = _check(X, labels, difference, sample.row, found)
    fit(X[: m // 16], labels[: m // 16], max(s // 16, 64))
    whole, result = fastest(lambda: fit(X, labels, s))
    points = torch.zeros(m, PADDED, dtype=torch.float16, device=device)
    points[:, :FEATURES] = X
    Q = points[torch.tensor(sample.row, device=device)]
    bare(Q, points[:65536])
    against, _ = fastest(lambda: bare(Q, points), 3)
    data = f"{s:,} queries x {m:,} x {FEATURES}"
    rate = 2 * s * m * PADDED / against / 1e12
    print(f"bare {rate:.0f} TFLOP/s; lists that are right: {right}; {_told(result)}", flush=True)
    rows = [("search", search, "at most 1.3"), ("whole fit", whole, "at most 1.6")]
    return [_row(case, data, took, "bare fp16 product", against, took / against, want) for case, took, want in rows]


def _check(
    X: torch.Tensor, labels: np.ndarray, difference: Difference, rows: np.ndarray, found: Any, n: int = 8
) -> str:
    """Return how many neighbour lists of n queries equal those from float64 distances, as text such as "16 of 16"."""
    same, per_unit = 0, torch.tensor(difference.per_unit, device=X.device)
    where = [torch.tensor(np.flatnonzero(labels == g), device=X.device) for g in range(2)]
    for q in np.linspace(0, len(rows) - 1, n).astype(int):
        for g, ids in enumerate(where):
            d2 = torch.cat([((X[part].double() - X[rows[q]]) * per_unit).square().sum(1) for part in ids.split(2**18)])
            d2[ids == rows[q]] = torch.inf
            nearest = set(ids[torch.topk(d2, found.row.shape[2], largest=False)[1]].tolist())
            same += nearest == set(found.row[q, g].tolist())
    return f"{same} of {2 * n}"


def _told(result: belief.Result) -> str:
    parts = ", ".join(f"{name} {took:.3f}" for name, took in result.timings.items())
    return f"selected {sorted(result.selected.tolist())}; {parts}"


def ecbdl14(share: float, device: str) -> list[dict[str, Any]]:
    m = int(65_000_000 * share)
    X, labels = made(m, device)
    took, result = clock(lambda: fit(X, labels, m // 100))
    print(_told(result), flush=True)
    return [_row("ecbdl14-like", f"{m:,} x {FEATURES}, sample 1 %", took, "", None, None, "at most 130 s")]


def cores(share: float, device: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    m, s = int(200_000 * share), int(2_000 * share)
    y = rng.integers(0, 2, m)
    X = rng.standard_normal((m, 500), dtype=np.float32)
    X[:, :INFORMATIVE] += 0.5 * y[:, None]
    took, searched = {}, {}
    for name in ("cpu", device):
        task = partial(belief.select, X, y, 10, sample_size=s, random_state=0, device=name)
        task()  # compiles before the timed runs
        took[name], result = fastest(task, 3)
        searched[name] = result.timings["describe"] + result.timings["neighbours"]  # describe includes the copy
        print(name, _told(result), flush=True)
    data, against = f"{m:,} x 500, sample {s:,}", f"{count_threads(None)} CPU cores"
    each = [("cores, whole fit", took), ("cores, copy, describe and search", searched)]
    wanted = "at least 10 times as fast"
    return [_row(case, data, t[device], against, t["cpu"], t["cpu"] / t[device], wanted) for case, t in each]


def same(share: float, device: str) -> list[dict[str, Any]]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from random_tables import table

    alike, farthest, start = 0, 0.0, time.perf_counter()
    for seed in range(20):
        X, discrete, labels = table(seed)
        how = {"discrete_features": discrete, "n_neighbors": 7, "sample_size": 200, "random_state": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            cpu, mine = (belief.select(X, labels, 0.5, device=name, **how) for name in ("cpu", device))
        off = np.abs(mine.weights - cpu.weights).max() / np.abs(cpu.weights).max()
        farthest = max(farthest, float(off))
        alike += off < 1e-9 and mine.selected.tolist() == cpu.selected.tolist()
    said = f"{alike} of 20 the same, w to {farthest:.0e}"
    return [_row(said, "20 random tables", time.perf_counter() - start, "the CPU engine", None, None, "all, w to 1e-9")]


def _row(
    case: str, data: str, seconds: float, against: str, theirs: float | None, ratio: float | None, wanted: str
) -> dict[str, Any]:
    return {
        "case": case, "data": data, "seconds": seconds, "against": against, "their_seconds": theirs, "ratio": ratio,
        "wanted": wanted,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="cases to run, separated by commas")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the rows and queries, for a trial run")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this benchmark needs an NVIDIA GPU")
    rows: list[dict[str, Any]] = []
    for case in options.only.split(","):
        found = globals()[case](options.share, "cuda")
        print(*found, sep="\n", flush=True)
        rows += found
        torch.cuda.empty_cache()
    name = torch.cuda.get_device_name()
    from page import shown

    print(f"{name}, torch {torch.__version__}\n")
    print(shown("gpu", rows, whole=options.share == 1.0))


if __name__ == "__main__":
    main()
