"""Measure fits on Spark, local[2], in a warm session: their time, the driver's memory and the network traffic.

    python benchmarks/spark.py [--only handover,layouts,small,partitions,driver,bytes] [--share 1.0]

`handover` measures how fast the rows of a table of 200,000 x 500 reach Python in different ways, without processing
them.

`layouts` compares a fit of that table, with a sample of 2,000 rows and including staging, with the local engine on the
same data. The fits take turns. CPU time is also measured, because it depends less on the load of the machine.

`small` fits 20,000 x 500 with a sample of a tenth of the rows. On a similar machine, the authors' Scala code takes 25 s
for this table, with a search over 2.5 % of the rows.

`partitions` fits 200,000 x 500 doubles in 2 to 64 partitions, and a small table in up to 500 partitions.

`driver` measures the peak memory of the driver's Python process for growing numbers of rows.

`bytes` measures the data sent to and returned by the executors in each phase.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from local import Peak, best
from page import shown

import belief
from belief.engines.spark.executors import FileBlocks
from belief.engines.spark.frame import open_frame
from belief.engines.spark.session import staging_settings
from belief.method.settings import Settings
from belief.spark.frames import select_frame

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from spark_sessions import start_session

PAPER_SECONDS = 25  # time of the authors' Scala code with local[2], on two cores
F = 500  # columns


def part_of(t: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return part `t` of a table, with this number of rows, and the class of each row.

    The first 20 columns are shifted by class. The part number is the random seed.
    """
    rng = np.random.default_rng(t)
    y = rng.integers(0, 2, rows)
    X = rng.standard_normal((rows, F))
    X[:, :20] += 0.5 * y[:, None]
    return X, y


def frame(spark: Any, m: int, partitions: int, parts: int = 64) -> Any:
    """Return a persisted DataFrame of vectors. Its rows do not depend on the number of partitions."""
    from pyspark.ml.functions import array_to_vector

    rows = m // parts

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for t in batch.column(0).to_pylist():
                X, y = part_of(t, rows)
                start = pa.array(np.arange(0, X.size + 1, F), pa.int32())
                values = pa.ListArray.from_arrays(start, pa.array(X.ravel()))
                yield pa.record_batch([values, pa.array(y)], names=["a", "label"])

    made = spark.range(0, parts, 1, partitions).mapInArrow(make, "a array<double>, label long")
    df = made.select(array_to_vector("a").alias("features"), "label").persist()
    df.count()
    return df


def fit(df: Any, **chosen: Any) -> belief.Result:
    settings = Settings(n_features_to_select=20, random_state=0, **chosen)
    return select_frame(df, features="features", label="label", settings=settings)


# --- layouts and hand-over ---


