"""Checkpoints: interrupted runs continue with the same result, and the checkpoint of another run is refused."""

import contextlib
import itertools
import json
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from effort import THOROUGH
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

import belief

M, F = 40_000, 30  # 4.6 MB, more than is kept in memory

pytestmark = pytest.mark.slow
TIMELESS = ("weights", "selected", "scores", "redundancy", "watched", "history", "seed")

# a run with blocks of 2,000 rows, a checkpoint after every block, and no significance tests, which are not stored
DRIVER = """
import itertools, json, sys, time
from pathlib import Path
import belief

time.monotonic = itertools.count(0, 60).__next__
file, notes, out = map(Path, sys.argv[1:])
stream = belief.data.open_files([file], belief.data.ColumnSelection("y"))
stream.files.max_batch_rows = 2000
options = {"sample_size": 400, "batch_size": 0.05, "working_memory": 16, "significance": None, "random_state": 7}
result = belief.select(stream, n_features_to_select=5, checkpoint=notes, **options)
out.write_text(json.dumps(result.to_dict()))
"""

KILLS = 10 if THOROUGH else 3


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, M)
    X = rng.standard_normal((F, M), dtype=np.float32)
    X[3] += y
    X[4] = X[3] + 0.1 * X[4]
    file = tmp_path_factory.mktemp("data") / "a.parquet"
    parquet.write_table(pa.table([*X, y], names=[*(f"f{j}" for j in range(F)), "y"]), file)
    return file


def command(*files):
    return [sys.executable, "-c", DRIVER, *map(str, files)]


def found(path):
    result = json.loads(path.read_text())
    return {name: result[name] for name in TIMELESS}


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory):
    home = tmp_path_factory.mktemp("whole")
    out, times = home / "r.json", []
    for i in range(2):  # the first run may have to compile kernels
        began = time.monotonic()
        subprocess.run(command(data, home / f"notes{i}", out), check=True)
        times.append(time.monotonic() - began)
    return found(out), min(times)


@pytest.mark.slow
def test_killed_runs_continue_with_the_same_result(data, undisturbed, tmp_path):
    want, seconds = undisturbed
    out, notes = tmp_path / "r.json", tmp_path / "notes"
    again = command(data, notes, out)
    moment = random.Random(0)
    kills, stages = 0, set()
    while kills < KILLS or not out.exists():
        begun = time.monotonic()
        process = subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if kills < KILLS:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment.uniform(0.4, 1.5) * seconds)
            process.kill()
        assert process.communicate()[1] == b""
        kills += process.returncode != 0
        stages.add(tuple(sorted(p.name for p in notes.glob("[!.]*"))))
        if process.returncode == 0:
            seconds = min(seconds, time.monotonic() - begun)  # earlier runs may have compiled kernels or waited
            assert found(out) == want
            if kills < KILLS:  # start again from the beginning
                shutil.rmtree(notes)
                out.unlink()
    assert len(stages) > 1 or not THOROUGH  # with few kills, all may come in the same stage


# --- in this process ---


def table(seed=0, m=300):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, m)
    X = rng.standard_normal((m, 6))
    X[:, 2] += y
    return X, y


def run(notes, seed=0, **settings):
    return belief.select(*table(), 2, random_state=seed, checkpoint=notes, **settings)


def test_finished_run_is_not_repeated(tmp_path):
    results, steps = [], []
    for _ in range(2):
        steps.append([])
        results.append(run(tmp_path / "notes", callback=steps[-1].append))
    first, again = ({p.phase for p in x if p.phase == "tally" or p.done} & {"neighbours", "tally"} for x in steps)
    assert first == {"neighbours", "tally"}
    assert not again
    np.testing.assert_array_equal(results[1].weights, results[0].weights)
    np.testing.assert_array_equal(results[1].scores, results[0].scores)


def test_continued_run_keeps_a_drawn_seed(tmp_path):
    assert run(tmp_path / "notes", seed=None).seed == run(tmp_path / "notes", seed=None).seed


@pytest.mark.parametrize("name", ["neighbours", "sums"])
def test_deleted_checkpoint_files_are_recomputed(tmp_path, name):
    first = run(tmp_path / "notes", batch_size=0.1)
    (tmp_path / "notes" / f"{name}.npz").unlink()
    np.testing.assert_array_equal(run(tmp_path / "notes", batch_size=0.1).weights, first.weights)


def test_search_continues_with_the_next_block(data, tmp_path, monkeypatch):
    """A search that was stopped halfway continues with the next block."""
    clock = itertools.count(0, 60)  # a checkpoint after every block; the clock is read twice for each of them
    monkeypatch.setattr(time, "monotonic", clock.__next__)
    stream = belief.data.open_files([data], belief.data.ColumnSelection("y"))
    stream.files.max_batch_rows = 4000
    options = {"n_features_to_select": 5, "sample_size": 200, "random_state": 0, "working_memory": 16}

    def stop(progress):
        if progress.detail == "comparing" and progress.done == 24_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        belief.select(stream, checkpoint=tmp_path / "notes", callback=stop, **options)
    before = next(clock)
    result = belief.select(stream, checkpoint=tmp_path / "notes", **options)
    assert (next(clock) - before) / 60 == 2 * 4 + 2
    np.testing.assert_array_equal(result.weights, belief.select(stream, **options).weights)


