"""Measure how fast BELIEF reads files, and the memory and time that it needs for files larger than memory.

    python benchmarks/files.py [--only make,read,big,tables,demo] [--share 1.0] [--folder DIR]

`make` writes a Parquet file of 20,000,000 x 128 float32 values, about 10 GB, in which ten columns depend on the class.
The file stays in the folder, so it is written only once.

`read` compares our reader with that of pyarrow alone, on a Parquet file with a tenth of the rows and on a CSV file with
a hundredth of the rows. pyarrow is timed in two ways: for the same columns in batches of the same size, and with its
defaults. On the Parquet file, the streaming scan of polars is timed as well.

`big` runs `belief select` on the whole file in a separate process, with a sample of 500. It reports the time, the peak
memory, how often the file was opened, and how many bytes were read.

`tables` runs `belief.select` on 4 GB in a separate process. It reports the memory overhead, which is the peak during
the call minus the memory in use before it. The input is a Parquet file with row groups of 51 MB or 256 MB, passed as a
path, a polars LazyFrame or a DuckDB relation. If anndata is installed, the path of an AnnData file is measured as well:
1,000,000 x 1,000 dense, and 1,000,000 x 10,000 with 5 % non-zero values.

`demo` runs the command `belief demo`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from local import best
from page import shown
from pyarrow import csv, dataset, parquet

import belief
from belief.data.columns import ColumnSelection
from belief.data.stream import open_files

ROWS, COLUMNS, GROUP = 20_000_000, 128, 100_000
INFORMATIVE = [12 * j for j in range(10)]
TABLE_ROWS, KINDS = 8_000_000, ("Parquet path", "LazyFrame", "DuckDB relation")
REPEATS = 7  # both readers are timed in turn, so that other programs on the machine affect both
NAMES = [f"f{j}" for j in range(COLUMNS)]
SCHEMA = pa.schema([*((name, pa.float32()) for name in NAMES), ("y", pa.int8())])

# Runs the command and measures it from inside, because the peak memory that the system reports for a child process
# includes memory of its parent.
COMMAND = """
import json, sys
from belief import cli
from belief.data.readers import ColumnarFiles
opened, batches = [], ColumnarFiles.batches
ColumnarFiles.batches = lambda self, columns: (opened.append(1), batches(self, columns))[1]
code = cli.main(sys.argv[2:])
said = dict(line.split(":") for line in open("/proc/self/status"))
read = dict(line.split(":") for line in open("/proc/self/io"))
took = {"opened": len(opened), "peak_kb": int(said["VmHWM"].split()[0]), "bytes": int(read["rchar"])}
open(sys.argv[1], "w").write(json.dumps(took))
sys.exit(code)
"""


# Measures the memory overhead of belief.select: the peak during the call minus the memory in use before it. Pages of
# mapped files do not count, because the system can drop them.
SELECT = """
import json, sys, threading, time
import numpy as np
import belief
out, kind, file = sys.argv[1:]
if kind == "LazyFrame":
    import polars as pl
    X = pl.scan_parquet(file)
elif kind == "DuckDB relation":
    import duckdb
    X = duckdb.sql(f"SELECT * FROM '{file}'")
else:
    X = file

def used():
    said = dict(line.split(":") for line in open("/proc/self/status"))
    return int(said["RssAnon"].split()[0]) / 1e6

belief.select(np.random.default_rng(0).random((3000, 5)), np.arange(3000) % 2, 2)
before, peak, done = used(), [0.0], threading.Event()

def watch():
    while not done.wait(0.02):
        peak[0] = max(peak[0], used())