def written(m: int, folder: Path) -> tuple[str, str]:
    """Write a table of m rows to two Parquet files, in float32; return their paths.

    The first file has one column of arrays, and the second has plain columns.
    """
    import pyarrow as pa
    from pyarrow import parquet

    parts = [part_of(t, m // 64) for t in range(64)]
    X = np.concatenate([x for x, _ in parts]).astype(np.float32)
    y = np.concatenate([c for _, c in parts])
    starts = pa.array(np.arange(0, X.size + 1, F), pa.int32())
    arrays = pa.table({"features": pa.ListArray.from_arrays(starts, pa.array(X.ravel())), "label": y})
    plain = pa.table({**{f"x{j}": X[:, j] for j in range(F)}, "label": y})
    for name, rows in (("arrays", arrays), ("plain", plain)):
        parquet.write_table(rows, folder / f"{name}.parquet", row_group_size=12_500)
    return str(folder / "arrays.parquet"), str(folder / "plain.parquet")


def of_arrays(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a Parquet file with a column of arrays; return the features and the labels."""
    from pyarrow import parquet

    rows = parquet.read_table(path).combine_chunks()
    return rows["features"].chunk(0).flatten().to_numpy().reshape(-1, F), rows["label"].to_numpy()


def persisted_vectors(spark: Any, path: str) -> Any:
    from pyspark.ml.functions import array_to_vector

    df = spark.read.parquet(path)
    df = df.select(array_to_vector(df.features.cast("array<double>")).alias("features"), "label").persist()
    df.count()
    return df


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all its descendants: the JVM and the Python workers."""
    me, known = str(os.getpid()), {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            head, _, tail = stat.read_text().rpartition(")")
            words = tail.split()
            known[head.split()[0]] = words[1], sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")

    def is_ours(pid: str) -> bool:
        while pid in known and pid != me:
            pid = known[pid][0]
        return pid == me

    return sum(seconds for pid, (_, seconds) in known.items() if is_ours(pid))


def in_turn(
    tasks: dict[str, Callable[[], object]], repeats: int = 3, warm_up: int = 1
) -> dict[str, tuple[float, float]]:
    """Return the shortest time and the smallest CPU time of each task, in seconds.

    The tasks take turns, so that changes in the load of the machine affect all of them.
    """
    least = dict.fromkeys(tasks, (np.inf, np.inf))
    for turn in range(warm_up + repeats):
        for name, task in tasks.items():
            cpu, start = cpu_seconds(), time.perf_counter()
            task()
            took = time.perf_counter() - start, cpu_seconds() - cpu
            if turn >= warm_up:
                least[name] = tuple(map(min, least[name], took))
    return least


def layouts(spark: Any, share: float) -> list[dict]:
    """Compare a fit on Spark from each layout with the local engine on the same data."""
    m = int(200_000 * share) // 64 * 64
    chosen = {"n_features_to_select": 20, "random_state": 0, "sample_size": 2000}
    settings = Settings(**chosen)
    found: dict[str, belief.Result] = {}
    with tempfile.TemporaryDirectory() as folder:
        arrays, plain = written(m, Path(folder))
        vectors, names = persisted_vectors(spark, arrays), [f"x{j}" for j in range(F)]

        def on_spark(name: str, df: Callable[[], Any], features: Any) -> Callable[[], None]:
            def fit() -> None:
                found[name] = select_frame(df(), features=features, label="label", settings=settings)

            return fit

        def locally() -> None:
            found["local arrays"] = belief.select(*of_arrays(arrays), **chosen)

        took = in_turn({
            "local arrays": locally,
            "local plain": lambda: found.update({"local plain": belief.select(plain, label="label", **chosen)}),
            "arrays": on_spark("arrays", lambda: spark.read.parquet(arrays), "features"),
            "plain": on_spark("plain", lambda: spark.read.parquet(plain), names),
            "vectors": on_spark("vectors", lambda: vectors, "features"),
        }, warm_up=3)  # fmt: skip
        vectors.unpersist()
    for name in ("plain", "arrays", "vectors"):
        np.testing.assert_allclose(found[name].weights, found["local arrays"].weights, rtol=1e-9, atol=1e-12)
    about = {"arrays": ("Parquet of array<float>", "local arrays", 1.3), "plain": ("Parquet of float columns",
             "local plain", 1.3), "vectors": ("persisted VectorUDT of those floats", "local arrays", 1.8)}  # fmt: skip
    return [
        {"case": "layouts", "data": f"{m:,} x {F}, sample 2,000, {said}", "seconds": took[name][0],
         "against": "the local engine on the same file", "their_seconds": took[theirs][0],
         "ratio": took[name][0] / took[theirs][0], "wanted": f"at most {wanted}", "cpu": took[name][1],
         "their_cpu": took[theirs][1], "cpu_ratio": took[name][1] / took[theirs][1], **found[name].timings}
        for name, (said, theirs, wanted) in about.items()
    ]  # fmt: skip


def handover(spark: Any, share: float) -> list[dict]:
    """Measure how fast rows reach Python in each way, in MB of float32 per second, without processing them."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions

    m = int(200_000 * share) // 64 * 64
    with tempfile.TemporaryDirectory() as folder:
        arrays, plain = written(m, Path(folder))
        vectors, held = persisted_vectors(spark, arrays), spark.read.parquet(arrays).persist()
        columns = spark.read.parquet(plain).persist()
        held.count(), columns.count()
        names = [f"x{j}" for j in range(F)]
        ways = {
            "Parquet of array<float>, by pyarrow": open_frame(spark.read.parquet(arrays), "features", "label", "auto"),
            "Parquet of float columns, by pyarrow": open_frame(spark.read.parquet(plain), names, "label", "auto"),
            "Parquet of array<float>, by Spark": spark.read.parquet(arrays),
            "Parquet of float columns, by Spark": spark.read.parquet(plain),
            "persisted array<float>": held,
            "persisted VectorUDT": open_frame(vectors, "features", "label", "auto"),
            "persisted VectorUDT, vector_to_array(float32)":
                vectors.select(vector_to_array("features", "float32").alias("v"), "label"),
            "persisted float columns": columns,
            "persisted float columns, as array(...)": columns.select(functions.array(*names).alias("v"), "label"),
        }  # fmt: skip

        def handed(way: Any) -> Callable[[], None]:
            files = getattr(getattr(way, "reader", None), "files", None)

            def counted(batches: Iterator[Any]) -> Iterator[Any]:
                import pyarrow as pa

                yield pa.record_batch([[sum(map(len, files(batches) if files else batches))]], names=["rows"])

            def run() -> None:
                assert sum(x.rows for x in getattr(way, "df", way).mapInArrow(counted, "rows long").collect()) == m

            return run

        with staging_settings(spark, F):
            took = in_turn({name: handed(way) for name, way in ways.items()}, 2)
        for df in (vectors, held, columns):
            df.unpersist()
    return [
        {"case": "hand-over", "data": f"{m:,} x {F}, {name}", "seconds": seconds, "cpu": cpu,
         "speed": 4e-6 * m * F / seconds, "cpu_speed": 4e-6 * m * F / cpu}
        for name, (seconds, cpu) in took.items()
    ]  # fmt: skip


def small(spark: Any, share: float) -> list[dict]:
    m = int(20_000 * share) // 64 * 64
    df = frame(spark, m, 4)
    fit(df, sample_size=100)
    seconds = best(lambda: fit(df, sample_size=0.1))
    df.unpersist()
    return [
        {"case": "small", "data": f"{m:,} x {F}, a tenth sampled", "seconds": seconds, "their_seconds": PAPER_SECONDS,
         "against": "the authors' code over ours", "ratio": PAPER_SECONDS / seconds, "wanted": "at least 5"}
    ]  # fmt: skip


def partitions(spark: Any, share: float) -> list[dict]:
    """Time fits of a large table in 2 to 64 partitions, and of a small one in 2 to 500."""
    out = []
    for m, sample, counts, wanted in (
        (int(200_000 * share) // 64 * 64, 2000, (2, 8, 64), "at most 1.2"),
        (int(5_000 * max(share, 0.1)) // 500 * 500, 500, (2, 64, 500), "at most 1.5"),
    ):
        frames = {n: frame(spark, m, n, max(counts)) for n in counts}
        took = in_turn({str(n): partial(fit, df, sample_size=sample) for n, df in frames.items()}, warm_up=2)
        for df in frames.values():
            df.unpersist()
        out += [
            {"case": "partitions", "data": f"{m:,} x {F}, sample {sample:,}, in {n} partitions",
             "seconds": took[str(n)][0], "against": "2 partitions", "ratio": took[str(n)][0] / took["2"][0],
             "wanted": wanted, "cpu": took[str(n)][1], "cpu_ratio": took[str(n)][1] / took["2"][1]}
            for n in counts
        ]  # fmt: skip
    return out


def driver(spark: Any, share: float) -> list[dict]:
    rows = []
    for m in (int(50_000 * share), int(100_000 * share), int(200_000 * share)):
        df = frame(spark, m // 64 * 64, 4)
        fit(df, sample_size=100)
        with Peak() as peak:
            fit(df, sample_size=1000)
        rows.append({"case": "driver", "data": f"{m:,} x {F}, sample 1,000", "peak_gb": peak.gb})
        df.unpersist()
    return rows


def moved(spark: Any, share: float) -> list[dict]:
    """Measure the megabytes sent to each task and returned by all tasks together, in each phase."""
    m = int(50_000 * share) // 64 * 64
    df = frame(spark, m, 4)
    seen: dict[str, list[int]] = {}
    run = FileBlocks.run

    def weighed(self: FileBlocks, job: Any, size: int, what: str) -> Any:
        out, back = seen.get(what, [0, 0])
        back += sum(len(row.data) for row in self.answers(job).collect())
        seen[what] = [out + len(pickle.dumps(job)), back]
        return run(self, job, size, what)

    FileBlocks.run = weighed  # type: ignore[method-assign]
    try:
        result = fit(df, sample_size=1000, n_neighbors=10)
    finally:
        FileBlocks.run = run  # type: ignore[method-assign]
    df.unpersist()
    about = f"{m:,} x {F}, {8 * m * F / 1e6:.0f} MB, s = {result.sample_size:,}, {result.n_pairs:,} pairs"
    return [
        {"case": f"bytes, {what}", "data": about, "out": out / 1e6, "back": back / 1e6}
        for what, (out, back) in seen.items()
    ]


BENCHMARKS: dict[str, Callable[[Any, float], list[dict]]] = {
    "handover": handover, "layouts": layouts, "small": small, "partitions": partitions, "driver": driver,
    "bytes": moved,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(BENCHMARKS))
    parser.add_argument("--share", type=float, default=1.0, help="share of the full number of rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # Java's default options, as users have them, not those of the tests
    spark = start_session(**{"spark.driver.memory": "6g", "spark.driver.extraJavaOptions": ""})
    rows = []
    for name in options.only.split(","):
        began = time.perf_counter()
        rows += BENCHMARKS[name](spark, options.share)
        print(f"# {name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    spark.stop()
    print(shown("spark", rows, options.share == 1))


if __name__ == "__main__":
    main()
