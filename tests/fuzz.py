"""Fuzzers: damaged files, malformed tables, the same table passed in many ways, and signals at random moments.

Each case has its own seed, which is printed if the case fails:

    python tests/fuzz.py                       # all kinds, one hour in total, with new seeds
    python tests/fuzz.py files --cases 5000    # one kind
    python tests/fuzz.py files --seed 17 --cases 1

A case fails if a signal ends its process, if it takes more than a minute, if it raises anything other than an error
with a clear one-line message, or if the same table gives different results. Cases run in child processes, so that a
crash does not end the other cases. The minute is CPU time, so that a busy machine does not make cases fail; a case that
hangs is ended after ten minutes.
"""

import argparse
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

SECONDS_PER_CASE, SECONDS_OF_SILENCE = 60, 600  # CPU time of a case, and wall time without output
CLEAR = (ValueError, OSError)  # errors that bad input may raise; a damaged file may also raise a MemoryError


def select(*args, **options):
    import belief

    return belief.select(*args, **{"n_features_to_select": 2, "random_state": 0, **options})


def check_is_clear(error, name=None):
    """Check that an error message is one line without internals, and that it names the file or the argument."""
    text = str(error)
    assert type(error) in {ValueError, FileNotFoundError} or "belief" in type(error).__module__, repr(error)
    assert text, repr(error)
    assert "\n" not in text, text
    assert len(text) < 2000, f"{len(text)} characters"
    assert not re.search(r" at 0x[0-9a-f]|Traceback|/arrow/|cpp/src", text), text
    assert name is None or name in text or re.match("(Input )?(y|X|[Cc]olumn|n_|The)", text), text


# --- damaged files ---


