"""Measure how fast BELIEF is on sparse data: against scipy's matrix product, at full size, and as the data grows.

    python benchmarks/sparse.py [--only product,libsvm,url,kddb,cells,growth] [--share 1.0]

`product` compares the whole fit of 200,000 x 1,000,000 values (50 non-zeros per row, 500 queries) with scipy's CSR
product of the same queries and rows. `libsvm` compares the reading of a text file with scikit-learn's parser. `url` and
`kddb` fit data like the paper's two largest data sets, at full size or a fraction of it. They report the memory
overhead, and the share of the 20 strongest columns among the first 50 selected. `cells` reports the CPU seconds for a
single-cell table in CSR format and, if anndata is installed, as AnnData. `growth` reports the time of each phase as the
number of rows, the number of non-zeros per row, and the sample size grow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from local import Peak, best
from page import shown
from problems import SparseProblem, kddb_like, single_cells, url_like
from scipy.sparse import csr_matrix, vstack

import belief
from belief.data.libsvm import load_libsvm


def fit(problem: SparseProblem, n: int, **settings: object) -> belief.Result:
    return belief.select(problem.X, problem.y, n, random_state=0, **settings)


def product(share: float) -> list[dict]:
    rows, columns = int(200_000 * share), int(1_000_000 * share)
    problem = kddb_like(rows, columns, 50, positive=0.5, block_rows=rows)
    X = problem.X[0]
    Q = X[np.sort(np.random.default_rng(0).choice(rows, 500, replace=False))]
    ours = best(lambda: fit(problem, 10, sample_size=500))
    transposed = X.T.tocsr()
    scipy = best(lambda: Q @ transposed)
    return [
        {
            "case": "product", "data": f"{rows:,} x {columns:,}, 50 a row, 500 queries", "seconds": ours,
            "against": "scipy's product", "their_seconds": scipy, "ratio": ours / scipy, "wanted": "at most 0.8",
        }
    ]  # fmt: skip


def libsvm(share: float) -> list[dict]:
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    problem = url_like(int(60_000 * share), 1_000_000, 60, n_real=20, n_informative=20)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.svm"
        dump_svmlight_file(vstack(problem.X, format="csr"), problem.y, str(file))
        load_libsvm(file)  # compiles or loads the kernels
        ours, theirs = best(lambda: load_libsvm(file)), best(lambda: load_svmlight_file(str(file)))
        size = file.stat().st_size / 1e6
    return [
        {
            "case": "libsvm", "data": f"{size:.0f} MB of text: {size / ours:.0f} MB/s", "seconds": ours,
            "against": f"scikit-learn, {size / theirs:.0f} MB/s", "their_seconds": theirs, "ratio": ours / theirs,
        }
    ]  # fmt: skip


def large(name: str, make: object, rows: int, sample: int, share: float) -> list[dict]:
    """Measure the time, memory overhead and recall of one fit of generated data."""
    problem = make(int(rows * share))  # type: ignore[operator]
    size = sum(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes for X in problem.X)
    start = time.perf_counter()
    with Peak() as peak:
        result = fit(problem, 50, sample_size=sample)
    took = time.perf_counter() - start
    found = np.isin(problem.informative[:20], result.selected).mean()
    m, F = result.n_rows, len(result.weights)
    return [
        {
            "case": name, "data": f"{m:,} x {F:,}, sample {sample:,}", "seconds": took,
            "matrix_gb": size / 1e9, "peak_gb": peak.gb, "recall": found, **result.timings,
        }
    ]  # fmt: skip


def cells(share: float) -> list[dict]:
    n = int(100_000 * share)
    problem = single_cells(n, 30_000, 0.05, block_rows=n)
    X, rows = problem.X[0], []
    tables = {"CSR": lambda: belief.select(X, problem.y, 100, random_state=0)}
    if find_spec("anndata"):
        sys.path.remove(str(Path(__file__).parent))  # otherwise dask would import this file as the package `sparse`
        import anndata
        import pandas as pd

        obs = pd.DataFrame({"type": pd.Categorical(problem.y)}, index=[f"cell{i}" for i in range(n)])
        adata = anndata.AnnData(csr_matrix(X), obs=obs)
        tables["AnnData"] = lambda: belief.select(adata, label="type", n_features_to_select=100, random_state=0)
    for kind, select in tables.items():
        start, cpu = time.perf_counter(), time.process_time()
        with Peak() as peak:
            result = select()
        rows.append(
            {
                "case": "cells", "data": f"{n:,} x 30,000, 5 %, 100 features, {kind}",
                "seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu,
                "matrix_gb": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e9, "peak_gb": peak.gb,
                **result.timings,
            }
        )  # fmt: skip
    return rows


def growth(share: float) -> list[dict]:
    base = {"rows": int(400_000 * share), "nnz": 60.0, "sample": 400}
    rows = []
    for what, values in {"rows": (0.25, 0.5, 1.0), "nnz": (0.25, 0.5, 1.0), "sample": (0.25, 0.5, 1.0)}.items():
        for part in values:
            size = {**base, what: base[what] * part}
            problem = url_like(int(size["rows"]), 1_000_000, size["nnz"] + 20, n_real=20)
            timings = min((fit(problem, 50, sample_size=int(size["sample"])).timings for _ in range(2)), key=total)
            rows.append({"case": f"growth with {what}", "data": describe(size), "seconds": total(timings), **timings})
    return rows


def total(timings: dict) -> float:
    return sum(timings.values())


def describe(size: dict) -> str:
    return f"{int(size['rows']):,} x 1,000,000, {size['nnz'] + 20:.0f} a row, sample {int(size['sample'])}"


CASES = {
    "product": product,
    "libsvm": libsvm,
    "url": lambda share: large("url-like", url_like, 1_916_904, 1000, share),
    "kddb": lambda share: large("kddb-like", kddb_like, 19_264_097, 200, share),
    "cells": cells,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="cases to run, separated by commas")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the rows to use, for a trial run")
    options = parser.parse_args()
    fit(kddb_like(2000, 5000, 10), 5)  # compiles or loads the kernels
    rows: list[dict] = []
    for name in options.only.split(","):
        rows += CASES[name](options.share)
        print(f"# {name}", file=sys.stderr)
    print(shown("sparse", rows, options.share == 1))


if __name__ == "__main__":
    main()