def test_checkpoint_of_another_run_is_refused(tmp_path):
    notes = tmp_path / "notes"
    run(notes)
    refused("belongs to other data", lambda: belief.select(*table(1), 2, random_state=0, checkpoint=notes))
    X, y = table()
    other = np.r_[1:300, 0]
    refused("belongs to other data", lambda: belief.select(X[other], y[other], 2, random_state=0, checkpoint=notes))
    refused("with n_neighbors='auto', not 5: use the settings of that run", lambda: run(notes, n_neighbors=5))
    refused("with the seed 0, not 3", lambda: run(notes, seed=3))
    page = json.loads((notes / "checkpoint.json").read_text())
    (notes / "checkpoint.json").write_text(json.dumps({**page, "format": 99}))
    refused("was written by another version .format 99, not 3.", lambda: run(notes))


def test_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    refused("holds other files: pass an empty or a new folder", lambda: run(tmp_path))
    refused("letter.txt is a file", lambda: run(tmp_path / "letter.txt"))
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_run_killed_at_its_start_is_continued(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / ".checkpoint.json").write_text('{"form')
    run(notes)
    assert sorted(p.name for p in notes.iterdir()) == ["checkpoint.json", "neighbours.npz", "sums.npz"]


def test_full_disk_is_reported(tmp_path, monkeypatch):
    run(tmp_path / "whole")

    def full(file, **arrays):
        file.write(b"PK")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    refused(r"neighbours.npz cannot be written \(No space left on device\)", lambda: run(tmp_path / "notes"))
    assert [p.name for p in (tmp_path / "notes").iterdir()] == ["checkpoint.json"]


# --- similar data is refused ---


def shuffled_within_classes(X, y, seed):
    """Shuffle each column within classes: the same labels and moments, but other rows."""
    X, rng = X.copy(), np.random.default_rng(seed)
    for j in range(X.shape[1]):
        for c in np.unique(y):
            mine = np.flatnonzero(y == c)
            X[mine, j] = X[rng.permutation(mine), j]
    return X


def bits():
    rng = np.random.default_rng(0)
    y = np.arange(128) % 2
    return (rng.random((128, 6)) < 0.5).astype(float), y


@pytest.mark.parametrize("form", ["dense", "sparse", "libsvm"])
def test_similar_rows_are_refused(tmp_path, form):
    X, y = bits()

    def given(X, name):
        if form == "dense":
            return X, y
        if form == "sparse":
            return csr_matrix(X), y
        dump_svmlight_file(X, y, str(tmp_path / name))
        return str(tmp_path / name), None

    belief.select(*given(X, "a.svm"), 3, random_state=0, checkpoint=tmp_path / "notes")
    belief.select(*given(X, "a.svm"), 3, random_state=0, checkpoint=tmp_path / "notes")
    other = given(shuffled_within_classes(X, y, 1), "b.svm")
    with pytest.raises(ValueError, match="belongs to other data"):
        belief.select(*other, 3, random_state=0, checkpoint=tmp_path / "notes")


def test_other_discrete_features_are_refused(tmp_path):
    X, y = bits()
    belief.select(csr_matrix(X), y, 3, random_state=0, checkpoint=tmp_path / "notes")
    with pytest.raises(ValueError, match="belongs to other data"):
        belief.select(csr_matrix(X), y, 3, random_state=0, discrete_features=[0], checkpoint=tmp_path / "notes")


def test_count_and_share_are_different_settings(tmp_path):
    X, y = bits()
    belief.select(X, y, 1, random_state=0, checkpoint=tmp_path / "notes")
    with pytest.raises(ValueError, match=r"n_features_to_select=1, not 1\.0"):
        belief.select(X, y, 1.0, random_state=0, checkpoint=tmp_path / "notes")


def test_generator_in_the_same_state_continues(tmp_path):
    X, y = bits()
    first, again = (
        belief.select(X, y, 3, random_state=np.random.RandomState(0), checkpoint=tmp_path / "notes") for _ in range(2)
    )
    assert first.seed == again.seed


def test_working_memory_may_change(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60_000)
    table = pd.DataFrame(rng.normal(size=(60_000, 20))).rename(columns=str).assign(y=y)
    table.to_parquet(tmp_path / "a.parquet", row_group_size=7_000)
    for memory in (16, 1024):
        belief.select(
            str(tmp_path / "a.parquet"), label="y", n_features_to_select=3, sample_size=50, random_state=0,
            working_memory=memory, checkpoint=tmp_path / "notes",
        )  # fmt: skip


def test_two_runs_cannot_use_one_folder(data, tmp_path):
    notes, second = tmp_path / "notes", []

    def callback(progress):
        if not second and progress.phase == "tally":
            with pytest.raises(ValueError, match="notes is in use by another run: wait"):
                belief.select(str(data), label="y", checkpoint=notes, random_state=0)
            second.append(sorted(p.name for p in notes.iterdir()))

    belief.select(str(data), label="y", checkpoint=notes, random_state=0, sample_size=200, callback=callback)
    assert ".lock" in second[0]
    assert ".lock" not in [p.name for p in notes.iterdir()]
    belief.select(str(data), label="y", checkpoint=notes, random_state=0, sample_size=200)


def test_lock_of_a_killed_run_does_not_count(data, tmp_path):
    notes = tmp_path / "notes"
    again = command(data, notes, tmp_path / "r.json")
    process = subprocess.Popen(again)
    while not (notes / "checkpoint.json").exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert (notes / ".lock").exists()
    subprocess.run(again, check=True)
    assert not (notes / ".lock").exists()
