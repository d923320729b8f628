"""Compare approximate indexes of neighbours with the exact search: CPU time, recall, and the error of the weights.

    python benchmarks/approximate.py [--rows 50000] [--columns 100] [--queries 2000]

For each index and its settings, the table shows the CPU seconds to build it (one index per class) and to query it. The
first line of each data set is the exact search of `belief`. The recall is the share of the exact neighbours found. The
table also shows the error of the ReliefF weights computed from the approximate neighbours, in standard errors: its mean
over the features with an effect (bias), and its standard deviation over all features (spread). Indexes of libraries
that are not installed (faiss-cpu, pynndescent) are left out. The first data set is normal, with 20 columns whose means
differ between the classes. In the second, 20 common factors also make the columns correlated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
from page import digits

from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.method.difference import Difference
from belief.method.protocols import Search

K, REPEATS = 20, 2
Query = Callable[[np.ndarray], np.ndarray]  # returns the positions of the K + 1 nearest rows of each query


def measure(task: Callable[[], object]) -> tuple[float, object]:
    """Return the least CPU seconds of a few runs, and the result of the last."""
    best, result = np.inf, None
    for _ in range(REPEATS):
        start = time.process_time()
        result = task()
        best = min(best, time.process_time() - start)
    return best, result


def table(m: int, F: int, factors: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised values, and two classes between which the means of 20 columns differ.

    With `factors`, the columns are correlated.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, m).astype(np.int32)
    X = rng.standard_normal((m, F), dtype=np.float32)
    if factors:
        X += rng.standard_normal((m, 20), dtype=np.float32) @ rng.standard_normal((20, F), dtype=np.float32)
    X[:, :20] += 0.5 * y[:, None]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def exact(X: np.ndarray, y: np.ndarray, queries: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the CPU seconds of the exact search, and the row numbers of the neighbours (queries, classes, K).

    The function overwrites `queries` with the rows that it samples as queries.
    """
    discrete = np.zeros(X.shape[1], bool)
    with local_engine(X, np.arange(2), y, discrete, Resources()) as engine:
        difference = Difference.from_summary(engine.describe(), discrete, "standard")
        sample = engine.sample(np.array([len(queries)]), 0)
        seconds, found = measure(lambda: engine.nearest(sample, difference, Search(K, 2, 0)))
    queries[:] = sample.row
    return seconds, found.row  # type: ignore[attr-defined]


def indexes(F: int) -> Iterator[tuple[str, Callable[[np.ndarray], Query]]]:
    """Yield the name of each index, and a function that builds it from an array of rows."""
    yield "IVF, k-means of scikit-learn, 8 of 128 lists", lambda X: _inverted_lists(X, 128, 8)
    if find_spec("faiss"):
        for probes in (8, 32):
            yield f"IVF, faiss, {probes} of 128 lists", lambda X, probes=probes: _faiss_lists(X, 128, probes)
        for effort in (64, 256):
            yield f"HNSW, faiss, M = 16, efSearch = {effort}", lambda X, effort=effort: _faiss_graph(X, effort)
    if find_spec("pynndescent"):
        yield "NN-descent, pynndescent", _descent


def _inverted_lists(X: np.ndarray, n_lists: int, probes: int) -> Query:
    from sklearn.cluster import MiniBatchKMeans

    centre = MiniBatchKMeans(n_lists, batch_size=4096, n_init=1, max_iter=5, random_state=0).fit(X)
    lists = [np.flatnonzero(centre.labels_ == i) for i in range(n_lists)]
    norm = (X**2).sum(axis=1)

    def query(Q: np.ndarray) -> np.ndarray:
        near = np.argpartition(centre.transform(Q), probes, axis=1)[:, :probes]
        out = np.full((len(Q), K + 1), -1)
        for i, chosen in enumerate(near):
            rows = np.concatenate([lists[c] for c in chosen])
            d2 = norm[rows] - 2 * X[rows] @ Q[i]
            out[i, : min(K + 1, len(rows))] = rows[np.argsort(d2)[: K + 1]]
        return out

    return query


def _faiss_lists(X: np.ndarray, n_lists: int, probes: int) -> Query:
    import faiss

    faiss.omp_set_num_threads(1)  # idle threads of faiss spin, which would count as CPU time
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_lists)
    index.train(X)
    index.add(X)
    index.nprobe = probes
    return lambda Q: index.search(Q, K + 1)[1]


def _faiss_graph(X: np.ndarray, effort: int) -> Query:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efConstruction = 80
    index.add(X)
    index.hnsw.efSearch = effort
    return lambda Q: index.search(Q, K + 1)[1]


def _descent(X: np.ndarray) -> Query:
    from pynndescent import NNDescent

    index = NNDescent(X, n_neighbors=30, random_state=0)
    index.prepare()
    return lambda Q: index.query(Q, k=K + 1)[0]


def weights(X: np.ndarray, y: np.ndarray, queries: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ReliefF weights for two classes, computed from the neighbours found, and their standard errors."""
    terms = np.zeros((len(queries), X.shape[1]))
    for i, q in enumerate(queries):
        mean = [np.abs(X[rows[rows >= 0]] - X[q]).mean(axis=0) for rows in found[i]]
        terms[i] = mean[1 - y[q]] - mean[y[q]]
    return terms.mean(axis=0), terms.std(axis=0) / np.sqrt(len(queries))


def search_approximately(
    build: Callable[[np.ndarray], Query], X: np.ndarray, y: np.ndarray, queries: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Return the CPU seconds to build one index per class, the CPU seconds to query them, and the neighbours."""
    building, querying, found = 0.0, 0.0, np.full((len(queries), 2, K), -1)
    for c in range(2):
        rows = np.flatnonzero(y == c)
        part = np.ascontiguousarray(X[rows])
        start = time.process_time()
        query = build(part)
        building += time.process_time() - start
        start = time.process_time()
        positions = query(X[queries])
        querying += time.process_time() - start
        near = np.where(positions >= 0, rows[positions], -1)
        for i, q in enumerate(queries):
            others = near[i][near[i] != q][:K]
            found[i, c, : len(others)] = others
    return building, querying, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 50_000), ("columns", 100), ("queries", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--data", default="normal,20 factors")
    options = parser.parse_args()
    print("| data | index | build, CPU s | query, CPU s | recall | bias, se | spread, se |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.data.split(","):
        X, y = table(options.rows, options.columns, name != "normal")
        queries = np.zeros(options.queries, np.int64)
        seconds, right = exact(X, y, queries)
        w, se = weights(X, y, queries, right)
        print(f"| {name} | exact | 0 | {digits(seconds)} | 1 | 0 | 0 |", flush=True)
        for what, build in indexes(options.columns):
            building, querying, found = search_approximately(build, X, y, queries)
            recall = np.mean(
                [
                    len(np.intersect1d(a, b)) / K
                    for a, b in zip(*(x.reshape(-1, K) for x in (found, right)), strict=True)
                ]
            )
            error = (weights(X, y, queries, found)[0] - w) / se
            figures = building, querying, recall, error[:20].mean(), error.std()
            print(
                f"| {name} | {what} | "
                + " | ".join(digits(abs(x)) if x >= 0 else f"-{digits(-x)}" for x in figures)
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
