"""
A file larger than memory
=========================

A Parquet file is read in blocks, so the memory does not depend on its size. ``working_memory`` limits the memory of the
search, here to 64 MiB; the reader and the libraries need memory in addition. In total, the process needs less memory
than the size of the file.
"""

# %%
# The file has one million rows and 64 columns, of which the first eight are relevant. It is written in pieces.
import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import belief

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "large.parquet")
rng = np.random.default_rng(0)
names = [f"c{j}" for j in range(64)]


def piece(n=50_000):
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 64), np.float32)
    X[:, :8] += np.linspace(1.0, 0.4, 8, dtype=np.float32) * y[:, None]
    return pa.table({**dict(zip(names, X.T, strict=True)), "y": y})


first = piece()
with pq.ParquetWriter(path, first.schema) as file:
    file.write_table(first)
    for _ in range(19):
        file.write_table(piece())
print(f"{path.stat().st_size / 2**20:,.0f} MiB")

# %%
# A thread reads the memory of the process from /proc, ten times a second.
seen = []


def watch(stop):
    while not stop.is_set():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        seen.append((time.perf_counter(), pages * 4096 / 2**20))
        time.sleep(0.1)


belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=2)  # compile the kernels first
stop = threading.Event()
watcher = threading.Thread(target=watch, args=(stop,))
watcher.start()
result = belief.select(
    path, label="y", n_features_to_select=8, sample_size=500, working_memory=64, random_state=0
)  # fmt: skip
stop.set()
watcher.join()
print(sorted(result.selected_names, key=lambda name: int(name[1:])))

# %%
when, held = np.array(seen).T
print(f"at most {np.max(held - held[0]):,.0f} MiB more than before the run")
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(when - when[0], held - held[0], color="#17487a", label="memory, in addition to that before the run")
ax.axhline(path.stat().st_size / 2**20, color="#cc6a1f", label="the size of the file")
ax.set(xlabel="seconds", ylabel="MiB", ylim=(0, None))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
folder.cleanup()