def small_table(rng, n=60):
    y = np.repeat([0, 1], n // 2)
    X = np.round(rng.normal(size=(n, 3)) + y[:, None] * [2, 0, 0], 3)
    return X, y, [["red", "green", "blue"][i % 3] for i in range(n)]


def arrow_table(rng):
    import pyarrow as pa

    X, y, text = small_table(rng)
    columns = {"a": X[:, 0], "b": X[:, 1], "n": np.arange(60), "t": text, "k": pa.array(text).dictionary_encode()}
    return pa.table({**columns, "flag": X[:, 2] > 0, "y": y})


def write_csv(path, rng):
    X, y, text = small_table(rng)
    rows = [f"{a},{b},{c},{t},{k}" for (a, b, c), t, k in zip(X.tolist(), text, y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,c,t,y", *rows, ""]))


def write_csv_gz(path, rng):
    plain = path.with_suffix(".txt")
    write_csv(plain, rng)
    path.write_bytes(gzip.compress(plain.read_bytes()))


def write_parquet(path, rng):
    from pyarrow import parquet

    compression = rng.choice(["none", "snappy", "zstd", "gzip"])
    parquet.write_table(
        arrow_table(rng), path, row_group_size=int(rng.integers(10, 61)), compression=compression,
        use_dictionary=bool(rng.integers(2)), write_page_checksum=bool(rng.integers(2)),
    )  # fmt: skip


def write_arrow(path, rng):
    from pyarrow import feather

    feather.write_feather(arrow_table(rng), path, compression=str(rng.choice(["uncompressed", "lz4", "zstd"])))


def libsvm_text(rng):
    X, y, _ = small_table(rng)
    return "".join(
        " ".join([f"{2 * k - 1}", *(f"{j + 1}:{v}" for j, v in enumerate(row) if v)]) + "\n"
        for row, k in zip(X.tolist(), y.tolist(), strict=True)
    )


def write_libsvm(path, rng):
    path.write_text(libsvm_text(rng))


def write_libsvm_gz(path, rng):
    path.write_bytes(gzip.compress(libsvm_text(rng).encode()))


def write_npz(path, rng):
    X, y, _ = small_table(rng)
    (np.savez if rng.integers(2) else np.savez_compressed)(path, X=X, y=y)


def write_json(path, rng):
    X, y, _ = small_table(rng)
    path.write_text(json.dumps(select(X, y).to_dict()))


def write_checkpoint(path, rng):
    X, y, _ = small_table(rng)
    np.save(path.with_suffix(".npy"), np.column_stack([X, y]))
    select(X, y, checkpoint=path)


def read_table(path):
    return select(path, label="y", task="classification")


def read_unlabelled(path):
    return select(path, task="classification")


def read_json(path):
    from belief.cli.commands import read_result

    result = read_result(path)
    result.explain()
    return result


def read_checkpoint(path):
    table = np.load(path.with_suffix(".npy"))
    return select(table[:, :-1], table[:, -1], checkpoint=path)


FORMATS = {
    "rows.csv": (write_csv, read_table),
    "rows.csv.gz": (write_csv_gz, read_table),
    "rows.parquet": (write_parquet, read_table),
    "rows.arrow": (write_arrow, read_table),
    "rows.svm": (write_libsvm, read_unlabelled),
    "rows.svm.gz": (write_libsvm_gz, read_unlabelled),
    "rows.npz": (write_npz, read_unlabelled),
    "result.json": (write_json, read_json),
    "notes": (write_checkpoint, read_checkpoint),
}


def damage(content, rng):
    """Return the content with some bytes changed, inserted, removed, repeated or copied to another place."""
    content = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        n = len(content)
        if not n:
            break
        a = int(rng.integers(n))
        if rng.random() < 0.3:  # most formats describe their structure at the start or the end of a file
            a = int(min(rng.integers(64), n - 1)) if rng.integers(2) else int(max(0, n - 1 - rng.integers(600)))
        b = min(n, a + int(rng.choice([1, 1, 2, 4, 8, 50, 500])))
        how = int(rng.integers(8))
        if how == 0:
            content[a] ^= 1 << int(rng.integers(8))
        elif how == 1:
            content[a:b] = rng.bytes(b - a)
        elif how == 2:
            content[a:b] = bytes([int(rng.choice([0, 255, 127, 128, 34, 44, 10]))]) * (b - a)
        elif how == 3:
            del content[a:]
        elif how == 4:
            del content[a:b]
        elif how == 5:
            content[a:a] = rng.bytes(b - a)
        elif how == 6:
            content[a:a] = content[a:b] * int(rng.choice([1, 3, 40]))
        else:
            to = int(rng.integers(n))
            content[to : to + b - a] = content[a:b]
    return bytes(content)


def fuzz_file(seed, folder):
    """Damage a file and read it: this must succeed, or raise a clear error that names the file."""
    rng = np.random.default_rng(seed)
    name = list(FORMATS)[seed % len(FORMATS)]
    write, read = FORMATS[name]
    path = folder / name
    write(path, rng)
    damaged = path
    if path.is_dir():
        damaged = sorted(p for p in path.iterdir() if p.is_file())[int(rng.integers(3))]
    damaged.write_bytes(damage(damaged.read_bytes(), rng))
    try:
        read(path)
    except CLEAR as error:
        check_is_clear(error, name)
        return f"{name}: refused"
    except MemoryError:  # a damaged count may require more memory than there is
        return f"{name}: out of memory"
    return f"{name}: read"


# --- malformed tables in memory ---


def malform_sparse(rng):
    """Return a sparse matrix with damaged indices or too few values, and its target."""
    from scipy import sparse

    X, y, _ = small_table(rng)
    form = str(rng.choice(["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]))
    kind = sparse.csr_array if rng.integers(2) else sparse.csr_matrix
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        A = kind(np.where(np.abs(X) > 0.5, X, 0.0)).asformat(form)
    wrong = int(rng.choice([-1, -(10**6), 3, 10**6, 2**31 - 1, 60, 61]))
    arrays = [a for a in ("indices", "indptr", "row", "col", "offsets") if hasattr(A, a)]
    if arrays:
        array = getattr(A, arrays[int(rng.integers(len(arrays)))])
        if rng.integers(5) and array.flags.writeable:
            array[int(rng.integers(len(array)))] = np.clip(
                wrong, *(getattr(np.iinfo(array.dtype), x) for x in ("min", "max"))
            )
        elif hasattr(A, "data") and hasattr(A, "indices"):
            A.data = A.data[: int(rng.integers(len(A.data)))]
    elif form == "lil":
        i = int(rng.integers(60))
        A.rows[i] = [*A.rows[i], wrong] if rng.integers(2) else [wrong] * len(A.rows[i])
    else:
        A._dict[(wrong, int(rng.integers(3)))] = 1.0
    return A, y


ODD_CELLS = [
    None, np.nan, np.inf, -np.inf, "", "a", b"a", 1, 2**53 + 1, 10**30, 10**400, 1.5, True, 1e308, 1e-310, 1j, [], [1],
    {}, np.zeros(2), np.datetime64("NaT"), np.datetime64("2020"), object(), float, "1", "nan", "é", "\0", "x" * 5000,
]  # fmt: skip


def malform_table(rng):
    """Return a table with odd cells, types or shapes, and a target that may be odd too."""
    import pandas as pd

    X, y, _ = small_table(rng)
    cells = [ODD_CELLS[i] for i in rng.integers(0, len(ODD_CELLS), int(rng.integers(1, 4)))]
    column = np.empty(60, object)
    column[:] = [cells[i] for i in rng.integers(0, len(cells), 60)] if rng.integers(2) else X[:, 0].tolist()
    column[int(rng.integers(60))] = cells[0]
    how = int(rng.integers(9))
    if how == 0:
        return pd.DataFrame({"a": column, "b": X[:, 1]}), y
    if how == 1:
        return np.column_stack([column, X[:, 1].astype(object)]), y
    if how == 2:
        return X, column
    if how == 3:
        return X, pd.Series(column)
    if how == 4:
        dtype = rng.choice([">f8", ">f4", "f2", "g", "i8", ">i2", "?", "U5", "M8[ns]", "m8[s]", "S3"])
        return X.astype(dtype), y
    if how == 5:
        strides = [X[::-1], X[:, ::-1], np.asfortranarray(X), X[::2], np.broadcast_to(X[:1], X.shape), X[:, :1]]
        given = strides[int(rng.integers(len(strides)))]
        return given, y[: len(given)]
    if how == 6:
        X[int(rng.integers(60)), int(rng.integers(3))] = rng.choice([np.inf, 1e200, 1e-320, np.nan, 1e308])
        return X * rng.choice([1.0, 1e-160, 1e150, 1e-300]), y
    if how == 7:
        return np.ma.array(X, mask=rng.random(X.shape) < 0.2), np.ma.array(y, mask=rng.random(60) < 0.05)
    return X.tolist(), column.tolist()


def fuzz_table(seed, folder):
    """Select from a malformed table: the weights must be finite, or the error message clear."""
    rng = np.random.default_rng(seed)
    X, y = malform_sparse(rng) if seed % 2 else malform_table(rng)
    kind = "sparse" if seed % 2 else "table"
    try:
        found = select(X, y, **({"drop": [0]} if rng.random() < 0.2 else {}))
    except CLEAR as error:
        check_is_clear(error)
        return f"{kind}: refused"
    except TypeError as error:  # scikit-learn raises this for objects that are not tables
        check_is_clear(ValueError(str(error)))
        return f"{kind}: refused"
    assert np.isfinite(found.weights).all(), found.weights
    return f"{kind}: selected"


# --- one table passed in many ways ---


def random_table(rng):
    """Return a table of float32 values, perhaps with missing ones, its target, and the indices of nominal columns."""
    n, F = int(rng.integers(30, 250)), int(rng.integers(2, 12))
    y = rng.integers(0, int(rng.choice([2, 2, 3])), n)
    y[:3] = [0, 1, y.max()]
    X = rng.normal(size=(n, F)) * 10.0 ** rng.integers(-3, 4, F) + rng.choice([0.0, 1e3, 1e6]) * rng.normal(size=F)
    if rng.random() < 0.3:
        X = X[rng.integers(0, n, n)]  # copies
    discrete = rng.random(F) < rng.choice([0.0, 0.4])
    for j in np.flatnonzero(discrete):
        X[:, j] = rng.integers(0, rng.choice([2, 5, 20]), n)
    X[:, 0] += y * (1 if discrete[0] else X[:, 0].std())
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.7] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, np.flatnonzero(discrete)


def many_ways(X, y, discrete, folder, rng):
    """Yield the name, the arguments and the options of each way to pass the table."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyarrow import feather, parquet
    from scipy import sparse

    from belief.data import load_libsvm

    names = [f"x{j}" for j in range(X.shape[1])]
    nominal = {"discrete_features": discrete.tolist()} if len(discrete) else {}
    labelled = {"label": "y"} | ({"discrete_features": [names[j] for j in discrete]} if len(discrete) else {})
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    cut = int(rng.integers(1, len(X)))
    yield "array", (X, y), nominal
    yield "Fortran order", (np.asfortranarray(X), y), nominal
    yield "blocks", ([X[:cut], X[cut:]], y), nominal
    yield "pandas", (frame,), labelled
    yield "polars", (pl.from_pandas(frame),), labelled
    yield "Arrow", (table,), labelled
    np.save(folder / "X.npy", X)
    yield "memory map", (np.load(folder / "X.npy", mmap_mode="r"), y), nominal
    frame.to_csv(folder / "rows.csv", index=False)
    yield "CSV", (folder / "rows.csv",), labelled
    parts = [folder / "0.parquet", folder / "1.parquet"]
    for path, part in zip(parts, (table[:cut], table[cut:]), strict=True):
        parquet.write_table(part, path, row_group_size=int(rng.integers(1, 100)))
    yield "Parquet", (parts,), labelled
    feather.write_feather(table, folder / "rows.arrow", chunksize=int(rng.integers(1, 100)))
    yield "Arrow file", (folder / "rows.arrow",), labelled
    np.savez(folder / "rows.npz", X=X, y=y)
    yield "NPZ", (folder / "rows.npz",), nominal
    if not np.isnan(X).any():
        yield "sparse", (sparse.csc_array(X), y), nominal
        text = io.StringIO()
        for row, k in zip(X.tolist(), y.tolist(), strict=True):
            text.write(" ".join([str(k), *(f"{j}:{v!r}" for j, v in enumerate(row) if v)]) + "\n")
        (folder / "rows.svm").write_text(text.getvalue())
        yield "LIBSVM", load_libsvm(folder / "rows.svm", n_features=X.shape[1], zero_based=True), nominal


def fuzz_ways(seed, folder):
    """Select from one table passed in many ways, and check that all results are equal."""
    rng = np.random.default_rng(seed)
    X, y, discrete = random_table(rng)
    n = int(rng.integers(1, X.shape[1] + 1))
    expected, first = None, ""
    for name, args, options in many_ways(X, y, discrete, folder, rng):
        try:
            found = select(*args, n_features_to_select=n, task="classification", **options)
        except CLEAR as error:  # for example, if every column is constant; then all ways must raise
            check_is_clear(error)
            found = None
        if not first:
            expected, first = found, name
            continue
        assert (found is None) == (expected is None), f"{first} and {name}: one of them raises"
        if found is not None and expected is not None:
            for field in ("weights", "se", "p_value", "scores"):
                left, right = getattr(expected, field), getattr(found, field)
                np.testing.assert_allclose(right, left, rtol=1e-7, atol=1e-10, err_msg=f"{first} and {name}: {field}")
            assert found.selected.tolist() == expected.selected.tolist(), f"{first} and {name}: selected"
    return "raises" if expected is None else "selected"


# --- signals ---


def fuzz_signal(seed, folder):
    """End the command by a signal at a random moment: it must leave complete files or none, and resume afterwards."""
    rng = np.random.default_rng(seed)
    X, y, _ = small_table(rng, 2000)
    np.savetxt(folder / "rows.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="", fmt="%.4f")
    out, data = folder / "out.json", folder / "small.csv"
    command = [sys.executable, "-W", "ignore", "-m", "belief.cli", "select", str(folder / "rows.csv"), "--label", "y"]
    command += ["--top", "2", "--seed", "0", "--quiet", "--checkpoint", str(folder / "notes"), "--out", str(out)]
    command += ["--write-data", str(data), "--force"]
    number = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL][int(rng.integers(4))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(float(rng.uniform(0.3, 4.0)))
        process.send_signal(number)
        _, said = process.communicate(timeout=SECONDS_OF_SILENCE)
    code = process.returncode
    early = code == -number or (code == 1 and "Traceback" in said and "commands.py" not in said)  # during imports
    assert code in {0, 128 + number} or (number == signal.SIGKILL and code == -9) or early, (code, said)
    hidden = [p.name for p in folder.iterdir() if p.name.startswith(".")]
    assert not hidden or number == signal.SIGKILL, hidden
    for path in (out, data):
        if path.exists():
            json.loads(path.read_text()) if path is out else np.loadtxt(path, delimiter=",", skiprows=1)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    expected = select(folder / "rows.csv", label="y")
    assert found["selected"] == expected.selected.tolist()
    return f"{number.name}: {'ended' if code else 'too late'}"


# --- running many cases ---

KINDS = {"files": fuzz_file, "tables": fuzz_table, "ways": fuzz_ways, "signals": fuzz_signal}
SHARES = {"files": 0.45, "tables": 0.15, "ways": 0.3, "signals": 0.1}  # share of the time limit


def run_child(kind, first, cases):
    """Run cases one after the other; print the seed before each case and its outcome afterwards."""
    import faulthandler

    faulthandler.enable()
    warnings.simplefilter("ignore")
    if kind in ("files", "tables"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
    root = Path(tempfile.mkdtemp(prefix="belief-fuzz-"))
    try:
        for seed in range(first, first + cases):
            print(f"begin {seed}", flush=True)
            folder = root / str(seed)
            folder.mkdir()
            # the timer ends this process with SIGPROF; the first case may compile kernels, so it has twice the time
            signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE * (2 if seed == first else 1))
            try:
                outcome = KINDS[kind](seed, folder)
            except Exception:
                outcome = "FAILED " + json.dumps(traceback.format_exc()[-3000:])
            shutil.rmtree(folder)
            print(f"end {seed} {outcome}", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


class Fuzzer:
    """A runner of the cases of one kind, in child processes."""

    def __init__(self, kind, first, cases, seconds=float("inf")):
        self.kind, self.next, self.end = kind, first, first + cases
        self.stop = time.monotonic() + seconds
        self.outcomes, self.failures = Counter(), {}

    def run(self):
        while self.next < self.end and time.monotonic() < self.stop:
            self._run_child()
        return self

    def _run_child(self):
        command = [sys.executable, __file__, "--child", self.kind, "--seed", str(self.next)]
        command += ["--cases", str(min(500, self.end - self.next))]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
        ):
            timer = Watchdog(child)
            running = None
            for line in child.stdout:
                what, seed, *outcome = line.split(" ", 2)
                timer.restart()
                if what == "begin":
                    running = int(seed)
                    continue
                if what != "end":
                    continue
                text = outcome[0].strip()
                self.next, running = int(seed) + 1, None
                if text.startswith("FAILED "):
                    self.failures[int(seed)] = json.loads(text.removeprefix("FAILED "))
                else:
                    self.outcomes[text] += 1
                if time.monotonic() > self.stop:
                    child.kill()
                    break
            child.wait()
            timer.end()
            if running is not None and time.monotonic() <= self.stop:
                errors.seek(0)
                is_slow = timer.fired or child.returncode == -signal.SIGPROF
                why = "took more than a minute" if is_slow else f"ended with {child.returncode}"
                self.failures[running] = f"{why}\n{errors.read()[-3000:]}"
                self.next = running + 1
            elif running is None and self.next < self.end and child.returncode and time.monotonic() <= self.stop:
                errors.seek(0)
                raise RuntimeError(f"the child cannot run: {errors.read()[-3000:]}")

    def summary(self):
        done = sum(self.outcomes.values()) + len(self.failures)
        lines = [f"{self.kind}: {done} cases to seed {self.next - 1}, {len(self.failures)} failures"]
        lines += [f"  {n:6} {outcome}" for outcome, n in sorted(self.outcomes.items())]
        for seed, text in self.failures.items():
            lines += [f"  FAILED: python tests/fuzz.py {self.kind} --seed {seed} --cases 1", text]
        return "\n".join(lines)


class Watchdog:
    """A thread that kills a child process if it prints nothing for ten minutes."""

    def __init__(self, child):
        import threading

        self.child, self.fired, self._last, self._ended = child, False, time.monotonic(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def restart(self):
        self._last = time.monotonic()

    def end(self):
        self._ended.set()

    def _watch(self):
        while not self._ended.wait(0.5):
            if time.monotonic() - self._last > SECONDS_OF_SILENCE:
                self.fired = True
                self.child.kill()
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, help="seconds for all kinds together (3600, or no limit with --cases)")
    parser.add_argument("--child", metavar="KIND", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(options.child, options.seed, options.cases)
        return 0
    seconds = options.seconds or (3600.0 if options.cases == 10**9 else float("inf"))
    first = random.SystemRandom().randrange(10**8) * 9 if options.seed is None else options.seed
    print(f"seed {first}", flush=True)
    failures = 0
    for kind in [options.kind] if options.kind else KINDS:
        share = 1.0 if options.kind else SHARES[kind]
        fuzzer = Fuzzer(kind, first, options.cases, seconds * share).run()
        print(fuzzer.summary(), flush=True)
        failures += len(fuzzer.failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    sys.exit(main())