threading.Thread(target=watch).start()
result = belief.select(X, label="y", sample_size=500, random_state=0)
done.set()
took = {"overhead_gb": peak[0] - before, "selected": result.selected.tolist()}
open(out, "w").write(json.dumps(took))
"""


def tables(rows: int, seed: int = 0, group: int = GROUP) -> Iterator[pa.Table]:
    """Yield the row groups of a table of noise in which a few columns are shifted by class."""
    rng = np.random.default_rng(seed)
    for first in range(0, rows, group):
        m = min(group, rows - first)
        y = rng.integers(0, 2, m)
        X = rng.standard_normal((COLUMNS, m), dtype=np.float32)
        X[INFORMATIVE] += 0.5 * y
        yield pa.table([*X, y.astype(np.int8)], schema=SCHEMA)


def made(folder: Path, rows: int, ending: str = "parquet", group: int = GROUP) -> Path:
    """Return a file with this number of rows, and write it first if it does not exist."""
    file = folder / f"noise_{rows}_{group}.{ending}"
    if not file.exists():
        beside = file.with_suffix(".part")
        writer = (
            csv.CSVWriter(beside, SCHEMA)
            if ending == "csv"
            else parquet.ParquetWriter(beside, SCHEMA, use_dictionary=False)
        )
        with writer as out:
            for piece in tables(rows, group=group):
                out.write(piece)
        beside.rename(file)
    return file


def make(folder: Path, share: float) -> list[dict]:
    start = time.perf_counter()
    file = made(folder, int(ROWS * share))
    took, size = time.perf_counter() - start, file.stat().st_size / 1e9
    return [{"case": "make", "data": f"{int(ROWS * share):,} x {COLUMNS}, {size:.2f} GB", "seconds": took}]


def read(folder: Path, share: float) -> list[dict]:
    file = made(folder, int(ROWS * share) // 10)
    stream = open_files([file], ColumnSelection("y"))
    ours = counted(stream.later_pass)
    bare = counted(lambda: scan(file, batch_size=2**24 // (4 * COLUMNS), batch_readahead=1, fragment_readahead=1))
    fastest = counted(lambda: scan(file))
    streamed = counted(lambda: pl.scan_parquet(file).select(NAMES).collect_batches())
    rows = compared("read Parquet", file, ours, {
        "pyarrow's scan, same batches": (bare, "at most 1.3"),
        "pyarrow's scan, its defaults": (fastest, ""),
        "polars, streaming": (streamed, ""),
    })  # fmt: skip
    file = made(folder, int(ROWS * share) // 100, "csv")
    stream = open_files([file], ColumnSelection("y"))
    ours = counted(stream.later_pass)
    options = csv.ReadOptions(block_size=2**23), csv.ConvertOptions(include_columns=NAMES)
    bare = counted(lambda: csv.open_csv(file, read_options=options[0], convert_options=options[1]))
    fastest = counted(lambda: csv.open_csv(file))
    return rows + compared("read CSV", file, ours, {
        "pyarrow.csv.open_csv, same blocks": (bare, "at most 1.5"),
        "pyarrow.csv.open_csv, its defaults": (fastest, ""),
    })  # fmt: skip


def scan(file: Path, **options: int) -> Iterator[pa.RecordBatch]:
    return dataset.dataset(file).to_batches(columns=NAMES, **options)


def counted(items: Callable[[], Iterator]) -> Callable[[], int]:
    """Return a function that reads all batches and counts their rows."""
    return lambda: sum(item.shape[0] for item in items())


def compared(case: str, file: Path, ours: Callable[[], int], others: dict) -> list[dict]:
    """Time our reader against each of the other readers, and return one row for each of them."""
    assert len({task() for task, _ in others.values()} | {ours()}) == 1  # equal row counts; the file is now cached
    size = file.stat().st_size / 1e6
    rows = []
    for name, (task, wanted) in others.items():
        mine, theirs = (
            min(times) for times in zip(*((best(ours, 1), best(task, 1)) for _ in range(REPEATS)), strict=True)
        )
        rows.append(
            {
                "case": case, "data": f"{size:,.0f} MB: {size / mine:,.0f} MB/s", "seconds": mine, "against": name,
                "their_seconds": theirs, "ratio": mine / theirs, "wanted": wanted,
            }
        )  # fmt: skip
    return rows


def big(folder: Path, share: float) -> list[dict]:
    file = made(folder, int(ROWS * share))
    with tempfile.TemporaryDirectory() as beside:
        took, out = Path(beside) / "took.json", Path(beside) / "result.json"
        command = ["select", file, "--label", "y", "--sample-size", "500", "--seed", "0", "--out", out, "--quiet"]
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", COMMAND, took, *map(str, command)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        said, result = json.loads(took.read_text()), belief.Result.from_dict(json.loads(out.read_text()))
    size = file.stat().st_size
    return [
        {
            "case": "big", "data": f"{result.n_rows:,} x {COLUMNS}, {size / 1e9:.2f} GB, sample 500",
            "seconds": seconds, "peak_gb": said["peak_kb"] * 1024 / 1e9,
            "reads": f"{said['opened']}, {said['bytes'] / size:.2f} times its bytes",
            "recall": float(np.isin(INFORMATIVE, result.selected).mean()), **result.timings,
        }
    ]  # fmt: skip


def made_anndata(folder: Path, cells: int, genes: int, density: float = 1.0) -> Path:
    """Return an AnnData file of noise, with a dense or CSR matrix, and write it first if it does not exist."""
    import anndata
    import h5py
    import pandas as pd

    file = folder / f"cells_{cells}_{genes}.h5ad"
    if not file.exists():
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, cells)
        obs = pd.DataFrame({"y": y}, index=[f"c{i}" for i in range(cells)])
        var = pd.DataFrame(index=[f"g{j}" for j in range(genes)])
        beside = file.with_suffix(".part")
        anndata.AnnData(obs=obs, var=var).write_h5ad(beside)
        with h5py.File(beside, "a") as store:
            if "X" in store:
                del store["X"]
            (write_dense if density == 1 else write_csr)(store, rng, y, genes, density)
        beside.rename(file)
    return file


def write_dense(store: Any, rng: np.random.Generator, y: np.ndarray, genes: int, density: float) -> None:
    X = store.create_dataset("X", (len(y), genes), np.float32, chunks=(1000, genes))
    X.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    for a in range(0, len(y), 1000):
        rows = rng.standard_normal((min(1000, len(y) - a), genes), dtype=np.float32)
        rows[:, INFORMATIVE] += 0.5 * y[a : a + 1000, None]
        X[a : a + 1000] = rows


def write_csr(store: Any, rng: np.random.Generator, y: np.ndarray, genes: int, density: float) -> None:
    """Write a CSR matrix in which each row has one non-zero value in every block of `1 / density` consecutive genes.

    In the genes `INFORMATIVE`, values are non-zero more often if y is 1.
    """
    each, step = int(genes * density), round(1 / density)
    X = store.create_group("X")
    X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (len(y), genes)})
    X["indptr"] = np.arange(len(y) + 1, dtype=np.int64) * each
    data = X.create_dataset("data", (len(y) * each,), np.float32, chunks=(2**20,))
    indices = X.create_dataset("indices", (len(y) * each,), np.int32, chunks=(2**20,))
    for a in range(0, len(y), 10_000):
        of = y[a : a + 10_000]
        columns = rng.integers(0, step, (len(of), each), dtype=np.int32)
        for j in INFORMATIVE:
            chosen = rng.random(len(of)) < np.where(of == 1, 6, 1) * density
            columns[:, j // step] = np.where(chosen, j % step, columns[:, j // step])
        data[a * each : (a + len(of)) * each] = rng.exponential(size=len(of) * each).astype(np.float32)
        indices[a * each : (a + len(of)) * each] = (columns + step * np.arange(each, dtype=np.int32)).ravel()


def tables_outside(folder: Path, share: float) -> list[dict]:
    """Measure the memory overhead on tables outside memory, for each kind of input."""
    rows = []
    groups = {"51 MB": GROUP, "256 MB": 5 * GROUP}
    files = {name: made(folder, int(TABLE_ROWS * share), group=group) for name, group in groups.items()}
    given = [(kind, file, f"row groups of {name}") for name, file in files.items() for kind in KINDS]
    if find_spec("anndata"):
        cells = int(1_000_000 * share)
        given += [
            ("h5ad path", made_anndata(folder, cells, 1_000), "rows of 1,000 genes"),
            ("h5ad path", made_anndata(folder, cells, 10_000, 0.05), "sparse rows of 10,000 genes"),
        ]
    for kind, file, about in given:
        with tempfile.TemporaryDirectory() as beside:
            out = Path(beside, "took.json")
            subprocess.run([sys.executable, "-W", "ignore", "-c", SELECT, out, kind, file], check=True)
            said = json.loads(out.read_text())
        rows.append(
            {
                "case": "tables", "data": f"{kind}, {file.stat().st_size / 1e9:.2f} GB, {about}",
                "overhead_gb": said["overhead_gb"],
                "recall": float(np.isin(INFORMATIVE, said["selected"]).mean()),
            }
        )  # fmt: skip
    return rows


def demo(folder: Path, share: float) -> list[dict]:
    """Time `belief demo` in a new process, first with an empty cache of compiled kernels, and then again."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for case, wanted in (("demo, kernels to be compiled", "within 5 s"), ("demo, again", "within 2 s")):
            command = [Path(sys.executable).with_name("belief"), "demo"]
            start = time.perf_counter()
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=cache, env=environment)
            rows.append({"case": case, "seconds": time.perf_counter() - start, "wanted": wanted})
    return rows


CASES = {"make": make, "read": read, "big": big, "tables": tables_outside, "demo": demo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="cases to run, separated by commas")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the rows to use, for a trial run")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="folder for the files")
    options = parser.parse_args()
    belief.select(np.eye(40, 5, dtype=np.float32), np.arange(40) % 2, 2, n_neighbors=2)  # compiles or loads the kernels
    rows: list[dict] = []
    for name in options.only.split(","):
        rows += CASES[name](options.folder, options.share)
    print(shown("files", rows, options.share == 1))


if __name__ == "__main__":
    main()
